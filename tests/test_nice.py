"""NICE on tables small enough to walk by hand: which row it starts at, what it gives back, and which end it returns."""

from dataclasses import replace

import pytest
import torch
import toys
from asking import class_goals, meets_goals, run_method
from torch import Tensor

from tdce.methods.baselines.nice import NICE
from tdce.models.goals import AtLeast, Goals

ENCODER = toys.encoder("ab", c=2)  # encoded: a, b, and the two weights of c
QUERY = torch.tensor([[0.0, 0.0, 1.0, 0.0]])


def row(a: float, b: float, c: int) -> list[float]:
    return [a, b, float(c == 0), float(c == 1)]


def adds_up(x: Tensor) -> Tensor:
    """A row is worth a + 2 b, and half a point more if c is 1; a yes needs 3.9."""
    odds = x[:, 0] + 2 * x[:, 1] + 0.5 * x[:, 3] - 3.9
    return torch.stack([torch.zeros_like(odds), odds], dim=1)


def answer(
    *rows: list[float], mutable: list[bool] | None = None, query: Tensor = QUERY, **settings: int
) -> list[float]:
    task = toys.task(ENCODER, adds_up, torch.tensor(rows), mutable)
    return run_method(NICE(**settings).fit(task), query, class_goals(1, query))[0].tolist()


def test_the_feature_whose_return_costs_least_goes_back_first():
    """(1, 3, 1) is worth 7.5: without c 7, without a 6.5, without b 1.5. First c goes, then a (6), then nothing."""
    assert answer(row(1, 3, 1)) == row(0, 3, 0)


def test_of_two_returns_that_exclude_each_other_the_one_that_leaves_more_is_made():
    """Worth 4.875: without a 4.25, without c 4.375, without both 3.75, which is too little."""
    assert answer(row(0.625, 1.875, 1)) == row(0.625, 1.875, 0)


def test_a_return_that_would_cost_the_verdict_is_not_made():
    assert answer(row(3, 0.5, 1)) == row(3, 0.5, 0)  # worth 4.5: without c 4, and neither a nor b can go
    assert answer(row(2, 1, 0)) == row(2, 1, 0)


def test_the_end_with_the_fewest_changes_wins_then_the_nearest():
    """(2, 1, 0) is nearest and keeps two changes; (0, 4, 0) and (5, 0, 0) keep one, and b = 4 is nearer."""
    rows = row(2, 1, 0), row(0, 4, 0), row(5, 0, 0), row(0, 0, 1)
    assert answer(*rows) == row(0, 4, 0)
    assert answer(*rows, starts=1) == row(2, 1, 0)
    assert answer(*rows, candidates=1) == row(2, 1, 0)


def test_the_nearest_end_need_not_begin_at_the_nearest_row():
    """(4.5, 0, 0) is nearer than (4, 2.5, 0), but that one gives a back and ends at b = 2.5."""
    assert answer(row(4.5, 0, 0), row(4, 2.5, 0)) == row(0, 2.5, 0)


def test_a_start_that_is_not_valid_never_wins():
    """c stays 0: (3.5, 0, 1) is accepted, but not as (3.5, 0, 0)."""
    assert answer(row(0, 2, 0), row(3.5, 0, 1), mutable=[True, True, False, False]) == row(0, 2, 0)


def test_a_category_counts_one_and_a_number_its_difference():
    """Both ends change one feature: the category at 1, or b from 1 to 1.75."""
    query = torch.tensor([row(1.5, 1, 0)])  # worth 3.5

    assert answer(row(1.5, 1, 1), row(1.5, 1.75, 0), query=query) == row(1.5, 1.75, 0)
    assert answer(row(1.5, 1, 1), row(1.5, 2.5, 0), query=query) == row(1.5, 1, 1)


def test_a_row_counts_as_accepted_with_the_immutable_features_put_in():
    """b stays 0: (2, 1, 0) is refused then, (4, 3, 0), far away in b alone, is accepted."""
    frozen = [True, False, True, True]
    assert answer(row(2, 1, 0), row(4, 3, 0), mutable=frozen) == row(4, 0, 0)


def test_the_nearest_row_is_so_by_the_features_that_may_change():
    """b stays 1: a = 2 is nearer than a = 6, however far away the b of that row is."""
    query, frozen = torch.tensor([row(0, 1, 0)]), [True, False, True, True]
    assert answer(row(6, 2, 0), row(2, 9, 0), mutable=frozen, query=query, candidates=1) == row(2, 1, 0)


def test_where_no_row_is_accepted_then_the_best_margin_comes_back():
    frozen = [True, False, True, True]
    assert answer(row(2, 1, 0), row(3, 1, 0), row(1, 3, 1), mutable=frozen) == row(3, 0, 0)
    assert answer(row(1, 0, 0), row(3, 0, 0)) == row(3, 0, 0)  # nobody is accepted at all
    assert answer(row(1, 0, 0), row(3, 0, 0), candidates=1) == row(3, 0, 0)  # the one that comes closest to it


def test_no_gradient_is_needed_and_nothing_is_asked_of_a_guide():
    task = replace(toys.task(ENCODER, adds_up, torch.tensor([row(1, 3, 1)])), guide=None)
    assert run_method(NICE().fit(task), QUERY, class_goals(1, QUERY))[0].tolist() == row(0, 3, 0)


def test_each_row_goes_towards_its_own_goal():
    rows = torch.tensor([row(5, 0, 0), row(9, 0, 0)])
    task = toys.task(ENCODER, adds_up, rows)
    goals = Goals.of([class_goals(1, QUERY).goal(0), AtLeast(1, 0.99)])  # log odds of 4.6: from 8.5 on
    query = QUERY.expand(2, -1)
    for candidates in (100, 1):
        found = run_method(NICE(candidates=candidates).fit(task), query, goals)
        assert found.tolist() == [row(5, 0, 0), row(9, 0, 0)]
        assert meets_goals(task, found, goals).all()


@pytest.mark.parametrize("rows", [1, 3, 100])
def test_many_rows_are_answered_as_one_by_one(rows):
    generator = torch.Generator().manual_seed(rows)
    x = torch.cat([torch.randint(-2, 6, (60, 2), generator=generator) * 1.0, torch.eye(2).repeat(30, 1)], dim=1)
    query = torch.cat(
        [torch.randint(-3, 2, (rows, 2), generator=generator) * 1.0, QUERY[:, 2:].expand(rows, -1)], dim=1
    )
    query = query[~meets_goals(toys.task(ENCODER, adds_up, x), query, class_goals(1, query))]
    method = NICE().fit(toys.task(ENCODER, adds_up, x))
    whole = run_method(method, query, class_goals(1, query))
    for i in range(0, len(query), 7):
        one = query[i : i + 1]
        assert torch.equal(run_method(method, one, class_goals(1, one))[0], whole[i])
    assert meets_goals(method.task_, whole, class_goals(1, query)).all()
