"""Distances between tables, on numbers worked by hand."""

import numpy as np
import pytest
import torch

from tdce.metrics import jensen_shannon
from tdce.schema.space import Space
from tdce_reproduction.fidelity import fidelity


def test_jensen_shannon_of_equal_disjoint_and_half_shared_laws():
    assert jensen_shannon(np.array([0.5, 0.5]), np.array([0.5, 0.5])) == 0
    assert jensen_shannon(np.array([1.0, 0.0]), np.array([0.0, 1.0])) == pytest.approx(1)
    # mixture (3/4, 1/4): [log2(4/3) + (log2(2/3) + log2 2) / 2] / 2
    by_hand = (np.log2(4 / 3) + 0.5 * np.log2(2 / 3) + 0.5 * np.log2(2)) / 2
    assert jensen_shannon(np.array([1.0, 0.0]), np.array([0.5, 0.5])) == pytest.approx(by_hand)


def test_a_table_compared_with_itself_and_with_a_shifted_and_turned_one():
    space = Space(2, (2,), {})
    x = torch.tensor([[0.0, 0.0, 1, 0], [1, 1, 0, 1], [2, 2, 1, 0], [3, 3, 0, 1]])
    same = fidelity(space, x, x)
    assert (same.ks, same.js, same.correlation_gap) == (0, 0, 0)
    turned = x.clone()
    turned[:, 1] = 3 - turned[:, 1]  # correlation with the first number: from 1 to -1
    turned[:, 0] += 2  # half of the values now lie above all but ...: KS 1/2
    found = fidelity(space, turned, x)
    assert found.ks == pytest.approx((0.5 + 0) / 2)
    assert found.correlation_gap == pytest.approx(2)
