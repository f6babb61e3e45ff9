"""Ensembles of retrained models, which show whether an answer would survive retraining."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from math import ceil
from typing import Any, Self

import pandas as pd
import torch
from torch import Generator, Tensor

from tdce._core import (
    LAST_SEED,
    Floats,
    InputError,
    Name,
    Progress,
    TrainingPlan,
    check_integer,
    check_optional,
    check_text,
    convert_frame,
    place_networks,
    show,
)
from tdce.models.adapters import ModelAdapter, adapt, array, check_columns
from tdce.models.classifier import Classifier
from tdce.models.goals import Goals
from tdce.models.model import AdaptedModel, Model, NetworkModel
from tdce.schema import Encoder

ACCEPTING_SHARE = 0.9  # share of the models that must accept an answer
MAX_VALIDATION_ROWS = 2_000  # rows outside a bootstrap sample, for early stopping


@dataclass(frozen=True)
class Retraining:
    """How the models of an ensemble were trained, so that the training can be repeated."""

    models: int
    seed: int | None = None  # None: the user trained them
    table: str | None = None  # digest of the table they were trained on

    def __post_init__(self) -> None:
        check_integer("models", self.models, 1)
        check_optional("seed", self.seed, check_integer, 0, LAST_SEED)
        check_optional("table", self.table, check_text)

    @classmethod
    def from_json(cls, values: Any) -> Self:
        """Read the JSON of a question."""
        known = [each.name for each in fields(cls)]
        if not isinstance(values, Mapping) or "models" not in values or set(values) - set(known):
            raise InputError(f"robust is {show(values)}; it must have models, and may have seed and table")
        return cls(**values)


@dataclass(frozen=True, eq=False)
class Ensemble:
    """Retrained models, with the same columns of scores as the explained model."""

    models: tuple[Model, ...]
    retraining: Retraining = None  # type: ignore[assignment]  # how they were trained; None: by the user

    def __post_init__(self) -> None:
        if self.retraining is None:
            object.__setattr__(self, "retraining", Retraining(len(self.models)))

    def __len__(self) -> int:
        return len(self.models)

    def votes(self, raw: Floats, goals: Goals) -> Tensor:
        """(n,) the number of models that accept each of the raw rows (n, features)."""
        return torch.stack([goals.met(torch.from_numpy(model.score(raw))) for model in self.models]).sum(dim=0)

    def margin(self, raw: Floats, goals: Goals) -> Tensor:
        """(n,) the largest margin that the required number of models reach."""
        each = torch.stack([goals.margin(torch.from_numpy(model.score(raw))) for model in self.models])
        return each.sort(dim=0, descending=True).values[self.required_votes - 1]

    @property
    def required_votes(self) -> int:
        """Number of models that must accept a row."""
        return ceil(ACCEPTING_SHARE * len(self) - 1e-9)


def ensemble_of_models(explained: Model, encoder: Encoder, models: Sequence[Any]) -> Ensemble:
    """Make an ensemble of models that the user has retrained."""
    if not isinstance(explained, AdaptedModel) or len(explained.models) != 1:
        raise InputError("robust is a list of models, which needs an explained model of your own with one output; "
                         "otherwise pass the result of Explainer.retrain")  # fmt: skip
    if not models:
        raise InputError("robust is an empty list; give retrained models, or leave it out")
    return Ensemble(tuple(_with_model(explained, encoder, adapt(each)) for each in models), Retraining(len(models)))


def retrain_ensemble(
    explained: Model,
    encoder: Encoder,
    table: pd.DataFrame,
    label: Name | None,
    class_numbers: Callable[[], Tensor],  # (rows,) of the table's label
    count: int,
    seed: int,
    plan: TrainingPlan,  # of our own classifier
    progress: Progress,
) -> Ensemble:
    """Train models of the same kind, each with another seed, on bootstrap samples of the table."""
    if len(table) == 0:
        raise InputError("the table has no rows, and retraining needs those that were learned")
    samples = [_sample(len(table), seed + i) for i in range(count)]
    if isinstance(explained, AdaptedModel):
        adapter = _trainable(explained, label)
        if label not in table.columns:
            raise InputError(f"the table has no label column {label!r}, which retraining needs")
        return Ensemble(
            tuple(_with_model(explained, encoder, _retrained(adapter, table.iloc[at.numpy()], label, seed + i))
                  for i, at in enumerate(samples)),
            Retraining(count, seed),
        )  # fmt: skip
    assert isinstance(explained, NetworkModel)
    assert isinstance(explained.classify, Classifier)
    x, y, settings = encoder.encode(table).float(), class_numbers(), explained.classify.settings
    models = []
    for i, at in enumerate(samples):
        rest = torch.ones(len(x), dtype=torch.bool).index_fill(0, at, False).nonzero().squeeze(1)[:MAX_VALIDATION_ROWS]
        classifier = Classifier(**settings, seed=seed + i)
        place_networks(classifier, next(explained.classify.parameters()).device)
        classifier.fit(x[at], y[at], x[rest], y[rest], plan, seed + i, progress)
        models.append(NetworkModel(classifier, encoder.embed, explained.classes))
    return Ensemble(tuple(models), Retraining(count, seed))


def _sample(rows: int, seed: int) -> Tensor:
    """(rows,) row positions of a bootstrap sample."""
    return torch.randint(rows, (rows,), generator=Generator().manual_seed(seed))


def _trainable(explained: AdaptedModel, label: Name | None) -> ModelAdapter:
    """The user's only model, if it can be retrained."""
    adapter = explained.models[0]
    trainable = all(callable(getattr(adapter.model, name, None)) for name in ("fit", "get_params"))
    if len(explained.models) != 1 or not trainable or label is None:
        name = ", ".join(each.name for each in explained.models)
        raise InputError(f"the model {name} cannot be retrained here: that needs one estimator with fit, and a label; "
                         "retrain it yourself and pass the models: robust=[…]")  # fmt: skip
    return adapter


def _retrained(adapter: ModelAdapter, table: pd.DataFrame, label: Name, seed: int) -> ModelAdapter:
    """A clone of the estimator, trained on these rows with another seed if it has one."""
    from sklearn.base import clone  # type: ignore[import-untyped]  # installed if the user brings an estimator

    estimator, columns = clone(adapter.model), adapter.columns
    seeds = [name for name in estimator.get_params() if name.rpartition("__")[2] in ("random_state", "random_seed")]
    estimator.set_params(**dict.fromkeys(seeds, seed))
    frame = table.drop(columns=[label]) if columns is None else table[list(columns)]
    given = convert_frame(frame, adapter.library) if columns is not None else array(frame)
    estimator.fit(given, table[label])
    return adapt(estimator)


def _with_model(explained: AdaptedModel, encoder: Encoder, model: ModelAdapter) -> AdaptedModel:
    """The explained model with another estimator in its place."""
    check_columns(model, encoder.schema.names, None)
    if model.classes != explained.models[0].classes:
        raise InputError(f"the model {model.name} has other classes ({', '.join(map(str, model.classes))}) than the "
                         f"explained model ({', '.join(map(str, explained.models[0].classes))})")  # fmt: skip
    model = replace(model, library=explained.models[0].library, company=explained.models[0].company)
    return replace(explained, models=(model,), reference=None)
