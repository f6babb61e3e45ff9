"""A few actions for many people: lazy greedy maximisation of a submodular function, then swaps."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from tdce._core import Positions

Values = NDArray[np.int64]
"""(actions, people) the worth of each action for each person, 0 if it does not help; integers, so that sums are exact.
"""

AT_A_TIME = 32  # actions that are valued together
SWEEPS = 20  # maximum number of sweeps over the chosen actions


def choose_actions(
    bounds: Values,
    value: Callable[[Positions], Values],  # computes the worth of actions not valued before
    most: int,
) -> list[int]:
    """At most `most` actions A with a large F(A), the sum over people of the best that A offers each: first the action
    that is worth most, then the one that adds most to it, and so on.

    F is monotone and submodular: what an action adds never grows as others are chosen. The greedy choice is therefore
    worth at least 1 - 1/e of the optimum (Nemhauser, Wolsey and Fisher 1978), and an action whose bound is below what
    another one adds need not be valued (Minoux 1978). Then chosen actions are swapped for better ones while there are
    any, and those that add nothing are dropped. Ties go to the first.
    """
    search = _Lazy(bounds.copy(), value)
    chosen: list[int] = []
    while len(chosen) < most:
        action, gain = search.best(search.offered(chosen))
        if gain == 0:
            break
        chosen.append(action)
    for _ in range(SWEEPS):
        before = list(chosen)
        for i in range(len(chosen)):
            others = search.offered(chosen[:i] + chosen[i + 1 :])
            action, gain = search.best(others)
            if gain > search.gain(chosen[i], others):
                chosen[i] = action
        if chosen == before:
            break
    return search.ordered(chosen)


class _Lazy:
    """Values that are computed only where a bound says that they may matter."""

    def __init__(self, bounds: Values, value: Callable[[Positions], Values]) -> None:
        self.values, self.known, self.value = bounds, np.zeros(len(bounds), dtype=bool), value

    def best(self, offered: Values) -> tuple[int, int]:
        """The action that adds most to what is offered (people,), and how much it adds."""
        bound = self._gains(slice(None), offered)
        order = np.argsort(-bound, kind="stable")
        gains = np.full(len(bound), -1)
        for start in range(0, len(order), AT_A_TIME):
            some = order[start : start + AT_A_TIME]
            if bound[some[0]] < gains.max():
                break
            unknown = some[~self.known[some]]
            if len(unknown):
                self.values[unknown], self.known[unknown] = self.value(unknown), True
            gains[some] = self._gains(some, offered)
        if not len(gains):
            return -1, 0
        action = int(gains.argmax())  # the first of equals
        return action, int(gains[action])

    def gain(self, action: int, offered: Values) -> int:
        return int(self._gains([action], offered)[0])

    def offered(self, chosen: list[int]) -> Values:
        """(people,) the best value among these actions."""
        return np.asarray(self.values[chosen].max(axis=0, initial=0))

    def ordered(self, chosen: list[int]) -> list[int]:
        """The same actions in the order of what each adds to those before it, without those that add nothing."""
        left, order = sorted(set(chosen)), list[int]()
        while left:
            gains = self._gains(left, self.offered(order))
            if gains.max() == 0:
                break
            order.append(left.pop(int(gains.argmax())))
        return order

    def _gains(self, actions: slice | Positions | list[int], offered: Values) -> Values:
        return np.asarray(np.maximum(self.values[actions] - offered, 0).sum(axis=1))
