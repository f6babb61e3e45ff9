"""Segments: few actions for many people, chosen near the optimum, decided by the model within everybody's limits."""

import json
from itertools import combinations
from pathlib import Path

import lawful
import lending
import numpy as np
import pandas as pd
import pytest
import studio
from typer.testing import CliRunner

import tdce
from tdce.cli import app
from tdce.methods import Step, Trial
from tdce.methods.actions import apply_action, join_actions, propose_actions
from tdce.methods.cover import choose_actions
from tdce.schema import FeasibleSet


@pytest.fixture(scope="module")
def explainer() -> tdce.Explainer:
    return lending.explainer()


@pytest.fixture(scope="module")
def rows(explainer: tdce.Explainer) -> pd.DataFrame:
    return lending.table(160, seed=5).drop(columns="decision").assign(branch=["north", "south"] * 80)


@pytest.fixture(scope="module")
def found(explainer: tdce.Explainer, rows: pd.DataFrame) -> tdce.Segments:
    return explainer.segments(rows, actions=3)


# The choice of actions


def best_by_enumeration(values: np.ndarray, most: int) -> int:
    """The largest F of any so many actions."""
    return max(int(values[list(some)].max(axis=0).sum()) for some in combinations(range(len(values)), most))


def test_the_choice_is_close_to_the_best_of_all_subsets():
    rng, ratios = np.random.default_rng(0), []
    for _ in range(60):
        values = rng.integers(1, 100, (12, 25)) * (rng.random((12, 25)) < 0.3)
        chosen = choose_actions(values, lambda at, values=values: values[at], 3)
        ratios.append(values[chosen].max(axis=0).sum() / best_by_enumeration(values, 3))
    assert min(ratios) >= 0.95  # of greedy alone, only 1 - 1/e is certain
    assert np.mean(np.array(ratios) == 1) > 0.9


def test_swaps_undo_what_greed_did():
    # people 0-5; greedy takes the first (4 people), but the other two together help all six
    helps = np.array([[0, 1, 1, 1, 1, 0], [1, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1]])
    assert sorted(choose_actions(helps, lambda at: helps[at], 2)) == [1, 2]


def test_of_equals_the_first_is_taken_and_what_adds_nothing_is_left_out():
    helps = np.array([[1, 1, 0], [1, 1, 0], [0, 0, 1], [1, 0, 0]])
    assert choose_actions(helps, lambda at: helps[at], 4) == [0, 2]


def test_actions_whose_bound_is_too_low_are_not_valued():
    values = np.zeros((200, 50), dtype=np.int64)
    values[0] = 1
    bounds = values + (np.arange(50) < 10)  # all others may help at most ten
    bounds[0] = 1
    valued: list[int] = []

    def value(at: np.ndarray) -> np.ndarray:
        valued.extend(at.tolist())
        return values[at]

    assert choose_actions(bounds, value, 1) == [0]
    assert len(valued) < 100
    assert len(valued) == len(set(valued))  # none twice


def test_there_may_be_nothing_to_choose():
    assert choose_actions(np.zeros((0, 5), dtype=np.int64), lambda at: np.zeros((0, 5), dtype=np.int64), 3) == []
    assert choose_actions(np.zeros((4, 5), dtype=np.int64), lambda at: np.zeros((len(at), 5), dtype=np.int64), 3) == []


# Actions


def test_steps_do_to_a_number_what_they_say(explainer: tdce.Explainer):
    income, own = explainer.schema["income"], np.array([1000.0, 2000.0, np.nan])
    cases = {("at most", 1500): [1000, 1500], ("at least", 1500): [1500, 2000], ("by", -300): [700, 1700],
             ("times", 0.1): [1100, 2200]}  # fmt: skip
    for (how, value), expected in cases.items():
        made = Step(0, how, value).values(own, income)
        assert made[:2].tolist() == expected
        assert np.isnan(made[2])


def test_actions_are_the_common_changes_of_answers_rounded_to_what_people_say(explainer: tdce.Explainer):
    own = np.array([[1000.0, 500, 0, 30]] * 4)
    raw = own + np.array([[170.0, 0, 0, 0], [180, 0, 0, 0], [190, 0, 0, 0], [0, -200, 1, 0]])
    raw[3, 2] = 1
    columns = list(explainer.schema)
    actions = propose_actions(own, raw, columns, [], 3)
    assert (Step(0, "by", 200.0),) in actions  # 170 to 190, rounded up
    assert (Step(0, "at least", 1200.0),) in actions
    assert (Step(0, "times", 0.2),) in actions
    assert (Step(1, "by", -200.0), Step(2, "set", 1.0)) in actions
    assert (Step(2, "set", 1.0),) in actions  # each feature alone
    assert all(len(action) == 1 for action in propose_actions(own, raw, columns, [], 1))
    assert actions[0][0].column == 0  # what three need comes first


def test_two_actions_are_joined_if_they_are_about_different_features():
    a, b, c = Step(0, "by", 1.0), Step(1, "by", 1.0), Step(0, "by", 2.0)
    assert join_actions([(a,), (b,), (c,)], 2) == [(a, b), (c, b)]
    assert join_actions([(a, b), (Step(2, "by", 1.0),)], 2) == []


def test_an_action_is_possible_only_if_nothing_takes_a_step_back(explainer: tdce.Explainer, rows: pd.DataFrame):
    feasible = FeasibleSet.of(explainer.fitted.encoder, rows, ["debt"], ["income <= 3500"])
    raw, possible = apply_action((Step(0, "by", 500.0),), feasible)
    assert possible.tolist() == (rows["income"] + 500 <= 3500).tolist()
    assert (raw[possible, 0] == rows["income"][possible] + 500).all()
    assert (raw[~possible] == feasible.own[~possible]).all()
    assert not apply_action((Step(1, "by", -100.0),), feasible)[1].any()  # immutable


def test_what_follows_an_action_is_computed_anew():
    explainer = studio.lawful_explainer()
    frame = lawful.months(rows=40, seed=3).frame
    feasible = FeasibleSet.of(explainer.fitted.encoder, frame)
    names = explainer.schema.names
    months, total = names.index("months"), names.index("total_paid")
    middle = float(np.sort(feasible.own[:, months])[20])
    raw, possible = apply_action((Step(months, "at least", middle),), feasible)
    moved = possible & (raw[:, months] != feasible.own[:, months])
    assert moved.any()
    expected = feasible.constraints.follow(raw, feasible.own)[moved, total]
    assert np.allclose(raw[moved, total], expected)
    assert (raw[moved, total] != feasible.own[moved, total]).all()


# Segments of people


def test_helped_people_are_accepted_within_their_limits_and_pay_what_the_distance_says(explainer, rows, found):
    assert 0 < len(found) <= 3
    fitted, task = explainer.fitted, explainer.fitted.task()
    goals = fitted.resolve_goals(None, None, found.own)
    feasible = FeasibleSet.of(fitted.encoder, rows)
    for i in range(len(found)):
        who = found.helps[:, i]
        changed = found.raw[:, i]
        assert who.any()
        assert not (who & found.already).any()
        assert goals.met(task.oracle.score(changed)).numpy()[who].all()
        assert feasible.contains(changed).all()
        assert (found.safety[who, i] >= 0.75).all()
        written = fitted.encoder.write(changed, rows, found.own)
        assert (explainer.predict(written[who]) == "yes").all()
    best = found.people()
    helped = best[best["status"] == "helped"]
    cheapest = np.nanmin(np.where(found.helps, found.cost, np.nan)[found.helped], axis=1)
    assert helped["cost"].tolist() == cheapest.tolist()


def test_an_action_that_equals_an_answer_costs_what_the_answer_costs(explainer):
    answer = explainer.explain(lending.refused(explainer, 30))
    found, changes = answer.explanation, answer.changes()
    single = changes[changes.groupby("row")["row"].transform("size") == 1]
    single = single[single["feature"] == "income"]
    label = single["row"].iloc[0]
    at = list(answer.rows.index).index(label)
    step = Step(0, "at least", float(single["after"].iloc[0]))
    feasible = FeasibleSet.of(explainer.fitted.encoder, answer.rows)
    (outcome,) = Trial(explainer.fitted.task(), feasible, answer.goals, {}, 0.0).decide([(step,)])
    assert outcome.cost[at] == found.distance[at, 0]
    assert outcome.safety[at] == found.safety[at, 0]
    assert outcome.score[at] == found.score_after[at, 0]


def test_the_frames_tell_one_story(rows, found):
    table, people, steps = found.to_frame(), found.people(), found.steps()
    assert table.index.tolist() == [*range(1, len(found) + 1)]
    assert table["together"].is_monotonic_increasing
    assert people["status"].value_counts().to_dict() == {
        status: count
        for status, count in (
            ("already", int(found.already.sum())),
            ("helped", int(table["takes"].sum())),
            ("left", len(found.left())),
        )
        if count
    }
    needs = int((~found.already).sum())
    assert table["together"].iloc[-1] == pytest.approx((people["status"] == "helped").sum() / needs)
    assert people["row"].tolist() == rows.index.tolist()
    assert set(steps["action"]) == set(table.index)
    assert [number for number, part in steps.groupby("action") if len(part) > 3] == []
    assert found.left().index.tolist() == people.loc[people["status"] == "left", "row"].tolist()


def test_actions_are_worded_in_both_languages(found):
    english, german = found.sentences("en"), found.sentences("de")
    assert len(english) == len(german) == len(found)
    assert any(word in " ".join(english) for word in ("at least", "at most", "lower by", "raise by"))
    assert any(word in " ".join(german) for word in ("mindestens", "höchstens", "senken", "erhöhen"))


def test_the_same_question_gives_the_same_segments_and_an_answer_will_do(explainer, rows, found):
    again = explainer.segments(rows, actions=3)
    assert again.actions == found.actions
    assert (again.helps == found.helps).all()
    answer = explainer.explain(lending.refused(explainer, 20), n=2, immutable=["housing"])
    some = explainer.segments(answer, actions=2)
    assert some.question.immutable == ("housing",)
    assert "housing" not in set(some.steps()["feature"])


def test_immutable_features_costs_and_limits_are_heeded(explainer, rows, found):
    rows = rows.head(70)
    only = explainer.segments(rows, actions=2, immutable=["income", "housing", "age"])
    assert set(only.steps()["feature"]) == {"debt"}
    cheap = explainer.segments(rows, actions=2, max_cost=0.45)
    assert np.nanmax(np.where(cheap.helps, cheap.cost, np.nan)) <= 0.45
    assert cheap.helped.sum() < found.helped[:70].sum()
    safe = explainer.segments(rows, actions=2, safety=0.95)
    assert (safe.safety[safe.helps] >= 0.95).all()


def test_nobody_to_help_and_nothing_that_helps(explainer):
    accepted = lending.table(60).drop(columns="decision")
    accepted = accepted[(explainer.predict(accepted) == "yes").to_numpy()].head(5)
    nobody = explainer.segments(accepted)
    assert len(nobody) == 0
    assert nobody.to_frame().empty
    assert nobody.people()["status"].unique().tolist() == ["already"]
    refused = lending.refused(explainer, 5)
    none = explainer.segments(refused, immutable=["income", "debt", "housing", "age"])
    assert len(none.left()) == 5
    assert none.burden("housing").to_frame()["share"].tolist() == [0.0] * refused["housing"].nunique()


def test_segments_on_small_cases_are_as_good_as_brute_force_over_the_same_actions(explainer):
    """All choices of two among the candidates, by enumeration."""
    answer = explainer.explain(lending.refused(explainer, 25), n=2)
    found, encoder = answer.explanation, explainer.fitted.encoder
    feasible = FeasibleSet.of(encoder, answer.rows)
    own = np.repeat(found.own[:, None], 2, axis=1)[found.status == "valid"]
    actions = propose_actions(own, found.raw[found.status == "valid"], list(explainer.schema), [], 2)[:40]
    trial = Trial(explainer.fitted.task(), feasible, answer.goals, {}, 0.75)
    chosen, tried = trial.choose(actions, 2, 1)  # no pairs beyond those proposed
    assert tried == len(actions)
    values = trial.values(actions)
    ours = int(values[[actions.index(action) for action in chosen]].max(axis=0).sum())
    assert ours == best_by_enumeration(values, 2)
    helped = lambda some: int((values[list(some)] > 0).any(axis=0).sum())  # noqa: E731
    assert helped([actions.index(action) for action in chosen]) == max(
        helped(some) for some in combinations(range(len(actions)), 2)
    )


# The command line


def test_the_command_prints_actions_and_writes_who_is_helped(explainer, rows, tmp_path: Path):
    explainer.save(tmp_path / "lending.tdce")
    rows.to_csv(tmp_path / "rows.csv", index=False)
    words = ["segments", str(tmp_path / "lending.tdce"), str(tmp_path / "rows.csv"), "--actions", "2"]
    shown = CliRunner().invoke(app, [*words, "--burden", "branch", "--out", str(tmp_path / "who.csv")])
    assert shown.exit_code == 0, shown.output
    assert "people need help; 2 actions help" in shown.stdout
    assert "north" in shown.stdout
    who = pd.read_csv(tmp_path / "who.csv")
    assert len(who) == len(rows)
    assert set(who["status"]) <= {"helped", "left", "already"}
    found = json.loads(CliRunner().invoke(app, [*words, "--json"]).stdout)
    assert len(found["actions"]) == 2
    assert len(found["people"]) == len(rows)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["-n", "3"], "segments takes neither -n nor --max-model-rows"),
        (["--burden", "brnch"], "there is no column 'brnch'; did you mean 'branch'"),
    ],
)
def test_the_command_names_what_it_cannot_do(explainer, rows, tmp_path: Path, words: list[str], message: str):
    explainer.save(tmp_path / "lending.tdce")
    rows.head(3).to_csv(tmp_path / "rows.csv", index=False)
    done = CliRunner().invoke(app, ["segments", str(tmp_path / "lending.tdce"), str(tmp_path / "rows.csv"), *words])
    assert isinstance(done.exception, tdce.InputError)
    assert message in str(done.exception)
