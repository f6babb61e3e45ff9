"""Principal reasons by the way, beside those who just pass and beside all applicants, and how far these agree."""

import pickle
from dataclasses import replace

import lending
import numpy as np
import pandas as pd
import pytest
import torch

import tdce
from tdce.methods.principal_reasons import (
    Agreement,
    just_passing,
    rank_shortfalls,
    reasons_agreement,
    typical_values,
)
from tdce.models.goals import Class
from tdce.schema.encoder import Encoder

WEIGHTS = {"income": 0.0006, "debt": -0.0009, "age": 0.003}  # of the log odds of "yes"


class Scorecard:
    """A user's model whose log odds are a sum of points, and which counts its calls."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, frame: pd.DataFrame) -> np.ndarray:
        self.calls += 1
        p = 1 / (1 + np.exp(-odds(frame)))
        return np.stack([1 - p, p], axis=1)


def odds(frame: pd.DataFrame) -> np.ndarray:
    points = sum(weight * frame[name].to_numpy(float) for name, weight in WEIGHTS.items())
    return points + 0.3 * (frame["housing"] == "own").to_numpy() - 0.9


@pytest.fixture(scope="module")
def card():
    return Scorecard()


@pytest.fixture(scope="module")
def scored(card):
    table = lending.table(600)
    made = tdce.Explainer(model=card, hidden=16, steps=20, progress="silent")
    return made.fit(table, label="decision", favourable="yes", immutable=["age"])


@pytest.fixture(scope="module")
def table():
    return lending.table(400, seed=5).drop(columns="decision")


@pytest.fixture(scope="module")
def refused(table):
    return table[odds(table) < 0].head(30)


@pytest.fixture(scope="module")
def answer(scored, refused):
    return scored.explain(refused)


# ---- by a second route: a loop over people and features


def typical_of(frame: pd.DataFrame) -> dict:
    means = {"income": round(frame["income"].mean() / 10) * 10, "age": round(frame["age"].mean())}
    return {**means, "debt": round(frame["debt"].mean(), 2), "housing": frame["housing"].mode()[0]}


@pytest.mark.parametrize("method", ["passing", "applicants"])
def test_a_factor_costs_what_the_score_gains_with_the_value_of_the_group(answer, refused, table, method):
    margin = odds(table)
    passing = table[margin >= 0].iloc[np.argsort(margin[margin >= 0], kind="stable")]
    group = passing.head(max(20, round(0.1 * len(passing)))) if method == "passing" else table
    expected = []
    for label, row in refused.iterrows():
        losses = []
        for feature, value in typical_of(group).items():
            trial = row.to_frame().T.assign(**{feature: value})
            losses.append((feature, float(odds(trial)[0] - odds(row.to_frame().T)[0])))
        order = {name: i for i, name in enumerate(refused.columns)}
        losses = sorted((each for each in losses if each[1] > 1e-5), key=lambda each: (-each[1], order[each[0]]))
        expected += [(label, rank, feature, loss) for rank, (feature, loss) in enumerate(losses[:4], 1)]
    found = answer.reasons(method, table)
    assert list(found[["row", "rank", "feature"]].itertuples(index=False, name=None)) == [each[:3] for each in expected]
    np.testing.assert_allclose(found["loss"], [each[3] for each in expected], atol=1e-4)  # of probabilities, 6 decimals


def test_immutable_features_are_reasons_beside_others_and_never_of_the_way(answer):
    assert "age" in set(answer.reasons("applicants")["feature"])
    assert "age" not in set(answer.reasons("way")["feature"])


@pytest.mark.parametrize("method", ["passing", "applicants"])
def test_there_are_at_most_four_and_none_that_helped(answer, method):
    reasons = answer.reasons(method)
    assert (reasons["loss"] > 0).all()
    assert (reasons["option"] == 0).all()
    for _, some in reasons.groupby("row"):
        assert some["rank"].tolist() == list(range(1, len(some) + 1))
        assert len(some) <= 4
        assert some["loss"].is_monotonic_decreasing


def test_whoever_is_accepted_has_no_reasons(scored, table):
    accepted = table[odds(table) > 0.2].head(3)
    mixed = scored.explain(pd.concat([accepted, table[odds(table) < 0].head(2)]))
    for method in ("way", "passing", "applicants"):
        assert not set(mixed.reasons(method)["row"]) & set(accepted.index)


def test_all_people_and_features_are_one_call_of_the_model(scored, refused, card):
    answer, before = scored.explain(refused), card.calls
    answer.reasons("passing")
    answer.reasons("applicants")
    assert card.calls - before <= 3  # the rows as they are, all trials, and a check that the model is the same


def test_reasons_do_not_depend_on_the_company(scored, refused, answer):
    alone = scored.explain(refused.iloc[[3]])
    for method in ("passing", "applicants"):
        whole = answer.reasons(method)
        same = whole[whole["row"] == refused.index[3]].reset_index(drop=True)
        pd.testing.assert_frame_equal(alone.reasons(method), same, check_exact=True)


def test_a_copy_takes_its_reasons_along(scored, refused):
    answer = scored.explain(refused.head(3))
    copied = pickle.loads(pickle.dumps(answer))
    for method in ("way", "passing", "applicants"):
        pd.testing.assert_frame_equal(copied.reasons(method), answer.reasons(method), check_exact=True)
    with pytest.raises(tdce.InputError, match="this is a copy of an answer without the model"):
        copied.reasons("passing", refused)


def test_what_must_not_be_named_is_no_reason(scored, answer, refused):
    assert "debt" in set(answer.reasons("applicants")["feature"])
    silent = scored.with_words({"debt": {"named": False}}).explain(refused)
    assert "debt" not in set(silent.reasons("applicants")["feature"])


def test_a_budget_that_is_used_up_is_named_and_kept(scored, refused, card):
    answer, before = scored.explain(refused.head(2), max_model_rows=40), card.calls
    with pytest.raises(tdce.InputError, match="raise max_model_rows, which is 40, or use the method 'way'"):
        answer.reasons("passing")
    assert card.calls == before
    assert answer.reasons().columns.tolist() == ["row", "option", "rank", "feature", "loss"]


def test_an_unknown_method_is_refused(answer):
    with pytest.raises(tdce.InputError, match="method is 'shap'; it must be one of way, passing, applicants"):
        answer.reasons("shap")


def test_a_class_or_a_number_that_nobody_reaches_gives_no_reasons_beside_those_who_pass(scored, refused):
    answer = scored.explain(refused.head(3), target=tdce.AtLeast("yes", 0.99999))
    assert np.isnan(answer.shortfall[0]).all() == answer.reasons("passing").empty
    assert not answer.reasons("applicants").empty


# ---- groups


def test_those_at_or_slightly_above_the_passing_score_are_the_nearest_tenth_but_at_least_twenty():
    p = torch.linspace(0, 1, 401, dtype=torch.double)
    scores = torch.stack([1 - p, p], dim=1)
    assert just_passing(Class(1), scores).tolist() == list(range(201, 221))  # of 200 who pass
    many = torch.cat([scores] * 4)
    assert len(just_passing(Class(1), many)) == 80
    assert len(just_passing(Class(1), scores[:205])) == 4


def test_the_typical_value_is_the_mean_on_the_grid_or_the_most_common_one():
    frame = pd.DataFrame(
        {"n": [1, 2, 6, 6], "half": [0.5, 0.5, 1.0, 1.5], "w": ["v", "u", "v", "u"], "m": [None, None, None, 4.0]}
    )
    encoder = Encoder.fit(frame)
    n, half, w, m = typical_values(encoder, encoder.read(frame))
    assert (n, half) == (4, 0.9)  # 3.75 and 0.875
    assert encoder.schema["w"].categories[int(w)] == "u"  # of two that are as common, the first
    assert np.isnan(m)  # most have none
    assert np.isnan(typical_values(encoder, encoder.read(frame)[:0])).all()


def test_shortfalls_are_ranked_and_what_helped_is_left_out():
    assert rank_shortfalls(np.array([0.5, -1.0, 2.0, 0.0, np.nan, 0.5]), list("abcdef"), hidden=["f"]) == [
        ("c", 2.0),
        ("a", 0.5),
    ]


# ---- agreement


def test_agreement_is_counted_over_people_who_have_reasons_by_both_methods():
    way = [[("a", 2.0)], [("a", 1.0), ("b", 0.5)], [], [("c", 1.0)]]
    passing = [[("a", 9.0), ("b", 1.0)], [("b", 9.0), ("c", 1.0)], [("a", 1.0)], [("d", 1.0), ("e", 0.5)]]
    found = reasons_agreement({"way": way, "passing": passing})
    assert found == [Agreement("way", "passing", 3, 1 / 3, 1 / 3, pytest.approx((1 + 0.5 + 0) / 3))]
    (nobody,) = reasons_agreement({"way": [[]], "passing": [[]]})
    assert nobody.people == 0
    assert np.isnan(nobody.first)


def test_only_the_four_principal_reasons_are_compared():
    five = [[(name, 1.0) for name in "abcde"]]
    (found,) = reasons_agreement({"way": five, "passing": [[("e", 1.0)]]})
    assert found.overlap == 0


def test_the_agreement_of_an_answer_is_that_of_its_reasons(answer, table):
    found = answer.reasons_agreement(table)
    assert found[["one", "other"]].to_numpy().tolist() == [
        ["way", "passing"], ["way", "applicants"], ["passing", "applicants"]
    ]  # fmt: skip
    firsts = {}
    for method in ("way", "passing", "applicants"):
        reasons = answer.reasons(method) if method == "way" else answer.reasons(method, table)
        firsts[method] = reasons[reasons["rank"] == 1].set_index("row")["feature"]
    for one, other, people, first, *_ in found.itertuples(index=False):
        both = pd.concat([firsts[one], firsts[other]], axis=1, join="inner")
        assert people == len(both)
        assert first == pytest.approx((both.iloc[:, 0] == both.iloc[:, 1]).mean())


def test_evidence_and_report_have_the_reasons_and_how_far_they_agree(tmp_path):
    lent = lending.explainer()
    answer = lent.explain(lending.refused(lent, 8))
    records = [each for each in answer.evidence() if each["record"] == "answer"]
    for method in ("passing", "applicants"):
        recorded = [tuple(reason) for record in records for reason in record[f"reasons_{method}"]]
        assert recorded == list(answer.reasons(method)[["feature", "loss"]].itertuples(index=False, name=None))
    answer.to_evidence(tmp_path / "evidence.jsonl")
    found = tdce.verify(tmp_path / "evidence.jsonl", lent, answer.rows)
    assert found.holds
    expected = answer.compare_reasons()
    assert found.reasons == expected
    (line,) = [text for subject, text in found.summary(False) if subject == "reasons"]
    assert f"way and passing {100 * expected[0].first:.0f} %" in line
    answer.to_html(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert f'<th scope="row">the way and just passing</th><td>{expected[0].people}</td>' in page
    answer.to_html(tmp_path / "page.html", reasons=False)
    assert "The reasons were not compared" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_a_changed_reason_is_found_when_the_question_is_replayed(tmp_path):
    lent = lending.explainer()
    answer = lent.explain(lending.refused(lent, 2))
    other = replace(answer)
    vars(other)["shortfall"] = answer.shortfall + 1.0
    other.to_evidence(tmp_path / "evidence.jsonl")
    problems = tdce.verify(tmp_path / "evidence.jsonl", lent, answer.rows).problems
    assert {problem.field for problem in problems} == {"reasons_passing", "reasons_applicants"}
