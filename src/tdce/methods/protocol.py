"""The protocol of a method: it is fitted to a task, is given a query, and requests decisions until it has answers."""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Protocol, Self, TypeVar, runtime_checkable

import numpy as np
import torch
from torch import Tensor

from tdce._core import Floats, InputError, Noise, Positions, unique_rows
from tdce.diffusion import TabularDiffusion
from tdce.methods.precedents import Precedents
from tdce.models import Decision, Goals, Oracle, SecondOpinion
from tdce.schema import EncodedBounds, Encoder, Space

Guide = Callable[[Tensor], Tensor]
"""The model as a differentiable function: encoded rows (n, width) -> logits (n, classes)."""

FEW_ROWS = 4
Result = TypeVar("Result")


@dataclass(frozen=True)
class Task:
    """What a method is fitted to: the table's encoding, the model, the data, the diffusion model, what may change."""

    encoder: Encoder
    oracle: Oracle  # of the model to explain
    guide: Guide | None  # the same model in differentiable form, if available
    diffusion: TabularDiffusion
    mutable: Tensor  # (width,) bool
    x: Tensor  # (m, width) training rows; m = 0 if the explainer was loaded without them
    y: Tensor  # (m,) their class numbers
    seed: int = 0  # for what the method trains
    synthetic: Tensor = field(default_factory=lambda: torch.zeros(0, 0))  # (p, width) synthetic rows
    energy_quantiles: Tensor = field(default_factory=lambda: torch.zeros(0, 0))  # (classes, knots) for `plausibility`
    memo: dict[Hashable, Any] = field(default_factory=dict)  # see `memoise`
    synthetic_scores: Tensor | None = None  # (p, columns) the model's scores of the synthetic rows, if known
    second_opinion: SecondOpinion | None = None  # None: no forecasts of safety
    precedents: Precedents | None = None  # answers of the search to synthetic rows

    @property
    def space(self) -> Space:
        return self.encoder.space

    @cached_property
    def free(self) -> Tensor:
        """(features,) which features may be changed: neither immutable ones nor followers."""
        return (self.space.sum_by_feature(self.mutable.float()[None])[0] > 0) & ~self.follows

    @cached_property
    def follows(self) -> Tensor:
        """(features,) which features are followers; a change of theirs does not count by itself."""
        followers = self.encoder.schema.followers
        return torch.tensor([name in followers for name in self.encoder.schema.names], dtype=torch.bool)

    @property
    def has_rows(self) -> bool:
        """Whether there are training rows; an artefact may leave them out."""
        return len(self.x) > 0

    def require_rows(self, who: str) -> None:
        """Raise an error with the remedy if there are no training rows."""
        if not self.has_rows:
            raise InputError(
                f"{who} needs the training rows, but this artefact holds none; fit it again with "
                "Explainer(keep_rows=True) or `tdce fit --keep-rows`, or use the method search, which needs none"
            )

    def require_guide(self, who: str) -> Guide:
        """The guide, or an error with the remedy."""
        if self.guide is None:
            raise InputError(f"{who} needs a model with gradients, but this one has none; use cchvae, face or nice")
        return self.guide

    def memoise(self, key: Hashable, make: Callable[[], Result]) -> Result:
        """The result of `make`, computed once per key for the same rows and models."""
        inputs = (self.x, self.synthetic, self.diffusion, self.oracle.model, self.guide)
        whole = (key, *map(id, inputs))  # stored with the inputs, so that no id is reused
        if whole not in self.memo:
            self.memo[whole] = inputs, make()
        result: Result = self.memo[whole][1]
        return result


class Request(NamedTuple):
    """Candidates on which a method requests decisions."""

    x: Tensor  # (m, k, width) k candidates for each of some rows of the query
    at: Tensor  # (m,) positions of these rows
    on_grid_only: bool = False  # snap to the grid, but not to each row's bounds, as some methods were published
    last: bool = False  # final answers, decided even if the query budget is spent


@dataclass(frozen=True)
class Reply:
    """Candidates as they would be returned, and the decision on each."""

    distinct: Floats  # (up to m, k, features) the candidates without those of padding rows
    place: Tensor  # (m,) position of each row's candidates in `distinct`
    met: Tensor  # (m, k) whether the goal is met
    margin: Tensor  # (m, k) distance beyond the decision boundary, at least 0 if and only if the goal is met
    score: Tensor  # (m, k, columns)
    at: Positions  # (up to m,) the row that each entry of `distinct` belongs to
    embed: Callable[[Floats, Positions], Tensor]  # encodes raw values, given the row of each

    @property
    def raw(self) -> Floats:
        """(m, k, features) the raw candidates."""
        return np.take(self.distinct, self.place.numpy(), axis=0)

    @cached_property
    def x(self) -> Tensor:
        """(m, k, width) the encoded candidates."""
        m, k, features = self.distinct.shape
        return self.embed(self.distinct.reshape(m * k, features), self.at.repeat(k)).view(m, k, -1)[self.place]

    def take(self, which: Tensor) -> Reply:
        """The part at these positions (p,) of the first dimension."""
        distinct, place = torch.unique(self.place[which], return_inverse=True)
        part = self.met[which], self.margin[which], self.score[which]
        return Reply(self.distinct[distinct.numpy()], place, *part, self.at[distinct.numpy()], self.embed)

    def row(self, which: Tensor) -> Tensor:
        """(m, width) one encoded candidate of each row, given by `which` (m,)."""
        return self.embed(self.raw[range(len(which)), which.numpy()], self.at[self.place.numpy()])


@dataclass(frozen=True)
class Query:
    """The input of a method's search: rows, their goals and their bounds."""

    x: Tensor  # (n, width) rows, none of which meets its goal
    decision: Decision  # on the unchanged rows
    goals: Goals  # one per row
    bounds: EncodedBounds  # of each row's values
    closeness: float | None  # the trade-off, from 0 (plausible) to 1 (close to the row); None: the method's default
    options: int = 1  # number of answers per row
    safety: float = 0.0  # minimum safety wanted
    costs: Tensor = field(default_factory=lambda: torch.ones(()))  # (features,) of changing each, or () for all
    along: tuple[float, ...] = ()  # positions of the trade-off, with one answer for each instead of options

    @cached_property
    def few(self) -> bool:
        """Whether the rows are so few that a round of queries costs more than the candidates in it."""
        return len(unique_rows(self.x.numpy())[0]) <= FEW_ROWS

    def ask(self, x: Tensor, at: Tensor | None = None, on_grid_only: bool = False) -> Request:
        """A request for decisions on candidates (m, width) or (m, k, width) of all rows or of those at `at`."""
        x = x if x.dim() == 3 else x[:, None]
        return Request(x, torch.arange(len(self.x)) if at is None else at, on_grid_only)


Dialogue = Generator[Request, Reply, Result]
"""A generator that yields requests, is sent replies, and returns a result."""

Search = Dialogue[Tensor]
"""A dialogue that returns encoded answers: (n, width), or (n, options, width) if it finds several at once."""


@runtime_checkable
class Method(Protocol):
    """Hyper-parameters go to the constructor, data to `fit`, queries to `search`.

    `task_` is the task that it was fitted to. Its oracle decides on the answers, so a method that explains a model of
    its own puts an oracle of that model there.
    """

    edition: ClassVar[int]  # raised when its answers change
    random: ClassVar[bool]  # whether answers differ between draws; if so, options are chosen from several draws
    has_tradeoff: ClassVar[bool]  # whether it uses the query's closeness

    @property
    def task_(self) -> Task | None: ...

    def fit(self, task: Task) -> Self: ...

    def search(self, query: Query, noise: Noise) -> Search:
        """Search for answers. All randomness comes from `noise`, a function of the row, the seed and the draw."""


def task_of(method: Method) -> Task:
    """The task that the method was fitted to."""
    assert method.task_ is not None, "call fit first"
    return method.task_
