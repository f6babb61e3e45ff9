"""Learning a table: its columns, a classifier of its label, a diffusion model of its rows."""

from __future__ import annotations

import platform
import time
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib.metadata import version
from typing import Any

import pandas as pd
import torch
from torch import Tensor

from tdce.carried import carried
from tdce.cells import Floats, Name, Value, check_table, is_value, ordered, plain, readable
from tdce.diffusion.model import TabularDiffusion
from tdce.encoder import Encoder
from tdce.errors import InputError, listing, names, shown
from tdce.hints import hints
from tdce.judge import Judge
from tdce.methods.interface import Task
from tdce.models.classifier import Classifier
from tdce.models.model import OnEncoded
from tdce.people import classes_to_draw, drawn
from tdce.plausibility import reference
from tdce.progress import Progress
from tdce.schema import Schema
from tdce.space import Space
from tdce.training import History, Plan

EDITION = 2  # raised when the same table and settings are learned differently
MAX_CLASSES = 50
HELD_OUT = 0.1  # share of the rows for early stopping and calibration, and once more for the reported accuracy
MOST_HELD_OUT = 2_000
CLASSIFIER = Plan(steps=800, batch=512, rate=1e-3, check_every=25, patience=8)


@dataclass(frozen=True)
class Fitted:
    """What `fit` learned: everything that an artefact holds."""

    encoder: Encoder
    label: Name
    classes: tuple[Value, ...]
    favourable: Value | None
    classifier: Classifier
    diffusion: TabularDiffusion
    raw: Floats  # (rows, features) that were learned, for methods that search among them; none if loaded without
    y: Tensor  # (rows,) their class numbers
    people: Floats  # (people, features) synthetic ones
    typical: Tensor  # (classes, knots) see `plausibility.reference`
    report: dict[str, Any]  # rows, accuracy, losses, versions; seconds too unless it was loaded
    hints: tuple[str, ...] = ()  # what a careful person would notice about the columns; none if it was loaded
    memo: dict[Hashable, Any] = field(default_factory=dict, repr=False)  # what methods trained on this

    @cached_property
    def x(self) -> Tensor:
        return self.encoder.embed(self.raw).float()

    @cached_property
    def x_people(self) -> Tensor:
        return self.encoder.embed(self.people).float()

    @cached_property
    def model(self) -> OnEncoded:
        """What decides."""
        return OnEncoded(self.classifier, self.encoder.embed, self.classes)

    def task(self, immutable: Iterable[Name] = ()) -> Task:
        """The task of explaining this classifier while these features stay."""
        mutable = ~self.encoder.space.mask(immutable)
        return Task(
            self.encoder, Judge(self.model), self.classifier, self.diffusion, mutable,
            self.x, self.y, self.report["seed"], self.x_people, self.typical, self.memo,
        )  # fmt: skip


def fit(
    frame: pd.DataFrame,
    label: Name,
    favourable: Any,
    schema: Schema | None,
    immutable: Iterable[Name],
    hidden: int,
    tau: tuple[float, float],
    steps: int,
    seed: int,
    progress: Progress,
    learn: Iterable[Name] = (),
    categorical: Iterable[Name] = (),
) -> Fitted:
    """Check the table, encode it, train both networks, draw synthetic people, and report how good the classifier is on
    unseen rows."""
    began = time.monotonic()
    y, classes = _classes(frame, label)
    favourable = None if favourable is None else classes[class_number(favourable, classes, "favourable")]
    if not isinstance(schema, Schema | None):
        raise InputError(f"schema is {shown(schema)}; it must be a Schema, e.g. Schema.from_json(text)")
    schema, out = _schema(frame, label, schema, names("learn", learn), names("categorical", categorical))
    schema = schema.freeze(*immutable)
    noticed = tuple(hints(frame, schema, label, out))
    for hint in noticed:
        progress.say(f"Hint: {hint}")
    encoder = Encoder.fit(frame, schema)
    raw = encoder.read(frame)
    x = encoder.embed(raw).float()
    train, held_out, test = parts(len(x), seed)

    classifier = Classifier(encoder.space.width, len(classes), hidden, seed=seed)
    plan = _plan(CLASSIFIER, len(train))
    history = classifier.fit(x[train], y[train], x[held_out], y[held_out], plan, seed, progress)

    diffusion, walk = learned_diffusion(encoder.space, x, y, hidden, tau, steps, seed, progress)

    people = drawn(encoder, diffusion, classes_to_draw(y[train], seed), seed, progress)
    unseen = raw[held_out.numpy()], y[held_out]
    typical = reference(encoder, diffusion, *unseen, len(classes), seed, progress)

    report = {
        "rows": len(x),
        **_quality(classifier, x[test], y[test]),
        "held_out_loss": {"classifier": history.best_loss, "diffusion": walk.best_loss},
        "steps": {"classifier": history.best_step, "diffusion": walk.best_step},
        "seconds": round(time.monotonic() - began, 1),
        "seed": seed,
        "versions": {"python": platform.python_version()}
        | {name: version(name) for name in ("tdce", "torch", "numpy", "pandas")},
    }
    return Fitted(
        encoder, label, classes, favourable, classifier, diffusion,
        raw[train.numpy()], y[train], people, typical, report, noticed,
    )  # fmt: skip


def _schema(
    frame: pd.DataFrame,
    label: Name,
    schema: Schema | None,
    learn: tuple[Name, ...],
    categorical: tuple[Name, ...],
) -> tuple[Schema, dict[Name, str]]:
    """The schema that is given, or read off the table, and which columns it then leaves out, and why."""
    if schema is None:
        return Schema.infer(frame, label, learn=learn, categorical=categorical), carried(
            frame, label, {*learn, *categorical}
        )
    if label in schema.names:
        raise InputError(f"the label {label!r} is also a feature of the schema; remove it there")
    for what, some in {"learn": learn, "categorical": categorical}.items():
        if some:
            raise InputError(f"{what} goes with a schema that is read off the table, but a schema is given, which says "
                             f"what is learned, and how; leave {what} out, or the schema")  # fmt: skip
    return schema, {}


def learned_diffusion(
    space: Space,
    x: Tensor,  # (n, width) all rows of the table
    y: Tensor,  # (n,) their class numbers
    hidden: int,
    tau: tuple[float, float],
    steps: int,
    seed: int,
    progress: Progress,
) -> tuple[TabularDiffusion, History]:
    """The diffusion model of a table, trained on the same part of it that `fit` trains on."""
    train, held_out, _ = parts(len(x), seed)
    diffusion = TabularDiffusion(space, hidden, classes=int(y.max()) + 1, tau=tau, seed=seed)
    plan = _plan(Plan(steps=steps), len(train))
    return diffusion, diffusion.fit(x[train], x[held_out], plan, seed, progress, (y[train], y[held_out]))


def _classes(frame: pd.DataFrame, label: Name) -> tuple[Tensor, tuple[Value, ...]]:
    """Class numbers (n,) and the classes that they mean."""
    check_table(frame)
    if not isinstance(label, Hashable) or label not in frame.columns:
        raise InputError(f"there is no label column {shown(label)}; the table has: {listing(frame.columns)}")
    column = frame[label]
    if isinstance(column, pd.DataFrame):
        raise InputError(f"the label column {label!r} appears twice; rename or drop one of them")
    column = readable(column)
    if column.isna().any():
        raise InputError(
            f"the label {label!r} is missing in {int(column.isna().sum())} rows (the first is row "
            f"{column.index[int(column.isna().to_numpy().argmax())]!r}); drop those rows before fitting"
        )
    if len(frame) == 0:
        raise InputError("the table has no rows")
    cells = [plain(cell) for cell in column]
    odd = next((i for i, cell in enumerate(cells) if not is_value(cell)), None)
    if odd is not None:
        raise InputError(f"the label {label!r} holds {type(cells[odd]).__name__} ({shown(cells[odd], spell=str)}) in "
                         f"row {column.index[odd]!r}; text, numbers or yes/no are needed")  # fmt: skip
    keys = [(isinstance(cell, bool), cell) for cell in cells]  # True equals 1, but is another class
    known: dict[tuple[bool, Value], None] = dict.fromkeys(keys)
    classes = ordered([value for _, value in known])
    if isinstance(column.dtype, pd.CategoricalDtype):
        order = {plain(value): i for i, value in enumerate(column.cat.categories)}
        classes = tuple(sorted(classes, key=order.__getitem__))
    if len(classes) < 2:
        raise InputError(f"the label {label!r} has only the value {listing(classes)}; at least two are needed")
    if len(classes) > MAX_CLASSES:
        raise InputError(f"the label {label!r} has {len(classes):,} different values; a class label is needed "
                         "(turn a number to predict into classes, e.g. above and below a limit)")  # fmt: skip
    numbers = {(isinstance(value, bool), value): i for i, value in enumerate(classes)}
    return torch.tensor([numbers[key] for key in keys]), classes


def class_number(value: Any, classes: tuple[Value, ...], what: str) -> int:
    """The class that the user means: first the same kind of value, then 1.0 for 1, then '1' for 1, because a command
    line gives text."""
    value = plain(value)
    if isinstance(value, str | bool | int | float):
        for means in (
            lambda known: type(known) is type(value) and known == value,
            lambda known: known == value,
            lambda known: isinstance(value, str) and str(known) == value,
        ):
            found = [i for i, known in enumerate(classes) if means(known)]
            if found:
                return found[0]
    raise InputError(f"{what} {shown(value)} is not a value of the label; known: {listing(classes)}")


def parts(rows: int, seed: int) -> tuple[Tensor, Tensor, Tensor]:
    """Row numbers for training, for early stopping and for the report; a tiny table serves for all three."""
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
