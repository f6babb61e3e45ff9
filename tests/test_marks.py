"""Marks: numbers that stand for a state (-1: never called) are encoded, kept and proposed as a whole."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from fits import kept
from hypothesis import given
from hypothesis import strategies as st

import tdce
from tdce._core.errors import InputError
from tdce.explainer.autoencoder import Autoencoder
from tdce.explainer.evaluation import MetricReference
from tdce.methods.registry import METHODS
from tdce.schema.columns.categorical import Categorical
from tdce.schema.columns.numeric import Numeric
from tdce.schema.encoder import Encoder
from tdce.schema.feasible import FeasibleSet
from tdce.schema.schema import Schema

DAYS = Numeric("days", 10, 30, step=1, marks=(-1, 999))
CELLS = [10.0, 20.0, 30.0, -1.0, 999.0]


def encoder(column: Numeric = DAYS) -> Encoder:
    cells = [*CELLS, *([None] * column.missing)]
    return Encoder.fit(pd.DataFrame({"days": cells}), Schema((column,)))


def test_a_mark_is_a_weight_beside_the_number_and_takes_no_part_in_the_scale():
    """Mid-ranks 1/6, 1/2 and 5/6 of 10, 20 and 30, standardised: the ends at the root of 3 / 2."""
    end = 1.5**0.5
    expected = [[-end, 1, 0, 0], [0, 1, 0, 0], [end, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]
    np.testing.assert_allclose(encoder().encode(pd.DataFrame({"days": CELLS})), expected, atol=1e-12)
    both = encoder(replace(DAYS, missing=True)).encode(pd.DataFrame({"days": [20.0, None, -1.0, 999.0]}))
    assert both.tolist() == [[0, 1, 0, 0, 0], [0, 0, 1, 0, 0], [0, 0, 0, 1, 0], [0, 0, 0, 0, 1]]
    assert encoder().unembed(torch.tensor([[0.0, 0.4, 0.5, 0.1], [0.0, 0.5, 0.5, 0.0]])).tolist() == [[-1], [20]]


def test_a_column_without_marks_has_no_weight_for_them():
    assert [replace(DAYS, marks=(), missing=m).weights for m in (False, True)] == [0, 2]


@given(st.lists(st.sampled_from([None, -1, 999, *range(10, 31)]), min_size=2).filter(lambda v: set(v) - {None}))
def test_decoding_restores_marks(cells: list[Any]):
    frame = pd.DataFrame({"days": pd.Series(cells, dtype="Int64")})
    fitted = encoder(replace(DAYS, missing=True))
    x = fitted.encode(frame)
    pd.testing.assert_frame_equal(fitted.decode(x, like=frame), frame)
    np.testing.assert_array_equal(fitted.unembed(x), fitted.read(frame))
    np.testing.assert_array_equal(fitted.unembed(x.float()), fitted.read(frame))


@pytest.mark.parametrize(("column", "own", "proposal", "answer"), [
    (DAYS, -1, -1, -1),  # kept
    (DAYS, -1, 12, 12),  # left, for a number
    (DAYS, -1, 999, -1),  # never for another mark,
    (DAYS, 20, 999, 20),  # which nobody proposes,
    (replace(DAYS, proposed=(999,)), 20, 999, 999),  # unless the user allows it
    (replace(DAYS, proposed=(999,)), -1, 999, 999),
    (replace(DAYS, proposed=(999,)), 20, -1, 20),
    (replace(DAYS, direction="increase"), 999, 12, 12),  # there is nothing to compare with
    (replace(DAYS, direction="decrease"), -1, 12, 12),
    (replace(DAYS, direction="decrease", proposed=(999,)), 12, 999, 999),
    (replace(DAYS, direction="increase"), 20, 12, 20),
    (replace(DAYS, levels=(10, 20, 30)), -1, 10, 10),  # the level that is nearest to the mark is something else
    (replace(DAYS, immutable=True, proposed=(999,)), -1, 999, -1),
    (replace(DAYS, missing=True), -1, None, -1),  # to be missing is no advice
    (replace(DAYS, missing=True), None, 999, None),
    (replace(DAYS, missing=True), None, 12, 12),
])  # fmt: skip
def test_by_hand(column: Numeric, own: Any, proposal: Any, answer: Any):
    fitted = encoder(column)
    feasible = FeasibleSet.of(fitted, pd.DataFrame({"days": [own]}, dtype=float))
    snapped = feasible.snap(fitted.embed(np.array([[proposal]], dtype=float)))
    np.testing.assert_array_equal(snapped, np.array([[answer]], dtype=float))
    assert feasible.contains(snapped).all()


@pytest.mark.parametrize(("column", "own", "low", "high", "weights"), [
    (DAYS, 20, 10, 30, [True, False, False]),
    (DAYS, -1, 10, 30, [True, True, False]),
    (replace(DAYS, proposed=(999,)), -1, 10, 30, [True, True, True]),
    (replace(DAYS, direction="increase"), 999, 10, 30, [True, False, True]),
    (replace(DAYS, direction="increase"), 20, 20, 30, [True, False, False]),
])  # fmt: skip
def test_how_far_a_row_may_go(column: Numeric, own: float, low: float, high: float, weights: list[bool]):
    fitted = encoder(column)
    reach = FeasibleSet.of(fitted, pd.DataFrame({"days": [own]})).encoded_bounds()
    ends = fitted.embed(np.array([[low], [high]], dtype=float))[:, 0].float()
    assert (reach.low[0, 0], reach.high[0, 0], reach.allowed[0].tolist()) == (ends[0], ends[1], weights)


@pytest.mark.parametrize(("column", "own", "free"), [
    (replace(DAYS, low=30), 30, False),
    (replace(DAYS, low=30), -1, True),
    (replace(DAYS, low=30, proposed=(-1,)), 30, True),
    (replace(DAYS, low=30.2, high=30.8, proposed=(-1,)), -1, False),
])  # fmt: skip
def test_a_row_can_change_if_there_is_another_number_or_mark(column: Numeric, own: float, free: bool):
    assert FeasibleSet.of(encoder(column), pd.DataFrame({"days": [own]})).can_change().tolist() == [[free]]


@given(st.floats(-20, 20), st.lists(st.floats(0, 1, width=32), min_size=3, max_size=3), st.sampled_from(CELLS))
def test_nothing_lies_between_a_number_and_a_mark(number: float, weights: list[float], own: float):
    """Where the largest weight says that there is a number, it is one, however far out; else nothing changes."""
    raw = FeasibleSet.of(encoder(), pd.DataFrame({"days": [own]})).snap(torch.tensor([[number, *weights]]))[0, 0]
    if max(weights) == weights[0]:
        assert 10 <= raw <= 30
    else:
        assert raw == own


def test_no_number_is_read_as_a_mark():
    """Two deviations below the lowest number, 10, a number would round to -1."""
    x = torch.cat([torch.linspace(-9, 9, 999)[:, None], torch.tensor([[1.0, 0, 0]]).expand(999, -1)], dim=1)
    fitted = encoder()
    assert not np.isin(fitted.unembed(x), DAYS.marks).any()
    assert np.isin(np.rint(fitted.columns[0].scale.unembed(x[:, 0].double().numpy())), DAYS.marks).any()


def test_which_marks_may_be_proposed_is_said_in_the_schema():
    schema = Schema((DAYS,))
    assert "proposed" not in schema.to_json()
    changed = schema.change("days", proposed=[-1])
    assert changed["days"].proposed == (-1,)
    assert Schema.from_json(changed.to_json()) == changed
    assert changed["days"].describe().endswith("a state, not a number: -1, 999; may be proposed: -1")
    with pytest.raises(InputError, match=r"'days': proposed 12 must be one of its marks \(-1, 999\); numbers"):
        schema.change("days", proposed=[12])
    with pytest.raises(InputError, match=r"proposed 12 must be one of its marks \(there are none\)"):
        Numeric("days", 10, 30, proposed=(12,))
    assert changed["days"].unrestricted() == Numeric("days", -1, 999, step=1)


def test_as_categories_they_are_proposed_as_little_as_before():
    codes = Schema((replace(DAYS, levels=(10, 20), proposed=(-1,)),)).change("days", kind="categorical")["days"]
    assert codes == Categorical("days", (10, 20, -1, 999), (10, 20, -1))


def test_in_metrics_a_mark_is_like_missing():
    """10, 20 and 30 have the mean 20 and the deviation 8.16; from a number to a mark is a whole change."""
    fitted = encoder()
    raw = fitted.read(pd.DataFrame({"days": CELLS}))
    yardstick = MetricReference(fitted, raw, raw[:, 0] > 20, *[Autoencoder(4, 1)] * 3)
    np.testing.assert_allclose(yardstick.standardised(raw)[:, 0], [-(1.5**0.5), 0, 1.5**0.5, 0, 0], atol=1e-12)
    quality = yardstick._quality(raw[[0, 0]], raw[[3, 1], None], raw[[0, 0]], raw[[3, 1]])
    assert quality["gower"] == pytest.approx((1 + 10 / 18) / 2)  # q95 - q5 = 29 - 11


# --- learned and explained -----------------------------------------------------------------------------------------


def clients(rows: int = 1500, seed: int = 0) -> pd.DataFrame:
    """A yes for who was never called, and for high incomes."""
    rng = np.random.default_rng(seed)
    called = rng.random(rows) < 0.6
    income = rng.integers(10, 60, rows)
    days = np.where(called, rng.integers(1, 400, rows), -1)
    score = income - 40 + 25 * ~called + rng.normal(0, 3, rows)
    return pd.DataFrame({"days": days, "income": income, "age": rng.integers(18, 80, rows),
                         "answer": np.where(score > 0, "yes", "no")})  # fmt: skip


@pytest.fixture(scope="module")
def explainer() -> tdce.Explainer:
    made = tdce.Explainer(hidden=32, steps=150, progress="silent")
    return kept("marks", lambda: made.fit(clients(), label="answer", favourable="yes"))


@pytest.fixture(scope="module")
def people(explainer: tdce.Explainer) -> pd.DataFrame:
    frame = clients(300, seed=1).drop(columns="answer")
    return frame[(explainer.predict(frame) == "no").to_numpy()].head(24)


def asked(explainer: tdce.Explainer, name: str, proposed: tuple[float, ...] = ()) -> tdce.Explainer:
    """The same networks, another method, and marks that may be proposed."""
    other, fitted = tdce.Explainer(name, progress="silent"), explainer.fitted
    columns = fitted.encoder.columns
    first = replace(columns[0], column=replace(columns[0].column, proposed=proposed))
    other.fitted_ = replace(fitted, encoder=replace(fitted.encoder, columns=(first, *columns[1:])), memo={})
    return other


def test_the_table_has_a_mark(explainer: tdce.Explainer):
    column = explainer.schema["days"]
    assert isinstance(column, Numeric)
    assert column.marks == (-1,)
    assert 1 <= column.low <= 9  # the end is that of several people
    people = explainer.fitted.synthetic[:, 0]
    assert 0.3 < (people == -1).mean() < 0.5  # synthetic people have it as often as others
    assert ((people == -1) | (people >= 1)).all()


@pytest.mark.parametrize("name", METHODS)
def test_no_method_proposes_it(explainer: tdce.Explainer, people: pd.DataFrame, name: str):
    days = asked(explainer, name).explain(people).to_frame()["days"].to_numpy()
    assert ((days != -1) | (people["days"] == -1).to_numpy()).all()
    assert ((days == -1) | (days >= 1)).all()


def test_where_the_user_allows_it_it_is_proposed_whole(explainer: tdce.Explainer, people: pd.DataFrame):
    answer = asked(explainer, "search", (-1.0,)).explain(people, immutable=["income"]).to_frame()
    days, was = answer["days"].to_numpy(), people["days"].to_numpy()
    assert ((days == -1) & (was != -1) & (answer["status"] == "valid")).any()
    assert ((days == -1) | (days >= 1)).all()


def test_saved_and_loaded(explainer: tdce.Explainer, people: pd.DataFrame, tmp_path: Path):
    explainer.save(tmp_path / "a.tdce")
    loaded = tdce.Explainer.load(tmp_path / "a.tdce", progress="silent")
    pd.testing.assert_frame_equal(loaded.explain(people).to_frame(), explainer.explain(people).to_frame())
