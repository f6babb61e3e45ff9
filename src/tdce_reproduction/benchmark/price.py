"""Price for price: whether `search` is no worse than another method at some position of the trade-off."""

from __future__ import annotations

from typing import NamedTuple

import pandas as pd

from tdce_reproduction.benchmark.contests import TITLES, UNRANKED, contests, ordered
from tdce_reproduction.benchmark.settings import ANY_YES_VARIANTS, BASELINES, OURS, POSITIONS, SEARCH_VARIANTS

PRICE = ("sparsity", "gower", "held_out_distance", "validity")
"""The metrics compared: features changed, Gower distance, distance to held-out rows, validity."""


class Verdict(NamedTuple):
    """`search` along the trade-off compared with one other method, on one data set, masked or not."""

    method: str
    data: str
    masked: str
    positions: tuple[str, ...]  # those with the fewest losses: first those with a wanted safety, then by closeness
    losses: tuple[str, ...]  # metrics lost at the first of them; empty if `search` is no worse there


def verdicts(rows: pd.DataFrame) -> list[Verdict]:
    """Compare `search` with every other method. A loss is a metric in which `search` is worse by more than the other's
    standard deviation over seeds.

    Refined methods want the same safety as `search`, so only positions with the default safety are compared with them.
    Other methods accept any favourable decision, so positions without a wanted safety are compared with them, too.
    """
    found = []
    for data, masked in rows[["data", "masked"]].drop_duplicates().itertuples(index=False):
        compared = contests(rows, data, masked, PRICE)
        methods = {method for contest in compared for method in contest.figures}
        for other in ordered(method for method in methods if method.partition("@")[0] not in (OURS, UNRANKED)):
            variants = SEARCH_VARIANTS if other.endswith("+") else SEARCH_VARIANTS + ANY_YES_VARIANTS
            losses = {
                name: tuple(contest.metric for contest in compared if contest.loses(name, other))
                for name in variants
                if name in methods
            }
            if losses:
                fewest = min(map(len, losses.values()))
                positions = tuple(name for name, lost in losses.items() if len(lost) == fewest)
                found.append(Verdict(other, data, masked, positions, losses[positions[0]]))
    return found


def price_section(rows: pd.DataFrame, stale: frozenset[tuple[str, str, str]] = frozenset()) -> str:
    """How often there is such a position, and what is lost where there is none; `°` marks stale figures."""
    compared = verdicts(rows)
    if not compared:
        return ""
    parts = [
        "## Price for price",
        f"At which of {len(POSITIONS)} positions of the trade-off (closeness 0, 0.05, …, 1; one search answers all) "
        f"does `{OURS}` change no more features than another method, at no larger Gower distance, no further from "
        "held-out rows of the wanted class, and is no less valid, within the other's own deviation over seeds? "
        "**Bold**: the first such position, and how many there are. Otherwise the position with the fewest losses is "
        "followed by what is lost there. Refined answers (`+`) want the same safety as the default; all others take "
        "any yes, and beside them the positions stand a second time, without a wanted safety (`any yes`). "
        "`frontier_DATA.png` in the folder `figures` shows the same.",
    ]
    groups = {
        "The paper's baselines as published": BASELINES,
        "The same, refined": tuple(f"{method}+" for method in BASELINES),
        "NICE": ("nice",),
        "Readings of Algorithm 1": ("guided_literal", "guided_tuned", "guided", "guided+"),
    }
    lines = []
    for title, methods in groups.items():
        members = [each for each in compared if each.method in methods]
        if members:
            lines.append(f"| {title} | {_count(members, stale)} |")
    lines.append(f"| **together** | {_count(compared, stale)} |")
    parts += ["\n".join(["| methods | such a position in |", "|---|---|", *lines]), _table(compared, stale)]
    return "\n\n".join(parts)


def _count(members: list[Verdict], stale: frozenset[tuple[str, str, str]]) -> str:
    mark = " °" if any(_is_stale(each, stale) for each in members) else ""
    return f"**{sum(not each.losses for each in members)} of {len(members)}**{mark}"


def _is_stale(verdict: Verdict, stale: frozenset[tuple[str, str, str]]) -> bool:
    """Whether the method or the positions compared with it are stale."""
    return any((verdict.data, verdict.masked, name) in stale for name in (verdict.method, SEARCH_VARIANTS[0]))


def _table(compared: list[Verdict], stale: frozenset[tuple[str, str, str]]) -> str:
    """A line per method, a column per data set and mask."""
    cells = {(each.method, each.data, each.masked): each for each in compared}
    columns = [(d, masked) for masked in ("no", "yes") for d in TITLES if any(k[1:] == (d, masked) for k in cells)]
    heads = [TITLES[data] + (" masked" if masked == "yes" else "") for data, masked in columns]
    lines = ["| method | " + " | ".join(heads) + " |", "|---" * (1 + len(columns)) + "|"]
    for method in ordered(each.method for each in compared):
        shown = []
        for data, masked in columns:
            cell = cells.get((method, data, masked))
            shown.append("–" if cell is None else _cell(cell) + (" °" if _is_stale(cell, stale) else ""))
        lines.append(f"| {method} | " + " | ".join(shown) + " |")
    return "\n".join(lines)


def _cell(verdict: Verdict) -> str:
    _, closeness, *any_yes = verdict.positions[0].split("@")
    first = f"{closeness} any yes" if any_yes else closeness
    return f"{first}: {', '.join(verdict.losses)}" if verdict.losses else f"**{first}** ({len(verdict.positions)})"
