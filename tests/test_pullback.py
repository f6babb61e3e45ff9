"""The way back: closer, still valid, nothing needless left."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

from tdce.goal import AtLeast, Class, Goals
from tdce.limits import Reach
from tdce.methods.interface import Judged, Query, Talk
from tdce.methods.pullback import Tried, bisect, cheapest_first, come_back, give_back
from tdce.space import Space

SPACE = Space(2, (2,), {"a": (0,), "b": (1,), "c": (2, 3)})


def classify(x: Tensor) -> Tensor:
    """A yes if a > 1: b and c play no part."""
    return torch.stack([torch.zeros(len(x)), x[:, 0] - 1], dim=1)


@dataclass
class Scene:
    """A judge by hand; the grid is tenths."""

    classify: Callable[[Tensor], Tensor] = classify
    threshold: float | None = None
    mutable: tuple[bool, ...] = (True,) * 4
    asked: int = 0

    def answered(self, talk: Talk, x: Tensor):
        """What the talk returns."""
        goals = self.goals(x)
        reply = None
        while True:
            try:
                ask = talk.send(reply)
            except StopIteration as end:
                return end.value
            assert ask.x.shape[1] == 1
            candidates, own = ask.x[:, 0], x[ask.at]
            settled = SPACE.join((candidates[:, :2] * 10).round() / 10, SPACE.one_hot(candidates[:, 2:]))
            moved = SPACE.moved(candidates, own)[:, SPACE.owner]
            settled = torch.where(torch.tensor(self.mutable) & moved, settled, own)
            p = self.classify(settled).double().softmax(dim=1)
            mine = goals.take(ask.at)
            self.asked += len(ask.at.unique())
            reply = Judged(
                settled.numpy()[:, None], mine.met(p)[:, None], mine.margin(p)[:, None], p[:, None], torch.from_numpy
            )

    def goals(self, x: Tensor) -> Goals:
        return Goals.all(Class(1) if self.threshold is None else AtLeast(1, self.threshold), len(x))

    def query(self, x: Tensor) -> Query:
        reach = Reach(x[:, :2] - 9, x[:, :2] + 9, torch.ones_like(x[:, 2:], dtype=torch.bool))
        return Query(x, self.goals(x), reach, None, 0, torch.zeros(len(x), 3))

    def pull_back(self, x: Tensor, x_cf: Tensor, share: float = 1.0, order: Tensor | None = None) -> Tensor:
        query = self.query(x)

        def turns(x_cf: Tensor) -> Tensor:
            return cheapest_first(query, SPACE, self.classify, x_cf) if order is None else order

        return self.answered(come_back(query, SPACE, x_cf, share, turns), x)


def rows(*values: float) -> torch.Tensor:
    return torch.tensor([values] * 64)


def test_what_plays_no_part_goes_back_and_the_rest_stops_at_the_border():
    x, x_cf = rows(0.0, 0.0, 1.0, 0.0), rows(3.0, -2.0, 0.0, 1.0)
    found = Scene().pull_back(x, x_cf)
    torch.testing.assert_close(found, rows(1.1, 0.0, 1.0, 0.0))  # the first tenth above the border


def test_a_threshold_moves_the_border():
    x, x_cf = rows(0.0, 0.0, 1.0, 0.0), rows(6.0, 0.0, 1.0, 0.0)
    found = Scene(threshold=0.9).pull_back(x, x_cf)
    p = torch.sigmoid(found[:, 0] - 1)
    assert (p >= 0.9).all()
    assert (torch.sigmoid(found[:, 0] - 0.1 - 1) < 0.9).all()  # a tenth less would not do


def test_a_row_that_is_not_valid_is_left_as_it_is():
    x, x_cf = rows(0.0, 0.0, 1.0, 0.0), rows(0.5, -2.0, 0.0, 1.0)
    torch.testing.assert_close(Scene().pull_back(x, x_cf), x_cf)


def test_a_query_off_the_grid_keeps_its_own_bits_where_nothing_moves():
    x = rows(0.0, 0.123456, 1.0, 0.0)
    found = Scene().pull_back(x, rows(3.0, 5.0, 0.0, 1.0))
    assert torch.equal(found[:, 1], x[:, 1])


def test_rows_go_their_own_ways():
    x, x_cf = rows(0.0, 0.0, 1.0, 0.0), rows(3.0, 1.0, 0.0, 1.0)
    x[1], x_cf[2] = torch.tensor([0.8, 0.0, 1.0, 0.0]), torch.tensor([0.9, 1.0, 0.0, 1.0])
    found = Scene().pull_back(x, x_cf)
    for i in range(3):
        alone = Scene().pull_back(x[i].repeat(64, 1), x_cf[i].repeat(64, 1))
        assert torch.equal(found[i], alone[0])


@pytest.mark.parametrize("frozen", [1, 2])
def test_immutable_columns_are_the_querys(frozen):
    mutable = [True, True, True, True]
    mutable[frozen] = False
    mutable = mutable if frozen < 2 else [True, True, False, False]
    x, x_cf = rows(0.0, 0.0, 1.0, 0.0), rows(3.0, -2.0, 0.0, 1.0)
    kept = torch.tensor(mutable)
    found = Scene(mutable=tuple(mutable)).pull_back(x, x_cf)
    assert torch.equal(found[:, ~kept], x[:, ~kept])


def test_no_more_than_the_share_of_the_margin_is_spent():
    x, x_cf = rows(0.0, 0.0, 1.0, 0.0), rows(5.0, 0.0, 1.0, 0.0)  # the border is at 1: a margin of 4
    for share, at in ((0.0, 5.0), (0.5, 3.0), (0.75, 2.0)):
        torch.testing.assert_close(Scene().pull_back(x, x_cf, share)[:, 0], torch.full((64,), at), atol=0.11, rtol=0)


def both(x: torch.Tensor) -> torch.Tensor:
    """A yes if 2 a + b > 1."""
    return torch.stack([torch.zeros(len(x)), 2 * x[:, 0] + x[:, 1] - 1], dim=1)


def test_the_cheapest_feature_is_given_back_first():
    scene = Scene(both)
    x, x_cf = rows(0.0, 0.0, 1.0, 0.0), rows(1.0, 1.2, 0.0, 1.0)  # a is worth 2, b 1.2, c nothing
    assert cheapest_first(scene.query(x), SPACE, both, x_cf)[0].tolist() == [2, 1, 0]
    torch.testing.assert_close(scene.pull_back(x, x_cf)[0, 1:], torch.tensor([0.0, 1.0, 0.0]))  # a alone is left


def test_the_order_decides_what_goes_back_first():
    x, x_cf = rows(0.0, 0.0, 1.0, 0.0), rows(1.0, 1.2, 0.0, 1.0)  # either of a and b alone would do
    for order, left in (((0, 1, 2), [False, True]), ((1, 0, 2), [True, False])):
        found = Scene(both).pull_back(x, x_cf, order=torch.tensor([order] * 64))
        assert (found[0, :2] != 0).tolist() == left


def test_each_part_by_itself():
    x, x_cf = rows(0.0, 0.0, 1.0, 0.0), rows(3.0, -2.0, 0.0, 1.0)
    turns, query, scene = torch.tensor([[0, 1, 2]] * 64), Scene().query(rows(0.0, 0.0, 1.0, 0.0)), Scene()

    def attempt(candidate: Tensor, now: Tensor) -> Talk[Tried]:
        judged = yield query.ask(candidate)
        return Tried(judged.x[:, 0], judged.met)

    torch.testing.assert_close(scene.answered(give_back(x, SPACE, x_cf, attempt, turns), x), rows(3.0, 0.0, 1.0, 0.0))
    found = scene.answered(bisect(x, SPACE, x_cf, attempt), x)
    torch.testing.assert_close(found, rows(1.1, -0.7, 0.0, 1.0))  # along one line


def test_nobody_is_asked_about_a_row_that_would_not_change():
    """b and c are the query's already and two of 64 rows are not valid: first all, then 62 by a's turn, then the six
    halvings of the way."""
    scene, x, x_cf = Scene(), rows(0.0, 0.0, 1.0, 0.0), rows(3.0, 0.0, 1.0, 0.0)
    x_cf[:2, 0] = 0.5
    scene.pull_back(x, x_cf)
    assert scene.asked == 64 + 62 + 6 * 62
