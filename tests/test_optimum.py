"""The solver of benchmarks/optimum.py against trying every row."""

import sys
from importlib.util import module_from_spec, spec_from_file_location
from itertools import product
from pathlib import Path
from types import ModuleType

import numpy as np
import pandas as pd
import pytest

from tdce.schema.columns.categorical import Categorical
from tdce.schema.columns.numeric import Numeric
from tdce.schema.encoder import Encoder
from tdce.schema.feasible import FeasibleSet
from tdce.schema.schema import Schema

pytest.importorskip("ortools", reason="the solver is not installed: pip install --group benchmarks")
pytest.importorskip("sklearn", reason="the models are not installed: pip install --group benchmarks")

PLACES = ("here", "there", "far away")
SIZES = ("small", "medium", "large")


@pytest.fixture(scope="module")
def optimum() -> ModuleType:
    path = Path(__file__).parents[1] / "benchmarks" / "optimum.py"
    spec = spec_from_file_location("optimum", path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules["optimum"] = module
    spec.loader.exec_module(module)
    return module


def table(rows: int = 300) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "age": rng.integers(20, 40, rows),
            "income": rng.integers(0, 12, rows),
            "late": np.where(rng.random(rows) < 0.2, 9, rng.integers(0, 5, rows)),
            "place": rng.choice(PLACES, rows),
            "size": rng.choice(SIZES, rows),
        }
    )
    good = frame["income"] - frame["late"] + 2 * (frame["place"] == "here") + (frame["size"] == "large")
    return frame, np.where(good + rng.normal(0, 1, rows) > 3, "yes", "no")


SCHEMA = Schema(
    (
        Numeric("age", 20, 39, 1.0, immutable=True),
        Numeric("income", 0, 11, 1.0, direction="increase"),
        Numeric("late", 0, 4, 1.0, marks=(9.0,)),
        Categorical("place", PLACES, allowed=PLACES[:2]),
        Categorical("size", SIZES, order=SIZES),
    )
)


@pytest.mark.parametrize("name", ["forest", "boosting", "histogram"])
def test_the_solver_finds_the_cheapest_of_all_rows(optimum: ModuleType, name: str) -> None:
    frame, label = table()
    pipeline = optimum.pipeline_of(SCHEMA, optimum.MODELS[name](5)).fit(frame, label)
    setting = optimum.Setting(Encoder.fit(frame, SCHEMA), pipeline, favourable=1)
    refused = frame[pipeline.predict(frame) == "no"].head(8)
    feasible = FeasibleSet.of(setting.encoder, refused)
    every = np.array(list(product(range(12), (0, 1, 2, 3, 4, 9), range(3), range(3))), dtype=float)
    for i in range(len(refused)):
        one = feasible.take(np.array([i]))
        rows = np.repeat(one.own, len(every), axis=0)
        rows[:, 1:] = every
        like = refused.iloc[np.full(len(rows), i)]
        kept = FeasibleSet.of(setting.encoder, like).contains(rows) & setting.accepts(rows, like)
        cost = setting.cost(np.repeat(one.own, len(rows), axis=0), rows).sum(axis=1)
        found = setting.cheapest(one, refused.iloc[[i]], seconds=20)
        assert found.proven
        assert setting.accepts(found.raw[None], refused.iloc[[i]]).all()
        assert setting.cost(one.own, found.raw[None]).sum() == pytest.approx(cost[kept].min(), abs=1e-5)
        assert found.bound == pytest.approx(cost[kept].min(), abs=1e-4)


@pytest.mark.parametrize("name", ["forest", "boosting", "histogram"])
@pytest.mark.parametrize("favourable", [0, 1])
def test_trees_are_read_as_the_model_reads_them(optimum: ModuleType, name: str, favourable: int) -> None:
    frame, label = table()
    pipeline = optimum.pipeline_of(SCHEMA, optimum.MODELS[name](5)).fit(frame, label)
    p = pipeline.predict_proba(frame)[:, favourable]
    score = optimum.Ensemble.of(pipeline[-1], favourable).score(pipeline[:-1].transform(frame))
    assert score == pytest.approx(p if name == "forest" else np.log(p / (1 - p)), abs=1e-9)


def test_what_cannot_be_reached_is_proven_so(optimum: ModuleType) -> None:
    frame, label = table()
    pipeline = optimum.pipeline_of(SCHEMA, optimum.MODELS["forest"](5)).fit(frame, label)
    frozen = Schema(SCHEMA.features).freeze(*SCHEMA.names)
    setting = optimum.Setting(Encoder.fit(frame, frozen), pipeline, favourable=1)
    refused = frame[pipeline.predict(frame) == "no"].head(1)
    found = setting.cheapest(FeasibleSet.of(setting.encoder, refused), refused, seconds=20)
    assert found.proven
    assert found.raw is None
