"""What a user holds: fit it to a table, ask it about rows, save it, load it."""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import partial
from typing import Any, Self, get_args

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from tdce import artefact
from tdce.answer import Answer
from tdce.cells import Name
from tdce.errors import (
    LAST_SEED,
    TAU_RANGE,
    WIDEST,
    InputError,
    file_path,
    flag,
    listing,
    names,
    number,
    one_of,
    optional,
    several,
    shown,
    whole,
)
from tdce.evaluation import Yardstick
from tdce.fitting import Fitted, class_number, fit
from tdce.limits import Limits
from tdce.methods import METHODS, Explanation, Method, Task, explain
from tdce.methods.base import MARGIN, blocks_of, probabilities, rounded
from tdce.methods.options import MOST_OPTIONS
from tdce.progress import Mode, Progress
from tdce.schema import Schema


class Explainer:
    """Counterfactual explanations for a table.

    >>> explainer = Explainer().fit(frame, label="risk", favourable="good")
    >>> answer = explainer.explain(refused, immutable=["age"])

    The classifier that is explained is trained by `fit`. `method` is a name of `tdce.methods.METHODS` or
    a method with settings of its own, e.g. `TDCEPaper(start=0.6)`. `progress` is auto, bar, lines or silent.
    """

    def __init__(
        self,
        method: str | Method = "tdce",
        *,
        hidden: int = 256,
        tau: tuple[float, float] = (0.5, 0.2),
        steps: int = 1600,
        seed: int = 0,
        progress: Mode = "auto",
    ) -> None:
        self.method: str | Method = _known(method)
        self.hidden = whole("hidden", hidden, 1, WIDEST)
        self.tau: tuple[float, float] = several("tau", tau, 2, number, *TAU_RANGE)
        self.steps = whole("steps", steps, 1)
        self.seed = whole("seed", seed, 0, LAST_SEED)
        self.progress: Mode = one_of("progress", progress, get_args(Mode))
        self.yardsticks_: dict[int, Yardstick] = {}  # by target class, learned when first needed

    def fit(
        self,
        frame: pd.DataFrame,
        label: Name,
        favourable: Any = None,
        schema: Schema | None = None,
        immutable: Iterable[Name] = (),
    ) -> Self:
        """Learn the table: its columns, a classifier of `label`, and a diffusion model of the rows.

        `favourable` is the label that people hope for. `schema` overrides what would be inferred; columns that it
        does not name are ignored. `immutable` features never change in any explanation.
        """
        self.fitted_ = fit(
            frame, label, favourable, schema, names("immutable", immutable),
            self.hidden, self.tau, self.steps, self.seed, Progress(self.progress),
        )  # fmt: skip
        self.yardsticks_ = {}
        return self

    def explain(
        self,
        rows: pd.DataFrame,
        target: Any = None,
        n: int = 1,
        immutable: Iterable[Name] = (),
        seed: int = 0,
        closeness: float | None = None,
        threshold: float | None = None,
    ) -> Answer:
        """What would have to be different for the model to say `target` (by default the favourable class).

        `n` options a row, at most 100; `immutable` features besides those of the schema; `closeness` from 0 (typical of
        the target class) to 1 (as close as possible; None: the method's own setting); `threshold`: the probability at
        which the answer counts as the target (None: when it is the most probable class).
        """
        fitted = self._fitted()
        if not isinstance(rows, pd.DataFrame):
            raise InputError(
                f"rows must be a data frame, not {type(rows).__name__}; for one row use frame.loc[[label]]"
            )
        n = whole("n", n, 1, MOST_OPTIONS)
        seed = whole("seed", seed, 0, LAST_SEED)
        closeness = optional("closeness", closeness, number, 0, 1)
        threshold = optional("threshold", threshold, number, 0, 1 - 2 * MARGIN, above=True)
        encoder = fitted.encoder
        limits = Limits.of(encoder, rows, names("immutable", immutable))
        task = fitted.task(limits.immutable, threshold)
        goal = self._target(limits, target)
        method = self._method(closeness).fit(task)
        explanation = explain(method, task, limits, goal, n, seed, Progress(self.progress))
        return Answer(
            rows,
            encoder,
            explanation,
            np.array(fitted.classes, dtype=object)[goal.numpy()],
            partial(self._measure, method, task, limits, goal, explanation, seed),
        )

    def predict_proba(self, rows: pd.DataFrame) -> pd.DataFrame:
        """The explained model's probability of each class, one column a class, to six decimals as in every answer."""
        fitted = self._fitted()
        p = rounded(probabilities(fitted.classifier, fitted.encoder.encode(rows).float()))
        return pd.DataFrame(p.numpy(), index=rows.index, columns=list(fitted.classes))

    def predict(self, rows: pd.DataFrame) -> pd.Series[Any]:
        """The explained model's most probable class."""
        p = self.predict_proba(rows)
        best = p.to_numpy().argmax(axis=1)
        return pd.Series([p.columns[i] for i in best], index=rows.index, name=self._fitted().label)

    @property
    def schema(self) -> Schema:
        return self._fitted().encoder.schema

    @property
    def report(self) -> dict[str, Any]:
        """Rows, accuracy beside that of always saying the commonest class, calibration error, versions; after `fit`
        also its seconds, which an artefact does not keep."""
        return self._fitted().report

    def save(self, path: str | os.PathLike[str], rows: bool = True) -> None:
        """Write all that was learned to one file: tensors and JSON, no code, under one checksum.

        `rows=False` leaves the training rows out. `explain` with the default method works without them; methods and
        metrics that need them say so.
        """
        saved = artefact.Saved(self._fitted(), self._method(None), self.hidden, self.tau, self.steps, self.seed)
        artefact.save(file_path("path", path), saved, flag("rows", rows))

    @classmethod
    def load(cls, path: str | os.PathLike[str], progress: Mode = "auto") -> Self:
        """Read an artefact written by `save`; one that is damaged, changed or of another format is refused."""
        progress = one_of("progress", progress, get_args(Mode))
        saved = artefact.load(file_path("path", path))
        explainer = cls(
            saved.method, hidden=saved.hidden, tau=saved.tau, steps=saved.steps, seed=saved.seed, progress=progress
        )
        explainer.fitted_ = saved.fitted
        return explainer

    def _fitted(self) -> Fitted:
        if not hasattr(self, "fitted_"):
            raise InputError("this explainer has learned nothing yet: call fit(frame, label=…) or Explainer.load(…)")
        return self.fitted_

    def _method(self, closeness: float | None) -> Method:
        if isinstance(self.method, str) and self.method not in METHODS:
            raise InputError(f"there is no method {self.method!r}; known: {listing(METHODS)}")
        method = METHODS[self.method]() if isinstance(self.method, str) else self.method
        if closeness is None:
            return method
        if not hasattr(method, "closer"):
            raise InputError(f"{type(method).__name__} has no closeness to set; leave it out")
        return method.closer(closeness)  # type: ignore[no-any-return]

    def _measure(
        self,
        method: Method,
        task: Task,
        limits: Limits,
        goal: Tensor,
        found: Explanation,
        seed: int,
    ) -> dict[str, float]:
        """The metrics of an explanation; the nearest training rows are explained too, for the instability."""
        fitted, groups = self._fitted(), []
        task.require_rows("evaluate")
        for target in sorted(set(goal.tolist())):
            if target not in self.yardsticks_:
                of_target = (fitted.y == target).numpy()
                self.yardsticks_[target] = Yardstick.fit(fitted.encoder, fitted.raw, of_target, self.seed)
            yardstick, at = self.yardsticks_[target], (goal == target).numpy()
            part = limits.take(at)
            near = Limits.of(
                fitted.encoder, yardstick.frame(yardstick.neighbours(part.own, task.classifier)), limits.immutable
            )
            found_near = explain(method, task, near, goal[at], 1, seed)
            groups.append((at.sum(), yardstick.measure(part, found.take(at), near.own, found_near)))
        groups = [(rows, metrics) for rows, metrics in groups if metrics]
        total = sum(rows for rows, _ in groups)
        return {k: sum(rows * m[k] for rows, m in groups) / total for k in (groups[0][1] if groups else {})}

    def _target(self, limits: Limits, target: Any) -> Tensor:
        """(n,) class numbers: the one asked for, else the favourable one, else the other of two."""
        fitted = self._fitted()
        if target is None:
            target = fitted.favourable
        if target is not None:
            return torch.full((len(limits.own),), class_number(target, fitted.classes, "target"))
        if len(fitted.classes) > 2:
            raise InputError(f"there are {len(fitted.classes)} classes and no favourable one: name a target, one of "
                             f"{listing(fitted.classes)}")  # fmt: skip
        blocks = blocks_of(np.arange(len(limits.own)))
        with torch.no_grad():
            said = [fitted.classifier(limits.take(at).x).argmax(dim=1) for at in blocks]
        return 1 - torch.cat([torch.zeros(0, dtype=torch.long), *said])


def _known(method: Any) -> str | Method:
    """A method's name or a method with settings; anything else is named before it is trained for."""
    if isinstance(method, str):
        one_of("method", method, METHODS)
    elif isinstance(method, type) or not all(callable(getattr(method, part, None)) for part in ("fit", "generate")):
        raise InputError(f"method is {shown(method)}; it must be one of {listing(METHODS)}, or one with settings, "
                         "e.g. TDCE(closeness=0.5)")  # fmt: skip
    return method  # type: ignore[no-any-return]
