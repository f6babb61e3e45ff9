"""The burden of groups: who has a way to a yes, how far and how safe it is, with confidence intervals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from math import sqrt
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tdce._core import (
    PANDAS,
    AnyFrame,
    Flags,
    Floats,
    FrameKind,
    InputError,
    Name,
    as_numbers,
    html_card,
    is_blank,
    is_name,
    listing,
    show,
    suggest,
)
from tdce.report.language.catalogue import Catalogue, load_catalogue
from tdce.report.language.formats import write_number, write_percent

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Z = 1.959963984540054  # 95 % of a normal distribution lie within this many standard deviations
MAX_GROUPS = 12  # of a column; the remaining values form one group
MIN_VALUES_FOR_QUARTERS = 8  # distinct numbers; with fewer, each is a group
MEANS = ("distance", "features", "safety")


@dataclass(frozen=True, eq=False, repr=False)
class Burden:
    """What a yes asks of each group of a column's values."""

    column: Name
    table: pd.DataFrame  # one line per group
    kind: FrameKind = PANDAS  # the library of the rows, and of the frame returned

    def to_frame(self) -> AnyFrame:
        """Get the groups as a frame.

        Returns
        -------
        data frame
            One line per group: group, people, needs (people without the wanted decision), with_way, share (of those in
            need who have a way), and distance, features, safety (means over those with a way). `_low` and `_high` are
            the ends of 95 % intervals: Wilson's for shares, Student's for means (missing for fewer than two people).
        """
        return self.kind.frame(self.table.copy())

    def plot(self) -> Figure:
        """Draw the groups: shares and means with their intervals.

        Returns
        -------
        matplotlib.figure.Figure
            One panel per measure, one line per group.
        """
        from tdce.report.figures import burden_figure

        return burden_figure(self.table, str(self.column))

    def __repr__(self) -> str:
        shares = ", ".join(f"{g} {s:.0%}" for g, s in zip(self.table["group"], self.table["share"], strict=True))
        return f"<Burden by {self.column}: {shares} with a way>"

    def _repr_html_(self) -> str:
        facts = ["In brackets: 95 % intervals"]
        return html_card(f"Burden by {self.column}", facts, self.columns, self.lines(), "to_frame()", most=20)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns of `lines`."""
        return str(self.column), "people", "need one", "with a way", "distance", "features", "safety"

    def lines(self) -> list[list[str]]:
        """Format the groups for people.

        Returns
        -------
        list of list of str
            One line per group, with intervals in brackets.
        """
        lines: list[Any] = list(self.table.itertuples())
        return [
            [each.group, f"{each.people:,}", f"{each.needs:,}", *(written(each, name) for name in ("share", *MEANS))]
            for each in lines
        ]


def measure_burden(
    rows: pd.DataFrame,
    by: Any,
    needs: Flags,  # (rows,) people without the wanted decision
    has_way: Flags,  # (rows,)
    distance: Floats,  # (rows,) of the way
    features: NDArray[Any],  # (rows,) changed on the way
    safety: Floats,  # (rows,)
    write: Callable[[Any], str] = str,
    kind: FrameKind = PANDAS,
) -> Burden:
    """Measure the burden of each group of a column's values; `write` puts the values into words."""
    lines = []
    for name, who in split_groups(rows, by, write):
        open_cases, way = who & needs, who & needs & has_way
        count, helped = int(open_cases.sum()), int(way.sum())
        low, high = wilson_interval(helped, count)
        line = {"group": name, "people": int(who.sum()), "needs": count, "with_way": helped}
        line |= {"share": helped / count if count else np.nan, "share_low": low, "share_high": high}
        for measure, values in zip(MEANS, (distance, features, safety), strict=True):
            own = np.asarray(values, dtype=np.float64)[way]
            low, high = mean_interval(own)
            if measure == "safety":
                low, high = max(low, 0.0), min(high, 1.0)
            mean = float(own.mean()) if len(own) else np.nan
            line |= {measure: mean, f"{measure}_low": max(low, 0.0), f"{measure}_high": high}
        lines.append(line)
    return Burden(by, pd.DataFrame(lines), kind)


def wilson_interval(hits: int, count: int) -> tuple[float, float]:
    """Wilson's 95 % interval for a share; missing if nobody was counted."""
    if count == 0:
        return np.nan, np.nan
    share, spread = hits / count, Z * Z / count
    middle = (share + spread / 2) / (1 + spread)
    half = Z / (1 + spread) * sqrt(share * (1 - share) / count + spread / (4 * count))
    return max(0.0, middle - half), min(1.0, middle + half)


def mean_interval(values: Floats) -> tuple[float, float]:
    """Student's 95 % interval for a mean; missing for fewer than two values."""
    from scipy.special import stdtrit

    if len(values) < 2:
        return np.nan, np.nan
    half = float(stdtrit(len(values) - 1, 0.975)) * float(values.std(ddof=1)) / sqrt(len(values))
    return float(values.mean()) - half, float(values.mean()) + half


def split_groups(rows: pd.DataFrame, by: Any, write: Callable[[Any], str] = str) -> list[tuple[str, Flags]]:
    """The rows of each value of a column, the most common first; numbers with many values in quarters; missing last."""
    if not is_name(by) or by not in rows.columns:
        raise InputError(f"by is {show(by)}; {suggest(by, rows.columns)}the rows have: {listing(rows.columns)}")
    column = rows[by]
    if isinstance(column, pd.DataFrame):
        raise InputError(f"column {show(by)} appears twice; rename or drop one of them")
    missing = column.isna().to_numpy(dtype=bool) | np.array([is_blank(cell) for cell in column], dtype=bool)
    known, groups = column[~missing], list[tuple[str, Flags]]()
    try:
        counts = known.value_counts()
        counts = counts[counts > 0]  # a category without people is not a group
    except TypeError:
        raise InputError(
            f"by is {show(by)}, whose cells are lists and cannot be grouped; name another column"
        ) from None
    numeric = pd.api.types.is_numeric_dtype(column.dtype) and not pd.api.types.is_bool_dtype(column.dtype)
    if numeric and len(counts) >= MIN_VALUES_FOR_QUARTERS:
        numbers = as_numbers(column)
        edges = np.unique(np.quantile(numbers[~missing], [0, 0.25, 0.5, 0.75, 1], method="lower"))
        for k, (low, high) in enumerate(pairwise(edges)):
            who = (numbers <= high) & ((numbers >= low) if k == 0 else (numbers > low))
            ends = (int(end) if end == int(end) else end for end in (numbers[who].min(), numbers[who].max()))
            groups.append((" – ".join(map(write, ends)), who))
    else:
        if len(counts) > MAX_GROUPS and len(counts) > len(known) / 2:
            raise InputError(f"by is {show(by)}, in which nearly every row is a group of its own; name another column")
        order = sorted(counts.index, key=lambda value: (-int(counts[value]), str(value)))
        cells = column.astype(object).where(~missing, None).to_numpy(dtype=object)  # NA cannot be compared
        for value in order[:MAX_GROUPS]:
            groups.append((write(value), np.asarray(~missing & (cells == value), dtype=bool)))
        rest = ~missing & ~np.any([who for _, who in groups], axis=0) if groups else np.zeros(len(column), dtype=bool)
        if rest.any():
            groups.append((f"{len(order) - MAX_GROUPS} others", rest))
    return groups + ([("not known", missing)] if missing.any() else [])


def written(line: Any, measure: str, messages: Catalogue | None = None) -> str:
    """`83 % (71–91 %)`, `1.24 (1.10–1.38)`; a dash where there is nothing."""
    spoken = load_catalogue("en") if messages is None else messages
    value, low, high = (getattr(line, name) for name in (measure, f"{measure}_low", f"{measure}_high"))
    if np.isnan(value):
        return "–"
    percent = measure in ("share", "safety")
    text = [
        write_percent(spoken, each, "rounded_share") if percent else write_number(spoken, round(each, 2), "#,##0.00")
        for each in (value, *(() if np.isnan(low) else (low, high)))
    ]
    return f"{text[0]} ({text[1]} – {text[2]})" if len(text) > 1 else text[0]
