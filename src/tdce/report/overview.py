"""Figures over all people of a report: which features change, by how much, together with which, and how groups fare."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from tdce._core import Flags, Name, as_numbers, is_blank
from tdce.methods import LOW_SAFETY, Line, Status
from tdce.report.language.formats import write_number
from tdce.report.language.speaker import Speaker, capitalise, spoken_name
from tdce.report.view import View
from tdce.schema import Column

MAX_FIRST_STEPS = 5  # in the finding
MAX_LEFT_WITHOUT = 12  # people named in the finding
MAX_PAIRED_FEATURES = 12  # in the table of pairs
MAX_GROUPS = 12  # of a column; the remaining values form one group
MIN_GROUP_PEOPLE = 20  # smaller groups are marked: their figures may be due to chance
MIN_VALUES_FOR_QUARTERS = 8  # distinct numbers; with fewer, each number is a group


def totals(view: View) -> dict[str, Any]:
    """The measures of all rows, by their first option."""
    return _measures(view, np.ones(len(view.rows), dtype=bool))


def finding(view: View, lines: Sequence[Sequence[Line]], speaker: Speaker) -> dict[str, Any]:
    """The finding of the report: how many people have a way and how safe it is, the commonest first steps, and who has
    no way."""
    total, targets = totals(view), {speaker.target(options[0]) for options in lines}
    target = targets.pop() if len(targets) == 1 else speaker.text("report_their_target")
    counts = {"valid": _count(speaker, total["valid"]), "people": _count(speaker, total["open"])}
    headline = speaker.text("report_finding", count=total["open"], target=target, **counts)
    safety = view.explanation.safety[view.valid, 0]
    details = []
    if len(safety) and not np.isnan(safety).any():
        safe = int((safety >= LOW_SAFETY).sum())
        shares = {"safe": _count(speaker, safe), "barely": _count(speaker, len(safety) - safe)}
        details.append(speaker.text("report_all_safe" if safe == len(safety) else "report_how_safe", **shares))
    if total["changes"] is not None:
        mean = write_number(speaker.messages, round(total["changes"], 1))
        details.append(speaker.text("report_mean_changes", changes=mean))
    left = np.flatnonzero(view.needs_change & ~view.valid).tolist()
    if left:
        details.append(speaker.text("report_without_count", count=len(left), people=_count(speaker, len(left))))
    if total["already"] and total["open"]:
        details.append(speaker.text("report_already", people=_count(speaker, total["already"])))
    return {
        "headline": headline if total["open"] else speaker.text("report_nobody_open"),
        "details": " ".join(details),
        "steps": first_steps(view, lines, speaker),
        "left": [(view.labels[i], speaker.status(lines[i][0].status)) for i in left[:MAX_LEFT_WITHOUT]],
        "more": _count(speaker, len(left) - MAX_LEFT_WITHOUT) if len(left) > MAX_LEFT_WITHOUT else "",
    }


def first_steps(view: View, lines: Sequence[Sequence[Line]], speaker: Speaker) -> list[dict[str, Any]]:
    """The features whose change matters most in the first options of people with a way, most frequent first: for how
    many people, and by how much."""
    names = list(view.schema.names)
    first = np.full(len(lines), -1)
    for i in np.flatnonzero(view.valid).tolist():
        named = [name for name, _ in lines[i][0].reasons if speaker.may_name(name)]
        named += [name for name, *_ in speaker.decisions(lines[i][0])]  # without reasons, the first change
        first[i] = names.index(named[0]) if named else -1
    features, people = np.unique(first[first >= 0], return_counts=True)
    order = np.argsort(-people, kind="stable")[:MAX_FIRST_STEPS]
    return [
        {
            "label": capitalise(speaker.title(names[i])),
            "people": count,
            "share": count / int(view.valid.sum()),
            "how": _usual_change(view, i, view.schema.features[i], first == i, speaker),
        }
        for i, count in zip(features[order].tolist(), people[order].tolist(), strict=True)
    ]


def feature_changes(view: View, speaker: Speaker) -> list[dict[str, Any]]:
    """Features by how often first options change them: how often, by how much, and most often together with which."""
    first = view.changed[:, 0]
    people = int(first.any(axis=1).sum())
    features = []
    for i, column in view.visible:
        who = first[:, i]
        if who.any():
            features.append(
                {
                    "label": speaker.title(column.name),
                    "people": int(who.sum()),
                    "share": who.sum() / people,
                    "how": _usual_change(view, i, column, who, speaker),
                    "with": _most_common_partner(view, i, first, who, speaker),
                }
            )
    return sorted(features, key=lambda feature: -feature["people"])


def paired_changes(view: View, speaker: Speaker) -> tuple[list[str], list[list[int]]]:
    """The features that change most often, and for each pair of them the number of people who change both."""
    first = view.changed[:, 0]
    changing = (i for i, _ in view.visible if first[:, i].any())
    most = sorted(changing, key=lambda i: -int(first[:, i].sum()))[:MAX_PAIRED_FEATURES]
    counts = first[:, most].T.astype(np.int64) @ first[:, most].astype(np.int64)
    return [speaker.title(view.schema.names[i]) for i in most], counts.tolist()


def group_measures(view: View, speaker: Speaker) -> list[dict[str, Any]]:
    """The measures of each group, for every input column that forms groups."""
    columns = []
    for name in view.rows.columns:
        if name in view.hidden or name == view.id:
            continue
        groups = _groups(view, name, speaker)
        if len(groups) < 2:
            continue
        lines = [
            {"name": text, "few": int(who.sum()) < MIN_GROUP_PEOPLE, **_measures(view, who)} for text, who in groups
        ]
        known = name in view.schema.names
        columns.append({"label": speaker.title(name) if known else spoken_name(name), "lines": lines})
    return columns


def _measures(view: View, who: Flags) -> dict[str, Any]:
    """The measures of the first options of some rows; None where there is nothing to measure."""
    open_cases, valid = who & view.needs_change, who & view.valid
    plausible = view.explanation.plausibility[valid, 0]
    return {
        "people": int(who.sum()),
        "already": int((who & ~view.needs_change).sum()),
        "open": int(open_cases.sum()),
        "valid": int(valid.sum()),
        "best_effort": int((who & (view.explanation.status[:, 0] == Status.BEST_EFFORT)).sum()),
        "infeasible": int((who & (view.explanation.status[:, 0] == Status.INFEASIBLE)).sum()),
        "validity": valid.sum() / open_cases.sum() if open_cases.any() else None,
        "changes": view.decided[valid, 0].sum(axis=1).mean() if valid.any() else None,
        "effort": view.effort[valid, 0].mean() if valid.any() else None,
        "plausibility": plausible.mean() if valid.any() and not np.isnan(plausible).any() else None,
    }


def _usual_change(view: View, i: int, column: Column, who: Flags, speaker: Speaker) -> str:
    """The median step of a number, up and down; or the most common change of a category."""
    own, new = view.explanation.own[who, i], view.explanation.raw[who, 0, i]
    if column.numbers and not np.isin(np.concatenate([own, new]), column.marks).any():
        step = new - own
        texts = []
        for direction, sizes in (("up", step[step > 0]), ("down", -step[step < 0])):
            if len(sizes):
                amount, people = _amount(column, float(np.median(sizes)), speaker), _count(speaker, len(sizes))
                texts.append(speaker.text(f"report_{direction}", amount=amount, people=people))
        if texts:
            return "; ".join(texts)
    now = view.rows[column.name].to_numpy(dtype=object)[who]
    then = view.written[column.name].iloc[:: view.question.n].to_numpy(dtype=object)[who]
    (before, after), times = Counter(
        (speaker.value(column.name, a), speaker.value(column.name, b)) for a, b in zip(now, then, strict=True)
    ).most_common(1)[0]
    return speaker.text("report_most_often", before=before, after=after, people=_count(speaker, times))


def _amount(column: Column, number: float, speaker: Speaker) -> str:
    """A difference with its unit; of dates and years, a plain number."""
    plain = column.words.format in ("date", "year")
    return write_number(speaker.messages, number) if plain else speaker.value(column.name, number)


def _most_common_partner(view: View, i: int, first: Flags, who: Flags, speaker: Speaker) -> str:
    """The feature that most often changes together with this one."""
    others = [(int((who & first[:, j]).sum()), -j) for j, _ in view.visible if j != i]
    people, which = max(others, default=(0, 0))
    if not people:
        return speaker.text("report_alone")
    feature = speaker.title(view.schema.names[-which])
    return speaker.text("report_partner", feature=feature, people=_count(speaker, people))


def _groups(view: View, name: Name, speaker: Speaker) -> list[tuple[str, Flags]]:
    """Groups of rows: numbers in quarters, categories by frequency. Empty if almost every row would be a group."""
    column = view.rows[name]
    if isinstance(column, pd.DataFrame):
        return []

    def text(cell: Any) -> str:
        return str(speaker.value(name, cell))

    missing = column.isna().to_numpy(dtype=bool) | np.array([is_blank(cell) for cell in column], dtype=bool)
    groups: list[tuple[str, Flags]] = []
    known = column[~missing]
    numeric = pd.api.types.is_numeric_dtype(column.dtype) and not pd.api.types.is_bool_dtype(column.dtype)
    if numeric and known.nunique() >= MIN_VALUES_FOR_QUARTERS:
        numbers = as_numbers(column)
        edges = np.unique(np.quantile(numbers[~missing], [0, 0.25, 0.5, 0.75, 1], method="lower"))
        for k, (low, high) in enumerate(pairwise(edges)):
            who = (numbers <= high) & ((numbers >= low) if k == 0 else (numbers > low))
            inside = numbers[who]
            groups.append((speaker.text("report_range", low=text(inside.min()), high=text(inside.max())), who))
    else:
        try:
            counts = known.value_counts()
        except TypeError:  # lists and the like
            return []
        if len(counts) > MAX_GROUPS and len(counts) > len(known) / 2:
            return []  # an id
        cells = column.astype(object).where(~missing, None).to_numpy(dtype=object)  # NA cannot be compared
        common = list(counts.index[:MAX_GROUPS])
        for value in common:
            groups.append((text(value), np.asarray(~missing & (cells == value), dtype=bool)))
        rest = ~missing & ~np.any([who for _, who in groups], axis=0) if groups else np.zeros(len(column), dtype=bool)
        if rest.any():
            groups.append((speaker.text("report_others", number=_count(speaker, len(counts) - len(common))), rest))
    return groups + ([(speaker.text("not_known"), missing)] if missing.any() else [])


def _count(speaker: Speaker, number: int) -> str:
    return write_number(speaker.messages, number)
