"""What a method is: it is fitted to a task, gets a query, and asks about candidates until it has an answer."""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, Self, TypeVar, runtime_checkable

import numpy as np
import torch
from torch import Tensor

from tdce._core import Floats, InputError, Noise
from tdce.diffusion import TabularDiffusion
from tdce.methods.proposer import Proposals
from tdce.models import Decision, Goals, Oracle
from tdce.schema import EncodedBounds, Encoder, Space

if TYPE_CHECKING:
    from tdce.methods.question import Question

Guide = Callable[[Tensor], Tensor]
"""What may lead: encoded rows (n, width) -> logits (n, classes), differentiable."""

Made = TypeVar("Made")


@dataclass(frozen=True)
class Task:
    """What a method may know: the table, who decides, what may lead, the data and a model of it, what may change."""

    encoder: Encoder
    oracle: Oracle  # of the model to explain
    guide: Guide | None  # its gradients, if it has any
    diffusion: TabularDiffusion
    mutable: Tensor  # (width,) bool
    x: Tensor  # (m, width) the rows that were learned; m = 0 if the explainer was loaded without them
    y: Tensor  # (m,) their class numbers
    seed: int = 0  # of whatever the method trains
    synthetic: Tensor = field(default_factory=lambda: torch.zeros(0, 0))  # (p, width) synthetic ones
    energy_quantiles: Tensor = field(default_factory=lambda: torch.zeros(0, 0))  # (classes, knots) for `plausibility`
    memo: dict[Hashable, Any] = field(default_factory=dict)  # see `memoise`
    synthetic_scores: Tensor | None = (
        None  # (p, columns) what the model says of the synthetic people, if that is known already
    )
    proposals: Proposals | None = None  # for amortised answers
    shortcut: Shortcut | None = None  # a quicker method that is tried before the usual one, if the question suits it

    @property
    def space(self) -> Space:
        return self.encoder.space

    @property
    def free(self) -> Tensor:
        """(features,) which of them may change."""
        return self.space.gathered(self.mutable.float()[None])[0] > 0

    @property
    def has_rows(self) -> bool:
        """False for an explainer that was loaded from a file without training rows."""
        return len(self.x) > 0

    def require_rows(self, who: str) -> None:
        """An error with the remedy, for what cannot do without the rows."""
        if not self.has_rows:
            raise InputError(
                f"{who} needs the training rows, and this artefact holds none; fit it again and keep them "
                "(Explainer(keep_rows=True), or `tdce fit --keep-rows`), or use the method search, which needs none"
            )

    def require_guide(self, who: str) -> Guide:
        """The guide, or an error with the remedy."""
        if self.guide is None:
            raise InputError(f"{who} needs a model with gradients, but this one has none; use cchvae, face or nice")
        return self.guide

    def memoise(self, key: Hashable, make: Callable[[], Made]) -> Made:
        """What was made earlier under this key for the same rows and models; otherwise made now and kept."""
        made_for = (self.x, self.synthetic, self.diffusion, self.oracle.model, self.guide)
        whole = (key, *map(id, made_for))  # kept with them, so that no other object takes over an id
        if whole not in self.memo:
            self.memo[whole] = made_for, make()
        made: Made = self.memo[whole][1]
        return made


class Request(NamedTuple):
    """Candidates for the judge."""

    x: Tensor  # (m, k, width) of some rows of the query, k candidates for each
    at: Tensor  # (m,) which rows these are
    on_grid_only: bool = False  # not yet put within each row's limits: for methods whose papers know of none
    last: bool = False  # what is returned: it is asked about in any case


@dataclass(frozen=True)
class Reply:
    """Candidates as they would be returned, and the verdict on each."""

    different: Floats  # (at most m, k, features) those of different rows
    place: Tensor  # (m,) where each row's are among them
    met: Tensor  # (m, k) whether the goal is met
    margin: Tensor  # (m, k) how far beyond the border, at least 0 if and only if it is met
    score: Tensor  # (m, k, columns)
    embed: Callable[[Floats], Tensor]

    @property
    def raw(self) -> Floats:
        """(m, k, features) the candidates."""
        return np.take(self.different, self.place.numpy(), axis=0)

    @property
    def x(self) -> Tensor:
        """(m, k, width) the candidates, encoded."""
        m, k, features = self.different.shape
        return self.embed(self.different.reshape(m * k, features)).float().view(m, k, -1)[self.place]

    def row(self, which: Tensor) -> Tensor:
        """(m, width) one candidate of each row, encoded."""
        return self.embed(self.raw[range(len(which)), which.numpy()]).float()


@dataclass(frozen=True)
class Query:
    """What a method is asked."""

    x: Tensor  # (n, width) rows, of which none meets its goal
    decision: Decision  # on the rows as they are
    goals: Goals  # one per row
    bounds: EncodedBounds  # how far each row may go
    closeness: float | None  # from 0, typical of what is wanted, to 1, near to the row; None: the method's own
    options: int = 1  # how many answers are wanted
    costs: Tensor = field(default_factory=lambda: torch.ones(()))  # (features,) of changing each, or () of any

    def ask(self, x: Tensor, at: Tensor | None = None, on_grid_only: bool = False) -> Request:
        """Candidates (m, width) or (m, k, width) of all rows or of those at `at`."""
        x = x if x.dim() == 3 else x[:, None]
        return Request(x, torch.arange(len(self.x)) if at is None else at, on_grid_only)


Dialogue = Generator[Request, Reply, Made]
"""Yields candidates, is sent the verdicts, returns something."""

Search = Dialogue[Tensor]
"""... its answers, encoded: (n, width), or (n, options, width) if it has several at once."""


@runtime_checkable
class Method(Protocol):
    """Hyper-parameters go to the constructor, data to `fit`, queries to `search`.

    `task_` is what it was fitted to. Its judge has the last word, so a method that explains a model of its own puts a
    judge of that one there.
    """

    edition: ClassVar[int]  # raised when its answers change
    random: ClassVar[bool]  # whether another draw may give another answer; if so, options are chosen from several
    has_tradeoff: ClassVar[bool]  # whether it heeds the query's closeness

    @property
    def task_(self) -> Task | None: ...

    def fit(self, task: Task) -> Self: ...

    def search(self, query: Query, noise: Noise) -> Search:
        """`noise` is all the randomness there is: a function of the row, the seed and the option."""


Shortcut = Callable[[Method, "Question", Goals], Method | None]
"""A method and what is asked of it -> a quicker method for the same question, if there is one."""


def task_of(method: Method) -> Task:
    """What the method was fitted to."""
    assert method.task_ is not None, "call fit first"
    return method.task_
