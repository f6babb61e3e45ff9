"""Deterministic products: correct, and with the same bits in any batch, padded or exact."""

from fractions import Fraction

import numpy as np
import pytest
import torch

from tdce._core import deterministic
from tdce._core.network import linear


def rows(n: int, width: int, seed: int = 0, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(n, width, generator=torch.Generator().manual_seed(seed), dtype=dtype)


@pytest.fixture(params=["padded", "exact"])
def way(request, monkeypatch) -> str:
    """Both ways, whatever this machine needs."""
    monkeypatch.setattr(deterministic, "is_batch_independent", lambda *_: request.param == "padded")
    return request.param


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("n", "inner", "outer"), [(1, 1, 1), (3, 5, 2), (64, 16, 16), (65, 17, 33), (1100, 40, 7)])
def test_a_product_is_a_product(way, n, inner, outer, dtype):
    """The second route: sums of elementwise products in float64."""
    left, right = rows(n, inner, dtype=dtype), rows(inner, outer, seed=1, dtype=dtype)
    expected = (left.double()[:, :, None] * right.double()).sum(dim=1)
    tolerance = 3e-5 if dtype == torch.float32 else 1e-11
    torch.testing.assert_close(deterministic.product(left, right).double(), expected, rtol=tolerance, atol=tolerance)


def test_no_rows_no_columns_and_no_inner_width(way):
    assert deterministic.product(torch.zeros(0, 3), torch.zeros(3, 2)).shape == (0, 2)
    assert deterministic.product(torch.zeros(4, 3), torch.zeros(3, 0)).shape == (4, 0)
    assert torch.equal(deterministic.product(torch.zeros(4, 0), torch.zeros(0, 2)), torch.zeros(4, 2))


def test_an_exact_product_rounds_once_and_never_again():
    """The second route: fractions. Both sides become whole multiples of a power of two, of 25 bits for 5 numbers."""
    left, right = rows(4, 5), rows(5, 3, seed=1)
    bits = (53 - 3) // 2
    found = deterministic.exact_product(left.double(), right.double())

    def unit(values: list[float]) -> Fraction:
        largest = max(abs(v) for v in values)
        return Fraction(2) ** (int(np.floor(np.log2(largest))) + 1 - bits)

    for i in range(4):
        for j in range(3):
            a, b = left[i].tolist(), right[:, j].tolist()
            ua, ub = unit(a), unit(b)
            total = sum(round(Fraction(p) / ua) * round(Fraction(q) / ub) for p, q in zip(a, b, strict=True)) * ua * ub
            assert Fraction(found[i, j].item()) == total


@pytest.mark.parametrize("inner", [3, 100, 4096])
def test_an_exact_product_is_the_same_in_any_order_of_the_sum(inner):
    left, right = rows(70, inner, seed=2), rows(inner, 5, seed=3)
    order = torch.randperm(inner, generator=torch.Generator().manual_seed(4))
    assert torch.equal(
        deterministic.exact_product(left, right), deterministic.exact_product(left[:, order], right[order])
    )


def test_a_row_has_the_same_bits_alone_reversed_and_in_parts(way):
    for inner, outer in [(1, 2), (5, 3), (7, 7), (13, 2), (40, 5), (107, 256), (304, 32)]:
        many, matrix = rows(1100, inner), rows(inner, outer, seed=1)
        whole = deterministic.product(many, matrix)
        assert torch.equal(deterministic.product(many.flip(0), matrix).flip(0), whole)
        for part in (slice(0, 1), slice(1099, 1100), slice(3, 66), slice(100, 1000)):
            assert torch.equal(deterministic.product(many[part], matrix), whole[part]), (inner, outer, part)


def test_where_padding_is_not_enough_the_exact_product_is_used(monkeypatch):
    many, matrix = rows(10, 6), rows(6, 4, seed=1)
    monkeypatch.setattr(deterministic, "is_batch_independent", lambda *_: False)
    assert torch.equal(deterministic.product(many, matrix), deterministic.exact_product(many, matrix))


def test_the_trial_notices_a_product_that_depends_on_the_position(monkeypatch):
    """A library whose last row comes out by another way."""

    def odd(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
        out = torch.mm(left, right)
        out[-1] = (left[-1][:, None] * right).flip(0).sum(dim=0)
        return out

    trial = deterministic.is_batch_independent.__wrapped__
    monkeypatch.setattr(torch.Tensor, "__matmul__", odd)
    assert trial(32, 32, torch.float64, True) is False


def test_the_gradient_goes_through_the_same_products(way):
    """The second route: autograd through torch's own layer."""
    layer = linear(7, 3, torch.Generator().manual_seed(0))
    x = rows(70, 7).requires_grad_()
    (expected,) = torch.autograd.grad(layer(x).square().sum(), x)
    layer.requires_grad_(False)
    (found,) = torch.autograd.grad(layer(x).square().sum(), x)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


def test_distances_and_the_nearest_by_hand():
    others = torch.tensor([[0.0, 0.0], [3.0, 4.0], [0.0, 0.0], [6.0, 8.0]])
    away = deterministic.squared_distances(torch.tensor([[0.0, 0.0], [3.0, 4.0]]), others)
    assert (away * deterministic.DISTANCE_UNIT).tolist() == [[0, 25, 0, 100], [25, 0, 25, 25]]
    found = deterministic.find_nearest(torch.tensor([[0.0, 0.0], [3.0, 4.0]]), others, 4)
    assert found.tolist() == [[0, 2, 1, 3], [1, 0, 2, 3]]  # of equally near ones the earlier
    assert deterministic.find_nearest(torch.zeros(0, 2), others, 2).shape == (0, 2)


def test_distances_by_cdist():
    a, b = rows(300, 9), rows(50, 9, seed=1)
    found = deterministic.squared_distances(a, b) * deterministic.DISTANCE_UNIT
    torch.testing.assert_close(found, torch.cdist(a.double(), b.double()) ** 2, rtol=1e-4, atol=1e-4)
