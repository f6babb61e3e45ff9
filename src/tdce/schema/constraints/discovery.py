"""Finding laws: what no row of a table breaks, though by chance many would.

For every law that is tried the number of rows is computed that would break it if its columns had nothing to do with
each other. A law is believed if so many would that, over all laws of its kind that are tried, seeing none of them
has a probability of at most `CHANCE` (Bonferroni).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations, pairwise

import numpy as np
from scipy.special import pdtr

from tdce._core import Flags, Floats, Positions, Value
from tdce.schema.columns.base import Column
from tdce.schema.columns.grid import far_apart
from tdce.schema.constraints.laws import SAME, Determines, Given, Law, Linear, Order, State

CHANCE = 0.01  # of any false law of a kind in a table without laws
FEW = 0.005  # exceptions, as a share of the rows that a law speaks of: it is soft then
LESS = 0.05  # exceptions, as a share of what chance would bring
LEVELS = 40  # a number with at most so many values is compared value by value
SPIKE = 0.05  # of the rows: a value at the end of a number's range that is a state of its own,
OUTSTANDING = 5  # or one that is so many times as frequent as an ordinary one, and not rare,
RARE = 0.001
SHARP = 0.5  # of what is expected, beside what never occurs: otherwise numbers only go up and down together
MOST_STATES = 1_000  # the most frequent ones; so that wide tables take no longer
MOST_VALUES = 256  # of a column that determines another
WORK = 200_000_000  # pairs of columns times rows that are looked at; the rest of the rows only checks what is found
GLANCE = 500  # rows by which most pairs of columns are seen not to determine each other
EDGE = 0.1  # of a deviation: so near to the other number some rows must come for an order to be a law
BLOCK = 4_096  # rows whose states are counted at a time
PROBES = 64  # rows by which sums are found
MOST_PARTS = 12  # of a total,
MOST_SUMMED = 100  # which is looked for among at most so many numbers


def discover_laws(features: Sequence[Column], raw: Floats) -> list[Law]:
    """The laws of a table (rows, features), in the order in which a person would read them."""
    table = Table(features, raw[:: _stride(raw)])
    found: list[Law] = list(linear(table))
    sums = [set(law.columns) for law in found]
    found += [law for law in orders(table) if not any(sums_up >= set(law.columns) for sums_up in sums)]
    found += determined(table)
    found += given(table, found)
    return [law for law in (counted(law, features, raw) for law in found) if law is not None]


def counted(law: Law, features: Sequence[Column], raw: Floats) -> Law | None:
    """The law with the exceptions that the whole table has; None if there are too many."""
    exceptions = int(law.bound(features).broken(raw, raw).sum())
    support = max(law.support * _stride(raw), exceptions)
    return replace(law, support=support, exceptions=exceptions) if exceptions <= FEW * support else None  # type: ignore[type-var]


@dataclass(frozen=True)
class Table:
    """The columns of a table, as the search for laws looks at them."""

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
        """Of every column: the number of each cell's value, and the values, missing last."""
        return [tuple(np.unique(each, return_inverse=True)[::-1]) for each in self.raw.T]  # type: ignore[misc]

    def cells(self, column: int, values: Floats) -> tuple[Value | None, ...]:
        return tuple(self.features[column].cells(values))

    @cached_property
    def states(self) -> list[Condition]:
        """Of all columns: every category, every one of few numbers, marks among many numbers, any number that is no
        mark, missing. A column can be in two of them at once."""
        found = [state for i in range(len(self.features)) for state in self._states(i)]
        often = sorted(range(len(found)), key=lambda i: -found[i].rows.sum())[:MOST_STATES]
        return [found[i] for i in sorted(often)]

    def _states(self, column: int) -> Iterator[Condition]:
        code, values = self.codes[column]
        times, missing = np.bincount(code, minlength=len(values)), np.isnan(values)
        if not self.features[column].numbers:
            for i in np.flatnonzero(times):
                yield Condition(column, values[[i]], code == i)
            return
        marks = _marks(values[~missing], times[~missing])
        for i in np.flatnonzero(~missing):
            if i in marks or len(values) <= LEVELS:
                yield Condition(column, values[[i]], code == i, level=i not in marks)
        for i in np.flatnonzero(missing):
            yield Condition(column, values[[i]], code == i)
        if len(marks):
            but = np.concatenate([values[marks], values[missing]])
            yield Condition(column, but, ~np.isin(code, [*marks, *np.flatnonzero(missing)]), but=True)


@dataclass(frozen=True, eq=False)
class Condition:
    """A state that a column can be in, and the rows in which it is."""

    column: int
    values: Floats
    rows: Flags
    but: bool = False  # all but these values
    level: bool = False  # one of several numbers, none of them special

    def said(self, table: Table) -> State:
        return State(table.features[self.column].name, table.cells(self.column, self.values), self.but)


def _marks(values: Floats, times: Positions) -> Positions:
    """Which of a number's values, in order, are marks: a frequent one at an end of the range (0, or a cap), or a few
    far beyond all others (-1, 98, 999)."""
    marks = np.zeros(len(values), dtype=bool)
    if len(values) < 3:
        return np.flatnonzero(marks)
    often = times >= max(RARE * times.sum(), OUTSTANDING * float(np.median(times)))
    marks[[0, -1]] = often[[0, -1]] & ((times[[0, -1]] >= SPIKE * times.sum()) | (len(values) > LEVELS))
    return np.flatnonzero(marks | far_apart(values, times))


def linear(table: Table) -> Iterator[Linear]:
    """Copies, fixed ratios, sums and differences of two, totals of several."""
    whole = table.raw[~np.isnan(table.raw[:, table.numbers]).any(axis=1)]
    if len(whole) < PROBES:
        return
    numbers, done = list(table.numbers), set[int]()
    for a, b in _ratios(whole, numbers):
        if not done & {a, b} and (law := _multiple(table, whole, a, b)) is not None:
            yield law
            done.add(b)
    numbers = [i for i in numbers if i not in done]
    for total, parts in _sums(whole, numbers):
        if total not in done and (law := _sum(table, whole, total, parts, (1.0,) * len(parts))) is not None:
            yield law
            done.add(total)
    free = [i for i in numbers if i not in done]
    for total in free if 3 < len(free) <= MOST_SUMMED and 4 * len(free) <= len(whole) else ():
        others = [i for i in free if i != total and i not in done]
        some = whole[: max(PROBES, 4 * len(others))]
        factors = np.linalg.lstsq(some[:, others], some[:, total], rcond=None)[0].round(6)
        used = [(i, float(f)) for i, f in zip(others, factors, strict=True) if f]
        if 1 < len(used) <= MOST_PARTS and {abs(f) for _, f in used} == {1.0}:
            law = _sum(table, whole, total, tuple(i for i, _ in used), tuple(f for _, f in used))
            if law is not None:
                yield law
                done.add(total)


def orders(table: Table) -> Iterator[Order]:
    """a <= b, unless the columns' ranges say so already, or it follows from two others."""
    tried = len(table.numbers) * (len(table.numbers) - 1)
    held = dict[tuple[int, int], int]()
    for a, b in _ordered(table):
        low, high = table.raw[:, [a, b]].T
        both = ~np.isnan(low) & ~np.isnan(high)
        low, high = low[both], high[both]
        if len(low) == 0 or low.max() <= high.min():
            continue
        expected = np.searchsorted(np.sort(high), low, side="left").mean() / len(high)
        gap = high - low
        if _believed(int((gap < 0).sum()), expected, len(low), tried) and _edge(low, gap, high, tried):
            held[a, b] = len(low)
    for (a, b), rows in held.items():
        if not any((a, c) in held and (c, b) in held for c in table.numbers) and (b, a) not in held:
            yield Order(table.features[a].name, table.features[b].name, rows)


def _ordered(table: Table) -> Iterator[tuple[int, int]]:
    """Numbers of which one may be at most the other: in some rows it hardly ever is more."""
    some = table.raw[:GLANCE, table.numbers]
    for i, a in enumerate(table.numbers):
        rarely = (some[:, [i]] > some).mean(axis=0) <= 2 * FEW
        yield from ((a, table.numbers[j]) for j in np.flatnonzero(rarely) if j != i)


def determined(table: Table) -> Iterator[Determines]:
    """A value of one column goes with one value of another. Columns that determine each other are named once."""
    columns = [i for i, (_, values) in enumerate(table.codes) if len(values) > 1]
    keys = [i for i in columns if len(table.codes[i][1]) <= MOST_VALUES]
    tried = len(keys) * (len(columns) - 1)
    held = dict[tuple[int, int], None]()
    some = np.stack([code[:GLANCE] for code, _ in table.codes], axis=1)
    for a in keys:
        order = np.argsort(some[:, a], kind="stable")
        alike = some[order[1:], a] == some[order[:-1], a]
        may = (some[order[1:][alike]] == some[order[:-1][alike]]).all(axis=0)  # a glance rules most columns out
        for b in columns:
            if may[b] and a != b and (b, a) not in held and _determines(table, a, b, tried):
                held[a, b] = None
    for a, b in held:
        if any((a, c) in held and (c, b) in held for c in columns):
            continue
        (code, values), theirs = table.codes[a], table.raw[:, b]
        first = np.unique(code, return_index=True)[1]
        pairs = zip(table.cells(a, values), table.cells(b, theirs[first]), strict=True)
        yield Determines(table.features[a].name, table.features[b].name, tuple(pairs), len(code))


def given(table: Table, known: Sequence[Law]) -> Iterator[Given]:
    """If one column is in some state, another is never in some others, though by chance it often would be."""
    counts, expected = _counts(table)
    names = [column.name for column in table.features]
    told = {frozenset(law.columns) for law in known if isinstance(law, Determines | Linear)}
    ends = np.searchsorted([state.column for state in table.states], range(len(names) + 1)).tolist()
    states = [slice(*each) for each in pairwise(ends)]
    times, tried = counts.diagonal()[:, None], len(table.states) ** 2
    never = _few(counts, expected, times, tried) & _few(counts, expected, times.T, tried)
    always = _few(times - counts, times - expected, times, tried)
    for law in known:
        if isinstance(law, Order):
            _leave_out(table, never, states[names.index(law.low)], states[names.index(law.high)])
    column = np.array([state.column for state in table.states], dtype=np.int64)
    pairs = dict.fromkeys((int(column[i]), int(column[j])) for i, j in zip(*np.nonzero(never), strict=True))
    for a, b in sorted(pair for pair in pairs if pair[0] < pair[1]):
        mine, theirs = states[a], states[b]
        if frozenset((names[a], names[b])) in told:
            continue
        both = never[mine, theirs] & _sharp(table, counts, expected, never, mine, theirs)
        exact = counts[mine, theirs] == 0
        for cells in (both & exact, both & ~exact):  # those without exceptions, and the others
            yield from _given(table, cells, mine, theirs, always)


def _counts(table: Table) -> tuple[Floats, Floats]:
    """(states, states) rows that are in both, and how many would be by chance."""
    counts = np.zeros((len(table.states), len(table.states)))
    for some in range(0, len(table.raw), BLOCK):
        rows = np.array([state.rows[some : some + BLOCK] for state in table.states], dtype=np.float32)
        counts += rows @ rows.T
    times = counts.diagonal()
    return counts, times[:, None] * times / len(table.raw)


def _few(counts: Floats, expected: Floats, times: Floats, tried: int) -> Flags:
    """(states, states) which counts are so much lower than chance would have them, and few of all rows in a state."""
    few = counts <= np.minimum(LESS * expected, FEW * times)
    return np.asarray(few & (pdtr(counts, expected) <= CHANCE / max(tried, 1)))


def _leave_out(table: Table, never: Flags, low: slice, high: slice) -> None:
    """What an order says already."""
    for i in range(low.start, low.stop):
        for j in range(high.start, high.stop):
            mine, theirs = table.states[i], table.states[j]
            if not mine.but and not theirs.but and mine.values[0] > theirs.values[0]:
                never[i, j] = never[j, i] = False


def _sharp(table: Table, counts: Floats, expected: Floats, never: Flags, mine: slice, theirs: slice) -> Flags:
    """Beside a number that never occurs there is one that occurs about as often as by chance."""
    usual, bare = counts[mine, theirs] >= SHARP * expected[mine, theirs], never[mine, theirs]
    return _beside(table.states[theirs], usual, bare) & _beside(table.states[mine], usual.T, bare.T).T


def _beside(states: Sequence[Condition], usual: Flags, bare: Flags) -> Flags:
    """(n, states) whether each run of bare levels has a usual one at an end; other states need none."""
    good, levels = np.ones_like(bare), np.array([state.level for state in states])
    for i in np.flatnonzero(bare.any(axis=1)).tolist():
        run = list[int]()
        for j in range(len(states) + 1):
            if j < len(states) and levels[j] and bare[i, j]:
                run.append(j)
            elif run:
                ends = [k for k in (run[0] - 1, j) if 0 <= k < len(states) and levels[k]]
                good[i, run] = any(usual[i, k] for k in ends)
                run = []
    return good


def _given(table: Table, never: Flags, mine: slice, theirs: slice, always: Flags) -> Iterator[Given]:
    """As few laws as say of two columns which of their states never go together: the one that says most comes first."""
    first, second = table.states[mine], table.states[theirs]
    left = _unsaid(second, _unsaid(first, never.T).T)
    said = np.array([not state.but for state in first]), np.array([not state.but for state in second])
    while left.any():
        rows, columns = 2 * left.sum(axis=1) + said[0], 2 * left.sum(axis=0) + said[1]  # sooner "is" than "is not"
        if rows.max() >= columns.max():
            i = int(rows.argmax())
            yield _law(table, first[i], second, never[i], always[mine, theirs][i])
            left[i] = False
        else:
            j = int(columns.argmax())
            yield _law(table, second[j], first, never[:, j], always[theirs, mine][j])
            left[:, j] = False


def _unsaid(states: Sequence[Condition], never: Flags) -> Flags:
    """(n, states) without the levels of a number about all of which something is said together."""
    all_others = np.array([state.but for state in states])
    levels = np.array([state.level for state in states])
    return never & ~(levels & never[:, all_others].any(axis=1, keepdims=True))


def _law(table: Table, when: Condition, states: Sequence[Condition], never: Flags, always: Flags) -> Given:
    """If a column is in a state, another is in the only one that goes with it, or in none of those that never do."""
    out = [state for state, is_out in zip(states, never, strict=True) if is_out]
    only = [state for state, is_only in zip(states, always, strict=True) if is_only and not state.but]
    if only and not (when.rows & ~only[0].rows).any():
        kept, but = only[:1], False
    elif any(state.but for state in out):  # only marks are left
        kept, but = [s for s, is_out in zip(states, never, strict=True) if not (is_out or s.level or s.but)], False
    else:
        kept, but = out, True
    column, among = out[0].column, np.any([state.rows for state in kept], axis=0)
    then = State(table.features[column].name, table.cells(column, np.concatenate([s.values for s in kept])), but)
    meant = among != but
    usual, otherwise = _usual(table, column, when.rows & meant), _usual(table, when.column, ~when.rows & ~meant)
    return Given(when.said(table), then, usual, otherwise, int(when.rows.sum()))


def _usual(table: Table, column: int, rows: Flags) -> Value | None:
    """The most frequent value of some rows that is not missing."""
    values = table.raw[rows, column]
    distinct, times = np.unique(values[~np.isnan(values)], return_counts=True)
    return table.cells(column, distinct[[times.argmax()]])[0] if len(distinct) else None


def _determines(table: Table, a: int, b: int, tried: int) -> bool:
    (code, values), (other, _) = table.codes[a], table.codes[b]
    again = len(code) - len(values)  # rows whose value was seen before
    commonest = np.bincount(other).max() / len(other)
    if -again * math.log(commonest) < math.log(tried / CHANCE):
        return False
    return _combinations(code, other) == len(values)


def _combinations(code: Positions, other: Positions) -> int:
    return len(np.unique(code * (int(other.max()) + 1) + other))


def _believed(exceptions: int, share: float, rows: int, tried: int) -> bool:
    """Whether so few exceptions among these rows would be strange if each had one with this probability."""
    few = exceptions <= min(FEW * rows, LESS * share * rows)
    return few and float(pdtr(exceptions, share * rows)) <= CHANCE / tried


def _edge(low: Floats, gap: Floats, high: Floats, tried: int) -> bool:
    """Whether many rows come near to the order's edge from inside and hardly any from outside, at several values: so
    that it is no accident of two columns that count different things."""
    near = max(EDGE * min(low.std(), high.std()), *(np.diff(np.unique(each)).min() for each in (low, high)))
    inside, outside = (gap >= 0) & (gap <= near), (gap < 0) & (gap >= -near)
    several = len(np.unique(low[inside & (low > low.min())])) >= 3
    return several and bool(inside.sum() >= math.log2(tried / CHANCE)) and bool(outside.sum() <= LESS * inside.sum())


def _ratios(whole: Floats, numbers: list[int]) -> Iterator[tuple[int, int]]:
    """Columns of which one may be a multiple of the other: in a few rows it is."""
    some = whole[:GLANCE, numbers]
    for i, a in enumerate(numbers):
        rows = np.flatnonzero(some[:, i])[:3]
        ratio = some[rows, i + 1 :] / some[rows, i, None]
        for j in np.flatnonzero((np.ptp(ratio, axis=0) <= SAME * np.abs(ratio).max(axis=0)) if len(rows) else ()):
            yield a, numbers[i + 1 + j]


def _multiple(table: Table, whole: Floats, a: int, b: int) -> Linear | None:
    """b as a fixed multiple of a."""
    first, second = whole[:, a], whole[:, b]
    known = first != 0
    if (second[~known] != 0).any() or not known.any():
        return None
    factor = float(second[known][0] / first[known][0])
    return _sum(table, whole, b, (a,), (factor,)) if factor else None


def _sums(whole: Floats, numbers: list[int]) -> Iterator[tuple[int, tuple[int, int]]]:
    """Columns that may be the sum of two others: random weights of some rows turn each column into one number, and the
    sum of columns into the sum of these."""
    weights = np.random.default_rng(0).uniform(0.5, 1.5, PROBES)
    marks = weights @ whole[:: len(whole) // PROBES][:PROBES, numbers]
    order = np.argsort(marks)
    for i, j in combinations(range(len(numbers)), 2):
        wanted = marks[i] + marks[j]
        near = SAME * max(abs(marks[i]), abs(marks[j]))
        first, last = np.searchsorted(marks[order], [wanted - near, wanted + near])
        for k in order[first:last]:
            if k not in (i, j):
                yield numbers[k], (numbers[i], numbers[j])


def _sum(table: Table, whole: Floats, total: int, parts: tuple[int, ...], factors: tuple[float, ...]) -> Linear | None:
    """The law, if all rows keep it and enough of them say something: in each part many differ from 0."""
    names = [column.name for column in table.features]
    law = Linear(names[total], tuple(names[i] for i in parts), factors, len(whole))
    telling = (whole[:, list(parts)] != 0).sum(axis=0).min() >= PROBES and len(np.unique(whole[:, total])) > 2
    return law if telling and not law.bound(table.features).broken(whole, whole).any() else None


def _stride(raw: Floats) -> int:
    """Every how many rows are looked at."""
    rows, columns = raw.shape
    return int(max(1, math.ceil(columns * columns / 2 * rows / WORK)))
