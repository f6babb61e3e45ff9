"""The answer to a question about rows: frames for scripts, sentences and reports for people."""

from __future__ import annotations

import json
import os
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date as Date
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, get_args

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from tdce._core import (
    PANDAS,
    AnyFrame,
    Floats,
    FrameKind,
    InputError,
    Name,
    Positions,
    Value,
    check_choice,
    check_flag,
    check_optional,
    check_path,
    check_text,
    is_name,
    plain,
    same,
    show,
)
from tdce.datasets import check_new_folder, check_pages, check_writable, write_pages, write_whole
from tdce.explainer.answer_views import Asked, answer_burden, answer_html, plot_line, plot_people
from tdce.explainer.provenance import Provenance
from tdce.explainer.reason_source import ReasonSource
from tdce.methods import (
    GROUPS,
    MOST_REASONS,
    Agreement,
    Explanation,
    Line,
    Question,
    ReasonMethod,
    Reasons,
    rank_reasons,
    rank_shortfalls,
    reasons_agreement,
)
from tdce.models import Goals, Model, Usage, describe_goal, score_kind, target_parts
from tdce.report import (
    MAX_COMPARED_PEOPLE,
    Audience,
    Burden,
    Context,
    Drawings,
    Form,
    Letter,
    PlainNames,
    Population,
    Speaker,
    Stationery,
    Template,
    View,
    check_date,
    check_forms,
    compose_letters,
    file_names,
    load_catalogue,
    note_text,
    person_labels,
    render_applicant,
    render_page,
    write_letter,
    write_letters,
)
from tdce.schema import Encoder, FeasibleSet, Schema

if TYPE_CHECKING:
    from matplotlib.figure import Figure

REASON_METHODS = get_args(ReasonMethod)


@dataclass(frozen=True, eq=False, repr=False)
class Answer:
    """The answer to a question: one line for every row and option, in the order of the rows.

    An answer can be pickled and copied. It holds the explainer's model, for `plot`, and a source of the reasons that
    compare people with others (`reasons`); a pickled answer holds these reasons instead.

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

    rows: pd.DataFrame  # the rows as given, converted to pandas
    written: pd.DataFrame  # the counterfactuals, one line per row and option
    schema: Schema
    question: Question  # including the immutable features and the costs of the schema
    goals: Goals  # one per row
    explanation: Explanation
    target: NDArray[Any]  # (rows,) the targets in words
    wanted: NDArray[Any]  # (rows,) the targets as tuples of `TargetPart`
    usage: Usage  # how often the model was queried
    context: Context | None = None  # what a report says about the explainer
    provenance: Provenance | None = None  # where the answer comes from
    asked: Asked | None = None  # the model, for `plot`; not pickled
    reason_source: ReasonSource | None = None  # source of the reasons that compare people with others; not pickled
    kind: FrameKind = PANDAS  # the library of the rows, and of the frames returned

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
        model: Model | None = None,
        reason_source: ReasonSource | None = None,
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
            provenance, None if model is None else Asked(model, feasible.constraints), reason_source, kind,
        )  # fmt: skip

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the model, and replace the reason source by the shortfalls that it gives."""
        return {**vars(self), "asked": None, "shortfall": self.shortfall, "reason_source": None}

    def __copy__(self) -> Self:
        """Copy everything: unlike a pickle, a copy stays in this process, where the model is available."""
        copied = object.__new__(type(self))
        vars(copied).update(vars(self))
        return copied

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Read the names of rare categories, which are not pickled, from the rows again."""
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
        """Number of options per row."""
        return self.question.n

    @property
    def model_calls(self) -> int:
        """Number of calls of the model."""
        return self.usage.calls

    @property
    def model_rows(self) -> int:
        """Number of rows that the model was queried for: distinct rows of each call, summed over all calls."""
        return self.usage.rows

    def __len__(self) -> int:
        return int(self.explanation.status.size)

    def __repr__(self) -> str:
        counts = ", ".join(f"{count} {status}" for status, count in self.counts().items())
        return f"<Answer for {len(self.rows)} rows: {counts}>"

    def _repr_html_(self) -> str:
        """Show the changes and the scores of the first lines in a notebook."""
        return answer_html(self)

    def counts(self) -> dict[str, int]:
        """Count the lines by status.

        Returns
        -------
        dict of str to int
            The number of lines by status, as in `to_frame`.
        """
        names, counts = np.unique(self.explanation.status, return_counts=True)
        return dict(zip(names.tolist(), counts.tolist(), strict=True))

    def to_frame(self) -> AnyFrame:
        """Get the counterfactuals as a frame, one line per row and option, with the rows' columns, dtypes, index.

        Returns
        -------
        data frame
            A frame of the rows' kind. Added at the end: row, option, status, score_before, score_after, plausibility,
            safety, note (with the prefix `tdce_` where the table already has a column of that name).
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
            One line per change: row, option, feature, before, after. The last two are text in polars and pyarrow, where
            a column has a single type.
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
        """The lines by row, then by option."""
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

    def reasons(self, method: ReasonMethod = "way", table: AnyFrame | None = None) -> AnyFrame:
        """Get the principal reasons against each person: at most four, and never a feature that helped.

        Parameters
        ----------
        method : {"way", "passing", "applicants"}, default "way"
            "way": what each change of an answer is worth. The other two are named by the official commentary on
            Regulation B, 12 CFR 1002.9(b)(2)-5: the features on which a person falls furthest below applicants at or
            slightly above the passing score, or below all applicants. They include features that cannot change.
        table : data frame, optional
            The applicants to compare with. Default: the synthetic rows of the explainer.

        Returns
        -------
        data frame
            Row, option, rank (from 1), feature, and loss. For "way", per option: the margin, in log odds, that
            reverting this change alone would cost (NaN if the query budget did not suffice). For the others, per row,
            with option 0: the margin that this value costs compared with the average number, or the most common
            category, of the group. Features that the schema says must not be named are left out.

        Raises
        ------
        InputError
            If the model cannot be queried about the people to compare with: the query budget is used up, or a table is
            given and this answer was pickled or deep-copied.

        Examples
        --------
        >>> import tdce
        >>> data = tdce.load("german")
        >>> explainer = tdce.Explainer(hidden=32, steps=100).fit(data.frame, label=data.label, favourable="good")
        >>> answer = explainer.explain(data.frame[explainer.predict(data.frame) == "bad"].head(2))
        >>> bool((answer.reasons("passing")["loss"] > 0).all())
        True
        """
        if check_choice("method", method, REASON_METHODS) == "way":
            cells = [
                (r, o, rank, *each)
                for (r, o), some in self._reasons.items()
                for rank, each in enumerate(some[:MOST_REASONS], 1)
            ]
        else:
            cells = [
                (r, 0, rank, *each)
                for r, some in enumerate(self._compared(table)[method])
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

    def reasons_agreement(self, table: AnyFrame | None = None) -> AnyFrame:
        """Measure how far the three methods of `reasons` agree.

        Parameters
        ----------
        table : data frame, optional
            The applicants to compare with. Default: the synthetic rows of the explainer.

        Returns
        -------
        data frame
            One line per pair of methods: one, other, people (for whom both give a reason), first (share of these people
            whose first reason is the same), contained (share for whom the longer list has all reasons of the shorter)
            and overlap (mean share of the shorter list that is in the longer). "way" is taken from the first option.
        """
        return self.kind.frame(pd.DataFrame(self.compare_reasons(table), columns=list(Agreement._fields)))

    def compare_reasons(self, table: AnyFrame | None = None) -> list[Agreement]:
        """Measure the same as `reasons_agreement`, as plain values."""
        way: list[Reasons] = [self._reasons.get((r, 0), []) for r in range(len(self.rows))]
        return reasons_agreement({"way": way, **self._compared(table)})

    @cached_property
    def shortfall(self) -> Floats | None:
        """(2, rows, features) `group_shortfalls` against synthetic rows; None: the model cannot be queried for them."""
        return None if self.reason_source is None else self.reason_source.shortfalls(self.explanation, self.goals)

    @property
    def group_reasons(self) -> dict[ReasonMethod, list[Reasons]] | None:
        """By method: all reasons of each row that compare it with a group; None: not known."""
        return None if self.shortfall is None else self._ranked(self.shortfall)

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
            The sentences, in the order of `to_frame`.
        """
        speaker = self.speaker(language, audience)
        return [speaker.sentence(line) for options in self.lines for line in options]

    def letters(
        self,
        language: str = "en",
        *,
        form: Literal["txt", "html"] = "txt",
        template: str | os.PathLike[str] | None = None,
        date: Date | str | None = None,
        sender: str = "",
        contact: str = "",
        subject: str = "",
        name: Name | None = None,
    ) -> list[str]:
        """Write a letter to each person: the decision, its principal reasons, what would change it, and a contact.

        Parameters
        ----------
        language : str, default "en"
            "en" or "de", or with a region, "de-CH".
        form : {"txt", "html"}, default "txt"
            Plain text, or an HTML page.
        template : str or path, optional
            A Jinja template in place of the default one (docs/language.md).
        date : date or str, optional
            The date of the letters, such as "2026-01-31". Default: today.
        sender : str, optional
            The sender: a name and optionally an address, over several lines.
        contact : str, optional
            The contact for questions: an office, an address or a number, as it should appear in the letter.
        subject : str, optional
            The line above the salutation.
        name : str, optional
            The column with people's names, for the salutation.

        Returns
        -------
        list of str
            One letter per row, in the order of the rows. A letter says that it is no promise, and names nothing that
            the schema keeps from applicants.
        """
        page, letters = self._letters(language, template, date, sender, contact, subject, name, None)
        form = check_choice("form", form, ("txt", "html"))
        return [write_letter(letter, page, form).decode() for letter in letters]

    def to_letters(
        self,
        folder: str | os.PathLike[str],
        language: str = "en",
        *,
        forms: Sequence[Form] = ("html",),
        id: Name | None = None,
        template: str | os.PathLike[str] | None = None,
        date: Date | str | None = None,
        sender: str = "",
        contact: str = "",
        subject: str = "",
        name: Name | None = None,
    ) -> list[Path]:
        """Write the letters to a new folder, one file per person and form: either all of them or none.

        Parameters
        ----------
        folder : str or path
            The folder. It must be empty or not exist yet.
        language : str, default "en"
            "en" or "de", or with a region, "de-CH".
        forms : sequence of {"html", "txt", "docx"}, default ("html",)
            HTML pages, plain text, Word documents (`pip install 'tdce[letters]'`).
        id : str, optional
            The column that names the files. Default: the labels of the rows. Characters not allowed in file names are
            replaced, and a hash of the id is appended.
        template, date, sender, contact, subject, name
            As in `letters`.

        Returns
        -------
        list of path
            The files, in the order of the rows.
        """
        where = check_path("folder", folder)
        wanted = check_forms(forms)
        check_new_folder(where)
        page, letters = self._letters(language, template, date, sender, contact, subject, name, id)
        return write_letters(where, letters, page, wanted)

    def _letters(
        self,
        language: str,
        template: str | os.PathLike[str] | None,
        date: Date | str | None,
        sender: str,
        contact: str,
        subject: str,
        name: Name | None,
        id: Name | None,
    ) -> tuple[Template, list[Letter]]:
        """The checked template, and the content of each letter."""
        page = Template.read(None if template is None else check_path("template", template))
        speaker = self.speaker(language)
        stationery = Stationery(
            check_date(date), check_text("sender", sender), check_text("contact", contact),
            check_text("subject", subject), name, id,
        )  # fmt: skip
        return page, compose_letters(self.rows, self.lines, self._named_reasons(speaker), speaker, stationery)

    def _named_reasons(self, speaker: Speaker) -> list[list[Name]]:
        """By row, the principal reasons of its first option that the reader may be told, by rank."""
        schema = self.schema
        for column in schema:
            if not speaker.may_name(column.name):
                schema = schema.change(column.name, words={**column.words.entry(), "named": False})
        numbered = replace(self, rows=self.rows.reset_index(drop=True), schema=schema)  # labels may repeat
        reasons: list[list[Name]] = [[] for _ in range(len(self.rows))]
        for row, option, feature in numbered.reasons()[["row", "option", "feature"]].itertuples(index=False):
            if option == 0:
                reasons[row].append(feature)
        return reasons

    def speaker(self, language: str = "en", audience: Audience = "applicant") -> Speaker:
        """Get the object that turns lines into words.

        Parameters
        ----------
        language : str, default "en"
            "en" or "de", or with a region, "de-CH".
        audience : {"applicant", "analyst"}, default "applicant"
            An analyst may read what the schema keeps from applicants.

        Returns
        -------
        Speaker
            An object with methods for sentences, letters, headlines and bullets.
        """
        return Speaker.of(self.schema, language, audience)

    def to_html(
        self,
        path: str | os.PathLike[str],
        *,
        id: Name | None = None,
        title: str | None = None,
        language: str = "en",
        audience: Audience = "analyst",
        metrics: Mapping[str, float] | None = None,
        population: Population | None = None,
        burden: Name | None = None,
        reasons: bool | None = None,
    ) -> None:
        """Write a report: for an analyst, one self-contained page about everybody; for applicants, a page each.

        Parameters
        ----------
        path : str or path
            The file, FILE.html. For applicants: a new folder, or FILE.zip, with one file per person, which holds nobody
            else's data and no settings, hashes or versions; for a single person, FILE.html is enough.
        id : column name, optional
            How people are named: by a column of the rows that the model does not see, or by the name of the index.
            Default: by their index labels.
        title : str, optional
            The headline.
        language : str, default "en"
            "en" or "de", or with a region, "de-CH".
        audience : {"analyst", "applicant"}, default "analyst"
            Applicants do not see what the schema keeps for analysts.
        metrics : mapping, optional
            What `Explainer.evaluate` returned; without it, the page has no metrics.
        population : Population, optional
            The population that each person is compared with, from `Explainer.population(table)`. Default: the training
            rows if the explainer keeps them, else its synthetic rows.
        burden : column name, optional
            A column of the rows, for a section with the burden of its groups. For analysts only.
        reasons : bool, optional
            Whether to compare the principal reasons of three methods (`reasons_agreement`), for which the model is
            queried. Default: for up to 1,000 people.

        Raises
        ------
        InputError
            If a setting is not usable, or a single page for applicants is asked for several people.
        """
        where, speaker = check_path("path", path), self.speaker(language, audience)
        headline = check_optional("title", title, check_text)
        compare = check_optional("reasons", reasons, check_flag)
        if not isinstance(population, Population | None):
            raise InputError(f"population is {show(population)}; give what Explainer.population(table) returned")
        labels = person_labels(self.rows, id, self.features)
        names = labels if id is not None else [speaker.text("report_row", label=label) for label in labels]
        beside = self.context.population if population is None and self.context is not None else population
        barred = frozenset(name for name in self.features if not speaker.may_name(name))
        if burden is not None and (speaker.audience == "applicant" or (is_name(burden) and burden in barred)):
            raise InputError(f"burden by {show(burden)} is not for this audience; leave it out, or name another column")
        groups = None if burden is None else answer_burden(self, burden, speaker)
        if speaker.audience == "applicant":
            check_pages(where, len(self.rows))
            drawings = Drawings()
            pages = (
                render_applicant(
                    one._view(speaker, [name], id, beside), one.lines, speaker, drawings, headline
                ).encode()
                for one, name in zip(map(self._person, range(len(self.rows))), names, strict=True)
            )
            write_pages(where, zip((f"{name}.html" for name in file_names(labels)), pages, strict=True))
            return
        check_writable(where, endings=None)
        view = self._view(speaker, names, id, beside)
        if compare or (compare is None and len(self.rows) <= MAX_COMPARED_PEOPLE and self.shortfall is not None):
            view = replace(view, group_reasons=self._compared(None), agreement=self.compare_reasons())
        write_whole(where, render_page(view, self.lines, speaker, headline, metrics, groups).encode())

    def burden(self, by: Name) -> Burden:
        """Measure how much a favourable decision asks of groups of people, by their first options.

        Parameters
        ----------
        by : column name
            A column of the rows, protected or any other; numbers are grouped by quartile.

        Returns
        -------
        Burden
            By group: the share with a valid answer, mean distance, features changed and safety, with 95 % intervals.
        """
        return answer_burden(self, by)

    def plot(self, row: Any = None, *, option: int = 0) -> Figure:
        """Plot how the score moves from its present to its new value, change by change.

        The change that is worth most comes first (see `reasons`). The model is queried for the scores in between.

        Parameters
        ----------
        row : optional
            The index label of a row. Default: the first row with a change.
        option : int, default 0
            Which of the row's options to plot.

        Returns
        -------
        matplotlib.figure.Figure
            A waterfall; the dashed line is the score that must be reached.
        """
        return plot_line(self, row, option)

    def plot_people(self) -> Figure:
        """Plot each person's score before and after the first option, and the distance and safety of that option.

        Returns
        -------
        matplotlib.figure.Figure
            Scores on the left, one line per person; distance and safety on the right, one dot per person.
        """
        return plot_people(self)

    def evidence(self, secret: str | os.PathLike[str] | None = None) -> list[dict[str, Any]]:
        """Get the evidence of the question and its answers, as `to_evidence` writes it (docs/evidence.md).

        Parameters
        ----------
        secret : str or path, optional
            A file with a secret. With it, the records hold hashes in place of values.

        Returns
        -------
        list of dict
            One record per line of the file.
        """
        from tdce.audit import Chain, keys  # imported here, since only evidence needs it

        chain = Chain(None if secret is None else keys.load_secret(secret))
        return [json.loads(line) for line in (*chain.answer_lines(self), chain.end())]

    def to_evidence(
        self,
        path: str | os.PathLike[str],
        *,
        sign: str | os.PathLike[str] | None = None,
        secret: str | os.PathLike[str] | None = None,
    ) -> None:
        """Write evidence that `tdce verify` can check: JSON lines, each with the hash of the one before.

        Parameters
        ----------
        path : str or path
            The file.
        sign : str or path, optional
            A file with a private key (Ed25519) to sign with; `tdce keys` makes one.
        secret : str or path, optional
            A file with a secret. With it, the lines hold no value of any row, only hashes whose values cannot be
            guessed without the secret.
        """
        from tdce.audit import keys, write_evidence

        where = check_path("path", path)
        check_writable(where, endings=None)
        signer, hidden = (
            None if sign is None else keys.load_signer(sign),
            None if secret is None else keys.load_secret(secret),
        )
        write_evidence(where, [self], signer, hidden)

    def _view(self, speaker: Speaker, names: list[str], id: Name | None, beside: Population | None) -> View:
        hidden = frozenset(name for name in self.features if not speaker.may_name(name))
        return View(
            self.rows, self.written, self.schema, self.question, self.goals, self.explanation, self.context, beside,
            hidden, self.model_calls, self.model_rows, names, id,
        )  # fmt: skip

    def _person(self, row: int) -> Self:
        """The answer of one row, for showing; it has no reason source."""
        at, n = np.array([row]), self.options
        return replace(
            self, rows=self.rows.iloc[at], written=self.written.iloc[row * n : (row + 1) * n],
            goals=self.goals.take(torch.from_numpy(at)), explanation=self.explanation.take(at),
            target=self.target[at], wanted=self.wanted[at], reason_source=None,
        )  # fmt: skip

    @cached_property
    def _notes(self) -> NDArray[np.object_]:
        """(rows, options) the notes as text, for scripts."""
        english, namer = (
            load_catalogue("en"),
            PlainNames(column.name for column in self.schema if not column.words.named),
        )
        texts = np.full(self.explanation.notes.shape, "", dtype=object)
        for at, notes in np.ndenumerate(self.explanation.notes):
            if notes:
                texts[at] = note_text(notes, english, namer)
        return texts

    def _compared(self, table: AnyFrame | None) -> dict[ReasonMethod, list[Reasons]]:
        """`group_reasons`, against a table if one is given; an error if they are not known."""
        shortfall = self.shortfall
        if table is not None:
            if self.reason_source is None:
                raise InputError(
                    "this is a copy of an answer without the model, so no table can be compared; "
                    "use the answer that explain returned, or leave table out"
                )
            shortfall = self.reason_source.shortfalls(self.explanation, self.goals, table)
        if shortfall is None:
            way_out = (
                "use the answer that explain returned"
                if self.question.max_model_rows is None
                else f"raise max_model_rows, which is {self.question.max_model_rows:,}"
            )
            raise InputError(f"these reasons need more queries of the model; {way_out}, or use the method 'way'")
        return self._ranked(shortfall)

    def _ranked(self, shortfall: Floats) -> dict[ReasonMethod, list[Reasons]]:
        hidden = [column.name for column in self.schema if not column.words.named]
        return {
            method: [rank_shortfalls(row, self.features, hidden) for row in each]
            for method, each in zip(GROUPS, shortfall, strict=True)
        }

    @cached_property
    def _reasons(self) -> dict[tuple[int, int], list[tuple[Name, float]]]:
        """Reasons by row and option, where a feature that may be named has changed."""
        named = [column.words.named and column.name not in self.schema.followers for column in self.schema]
        reasons: dict[tuple[int, int], list[tuple[Name, float]]] = {}
        losses = np.full(self.explanation.raw.shape, np.nan) if self.explanation.loss is None else self.explanation.loss
        for r, o, c in zip(*(i.tolist() for i in self._changed), strict=True):
            if named[c]:
                reasons.setdefault((r, o), []).append((self.features[c], float(losses[r, o, c])))
        return {at: rank_reasons(some) for at, some in reasons.items()}

    @cached_property
    def _changed(self) -> tuple[Positions, ...]:
        """Positions (row, option, feature) of all changes, in this order."""
        return np.nonzero(~same(self.explanation.raw, self.explanation.own[:, None]))


ANSWER_COLUMNS = ("row", "option", "status", "score_before", "score_after", "plausibility", "safety", "note")
"""The columns that an answer has after those of the table."""


def empty_frame(encoder: Encoder, rows: pd.DataFrame) -> pd.DataFrame:
    """An empty `Answer.to_frame` for a table like `rows`, with its columns and their dtypes."""
    none = rows.head(0)
    numbers, texts = np.zeros(0), np.zeros(0, dtype=object)
    values = _labels(none.index), np.zeros(0, dtype=np.int64), texts, numbers, numbers, numbers, numbers, texts
    raw = encoder.read(none)
    return add_columns(encoder.write(raw, none, raw), dict(zip(ANSWER_COLUMNS, values, strict=True)))


def add_columns(frame: pd.DataFrame, columns: Mapping[str, Any]) -> pd.DataFrame:
    """A frame with further columns, with the prefix `tdce_` before names that it already has."""
    added = {unused_name(name, frame.columns): pd.Series(v, index=frame.index) for name, v in columns.items()}
    return pd.concat([frame, pd.DataFrame(added, index=frame.index)], axis=1)


def unused_name(name: str, taken: Container[Any]) -> str:
    """The name, prefixed with `tdce_` until it is not taken."""
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
