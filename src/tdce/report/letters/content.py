"""The content of a letter, part by part; a template arranges the parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date as Date
from datetime import datetime
from math import isnan
from typing import Any

import pandas as pd

from tdce._core import InputError, Name, is_blank, is_name, listing, plain, show, suggest
from tdce.methods import LOW_SAFETY, Line, Status
from tdce.report.language.formats import write_date
from tdce.report.language.speaker import Speaker, capitalise
from tdce.schema import json_key


@dataclass(frozen=True)
class Way:
    """One way to another decision."""

    sentence: str  # the whole way
    lead: str  # as a list: its beginning, "Your application would be approved if",
    points: list[str]  # what would have to change, with the punctuation and words between,
    consequences: str  # and the consequences; empty if there are none
    safety: str  # how safe it is; empty if unknown


@dataclass(frozen=True)
class Letter:
    """The parts of a letter; templates may use these names."""

    id: str  # the person's id, as in the file name
    language: str
    date: str
    sender: list[str]  # lines
    subject: str
    salutation: str
    decision: str
    reasons: list[str]  # the principal reasons
    ways: list[Way]  # each would be enough; empty: nothing has to change, or none was found
    no_way: str  # why there is no way; empty if there is one, or nothing has to change
    notice: str  # what the letter is not
    contact: str  # whom to ask
    closing: str
    row: Mapping[Any, str]  # the person's columns that may be named, as people write them
    words: Mapping[str, str]  # headings in the letter's language


@dataclass(frozen=True)
class Stationery:
    """What all letters share, and which columns hold a person's name and id."""

    date: Date | None = None  # None: today
    sender: str = ""  # may have several lines
    contact: str = ""
    subject: str = ""
    name: Name | None = None  # the column with people's names, for the salutation
    id: Name | None = None  # the column with their ids; None: the labels of the rows
    today: Date = field(default_factory=Date.today)


def compose_letters(
    rows: pd.DataFrame,
    lines: Sequence[Sequence[Line]],
    reasons: Sequence[Sequence[Name]],  # the principal reasons against each row
    speaker: Speaker,
    stationery: Stationery,
) -> list[Letter]:
    """A letter for each row, in row order."""
    ids, names = person_ids(rows, stationery.id), _names(rows, stationery.name)
    cells = {name: rows.iloc[:, i].array for i, name in enumerate(rows.columns)}
    return [
        _letter(ids[i], names[i], {name: cells[name][i] for name in cells}, lines[i], reasons[i], speaker, stationery)
        for i in range(len(rows))
    ]


def check_date(given: Any) -> Date | None:
    """Check a date, or a text such as 2026-01-31, and return the date; None stays None."""
    if given is None or (isinstance(given, Date) and not isinstance(given, datetime)):
        return given
    try:
        return Date.fromisoformat(given.strip())
    except (AttributeError, TypeError, ValueError):
        raise InputError(f"date is {show(given)}; it must be a date, such as 2026-01-31") from None


def person_ids(rows: pd.DataFrame, column: Name | None) -> list[str]:
    """The id of each row: the cell of a column, else the row's label. All are present and distinct."""
    cells = rows.index.tolist() if column is None else _column(rows, column, "id").tolist()
    what = "the index" if column is None else f"column {show(column)}"
    ids: dict[str, int] = {}
    for i, cell in enumerate(cells):
        if is_blank(cell) or (pd.api.types.is_scalar(cell) and pd.isna(cell)):
            raise InputError(f"{what} has no id in row {i + 1}; each letter needs one")
        text = " ".join(map(str, cell)) if isinstance(cell, tuple) else json_key(plain(cell))
        if text in ids:
            raise InputError(f"{what} has the id {show(text)} twice, in rows {ids[text] + 1} and {i + 1}; each letter "
                             "needs one of its own")  # fmt: skip
        ids[text] = i
    return list(ids)


def _column(rows: pd.DataFrame, column: Name, what: str) -> pd.Series[Any]:
    if not is_name(column):
        raise InputError(f"{what} is {show(column)}; it must be the name of a column")
    if column not in rows.columns:
        hint = suggest(column, rows.columns)
        raise InputError(f"{what}: there is no column {show(column)}; {hint}known: {listing(rows.columns)}")
    found = rows[column]
    if isinstance(found, pd.DataFrame):
        raise InputError(f"{what}: column {show(column)} appears twice; rename or drop one of them")
    return found


def _names(rows: pd.DataFrame, column: Name | None) -> list[str]:
    """People's names; empty where missing."""
    if column is None:
        return [""] * len(rows)
    return ["" if pd.isna(cell) else " ".join(str(cell).split()) for cell in _column(rows, column, "name")]


def _letter(
    id: str,
    name: str,
    row: Mapping[Name, Any],
    lines: Sequence[Line],
    reasons: Sequence[Name],
    speaker: Speaker,
    stationery: Stationery,
) -> Letter:
    text, first = speaker.text, lines[0]
    ways = _ways(lines, speaker)
    needs_way = first.status != Status.ALREADY
    facts = [speaker.fact(feature, row[feature]) for feature in reasons] if needs_way else []
    day = write_date(speaker.messages, stationery.date or stationery.today)
    return Letter(
        id=id,
        language=speaker.language,
        date=str(day),
        sender=[line.strip() for line in stationery.sender.splitlines() if line.strip()],
        subject=stationery.subject or text("letter_subject"),
        salutation=text("letter_dear_name", name=name) if name else text("letter_dear"),
        decision=text("letter_opening", decision=_decision(first, speaker)),
        reasons=facts,
        ways=ways,
        no_way=_no_way(first, speaker) if needs_way and not ways else "",
        notice=text("letter_notice" if ways else "letter_notice_alone"),
        contact=text("letter_contact", contact=stationery.contact.strip())
        if stationery.contact.strip()
        else text("letter_contact_us"),
        closing=text("letter_closing_name" if name else "letter_closing"),
        row={str(column): _cell(column, row[column], speaker) for column in row if speaker.may_name(column)},
        words={
            "why": text("letter_why"),
            "change": text("letter_change_number" if first.number else "letter_change"),
            "not": text("letter_not"),
            "whom": text("letter_whom"),
            "reasons": text("letter_reasons", count=len(facts)),
            "ways": text("letter_ways"),
        },
    )


def _cell(column: Name, cell: Any, speaker: Speaker) -> str:
    """A cell as people write it; cells of pass-through columns, such as an id or a postcode, are unchanged."""
    if is_blank(cell) or (pd.api.types.is_scalar(cell) and pd.isna(cell)):
        return ""
    return speaker.value(column, cell) if column in speaker.words else json_key(plain(cell))


def _decision(line: Line, speaker: Speaker) -> str:
    """The decision, in the words of the schema or in plain words."""
    met = line.status == Status.ALREADY
    if phrase := speaker.outcome_form(line, "fact" if met else "refusal"):
        return capitalise(phrase)
    if line.number and not met:
        before = speaker.score(line.before, line.number)
        return speaker.text("letter_decision_number", before=before, target=speaker.target(line))
    return speaker.text("letter_decision" if met else "letter_decision_not", target=speaker.target(line))


def _ways(lines: Sequence[Line], speaker: Speaker) -> list[Way]:
    """The options that the model accepts, without duplicates."""
    ways: dict[str, Way] = {}
    for line in lines:
        if line.status == Status.VALID and speaker.clauses(line):
            way = _way(line, speaker)
            ways.setdefault(way.sentence, way)
    return list(ways.values())


def _way(line: Line, speaker: Speaker) -> Way:
    *clauses, last = speaker.clauses(line)
    marks = [",", f" {speaker.text('and')}"]
    points = [f"{clause}{marks[i == len(clauses) - 1]}" for i, clause in enumerate(clauses)]
    lead, end = speaker.lead(line)
    return Way(
        speaker.sentence(line), lead, [*points, f"{last}{end}"], speaker.consequences(line), _safety(line, speaker)
    )


def _no_way(line: Line, speaker: Speaker) -> str:
    """Why no way is given: none was found, or nothing may change."""
    return " ".join([speaker.text("letter_no_way"), *([speaker.sentence(line)] if line.changes else [])])


def _safety(line: Line, speaker: Speaker) -> str:
    """How many of ten retrained models would decide the same."""
    if isnan(line.safety):
        return ""
    count = round(10 * line.safety)
    if line.safety >= LOW_SAFETY:
        return speaker.text("letter_safe_all") if count == 10 else speaker.text("letter_safe", count=count)
    return speaker.text("letter_unsafe", count=count) if count else speaker.text("letter_unsafe_none")
