"""What `fit` learned: everything that an artefact holds, and what can be computed from it."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from torch import Tensor, nn

from tdce._core import (
    Floats,
    InputError,
    Name,
    Positions,
    Value,
    listing,
    plain,
    round_scores,
    show,
    suggest,
)
from tdce.diffusion import TabularDiffusion
from tdce.methods import Guide, Precedents, Task
from tdce.models import (
    AdaptedModel,
    Classifier,
    Ensemble,
    Goal,
    Goals,
    MissingModel,
    Model,
    ModelAdapter,
    Oracle,
    Output,
    SecondOpinion,
    class_number,
    reattach,
    resolve_goal,
    resolve_goals,
)
from tdce.schema import Encoder


class Prediction(NamedTuple):
    """Predictions for rows: classes (of several outputs, the first) with probabilities, or numbers."""

    labels: list[Any]  # (n,)
    probabilities: Floats | None  # (n, classes); None: the model predicts a number


class StoredPrecedents(NamedTuple):
    """Synthetic rows that the search has answered, with the answers and the energy that these add."""

    rows: Positions  # (p,)
    answers: Floats  # (p, positions, features)
    energy: Tensor  # (p, positions)


@dataclass(frozen=True)
class Fitted:
    """What `fit` learned: everything that an artefact holds."""

    encoder: Encoder
    label: Name | None
    favourable: Any  # a class, a goal, or one of these for each output; None: not given
    classifier: Classifier | None  # None: the user brought a model
    diffusion: TabularDiffusion
    raw: Floats  # (rows, features) the training rows, for methods that search among them; empty if not in the artefact
    y: Tensor  # (rows,) their class numbers, or the groups of the predicted number
    synthetic: Floats  # (synthetic rows, features)
    energy_quantiles: Tensor  # (classes, knots) see `measure_energy_quantiles`
    decides: Model  # the explained model
    second_opinion: SecondOpinion  # forecasts whether a retrained model would accept an answer
    report: dict[str, Any]  # rows, accuracy, losses, versions; also seconds and date, unless loaded
    hints: tuple[str, ...] = ()  # what is worth knowing about the columns; empty if loaded
    synthetic_scores: Tensor | None = None  # (synthetic rows, columns) scores of a model that the user brought
    precedents: StoredPrecedents | None = None
    exact: bool = False  # whether values shared by fewer than five people may have been kept
    memo: dict[Hashable, Any] = field(default_factory=dict, repr=False)  # cache of what methods trained on this

    @cached_property
    def x(self) -> Tensor:
        return self.encoder.embed(self.raw).float()

    @cached_property
    def x_synthetic(self) -> Tensor:
        return self.encoder.embed(self.synthetic).float()

    @property
    def model(self) -> Model:
        """The explained model; an error if it is not at hand."""
        if isinstance(self.decides, MissingModel):
            raise InputError(self.decides.message)
        return self.decides

    def with_model(self, models: Mapping[str, ModelAdapter]) -> Fitted:
        """A copy with the model that it was made for, which an artefact does not hold."""
        if not isinstance(self.decides, MissingModel) or self.synthetic_scores is None:
            raise InputError("this explainer has a classifier of its own; leave model out")
        return replace(
            self, decides=reattach(self.decides, models, self.encoder, self.synthetic, self.synthetic_scores)
        )

    @property
    def outputs(self) -> tuple[Output, ...]:
        return self.decides.outputs

    @property
    def classes(self) -> tuple[Value, ...]:
        """The classes of the first output; none if it is a number."""
        return self.outputs[0].classes

    def predict(self, raw: Floats) -> Prediction:
        """The model's predictions for raw rows (n, features), rounded to six decimals."""
        return self.interpret(round_scores(Oracle(self.model).score(raw)))

    def interpret(self, score: Tensor) -> Prediction:
        """The predictions that scores (n, columns) stand for."""
        output = self.outputs[0]
        if not output.classes:
            return Prediction(score[:, 0].tolist(), None)
        labels = [output.classes[i] for i in output.group(score).tolist()]
        return Prediction(labels, score[:, : len(output.classes)].numpy())

    def resolve_goals(self, target: Any, threshold: float | None, own: Floats, oracle: Oracle | None = None) -> Goals:
        """One goal per row (n, features): the target if given, else the favourable one or the other of two classes."""
        asked = Oracle(self.model) if oracle is None else oracle
        return resolve_goals(target, threshold, self.favourable, self.outputs, len(own), lambda: asked.score(own))

    @property
    def labels(self) -> tuple[Any, ...]:
        """The names of the columns of the model's scores."""
        return tuple(label for output in self.outputs for label in output.labels())

    def class_numbers(self, table: pd.DataFrame) -> Positions:
        """(rows,) class numbers of the table's label column."""
        if self.label not in table.columns:
            choices = f"{suggest(self.label, table.columns)}the table has: {listing(table.columns)}"
            raise InputError(f"there is no label column {show(self.label)}; {choices}")
        cells = [plain(cell) for cell in table[self.label]]
        known: dict[tuple[bool, Any], int] = {}  # True equals 1, but is a different class
        for cell in cells:
            if (key := (isinstance(cell, bool), cell)) not in known:
                known[key] = class_number(cell, self.classes, f"{self.label}:")
        return np.array([known[isinstance(cell, bool), cell] for cell in cells], dtype=np.int64)

    @property
    def goal(self) -> Goal | None:
        """The favourable goal; None: not given."""
        return None if self.favourable is None else resolve_goal(self.favourable, self.outputs)

    @cached_property
    def known_precedents(self) -> Precedents | None:
        if self.precedents is None or self.goal is None:
            return None
        rows, answers, energy = self.precedents
        x_cf = (
            self.encoder.embed(answers.reshape(-1, answers.shape[2]))
            .float()
            .view(*answers.shape[:2], self.encoder.space.width)
        )
        return Precedents(self.goal, self.x_synthetic[rows], x_cf, energy)

    @property
    def guide(self) -> Guide | None:
        """The model with gradients: the classifier, or a torch module that the user brought."""
        if self.classifier is not None or not isinstance(self.decides, AdaptedModel):
            return self.classifier
        model = self.decides.models[0].model
        return model if isinstance(model, nn.Module) and len(self.outputs) == 1 else None

    def task(
        self,
        immutable: Iterable[Name] = (),
        budget: int | None = None,
        ensemble: Ensemble | None = None,
    ) -> Task:
        """The task of explaining the model with these features unchanged, within a query budget, with answers that nine
        in ten models of an ensemble accept."""
        mutable, oracle = ~self.encoder.space.mask(immutable), Oracle(self.model, budget, ensemble)
        return Task(
            self.encoder, oracle, self.guide, self.diffusion, mutable, self.x, self.y, self.report["seed"],
            self.x_synthetic, self.energy_quantiles, self.memo, self.synthetic_scores,
            self.second_opinion, self.known_precedents,
        )  # fmt: skip
