"""Models as another training might have made them, who say whether an answer would still hold."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import Any

import pandas as pd
import torch
from torch import Generator, Tensor

from tdce._core import Floats, InputError, Name, Plan, Progress
from tdce.models.adapters import ModelAdapter, adapt, array, check_columns
from tdce.models.classifier import Classifier
from tdce.models.goals import Goals
from tdce.models.model import AdaptedModel, Model, NetworkModel
from tdce.schema import Encoder

ACCEPTING_SHARE = 0.9  # of a committee, that an answer has to convince
MOST_CHECKED = 2_000  # rows outside a sample by which training stops


@dataclass(frozen=True)
class Retraining:
    """How the models of an ensemble came about, so that they can be trained once more."""

    models: int
    seed: int | None = None  # None: the user trained them
    table: str | None = None  # the digest of the table they were trained on


@dataclass(frozen=True, eq=False)
class Ensemble:
    """Each of them says what the explained model says, as scores of the same columns."""

    models: tuple[Model, ...]
    retraining: Retraining

    def __len__(self) -> int:
        return len(self.models)

    def accepting(self, raw: Floats, goals: Goals) -> Tensor:
        """(n,) how many of them would say what is wanted of raw rows (n, features)."""
        return torch.stack([goals.met(torch.from_numpy(model.score(raw))) for model in self.models]).sum(dim=0)

    def margin(self, raw: Floats, goals: Goals) -> Tensor:
        """(n,) the margin that nearly all of them have, or more."""
        each = torch.stack([goals.margin(torch.from_numpy(model.score(raw))) for model in self.models])
        return each.sort(dim=0, descending=True).values[self.needed - 1]

    @property
    def needed(self) -> int:
        """How many of them are nearly all."""
        return ceil(ACCEPTING_SHARE * len(self) - 1e-9)


def ensemble_of_models(decides: Model, encoder: Encoder, models: Sequence[Any]) -> Ensemble:
    """Of models that the user has trained again."""
    if not isinstance(decides, AdaptedModel) or len(decides.models) != 1:
        raise InputError("robust is a list of models, which goes with a model of your own with one output; otherwise "
                         "give what Explainer.retrain makes")  # fmt: skip
    if not models:
        raise InputError("robust is an empty list; give models that were trained again, or leave it out")
    return Ensemble(tuple(_like(decides, encoder, adapt(each)) for each in models), Retraining(len(models)))


def retrain_ensemble(
    decides: Model,
    encoder: Encoder,
    table: pd.DataFrame,
    label: Name | None,
    class_numbers: Callable[[], Tensor],  # (rows,) of the table's label
    count: int,
    seed: int,
    plan: Plan,  # of our own classifier
    progress: Progress,
) -> Ensemble:
    """The same kind of model, trained on rows drawn from the table with replacement, as many as it has, from another
    start each time."""
    samples = [_sample(len(table), seed + i) for i in range(count)]
    if isinstance(decides, AdaptedModel):
        own = _trainable(decides, label)
        if label not in table.columns:
            raise InputError(f"there is no label column {label!r} in the table, which training again needs")
        return Ensemble(
            tuple(_like(decides, encoder, _estimator(own, table.iloc[at.numpy()], label, seed + i))
                  for i, at in enumerate(samples)),
            Retraining(count, seed),
        )  # fmt: skip
    assert isinstance(decides, NetworkModel)
    assert isinstance(decides.classify, Classifier)
    x, y, settings = encoder.encode(table).float(), class_numbers(), decides.classify.settings
    made = []
    for i, at in enumerate(samples):
        rest = torch.ones(len(x), dtype=torch.bool).index_fill(0, at, False).nonzero().squeeze(1)[:MOST_CHECKED]
        classifier = Classifier(**settings, seed=seed + i)
        classifier.fit(x[at], y[at], x[rest], y[rest], plan, seed + i, progress)
        made.append(NetworkModel(classifier, encoder.embed, decides.classes))
    return Ensemble(tuple(made), Retraining(count, seed))


def _sample(rows: int, seed: int) -> Tensor:
    """(rows,) drawn with replacement."""
    return torch.randint(rows, (rows,), generator=Generator().manual_seed(seed))


def _trainable(decides: AdaptedModel, label: Name | None) -> ModelAdapter:
    """The one model that was given, if it can be trained."""
    own = decides.models[0]
    estimator = callable(getattr(own.own, "fit", None)) and callable(getattr(own.own, "get_params", None))
    if len(decides.models) != 1 or not estimator or label is None:
        name = ", ".join(each.name for each in decides.models)
        raise InputError(f"the model {name} cannot be trained again here: that takes one estimator with fit, and a "
                         "label; train it yourself and give the models: robust=[…]")  # fmt: skip
    return own


def _estimator(own: ModelAdapter, table: pd.DataFrame, label: Name, seed: int) -> ModelAdapter:
    """The same estimator, not yet trained, from another seed where it has one, trained on these rows."""
    from sklearn.base import clone  # type: ignore[import-untyped]  # whoever brings an estimator has it

    made, columns = clone(own.own), own.columns
    seeds = {name: seed for name in made.get_params() if name.rpartition("__")[2] in ("random_state", "random_seed")}
    made.set_params(**seeds)
    frame = table.drop(columns=[label]) if columns is None else table[list(columns)]
    made.fit(frame if columns is not None else array(frame), table[label])
    return adapt(made)


def _like(decides: AdaptedModel, encoder: Encoder, model: ModelAdapter) -> AdaptedModel:
    """A model in the place of the one that is explained."""
    check_columns(model, encoder.schema.names, None)
    if model.classes != decides.models[0].classes:
        raise InputError(f"the model {model.name} knows other classes ({', '.join(map(str, model.classes))}) than the "
                         f"one that is explained ({', '.join(map(str, decides.models[0].classes))})")  # fmt: skip
    return replace(decides, models=(model,))
