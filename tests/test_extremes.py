"""Very large and very small numbers work, without a warning and without NaN, or are refused by column and value."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import lending
import numpy as np
import pandas as pd
import pytest
import torch
from fits import SHORT

import tdce
from tdce import Population, Schema
from tdce.diffusion import SamplingPlan
from tdce.schema import Encoder, FeasibleSet, profile_columns
from tdce.schema.constraints.laws import Follows, Order

TINY = replace(
    SHORT,
    classifier=replace(SHORT.classifier, steps=3),
    autoencoder=replace(SHORT.autoencoder, steps=2),
    sampling=SamplingPlan(32, 32, 2),
)
LARGEST, SMALLEST = np.finfo(float).max, 5e-324
EXTREMES = (1e300, LARGEST, 1e150, 1e149, 2.0**64, 1e20, 1.0, 1e-20, 1e-149, 1e-150, 1e-300, 1e-310, SMALLEST, 0.0)
ROWS = 24

COLUMNS = {
    "large": lambda rng: rng.normal(0, 1e149, ROWS),
    "beyond": lambda rng: rng.normal(0, 1e300, ROWS),
    "small": lambda rng: rng.normal(0, 1e-300, ROWS),
    "subnormal": lambda rng: rng.integers(0, 9, ROWS) * SMALLEST,
    "large and small": lambda rng: np.where(rng.random(ROWS) < 0.5, 1e149, 1e-300) * rng.normal(0, 1, ROWS),
    "any": lambda rng: rng.choice(EXTREMES, ROWS) * rng.choice([-1.0, 1.0], ROWS),
    "any but the largest": lambda rng: rng.choice(EXTREMES[2:], ROWS) * rng.choice([-1.0, 1.0], ROWS),
    "near 2^64": lambda rng: np.uint64(2**64 - 1) - rng.integers(0, 2000, ROWS).astype(np.uint64),
    "near 2^63": lambda rng: rng.choice([-(2**63), 2**63 - 1, 0, 2**63 - 1025], ROWS),
    "both ends of UInt64": lambda rng: pd.array(
        rng.choice(np.array([0, 1, 2**64 - 1], dtype=np.uint64), ROWS), "UInt64"
    ),
    "float32": lambda rng: rng.uniform(-3.4e38, 3.4e38, ROWS).astype(np.float32),
    "small float32": lambda rng: rng.normal(0, 1e-40, ROWS).astype(np.float32),
    "float16": lambda rng: rng.choice([65504, -65504, 6e-8, 1], ROWS).astype(np.float16),
    "whole numbers of many digits": lambda rng: pd.array(
        [10**30 + int(i) for i in rng.integers(0, 99, ROWS)], "object"
    ),
    "one value": lambda rng: np.full(ROWS, SMALLEST),
    "one large value": lambda rng: np.full(ROWS, 1e149),
    "near each other": lambda rng: 1e149 * (1 + rng.integers(0, 3, ROWS) * 2.3e-16),
    "twice": lambda rng: np.repeat(rng.normal(0, 1e149, 2), ROWS // 2),
}


RELATED = {
    "nothing": lambda a, b, rng: None,
    "copy": lambda a, b, rng: a,
    "multiple": lambda a, b, rng: a * rng.choice([2, 1e10, 1e-10, 1e-300, 0.1]),
    "sum": lambda a, b, rng: a + b,
    "order": lambda a, b, rng: np.maximum(a, b),
}
RULES = ["at most 2 changes", "age >= was(age)"]


def table(kinds: list[str], seed: int = 0, related: str = "nothing") -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({f"{kind} {i}": COLUMNS[kind](rng) for i, kind in enumerate(kinds)})
    first, last = (frame[name].astype(float).to_numpy() for name in (frame.columns[0], frame.columns[-1]))
    with np.errstate(over="ignore"):
        tied = RELATED[related](first, last, rng)
    if tied is not None:
        frame[related] = tied
    return frame.assign(age=rng.integers(18, 70, ROWS), decision=rng.permutation(ROWS // 2 * ["yes", "no"]))


def random_table(seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return table(rng.choice(list(COLUMNS), rng.integers(1, 4)).tolist(), seed, rng.choice(list(RELATED)))


def with_extremes(frame: pd.DataFrame, seed: int) -> pd.DataFrame:
    """Other rows, in which any float is extreme."""
    rng, rows = np.random.default_rng(seed), frame.drop(columns="decision").head(12).copy()
    for name in rows.select_dtypes("float64"):
        rows[name] = rng.choice(EXTREMES, len(rows)) * rng.choice([-1, 1], len(rows))
    return rows


@contextmanager
def unless_refused(frame: pd.DataFrame) -> Iterator[None]:
    """A refusal names a column."""
    try:
        yield
    except tdce.InputError as error:
        if not any(f"{name!r}" in str(error) for name in frame.columns):
            raise


@pytest.mark.parametrize("seed", range(30))
def test_columns_laws_and_grids_take_any_number_or_refuse_it(seed):
    frame, rng = random_table(seed), np.random.default_rng(seed)
    rows = with_extremes(frame, seed)
    with unless_refused(frame):
        schema = Schema.infer(frame, "decision")
        profile_columns(frame, schema, "decision", {})
        encoder = Encoder.fit(frame, schema)
        check_columns(encoder, frame, rows, rng)


def check_columns(encoder: Encoder, frame: pd.DataFrame, rows: pd.DataFrame, rng: np.random.Generator) -> None:
    raw, feasible = encoder.read(frame), FeasibleSet.of(encoder, rows, (), RULES)
    assert torch.isfinite(encoder.embed(raw)).all()
    for spread in (1, 3, 30):
        x = torch.from_numpy(rng.normal(0, spread, (len(rows), encoder.space.width))).float()
        found = feasible.snap(x)
        assert np.isfinite(found[np.isfinite(feasible.own)]).all()
        written = encoder.write(found, rows, feasible.own)
        assert (written.isna() == rows.isna()).all(axis=None)
        assert torch.isfinite(encoder.step_numbers(x, feasible.x, 1)).all()
        assert torch.isfinite(encoder.range_share(x[:, : encoder.space.num])).all()
    assert feasible.can_change().shape == feasible.own.shape
    encoder.unfamiliar(feasible.own)
    population = Population.of(encoder, raw, rng.integers(0, 2, len(raw)), ("no", "yes"), False)
    for histogram, values in zip(population.histograms, feasible.own.T, strict=True):
        assert sum(map(sum, histogram.counts)) == len(raw)
        assert np.isfinite(histogram.position(values[~np.isnan(values)])).all()


def use(explainer: tdce.Explainer, rows: pd.DataFrame, **question) -> tdce.Answer:
    """Ask everything; every number that comes back is finite."""
    answer = explainer.explain(rows, **question)
    frame = answer.to_frame()
    assert frame[["score_before", "score_after", "plausibility"]].notna().all(axis=None)
    for column in explainer.schema:
        if isinstance(column, tdce.Numeric):
            cells = frame[column.name]
            assert not cells.isna()[rows.loc[frame["row"], column.name].notna().to_numpy()].any()
            assert all(math.isfinite(cell) for cell in cells.dropna())
    assert len(answer.sentences()) == len(answer.letters()) == len(frame)
    assert set(answer.reasons()["feature"]) <= set(explainer.schema.names)
    assert explainer.plausibility(rows).notna().all()
    assert explainer.predict_proba(rows).notna().all(axis=None)
    assert {name: value for name, value in explainer.evaluate(answer).items() if math.isnan(value)} == {}
    return answer


def learned(frame: pd.DataFrame, schema: Schema | None = None) -> tdce.Explainer:
    explainer = tdce.Explainer(hidden=4, steps=3, plans=TINY, progress="silent")
    return explainer.fit(frame, label="decision", favourable="yes", schema=schema)


@pytest.mark.parametrize(
    "frame",
    [table(["one large value"]), table(["whole numbers of many digits", "near 2^64"]), *map(random_table, (2, 5, 11))],
    ids=lambda frame: ", ".join(frame.columns[:-2]),
)
def test_a_table_of_extreme_numbers_is_learned_and_explained_or_refused(frame):
    with unless_refused(frame):
        explainer = learned(frame)
        use(explainer, frame.drop(columns="decision").head(4))
        use(explainer, with_extremes(frame, 0))


@pytest.fixture(scope="module")
def lender() -> tdce.Explainer:
    frame = lending.table(ROWS).assign(fee=lambda each: 2 * each["debt"], decision=ROWS // 2 * ["yes", "no"])
    laws = (
        Follows("fee", ("debt",), (2.0,), support=ROWS),
        Order("age", "income", support=ROWS),
    )
    return learned(frame, replace(Schema.infer(frame, "decision"), laws=laws))


def rows_with(**columns) -> pd.DataFrame:
    frame = lending.table(2 * len(EXTREMES)).drop(columns="decision").assign(fee=1.0)
    return frame.astype({"income": float, "age": float}).assign(**columns)


BOTH_SIGNS = np.array([sign * value for value in EXTREMES for sign in (1, -1)])


@pytest.mark.parametrize(
    "names", [("debt",), ("fee",), ("income", "age"), ("fee", "debt", "income", "age")], ids=", ".join
)
def test_rows_of_extreme_numbers_are_explained(lender, names):
    use(lender, rows_with(**{name: np.roll(BOTH_SIGNS, i) for i, name in enumerate(names)}))


@pytest.mark.parametrize(
    "column",
    [
        np.array([2**64 - 1, 2**64 - 2, 2**63, 0], dtype=np.uint64),
        pd.array([2**64 - 1, 2**64 - 2, None, 0], dtype="UInt64"),
        np.array([3.4e38, 1e-45, -3.4e38, 0], dtype=np.float32),
        np.array([65504, 6e-8, -65504, 0], dtype=np.float16),
        pd.array([10**40, 10**300, -(10**30), 3], dtype=object),
    ],
    ids=lambda column: str(column.dtype),
)
def test_extreme_numbers_of_any_dtype_are_explained(lender, column):
    use(lender, rows_with().head(4).assign(income=column))


@pytest.mark.parametrize(
    "rule", ["debt in steps of 0.01", "debt in steps of 1e-90", "income >= 1e-320 * debt", "at most 1 change"]
)
def test_rules_hold_for_extreme_numbers(lender, rule):
    use(lender, rows_with(debt=BOTH_SIGNS), rules=[rule])


@pytest.mark.parametrize("step", ["1e-320", "5e-324", "1e-101", "1e200"])
def test_a_step_that_no_number_can_be_divided_by_is_refused(lender, step):
    with pytest.raises(tdce.InputError, match=rf"rule 'debt in steps of {step}': the step must be from 1e-100 to"):
        lender.explain(rows_with(), rules=[f"debt in steps of {step}"])


def test_a_factor_that_no_number_can_be_divided_by_is_refused():
    with pytest.raises(tdce.InputError, match=r"'fee': the term of 'debt' is 1e-320; it must be a number other than 0"):
        Follows("fee", ("debt",), (1e-320,))


def test_laws_that_nothing_can_keep_are_refused():
    frame = lending.table(ROWS).assign(decision=ROWS // 2 * ["yes", "no"])
    laws = Follows("income", ("age",), (3.5,)), Order("income", "age"), Order("debt", "age")
    with pytest.raises(tdce.InputError, match=r"no synthetic row keeps all laws of the schema \(income = 3.5 x age, "):
        learned(frame, replace(Schema.infer(frame, "decision"), laws=laws))
