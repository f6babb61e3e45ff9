"""What a user holds: fit it to a table, ask it about rows, save it, load it."""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import partial
from numbers import Real
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from tdce import artefact
from tdce.answer import Answer
from tdce.columns import Name
from tdce.errors import InputError, is_whole, listing
from tdce.evaluation import Yardstick
from tdce.fitting import Fitted, class_of, fit
from tdce.limits import Limits
from tdce.methods import METHODS, Explanation, Method, Task, explain
from tdce.methods.base import blocks_of, probabilities, rounded
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
        self.method: str | Method
        self.method, self.hidden, self.tau, self.steps = method, hidden, tau, steps
        self.seed, self.progress = seed, progress
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
            frame, label, favourable, schema, _names(immutable, "immutable"),
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

        `n` options a row; `immutable` features besides those of the schema; `closeness` from 0 (typical of the target
        class) to 1 (as close as possible; None: the method's own setting); `threshold`: the probability at which the
        answer counts as the target (None: when it is the most probable class).
        """
        fitted = self._fitted()
        if not isinstance(rows, pd.DataFrame):
            raise InputError(
                f"rows must be a data frame, not {type(rows).__name__}; for one row use frame.loc[[label]]"
            )
        if not is_whole(n) or n < 1:
            raise InputError(f"n is {n!r}; it must be a whole number, at least 1 counterfactual a row")
        if not is_whole(seed) or not 0 <= seed < 2**64:
            raise InputError(f"seed {seed!r} must be a whole number from 0 to 2**64 - 1")
        if threshold is not None and not (isinstance(threshold, Real) and 0 < threshold < 1):
            raise InputError(f"threshold {threshold!r} must be a number between 0 and 1")
        if closeness is not None and not isinstance(closeness, Real):
            raise InputError(f"closeness {closeness!r} must be a number between 0 and 1")
        encoder = fitted.encoder
        limits = Limits(encoder, rows, _names(immutable, "immutable"))
        task = fitted.task(limits.immutable, threshold)
        goal = self._target(limits, target)
        method = self._method(closeness).fit(task)
        explanation = explain(method, task, limits, goal, n, seed, Progress(self.progress))
        names = np.array(fitted.classes, dtype=object)[goal.numpy()]
        return Answer(
            rows,
            encoder,
            explanation,
            names,
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
        settings = {"hidden": self.hidden, "tau": self.tau, "steps": self.steps, "seed": self.seed}
        artefact.save(Path(path), artefact.Saved(self._fitted(), self._method(None), settings), rows)

    @classmethod
    def load(cls, path: str | os.PathLike[str], progress: Mode = "auto") -> Self:
        """Read an artefact written by `save`; one that is damaged, changed or of another format is refused."""
        saved = artefact.load(Path(path))
        explainer = cls(saved.method, **saved.settings, progress=progress)
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
            near = Limits(
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
            return torch.full((len(limits.own),), fitted.classes.index(class_of(target, fitted.classes, "target")))
        if len(fitted.classes) > 2:
            raise InputError(f"there are {len(fitted.classes)} classes and no favourable one: name a target, one of "
                             f"{listing(fitted.classes)}")  # fmt: skip
        blocks = blocks_of(np.arange(len(limits.own)))
        with torch.no_grad():
            said = [fitted.classifier(limits.encoded(at)).argmax(dim=1) for at in blocks]
        return 1 - torch.cat([torch.zeros(0, dtype=torch.long), *said])


def _names(names: Iterable[Name], what: str) -> tuple[Name, ...]:
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise InputError(f"{what} must be a list of names: {what}=[{names!r}]")
    return tuple(names)
