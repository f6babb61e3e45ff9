"""The answer to a question about rows: frames for scripts, sentences and a page for people."""

from __future__ import annotations

import json
import os
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tdce._core import (
    PANDAS,
    AnyFrame,
    FrameKind,
    InputError,
    Name,
    Positions,
    Value,
    check_optional,
    check_path,
    check_text,
    plain,
    same,
    show,
)
from tdce.datasets import check_writable, write_whole
from tdce.explainer.provenance import Provenance
from tdce.methods import MOST_REASONS, Explanation, Line, Question, rank_reasons
from tdce.models import Goals, Usage, describe_goal, score_kind, target_parts
from tdce.report import Audience, Context, PlainNames, Population, Speaker, View, load_catalogue, note_text, render_page
from tdce.schema import Encoder, FeasibleSet, Schema

NOTEBOOK_LINES = 20


@dataclass(frozen=True, eq=False, repr=False)
class Answer:
    """The answer to a question: one line per row and option, in the order of the rows, none ever missing.

    It is a plain value, which can be pickled and copied; it holds nothing of the explainer.

    Examples
    --------
    >>> import tdce
    >>> data = tdce.load("german")
    >>> explainer = tdce.Explainer(hidden=32, steps=100).fit(data.frame, label=data.label, favourable="good")
    >>> answer = explainer.explain(data.frame[explainer.predict(data.frame) == "bad"].head(2))
    >>> answer
    <Answer for 2 rows: 2 valid>
    >>> len(answer.sentences())
    2
    """

    rows: pd.DataFrame  # as the user gave them; of another kind of frame, as pandas has them
    written: pd.DataFrame  # as they would have to be, one line per option
    schema: Schema
    question: Question  # with everything that is immutable, and the costs of the schema
    goals: Goals  # one per row
    explanation: Explanation
    target: NDArray[Any]  # (rows,) what is wanted, as people read it
    wanted: NDArray[Any]  # (rows,) the same as tuples of `TargetPart`
    usage: Usage  # how often the model was queried
    context: Context | None = None  # what a report says about the explainer
    provenance: Provenance | None = None  # what it comes from
    kind: FrameKind = PANDAS  # of the rows, which its own frames are of

    @classmethod
    def of(
        cls,
        rows: pd.DataFrame,
        feasible: FeasibleSet,
        goals: Goals,
        question: Question,
        explanation: Explanation,
        labels: Sequence[Value],
        usage: Usage,
        context: Context | None = None,
        provenance: Provenance | None = None,
        kind: FrameKind = PANDAS,
    ) -> Self:
        schema, repeated = feasible.encoder.schema, np.repeat(np.arange(len(rows)), question.n)
        written = feasible.encoder.write(
            explanation.raw.reshape(len(repeated), len(schema)), rows.iloc[repeated], explanation.own[repeated]
        )
        target, wanted = np.empty((2, len(goals.kinds)), dtype=object)
        for i, goal in enumerate(goals.kinds):
            target[i], wanted[i] = describe_goal(goal, labels), target_parts(goal, labels)
        which = goals.which.numpy()
        return cls(
            rows.copy(), written, schema, question, goals, explanation, target[which], wanted[which], usage, context,
            provenance, kind,
        )  # fmt: skip

    def __setstate__(self, state: dict[str, Any]) -> None:
        """In another process, names of rare categories are read off the rows again."""
        vars(self).update(state)
        for column in self.schema:
            column.read(self.rows[column.name])

    @property
    def features(self) -> tuple[Name, ...]:
        return self.schema.names

    @property
    def immutable(self) -> tuple[Name, ...]:
        return self.question.immutable

    @property
    def options(self) -> int:
        """How many options each row has."""
        return self.question.n

    @property
    def model_calls(self) -> int:
        """How often the model was queried."""
        return self.usage.calls

    @property
    def model_rows(self) -> int:
        """For how many different rows, over all calls."""
        return self.usage.rows

    def __len__(self) -> int:
        return int(self.explanation.status.size)

    def __repr__(self) -> str:
        counts = ", ".join(f"{count} {status}" for status, count in self.counts().items())
        return f"<Answer for {len(self.rows)} rows: {counts}>"

    def _repr_html_(self) -> str:
        """For notebooks: the first lines as a table."""
        return f"<p>{escape(repr(self))}</p>{self._as_pandas().head(NOTEBOOK_LINES).to_html()}"

    def counts(self) -> dict[str, int]:
        """Count the lines by status.

        Returns
        -------
        dict of str to int
            By status, as in `to_frame`.
        """
        names, counts = np.unique(self.explanation.status, return_counts=True)
        return dict(zip(names.tolist(), counts.tolist(), strict=True))

    def to_frame(self) -> AnyFrame:
        """Get the counterfactuals as a frame, one line per row and option, with the rows' columns, dtypes, index.

        Returns
        -------
        data frame
            Of the rows' kind. Added at the end: row, option, status, score_before, score_after, plausibility, safety,
            note (with `tdce_` before a name that the table already uses).
        """
        return self.kind.frame(self._as_pandas(), self.rows, np.repeat(np.arange(len(self.rows)), self.options))

    def _as_pandas(self) -> pd.DataFrame:
        explanation, n = self.explanation, self.options
        return add_columns(self.written, {
            "row": _labels(self.written.index),
            "option": np.tile(np.arange(n), len(self.rows)),
            "status": explanation.status.reshape(-1).astype(object),
            "score_before": np.repeat(explanation.score_before, n),
            "score_after": explanation.score_after.reshape(-1),
            "plausibility": explanation.plausibility.reshape(-1),
            "safety": explanation.safety.reshape(-1),
            "note": self._notes.reshape(-1),
        })  # fmt: skip

    def changes(self) -> AnyFrame:
        """Get the changes as a frame.

        Returns
        -------
        data frame
            One line per change: row, option, feature, before, after. The last two are text where a column has one type
            only, as in polars and pyarrow.
        """
        row, option, _ = self._changed
        cells = [change for options in self.lines for line in options for change in line.changes]
        feature, before, after = zip(*cells, strict=True) if cells else ((), (), ())
        if self.kind.columns is not None:
            feature, before, after = (tuple(map(_text, column)) for column in (feature, before, after))
        changes = pd.DataFrame(
            {
                "row": _labels(self.rows.index[row]),
                "option": option,
                "feature": pd.Series(feature, dtype=object),
                "before": pd.Series(before, dtype=object),
                "after": pd.Series(after, dtype=object),
            }
        )
        return self.kind.frame(changes)

    @cached_property
    def lines(self) -> list[list[Line]]:
        """By row, then by option."""
        explanation, n, names, notes = self.explanation, self.options, self.features, self._notes
        before, after = ({name: frame[name].array for name in names} for frame in (self.rows, self.written))
        changed: dict[tuple[int, int], list[tuple[Name, Any, Any]]] = {}
        for r, o, c in zip(*(i.tolist() for i in self._changed), strict=True):
            name = names[c]
            changed.setdefault((r, o), []).append((name, before[name][r], after[name][r * n + o]))
        reasons = self._reasons
        return [
            [
                Line(str(explanation.status[r, o]), self.target[r], float(explanation.score_before[r]),
                     float(explanation.score_after[r, o]), float(explanation.plausibility[r, o]),
                     changed.get((r, o), []),
                     notes[r, o], score_kind(self.goals.goal(r)) == "prediction", reasons.get((r, o), []),
                     explanation.notes[r, o], self.wanted[r], float(explanation.safety[r, o]))
                for o in range(n)
            ]
            for r in range(len(self.rows))
        ]  # fmt: skip

    def reasons(self) -> AnyFrame:
        """Get the principal reasons: what each change of an answer is worth.

        Returns
        -------
        data frame
            At most four per line: row, option, rank (from 1), feature, and loss, the margin to the goal, in log odds,
            that reverting this change would cost (NaN: the query budget did not suffice). Features that the schema says
            must not be named are left out.
        """
        cells = [
            (r, o, rank, *each)
            for (r, o), some in self._reasons.items()
            for rank, each in enumerate(some[:MOST_REASONS], 1)
        ]
        row, option, rank, feature, loss = zip(*cells, strict=True) if cells else ((),) * 5
        reasons = pd.DataFrame(
            {
                "row": _labels(self.rows.index[np.array(row, dtype=np.int64)]),
                "option": np.array(option, dtype=np.int64),
                "rank": np.array(rank, dtype=np.int64),
                "feature": pd.Series(feature, dtype=object),
                "loss": np.array(loss, dtype=np.float64),
            }
        )
        return self.kind.frame(reasons)

    def sentences(self, language: str = "en", audience: Audience = "applicant") -> list[str]:
        """Write a sentence for each line of the answer.

        Parameters
        ----------
        language : str, default "en"
            "en" or "de", or with a region, "de-CH".
        audience : {"applicant", "analyst"}, default "applicant"
            An analyst may read what the schema keeps from applicants.

        Returns
        -------
        list of str
            In the order of `to_frame`.
        """
        speaker = self.speaker(language, audience)
        return [speaker.sentence(line) for options in self.lines for line in options]

    def letters(self, language: str = "en", audience: Audience = "applicant") -> list[str]:
        """Write a short text for each line of the answer, for a letter.

        Parameters
        ----------
        language : str, default "en"
            "en" or "de", or with a region, "de-CH".
        audience : {"applicant", "analyst"}, default "applicant"
            An analyst may read what the schema keeps from applicants.

        Returns
        -------
        list of str
            In the order of `to_frame`.
        """
        speaker = self.speaker(language, audience)
        return [speaker.letter(line) for options in self.lines for line in options]

    def speaker(self, language: str = "en", audience: Audience = "applicant") -> Speaker:
        """Get the object that puts lines into words.

        Parameters
        ----------
        language : str, default "en"
            "en" or "de", or with a region, "de-CH".
        audience : {"applicant", "analyst"}, default "applicant"
            An analyst may read what the schema keeps from applicants.

        Returns
        -------
        Speaker
            With methods for sentences, letters, headlines and bullets.
        """
        return Speaker.of(self.schema, language, audience)

    def to_html(
        self,
        path: str | os.PathLike[str],
        *,
        title: str | None = None,
        language: str = "en",
        audience: Audience = "analyst",
        metrics: Mapping[str, float] | None = None,
        population: Population | None = None,
    ) -> None:
        """Write a report: one self-contained page with a summary, a card for each person, and what changes over all.

        Parameters
        ----------
        path : str or path
            The file, FILE.html.
        title : str, optional
            The headline.
        language : str, default "en"
            "en" or "de", or with a region, "de-CH".
        audience : {"analyst", "applicant"}, default "analyst"
            Applicants do not see what the schema keeps for analysts.
        metrics : mapping, optional
            What `Explainer.evaluate` returned; without it, the page has no metrics.
        population : Population, optional
            The people beside whom everybody is shown, from `Explainer.population(table)`. Default: the training rows if
            the explainer keeps them, else its synthetic rows.
        """
        where, speaker = check_path("path", path), self.speaker(language, audience)
        headline = check_optional("title", title, check_text)
        check_writable(where, endings=None)
        if not isinstance(population, Population | None):
            raise InputError(f"population is {show(population)}; give what Explainer.population(table) returned")
        beside = self.context.population if population is None and self.context is not None else population
        barred = frozenset(name for name in self.features if not speaker.may_name(name))
        view = View(
            self.rows, self.written, self.schema, self.question, self.goals, self.explanation, self.context, beside,
            barred, self.model_calls, self.model_rows,
        )  # fmt: skip
        write_whole(where, render_page(view, self.lines, speaker, headline, metrics).encode())

    def evidence(self, secret: str | os.PathLike[str] | None = None) -> list[dict[str, Any]]:
        """Get the evidence of what was asked and answered, as `to_evidence` writes it (docs/evidence.md).

        Parameters
        ----------
        secret : str or path, optional
            A file with a secret; with it, the records hold hashes in place of values.

        Returns
        -------
        list of dict
            One record per line of the file.
        """
        from tdce.audit import Chain, keys  # only here: whoever writes no evidence does not need it

        chain = Chain(None if secret is None else keys.load_secret(secret))
        return [json.loads(line) for line in (*chain.answer_lines(self), chain.end())]

    def to_evidence(
        self,
        path: str | os.PathLike[str],
        *,
        sign: str | os.PathLike[str] | None = None,
        secret: str | os.PathLike[str] | None = None,
    ) -> None:
        """Write evidence that `tdce verify` checks: JSON lines, each with the hash of the one before.

        Parameters
        ----------
        path : str or path
            The file.
        sign : str or path, optional
            A file with a private key (Ed25519), to sign with; `tdce keys` makes one.
        secret : str or path, optional
            A file with a secret. With it the lines hold no value of any row, only hashes that nobody without the secret
            can guess.
        """
        from tdce.audit import keys, write_evidence

        where = check_path("path", path)
        check_writable(where, endings=None)
        signer, hidden = (
            None if sign is None else keys.load_signer(sign),
            None if secret is None else keys.load_secret(secret),
        )
        write_evidence(where, [self], signer, hidden)

    @cached_property
    def _notes(self) -> NDArray[np.object_]:
        """(rows, options) for scripts."""
        english, namer = (
            load_catalogue("en"),
            PlainNames(column.name for column in self.schema if not column.words.named),
        )
        texts = np.full(self.explanation.notes.shape, "", dtype=object)
        for at, notes in np.ndenumerate(self.explanation.notes):
            if notes:
                texts[at] = note_text(notes, english, namer)
        return texts

    @cached_property
    def _reasons(self) -> dict[tuple[int, int], list[tuple[Name, float]]]:
        """By row and option, where something that may be named has changed."""
        named = [column.words.named and column.name not in self.schema.followers for column in self.schema]
        reasons: dict[tuple[int, int], list[tuple[Name, float]]] = {}
        losses = np.full(self.explanation.raw.shape, np.nan) if self.explanation.loss is None else self.explanation.loss
        for r, o, c in zip(*(i.tolist() for i in self._changed), strict=True):
            if named[c]:
                reasons.setdefault((r, o), []).append((self.features[c], float(losses[r, o, c])))
        return {at: rank_reasons(some) for at, some in reasons.items()}

    @cached_property
    def _changed(self) -> tuple[Positions, ...]:
        """Positions (row, option, feature) of all that changed, in this order."""
        return np.nonzero(~same(self.explanation.raw, self.explanation.own[:, None]))


ANSWER_COLUMNS = ("row", "option", "status", "score_before", "score_after", "plausibility", "safety", "note")
"""The columns that an answer has after those of the table."""


def empty_frame(encoder: Encoder, rows: pd.DataFrame) -> pd.DataFrame:
    """What `Answer.to_frame` returns for no rows of this table: its columns and their dtypes."""
    none = rows.head(0)
    numbers, texts = np.zeros(0), np.zeros(0, dtype=object)
    values = _labels(none.index), np.zeros(0, dtype=np.int64), texts, numbers, numbers, numbers, numbers, texts
    raw = encoder.read(none)
    return add_columns(encoder.write(raw, none, raw), dict(zip(ANSWER_COLUMNS, values, strict=True)))


def add_columns(frame: pd.DataFrame, columns: Mapping[str, Any]) -> pd.DataFrame:
    """A frame with further columns, with `tdce_` before names that it already has."""
    added = {unused_name(name, frame.columns): pd.Series(v, index=frame.index) for name, v in columns.items()}
    return pd.concat([frame, pd.DataFrame(added, index=frame.index)], axis=1)


def unused_name(name: str, taken: Container[Any]) -> str:
    """The name, with `tdce_` before it until it is not taken."""
    while name in taken:
        name = f"tdce_{name}"
    return name


def _text(cell: Any) -> str | None:
    return None if pd.isna(cell) else str(plain(cell))


def _labels(index: pd.Index[Any]) -> Any:
    """Index labels as a column: a plain index keeps its dtype, several levels become tuples."""
    if isinstance(index, pd.MultiIndex):
        return np.fromiter(index, dtype=object, count=len(index))
    return index.array
