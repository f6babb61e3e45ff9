"""FACE: the nearest real row that is confidently accepted, reached through dense data.

R. Poyiadzi, K. Sokol, R. Santos-Rodriguez, T. De Bie, P. Flach, "FACE: Feasible and Actionable Counterfactual
Explanations", AIES 2020. Rows are the nodes of a graph; edges join neighbours and are long where data are sparse. The
answer is the row at the end of the shortest path to the target class.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import lgamma, log, pi
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import torch
from torch import Generator, Tensor

from tdce._core import LARGEST_COUNT, Floats, Noise, Positions, require_extra
from tdce.methods.protocol import Query, Search, Task, task_of
from tdce.methods.settings import POSITIVE, check_settings
from tdce.models import Goal, Goals

MIN_LENGTH = 1e-12  # of an edge, between identical rows: in a sparse matrix 0 would be no edge


@dataclass(frozen=True)
class FACE:
    """Shortest paths over the training rows that agree with the query on every immutable column.

    One Dijkstra search per goal, from all rows that meet it with confidence, finds the nearest of these for every node.
    A query enters the graph by edges to its own neighbours. A row without a path is returned unchanged. The paper's
    threshold on the density of an answer is zero, since the paths already avoid sparse regions.
    """

    edition: ClassVar[int] = 1  # raised when its answers change
    random: ClassVar[bool] = False
    has_tradeoff: ClassVar[bool] = False
    k: int = 50  # number of neighbours of a row
    epsilon: float | None = None  # if set, neighbours are all rows within this distance instead
    confidence: float = 0.6  # t_p: minimum probability of the target class for an answer, or the threshold if higher
    rows: int = 50_000  # maximum number of nodes
    task_: Task | None = field(default=None, repr=False)
    graph_: Graph | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        check_settings(self, k=(1, LARGEST_COUNT), epsilon=(POSITIVE, 1e6), confidence=(0, 1), rows=(1, LARGEST_COUNT))

    def fit(self, task: Task) -> Self:
        task.require_rows("FACE")
        require_extra("FACE", "paper", "sklearn")
        if not task.mutable.any():
            return replace(self, task_=task)  # nothing may change: no graph needed
        key = (replace(self, task_=None, graph_=None), tuple(task.mutable.tolist()), task.seed)
        nodes = min(self.rows, len(task.x))
        graph = task.oracle.charge(key, nodes, lambda: task.memoise(key, lambda: self._graph(task)))
        return replace(self, task_=task, graph_=graph)

    def _graph(self, task: Task) -> Graph:
        from scipy.sparse import csr_array  # imported here, as below, to spare other methods the time

        order = torch.randperm(len(task.x), generator=Generator().manual_seed(task.seed))
        nodes = task.x[order[: self.rows].sort().values]
        features = sum(bool(task.mutable[list(own)].any()) for own in task.space.places.values())
        parts, edges = {}, []
        for key, at in _groups(nodes, task.mutable).items():
            x = _free(nodes[at], task.mutable)
            parts[key] = Part.of(x, at, self.k, self.epsilon, features)
            edges.append(parts[key].inner(x))
        row, node, weight = (np.concatenate(each) for each in zip(*edges, strict=True))
        places = row.astype(np.int32), node.astype(np.int32)  # as path searches of older scipy versions need
        graph = csr_array((weight, places), shape=(len(nodes), len(nodes)))
        score = task.oracle.score(task.encoder.unembed(nodes))
        return Graph(nodes, parts, graph, score)

    def search(self, query: Query, noise: Noise) -> Search:
        """The ends of the shortest paths; `noise` is not used."""
        return self.nearest_ends(query.x, query.goals)
        yield  # makes it a generator, although it never queries the model

    def nearest_ends(self, x: Tensor, goals: Goals) -> Tensor:
        """(n, width) the ends of the shortest paths from rows (n, width); rows without a path are unchanged."""
        if self.graph_ is None:
            return x.clone()
        nodes, parts = self.graph_.nodes, self.graph_.parts
        paths = [self._paths(self.graph_, goal) for goal in goals.kinds]
        to_go, end = (np.stack(each) for each in zip(*paths, strict=True))
        mutable = task_of(self).mutable
        x_cf = x.clone()
        for key, at in _groups(x, mutable).items():
            if key not in parts:
                continue
            row, node, weight = parts[key].entrances(_free(x[at], mutable))
            wanted = goals.which[at].numpy()[row]
            cost = weight + to_go[wanted, node]
            order = np.lexsort((cost, row))
            first = order[np.unique(row[order], return_index=True)[1]]  # the cheapest entrance of each row
            first = first[np.isfinite(cost[first])]
            x_cf[at[row[first]]] = nodes[end[wanted[first], node[first]]]
        return torch.where(mutable, x_cf, x)

    def _paths(self, graph: Graph, goal: Goal) -> tuple[Floats, Positions]:
        """For each node, the length of the path to the nearest node that counts as an answer, infinite if there is no
        path; and the number of that node."""
        key = goal, self.confidence
        if key not in graph.paths:
            confident = (goal.chance(graph.score) >= self.confidence) & goal.met(graph.score)
            graph.paths[key] = _nearest_source(graph.edges, np.flatnonzero(confident.numpy()))
        return graph.paths[key]


@dataclass(frozen=True)
class Graph:
    """The graph over training rows, with the model's scores of them."""

    nodes: Tensor  # (m, width) rows
    parts: dict[bytes, Part]  # by the values of the immutable columns; no edge joins two parts
    edges: Any  # (m, m) lengths, a sparse matrix
    score: Tensor  # (m, classes) the model's scores of the nodes
    paths: dict[tuple[Goal, float], tuple[Floats, Positions]] = field(default_factory=dict)  # on demand


class Edges(NamedTuple):
    """Edges to nodes, one per element."""

    row: Positions  # a query or a node
    node: Positions
    weight: Floats


@dataclass(frozen=True)
class Part:
    """The nodes that share the values of all immutable columns; rows here hold only the other columns."""

    at: Positions  # (n,) numbers of the nodes
    tree: Any  # searches for one row at a time, so that its result never depends on the rest of the batch
    k: int
    epsilon: float | None
    features: int  # d, the dimension: the weights of one category count as one
    log_r: float

    @classmethod
    def of(cls, x: Floats, at: Positions, k: int, epsilon: float | None, features: int) -> Self:
        k = min(k, len(x))
        log_ball = features / 2 * log(pi) - lgamma(features / 2 + 1)  # log eta_d, the volume of the unit ball
        log_r = log(k / len(x)) - log_ball if epsilon is None else features * log(epsilon)
        return cls(at, _finder(x, "kd_tree"), k, epsilon, features, log_r)

    def inner(self, x: Floats) -> Edges:
        """The edges among the nodes; no node is its own neighbour."""
        if len(x) == 1:
            return Edges(self.at[:0], self.at[:0], np.zeros(0))
        edges = self._edges(_finder(x, "auto"), None, min(self.k, len(x) - 1))  # wide rows: matrix products
        return edges._replace(row=self.at[edges.row])

    def entrances(self, x: Floats) -> Edges:
        """The edges from queries to nodes."""
        return self._edges(self.tree, x, self.k)

    def _edges(self, finder: Any, x: Floats | None, k: int) -> Edges:
        if self.epsilon is None:
            graph = finder.kneighbors_graph(x, k, mode="distance").tocoo()
        else:
            graph = finder.radius_neighbors_graph(x, self.epsilon, mode="distance").tocoo()
        return Edges(graph.row, self.at[graph.col], self.weight(graph.data))

    def weight(self, distance: Floats) -> Floats:
        """f(p) * distance, where p = r / distance^d is the density estimated from an edge of this length.

        r = k / (N eta_d), or epsilon^d. The paper prints p without the power d of the density estimate, and f = -log,
        which is negative where p > 1; log(1 + 1 / p) is nearly -log p at a small p and never negative.
        """
        log_p = self.log_r - self.features * np.log(np.maximum(distance, MIN_LENGTH))
        weight: Floats = np.maximum(np.logaddexp(0, -log_p) * distance, MIN_LENGTH)
        return weight


def _finder(x: Floats, algorithm: str) -> Any:
    """A nearest-neighbour search among these rows."""
    from sklearn.neighbors import NearestNeighbors  # type: ignore[import-untyped]

    return NearestNeighbors(algorithm=algorithm).fit(x)


def _groups(x: Tensor, mutable: Tensor) -> dict[bytes, Positions]:
    """Row numbers, grouped by the values of the immutable columns."""
    groups: dict[bytes, list[int]] = {}
    for i, values in enumerate((x[:, ~mutable] + 0.0).numpy()):  # -0.0 + 0.0 = 0.0, the same bytes
        groups.setdefault(values.tobytes(), []).append(i)
    return {key: np.array(at) for key, at in groups.items()}


def _free(x: Tensor, mutable: Tensor) -> Floats:
    free: Floats = x[:, mutable].double().numpy()
    return free


def _nearest_source(graph: Any, sources: Positions) -> tuple[Floats, Positions]:
    """For each node, the length of the shortest path to any of the sources, and which source that is."""
    if len(sources) == 0:
        return np.full(graph.shape[0], np.inf), np.zeros(graph.shape[0], dtype=np.int64)
    from scipy.sparse.csgraph import dijkstra

    cost, _, source = dijkstra(graph, directed=False, indices=sources, min_only=True, return_predecessors=True)
    return cost, source.astype(np.int64)
