"""What a method is, and the one place that seeds it, judges it and keeps its promises: `explain`."""

from __future__ import annotations

import copy
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from math import log
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from tdce.cells import Flags, Floats, Positions, same
from tdce.diffusion.model import TabularDiffusion
from tdce.errors import InputError, listing
from tdce.limits import Limits
from tdce.methods.options import choose, distinct, draws_for
from tdce.noise import Noise
from tdce.products import ROWS
from tdce.progress import Progress
from tdce.space import Space
from tdce.threads import Threads

BLOCK = 1024
"""So many rows are worked at a time."""

MARGIN = 1e-6
"""A probability must be so much above the limit to count, so that another machine's last bits change no verdict; twice
as much while a method searches, in float32."""

Classify = Callable[[Tensor], Tensor]
"""Encoded rows (n, width) -> logits (n, classes), differentiable."""


Watch = Callable[[int, Tensor, Tensor], None]
"""Is told the time t, the noisy rows x_t and the estimate of the clean rows at every step of a reverse walk."""


def unwatched(t: int, x_t: Tensor, x_0: Tensor) -> None:
    """Nobody looks."""


@dataclass(frozen=True)
class Task:
    """What a method may know: the space, the classifier to explain, the data and a model of it, what may change."""

    space: Space
    classifier: Classify  # the one to explain
    diffusion: TabularDiffusion
    mutable: Tensor  # (width,) bool
    x: Tensor  # (m, width) the rows that were learned; m = 0 if the explainer was saved without them
    y: Tensor  # (m,) their class numbers
    settle: Callable[[Tensor], Tensor]  # encoded rows put on the data's grid, categories hard
    seed: int = 0  # of whatever the method trains
    memo: dict[Hashable, Any] = field(default_factory=dict)  # what one method trained and another may use
    threshold: float | None = None  # the target's probability that counts as a yes; None: if it is the largest

    @property
    def has_rows(self) -> bool:
        """False for an explainer that was saved without its training rows."""
        return len(self.x) > 0

    def require_rows(self, who: str) -> None:
        """An error with the way out, for what cannot do without the rows."""
        if not self.has_rows:
            raise InputError(
                f"{who} needs the training rows, but this artefact was saved without its training rows; save it with "
                "them (rows=True, or `tdce fit` without --without-rows). To explain, the method tdce does without"
            )

    def accepts(self, x: Tensor, target: Tensor) -> Tensor:
        """(n,) whether the classifier's answer is the target."""
        return accepted(self.classifier(x), target, self.threshold)

    def judged(self, x: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        """(n,) whether the answer is the target, and the margin in log odds over the next class or the threshold."""
        logits = self.classifier(x)
        own = logits.gather(1, target[:, None])
        others = logits.scatter(1, target[:, None], -torch.inf)
        rival = (
            others.amax(dim=1)
            if self.threshold is None
            else others.logsumexp(dim=1) + log(self.threshold / (1 - self.threshold))
        )
        return accepted(logits, target, self.threshold), own.squeeze(1) - rival


class Method(Protocol):
    """Hyper-parameters go to the constructor, data to `fit`, queries to `generate`."""

    def fit(self, task: Task) -> Self: ...

    def generate(
        self,
        x: Tensor,  # (n, width) queries
        target: Tensor,  # (n,) class numbers
        noise: Noise,  # all the randomness there is
    ) -> Tensor: ...  # (n, width)


@dataclass(frozen=True)
class Explanation:
    """What was found for each row and option; arrays are (rows, options), values (rows, options, features)."""

    raw: Floats
    status: NDArray[np.str_]
    score_before: Floats  # (rows,)
    score_after: Floats
    note: NDArray[np.object_]  # text: the reason, and what else there is to say

    def take(self, at: Flags) -> Explanation:
        """The part of some rows."""
        return Explanation(self.raw[at], self.status[at], self.score_before[at], self.score_after[at], self.note[at])


def explain(
    method: Method,
    task: Task,
    limits: Limits,
    target: Tensor,  # (n,) class numbers
    options: int = 1,
    seed: int = 0,
    progress: Progress | None = None,
) -> Explanation:
    """Counterfactuals of every row: snapped to the data's grid, within the limits, judged by the real model."""
    own = limits.own
    classify = getattr(method, "classifier_", task.classifier)  # a method may explain a model of its own
    before, already, free = np.zeros(len(own)), np.zeros(len(own), dtype=bool), np.zeros(len(own), dtype=bool)
    for at in blocks_of(np.arange(len(own))):
        some = limits.take(at)
        before[at], already[at] = _verdict(classify, some.x, target[at], task.threshold)
        free[at] = some.free().any(axis=1)
    todo = np.flatnonzero(~already & free)

    raw = np.repeat(own[:, None], options, axis=1)
    after = np.repeat(before[:, None], options, axis=1)
    valid = np.repeat(already[:, None], options, axis=1)
    blocks = blocks_of(todo)
    threads = Threads(len(blocks))
    with (progress or Progress("silent")).bar("counterfactuals", len(blocks)) as bar:
        for at in blocks:
            with threads.block():
                found = _options(method, task, classify, limits.take(at), target[at], before[at], options, seed)
            raw[at], after[at], valid[at] = found
            bar.advance()

    status = np.where(valid, "valid", "best_effort").astype("<U12")
    status[already] = "already"
    status[~already & ~free] = "infeasible"
    return Explanation(raw, status, before, after, _notes(limits, raw, status, before, after))


def blocks_of(at: Positions) -> list[Positions]:
    """Row numbers, so many at a time as are worked together."""
    return [at[i : i + BLOCK] for i in range(0, len(at), BLOCK)]


def _options(
    method: Method,
    task: Task,
    classify: Classify,
    limits: Limits,
    target: Tensor,
    before: Floats,
    options: int,
    seed: int,
) -> tuple[Floats, Floats, Flags]:
    """The chosen draws for one block of rows; each is told how often those before it changed which feature."""
    draws: list[_Draw] = []
    own, within = limits.own, padded(torch.arange(len(limits.own)))
    whole, changed = limits.take(within.numpy()), np.zeros(own.shape)
    for draw in range(draws_for(options)):
        draws.append(_draw(method, classify, whole, target[within], before, changed, (seed, draw), task.threshold))
        changed = changed + ~same(draws[-1].raw, own)
        if not draws[-1].drawn:  # all others would be the same
            draws *= draws_for(options)
            break
    raw, after, valid = (np.stack(each, axis=1) for each in list(zip(*draws, strict=True))[:3])
    order = choose(limits.encoder, own, raw, valid, options)
    return (
        np.take_along_axis(raw, order[:, :, None], axis=1),
        np.take_along_axis(after, order, axis=1),
        np.take_along_axis(valid, order, axis=1),
    )


class _Draw(NamedTuple):
    raw: Floats  # (rows, features)
    after: Floats  # (rows,)
    valid: Flags  # (rows,)
    drawn: bool  # whether chance had a part in it


def _draw(
    method: Method,
    classify: Classify,
    limits: Limits,  # of the block, padded
    target: Tensor,  # the same
    before: Floats,  # (n,) of the block itself
    changed: Floats,  # (n, features)
    key: tuple[int, int],
    threshold: float | None,
) -> _Draw:
    """One draw for one block of rows; what does not raise the target's probability is not proposed."""
    rows, more = len(before), len(target) - len(before)
    if hasattr(method, "within"):  # it judges its candidates itself: on exactly what would be returned
        method = method.within(
            lambda x_cf: limits.encoder.embed(limits.snap(x_cf)).float(),
            limits.reach(),
            torch.from_numpy(np.concatenate([changed, changed[:1].repeat(more, axis=0)])).float(),
        )
    noise = Noise(limits.x, key)
    x_cf = method.generate(limits.x, target, noise)
    if not torch.isfinite(x_cf).all():
        raise FloatingPointError(f"{type(method).__name__} returned a value that is not a number")
    raw = limits.snap(x_cf)
    after, valid = _verdict(classify, limits.encoder.embed(raw).float(), target, threshold)
    raw, after, valid, own = raw[:rows], after[:rows], valid[:rows], limits.own[:rows]
    worse = ~valid & (after <= before)
    return _Draw(np.where(worse[:, None], own, raw), np.where(worse, before, after), valid, noise.drawn)


def _notes(limits: Limits, raw: Floats, status: NDArray[np.str_], before: Floats, after: Floats) -> NDArray[np.object_]:
    """(rows, options) why there is no counterfactual or not so many, and what the row says that was never learned."""
    options, different = status.shape[1], distinct(raw)
    moved = np.asarray(~same(raw, limits.own[:, None]).all(axis=2))
    notes = np.full(status.shape, "", dtype=object)
    for i, unfamiliar in enumerate(limits.encoder.unfamiliar(limits.own)):
        for j, state in enumerate(status[i].tolist()):
            said = [limits.note()] if state == "infeasible" else []
            if state == "best_effort":
                said += _shortfall(limits, before[i], after[i, j] if moved[i, j] else None)
            if state in ("valid", "best_effort") and different[i] < options:
                alike = different[i] == 1
                said.append(f"all {options} options are the same" if alike else f"only {different[i]} options differ")
            notes[i, j] = "; ".join(said + unfamiliar)
    return notes


def _shortfall(limits: Limits, before: float, after: float | None) -> list[str]:
    """What was reached (None: nothing) where the model still says no."""
    if after is None:
        said = [f"no change was found that raises the probability, {before:.3g}"]
    else:
        said = [f"no change was found that the model accepts, only one that raises the probability from {before:.3g} "
                f"to {after:.3g}"]  # fmt: skip
    return said + ([f"immutable: {listing(limits.immutable)}"] if limits.immutable else [])


def _verdict(classify: Classify, x: Tensor, target: Tensor, threshold: float | None) -> tuple[Floats, Flags]:
    """The model's probability of the target, and whether its answer is the target."""
    p = probabilities(classify, x)
    own = p.gather(1, target[:, None]).squeeze(1)
    return rounded(own).numpy(), _accepted(p, target, threshold, MARGIN).numpy()


@torch.no_grad()
def probabilities(classify: Classify, x: Tensor) -> Tensor:
    """(n, classes) of encoded rows. A network works them out in float64: then six decimals are the same everywhere."""
    if isinstance(classify, nn.Module):
        double = copy.deepcopy(classify).double()
        x, classify = x.double(), double
    blocks = [(block[padded(torch.arange(len(block)))], len(block)) for block in torch.split(x, BLOCK)]
    return torch.cat([classify(whole).double().softmax(dim=1)[:rows] for whole, rows in blocks])


def rounded(p: Tensor) -> Tensor:
    """Probabilities as they are shown: six decimals, which do not depend on the machine."""
    return p.mul(1e6).round_().div_(1e6)


def accepted(logits: Tensor, target: Tensor, threshold: float | None) -> Tensor:
    """(n,) whether the target is the most probable class, or with a threshold, at least that probable; by a margin."""
    return _accepted(logits.double().softmax(dim=1), target, threshold, 2 * MARGIN)


def _accepted(p: Tensor, target: Tensor, threshold: float | None, margin: float) -> Tensor:
    own = p.gather(1, target[:, None]).squeeze(1)
    if threshold is not None:
        return own >= threshold + margin
    return own >= p.scatter(1, target[:, None], -torch.inf).amax(dim=1) + 2 * margin  # of two classes: 1/2 + margin


def padded(at: Tensor) -> Tensor:
    """Row numbers made up to a multiple of 64 by the first one again: what works on a single row, or on a few, may add
    up its columns in another order than what works on many."""
    return torch.cat([at, at[:1].expand(-len(at) % ROWS)])
