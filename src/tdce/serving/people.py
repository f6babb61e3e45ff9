"""The people whom the studio shows: synthetic ones of the diffusion model, or the rows of a file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from tdce._core import round_scores
from tdce.explainer import Explainer
from tdce.models import Oracle
from tdce.serving.json_rows import records
from tdce.serving.lines import cells_of

SYNTHETIC = 200


@dataclass(frozen=True, eq=False)
class People:
    """Each with what the model says."""

    source: str
    values: list[dict[str, Any]]
    prediction: list[Any]
    score: list[float]
    met: list[bool]

    @classmethod
    def of(cls, explainer: Explainer, rows: pd.DataFrame | None) -> People:
        fitted = explainer.fitted
        if rows is None:
            raw = fitted.synthetic[
                np.linspace(0, len(fitted.synthetic) - 1, min(SYNTHETIC, len(fitted.synthetic))).astype(int)
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
        return cls(source, records(rows), cells_of(labels), shown.tolist(), met)

    def __len__(self) -> int:
        return len(self.values)

    def page(self, first: int, count: int, met: bool | None) -> dict[str, Any]:
        """Some of them; with `met` only those for whom the model says what is favourable, or does not."""
        numbers = [i for i in range(len(self)) if met is None or self.met[i] == met]
        return {
            "source": self.source,
            "total": len(numbers),
            "people": [self.person(i) for i in numbers[first : first + count]],
        }

    def person(self, i: int) -> dict[str, Any]:
        return {"number": i, "values": self.values[i], "prediction": self.prediction[i], "score": self.score[i],
                "met": self.met[i]}  # fmt: skip
