"""Segments: how many people a few actions help, compared with brute force and small versions of AReS and GLOBE-CE.

    python benchmarks/segments.py [--data german,adult] [--people 150] [--cache FOLDER]
    python benchmarks/segments.py --docs          writes the tables of docs/segments.md from the results

The explainer has default settings and learns at most 8,000 training rows with the roles of the data set; the people are
the first refused ones (german: of the whole table; adult: of the test rows). No method changes an immutable feature or
uses a category that is never proposed.

`accepted`: the share of people to whom some action gives the wanted decision. `within`: the same within the person's
limits, laws and rules. `safe`: the same with a safety of at least 0.75, the definition of help in `segments`;
`segments, safety 0` accepts any safety. `cost`: the mean distance of answers over those of `within`, each by the
cheapest action. `brute force` enumerates all choices of that many actions from the candidates of `segments`.

`ares` (Rawal and Lakkaraju 2020): rules "if c then c'", where c and c' are conjunctions over the same features with a
support of at least 10 % in the training rows (Apriori; numbers in ten bins of equal width, a bin stands for its
middle), at most three features wide, chosen greedily for the people to whom they give the wanted decision; there is
one subgroup, everybody. `globe-ce` (Ley, Mishra and Magazzeni 2023): random directions over three features, numbers in
units of their bins; directions are chosen one after the other, each giving the wanted decision at the full magnitude to
most of the remaining people; each person then goes only as far along a direction as needed.
Writes results/segments.csv.
"""

import argparse
from collections.abc import Iterator
from itertools import combinations, product
from math import comb
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch
from docs_tables import put

import tdce
from tdce._core import Floats
from tdce.explainer.segments import propose
from tdce.methods import Trial, measure_distance
from tdce.models import Oracle
from tdce.schema import FeasibleSet, Numeric

COUNTS = (1, 2, 3, 5)
ENUMERATED = (1, 2, 3)
BINS = 10
SUPPORT = 0.1
WIDTH = 3  # features of an action, a rule or a direction
DIRECTIONS, FULL, SCALES = 1000, 5.0, 20
SAFE = 0.75
MOST_ROWS = 8_000


class People(NamedTuple):
    """The refused ones, and what decides on them."""

    explainer: tdce.Explainer
    rows: pd.DataFrame
    train: pd.DataFrame
    feasible: FeasibleSet

    @classmethod
    def of(cls, name: str, count: int, cache: Path) -> "People":
        data, path = tdce.load(name), cache / f"segments-{name}.tdce"
        train = data.part("train")
        train = train.sample(min(len(train), MOST_ROWS), random_state=0)
        if not path.exists():
            made = tdce.Explainer(progress="silent")
            made.fit(train, label=data.label, favourable=data.favourable, schema=data.schema)
            cache.mkdir(parents=True, exist_ok=True)
            made.save(path)
        explainer = tdce.Explainer.load(path, progress="silent")
        frame = data.part("test") if len(data.frame) > 5_000 else data.frame
        rows = frame[(explainer.predict(frame) != data.favourable).to_numpy()].head(count)
        return cls(explainer, rows, train, FeasibleSet.of(explainer.fitted.encoder, rows))

    def trial(self, safety: float = SAFE) -> Trial:
        task = self.explainer.fitted.task(self.feasible.immutable)
        goals = self.explainer.fitted.resolve_goals(None, None, self.feasible.own)
        return Trial(task, self.feasible, goals, {}, safety)

    @property
    def free(self) -> list[int]:
        """The features that may change, and do not follow others."""
        may = ~self.feasible.frozen
        may[self.feasible.constraints.followers] = False
        return np.flatnonzero(may).tolist()

    def proposable(self, c: int) -> np.ndarray:
        """(categories,) which of them may be proposed."""
        return self.feasible.columns[c].column.proposable

    def judge(self, raw: Floats) -> tuple[np.ndarray, np.ndarray, np.ndarray, Floats]:
        """Everybody's rows (people, features): accepted, within limits, safe, and their cost."""
        trial, encoder = self.trial(), self.explainer.fitted.encoder
        goals = trial.goals
        scores = trial.task.oracle.score(raw)
        accepted = goals.met(scores).numpy()
        safety = trial.task.second_opinion.safety(
            goals.shown_margin(scores), encoder.embed(raw).float(), goals, trial.task.oracle.model.outputs
        ).numpy()
        within = accepted & self.feasible.contains(raw)
        cost = measure_distance(trial.task, self.feasible.x, raw[:, None], {})[:, 0]
        return accepted, within, within & (safety >= SAFE), cost


class Found(NamedTuple):
    """Whom actions help, in the order in which they were chosen; arrays are (actions, people)."""

    accepted: np.ndarray
    within: np.ndarray
    safe: np.ndarray
    cost: Floats
    candidates: int
    model_rows: int

    def lines(self, method: str, counts: tuple[int, ...] = COUNTS) -> Iterator[dict[str, object]]:
        for count in counts:
            shares = {name: getattr(self, name)[:count].any(axis=0).mean() for name in ("accepted", "within", "safe")}
            cheapest = np.where(self.within, self.cost, np.inf)[:count].min(axis=0)
            cheapest = cheapest[np.isfinite(cheapest)]
            yield {
                "method": method, "actions": count, "people": self.within.shape[1], **shares,
                "cost": cheapest.mean() if len(cheapest) else np.nan, "candidates": self.candidates,
                "model_rows": self.model_rows,
            }  # fmt: skip


def ours(people: People) -> Iterator[dict[str, object]]:
    """Segments with each number of actions, and brute force over the actions that the smaller ones were chosen from."""
    answer = people.explainer.explain(people.rows, n=3)
    proposed = propose(answer, people.feasible, WIDTH)
    for method, safety in (("segments", SAFE), ("segments, safety 0", 0.0)):
        for count in COUNTS:
            trial = people.trial(safety)
            before = trial.task.oracle.usage.rows
            chosen, tried = trial.choose(proposed, count, WIDTH)
            queried = answer.model_rows + trial.task.oracle.usage.rows - before
            outcomes = trial.decide(chosen)
            helps, cost = (np.stack(each) for each in ([trial.helps(o) for o in outcomes], [o.cost for o in outcomes]))
            safe = helps & (np.stack([o.safety for o in outcomes]) >= SAFE)
            yield from Found(helps, helps, safe, cost, tried, queried).lines(method, (count,))
            if safety == SAFE and count in ENUMERATED:
                every = list(trial._priced)
                helps = np.unique(trial.values(every) > 0, axis=0)
                best = most_helped(helps, count) / helps.shape[1]
                yield {"method": "brute force", "actions": count, "people": helps.shape[1], "safe": best,
                       "candidates": len(every)}  # fmt: skip
                print("   brute force", count, len(every), best, flush=True)


def most_helped(helps: np.ndarray, count: int) -> int:
    """The largest number of people that any so many actions help: all choices but those that cannot be better."""
    helps = helps[np.argsort(-helps.sum(axis=1), kind="stable")]
    padded = np.zeros((len(helps), -(-helps.shape[1] // 64) * 64), dtype=bool)
    padded[:, : helps.shape[1]] = helps
    words, size = np.packbits(padded, axis=1).view(np.uint64), helps.sum(axis=1)
    best = 0

    def add(union: np.ndarray, start: int, left: int) -> None:
        nonlocal best
        unions = words[start:] | union
        counted = np.bitwise_count(unions).sum(axis=1)
        if left == 1:
            best = max(best, int(counted.max(initial=0)))
            return
        for i in range(len(unions)):
            further = size[start + i + 1 : start + i + left].sum()
            if counted[i] + further > best:
                add(unions[i], start + i + 1, left - 1)

    add(np.zeros(words.shape[1], dtype=np.uint64), 0, count)
    return best


def bins(people: People) -> tuple[np.ndarray, np.ndarray, list[Floats]]:
    """The features of people and of training rows as codes, and the raw value that each code stands for."""
    encoder = people.explainer.fitted.encoder
    own, train = people.feasible.own, encoder.read(people.train)
    codes, train_codes, values = np.zeros_like(own), np.zeros_like(train), []
    for c, column in enumerate(people.explainer.schema):
        if isinstance(column, Numeric):
            edges = np.linspace(column.low, column.high, BINS + 1)
            for raw, coded in ((own, codes), (train, train_codes)):
                coded[:, c] = np.clip(np.searchsorted(edges, raw[:, c], side="right") - 1, 0, BINS - 1)
            values.append(column.round((edges[1:] + edges[:-1]) / 2))
        else:
            codes[:, c], train_codes[:, c] = np.nan_to_num(own[:, c], nan=-1), np.nan_to_num(train[:, c], nan=-1)
            values.append(np.arange(column.bounds[1] + 1))
    return codes.astype(int), train_codes.astype(int), values


def ares(people: People) -> Found:
    """Rules from one frequent conjunction to another over the same features."""
    codes, train, values = bins(people)
    parts: list[tuple[np.ndarray, ...]] = []
    rules = queried = 0
    for conjunction, places in frequent(train, people.free, values):
        if not all(may_move_to(people, c, code) for c, code in zip(places, conjunction, strict=True)):
            continue
        # everybody moves to this conjunction; each conjunction that people have now makes a rule of its own
        raw = people.feasible.own.copy()
        for c, code in zip(places, conjunction, strict=True):
            raw[:, c] = np.where(codes[:, c] == code, raw[:, c], values[c][code])
        *judged, cost = people.judge(raw)
        queried += len(raw)
        of = [tuple(each) for each in codes[:, list(places)].tolist()]
        for start in sorted(set(of) - {conjunction}):
            if support(train, places, start) >= SUPPORT:
                rules += 1
                who = np.array([each == start for each in of])
                if (judged[0] & who).any():
                    parts.append((*(each & who for each in judged), cost))
    order = greedy(np.array([part[0] for part in parts]))
    return Found(*(np.array([parts[i][k] for i in order]) for k in range(4)), rules, queried)


def may_move_to(people: People, c: int, code: int) -> bool:
    return isinstance(people.feasible.columns[c].column, Numeric) or bool(people.proposable(c)[code])


def frequent(
    train: np.ndarray, free: list[int], values: list[Floats]
) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Apriori: conjunctions of codes, and the features that they are about, with enough support."""
    single = {(c, code) for c in free for code in range(len(values[c])) if support(train, (c,), (code,)) >= SUPPORT}
    for width in range(1, WIDTH + 1):
        for places in combinations(free, width):
            choices = [[code for c, code in sorted(single) if c == place] for place in places]
            for conjunction in product(*choices):
                if support(train, places, conjunction) >= SUPPORT:
                    yield conjunction, places


def support(train: np.ndarray, places: tuple[int, ...], conjunction: tuple[int, ...]) -> float:
    return float((train[:, list(places)] == conjunction).all(axis=1).mean())


def globe_ce(people: People) -> Found:
    """Random directions, chosen at the full magnitude; each person goes only as far as is needed."""
    rng, free = np.random.default_rng(0), people.free
    directions = []
    for _ in range(DIRECTIONS):
        places = rng.choice(free, min(WIDTH, len(free)), replace=False)
        directions.append([(c, rng.uniform(-1, 1, block(people, c))) for c in sorted(places.tolist())])
    oracle, goals = Oracle(people.explainer.fitted.model), people.trial().goals
    met = np.stack([goals.met(oracle.score(move(people, each, FULL))).numpy() for each in directions])
    order = greedy(met)
    parts = [shortest(people, directions[i]) for i in order]
    queried = (DIRECTIONS + len(order) * SCALES) * len(people.rows)
    return Found(*(np.array([part[k] for part in parts]) for k in range(4)), DIRECTIONS, queried)


def shortest(people: People, direction: list[tuple[int, Floats]]) -> tuple[np.ndarray, ...]:
    """Everybody at the first of the scales at which the decision is the wanted one."""
    found = people.judge(move(people, direction, FULL / SCALES))
    for scale in np.linspace(FULL / SCALES, FULL, SCALES)[1:]:
        further = people.judge(move(people, direction, scale))
        found = tuple(np.where(found[0], old, new) for old, new in zip(found, further, strict=True))
    return found


def block(people: People, c: int) -> int:
    """The numbers of a direction in one feature: one, or one per category."""
    column = people.feasible.columns[c].column
    return 1 if isinstance(column, Numeric) else int(column.bounds[1]) + 1


def move(people: People, direction: list[tuple[int, Floats]], scale: float) -> Floats:
    """Everybody, so far along a direction: numbers in bins, categories by the largest weight."""
    raw = people.feasible.own.copy()
    for c, weights in direction:
        column, own = people.feasible.columns[c].column, people.feasible.own[:, c]
        if isinstance(column, Numeric):
            there = column.round(
                np.clip(own + scale * weights[0] * (column.high - column.low) / BINS, column.low, column.high)
            )
            raw[:, c] = np.where(column.round(own) == there, own, there)
        else:
            one_hot = np.nan_to_num(own[:, None], nan=-1) == np.arange(len(weights))
            may = one_hot | people.proposable(c)
            raw[:, c] = np.where(may, one_hot + scale * weights, -np.inf).argmax(axis=1)
    return raw


def greedy(helps: np.ndarray) -> list[int]:
    """At most the largest number of actions, each for most of the people who are left."""
    left, order = np.ones(helps.shape[1], dtype=bool), []
    for _ in range(max(COUNTS)):
        gains = (helps & left).sum(axis=1)
        if gains.max() == 0:
            break
        order.append(int(gains.argmax()))
        left &= ~helps[order[-1]]
    return order


def measure_all(data: list[str], count: int, cache: Path) -> pd.DataFrame:
    lines = []
    for name in data:
        people = People.of(name, count, cache)
        parts = [*ours(people), *ares(people).lines("ares"), *globe_ce(people).lines("globe-ce")]
        lines += [{"data": name} | part for part in parts]
        print(name, "measured", flush=True)
    return pd.DataFrame(lines)


def markdown(table: pd.DataFrame) -> str:
    """Shares of people and their cost, by data, method and number of actions."""
    lines = ["| data | method | candidates | measure | " + " | ".join(f"{k} actions" for k in COUNTS) + " |"]
    lines[0] = lines[0].replace("| 1 actions", "| 1 action")
    lines.append("|---" * (4 + len(COUNTS)) + "|")
    for (data, method), part in table[table["method"] != "brute force"].groupby(["data", "method"], sort=False):
        cells = part.set_index("actions")
        for measure in ("accepted", "within", "safe", "cost"):
            values = (f"{cells.loc[k, measure]:{'.2f' if measure == 'cost' else '.1%'}}" for k in COUNTS)
            lines.append(
                f"| {data} | {method} | {int(cells['candidates'].max()):,} | {measure} | {' | '.join(values)} |"
            )
    return "\n".join(lines)


def optimum(table: pd.DataFrame) -> str:
    """Segments beside the best of all choices."""
    lines = ["| data | actions | candidates | choices | segments | brute force | ratio |", "|---" * 7 + "|"]
    for (data, actions), part in table[table["actions"].isin(ENUMERATED)].groupby(["data", "actions"], sort=False):
        by = part.set_index("method")
        helped, best = by.loc["segments", "safe"], by.loc["brute force", "safe"]
        count, people = int(by.loc["brute force", "candidates"]), int(by.loc["segments", "people"])
        choices = comb(count, int(actions))
        numbers = f"{round(helped * people)} of {people} | {round(best * people)} of {people} | {helped / best:.3f}"
        lines.append(f"| {data} | {actions} | {count:,} | {choices:,} | {numbers} |")
    return "\n".join(lines)


def write_docs(results: Path, page: Path) -> None:
    table = pd.read_csv(results)
    put(page, segments=markdown(table), optimum=optimum(table))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default="german,adult")
    parser.add_argument("--people", type=int, default=150)
    parser.add_argument("--cache", type=Path, default=Path("results/fitted"))
    parser.add_argument("--out", type=Path, default=Path("results"))
    parser.add_argument("--docs", action="store_true")
    asked = parser.parse_args()
    if asked.docs:
        write_docs(asked.out / "segments.csv", Path("docs/segments.md"))
        return
    torch.set_num_threads(1)
    table = measure_all(asked.data.split(","), asked.people, asked.cache)
    table.to_csv(asked.out / "segments.csv", index=False)
    print(markdown(table), optimum(table), sep="\n\n")


if __name__ == "__main__":
    main()
