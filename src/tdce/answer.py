"""The answer to a question about rows: frames for scripts, sentences and a page for people."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tdce.cells import Name, same
from tdce.encoder import Encoder
from tdce.errors import InputError, file_path
from tdce.methods import Explanation
from tdce.report.page import page
from tdce.report.words import Line, sentence
from tdce.tables import check_writable, write_whole


class Answer:
    """One line for each row and option, in the order of the rows; nothing is ever left out."""

    def __init__(
        self,
        rows: pd.DataFrame,  # as the user gave them
        encoder: Encoder,
        explanation: Explanation,
        target: NDArray[Any],  # (rows,) the class asked for
        measure: Callable[[], dict[str, float]],
    ) -> None:
        self.rows, self.encoder, self.explanation, self.target = rows.copy(), encoder, explanation, target
        self._measure: Callable[[], dict[str, float]] | None = measure

    def __getstate__(self) -> dict[str, Any]:
        """All but the way to measure it, which leads to the explainer and to the rows that it learned."""
        return self.__dict__ | {"_measure": None}

    @property
    def options(self) -> int:
        return int(self.explanation.status.shape[1])

    def __len__(self) -> int:
        return int(self.explanation.status.size)

    def __repr__(self) -> str:
        counts = ", ".join(f"{count} {status}" for status, count in self.counts().items())
        return f"<Answer for {len(self.rows)} rows: {counts}>"

    def counts(self) -> dict[str, int]:
        """How many lines have which status."""
        names, counts = np.unique(self.explanation.status, return_counts=True)
        return dict(zip(names.tolist(), counts.tolist(), strict=True))

    def to_frame(self) -> pd.DataFrame:
        """The rows as they would have to be, in their own columns, dtypes and index, one line an option.

        Added at the end: row, option, status, score_before, score_after, note (with `tdce_` before a name that the
        table already uses).
        """
        found, n = self.explanation, self.options
        frame = self._written()
        added = {
            "row": _labels(frame.index),
            "option": np.tile(np.arange(n), len(self.rows)),
            "status": found.status.reshape(-1).astype(object),
            "score_before": np.repeat(found.score_before, n),
            "score_after": found.score_after.reshape(-1),
            "note": found.note.reshape(-1),
        }
        columns = {_free(k, frame.columns): pd.Series(v, index=frame.index) for k, v in added.items()}
        return pd.concat([frame, pd.DataFrame(columns, index=frame.index)], axis=1)

    def changes(self) -> pd.DataFrame:
        """One line a change: row, option, feature, before, after."""
        row, option, column = self._changed()
        names = self.encoder.schema.names
        lines = self.lines()
        cells = [change for options in lines for line in options for change in line.changes]
        return pd.DataFrame(
            {
                "row": _labels(self.rows.index[row]),
                "option": option,
                "feature": pd.Series([names[c] for c in column], dtype=object),
                "before": pd.Series([before for _, before, _ in cells], dtype=object),
                "after": pd.Series([after for _, _, after in cells], dtype=object),
            }
        )

    def lines(self) -> list[list[Line]]:
        """By row, then by option."""
        found, n, names = self.explanation, self.options, self.encoder.schema.names
        before = {name: self.rows[name].array for name in names}
        written = self._written()
        after = {name: written[name].array for name in names}
        changed: dict[tuple[int, int], list[tuple[Name, Any, Any]]] = {}
        for r, o, c in zip(*(i.tolist() for i in self._changed()), strict=True):
            name = names[c]
            changed.setdefault((r, o), []).append((name, before[name][r], after[name][r * n + o]))
        return [
            [
                Line(str(found.status[r, o]), self.target[r], float(found.score_before[r]),
                     float(found.score_after[r, o]), changed.get((r, o), []), found.note[r, o])
                for o in range(n)
            ]
            for r in range(len(self.rows))
        ]  # fmt: skip

    def evaluate(self) -> dict[str, float]:
        """The paper's metrics and some more (docs/metrics.md), over the first option of every row that needed one.

        The first call trains three small autoencoders and explains the nearest training rows too. A copy, or an answer
        that was pickled, has no explainer at hand and cannot be measured.
        """
        if self._measure is None:
            raise InputError(
                "a copied or unpickled answer has left its explainer behind: measure the one that explain() returned, "
                "or explain answer.rows again"
            )
        return self._measure()

    def sentences(self) -> list[str]:
        """Each line of the answer in plain words."""
        return [sentence(line) for options in self.lines() for line in options]

    def to_html(self, path: str | os.PathLike[str], title: str = "What would have to be different") -> None:
        """Write a page that needs nothing else: the changes of every row, in words and as a table."""
        where = file_path("path", path)
        check_writable(where, endings=None)
        write_whole(where, page(self.rows[list(self.encoder.schema.names)], self.lines(), title).encode())

    def _written(self) -> pd.DataFrame:
        repeated = self.rows.iloc[np.repeat(np.arange(len(self.rows)), self.options)]
        return self.encoder.write(self.explanation.raw.reshape(len(repeated), len(self.encoder.schema)), repeated)

    def _changed(self) -> tuple[NDArray[np.intp], ...]:
        """Positions (row, option, feature) of all that changed, in this order."""
        raw, own = self.explanation.raw, self.encoder.read(self.rows)[:, None]
        return np.nonzero(~same(raw, own))


def _free(name: str, taken: pd.Index[Any]) -> str:
    """The name, with `tdce_` before it as often as the table already has it."""
    while name in taken:
        name = f"tdce_{name}"
    return name


def _labels(index: pd.Index[Any]) -> Any:
    """Index labels as a column: a plain index keeps its dtype, several levels become tuples."""
    if isinstance(index, pd.MultiIndex):
        return np.fromiter(index, dtype=object, count=len(index))
    return index.array
