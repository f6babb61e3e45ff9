"""The people that the studio shows, searches and sorts: synthetic rows, or the rows of a file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from tdce._core import InputError, listing, round_scores, show
from tdce.explainer import Explainer
from tdce.models import Oracle
from tdce.report import Speaker
from tdce.schema import Schema
from tdce.serving.json_rows import frame_to_json, series_to_json, values_to_json

SYNTHETIC_PEOPLE = 200
BY_NUMBER, BY_SCORE = "", "score"  # sort keys besides columns


@dataclass(frozen=True, eq=False)
class People:
    """People with the model's predictions."""

    source: str
    ids: list[str | None]  # by which users know them
    values: list[dict[str, Any]]
    prediction: list[Any]
    score: list[float]
    met: list[bool]

    @classmethod
    def of(cls, explainer: Explainer, rows: pd.DataFrame | None, id_column: str | None = None) -> People:
        """Make people from the rows given, or from synthetic rows of the explainer."""
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
        ids = _ids(rows, explainer.schema, fitted.label, id_column)
        return cls(source, ids, frame_to_json(rows), values_to_json(labels), shown.tolist(), met)

    def __len__(self) -> int:
        return len(self.values)

    def page(
        self, first: int, count: int, met: bool | None, search: str, sort: str, descending: bool, speaker: Speaker
    ) -> dict[str, Any]:
        """A page of people, sorted by id or number, by score or by a column. `met` selects by decision (favourable or
        not), `search` by a text in the id, number or values."""
        numbers = [i for i in range(len(self)) if met is None or self.met[i] == met]
        columns = [str(name) for name in speaker.words if speaker.may_name(name)]
        if search.strip():
            found = self._find(search.strip().casefold(), columns, speaker)
            numbers = [i for i in numbers if i in found]
        numbers = self._sorted(numbers, sort, descending, columns, speaker)
        return {
            "source": self.source,
            "total": len(numbers),
            "people": [self.person(i) for i in numbers[first : first + count]],
        }

    def person(self, i: int) -> dict[str, Any]:
        """One person, for JSON."""
        return {"number": i, "id": self.ids[i], "values": self.values[i], "prediction": self.prediction[i],
                "score": self.score[i], "met": self.met[i]}  # fmt: skip

    def _find(self, text: str, columns: list[str], speaker: Speaker) -> set[int]:
        """The people with the text in the id or a value, or with this number."""
        found = {i for i, each in enumerate(self.ids) if each is not None and text in each.casefold()}
        found |= {i for i in range(len(self)) if str(i + 1) == text}
        for column in columns:
            cells = [row[column] for row in self.values]
            having = {cell for cell in set(cells) if cell is not None and text in _spoken(speaker, column, cell)}
            found |= {i for i, cell in enumerate(cells) if cell in having}
        return found

    def _sorted(
        self, numbers: list[int], sort: str, descending: bool, columns: list[str], speaker: Speaker
    ) -> list[int]:
        if sort == BY_NUMBER:
            return numbers[::-1] if descending else numbers
        if sort == BY_SCORE:
            return sorted(numbers, key=lambda i: self.score[i], reverse=descending)
        if sort not in columns:
            raise InputError(f"sort is {show(sort)}; it must be score or one of the columns: {listing(columns)}")
        cells = {i: self.values[i][sort] for i in numbers}
        known = [i for i in numbers if cells[i] is not None]
        numeric = all(isinstance(cells[i], int | float) for i in known)
        order = sorted(
            known, key=lambda i: cells[i] if numeric else _spoken(speaker, sort, cells[i]), reverse=descending
        )
        return [*order, *(i for i in numbers if cells[i] is None)]  # missing values come last


def _spoken(speaker: Speaker, column: str, cell: Any) -> str:
    """A cell as the table and the page write it, to search for a text."""
    name = next(name for name in speaker.words if str(name) == column)
    return f"{speaker.value(name, cell)} {cell}".casefold()


def _ids(rows: pd.DataFrame, schema: Schema, label: Any, id_column: str | None) -> list[str | None]:
    """The cells of the column that identifies people: the one given, else the first one that the model does not see and
    whose cells all differ."""
    if id_column is not None:
        named = [name for name in rows.columns if str(name) == id_column]
        if not named:
            raise InputError(
                f"--id is {show(id_column)}, which is no column of the rows; known: {listing(rows.columns)}"
            )
    else:
        others = [name for name in rows.columns if name not in schema.names and name != label]
        named = [name for name in others if rows[name].notna().all() and rows[name].is_unique]
    if not named:
        return [None] * len(rows)
    return [None if cell is None else str(cell) for cell in series_to_json(rows[named[0]])]
