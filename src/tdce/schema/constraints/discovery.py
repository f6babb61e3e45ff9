"""The discovery of laws: what no row of a table breaks, or hardly any, though by chance many would.

For every candidate law, the number of rows is computed that would break it if its columns were independent. A law is
accepted if so many would that the probability of seeing none (or so few) is at most `FALSE_LAW`, over all candidates of
its kind (Bonferroni).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations, pairwise

import numpy as np
from scipy.special import pdtr

from tdce._core import LARGEST_VALUE, Flags, Floats, Positions, Value
from tdce.schema.columns.base import Column
from tdce.schema.columns.grid import is_far_apart
from tdce.schema.constraints.laws import ROUNDING, Determines, Given, Law, Linear, Order, State

FALSE_LAW = 0.01  # the probability of any false law of a kind in a table without laws
MAX_EXCEPTIONS = 0.005  # as a share of the rows that a law is about; with any, it is soft
MAX_EXCEPTION_RATIO = 0.05  # exceptions as a share of those expected by chance
MAX_LEVELS_COMPARED = 40  # a number with at most this many values is compared value by value
SPIKE_SHARE = 0.05  # of the rows: a value at an end of a number's range with so many is a state of its own,
SPIKE_RATIO = 5  # or one with this many times the rows of the median value,
MIN_SPIKE_SHARE = 0.001  # and at least this share of the rows
MIN_USUAL_SHARE = 0.5  # of the expected rows, in the level beside one that never occurs: otherwise it is a mere trend
MAX_STATES = 1_000  # the most frequent ones are compared, to limit the time for wide tables
MAX_DETERMINING_VALUES = 256  # of a column that determines another
MAX_WORK = 200_000_000  # pairs of columns times rows examined; the other rows only verify what was found
FIRST_ROWS = 500  # enough to rule most candidates out
EDGE_WIDTH = 0.1  # of a standard deviation: some rows must be this close to equality for an order to be a law
COUNT_ROWS = 4_096  # rows whose states are counted at a time
PROBE_ROWS = 64  # rows by which sums are recognised
MAX_PARTS = 12  # of a total
MAX_SUM_COLUMNS = 100  # numbers among which totals of several parts are looked for


@np.errstate(over="ignore", invalid="ignore")  # what overflows is no law
def discover_laws(features: Sequence[Column], raw: Floats) -> list[Law]:
    """The laws of a table (rows, features): sums and copies, orders, determined columns, implications."""
    table = Table(features, raw[:: _stride(raw)])
    laws: list[Law] = list(find_linear(table))
    sums = [set(law.columns) for law in laws]
    laws += [law for law in find_orders(table) if not any(sum_columns >= set(law.columns) for sum_columns in sums)]
    laws += find_determined(table)
    laws += find_given(table, laws)
    return [law for law in (verify(law, features, raw) for law in laws) if law is not None]


def verify(law: Law, features: Sequence[Column], raw: Floats) -> Law | None:
    """The law with its exceptions in the whole table; None if there are too many."""
    exceptions = int(law.bind(features).broken(raw, raw).sum())
    support = max(law.support * _stride(raw), exceptions)
    return replace(law, support=support, exceptions=exceptions) if exceptions <= MAX_EXCEPTIONS * support else None


@dataclass(frozen=True)
class Table:
    """The columns of a table, prepared for the discovery of laws."""

    features: Sequence[Column]
    raw: Floats  # (rows, features)

    @cached_property
    def numbers(self) -> list[int]:
        """The columns of numbers that are not constant."""
        return [
            i
            for i, c in enumerate(self.features)
            if c.numbers and np.nanmin(self.raw[:, i]) < np.nanmax(self.raw[:, i])
        ]

    @cached_property
    def codes(self) -> list[tuple[Positions, Floats]]:
        """For every column: the code of each cell's value, and the values by code, missing last."""
        return [tuple(np.unique(each, return_inverse=True)[::-1]) for each in self.raw.T]  # type: ignore[misc]

    def cells(self, column: int, values: Floats) -> tuple[Value | None, ...]:
        return tuple(self.features[column].cells(values))

    @cached_property
    def states(self) -> list[Condition]:
        """The states of all columns: every category, every value of a number with few, marks among many numbers, any
        number that is no mark, missing. A column can be in two of them at once."""
        states = [state for i in range(len(self.features)) for state in self._states(i)]
        frequent = sorted(range(len(states)), key=lambda i: -states[i].rows.sum())[:MAX_STATES]
        return [states[i] for i in sorted(frequent)]

    def _states(self, column: int) -> Iterator[Condition]:
        code, values = self.codes[column]
        counts, missing = np.bincount(code, minlength=len(values)), np.isnan(values)
        if not self.features[column].numbers:
            for i in np.flatnonzero(counts):
                yield Condition(column, values[[i]], code == i)
            return
        marks = _marks(values[~missing], counts[~missing])
        for i in np.flatnonzero(~missing):
            if i in marks or len(values) <= MAX_LEVELS_COMPARED:
                yield Condition(column, values[[i]], code == i, level=i not in marks)
        for i in np.flatnonzero(missing):
            yield Condition(column, values[[i]], code == i)
        if len(marks):
            but = np.concatenate([values[marks], values[missing]])
            yield Condition(column, but, ~np.isin(code, [*marks, *np.flatnonzero(missing)]), but=True)


@dataclass(frozen=True, eq=False)
class Condition:
    """A state of a column, and the rows that are in it."""

    column: int
    values: Floats
    rows: Flags
    but: bool = False  # all but these values
    level: bool = False  # one of several numbers, none of them special

    def state(self, table: Table) -> State:
        return State(table.features[self.column].name, table.cells(self.column, self.values), self.but)


def _marks(values: Floats, counts: Positions) -> Positions:
    """Which of a number's values, in order, are marks: a frequent one at an end of the range (0, or a cap), or a few
    far beyond all others (-1, 98, 999)."""
    marks = np.zeros(len(values), dtype=bool)
    if len(values) < 3:
        return np.flatnonzero(marks)
    frequent = counts >= max(MIN_SPIKE_SHARE * counts.sum(), SPIKE_RATIO * float(np.median(counts)))
    spike = counts[[0, -1]] >= SPIKE_SHARE * counts.sum()
    marks[[0, -1]] = frequent[[0, -1]] & (spike | (len(values) > MAX_LEVELS_COMPARED))
    return np.flatnonzero(marks | is_far_apart(values, counts))


def find_linear(table: Table) -> Iterator[Linear]:
    """Copies, fixed ratios, sums and differences of two numbers, totals of several."""
    whole = table.raw[~np.isnan(table.raw[:, table.numbers]).any(axis=1)]
    if len(whole) < PROBE_ROWS:
        return
    numbers, done = list(table.numbers), set[int]()
    for a, b in _candidate_ratios(whole, numbers):
        if not done & {a, b} and (law := _verify_ratio(table, whole, a, b)) is not None:
            yield law
            done.add(b)
    numbers = [i for i in numbers if i not in done]
    for total, parts in _candidate_sums(whole, numbers):
        if total not in done and (law := _verify_sum(table, whole, total, parts, (1.0,) * len(parts))) is not None:
            yield law
            done.add(total)
    free = [i for i in numbers if i not in done]
    for total in free if 3 < len(free) <= MAX_SUM_COLUMNS and 4 * len(free) <= len(whole) else ():
        others = [i for i in free if i != total and i not in done]
        some = whole[: max(PROBE_ROWS, 4 * len(others))]
        factors = np.linalg.lstsq(some[:, others], some[:, total], rcond=None)[0].round(6)
        used = [(i, float(f)) for i, f in zip(others, factors, strict=True) if f]
        if 1 < len(used) <= MAX_PARTS and {abs(f) for _, f in used} == {1.0}:
            law = _verify_sum(table, whole, total, tuple(i for i, _ in used), tuple(f for _, f in used))
            if law is not None:
                yield law
                done.add(total)


def find_orders(table: Table) -> Iterator[Order]:
    """a <= b, unless the columns' ranges imply it, or it follows from two others."""
    candidates = len(table.numbers) * (len(table.numbers) - 1)
    orders = dict[tuple[int, int], int]()
    for a, b in _candidate_orders(table):
        low, high = table.raw[:, [a, b]].T
        both = ~np.isnan(low) & ~np.isnan(high)
        low, high = low[both], high[both]
        if len(low) == 0 or low.max() <= high.min():
            continue
        expected = np.searchsorted(np.sort(high), low, side="left").mean() / len(high)
        gap = high - low
        significant = _is_significant(int((gap < 0).sum()), expected, len(low), candidates)
        if significant and _has_sharp_edge(low, gap, high, candidates):
            orders[a, b] = len(low)
    for (a, b), rows in orders.items():
        if not any((a, c) in orders and (c, b) in orders for c in table.numbers) and (b, a) not in orders:
            yield Order(table.features[a].name, table.features[b].name, rows)


def _candidate_orders(table: Table) -> Iterator[tuple[int, int]]:
    """Pairs of numbers of which the first is hardly ever above the second in the first rows."""
    some = table.raw[:FIRST_ROWS, table.numbers]
    for i, a in enumerate(table.numbers):
        rarely = (some[:, [i]] > some).mean(axis=0) <= 2 * MAX_EXCEPTIONS
        yield from ((a, table.numbers[j]) for j in np.flatnonzero(rarely) if j != i)


def find_determined(table: Table) -> Iterator[Determines]:
    """Each value of one column goes with one value of another. Columns that determine each other are reported once."""
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
        (code, values), other = table.codes[a], table.raw[:, b]
        first = np.unique(code, return_index=True)[1]
        pairs = zip(table.cells(a, values), table.cells(b, other[first]), strict=True)
        yield Determines(table.features[a].name, table.features[b].name, tuple(pairs), len(code))


def find_given(table: Table, known: Sequence[Law]) -> Iterator[Given]:
    """If one column is in a state, another is never in some others, though by chance it often would be."""
    counts, expected = _counts(table)
    names = [column.name for column in table.features]
    covered = {frozenset(law.columns) for law in known if isinstance(law, Determines | Linear)}
    ends = np.searchsorted([state.column for state in table.states], range(len(names) + 1)).tolist()
    states = [slice(*each) for each in pairwise(ends)]
    rows, candidates = counts.diagonal()[:, None], len(table.states) ** 2
    never = _is_rare(counts, expected, rows, candidates) & _is_rare(counts, expected, rows.T, candidates)
    always = _is_rare(rows - counts, rows - expected, rows, candidates)
    for law in known:
        if isinstance(law, Order):
            _drop_ordered(table, never, states[names.index(law.low)], states[names.index(law.high)])
    column = np.array([state.column for state in table.states], dtype=np.int64)
    pairs = dict.fromkeys((int(column[i]), int(column[j])) for i, j in zip(*np.nonzero(never), strict=True))
    for a, b in sorted(pair for pair in pairs if pair[0] < pair[1]):
        first, second = states[a], states[b]
        if frozenset((names[a], names[b])) in covered:
            continue
        sharp = never[first, second] & _has_usual_neighbour(table, counts, expected, never, first, second)
        exact = counts[first, second] == 0
        for cells in (sharp & exact, sharp & ~exact):  # those without exceptions, and the others
            yield from _summarise(table, cells, first, second, always)


def _counts(table: Table) -> tuple[Floats, Floats]:
    """(states, states) the rows that are in both, and how many would be by chance."""
    counts = np.zeros((len(table.states), len(table.states)))
    for start in range(0, len(table.raw), COUNT_ROWS):
        rows = np.array([state.rows[start : start + COUNT_ROWS] for state in table.states], dtype=np.float32)
        counts += rows @ rows.T
    totals = counts.diagonal()
    return counts, totals[:, None] * totals / len(table.raw)


def _is_rare(counts: Floats, expected: Floats, rows: Floats, candidates: int) -> Flags:
    """(states, states) which counts are significantly below those expected, and few of all rows in a state."""
    few = counts <= np.minimum(MAX_EXCEPTION_RATIO * expected, MAX_EXCEPTIONS * rows)
    return np.asarray(few & (pdtr(counts, expected) <= FALSE_LAW / max(candidates, 1)))


def _drop_ordered(table: Table, never: Flags, low: slice, high: slice) -> None:
    """Drop, in place, what an order implies already."""
    for i in range(low.start, low.stop):
        for j in range(high.start, high.stop):
            below, above = table.states[i], table.states[j]
            if not below.but and not above.but and below.values[0] > above.values[0]:
                never[i, j] = never[j, i] = False


def _has_usual_neighbour(
    table: Table, counts: Floats, expected: Floats, never: Flags, first: slice, second: slice
) -> Flags:
    """Whether beside a level that never occurs there is one that occurs about as often as by chance."""
    usual, absent = counts[first, second] >= MIN_USUAL_SHARE * expected[first, second], never[first, second]
    return _beside(table.states[second], usual, absent) & _beside(table.states[first], usual.T, absent.T).T


def _beside(states: Sequence[Condition], usual: Flags, absent: Flags) -> Flags:
    """(n, states) whether each run of absent levels has a usual one at an end; other states need none."""
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
    """As few laws as possible that state which states of two columns never go together, the most general first."""
    first, second = table.states[at_first], table.states[at_second]
    left = _drop_levels(second, _drop_levels(first, never.T).T)
    plain = np.array([not state.but for state in first]), np.array([not state.but for state in second])
    while left.any():
        rows, columns = 2 * left.sum(axis=1) + plain[0], 2 * left.sum(axis=0) + plain[1]  # rather "is" than "is not"
        if rows.max() >= columns.max():
            i = int(rows.argmax())
            yield _given_law(table, first[i], second, never[i], always[at_first, at_second][i])
            left[i] = False
        else:
            j = int(columns.argmax())
            yield _given_law(table, second[j], first, never[:, j], always[at_second, at_first][j])
            left[:, j] = False


def _drop_levels(states: Sequence[Condition], never: Flags) -> Flags:
    """(n, states) without the levels of a number where all its levels together never occur."""
    all_others = np.array([state.but for state in states])
    levels = np.array([state.level for state in states])
    return never & ~(levels & never[:, all_others].any(axis=1, keepdims=True))


def _given_law(table: Table, when: Condition, states: Sequence[Condition], never: Flags, always: Flags) -> Given:
    """If a column is in a state, another is in the only one that goes with it, or in none of those that never do."""
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
    """The most frequent value of a column in some rows that is not missing."""
    values = table.raw[rows, column]
    distinct, counts = np.unique(values[~np.isnan(values)], return_counts=True)
    return table.cells(column, distinct[[counts.argmax()]])[0] if len(distinct) else None


def _determines(table: Table, a: int, b: int, candidates: int) -> bool:
    (code, values), (other, _) = table.codes[a], table.codes[b]
    repeated = len(code) - len(values)  # rows whose value was seen before
    commonest = np.bincount(other).max() / len(other)
    if -repeated * math.log(commonest) < math.log(candidates / FALSE_LAW):
        return False
    return _combinations(code, other) == len(values)


def _combinations(code: Positions, other: Positions) -> int:
    return len(np.unique(code * (int(other.max()) + 1) + other))


def _is_significant(exceptions: int, share: float, rows: int, candidates: int) -> bool:
    """Whether there are significantly fewer exceptions among these rows than if each were one with this probability."""
    few = exceptions <= min(MAX_EXCEPTIONS * rows, MAX_EXCEPTION_RATIO * share * rows)
    return few and float(pdtr(exceptions, share * rows)) <= FALSE_LAW / candidates


def _has_sharp_edge(low: Floats, gap: Floats, high: Floats, candidates: int) -> bool:
    """Whether many rows are near equality on the inside and hardly any on the outside, at several values: otherwise the
    order is an accident of two columns that count different things."""
    near = max(EDGE_WIDTH * min(low.std(), high.std()), *(np.diff(np.unique(each)).min() for each in (low, high)))
    inside, outside = (gap >= 0) & (gap <= near), (gap < 0) & (gap >= -near)
    several = len(np.unique(low[inside & (low > low.min())])) >= 3
    enough = bool(inside.sum() >= math.log2(candidates / FALSE_LAW))
    return several and enough and bool(outside.sum() <= MAX_EXCEPTION_RATIO * inside.sum())


def _candidate_ratios(whole: Floats, numbers: list[int]) -> Iterator[tuple[int, int]]:
    """Pairs of columns of which the second is a multiple of the first in a few rows."""
    some = whole[:FIRST_ROWS, numbers]
    for i, a in enumerate(numbers):
        rows = np.flatnonzero(some[:, i])[:3]
        ratio = some[rows, i + 1 :] / some[rows, i, None]
        for j in np.flatnonzero((np.ptp(ratio, axis=0) <= ROUNDING * np.abs(ratio).max(axis=0)) if len(rows) else ()):
            yield a, numbers[i + 1 + j]


def _verify_ratio(table: Table, whole: Floats, a: int, b: int) -> Linear | None:
    """The law that b is a fixed multiple of a, if all rows keep it."""
    first, second = whole[:, a], whole[:, b]
    known = first != 0
    if (second[~known] != 0).any() or not known.any():
        return None
    factor = float(second[known][0] / first[known][0])
    return _verify_sum(table, whole, b, (a,), (factor,))


def _candidate_sums(whole: Floats, numbers: list[int]) -> Iterator[tuple[int, tuple[int, int]]]:
    """Columns that may be the sum of two others: a random weighting of some rows maps each column to one number, and a
    sum of columns to the sum of their numbers."""
    weights = np.random.default_rng(0).uniform(0.5, 1.5, PROBE_ROWS)
    probes = weights @ whole[:: len(whole) // PROBE_ROWS][:PROBE_ROWS, numbers]
    order = np.argsort(probes)
    for i, j in combinations(range(len(numbers)), 2):
        total = probes[i] + probes[j]
        near = ROUNDING * max(abs(probes[i]), abs(probes[j]))
        first, last = np.searchsorted(probes[order], [total - near, total + near])
        for k in order[first:last]:
            if k not in (i, j):
                yield numbers[k], (numbers[i], numbers[j])


def _verify_sum(
    table: Table, whole: Floats, total: int, parts: tuple[int, ...], factors: tuple[float, ...]
) -> Linear | None:
    """The law, if all rows keep it and enough of them support it: in each part many differ from 0."""
    if not all(1 / LARGEST_VALUE <= abs(factor) <= LARGEST_VALUE for factor in factors):
        return None
    names = [column.name for column in table.features]
    law = Linear(names[total], tuple(names[i] for i in parts), factors, len(whole))
    supported = (whole[:, list(parts)] != 0).sum(axis=0).min() >= PROBE_ROWS and len(np.unique(whole[:, total])) > 2
    return law if supported and not law.bind(table.features).broken(whole, whole).any() else None


def _stride(raw: Floats) -> int:
    """Only every so many rows are examined in a large table."""
    rows, columns = raw.shape
    return int(max(1, math.ceil(columns * columns / 2 * rows / MAX_WORK)))
