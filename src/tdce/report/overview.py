"""Over all people of a report: which features change, by how much, with which others; and how groups fare."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from tdce._core import Flags, Name
from tdce.methods import Status
from tdce.report.language.formats import write_number
from tdce.report.language.speaker import Speaker, spoken_name
from tdce.report.view import View
from tdce.schema import Column

TOGETHER = 12  # features whose pairs are shown
MOST_GROUPS = 12  # of a column; the others are one group
FEWEST = 20  # people in a group; of fewer, chance says more than the group
QUARTILES_FROM = 8  # different numbers; fewer are groups themselves


def totals(view: View) -> dict[str, Any]:
    """Of the first option of everybody: how many were asked about, how many would be accepted, how they would be."""
    return _measures(view, np.ones(len(view.rows), dtype=bool))


def feature_changes(view: View, speaker: Speaker) -> list[dict[str, Any]]:
    """Features by how often the first option changes them: how often, by how much, with which other one."""
    first = view.changed[:, 0]
    people = int(first.any(axis=1).sum())
    found = []
    for i, column in view.shown:
        who = first[:, i]
        if who.any():
            found.append(
                {
                    "label": speaker.title(column.name),
                    "people": int(who.sum()),
                    "share": who.sum() / people,
                    "how": _how(view, i, column, who, speaker),
                    "with": _partner(view, i, first, who, speaker),
                }
            )
    return sorted(found, key=lambda each: -each["people"])


def pairs(view: View, speaker: Speaker) -> tuple[list[str], list[list[int]]]:
    """The features that change most, and how many people change both of each two of them."""
    first = view.changed[:, 0]
    most = sorted((i for i, _ in view.shown if first[:, i].any()), key=lambda i: -int(first[:, i].sum()))[:TOGETHER]
    counts = first[:, most].T.astype(np.int64) @ first[:, most].astype(np.int64)
    return [speaker.title(view.schema.names[i]) for i in most], counts.tolist()


def by_group(view: View, speaker: Speaker) -> list[dict[str, Any]]:
    """For every column of the input that makes groups: its groups, and how the people in each fare."""
    found = []
    for name in view.rows.columns:
        if name in view.barred:
            continue
        groups = _groups(view, name, speaker)
        if len(groups) < 2:
            continue
        lines = [{"name": text, "few": int(who.sum()) < FEWEST, **_measures(view, who)} for text, who in groups]
        known = name in view.schema.names
        found.append({"label": speaker.title(name) if known else spoken_name(name), "lines": lines})
    return found


def count(speaker: Speaker, number: int) -> str:
    return write_number(speaker.messages, number)


def _amount(column: Column, number: float, speaker: Speaker) -> str:
    """A difference: of dates and years a plain number."""
    plain = column.words.format in ("date", "year")
    return write_number(speaker.messages, number) if plain else speaker.value(column.name, number)


def _measures(view: View, who: Flags) -> dict[str, Any]:
    """Of some people; what cannot be said is None."""
    asked, valid = who & view.asked, who & view.valid
    plausible = view.explanation.plausibility[valid, 0]
    return {
        "people": int(who.sum()),
        "already": int((who & ~view.asked).sum()),
        "asked": int(asked.sum()),
        "valid": int(valid.sum()),
        "best_effort": int((who & (view.explanation.status[:, 0] == Status.BEST_EFFORT)).sum()),
        "infeasible": int((who & (view.explanation.status[:, 0] == Status.INFEASIBLE)).sum()),
        "validity": valid.sum() / asked.sum() if asked.any() else None,
        "changes": view.changed[valid, 0].sum(axis=1).mean() if valid.any() else None,
        "effort": view.effort[valid, 0].mean() if valid.any() else None,
        "plausibility": plausible.mean() if valid.any() and not np.isnan(plausible).any() else None,
    }


def _how(view: View, i: int, column: Column, who: Flags, speaker: Speaker) -> str:
    """The median step of a number, up and down; the most common new category."""
    own, new = view.explanation.own[who, i], view.explanation.raw[who, 0, i]
    if column.numbers and not np.isin(np.concatenate([own, new]), column.marks).any():
        step = new - own
        said = []
        for text, some in (("up", step[step > 0]), ("down", -step[step < 0])):
            if len(some):
                amount, people = _amount(column, float(np.median(some)), speaker), count(speaker, len(some))
                said.append(speaker.text(f"report_{text}", amount=amount, people=people))
        if said:
            return "; ".join(said)
    names = view.rows[column.name].to_numpy(dtype=object)[who], view.written[column.name].iloc[:: view.question.options]
    now, then = names[0], names[1].to_numpy(dtype=object)[who]
    (before, after), times = Counter(
        (speaker.value(column.name, a), speaker.value(column.name, b)) for a, b in zip(now, then, strict=True)
    ).most_common(1)[0]
    return speaker.text("report_most_often", before=before, after=after, people=count(speaker, times))


def _partner(view: View, i: int, first: Flags, who: Flags, speaker: Speaker) -> str:
    """The feature that most often changes too."""
    others = [(int((who & first[:, j]).sum()), -j) for j, _ in view.shown if j != i]
    people, which = max(others, default=(0, 0))
    if not people:
        return speaker.text("report_alone")
    feature = speaker.title(view.schema.names[-which])
    return speaker.text("report_partner", feature=feature, people=count(speaker, people))


def _groups(view: View, name: Name, speaker: Speaker) -> list[tuple[str, Flags]]:
    """Numbers in quarters; categories, the common ones first. None where almost everybody is a group of their own."""
    column = view.rows[name]
    if isinstance(column, pd.DataFrame):
        return []

    def text(cell: Any) -> str:
        return str(speaker.value(name, cell))

    missing = column.isna().to_numpy(dtype=bool)
    found: list[tuple[str, Flags]] = []
    known = column[~missing]
    numeric = pd.api.types.is_numeric_dtype(column.dtype) and not pd.api.types.is_bool_dtype(column.dtype)
    if numeric and known.nunique() >= QUARTILES_FROM:
        numbers = column.to_numpy(dtype=np.float64, na_value=np.nan)
        edges = np.unique(np.quantile(numbers[~missing], [0, 0.25, 0.5, 0.75, 1], method="lower"))
        for k, (low, high) in enumerate(pairwise(edges)):
            who = (numbers <= high) & ((numbers >= low) if k == 0 else (numbers > low))
            inside = numbers[who]
            found.append((speaker.text("report_range", low=text(inside.min()), high=text(inside.max())), who))
    else:
        try:
            counts = known.value_counts()
        except TypeError:  # lists and the like
            return []
        if len(counts) > MOST_GROUPS and len(counts) > len(known) / 2:
            return []  # an id
        cells = column.astype(object).where(~missing, None).to_numpy(dtype=object)  # NA cannot be compared
        common = list(counts.index[:MOST_GROUPS])
        for value in common:
            found.append((text(value), np.asarray(~missing & (cells == value), dtype=bool)))
        rest = ~missing & ~np.any([who for _, who in found], axis=0) if found else np.zeros(len(column), dtype=bool)
        if rest.any():
            found.append((speaker.text("report_others", number=count(speaker, len(counts) - len(common))), rest))
    return found + ([(speaker.text("not_known"), missing)] if missing.any() else [])
