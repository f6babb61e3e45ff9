"""A kind of column is one file: a third kind, defined in this one, works everywhere."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import mutants
import numpy as np
import pandas as pd
import pytest
import torch

import tdce
from tdce._core.errors import InputError
from tdce._core.notes import Note
from tdce._core.values import Flags, Floats, Name
from tdce.explainer.autoencoder import Autoencoder
from tdce.explainer.evaluation import MetricReference
from tdce.explainer.sealed_file import seal
from tdce.schema.columns import KINDS
from tdce.schema.columns.base import AllowedValues, Arrays, Column, FittedColumn
from tdce.schema.encoder import Encoder
from tdce.schema.feasible import FeasibleSet
from tdce.schema.roles import Role
from tdce.schema.schema import Schema

GRADES = ("poor", "fair", "good", "best")


@dataclass(frozen=True)
class Graded(Column):
    """Ordered categories, encoded as one number; what is proposed is at most one grade away."""

    kind, numbers, weights = "graded", 1, 0
    name: Name
    grades: tuple[str, ...]
    immutable: bool = False
    missing: bool = False
    role: Role = "actionable"

    def __post_init__(self) -> None:
        super().__post_init__()
        self._settle("grades", self._several("grades", self.grades))

    @classmethod
    def infer(cls, series: pd.Series) -> Self | None:
        ordered = isinstance(series.dtype, pd.CategoricalDtype) and series.cat.ordered
        return cls(series.name, tuple(series.cat.categories)) if ordered else None

    def describe(self) -> str:
        return " < ".join(self.grades)

    def read(self, series: pd.Series, most: float = np.inf) -> Floats:
        for cell in series.dropna():
            if cell not in self.grades:
                raise InputError(f"{self.name!r} has {cell!r}, which is not a grade")
        return np.array([np.nan if pd.isna(cell) else self.grades.index(cell) for cell in series])

    def cells(self, values: Floats) -> list[Any]:
        return [None if np.isnan(v) else self.grades[int(v)] for v in values]

    def for_dtype(self, dtype: Any) -> Self:
        return self

    def fit(self, values: Floats) -> FittedGrades:
        return FittedGrades(self, np.array([values.mean(), values.std()]))

    def layout(self) -> dict[str, Any]:
        return {"grades.{}.moments": ("F64", (2,))}

    def restore(self, arrays: Arrays) -> FittedGrades:
        moments = arrays["grades.{}.moments"]
        if not moments[1] > 0:
            raise InputError(f"its grades of {self.name!r} do not vary")
        return FittedGrades(self, moments)


@dataclass(frozen=True)
class FittedGrades(FittedColumn):
    column: Graded
    moments: Floats  # mean and deviation of the positions
    dtype: Any = None

    def embed(self, values: Floats) -> Floats:
        return np.nan_to_num((values - self.moments[0]) / self.moments[1])[:, None]

    def unembed(self, x: Floats) -> Floats:
        return np.rint(x[:, 0] * self.moments[1] + self.moments[0]).clip(*self.ends)

    @property
    def ends(self) -> tuple[float, float]:
        return 0.0, len(self.column.grades) - 1.0

    def knows(self, values: Floats) -> Flags:
        return np.isin(values, range(len(self.column.grades)))

    def unfamiliar(self, values: Floats) -> Iterator[tuple[int, str]]:
        yield from ((i, "is the best there is") for i in np.flatnonzero(values == self.ends[1]).tolist())

    def arrays(self) -> Arrays:
        return {"grades.{}.moments": self.moments}

    def allowed_values(self, own: Floats) -> OneGrade:
        return OneGrade(self, own)


@dataclass(frozen=True)
class OneGrade(AllowedValues):
    fitted: FittedGrades
    own: Floats

    def can_change(self) -> Flags:
        return ~np.isnan(self.own)

    def allows(self, values: Floats) -> Flags:
        return self.fitted.knows(values) & (np.abs(values - self.own) <= 1)

    def snap(self, x: Floats) -> Floats:
        return self.fitted.unembed(x).clip(self.own - 1, self.own + 1)

    def encoded_bounds(self) -> tuple[Floats, Floats, Flags]:
        low, high = (self.fitted.embed((self.own + d).clip(*self.fitted.ends)) for d in (-1, 1))
        return low, high, np.zeros((len(self.own), 0), dtype=bool)


@pytest.fixture(autouse=True)
def third_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tdce.schema.columns.KINDS", (Graded, *KINDS))


def table() -> pd.DataFrame:
    """Of the grades, which are 0, 1, 2 and 3, the mean is 1.5 and the deviation the root of 5 / 4."""
    grades = pd.Categorical(GRADES * 10, categories=GRADES, ordered=True)
    return pd.DataFrame({"income": range(0, 80, 2), "grade": grades, "job": ["a", "b", "b", "c"] * 10})


def test_it_is_inferred_described_changed_and_written_as_json() -> None:
    schema = Schema.infer(table())
    assert schema["grade"] == Graded("grade", GRADES)
    assert [type(f).__name__ for f in schema] == ["Numeric", "Graded", "Categorical"]
    assert schema.freeze("grade").describe()[1] == ("grade", "graded", "poor < fair < good < best", "no")
    assert Schema.from_json(schema.to_json()) == schema
    assert '{"kind": "graded", "name": "grade", "grades": ["poor", "fair", "good", "best"]' in schema.to_json()
    with pytest.raises(InputError, match="kind 'dated' must be graded or numeric or categorical"):
        Schema.from_json(schema.to_json().replace('"graded"', '"dated"'))
    with pytest.raises(InputError, match="'grade': a graded column needs the setting 'grades'"):
        Schema.from_json('{"tdce_schema": 1, "features": [{"kind": "graded", "name": "grade"}]}')


def test_it_is_encoded_and_decoded() -> None:
    frame, encoder = table(), Encoder.fit(table())
    x = encoder.encode(frame)
    assert (encoder.space.num, encoder.space.sizes) == (2, (3,))
    assert encoder.space.places == {"income": (0,), "grade": (1,), "job": (2, 3, 4)}
    np.testing.assert_allclose(x[:4, 1], np.array([-1.5, -0.5, 0.5, 1.5]) / 1.25**0.5)
    pd.testing.assert_frame_equal(encoder.decode(x, like=frame), frame, check_exact=True)
    other = encoder.decode(x.flip(0), like=frame)
    assert other["grade"].dtype == frame["grade"].dtype
    assert other["grade"].tolist() == frame["grade"].tolist()[::-1]
    assert encoder.unfamiliar(encoder.read(frame))[3] == [
        Note("odd_value", ("grade",), values={"text": "is the best there is"})
    ]


def test_the_feasible_set_holds_its_values() -> None:
    encoder, frame = Encoder.fit(table()), table().iloc[:4]
    feasible = FeasibleSet.of(encoder, frame)
    best = feasible.x.clone()
    best[:, 1] = 9.0
    assert feasible.snap(best)[:, 1].tolist() == [1, 2, 3, 3]
    assert feasible.contains(feasible.snap(best)).all()
    own = feasible.own
    assert feasible.contains(np.column_stack([own[:, 0], [2, 2, 0, 3], own[:, 2]])).tolist() == [
        False,
        True,
        False,
        True,
    ]
    places, low, high = [0, 1, 2, 3], [0, 0, 1, 2], [1, 2, 3, 3]
    at = dict(zip(places, feasible.x[:, 1].tolist(), strict=True))
    assert feasible.encoded_bounds().low[:, 1].tolist() == [at[p] for p in low]
    assert feasible.encoded_bounds().high[:, 1].tolist() == [at[p] for p in high]
    assert feasible.can_change()[:, 1].all()
    frozen = FeasibleSet.of(encoder, frame, ["grade"])
    assert frozen.snap(best)[:, 1].tolist() == [0, 1, 2, 3]
    assert not frozen.can_change()[:, 1].any()


def test_it_is_measured_as_a_number() -> None:
    encoder = Encoder.fit(table())
    raw = encoder.read(table())
    yardstick = MetricReference(encoder, raw, raw[:, 0] > 20, *[Autoencoder(1, 1)] * 3)
    np.testing.assert_allclose(yardstick.standardised(raw)[:4, 1], np.array([-1.5, -0.5, 0.5, 1.5]) / 1.25**0.5)


def test_it_is_learned_explained_saved_and_loaded(tmp_path: Path) -> None:
    frame = table()
    frame["y"] = np.where((frame["income"] > 15) & (frame["grade"].cat.codes > 0), "yes", "no")
    made = tdce.Explainer(hidden=16, steps=20, progress="silent").fit(frame, label="y", favourable="yes")
    made.save(tmp_path / "a.tdce")
    loaded = tdce.Explainer.load(tmp_path / "a.tdce", progress="silent")
    rows = frame.drop(columns="y").iloc[:12]
    before, after = (each.explain(rows).to_frame() for each in (made, loaded))
    pd.testing.assert_frame_equal(before, after, check_exact=True)
    assert (abs(before["grade"].cat.codes - rows["grade"].cat.codes) <= 1).all()
    loaded.explain(rows).to_html(tmp_path / "report.html")  # which draws where people stand in it
    assert "best" in (tmp_path / "report.html").read_text()

    content, tensors = mutants.opened((tmp_path / "a.tdce").read_bytes())
    tensors["grades.1.moments"] = torch.zeros(2, dtype=torch.float64)
    (tmp_path / "a.tdce").write_bytes(seal(content, tensors))
    with pytest.raises(InputError, match="its grades of 'grade' do not vary"):
        tdce.Explainer.load(tmp_path / "a.tdce")
