"""The discovery of laws: what no row of a table breaks, or hardly any, though by chance many would.

Each candidate law is compared with the number of rows that would break it if its columns were independent. It is
accepted if the probability of seeing no exceptions (or as few) is then at most `FALSE_LAW`, over all candidates of its
kind (Bonferroni).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.sparse.csgraph import connected_components
from scipy.special import pdtr

from tdce._core import Flags, Floats, Name, Positions, Value
from tdce.schema.columns.base import Column
from tdce.schema.columns.numeric import Numeric
from tdce.schema.constraints.equations import find_equations, find_totals
from tdce.schema.constraints.laws import Determines, Equivalent, Follows, Given, Law, Order, State, Within
from tdce.schema.constraints.table import Condition, Table
from tdce.schema.roles import is_protected, is_result

FALSE_LAW = 0.01  # probability of any false law of a kind in a table without laws
MAX_EXCEPTIONS = 0.005  # as a share of the rows that a law is about; a law with any is soft
MAX_DEVIATING = 0.02  # share of rows outside an equation's band, which keep their own residual
MAX_EXCEPTION_RATIO = 0.05  # exceptions as a share of those expected by chance
MIN_USUAL_SHARE = 0.5  # of the expected rows, in a level beside one that never occurs; else it is just a trend
MAX_DETERMINING_VALUES = 256  # of a column that determines another
RANGE_EDGE = 0.25  # standard deviations: many rows of a category must be this near the end of its range
MIN_RANGE_EXCLUDED = 0.1  # share of all rows outside the range of a category
MAX_RANGE_ERROR = 0.01  # probability that a new row breaks any of the laws about ranges
MAX_WORK = 200_000_000  # pairs of columns times rows examined; other rows only verify the laws found
FIRST_ROWS = 500  # enough to rule most candidates out
EDGE_WIDTH = 0.1  # standard deviations: rows must be this close to equality for an order to be a law
COUNT_ROWS = 4_096  # rows per step of counting states


@np.errstate(over="ignore", invalid="ignore", divide="ignore")  # what overflows is not a law
def discover_laws(features: Sequence[Column], raw: Floats) -> list[Law]:
    """The laws of a table (rows, features): columns that follow others, orders, implications, ranges within categories.

    A law has structure: one side determines the other, a mark or a gap goes with a state, a category admits a single
    value or a range with a sharp edge. Two values that merely never occur together are not a law. Only equations and
    orders may name a protected attribute.
    """
    table = Table(features, raw[:: _stride(raw)])
    laws: list[Law] = list(find_totals(table))
    laws += [law for law in find_determined(table) if not any(set(law.columns) <= set(t.columns) for t in laws)]
    laws += find_equations(table, laws)
    equations = [set(law.columns) for law in laws if isinstance(law, Follows)]
    laws += [law for law in find_orders(table) if not any(columns >= set(law.columns) for columns in equations)]
    laws += find_given(table, laws)
    laws += find_ranges(table, laws)
    laws = [law for law in laws if isinstance(law, Follows | Order) or not any(map(is_protected, law.columns))]
    return [law for law in (verify(law, features, raw) for law in laws) if law is not None]


def verify(law: Law, features: Sequence[Column], raw: Floats) -> Law | None:
    """Count a law's exceptions in the whole table; None if there are too many."""
    exceptions = int(law.bind(features).contradicted(raw).sum())
    support = max(law.support * _stride(raw), exceptions)
    most = MAX_DEVIATING if isinstance(law, Follows) else MAX_EXCEPTIONS
    return replace(law, support=support, exceptions=exceptions) if exceptions <= most * support else None


def find_orders(table: Table) -> Iterator[Order]:
    """Laws a <= b, unless the columns' ranges or two other orders imply them."""
    candidates = len(table.numbers) * (len(table.numbers) - 1)
    orders = dict[tuple[int, int], tuple[int, float]]()
    for a, b in _candidate_orders(table):
        low, high = table.raw[:, [a, b]].T
        both = ~np.isnan(low) & ~np.isnan(high)
        low, high = low[both], high[both]
        if len(low) == 0 or low.max() <= high.min():
            continue
        expected = np.searchsorted(np.sort(high), low, side="left").mean() / len(high)
        slack = _rounding_slack(table, a, b, low - high)
        gap = high - low + slack
        significant = _is_significant(int((gap < 0).sum()), expected, len(low), candidates)
        if significant and _has_sharp_edge(low, gap, high, candidates):
            orders[a, b] = len(low), slack
    for (a, b), (rows, slack) in orders.items():
        if not any((a, c) in orders and (c, b) in orders for c in table.numbers) and (b, a) not in orders:
            yield Order(table.features[a].name, table.features[b].name, slack, rows)


def _rounding_slack(table: Table, a: int, b: int, excess: Floats) -> float:
    """How far rounding may put one number above another: the coarser step if that explains all such rows, else 0."""
    steps = [column.step or 0.0 for column in (table.features[a], table.features[b]) if isinstance(column, Numeric)]
    above, coarser = excess[excess > 0], max(steps, default=0.0)
    explained = len(above) > 0 and min(steps) < coarser and above.max() <= coarser * (1 + 1e-9)
    spreads = [np.ptp(np.nanquantile(table.numeric[:, i], [0.25, 0.75])) for i in (a, b)]
    return coarser if explained and coarser <= EDGE_WIDTH * min(spreads) else 0.0


def _candidate_orders(table: Table) -> Iterator[tuple[int, int]]:
    """Pairs of numbers where, in the first rows, the first is hardly ever above the second."""
    some = table.raw[:FIRST_ROWS, table.numbers]
    steps = np.array([getattr(table.features[i], "step", None) or 0.0 for i in table.numbers])
    for i, a in enumerate(table.numbers):
        rarely = (some[:, [i]] - some > np.maximum(steps[i], steps)).mean(axis=0) <= 2 * MAX_EXCEPTIONS
        yield from ((a, table.numbers[j]) for j in np.flatnonzero(rarely) if j != i)


def find_determined(table: Table) -> Iterator[Determines]:
    """Columns whose value determines that of another. Columns that determine each other are reported once."""
    columns = [i for i, (_, values) in enumerate(table.codes) if len(values) > 1]
    keys = [i for i in columns if len(table.codes[i][1]) <= MAX_DETERMINING_VALUES]
    candidates = len(keys) * (len(columns) - 1)
    determined = dict[tuple[int, int], None]()
    some = np.stack([code[:FIRST_ROWS] for code, _ in table.codes], axis=1)
    for a in keys:
        order = np.argsort(some[:, a], kind="stable")
        alike = some[order[1:], a] == some[order[:-1], a]
        possible = (some[order[1:][alike]] == some[order[:-1][alike]]).all(
            axis=0
        )  # the first rows rule most columns out
        for b in columns:
            if possible[b] and a != b and (b, a) not in determined and _determines(table, a, b, candidates):
                determined[a, b] = None
    for a, b in determined:
        if any((a, c) in determined and (c, b) in determined for c in columns):
            continue
        if _determines(table, b, a, candidates) and _is_rather_result(table, a, b):
            a, b = b, a
        (code, values), other = table.codes[a], table.raw[:, b]
        first = np.unique(code, return_index=True)[1]
        pairs = zip(table.cells(a, values), table.cells(b, other[first]), strict=True)
        yield Determines(table.features[a].name, table.features[b].name, tuple(pairs), len(code))


def _is_rather_result(table: Table, a: int, b: int) -> bool:
    """Whether, of two columns that determine each other, the first is the follower: its name denotes a result, or it is
    a number and the other is not."""
    first, second = table.features[a], table.features[b]
    if is_result(first.name) != is_result(second.name):
        return is_result(first.name)
    return first.numbers > second.numbers


def find_given(table: Table, known: Sequence[Law]) -> Iterator[Given | Equivalent]:
    """Implications: in a state of one column, another is never in certain states, though by chance it often would."""
    counts, expected = _counts(table)
    names = [column.name for column in table.features]
    covered = {frozenset(law.columns) for law in known if isinstance(law, Determines)}
    ends = np.searchsorted([state.column for state in table.states], range(len(names) + 1)).tolist()
    states = [slice(*each) for each in pairwise(ends)]
    rows, candidates = counts.diagonal()[:, None], len(table.states) ** 2
    never = _is_rare(counts, expected, rows, candidates) & _is_rare(counts, expected, rows.T, candidates)
    always = _is_rare(rows - counts, rows - expected, rows, candidates)
    for law in known:
        if isinstance(law, Order):
            _drop_ordered(table, never, states[names.index(law.low)], states[names.index(law.high)])
    column = np.array([state.column for state in table.states], dtype=np.int64)
    for group in _equivalent_groups(table, counts, expected, covered):
        yield _equivalent_law(table, [table.states[i] for i in group])
        _drop_equivalent(never, column, group)
    pairs = dict.fromkeys((int(column[i]), int(column[j])) for i, j in zip(*np.nonzero(never), strict=True))
    for a, b in sorted(pair for pair in pairs if pair[0] < pair[1]):
        first, second = states[a], states[b]
        if frozenset((names[a], names[b])) in covered:
            continue
        sharp = never[first, second] & _has_usual_neighbour(table, counts, expected, never, first, second)
        exact = counts[first, second] == 0
        for cells in (sharp & exact, sharp & ~exact):  # laws without exceptions, then with
            yield from (law for law in _summarise(table, cells, first, second, always) if _is_structural(table, law))


def find_ranges(table: Table, known: Sequence[Law]) -> Iterator[Within]:
    """Bounds on a number, with a sharp edge, where a column has a certain category. Only as many laws are kept,
    strongest first, as hold the probability that a new row breaks any of them to `MAX_RANGE_ERROR`."""
    words = [i for i, column in enumerate(table.features) if not column.numbers and len(table.codes[i][1]) > 1]
    bound = [set(law.columns) for law in known if isinstance(law, Determines | Follows | Equivalent)]
    same_state = {state for law in known if isinstance(law, Equivalent) for state in law.states[1:]}
    candidates = 2 * len(table.numbers) * sum(len(table.codes[i][1]) for i in words)
    found = list[tuple[float, Within]]()
    for j in table.numbers:
        number = table.numeric[:, j]
        order = np.argsort(number, kind="stable")[: int((~np.isnan(number)).sum())]  # missing last
        everyone = number[order]
        for i in words:
            if any({table.features[i].name, table.features[j].name} <= columns for columns in bound):
                continue
            code, values = table.codes[i]
            for k, group in _sorted_groups(everyone, code[order], values):
                when = State(table.features[i].name, table.cells(i, values[[k]]))
                for sign in (1, -1) if when not in same_state else ():
                    edge = _sharp_end(sign * group[::sign], sign * everyone[::sign], candidates)
                    if edge is not None:
                        excluded, end = edge
                        low, high = (end, None) if sign == 1 else (None, -end)
                        found.append((excluded, Within(when, table.features[j].name, low, high, len(group))))
    found.sort(key=lambda each: -each[0])
    merged = dict[tuple[State, Any], Within]()
    for _, law in found[: int(MAX_RANGE_ERROR * len(table.raw))]:
        key = law.when, law.column
        both = merged.get(key, law)
        low, high = (one if one is not None else other for one, other in ((both.low, law.low), (both.high, law.high)))
        merged[key] = replace(both, low=low, high=high)
    yield from merged.values()


def _sorted_groups(numbers: Floats, code: Positions, values: Floats) -> Iterator[tuple[int, Floats]]:
    """The code of each value except missing, with the sorted numbers of the rows that have it."""
    by_code = np.argsort(code, kind="stable")
    ends = np.searchsorted(code[by_code], np.arange(len(values) + 1))
    for k in np.flatnonzero(~np.isnan(values)).tolist():
        yield k, numbers[by_code[ends[k] : ends[k + 1]]]


def _sharp_end(group: Floats, everyone: Floats, candidates: int) -> tuple[float, float] | None:
    """The share of all rows below the lowest value of a (sorted) group, and that value rounded down; None if it may be
    chance, or if the group thins out towards it."""
    needed = math.log(max(candidates, 1) / FALSE_LAW)
    if len(group) < needed or group[-1] == group[0]:
        return None
    below = int(np.searchsorted(everyone, group[0])) / len(everyone)
    if below < MIN_RANGE_EXCLUDED or -len(group) * math.log1p(-below) < needed:
        return None
    width = max(RANGE_EDGE * float(group.std()), float(np.diff(np.unique(group)).min()))
    near = int(np.searchsorted(group, group[0] + width, side="right"))
    evenly = len(group) * width / float(group[-1] - group[0])  # rows near the end if the group were spread evenly
    if near < max(needed, evenly / 2):
        return None
    unit = 10.0 ** math.floor(math.log10(width))
    return below, float(f"{math.floor(group[0] / unit) * unit:.12g}")


def _equivalent_groups(
    table: Table, counts: Floats, expected: Floats, covered: set[frozenset[Name]]
) -> Iterator[list[int]]:
    """Groups of states, one per column, that always go together."""
    rows, candidates = counts.diagonal(), len(table.states) ** 2
    plain = np.array([not (state.but or state.level) for state in table.states], dtype=bool)
    always = (counts == rows) & (counts == rows[:, None]) & plain & plain[:, None]
    always &= pdtr(0, np.maximum(rows[:, None] - expected, 0.0)) <= FALSE_LAW / max(candidates, 1)
    for i, j in np.argwhere(always).tolist():
        names = frozenset(table.features[table.states[k].column].name for k in (i, j))
        if i == j or len(names) == 1 or names in covered:
            always[i, j] = False
    count, group = connected_components(always, directed=False)
    for each in range(count):
        members = np.flatnonzero(group == each).tolist()
        first = {table.states[k].column: k for k in reversed(members)}
        if len(first) > 1:
            yield sorted(first.values())


def _equivalent_law(table: Table, group: list[Condition]) -> Equivalent:
    otherwise = tuple(_most_frequent(table, state.column, ~group[0].rows) for state in group)
    return Equivalent(tuple(state.state(table) for state in group), otherwise, int(group[0].rows.sum()))


def _drop_equivalent(never: Flags, column: Positions, group: list[int]) -> None:
    """Drop, in place, pairs that an equivalence already implies."""
    columns = column[group]
    for i in group:
        others = np.isin(column, columns[columns != column[i]])
        never[i, others] = never[others, i] = False
    inside = np.isin(column, columns)
    never[np.ix_(inside, inside)] = False
    for i in group[1:]:  # what holds for the first holds for all
        never[i] = never[:, i] = False


def _is_structural(table: Table, law: Given) -> bool:
    """Whether the law leaves a single value, or ties a mark or a gap to a state."""
    if not law.then.but and len(law.then.values) == 1:
        return True
    return any(
        value is None or table.features[table.position(state.column)].numbers
        for state in (law.when, law.then)
        for value in state.values
    )


def _counts(table: Table) -> tuple[Floats, Floats]:
    """(states, states) the number of rows in both states, and the number expected by chance."""
    counts = np.zeros((len(table.states), len(table.states)))
    for start in range(0, len(table.raw), COUNT_ROWS):
        rows = np.array([state.rows[start : start + COUNT_ROWS] for state in table.states], dtype=np.float32)
        counts += rows @ rows.T
    totals = counts.diagonal()
    return counts, totals[:, None] * totals / len(table.raw)


def _is_rare(counts: Floats, expected: Floats, rows: Floats, candidates: int) -> Flags:
    """(states, states) which counts are significantly below those expected, and small among the rows in a state."""
    few = counts <= np.minimum(MAX_EXCEPTION_RATIO * expected, MAX_EXCEPTIONS * rows)
    return np.asarray(few & (pdtr(counts, expected) <= FALSE_LAW / max(candidates, 1)))


def _drop_ordered(table: Table, never: Flags, low: slice, high: slice) -> None:
    """Drop, in place, pairs that an order already implies."""
    for i in range(low.start, low.stop):
        for j in range(high.start, high.stop):
            below, above = table.states[i], table.states[j]
            if not below.but and not above.but and below.values[0] > above.values[0]:
                never[i, j] = never[j, i] = False


def _has_usual_neighbour(
    table: Table, counts: Floats, expected: Floats, never: Flags, first: slice, second: slice
) -> Flags:
    """Whether a level that never occurs has a neighbour that occurs about as often as by chance."""
    usual, absent = counts[first, second] >= MIN_USUAL_SHARE * expected[first, second], never[first, second]
    return _beside(table.states[second], usual, absent) & _beside(table.states[first], usual.T, absent.T).T


def _beside(states: Sequence[Condition], usual: Flags, absent: Flags) -> Flags:
    """(n, states) whether each run of absent levels has a usual neighbour; True for other states."""
    good, levels = np.ones_like(absent), np.array([state.level for state in states])
    for i in np.flatnonzero(absent.any(axis=1)).tolist():
        run = list[int]()
        for j in range(len(states) + 1):
            if j < len(states) and levels[j] and absent[i, j]:
                run.append(j)
            elif run:
                ends = [k for k in (run[0] - 1, j) if 0 <= k < len(states) and levels[k]]
                good[i, run] = any(usual[i, k] for k in ends)
                run = []
    return good


def _summarise(table: Table, never: Flags, at_first: slice, at_second: slice, always: Flags) -> Iterator[Given]:
    """A small set of laws for the pairs of states of two columns that never occur together, most general first."""
    first, second = table.states[at_first], table.states[at_second]
    left = _drop_levels(second, _drop_levels(first, never.T).T)
    plain = np.array([not state.but for state in first]), np.array([not state.but for state in second])
    while left.any():
        rows, columns = 2 * left.sum(axis=1) + plain[0], 2 * left.sum(axis=0) + plain[1]  # prefer "is" to "is not"
        if rows.max() >= columns.max():
            i = int(rows.argmax())
            yield _given_law(table, first[i], second, never[i], always[at_first, at_second][i])
            left[i] = False
        else:
            j = int(columns.argmax())
            yield _given_law(table, second[j], first, never[:, j], always[at_second, at_first][j])
            left[:, j] = False


def _drop_levels(states: Sequence[Condition], never: Flags) -> Flags:
    """(n, states) without single levels of a number where all its levels together never occur."""
    all_others = np.array([state.but for state in states])
    levels = np.array([state.level for state in states])
    return never & ~(levels & never[:, all_others].any(axis=1, keepdims=True))


def _given_law(table: Table, when: Condition, states: Sequence[Condition], never: Flags, always: Flags) -> Given:
    """The law that, in a state of one column, another is in its only possible state, or in no impossible one."""
    excluded = [state for state, is_never in zip(states, never, strict=True) if is_never]
    only = [state for state, is_always in zip(states, always, strict=True) if is_always and not state.but]
    if only and not (when.rows & ~only[0].rows).any():
        named, but = only[:1], False
    elif any(state.but for state in excluded):  # only marks are left
        named = [s for s, is_never in zip(states, never, strict=True) if not (is_never or s.level or s.but)]
        but = False
    else:
        named, but = excluded, True
    column, among = excluded[0].column, np.any([state.rows for state in named], axis=0)
    then = State(table.features[column].name, table.cells(column, np.concatenate([s.values for s in named])), but)
    holds = among != but
    usual = _most_frequent(table, column, when.rows & holds)
    otherwise = _most_frequent(table, when.column, ~when.rows & ~holds)
    return Given(when.state(table), then, usual, otherwise, int(when.rows.sum()))


def _most_frequent(table: Table, column: int, rows: Flags) -> Value | None:
    """The most frequent value, other than missing, of a column in some rows."""
    values = table.raw[rows, column]
    distinct, counts = np.unique(values[~np.isnan(values)], return_counts=True)
    return table.cells(column, distinct[[counts.argmax()]])[0] if len(distinct) else None


def _determines(table: Table, a: int, b: int, candidates: int) -> bool:
    (code, values), (other, _) = table.codes[a], table.codes[b]
    repeated = len(code) - len(values)  # rows whose value also occurs in an earlier row
    commonest = np.bincount(other).max() / len(other)
    if -repeated * math.log(commonest) < math.log(candidates / FALSE_LAW):
        return False
    return _combinations(code, other) == len(values)


def _combinations(code: Positions, other: Positions) -> int:
    return len(np.unique(code * (int(other.max()) + 1) + other))


def _is_significant(exceptions: int, share: float, rows: int, candidates: int) -> bool:
    """Whether there are significantly fewer exceptions than if each row were one with probability `share`."""
    few = exceptions <= min(MAX_EXCEPTIONS * rows, MAX_EXCEPTION_RATIO * share * rows)
    return few and float(pdtr(exceptions, share * rows)) <= FALSE_LAW / candidates


def _has_sharp_edge(low: Floats, gap: Floats, high: Floats, candidates: int) -> bool:
    """Whether many rows lie just inside equality and hardly any just outside, at several values. Otherwise the order is
    an accident of two columns that measure different things."""
    near = max(EDGE_WIDTH * min(low.std(), high.std()), *(np.diff(np.unique(each)).min() for each in (low, high)))
    inside, outside = (gap >= 0) & (gap <= near), (gap < 0) & (gap >= -near)
    several = len(np.unique(low[inside & (low > low.min())])) >= 3
    enough = bool(inside.sum() >= math.log2(candidates / FALSE_LAW))
    return several and enough and bool(outside.sum() <= MAX_EXCEPTION_RATIO * inside.sum())


def _stride(raw: Floats) -> int:
    """The step between examined rows: more than 1 in large tables."""
    rows, columns = raw.shape
    return int(max(1, math.ceil(columns * columns / 2 * rows / MAX_WORK)))
