"""What a user holds: fit it to a table, ask it about rows, save it, load it."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib.metadata import version
from numbers import Integral, Real
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from tdce import artefact
from tdce.answer import Answer
from tdce.diffusion.model import TabularDiffusion
from tdce.encoder import Encoder
from tdce.errors import InputError, listing
from tdce.evaluation import Yardstick
from tdce.limits import Limits
from tdce.methods import METHODS, Explanation, Method, Task, explain
from tdce.models.classifier import Classifier
from tdce.progress import Mode, Progress
from tdce.schema import Floats, Name, Schema, Value, plain
from tdce.training import Plan

MAX_CLASSES = 50
HELD_OUT = 0.1  # share of the rows for early stopping and calibration, and once more for the reported accuracy
MOST_HELD_OUT = 2_000


@dataclass(frozen=True)
class Fitted:
    """What `fit` learned, all that an artefact holds."""

    encoder: Encoder
    label: Name
    classes: tuple[Value, ...]
    favourable: Value | None
    classifier: Classifier
    diffusion: TabularDiffusion
    raw: Floats  # (rows, features) the rows that were learned, for methods that search among them
    y: Tensor  # (rows,) their class numbers
    report: dict[str, Any]  # rows, accuracy, losses, seconds, versions
    memo: dict[Hashable, Any] = field(default_factory=dict, repr=False)  # what methods trained on this

    @cached_property
    def x(self) -> Tensor:
        return self.encoder.embed(self.raw).float()

    def task(self, immutable: Iterable[Name] = (), threshold: float | None = None) -> Task:
        """The task of explaining this classifier while these features stay."""
        encoder = self.encoder
        return Task(
            encoder.space, self.classifier, self.diffusion, ~encoder.space.mask(immutable),
            self.x, self.y, lambda x: encoder.embed(encoder.unembed(x)).float(), self.report["seed"], self.memo,
            threshold,
        )  # fmt: skip


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
        began = time.monotonic()
        immutable = _names(immutable, "immutable")
        progress = Progress(self.progress)
        y, classes = _classes(frame, label)
        favourable = None if favourable is None else _class(favourable, classes, "favourable")
        schema = Schema.infer(frame, label) if schema is None else schema
        if label in schema.names:
            raise InputError(f"the label {label!r} is also a feature of the schema; take it out there")
        schema = schema.freeze(*immutable)
        encoder = Encoder.fit(frame, schema)
        x = encoder.encode(frame).float()
        train, held_out, test = _parts(len(x), self.seed)

        classifier = Classifier(encoder.space.width, len(classes), self.hidden, seed=self.seed)
        plan = _plan(Plan(steps=800, batch=512, rate=1e-3, check_every=25, patience=8), len(train))
        history = classifier.fit(x[train], y[train], x[held_out], y[held_out], plan, self.seed, progress)

        diffusion = TabularDiffusion(encoder.space, self.hidden, tau=self.tau, seed=self.seed)
        plan = _plan(Plan(steps=self.steps), len(train))
        walk = diffusion.fit(x[train], x[held_out], plan, self.seed, progress)

        report = {
            "rows": len(x),
            **_quality(classifier, x[test], y[test]),
            "held_out_loss": {"classifier": history.best_loss, "diffusion": walk.best_loss},
            "steps": {"classifier": history.best_step, "diffusion": walk.best_step},
            "seconds": round(time.monotonic() - began, 1),
            "seed": self.seed,
            "versions": {"python": platform.python_version()}
            | {name: version(name) for name in ("tdce", "torch", "numpy", "pandas")},
        }
        raw = encoder.read(frame.iloc[train.numpy()])
        self.yardsticks_ = {}
        self.fitted_ = Fitted(encoder, label, classes, favourable, classifier, diffusion, raw, y[train], report)
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
        if not _is_whole(n) or n < 1:
            raise InputError(f"n is {n!r}; it must be a whole number, at least 1 counterfactual a row")
        if not _is_whole(seed) or not 0 <= seed < 2**64:
            raise InputError(f"seed {seed!r} must be a whole number from 0 to 2**64 - 1")
        if threshold is not None and not (isinstance(threshold, Real) and 0 < threshold < 1):
            raise InputError(f"threshold {threshold!r} must be a number between 0 and 1")
        encoder = fitted.encoder
        limits = Limits(encoder, rows, _names(immutable, "immutable"))
        task = fitted.task(limits.immutable, threshold)
        goal = self._target(encoder.embed(limits.own).float(), target)
        method = self._method(closeness).fit(task)
        explanation = explain(method, task, limits, goal, n, seed, Progress(self.progress))
        names = np.array(fitted.classes, dtype=object)[goal.numpy()]
        return Answer(
            rows,
            encoder,
            explanation,
            names,
            lambda: self._measure(method, task, limits, goal, explanation, seed),
        )

    def predict_proba(self, rows: pd.DataFrame) -> pd.DataFrame:
        """The explained model's probability of each class, one column a class."""
        fitted = self._fitted()
        with torch.no_grad():
            p = fitted.classifier(fitted.encoder.encode(rows).float()).double().softmax(dim=1)
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
        """Rows, accuracy beside that of always saying the commonest class, calibration error, seconds, versions."""
        return self._fitted().report

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write all that was learned to one file: tensors and JSON, no code."""
        fitted = self._fitted()
        content = {
            "schema": fitted.encoder.schema.to_json(),
            "label": fitted.label,
            "classes": list(fitted.classes),
            "favourable": fitted.favourable,
            "classifier": fitted.classifier.settings,
            "diffusion": fitted.diffusion.settings,
            "method": _method_settings(self.method),
            "report": fitted.report,
        }
        tensors = {
            **artefact.scales(fitted.encoder),
            **artefact.weights("classifier", fitted.classifier),
            **artefact.weights("diffusion", fitted.diffusion),
            "rows.raw": torch.from_numpy(fitted.raw),
            "rows.y": fitted.y,
        }
        artefact.save(Path(path), content, tensors)

    @classmethod
    def load(cls, path: str | os.PathLike[str], progress: Mode = "auto") -> Self:
        """Read an artefact written by `save`; a damaged or newer one is refused with a reason."""
        content, tensors = artefact.load(Path(path))
        encoder = artefact.encoder(Schema.from_json(content["schema"]), tensors)
        classifier = Classifier(**content["classifier"])
        settings = dict(content["diffusion"], tau=tuple(content["diffusion"]["tau"]))
        diffusion = TabularDiffusion(encoder.space, **settings)
        artefact.fill("classifier", classifier, tensors)
        artefact.fill("diffusion", diffusion, tensors)
        explainer = cls(
            _method_from(content["method"]), hidden=settings["hidden"], tau=settings["tau"], progress=progress
        )
        explainer.fitted_ = Fitted(
            encoder, content["label"], tuple(content["classes"]), content["favourable"], classifier, diffusion,
            tensors["rows.raw"].numpy(), tensors["rows.y"], content["report"],
        )  # fmt: skip
        return explainer

    def _fitted(self) -> Fitted:
        if not hasattr(self, "fitted_"):
            raise InputError("this explainer has learned nothing yet: call fit(frame, label=…) or Explainer.load(…)")
        return self.fitted_

    def _method(self, closeness: float | None) -> Method:
        method = _method_from(self.method) if isinstance(self.method, str) else self.method
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

    def _target(self, x: Tensor, target: Any) -> Tensor:
        """(n,) class numbers: the one asked for, else the favourable one, else the other of two."""
        fitted = self._fitted()
        if target is None:
            target = fitted.favourable
        if target is not None:
            return torch.full((len(x),), fitted.classes.index(_class(target, fitted.classes, "target")))
        if len(fitted.classes) > 2:
            raise InputError(f"there are {len(fitted.classes)} classes and no favourable one: name a target, one of "
                             f"{listing(fitted.classes)}")  # fmt: skip
        with torch.no_grad():
            other: Tensor = 1 - fitted.classifier(x).argmax(dim=1)
        return other


def _is_whole(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def _names(names: Iterable[Name], what: str) -> tuple[Name, ...]:
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise InputError(f"{what} must be a list of names: {what}=[{names!r}]")
    return tuple(names)


def _classes(frame: pd.DataFrame, label: Name) -> tuple[Tensor, tuple[Value, ...]]:
    """Class numbers (n,) and the classes they stand for."""
    if not isinstance(frame, pd.DataFrame):
        raise InputError(f"the table must be a data frame, not {type(frame).__name__}")
    if not isinstance(label, Hashable) or label not in frame.columns:
        raise InputError(f"there is no label column {label!r}; the table has: {listing(frame.columns)}")
    column = frame[label]
    if isinstance(column, pd.DataFrame):
        raise InputError(f"the label column {label!r} stands twice; rename or drop one of them")
    if column.isna().any():
        raise InputError(
            f"the label {label!r} is missing in {int(column.isna().sum())} rows (the first is row "
            f"{column.index[int(column.isna().to_numpy().argmax())]!r}); drop those rows before fitting"
        )
    if len(frame) == 0:
        raise InputError("the table has no rows")
    codes, values = pd.factorize(column, sort=True)
    classes = tuple(plain(v) for v in values)
    odd = next((v for v in classes if not isinstance(v, str | bool | int | float)), None)
    if odd is not None:
        raise InputError(f"the label {label!r} holds {type(odd).__name__} ({odd}); text, numbers or yes/no are needed")
    if len(classes) < 2:
        raise InputError(
            f"the label {label!r} has only the value {listing(classes)}; two are needed to explain a choice"
        )
    if len(classes) > MAX_CLASSES:
        raise InputError(f"the label {label!r} has {len(classes):,} different values; a class label is needed "
                         "(turn a number to predict into classes, e.g. above and below a limit)")  # fmt: skip
    return torch.from_numpy(codes.astype(np.int64)), classes


def _class(value: Any, classes: tuple[Value, ...], what: str) -> Value:
    """The class that the user means; a command line gives text, so '1' may mean 1."""
    for candidate in classes:
        if candidate == value or (isinstance(value, str) and str(candidate) == value):
            return candidate
    raise InputError(f"{what} {value!r} is not a value of the label; known: {listing(classes)}")


def _parts(rows: int, seed: int) -> tuple[Tensor, Tensor, Tensor]:
    """Row numbers to train on, to stop by and to report on; a tiny table serves for all three."""
    order = torch.randperm(rows, generator=torch.Generator().manual_seed(seed))
    size = min(int(rows * HELD_OUT), MOST_HELD_OUT)
    if size < 5:
        return order, order, order
    return order[2 * size :], order[:size], order[size : 2 * size]


def _plan(plan: Plan, rows: int) -> Plan:
    """Fewer steps for small tables: some 200 passes over the rows are plenty."""
    batch = min(plan.batch, max(32, rows // 4))
    return replace(plan, batch=batch, steps=min(plan.steps, max(200, 200 * rows // batch)))


def _quality(classifier: Classifier, x: Tensor, y: Tensor) -> dict[str, float]:
    """On rows that took no part in training; calibration error over ten bins of the top probability."""
    with torch.no_grad():
        p = classifier(x).softmax(dim=1)
    top, right = p.amax(dim=1), (p.argmax(dim=1) == y).float()
    bins = (top * 10).long().clamp(max=9)
    gaps = [(top[bins == b].mean() - right[bins == b].mean()).abs() * (bins == b).float().mean() for b in bins.unique()]
    return {
        "accuracy": round(right.mean().item(), 4),
        "commonest_class": round(y.bincount().max().item() / len(y), 4),
        "calibration_error": round(float(sum(gaps)), 4),
        "test_rows": len(y),
    }


def _method_settings(method: str | Method) -> dict[str, Any]:
    if isinstance(method, str):
        return {"name": method}
    for name, kind in METHODS.items():
        if type(method) is kind:
            settings = {k: v for k, v in vars(method).items() if not k.endswith("_")}
            return {"name": name, "settings": settings}
    raise InputError(f"a method of class {type(method).__name__} cannot be saved; known: {listing(METHODS)}")


def _method_from(description: str | dict[str, Any]) -> Method:
    if isinstance(description, str):
        description = {"name": description}
    if description["name"] not in METHODS:
        raise InputError(f"there is no method {description['name']!r}; known: {listing(METHODS)}")
    settings = {k: tuple(v) if isinstance(v, list) else v for k, v in description.get("settings", {}).items()}
    return METHODS[description["name"]](**settings)
