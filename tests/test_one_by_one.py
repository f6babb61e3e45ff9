"""Models whose score of a row depends on the other rows of a call, and which are slow for each call."""

import time

import lending
import numpy as np
import pandas as pd
import pytest
from fits import SHORT

import tdce
from tdce import InputError
from tdce.diffusion import SamplingPlan
from tdce.models import adapt_models

FEW = tdce.TrainingPlans(SHORT.classifier, SHORT.diffusion, SHORT.autoencoder, SamplingPlan(64, 64, 8), precedents=0)


class InContext:
    """It learns nothing in `fit`: each call compares its rows with those of the context, on a scale that all rows of
    the call set together, as models that learn in context may do."""

    classes_ = np.array(["no", "yes"])

    def __init__(self, rows: int = 150) -> None:
        context = lending.table(rows)
        self.x, self.y = self.numbers(context), (context["decision"] == "yes").to_numpy(dtype=float)
        self.sizes: list[int] = []

    @staticmethod
    def numbers(frame: pd.DataFrame) -> np.ndarray:
        return np.column_stack([frame["income"], frame["debt"], 800 * (frame["housing"] == "own")]).astype(float)

    def predict_proba(self, frame):
        self.sizes.append(len(frame))
        both = np.concatenate([self.x, self.numbers(frame)])
        both = (both - both.mean(axis=0)) / both.std(axis=0)
        context, rows = both[: len(self.x)], both[len(self.x) :]
        near = np.exp(-4 * np.square(rows[:, None] - context[None]).sum(axis=2)) + 1e-9
        p = (near @ self.y / near.sum(axis=1)).clip(0.001, 0.999)
        return np.column_stack([1 - p, p])


def fitted(model) -> tdce.Explainer:
    explainer = tdce.Explainer(model=model, hidden=16, steps=40, plans=FEW, progress="silent")
    return explainer.fit(lending.table(60), label="decision", favourable="yes")


def test_a_model_that_looks_at_the_other_rows_is_refused_with_the_way_out():
    with pytest.raises(
        InputError, match=r"not a function of the row alone: .* when it is queried for a part|order"
    ) as e:
        fitted(InContext())
    assert "model=tdce.OneByOne(model) asks about each row alone, which it takes " in str(e.value)
    assert "max_model_rows" in str(e.value)


def test_a_model_that_is_random_is_not_told_to_go_alone():
    rng = np.random.default_rng(0)

    def guess(frame):
        return rng.random(len(frame))

    with pytest.raises(InputError, match="when it is queried again; fix its seed"):
        fitted(guess)


def test_asked_one_by_one_it_is_a_function_of_the_row(tmp_path):
    model = InContext()
    explainer = fitted(tdce.OneByOne(model))
    assert set(model.sizes[-300:]) == {1}
    rows = lending.table(40, seed=3).drop(columns="decision")
    refused = rows[(explainer.predict(rows) == "no").to_numpy()].head(3)
    answer = explainer.explain(refused, max_model_rows=300)
    assert answer.model_rows <= 300
    assert "valid" in answer.counts()
    for row, line in answer.to_frame().iterrows():  # what the model itself says of each answer alone
        assert (model.predict_proba(line.to_frame().T[refused.columns])[0, 1] > 0.5) == (line["status"] == "valid"), row
    explainer.save(tmp_path / "alone.tdce")
    again = tdce.Explainer.load(tmp_path / "alone.tdce", model=tdce.OneByOne(model))
    assert again.explain(refused, max_model_rows=300).to_frame().equals(answer.to_frame())


def test_in_company_the_same_rows_come_along_in_every_call():
    calls = []

    def rank(frame):
        calls.append(frame.copy())
        return frame["income"].rank(pct=True).to_numpy()

    company = lending.table(20, seed=5)
    adapter = adapt_models(tdce.OneByOne(rank, company=company))[""]
    rows = lending.table(7, seed=6).drop(columns="decision")
    scores = adapter.query_scores(rows)
    assert [len(each) for each in calls] == [21] * 7
    assert all(each.head(20).equals(company[rows.columns]) for each in calls)
    expected = [((company["income"] < own).sum() + ((company["income"] == own).sum() + 2) / 2) / 21
                for own in rows["income"]]  # fmt: skip
    assert scores.tolist() == pytest.approx(expected)
    assert scores.tolist() == adapter.query_scores(rows.iloc[::-1])[::-1].tolist()


@pytest.mark.parametrize("returned", [np.zeros((2, 3)), np.zeros(0), 0.5, np.zeros((1, 1, 1))], ids=str)
def test_what_is_returned_for_one_row_is_checked(returned):
    with pytest.raises(InputError, match=r"the model .* returns an array of shape \("):
        adapt_models(tdce.OneByOne(lambda frame: returned))[""].query_scores(lending.table(3))


def test_a_wrapper_of_a_wrapper_is_refused():
    with pytest.raises(InputError, match="OneByOne takes one model"):
        tdce.OneByOne(tdce.OneByOne(InContext()))


def test_a_budget_bounds_the_time_of_a_slow_model():
    model, pause = InContext(), 0.002

    def slow(frame):
        time.sleep(pause)
        return model.predict_proba(frame)

    explainer = fitted(tdce.OneByOne(slow))
    rows = lending.table(3, seed=4).drop(columns="decision")
    model.sizes.clear()
    answer = explainer.explain(rows, max_model_rows=100)
    assert answer.model_rows <= 100
    assert len(model.sizes) <= 100 + 32  # and the rows by which a changed model is noticed
