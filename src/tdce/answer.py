"""The answer to a question about rows: frames for scripts, sentences and a page for people."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tdce.cells import Name, Positions, Value, same
from tdce.errors import file_path
from tdce.explanation import Explanation, Line, Question
from tdce.judge import Judge
from tdce.limits import Limits
from tdce.population import Population
from tdce.report.context import Context
from tdce.report.page import Plain, page
from tdce.report.view import View
from tdce.report.words import sentence
from tdce.schema import Schema
from tdce.tables import check_writable, write_whole


@dataclass(frozen=True, eq=False, repr=False)
class Answer:
    """One line per row and option, in the order of the rows; nothing is ever left out. A plain value: it can be
    pickled and copied, and holds nothing of the explainer."""

    rows: pd.DataFrame  # as the user gave them
    written: pd.DataFrame  # as they would have to be, one line per option
    schema: Schema
    immutable: tuple[Name, ...]
    question: Question
    found: Explanation
    target: NDArray[Any]  # (rows,) what is wanted, as people read it
    model_calls: int  # how often the model was asked
    model_rows: int  # about how many different rows, over all calls
    context: Context | None = None  # what a report says about the explainer

    @classmethod
    def of(
        cls,
        rows: pd.DataFrame,
        limits: Limits,
        question: Question,
        found: Explanation,
        classes: Sequence[Value],
        judge: Judge,
        context: Context | None = None,
    ) -> Self:
        names, repeated = limits.encoder.schema.names, np.repeat(np.arange(len(rows)), question.options)
        written = limits.encoder.write(
            found.raw.reshape(len(repeated), len(names)), rows.iloc[repeated], found.own[repeated]
        )
        wanted = np.array([goal.wanted(classes) for goal in question.goals.kinds], dtype=object)
        return cls(
            rows.copy(), written, limits.encoder.schema, limits.immutable, question, found, wanted[question.goals.which.numpy()],
            judge.calls, judge.rows, context,
        )  # fmt: skip

    @property
    def features(self) -> tuple[Name, ...]:
        return self.schema.names

    @property
    def options(self) -> int:
        return self.question.options

    def __len__(self) -> int:
        return int(self.found.status.size)

    def __repr__(self) -> str:
        counts = ", ".join(f"{count} {status}" for status, count in self.counts().items())
        return f"<Answer for {len(self.rows)} rows: {counts}>"

    def counts(self) -> dict[str, int]:
        """How many lines have which status."""
        names, counts = np.unique(self.found.status, return_counts=True)
        return dict(zip(names.tolist(), counts.tolist(), strict=True))

    def to_frame(self) -> pd.DataFrame:
        """The rows as they would have to be, in their own columns, dtypes and index, one line per option.

        Added at the end: row, option, status, score_before, score_after, plausibility, note (with `tdce_` before a
        name that the table already uses).
        """
        found, n, frame = self.found, self.options, self.written
        added = {
            "row": _labels(frame.index),
            "option": np.tile(np.arange(n), len(self.rows)),
            "status": found.status.reshape(-1).astype(object),
            "score_before": np.repeat(found.score_before, n),
            "score_after": found.score_after.reshape(-1),
            "plausibility": found.plausibility.reshape(-1),
            "note": found.note.reshape(-1),
        }
        columns = {_unused(k, frame.columns): pd.Series(v, index=frame.index) for k, v in added.items()}
        return pd.concat([frame, pd.DataFrame(columns, index=frame.index)], axis=1)

    def changes(self) -> pd.DataFrame:
        """One line per change: row, option, feature, before, after."""
        row, option, _ = self._changed
        cells = [change for options in self.lines for line in options for change in line.changes]
        feature, before, after = zip(*cells, strict=True) if cells else ((), (), ())
        return pd.DataFrame(
            {
                "row": _labels(self.rows.index[row]),
                "option": option,
                "feature": pd.Series(feature, dtype=object),
                "before": pd.Series(before, dtype=object),
                "after": pd.Series(after, dtype=object),
            }
        )

    @cached_property
    def lines(self) -> list[list[Line]]:
        """By row, then by option."""
        found, n, names = self.found, self.options, self.features
        before, after = ({name: frame[name].array for name in names} for frame in (self.rows, self.written))
        changed: dict[tuple[int, int], list[tuple[Name, Any, Any]]] = {}
        for r, o, c in zip(*(i.tolist() for i in self._changed), strict=True):
            name = names[c]
            changed.setdefault((r, o), []).append((name, before[name][r], after[name][r * n + o]))
        return [
            [
                Line(str(found.status[r, o]), self.target[r], float(found.score_before[r]),
                     float(found.score_after[r, o]), float(found.plausibility[r, o]), changed.get((r, o), []),
                     found.note[r, o], self.question.goals.goal(r).shows == "prediction")
                for o in range(n)
            ]
            for r in range(len(self.rows))
        ]  # fmt: skip

    def sentences(self) -> list[str]:
        """One sentence per line of the answer."""
        return [sentence(line) for options in self.lines for line in options]

    def to_html(
        self,
        path: str | os.PathLike[str],
        title: str = "",
        *,
        metrics: Mapping[str, float] | None = None,
        population: Population | None = None,
    ) -> None:
        """Write a report, one self-contained page: a summary, a card for each person, and what changes over all.

        - `metrics`: what `tdce.evaluate` measured; without, the page leaves them out.
        - `population`: the people beside whom everybody is shown, as `Explainer.population(table)` counts them; by
          default the training rows if the explainer keeps them, or else its synthetic people.
        """
        where = file_path("path", path)
        check_writable(where, endings=None)
        speaker = Plain()
        barred = frozenset[Name]()
        beside = self.context.population if population is None and self.context is not None else population
        view = View(
            self.rows, self.written, self.schema, self.question, self.found, self.immutable, self.target, self.context,
            beside, barred,
        )  # fmt: skip
        asked = self.model_calls, self.model_rows
        text = page(view, self.lines, speaker, title or speaker.text("report_title"), asked, metrics)
        write_whole(where, text.encode())

    @cached_property
    def _changed(self) -> tuple[Positions, ...]:
        """Positions (row, option, feature) of all that changed, in this order."""
        return np.nonzero(~same(self.found.raw, self.found.own[:, None]))


def _unused(name: str, taken: pd.Index[Any]) -> str:
    """The name, with `tdce_` before it until the table does not have it."""
    while name in taken:
        name = f"tdce_{name}"
    return name


def _labels(index: pd.Index[Any]) -> Any:
    """Index labels as a column: a plain index keeps its dtype, several levels become tuples."""
    if isinstance(index, pd.MultiIndex):
        return np.fromiter(index, dtype=object, count=len(index))
    return index.array
