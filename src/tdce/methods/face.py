"""FACE: the nearest confident real row, reached through dense data.

R. Poyiadzi, K. Sokol, R. Santos-Rodriguez, T. De Bie, P. Flach, "FACE: Feasible and Actionable Counterfactual
Explanations", AIES 2020. Rows are the nodes of a graph, neighbours are joined, an edge over sparse ground is long; the
answer is the row, confidently of the target class, at the end of the shortest path.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from math import log, pi
from typing import NamedTuple, Self

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import dijkstra
from scipy.special import gammaln
from sklearn.neighbors import NearestNeighbors  # type: ignore[import-untyped]
from torch import Generator, Tensor

from tdce.diffusion.noise import Noise
from tdce.methods.base import Task
from tdce.schema import Floats

Rows = NDArray[np.int64]
SHORTEST = 1e-12  # of an edge: twins are joined by almost nothing, which a sparse matrix keeps apart from nothing


@dataclass(frozen=True)
class FACE:
    """Shortest paths over the training rows that agree with the query on every immutable column.

    All work is in `fit`: one Dijkstra for each class, from all its confident rows at once, tells every row which of
    them is nearest. A query enters the graph by edges to its own neighbours. Where no path leads, the query comes back.
    The paper's threshold on the density of the answer is left at zero: the paths already avoid sparse ground.
    """

    k: int = 50  # neighbours of a row
    epsilon: float | None = None  # with it, the neighbours are instead all rows within this distance
    confidence: float = 0.6  # the least probability of the target class at an answer
    rows: int = 20_000  # at most so many training rows are nodes
    task_: Task | None = field(default=None, repr=False)
    nodes_: Tensor | None = field(default=None, repr=False)  # (m, width)
    parts_: dict[bytes, Part] = field(default_factory=dict, repr=False)  # by the values of the immutable columns
    cost_: Floats | None = field(
        default=None, repr=False
    )  # (classes, m) length of the path to the nearest confident row
    answer_: Rows | None = field(default=None, repr=False)  # (classes, m) that row's number

    def fit(self, task: Task) -> Self:
        order = torch.randperm(len(task.x), generator=Generator().manual_seed(task.seed))
        nodes = task.x[order[: self.rows].sort().values]
        features = sum(bool(task.mutable[list(own)].any()) for own in task.space.columns.values())
        parts, edges = {}, []
        for key, at in _groups(nodes, task).items():
            x = nodes[at][:, task.mutable].double().numpy()
            parts[key] = Part.of(x, at.numpy(), self.k, self.epsilon, features)
            edges.append(parts[key].inner(x))
        graph = _union(edges, len(nodes))
        with torch.no_grad():
            p = torch.cat([task.classifier(block).softmax(dim=1) for block in nodes.split(4096)])
        best, predicted = p.max(dim=1)
        confident = (best >= self.confidence).numpy()
        paths = [_nearest(graph, np.flatnonzero(confident & (predicted == c).numpy())) for c in range(p.shape[1])]
        cost, answer = (np.stack(each) for each in zip(*paths, strict=True))
        return replace(self, task_=task, nodes_=nodes, parts_=parts, cost_=cost, answer_=answer)

    def generate(self, x: Tensor, target: Tensor, noise: Noise) -> Tensor:
        """No draw is made: the answer is the end of the shortest path."""
        assert self.task_ is not None and self.nodes_ is not None, "call fit first"
        assert self.cost_ is not None and self.answer_ is not None
        x_cf = x.clone()
        for key, at in _groups(x, self.task_).items():
            if key not in self.parts_:
                continue
            entry, node, weight = self.parts_[key].entrances(x[at][:, self.task_.mutable].double().numpy())
            wanted = target[at].numpy()[entry]
            cost = weight + self.cost_[wanted, node]
            order = np.lexsort((cost, entry))
            entry, first = np.unique(entry[order], return_index=True)  # the cheapest way in, for each query
            best = order[first]
            reached = np.isfinite(cost[best])
            answer = self.answer_[wanted[best], node[best]][reached]
            x_cf[at[entry[reached]]] = self.nodes_[answer]
        return torch.where(self.task_.mutable, x_cf, x)


class Edges(NamedTuple):
    row: Rows  # numbers of queries or nodes
    node: Rows
    weight: Floats


@dataclass(frozen=True)
class Part:
    """The nodes that share the values of all immutable columns; here a row is its other columns."""

    at: Rows  # (n,) their numbers
    tree: NearestNeighbors
    k: int
    epsilon: float | None
    features: int  # d, the dimension: features, not columns, for the weights of one category are no freedom each
    log_r: float

    @classmethod
    def of(cls, x: Floats, at: Rows, k: int, epsilon: float | None, features: int) -> Self:
        # a tree looks at one query at a time, so that what it finds never depends on the rest of the batch
        tree = NearestNeighbors(algorithm="kd_tree").fit(x)
        k = min(k, len(x))
        if epsilon is None:
            log_r = log(k / len(x)) + gammaln(features / 2 + 1) - features / 2 * log(pi)  # r = k / (N eta_d)
        else:
            log_r = features * log(epsilon)  # r = epsilon^d
        return cls(at, tree, k, epsilon, features, float(log_r))

    def inner(self, x: Floats) -> Edges:
        """Among the nodes; none is its own neighbour."""
        edges = self._edges(NearestNeighbors().fit(x), None, min(self.k, len(x) - 1))  # wide rows by matrix products
        return edges._replace(row=self.at[edges.row])

    def entrances(self, x: Floats) -> Edges:
        """From queries to nodes."""
        return self._edges(self.tree, x, self.k)

    def _edges(self, finder: NearestNeighbors, x: Floats | None, k: int) -> Edges:
        if self.epsilon is not None:
            graph = finder.radius_neighbors_graph(x, self.epsilon, mode="distance").tocoo()
        elif k > 0:
            graph = finder.kneighbors_graph(x, k, mode="distance").tocoo()
        else:
            return Edges(*np.zeros((2, 0), dtype=np.int64), np.zeros(0))
        return Edges(graph.row, self.at[graph.col], self.weight(graph.data))

    def weight(self, distance: Floats) -> Floats:
        """f(p) * distance, with the density p = r / distance^d that an edge of this length speaks for.

        The paper has f = -log, negative where p > 1, and prints p without the power; f(p) = log(1 + 1/p) is the same
        at a small density and positive at any.
        """
        log_p = self.log_r - self.features * np.log(np.maximum(distance, SHORTEST))
        return np.maximum(np.logaddexp(0, -log_p) * distance, SHORTEST)


def _groups(x: Tensor, task: Task) -> dict[bytes, Tensor]:
    """Row numbers by the values of the immutable columns; adding 0 makes one zero of two."""
    groups: dict[bytes, list[int]] = {}
    for i, values in enumerate((x[:, ~task.mutable] + 0.0).numpy()):
        groups.setdefault(values.tobytes(), []).append(i)
    return {key: torch.tensor(at) for key, at in groups.items()}


def _union(edges: Iterable[Edges], nodes: int) -> coo_array:
    row, node, weight = (np.concatenate(each) for each in zip(*edges, strict=True))
    return coo_array((weight, (row, node)), shape=(nodes, nodes)).tocsr()


def _nearest(graph: coo_array, sources: Rows) -> tuple[Floats, Rows]:
    """For every node the length of the shortest path to any of the sources, and that source; inf where there is none."""
    if len(sources) == 0:
        return np.full(graph.shape[0], np.inf), np.zeros(graph.shape[0], dtype=np.int64)
    cost, _, source = dijkstra(graph, directed=False, indices=sources, min_only=True, return_predecessors=True)
    return cost, source.astype(np.int64)
