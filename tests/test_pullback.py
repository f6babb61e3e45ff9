"""The way back: closer, still valid, nothing needless left."""

from dataclasses import replace

import pytest
import torch

from tdce.methods.interface import Task
from tdce.methods.pullback import bisect, come_back, give_back, order_of
from tdce.space import Space

SPACE = Space(2, (2,), {"a": (0,), "b": (1,), "c": (2, 3)})
YES = torch.ones(64, dtype=torch.long)


def task(threshold: float | None = None, mutable: tuple[bool, ...] = (True,) * 4) -> Task:
    """A yes if a > 1: b and c play no part. The grid is tenths."""

    def classify(x: torch.Tensor) -> torch.Tensor:
        return torch.stack([torch.zeros(len(x)), x[:, 0] - 1], dim=1)

    def settle(x: torch.Tensor) -> torch.Tensor:
        return SPACE.join((x[:, :2] * 10).round() / 10, SPACE.one_hot(x[:, 2:]))

    empty = torch.zeros(0)
    return Task(SPACE, classify, None, torch.tensor(mutable), empty, empty, settle, threshold=threshold)


def pull_back(task: Task, x: torch.Tensor, x_cf: torch.Tensor, target: torch.Tensor, share: float = 1.0):
    return come_back(task, x, x_cf, target, share)


def rows(*values: float) -> torch.Tensor:
    return torch.tensor([values] * 64)


def test_what_plays_no_part_goes_back_and_the_rest_stops_at_the_border():
    x, x_cf = rows(0.0, 0.0, 1.0, 0.0), rows(3.0, -2.0, 0.0, 1.0)
    found = pull_back(task(), x, x_cf, YES)
    torch.testing.assert_close(found, rows(1.1, 0.0, 1.0, 0.0))  # the first tenth above the border


def test_a_threshold_moves_the_border():
    x, x_cf = rows(0.0, 0.0, 1.0, 0.0), rows(6.0, 0.0, 1.0, 0.0)
    found = pull_back(task(threshold=0.9), x, x_cf, YES)
    p = torch.sigmoid(found[:, 0] - 1)
    assert (p >= 0.9).all()
    assert (torch.sigmoid(found[:, 0] - 0.1 - 1) < 0.9).all()  # a tenth less would not do


def test_a_row_that_is_not_valid_is_left_as_it_is():
    x, x_cf = rows(0.0, 0.0, 1.0, 0.0), rows(0.5, -2.0, 0.0, 1.0)
    torch.testing.assert_close(pull_back(task(), x, x_cf, YES), x_cf)


def test_a_query_off_the_grid_keeps_its_own_bits_where_nothing_moves():
    x = rows(0.0, 0.123456, 1.0, 0.0)
    found = pull_back(task(), x, rows(3.0, 5.0, 0.0, 1.0), YES)
    assert torch.equal(found[:, 1], x[:, 1])


def test_rows_go_their_own_ways():
    x, x_cf = rows(0.0, 0.0, 1.0, 0.0), rows(3.0, 1.0, 0.0, 1.0)
    x[1], x_cf[2] = torch.tensor([0.8, 0.0, 1.0, 0.0]), torch.tensor([0.9, 1.0, 0.0, 1.0])
    found = pull_back(task(), x, x_cf, YES)
    for i in range(3):
        alone = pull_back(task(), x[i].repeat(64, 1), x_cf[i].repeat(64, 1), YES)
        assert torch.equal(found[i], alone[0])


@pytest.mark.parametrize("frozen", [1, 2])
def test_immutable_columns_are_the_querys(frozen):
    mutable = [True, True, True, True]
    mutable[frozen] = False
    mutable = mutable if frozen < 2 else [True, True, False, False]
    x, x_cf = rows(0.0, 0.0, 1.0, 0.0), rows(3.0, -2.0, 0.0, 1.0)
    kept = torch.tensor(mutable)
    found = pull_back(replace(task(), mutable=kept), x, x_cf, YES)
    assert torch.equal(found[:, ~kept], x[:, ~kept])


def test_no_more_than_the_share_of_the_margin_is_spent():
    x, x_cf = rows(0.0, 0.0, 1.0, 0.0), rows(5.0, 0.0, 1.0, 0.0)  # the border is at 1: a margin of 4
    for share, at in ((0.0, 5.0), (0.5, 3.0), (0.75, 2.0)):
        torch.testing.assert_close(
            pull_back(task(), x, x_cf, YES, share)[:, 0], torch.full((64,), at), atol=0.06, rtol=0
        )


def both(x: torch.Tensor) -> torch.Tensor:
    """A yes if 2 a + b > 1."""
    return torch.stack([torch.zeros(len(x)), 2 * x[:, 0] + x[:, 1] - 1], dim=1)


def test_the_cheapest_feature_is_given_back_first():
    judge = replace(task(), classifier=both)
    x, x_cf = rows(0.0, 0.0, 1.0, 0.0), rows(1.0, 1.2, 0.0, 1.0)  # a is worth 2, b 1.2, c nothing
    assert order_of(judge, x, x_cf, YES, None)[0].tolist() == [2, 1, 0]
    torch.testing.assert_close(pull_back(judge, x, x_cf, YES)[0, 1:], torch.tensor([0.0, 1.0, 0.0]))  # a alone is left


def test_by_taste_what_is_liked_least_goes_back_first():
    judge = replace(task(), classifier=both)
    x, x_cf = rows(0.0, 0.0, 1.0, 0.0), rows(1.0, 1.2, 0.0, 1.0)  # either of a and b alone would do
    for taste, left in (((0.0, 1.0, 2.0), [False, True]), ((1.0, 0.0, 2.0), [True, False])):
        found = come_back(judge, x, x_cf, YES, 1.0, torch.tensor([taste] * 64))
        assert (found[0, :2] != 0).tolist() == left


def test_each_part_by_itself():
    x, x_cf = rows(0.0, 0.0, 1.0, 0.0), rows(3.0, -2.0, 0.0, 1.0)
    judge, turns = task(), torch.tensor([[0, 1, 2]] * 64)

    def holds(candidate: torch.Tensor) -> torch.Tensor:
        return judge.accepts(candidate, YES)[:, None]

    torch.testing.assert_close(give_back(judge, x, x_cf, holds, turns), rows(3.0, 0.0, 1.0, 0.0))
    torch.testing.assert_close(bisect(judge, x, x_cf, holds), rows(1.1, -0.7, 0.0, 1.0))  # along one line
