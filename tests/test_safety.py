"""Safety: the second opinion and the forecast by second routes, and what answers promise of it."""

from functools import partial
from math import exp, log

import lending
import numpy as np
import pandas as pd
import pytest
import torch
import user_models
from asking import class_goals, make_query
from sklearn.linear_model import LogisticRegression, Ridge
from typer.testing import CliRunner

import tdce
from tdce import Change, InputError, Range
from tdce._core.noise import Noise
from tdce.cli import app
from tdce.methods.explanation import LOW_SAFETY
from tdce.methods.objective import SAFETY_WEIGHT, Objective, needed_margin, safety_shortfall
from tdce.methods.question import DEFAULT_SAFETY, Question
from tdce.models import second_opinion
from tdce.models.goals import AtLeast, Between, Class, Goals, Not
from tdce.models.output_goals import AllGoals, ModelDecides
from tdce.models.outputs import Output
from tdce.models.second_opinion import (
    KNOTS,
    MAX_TERMS,
    MIN_DISAGREEMENT,
    RIDGE,
    TYPICAL_DISAGREEMENT,
    SecondOpinion,
    count_terms,
    make_terms,
    safety_margin,
)

TWO, THREE = Output(classes=("no", "yes")), Output("grade", classes=("a", "b", "c"))
OWN = Output(classes=("no", "yes"), decides=True, border=0.3)
RATE = Output("rate", spread=2.0, edges=(4.0, 6.0, 8.0))


@pytest.fixture(scope="module")
def explainer() -> tdce.Explainer:
    return lending.explainer()


@pytest.fixture(scope="module")
def people(explainer):
    return lending.refused(explainer, 60)


def encoded(rows: int, num: int, cat: int, seed: int = 0) -> torch.Tensor:
    """Rows of normal numbers and one category."""
    rng = np.random.default_rng(seed)
    x = np.concatenate([rng.normal(size=(rows, num)), np.eye(cat)[rng.integers(0, cat, rows)]], axis=1)
    return torch.from_numpy(x).float()


# The second opinion


def test_terms_are_numbers_how_far_they_are_beyond_each_knot_categories_and_one():
    found = make_terms(torch.tensor([[-1.0, 2.0, 0.0, 1.0]]), 2)[0].tolist()
    beyond = [max(0.0, value - knot) for knot in KNOTS for value in (-1.0, 2.0)]
    assert found == [-1.0, 2.0, *beyond, 0.0, 1.0, 1.0]
    assert found[2:12] == [0.5, 3.5, 0.0, 2.75, 0.0, 2.0, 0.0, 1.25, 0.0, 0.5]


@pytest.mark.parametrize("num", [0, 1, MAX_TERMS // 6, MAX_TERMS // 6 + 1, MAX_TERMS])
def test_terms_are_as_many_as_counted_with_bends_or_without(num):
    assert make_terms(torch.zeros(2, num + 3), num).shape == (2, count_terms(num, 3))
    assert (count_terms(num, 3) == num + 4) == (num == 0 or 6 * num > MAX_TERMS)


@pytest.mark.parametrize("output", [TWO, THREE])
def test_its_probabilities_are_those_of_a_logistic_regression(output):
    """By scikit-learn. Of two classes it has one column of weights w where here are -w/2 and w/2: half the penalty."""
    x, classes = encoded(900, 3, 4), len(output.classes)
    drift = x[:, 0].abs() - x[:, 1] + 2 * x[:, 3]
    y = np.digitize((drift + torch.randn(900, generator=torch.Generator().manual_seed(0))).numpy(), range(1, classes))
    found = SecondOpinion.fit(x, 3, np.eye(classes)[y], [output])
    terms = make_terms(x, 3).numpy()
    other = LogisticRegression(C=(2 if classes == 2 else 1) / RIDGE, fit_intercept=False, max_iter=5_000, tol=1e-8)
    expected = other.fit(terms, y).predict_proba(terms)
    np.testing.assert_allclose(found.score(x, [output]), expected, atol=1e-3)
    assert (found.score(x, [output]).argmax(dim=1).numpy() == y).mean() > 0.6
    assert found.units.tolist() == [1.0]


def test_its_numbers_are_those_of_a_ridge_regression_and_its_error_is_their_unit():
    x, rng = encoded(900, 3, 4), np.random.default_rng(0)
    y = 1_000 + (5 * x[:, 0].abs() - x[:, 1] + 2 * x[:, 3]).double().numpy()[:, None] + rng.normal(size=(900, 1))
    output = Output("rate", spread=float(y.std()))
    found, terms = SecondOpinion.fit(x, 3, y, [output]), make_terms(x, 3).numpy()
    other = Ridge(alpha=RIDGE, fit_intercept=False, solver="svd").fit(terms, y[:, 0] - y.mean())
    expected = other.predict(terms)[:, None] + y.mean()
    np.testing.assert_allclose(found.score(x, [output]), expected, rtol=1e-9)
    apart = np.sqrt(((expected - y) ** 2).mean()) / y.std()
    assert apart < 0.4
    assert found.units.tolist() == pytest.approx([TYPICAL_DISAGREEMENT / apart])


def test_a_number_that_is_known_exactly_has_a_largest_unit():
    x = encoded(200, 1, 2)
    constant = SecondOpinion.fit(x, 1, np.full((200, 1), 7.0), [RATE])
    assert constant.units.tolist() == [TYPICAL_DISAGREEMENT / MIN_DISAGREEMENT]
    assert constant.score(x, [RATE])[:, 0].tolist() == pytest.approx([7.0] * 200)


def test_several_outputs_are_learned_each_from_its_own_columns():
    """One that decides for itself has twice as many columns of scores as it has classes; a number follows."""
    x = encoded(600, 2, 2)
    p = torch.sigmoid(2 * x[:, 0]).double().numpy()
    number = (3 + x[:, 1]).double().numpy()
    targets = np.stack([1 - p, p, p < 0.3, p >= 0.3, number], axis=1)
    outputs = [OWN, RATE]
    found = SecondOpinion.fit(x, 2, targets, outputs)
    scores = found.score(x, outputs)
    alone = SecondOpinion.fit(x, 2, targets[:, :2], [TWO]), SecondOpinion.fit(x, 2, targets[:, 4:], [RATE])
    torch.testing.assert_close(scores[:, :2], alone[0].score(x, [TWO]))
    torch.testing.assert_close(scores[:, 4:], alone[1].score(x, [RATE]))
    assert torch.equal(scores[:, 3], (scores[:, 1] >= OWN.border).double())
    assert torch.equal(scores[:, 2], 1 - scores[:, 3])
    assert np.abs(scores[:, 1].numpy() - p).max() < 0.1
    three = Output(classes=("a", "b", "c"), decides=True)
    chosen = SecondOpinion(0, torch.eye(4)[:, :3].double(), torch.ones(1)).score(torch.eye(3), [three])
    assert chosen[:, 3:].tolist() == torch.eye(3).tolist()


def test_of_more_rows_than_it_learns_from_it_takes_every_second_one(monkeypatch):
    x = encoded(101, 1, 2)
    y = np.eye(2)[(x[:, 0] > 0).long().numpy()]
    monkeypatch.setattr(second_opinion, "MAX_ROWS", 60)
    found, half = SecondOpinion.fit(x, 1, y, [TWO]), SecondOpinion.fit(x[::2], 1, y[::2], [TWO])
    assert torch.equal(found.weights, half.weights)


# The forecast

LINE = SecondOpinion(1, torch.tensor([[0, 1.0], *[[0, 0]] * 6]).double(), torch.ones(1).double())
"""The log odds of the second class are the number itself."""


def forecast(margin, x, goal, opinion=LINE, outputs=(TWO,)) -> list[float]:
    rows = torch.tensor(x)[:, None]
    return opinion.safety(torch.tensor(margin), rows, Goals.all(goal, len(rows)), outputs).tolist()


def by_hand(first: float, second: float) -> float:
    first, second = (min(4.0, max(-4.0, each)) for each in (first, second))
    return 1 / (1 + exp(-(0.07 + 0.69 * first + 0.43 * second + 0.55 * min(first, second))))


def test_the_forecast_by_hand():
    margin, x = [0.0, 1.0, 1.0, 2.0, 9.0, -9.0, float("inf")], [0.0, 1.0, -1.0, 0.5, 9.0, -9.0, 1.0]
    expected = [by_hand(*each) for each in zip(margin, x, strict=True)]
    assert forecast(margin, x, Class(1)) == pytest.approx(expected, abs=6e-7)
    assert expected[0] == pytest.approx(0.517493, abs=1e-6)  # 1 / (1 + exp(-0.07))
    assert forecast([1.0], [-2.0], Not(1)) == pytest.approx([by_hand(1, 2)], abs=6e-7)
    at_least = forecast([1.0], [2.0], AtLeast(1, 0.8))
    assert at_least == pytest.approx([by_hand(1, 2 - log(0.8 / 0.2))], abs=6e-7)
    band = forecast([0.1, 0.1], [0.1, 2.0], Between(1, 0.4, 0.6))
    half = log(0.6 / 0.4)
    assert band == pytest.approx([by_hand(0.1, half - 0.1), by_hand(0.1, half - 2)], abs=6e-7)
    assert forecast([1.0], [1.0], Between(1, 0.4, 1.0)) == pytest.approx([by_hand(1, 1 + half)], abs=6e-7)


def test_the_forecast_for_a_number_is_in_units_of_what_two_opinions_differ_by():
    """A spread of 2, a unit of 3: a number of 7 is 1 beyond 5, half a spread, and 1.5 in log odds."""
    weights = torch.zeros(count_terms(1, 0), 1).double()
    weights[0] = 1.0
    opinion = SecondOpinion(1, weights, torch.tensor([3.0]).double())
    found = forecast([0.2, -0.2], [6.0, 1.0], Range(low=5, output=RATE), opinion, (RATE,))
    assert found == pytest.approx([by_hand(0.6, 1.5), by_hand(-0.6, -6)], abs=6e-7)


def test_of_several_goals_the_smallest_unit_counts():
    opinion = SecondOpinion(1, torch.zeros(7, 3).double(), torch.tensor([1.0, 0.4]).double())
    grade, rate = Output("grade", classes=("no", "yes")), Range(low=5, output=RATE)
    unit = partial(opinion.unit, outputs=(grade, RATE))
    assert unit(Class(1)) == unit(ModelDecides(Class(1), OWN)) == 1.0
    assert unit(rate) == pytest.approx(0.4)
    assert unit(AllGoals(((Class(1), 0, 2), (rate, 2, 3)), grade)) == pytest.approx(0.4)


@pytest.mark.parametrize("wanted", [0.6, 0.75, 0.9, 0.99])
def test_by_the_needed_margin_of_both_opinions_the_forecast_is_what_is_wanted(wanted):
    margin = safety_margin(wanted)
    assert by_hand(margin, margin) == pytest.approx(wanted)


def test_of_hardly_any_safety_no_margin_is_needed():
    assert [safety_margin(each) for each in (0.0, 0.5, 0.51)] == [0.0, 0.0, 0.0]


# Answers


def lines(frame) -> np.ndarray:
    return frame["safety"].to_numpy()


def test_every_line_has_a_safety_from_0_to_1_by_the_formula(explainer, people):
    """The second route: the model asked once more for its margin, and the formula by hand. Some rows are accepted as
    they are."""
    everyone = lending.table(60, seed=1).drop(columns="decision")
    answer = explainer.explain(everyone, n=2)
    frame = answer.to_frame()
    assert {"valid", "already"} <= set(frame["status"])
    assert ((lines(frame) >= 0) & (lines(frame) <= 1)).all()
    fitted = explainer.fitted_
    p = explainer.predict_proba(frame[list(answer.features)])["yes"].to_numpy()
    x = fitted.encoder.encode(frame[list(answer.features)]).float()
    q = fitted.second_opinion.score(x, fitted.decides.outputs)[:, fitted.classes.index("yes")].numpy()
    expected = [by_hand(log(a / (1 - a)), log(b / (1 - b))) for a, b in zip(p, q, strict=True)]
    assert lines(frame) == pytest.approx(expected, abs=1e-4)
    assert [line.safety for row in answer.lines for line in row] == lines(frame).tolist()
    assert answer.explanation.safety.reshape(-1).tolist() == lines(frame).tolist()


@pytest.mark.parametrize("n", [1, 3])
def test_a_row_has_the_same_safety_alone_and_in_company(explainer, people, n):
    together = explainer.explain(people, n=n).explanation.safety
    for some in ([0], [59], [7, 3], list(range(20, 50))):
        assert np.array_equal(explainer.explain(people.iloc[some], n=n).explanation.safety, together[some])


def test_more_safety_is_safer_and_costs_more(explainer, people):
    wanted = (0.0, 0.6, 0.75, 0.9, 0.97)
    answers = [explainer.explain(people, safety=each, closeness=1) for each in wanted]
    assert all((each.explanation.status == "valid").all() for each in answers)
    safety = [float(each.explanation.safety.mean()) for each in answers]
    costs = [float(each.explanation.distance.mean()) for each in answers]
    assert (np.diff(safety) >= 0).all()
    assert (np.diff(costs) >= -1e-3).all()
    assert (answers[3].explanation.safety >= 0.89).mean() > 0.9
    assert safety[0] < 0.85
    assert costs[0] < 0.97 * costs[-1]


def test_the_default_is_a_safety_of_nine_in_ten(explainer, people):
    default, nine = explainer.explain(people), explainer.explain(people, safety=DEFAULT_SAFETY)
    assert DEFAULT_SAFETY == 0.9
    assert default.to_frame().equals(nine.to_frame())


def test_lines_that_are_barely_accepted_say_so(explainer, people):
    answer = explainer.explain(people, safety=0)
    for row, line in zip(answer.explanation.notes[:, 0], answer.explanation.safety[:, 0], strict=True):
        said = [note.values for note in row if note.key == "barely"]
        assert said == ([{"safety": line}] if line < LOW_SAFETY else [])
    barely = answer.explanation.safety[:, 0] < LOW_SAFETY
    assert barely.any()
    assert (answer.to_frame()["note"] != "")[barely].all()


def test_the_shortfall_is_what_the_forecast_lacks(explainer, people):
    fitted = explainer.fitted_
    task, x = fitted.task(), fitted.encoder.encode(people).float()
    goals, at = class_goals(fitted.classes.index("yes"), x), torch.tensor([3, 3, 0])
    margin = torch.tensor([0.1, 3.0, 1.0], dtype=torch.double)
    query = make_query(task, x, goals, safety=0.8)
    safety = task.second_opinion.safety(margin, x[at], goals.take(at), fitted.decides.outputs)
    found = safety_shortfall(task, query, x[at], margin, at)
    assert found.tolist() == pytest.approx((0.8 - safety).clamp_min(0).tolist(), abs=1e-7)
    assert found[0] > 0
    assert needed_margin(task, query).tolist() == pytest.approx([safety_margin(0.8)] * len(x))
    assert not safety_shortfall(task, make_query(task, x, goals), x[at], margin, at).any()
    cost, energy = torch.tensor(2.0), torch.tensor(5.0)
    objective = Objective(task, query, Noise(x, 0), torch.ones(len(x), dtype=torch.long))
    assert float(objective.total(cost, energy, 0.5, 0.2)) == pytest.approx(3.5 + 0.2 * SAFETY_WEIGHT)


def test_a_saved_explainer_forecasts_the_same_bits(explainer, people, tmp_path):
    explainer.save(path := tmp_path / "lending.tdce")
    again = tdce.Explainer.load(path, progress="silent")
    mine, other = explainer.fitted_.second_opinion, again.fitted_.second_opinion
    assert torch.equal(mine.weights, other.weights)
    assert torch.equal(mine.units, other.units)
    for safety in (0, None):
        one, two = (each.explain(people, safety=safety).explanation for each in (explainer, again))
        assert np.array_equal(one.safety, two.safety)
        assert np.array_equal(one.raw, two.raw)


@pytest.mark.parametrize("bad", [-0.1, 1, 0.995, float("nan"), float("inf"), "a", True, [0.5], 10**400])
def test_a_safety_that_makes_no_sense_is_named(explainer, people, bad):
    for ask in (lambda: explainer.explain(people, safety=bad), lambda: Question(safety=bad)):
        with pytest.raises(InputError, match=r"^safety is .*; it must be a number from 0 to 0\.99$"):
            ask()


def test_a_method_without_a_tradeoff_is_rated_but_not_asked_for_safety(explainer, people):
    plain = tdce.Explainer("wachter", progress="silent")
    plain.fitted_ = explainer.fitted_
    assert ((safety := plain.explain(people).explanation.safety) >= 0).all()
    assert (safety <= 1).all()
    with pytest.raises(InputError, match="Wachter cannot be asked for safety, only rated by it; leave it out"):
        plain.explain(people, safety=0.5)


def test_safety_on_the_command_line(explainer, people, tmp_path):
    explainer.save(path := tmp_path / "m.tdce")
    people.to_csv(rows := tmp_path / "rows.csv", index=False)
    command = ["explain", str(path), str(rows), "--out", str(out := tmp_path / "a.csv")]
    for bad in ("2", "-1", "nan"):
        wrong = CliRunner().invoke(app, [*command, "--safety", bad])
        assert isinstance(wrong.exception, InputError)
        assert f"safety is {float(bad)}; it must be a number from 0 to 0.99" in str(wrong.exception)
        assert not out.exists()
    for safety in (0.0, 0.6):
        assert CliRunner().invoke(app, [*command, "--safety", str(safety)]).exit_code == 0
        expected = explainer.explain(people, safety=safety).to_frame()
        np.testing.assert_allclose(pd.read_csv(out)["safety"], expected["safety"], atol=1e-6)


# Models of the user's


@pytest.mark.parametrize("label", ["decision", None])
def test_a_users_classes_have_a_safety_with_labels_or_without(label):
    """Without a label, the second opinion is of what the model says."""
    asked, model = user_models.rows(user_models.table()), user_models.logistic()
    explainer = user_models.learned(model, user_models.table() if label else asked, label=label)
    refused = asked[model.predict(asked) == "no"].head(20)
    for safety in (0, None):
        frame = explainer.explain(refused, safety=safety).to_frame()
        assert (frame["status"] == "valid").all()
        assert ((lines(frame) >= 0) & (lines(frame) <= 1)).all()
        alone = explainer.explain(refused.iloc[[4]], safety=safety).to_frame()
        assert lines(alone)[0] == lines(frame)[4]
    assert lines(frame).mean() > 0.85


@pytest.mark.parametrize("target", [Range(low=700), Range(620, 680), Change(-50)], ids=str)
def test_a_predicted_number_has_a_safety(target):
    """An additive model: there is next to nothing that a second opinion has to be wrong about."""
    asked = user_models.rows(user_models.table())
    explainer = user_models.learned(_rate, asked, label=None, favourable=Range(low=700))
    frame = explainer.explain(asked.head(30), target=target).to_frame()
    assert set(frame["status"]) <= {"valid", "already"}
    assert ((lines(frame) >= 0) & (lines(frame) <= 1)).all()
    assert lines(frame[frame["status"] == "valid"]).mean() > 0.85


def _rate(frame, scale=1.0):
    """20 % of income, less 5 % of the debt, 100 for owners."""
    rate = 0.2 * frame["income"] - 0.05 * frame["debt"] + 100 * (frame["housing"] == "own")
    return scale * rate.to_numpy(dtype=float)


@pytest.mark.parametrize("scale", [2.0**-30, 1e-9, 1e9])
def test_a_number_in_other_units_has_the_same_answers_and_the_same_safety(scale):
    asked = user_models.rows(user_models.table())
    found = []
    for unit in (1.0, scale):
        rate = partial(_rate, scale=unit)
        explainer = user_models.learned(rate, asked, label=None, favourable=Range(low=700 * unit))
        targets = Range(low=700 * unit), Range(620 * unit, 680 * unit), Change(-50 * unit)
        found.append(pd.concat([explainer.explain(asked.head(20), target=each).to_frame() for each in targets]))
    one, other = found
    assert {"valid", "already"} <= set(one["status"])
    pd.testing.assert_frame_equal(one[[*asked, "status"]], other[[*asked, "status"]])
    np.testing.assert_allclose(lines(other), lines(one), atol=5e-6)
