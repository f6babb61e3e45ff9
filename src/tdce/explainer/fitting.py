"""Learning a table: its columns, a classifier of its label, a diffusion model of its rows."""

from __future__ import annotations

import platform
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

import pandas as pd
import torch
from torch import Tensor, nn

from tdce._core import (
    InputError,
    Name,
    Progress,
    TrainingHistory,
    TrainingPlan,
    Value,
    check_names,
    check_table,
    is_name,
    is_value,
    listing,
    normalise_column,
    place_networks,
    plain,
    show,
    sort_values,
    suggest,
)
from tdce.diffusion import TabularDiffusion, classes_to_draw, draw_synthetic, measure_energy_quantiles
from tdce.explainer.fitted import Fitted
from tdce.explainer.plans import TrainingPlans, plan_for
from tdce.models import (
    MAX_CLASSES,
    AdaptedModel,
    Classifier,
    Model,
    ModelAdapter,
    NetworkModel,
    Output,
    SecondOpinion,
    check_favourable,
    class_number,
    probe,
    required_columns,
)
from tdce.schema import (
    Categorical,
    Encoder,
    Schema,
    Space,
    find_pass_through,
    pool_schema,
    profile_columns,
    propose_role,
)

EDITION = 7  # raised whenever the same table and settings would be learned differently
HELD_OUT = 0.1  # share of the rows for early stopping and calibration; as many again for the reported accuracy
MOST_HELD_OUT = 2_000


def fit(
    frame: pd.DataFrame,
    label: Name | None,
    favourable: Any,
    schema: Schema | None,
    immutable: Iterable[Name],
    hidden: int,
    tau: tuple[float, float],
    steps: int,
    seed: int,
    plans: TrainingPlans,
    progress: Progress,
    learn: Iterable[Name] = (),
    categorical: Iterable[Name] = (),
    models: Mapping[str, ModelAdapter] | None = None,  # by output; None: a classifier is trained
    actionable: Iterable[Name] = (),
    causes: Any = None,  # of features: a mapping, or a directed graph
    exact: bool = False,  # whether values shared by fewer than five people may be kept
    library: str = "pandas",  # the table's library, whose frames a model that the user brought is given
    device: str = "cpu",  # of the networks
) -> Fitted:
    """Check the table, encode it, train the networks, draw synthetic rows, and rate the model on unseen rows.

    Unless the user brought a model, a classifier of the label is trained as well.
    """
    began = time.monotonic()
    check_table(frame)
    if len(frame) == 0:
        raise InputError("the table has no rows")
    if not isinstance(schema, Schema | None):
        raise InputError(f"schema is {show(schema)}; it must be a Schema, e.g. Schema.from_json(text)")
    labels, classes = _classes(frame, label) if models is None else _any_classes(frame, label)
    if models is None and favourable is not None:
        favourable = classes[class_number(favourable, classes, "favourable")]
    asked_for = () if models is None else required_columns(models)
    given = schema
    schema, out = _schema(
        frame, label, schema, check_names("learn", learn), check_names("categorical", categorical), asked_for
    )
    schema, proposed, asked = _with_roles(schema, given, tuple(immutable), check_names("actionable", actionable))
    schema = schema if causes is None else schema.with_causes(causes)
    noticed = tuple(profile_columns(frame, schema, label, out, proposed=proposed, asked=asked))
    if models is not None and any(isinstance(each.model, nn.Module) for each in models.values()) and not exact:
        exact = True
        noticed += ("the model takes encoded rows, so columns are learned exactly, as by the encoder it was trained "
                    "with, and values that fewer than five people have are kept",)  # fmt: skip
    if schema.causes:
        schema = schema.learn_causes(Encoder.fit(frame, schema).read(frame))
    if not exact:
        schema = pool_schema(schema if models is None else _name_all_where_needed(schema, frame), frame)
    encoder = Encoder.fit(frame, schema, pooled=not exact)
    people = encoder.read(frame)
    raw = encoder.nearest_known(people)  # unchanged if `exact`
    x = encoder.embed(raw).float()
    train, held_out, test = split_rows(len(x), seed)

    decides: Model
    if models is None:
        assert labels is not None
        y, score = labels, None
        classifier = Classifier(encoder.space.width, len(classes), hidden, seed=seed)
        place_networks(classifier, device)
        history = classifier.fit(
            x[train], y[train], x[held_out], y[held_out], plan_for(plans.classifier, len(train)), seed, progress
        )
        decides = NetworkModel(classifier, encoder.embed, classes)
    else:
        classifier, history = None, None
        decides, answers = probe(models, frame, encoder, label, classes, library)
        score = torch.from_numpy(answers)
        y = decides.outputs[0].group(score)
        favourable = check_favourable(favourable, decides.outputs)
        right = None if labels is None else (y == labels).float().mean().item()
        if right is not None and decides.outputs[0].classes == classes and right < 1 / len(classes):
            noticed += (f"the model says what {label!r} says in only {100 * right:.0f} % of the rows; are its classes "
                        f"in another order than {listing(classes)}?",)  # fmt: skip

    for hint in noticed:
        progress.say(f"Hint: {hint}")
    groups = decides.outputs[0].groups
    diffusion, walk = learned_diffusion(
        encoder.space, x, y, hidden, tau, replace(plans.diffusion, steps=steps), seed, progress, groups, device
    )
    if not exact:  # the ends over all rows, since an end of the training rows may be one person's value
        num = encoder.space.split(x)[0]
        diffusion.low, diffusion.high = num.amin(dim=0), num.amax(dim=0)
    to_draw = classes_to_draw(y[train], seed, plans.sampling)
    avoid = None if exact else people
    synthetic = draw_synthetic(encoder, diffusion, to_draw, seed, progress, plans.sampling, avoid)
    unseen = raw[held_out.numpy()], y[held_out]
    typical = measure_energy_quantiles(encoder, diffusion, *unseen, groups, seed, progress, pooled=not exact)

    if score is None:
        assert classifier is not None
        quality = _quality(classifier, x[test], y[test])
    else:
        quality = _agreement(score[test], decides.outputs[0], labels if labels is None else labels[test], classes)
    report = {
        "rows": len(x),
        **quality,
        "held_out_loss": {"classifier": history and history.best_loss, "diffusion": walk.best_loss},
        "steps": {"classifier": history and history.best_step, "diffusion": walk.best_step},
        "seconds": round(time.monotonic() - began, 1),
        "fitted": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "seed": seed,
        "versions": {"python": platform.python_version()}
        | {name: version(name) for name in ("tdce", "torch", "numpy", "pandas")},
    }
    scored = None
    if isinstance(decides, AdaptedModel):
        scored = torch.from_numpy(decides.score(synthetic))
        decides = decides.with_reference(synthetic, scored.numpy())
    second_opinion = _second_opinion(x[train], encoder.space.num, labels, classes, score, train, decides.outputs)
    return Fitted(
        encoder, label, favourable, classifier, diffusion, raw[train.numpy()], y[train], synthetic, typical, decides,
        second_opinion, report, noticed, scored, exact=exact,
    )  # fmt: skip


def _second_opinion(
    x: Tensor,  # (m, width) training rows
    num: int,
    labels: Tensor | None,  # (n,) of all rows
    classes: tuple[Value, ...],
    score: Tensor | None,  # (n, columns) scores of all rows by a model that the user brought
    train: Tensor,  # (m,)
    outputs: tuple[Output, ...],
) -> SecondOpinion:
    """A second opinion fitted to the labels where they are the model's classes, else to the model's scores."""
    columns = sum(output.columns for output in outputs)
    targets = torch.zeros(len(train), columns, dtype=torch.double) if score is None else score[train].double()
    if labels is not None and outputs[0].classes == classes:
        targets[:, : len(classes)] = torch.nn.functional.one_hot(labels[train], len(classes)).double()
    return SecondOpinion.fit(x, num, targets.numpy(), outputs)


def _schema(
    frame: pd.DataFrame,
    label: Name | None,
    schema: Schema | None,
    learn: tuple[Name, ...],
    categorical: tuple[Name, ...],
    asked_for: tuple[Name, ...],  # columns that the model needs
) -> tuple[Schema, dict[Name, str]]:
    """The given schema, or one inferred from the table, and the columns that the latter leaves out, with reasons."""
    if schema is None:
        inferred = Schema.infer(frame, label, learn=learn, categorical=categorical)
        out = find_pass_through(frame, label, {*learn, *categorical})
        needed = [name for name in out if name in asked_for]  # ids that the model needs: learned, never changed
        if needed:
            inferred = Schema.infer(frame, label, learn=(*learn, *needed), categorical=categorical)
            for name in needed:
                inferred = inferred.change(name, role="identifier")
        return inferred, {name: why for name, why in out.items() if name not in needed}
    schema.check_table(frame)
    if label in schema.names:
        raise InputError(f"the label {label!r} is also a feature of the schema; remove it there")
    for what, some in {"learn": learn, "categorical": categorical}.items():
        if some:
            raise InputError(f"{what} goes with a schema that is read off the table, but a schema is given, which says "
                             f"what is learned, and how; leave {what} out, or the schema")  # fmt: skip
    return schema, {}


def _with_roles(
    schema: Schema, given: Schema | None, immutable: tuple[Name, ...], actionable: tuple[Name, ...]
) -> tuple[Schema, tuple[Name, ...], tuple[Name, ...]]:
    """The schema with the user's immutable and actionable features, the columns whose proposed roles hold, and those
    whose roles the user set."""
    schema.check_immutable(immutable)
    schema.check_immutable(actionable, "actionable")
    if both := [name for name in actionable if name in immutable]:
        raise InputError(f"{both[0]!r} is named as immutable and as actionable; leave out one of them")
    if given is None:
        proposed = tuple(f.name for f in schema if f.immutable and f.name not in (*immutable, *actionable))
        return schema.freeze(*immutable).open(*actionable), proposed, actionable
    doubtful = (f.name for f in given if not propose_role(f)[1])  # the given schema decides on their roles
    return schema.freeze(*immutable).open(*actionable), (), (*actionable, *doubtful)


def _name_all_where_needed(schema: Schema, frame: pd.DataFrame) -> Schema:
    """The schema with all categories kept in columns where the user's model needs them: those of a category dtype,
    which it may know by position, and those in which no category has five people."""
    for column in pool_schema(schema, frame):
        if not isinstance(column, Categorical) or column.rare == getattr(schema[column.name], "rare", None):
            continue
        if isinstance(frame[column.name].dtype, pd.CategoricalDtype) or not column.categories:
            schema = schema.change(column.name, rare=False)
    return schema


def learned_diffusion(
    space: Space,
    x: Tensor,  # (n, width) all rows of the table
    y: Tensor,  # (n,) their class numbers
    hidden: int,
    tau: tuple[float, float],
    plan: TrainingPlan,
    seed: int,
    progress: Progress,
    classes: int | None = None,  # None: as many as y has
    device: str = "cpu",
) -> tuple[TabularDiffusion, TrainingHistory]:
    """Train the diffusion model of a table, on the same part of it as `fit`."""
    train, held_out, _ = split_rows(len(x), seed)
    diffusion = TabularDiffusion(space, hidden, classes=classes or int(y.max()) + 1, tau=tau, seed=seed)
    place_networks(diffusion, device)
    fewer = plan_for(plan, len(train))
    return diffusion, diffusion.fit(x[train], x[held_out], fewer, seed, progress, (y[train], y[held_out]))


def _classes(frame: pd.DataFrame, label: Name) -> tuple[Tensor, tuple[Value, ...]]:
    """Class numbers (n,) and the classes they stand for."""
    if not is_name(label) or label not in frame.columns:
        choices = f"{suggest(label, frame.columns)}the table has: {listing(frame.columns)}"
        raise InputError(f"there is no label column {show(label)}; {choices}")
    column = frame[label]
    if isinstance(column, pd.DataFrame):
        raise InputError(f"the label column {label!r} appears twice; rename or drop one of them")
    column = normalise_column(column)
    if column.isna().any():
        raise InputError(
            f"the label {label!r} is missing in {int(column.isna().sum())} rows (the first is row "
            f"{column.index[int(column.isna().to_numpy().argmax())]!r}); drop those rows before fitting"
        )
    cells = [plain(cell) for cell in column]
    odd = next((i for i, cell in enumerate(cells) if not is_value(cell)), None)
    if odd is not None:
        raise InputError(f"the label {label!r} holds {type(cells[odd]).__name__} ({show(cells[odd], spell=str)}) in "
                         f"row {column.index[odd]!r}; text, numbers or yes/no are needed")  # fmt: skip
    keys = [(isinstance(cell, bool), cell) for cell in cells]  # True equals 1, but is a different class
    distinct: dict[tuple[bool, Value], None] = dict.fromkeys(keys)
    classes = sort_values([value for _, value in distinct])
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


def _any_classes(frame: pd.DataFrame, label: Name | None) -> tuple[Tensor | None, tuple[Value, ...]]:
    """The same for a model that the user brought: the label may be absent, or a number (then it has no classes)."""
    if label is None:
        return None, ()
    if is_name(label) and label in frame.columns and not isinstance(frame[label], pd.DataFrame):
        column = normalise_column(frame[label])
        if column.nunique() > MAX_CLASSES or (pd.api.types.is_float_dtype(column.dtype) and column.nunique() > 2):
            return None, ()
    return _classes(frame, label)


def split_rows(rows: int, seed: int) -> tuple[Tensor, Tensor, Tensor]:
    """Row numbers for training, for early stopping and for the report; all rows for each if the table is tiny."""
    order = torch.randperm(rows, generator=torch.Generator().manual_seed(seed))
    size = min(int(rows * HELD_OUT), MOST_HELD_OUT)
    if size < 5:
        return order, order, order
    return order[2 * size :], order[:size], order[size : 2 * size]


def _quality(classifier: Classifier, x: Tensor, y: Tensor) -> dict[str, float | None]:
    """The quality of a classifier on rows that it was not trained on."""
    return _rated(classifier(x), y)


def _rated(logits: Tensor, y: Tensor) -> dict[str, float | None]:
    """The accuracy, and the calibration error over ten bins of the top class's probability."""
    p = logits.softmax(dim=1)
    top, right = p.amax(dim=1), (p.argmax(dim=1) == y).float()
    bins = (top * 10).long().clamp(max=9)
    filled = sorted(set(bins.tolist()))
    gaps = [(top[bins == b].mean() - right[bins == b].mean()).abs() * (bins == b).float().mean() for b in filled]
    return {
        "accuracy": round(right.mean().item(), 4),
        "commonest_class": round(y.bincount().max().item() / len(y), 4),
        "calibration_error": round(float(sum(gaps)), 4),
        "test_rows": len(y),
    }


def _agreement(
    score: Tensor,  # (n, columns)
    output: Output,
    labels: Tensor | None,  # (n,)
    classes: tuple[Value, ...],
) -> dict[str, float | None]:
    """How often a model that the user brought agrees with the label, if there is one with the same classes."""
    if labels is None or output.classes != classes:
        return {"accuracy": None, "commonest_class": None, "calibration_error": None, "test_rows": len(score)}
    right = (output.group(score) == labels).float().mean().item()
    return _rated(score[:, : len(classes)].log(), labels) | {"accuracy": round(right, 4)}
