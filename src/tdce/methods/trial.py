"""The trial of actions: the effect of each on each person, and the choice of those that help most people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import NamedTuple

import numpy as np
import torch

from tdce._core import Flags, Floats, Name, round_scores
from tdce.methods.actions import Action, apply_action, join_actions
from tdce.methods.attribution import shown_margin
from tdce.methods.cover import Values, choose_actions
from tdce.methods.objective import measure_distance
from tdce.methods.protocol import Task
from tdce.models import Goals
from tdce.schema import FeasibleSet

MICRO = 1_000_000  # distances have six decimals
MOST_PER_FEATURE = 1_000  # upper limit of a feature's part in a distance
JOINED = 20  # best actions of each size, of which pairs are tried
PRICED_AT_A_TIME = 32


class Outcome(NamedTuple):
    """The effect of one action on people; arrays are (people,)."""

    raw: Floats  # (people, features) the rows after the action, unchanged where it is not possible
    possible: Flags
    cost: Floats  # as an answer's distance; NaN where it is not possible
    accepted: Flags  # by the model
    safety: Floats  # NaN where it is not accepted, or not known
    score: Floats  # as shown; NaN where it is not possible


@dataclass(frozen=True, eq=False)
class Trial:
    """People who were refused, their goals, and the conditions under which an action helps."""

    task: Task
    feasible: FeasibleSet
    goals: Goals
    costs: Mapping[Name, float]
    safety: float  # minimum that counts as help
    max_cost: float = inf  # maximum that counts as help
    _priced: dict[Action, tuple[Flags, Floats]] = field(default_factory=dict)  # whom it may help, and at what cost
    _known: dict[Action, Flags] = field(default_factory=dict)  # whom it helps

    def choose(self, actions: Sequence[Action], most: int, changes: int) -> tuple[list[Action], int]:
        """At most `most` of these actions and of pairs of them with at most `changes` steps: those that help most
        people and, among such choices, cost them least; and the number of actions they were chosen from."""
        tried = list(actions)
        self._choose(tried, 2 * most)
        people = {action: int(self._known[action].sum()) for action in tried if action in self._known}
        first = sorted(people, key=lambda action: -people[action])
        of_size = {size: [action for action in first if len(action) == size] for size in range(1, changes)}
        best = [action for some in of_size.values() for action in some[:JOINED]]
        tried = list(dict.fromkeys([*tried, *join_actions(best, changes)]))
        return self._choose(tried, most), len(tried)

    def _choose(self, actions: list[Action], most: int) -> list[Action]:
        chosen = choose_actions(self.bounds(actions), lambda at: self.values([actions[i] for i in at]), most)
        return [actions[i] for i in chosen]

    def bounds(self, actions: Sequence[Action]) -> Values:
        """(actions, people) the worth of each action if the model accepted it safely; exact where that is known.

        Helping one person is worth more than the greatest total cost, so that nobody is left out to spare others.
        """
        fresh = [action for action in actions if action not in self._priced]
        for action, (_, possible, cost) in zip(fresh, self._price(fresh), strict=True):
            self._priced[action] = possible & (np.nan_to_num(cost) <= self.max_cost), cost
        worth = (1 + len(self.feasible.own)) * (1 + len(self.feasible.columns)) * MOST_PER_FEATURE * MICRO
        values = np.zeros((len(actions), len(self.feasible.own)), dtype=np.int64)
        for i, action in enumerate(actions):
            possible, cost = self._priced[action]
            helps = self._known.get(action, possible)
            values[i, helps] = worth - np.round(cost[helps] * MICRO).astype(np.int64)
        return values

    def values(self, actions: Sequence[Action]) -> Values:
        """(actions, people) the worth of each action, after a decision by the model."""
        fresh = [action for action in actions if action not in self._known]
        self._known.update(zip(fresh, map(self.helps, self.decide(fresh)), strict=True))
        return self.bounds(actions)

    def helps(self, outcome: Outcome) -> Flags:
        """(people,) whom an action helps."""
        safe = np.isnan(outcome.safety) | (outcome.safety >= self.safety)
        return np.asarray(outcome.accepted & safe & (outcome.cost <= self.max_cost))

    def decide(self, actions: Sequence[Action]) -> list[Outcome]:
        """The outcome of each action, decided by the model in one call."""
        priced = self._price(actions)
        if not priced:
            return []
        person = np.concatenate([np.flatnonzero(possible) for _, possible, _ in priced])
        raw = np.concatenate([rows[possible] for rows, possible, _ in priced])
        goals = self.goals.take(torch.from_numpy(person))
        scores = self.task.oracle.score(raw)
        met, shown = goals.met(scores).numpy(), round_scores(goals.display_score(scores)).numpy()
        safety = np.full(len(raw), np.nan)
        if self.task.second_opinion is not None and met.any():
            x, at = self.task.encoder.embed(raw[met]).float(), torch.from_numpy(np.flatnonzero(met))
            margin = shown_margin(scores, goals)[at]
            safety[met] = self.task.second_opinion.safety(margin, x, goals.take(at), self.task.oracle.model.outputs)
        where = [possible for _, possible, _ in priced]
        accepted = _split(met.astype(np.float64), where)
        parts = zip(priced, accepted, _split(safety, where), _split(shown, where), strict=True)
        return [Outcome(rows, who, cost, yes == 1, safe, score) for (rows, who, cost), yes, safe, score in parts]

    def _price(self, actions: Sequence[Action]) -> list[tuple[Floats, Flags, Floats]]:
        """For each action, the rows after it, where it is possible, and its cost."""
        priced = []
        for start in range(0, len(actions), PRICED_AT_A_TIME):
            applied = [apply_action(action, self.feasible) for action in actions[start : start + PRICED_AT_A_TIME]]
            person = np.concatenate([np.flatnonzero(possible) for _, possible in applied])
            raw = np.concatenate([rows[possible] for rows, possible in applied])
            cost = measure_distance(self.task, self.feasible.x[torch.from_numpy(person)], raw[:, None], self.costs)[
                :, 0
            ]
            for (rows, possible), own in zip(applied, _split(cost, [possible for _, possible in applied]), strict=True):
                priced.append((rows, possible, own))
        return priced


def _split(values: Floats, where: Sequence[Flags]) -> list[Floats]:
    """Split concatenated values: for each array of flags (people,), the values of the flagged people, NaN elsewhere."""
    parts, start = [], 0
    for flags in where:
        part, stop = np.full(len(flags), np.nan), start + int(flags.sum())
        part[flags] = values[start:stop]
        parts.append(part)
        start = stop
    return parts
