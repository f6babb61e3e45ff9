"""What a user holds: fit it to a table, ask it about rows, save it, load it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any, Self, get_args

import numpy as np
import pandas as pd

from tdce import artefact
from tdce.answer import Answer
from tdce.blame import blamed
from tdce.cells import Floats, Name
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
    texts,
    whole,
)
from tdce.explaining import explain
from tdce.explanation import Question
from tdce.fitting import Fitted, class_number, fit
from tdce.goal import STANDOFF, AtLeast, Class, Goal, Goals
from tdce.judge import Judge, rounded
from tdce.limits import Limits
from tdce.methods import METHODS, Method
from tdce.methods.interface import task_of
from tdce.options import MOST_OPTIONS
from tdce.progress import Mode, Progress
from tdce.schema import Schema


class Explainer:
    """Counterfactual explanations for a table.

    >>> explainer = Explainer().fit(frame, label="risk", favourable="good")
    >>> answer = explainer.explain(refused, immutable=["age"])

    The classifier that is explained is trained by `fit`.

    - `method`: a name in `tdce.methods.METHODS`, or a method with its own settings, e.g. `TDCEPaper(start=0.6)`.
    - `hidden`: width of the layers of the classifier and of the diffusion model.
    - `tau`: temperature of the diffusion model's relaxed categories, at the noisy end and at the clean end.
    - `steps`: the maximum number of training steps of the diffusion model; small tables get fewer.
    - `seed`: the seed of everything that is trained.
    - `keep_rows`: whether `save` writes the training rows too. Without them a saved file holds nobody's record; the
      method tdce needs none, and methods that do say so. Right after `fit` they are there either way.
    - `progress`: auto (a bar on a terminal, otherwise silent), bar, lines or silent.
    """

    def __init__(
        self,
        method: str | Method = "tdce",
        *,
        hidden: int = 256,
        tau: tuple[float, float] = (0.5, 0.2),
        steps: int = 1600,
        seed: int = 0,
        keep_rows: bool = False,
        progress: Mode = "auto",
    ) -> None:
        self.method: str | Method = _known(method)
        self.hidden = whole("hidden", hidden, 1, WIDEST)
        self.tau: tuple[float, float] = several("tau", tau, 2, number, *TAU_RANGE)
        self.steps = whole("steps", steps, 1)
        self.seed = whole("seed", seed, 0, LAST_SEED)
        self.keep_rows = flag("keep_rows", keep_rows)
        self.progress: Mode = one_of("progress", progress, get_args(Mode))

    def __repr__(self) -> str:
        method = repr(self.method)
        if not hasattr(self, "fitted_"):
            return f"<Explainer by {method}, not fitted>"
        fitted = self.fitted_
        return (
            f"<Explainer by {method} of {fitted.label!r} ({listing(fitted.classes, most=4)}), "
            f"{len(fitted.encoder.schema)} features, {fitted.report['rows']:,} rows learned>"
        )

    def fit(
        self,
        frame: pd.DataFrame,
        label: Name,
        favourable: Any = None,
        schema: Schema | None = None,
        immutable: Iterable[Name] = (),
        learn: Iterable[Name] = (),
        categorical: Iterable[Name] = (),
    ) -> Self:
        """Learn the table: its columns, a classifier of `label`, a diffusion model of the rows, and synthetic people.

        `favourable` is the label that people hope for. `schema` replaces the one that would be inferred; columns that
        it does not name are ignored. `immutable` features never change in any explanation. Without a schema, row
        numbers and ids are carried through, not learned, unless `learn` names them; `categorical` names columns whose
        numbers are codes. `hints` has what is worth knowing about the columns.
        """
        self.fitted_ = fit(
            frame, label, favourable, schema, names("immutable", immutable),
            self.hidden, self.tau, self.steps, self.seed, Progress(self.progress), learn, categorical,
        )  # fmt: skip
        return self

    def explain(
        self,
        rows: pd.DataFrame,
        target: Any = None,
        n: int = 1,
        immutable: Iterable[Name] = (),
        rules: Iterable[str] = (),
        costs: Mapping[Name, float] | None = None,
        seed: int = 0,
        closeness: float | None = None,
        threshold: float | None = None,
    ) -> Answer:
        """What would have to be different for the model to say `target` (by default the favourable class).

        - `target`: a class, or a goal: `AtLeast("good", 0.8)`, `Not("bad")`, `Between("good", 0.5, 0.7)`; or a list
          with one of these per row.
        - `n`: options per row, at most 100.
        - `immutable`: features that must not change, besides those of the schema.
        - `rules`: what must hold, besides the schema's rules: `["loan <= 5 * income", "at most 3 changes"]`.
        - `costs`: what changing a feature costs, if not 1: `{"age": 5, "phone": 0}`; the method tdce heeds them.
        - `seed`: the same seed gives the same answer.
        - `closeness`: from 0 (typical of the target class) to 1 (as close as possible); None: the method's own setting.
        - `threshold`: the probability from which on the answer counts as the target; None: the target must be the most
          probable class.
        """
        fitted = self.fitted
        if not isinstance(rows, pd.DataFrame):
            raise InputError(
                f"rows must be a data frame, not {type(rows).__name__}; for one row use frame.loc[[label]]"
            )
        n = whole("n", n, 1, MOST_OPTIONS)
        seed = whole("seed", seed, 0, LAST_SEED)
        closeness = optional("closeness", closeness, number, 0, 1)
        threshold = optional("threshold", threshold, number, 0, 1 - 2 * STANDOFF, above=True)
        method = self.chosen_method
        if closeness is not None and not method.has_dial:
            raise InputError(f"{type(method).__name__} has no closeness to set; leave it out")
        rules = texts("rules", rules)
        limits = Limits.of(fitted.encoder, rows, names("immutable", immutable), rules)
        prices = {**self.schema.costs, **self.schema.checked_costs({} if costs is None else costs)}
        task = fitted.task(limits.immutable)
        question = Question(self._goals(task.judge, limits.own, target, threshold), n, seed, closeness, rules, prices)
        ready = method.fit(task)
        found = explain(ready, limits, question, Progress(self.progress))
        found = blamed(ready, rows, limits, question, found)
        return Answer.of(rows, limits, question, found, fitted.classes, task_of(ready).judge)

    def predict_proba(self, rows: pd.DataFrame) -> pd.DataFrame:
        """The explained model's probability of each class, one column per class, to six decimals, as in answers."""
        fitted = self.fitted
        p = rounded(Judge(fitted.model).score(fitted.encoder.read(rows)))
        return pd.DataFrame(p.numpy(), index=rows.index, columns=list(fitted.classes))

    def predict(self, rows: pd.DataFrame) -> pd.Series[Any]:
        """The explained model's most probable class."""
        p = self.predict_proba(rows)
        best = p.to_numpy().argmax(axis=1)
        return pd.Series([p.columns[i] for i in best], index=rows.index, name=self.fitted.label)

    @property
    def schema(self) -> Schema:
        return self.fitted.encoder.schema

    @property
    def hints(self) -> tuple[str, ...]:
        """What a careful person would notice about the columns, one sentence each; after `load` there are none."""
        return self.fitted.hints

    @property
    def report(self) -> dict[str, Any]:
        """Rows, accuracy together with that of always predicting the most common class, calibration error, versions;
        after `fit` also its seconds, which are not saved."""
        return self.fitted.report

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write all that was learned to one file: tensors and JSON, no code, under one checksum. The training rows are
        left out unless `keep_rows` is set."""
        saved = artefact.Saved(
            self.fitted, self.chosen_method, self.hidden, self.tau, self.steps, self.seed,
            flag("keep_rows", self.keep_rows),
        )  # fmt: skip
        artefact.save(file_path("path", path), saved)

    @classmethod
    def load(cls, path: str | os.PathLike[str], progress: Mode = "auto") -> Self:
        """Read an artefact written by `save`; one that is damaged, changed or of another format is refused."""
        progress = one_of("progress", progress, get_args(Mode))
        saved = artefact.load(file_path("path", path))
        explainer = cls(
            saved.method, hidden=saved.hidden, tau=saved.tau, steps=saved.steps, seed=saved.seed,
            keep_rows=saved.keep_rows, progress=progress,
        )  # fmt: skip
        explainer.fitted_ = saved.fitted
        return explainer

    @property
    def fitted(self) -> Fitted:
        """All that `fit` learned."""
        if not hasattr(self, "fitted_"):
            raise InputError("this explainer has learned nothing yet: call fit(frame, label=…) or Explainer.load(…)")
        return self.fitted_

    @property
    def chosen_method(self) -> Method:
        """The method with its settings."""
        if not isinstance(self.method, str):
            return self.method
        return METHODS[one_of("method", self.method, METHODS)]()

    def _goals(self, judge: Judge, raw: Floats, target: Any, threshold: float | None) -> Goals:
        """One goal per row: the one asked for, else the favourable class, else the other of two."""
        classes, favourable = self.fitted.classes, self.fitted.favourable

        def goal(wanted: Any) -> Goal:
            named: Goal = Class(wanted) if threshold is None else AtLeast(wanted, threshold)
            if isinstance(wanted, Class):
                if threshold is not None:
                    raise InputError(f"threshold {threshold:g} goes with a class, not with {wanted}; leave it out")
                named = wanted
            return named.numbered(lambda value: class_number(value, classes, "target"))

        if isinstance(target, list | tuple | np.ndarray | pd.Series | pd.Index):
            if len(target) != len(raw):
                raise InputError(f"target has {len(target)} goals for {len(raw)} rows; give one, or one per row")
            return Goals.of([goal(each) for each in target]) if len(raw) else Goals.all(goal(classes[0]), 0)
        if target is not None or favourable is not None:
            return Goals.all(goal(favourable if target is None else target), len(raw))
        if len(classes) > 2:
            raise InputError(f"there are {len(classes)} classes and no favourable one: name a target, one of "
                             f"{listing(classes)}")  # fmt: skip
        return Goals((goal(classes[0]), goal(classes[1])), 1 - judge.predict(raw))


def _known(method: Any) -> str | Method:
    """A method's name or a method with settings; anything else is refused before any training."""
    if isinstance(method, str):
        one_of("method", method, METHODS)
    elif isinstance(method, type) or not isinstance(method, Method):
        raise InputError(f"method is {shown(method)}; it must be one of {listing(METHODS)}, or a method with "
                         "settings, e.g. TDCE(closeness=0.5)")  # fmt: skip
    return method  # type: ignore[no-any-return]
