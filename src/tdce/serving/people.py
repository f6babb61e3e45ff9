"""The people whom the studio shows: synthetic rows, or the rows of a file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from tdce._core import round_scores
from tdce.explainer import Explainer
from tdce.models import Oracle
from tdce.serving.json_rows import frame_to_json, values_to_json

SYNTHETIC_PEOPLE = 200


@dataclass(frozen=True, eq=False)
class People:
    """People, each with the prediction of the model."""

    source: str
    values: list[dict[str, Any]]
    prediction: list[Any]
    score: list[float]
    met: list[bool]

    @classmethod
    def of(cls, explainer: Explainer, rows: pd.DataFrame | None) -> People:
        """The rows given, or some synthetic rows of the explainer."""
        fitted = explainer.fitted
        if rows is None:
            raw = fitted.synthetic[
                np.linspace(0, len(fitted.synthetic) - 1, min(SYNTHETIC_PEOPLE, len(fitted.synthetic))).astype(int)
            ]
            rows, source = fitted.encoder.write(raw, pd.DataFrame(index=range(len(raw)))), "synthetic"
        else:
            raw, source = fitted.encoder.read(rows), "rows"
        score = Oracle(fitted.model).score(raw)
        goals = None if fitted.favourable is None else fitted.resolve_goals(None, None, raw)
        predicted = round_scores(score)
        labels = fitted.interpret(predicted).labels
        shown = round_scores(goals.display_score(score)) if goals else predicted.amax(dim=1)
        met = goals.met(score).tolist() if goals else [False] * len(raw)
        return cls(source, frame_to_json(rows), values_to_json(labels), shown.tolist(), met)

    def __len__(self) -> int:
        return len(self.values)

    def page(self, first: int, count: int, met: bool | None) -> dict[str, Any]:
        """Some of them; with `met` only those whom the model decides favourably, or not."""
        numbers = [i for i in range(len(self)) if met is None or self.met[i] == met]
        return {
            "source": self.source,
            "total": len(numbers),
            "people": [self.person(i) for i in numbers[first : first + count]],
        }

    def person(self, i: int) -> dict[str, Any]:
        """One of them, for JSON."""
        return {"number": i, "values": self.values[i], "prediction": self.prediction[i], "score": self.score[i],
                "met": self.met[i]}  # fmt: skip
