"""Rows as arrays: equal rows, ranks within groups."""

import numpy as np
import torch

from tdce._core.rows import rank_within, unique_rows


def test_rank_within_counts_each_group_in_order():
    assert rank_within(torch.tensor([2, 0, 2, 2, 0, 5])).tolist() == [0, 0, 1, 2, 1, 0]


def test_rank_within_of_nothing_is_nothing():
    assert rank_within(torch.zeros(0, dtype=torch.long)).tolist() == []


def test_rank_within_agrees_with_counting_one_by_one():
    groups = torch.randint(0, 7, (200,), generator=torch.Generator().manual_seed(0))
    seen = dict[int, int]()
    for group, rank in zip(groups.tolist(), rank_within(groups).tolist(), strict=True):
        assert rank == seen.get(group, 0)
        seen[group] = rank + 1


def test_unique_rows_takes_any_nan_for_the_same_and_minus_zero_for_zero():
    raw = np.array([[1.0, np.nan], [-0.0, 2.0], [1.0, -np.nan], [0.0, 2.0]])
    first, place = unique_rows(raw)
    assert (first.tolist(), place.tolist()) == ([0, 1], [0, 1, 0, 1])
