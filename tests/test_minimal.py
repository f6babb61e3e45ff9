"""No change in an answer is needless: by brute force over all subsets of its changes, for random tables and questions.

The judge is in tests/minimal.py; benchmarks/minimal.py asks many more questions.
"""

from dataclasses import replace

import numpy as np
import pytest
from minimal import CLOSENESS, MODELS, TABLES, Judge, Verdict, fit, random_question, reverts

import tdce
from tdce._core import same

QUICK = [(table, list(MODELS)[i % len(MODELS)], i % 3 != 2) for i, table in enumerate(TABLES)]
"""Every table and every model; some without the laws of the table."""


def judge(table: str, model: str, laws: bool, seed: int, questions: int, people: int) -> Verdict:
    explainer, refused = fit(table, model, laws, seed)
    rng, verdict = np.random.default_rng([seed, questions]), Verdict()
    for _ in range(questions):
        asked = random_question(list(explainer.schema.names), rng)
        found = Judge(explainer, explainer.explain(refused.head(people), **asked)).judge()
        assert not found.faults, (asked, found.faults)
        verdict.add(found)
    return verdict


@pytest.mark.parametrize(("table", "model", "laws"), QUICK)
def test_no_change_is_needless(table, model, laws):
    found = judge(table, model, laws, seed=5, questions=3, people=5)
    assert found.lines > 5
    assert found.subsets > 0


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("table", TABLES)
def test_no_change_is_needless_in_many_answers(table, model):
    total = Verdict()
    for seed in range(3):
        for laws in (True, False):
            total.add(judge(table, model, laws, seed, questions=4, people=8))
    print(f"{table}, {model}: {total.lines} options, {total.subsets} subsets, up to {total.most_changes} changes")
    assert total.lines > 100


def test_of_seven_changes_five_are_given_back_together():
    """In one of these answers: no two or three of them by themselves make it better."""
    explainer, refused = fit("wide", "function", laws=True, seed=0)
    answer = explainer.explain(refused.head(8), n=5, closeness=0, safety=0, seed=77)
    assert not Judge(explainer, answer).judge().faults


def test_an_answer_on_the_very_boundary_has_no_needless_change_either():
    """Nothing is accepted by the usual margin for one of these people, who get an answer with a smaller one."""
    explainer, refused = fit("months", "boosting", laws=False, seed=0)
    asked = {"immutable": ["complaints", "rating"], "rules": ["at most 3 changes"]}
    judge = Judge(explainer, explainer.explain(refused.head(8), closeness=0.5, safety=0, seed=29, **asked))
    value = judge.value(judge.found.raw[2], 2)
    assert value["met"].all()
    assert not value["accepted"].any()
    assert not judge.judge().faults


def test_a_change_that_is_worth_next_to_nothing_is_given_back():
    """A debt of 5,060 became 5,053, which was better by 0.000004."""
    explainer, refused = fit("ratio", "logistic", laws=True, seed=3)
    asked = {"immutable": ["utilisation"], "costs": {"income": 0.0}}
    answer = explainer.explain(refused.head(8), n=3, closeness=0, safety=0, seed=79, **asked)
    assert not Judge(explainer, answer).judge().faults


@pytest.mark.parametrize(("table", "model"), [("instalment", "function"), ("wide", "boosting")])
def test_no_change_is_needless_at_positions_that_are_asked_together(table, model):
    """What one position takes over from another may have changes that only the other needed, as one of these has."""
    explainer, refused = fit(table, model, laws=True, seed=3)
    answers = explainer.trade_off(refused.head(12), closeness=CLOSENESS)
    for closeness, answer in answers.items():
        assert answer.question.closeness == closeness
        assert not Judge(explainer, answer, lenient=True).judge().faults
    far = np.stack([answers[each].explanation.distance[:, 0] for each in CLOSENESS])
    assert (np.diff(far, axis=0) <= 1e-6).all()


@pytest.fixture(scope="module")
def asked() -> tuple[tdce.Explainer, tdce.Answer]:
    explainer, refused = fit("lawless", "logistic", laws=True, seed=0)
    return explainer, explainer.explain(refused.head(6), n=3, closeness=1, safety=0)


def with_raw(answer: tdce.Answer, raw: np.ndarray, row: int, option: int) -> tdce.Answer:
    """The answer with another option in place of one of its own."""
    every = answer.explanation.raw.copy()
    every[row, option] = raw
    return replace(answer, explanation=replace(answer.explanation, raw=every))


def test_the_judge_finds_a_change_that_can_be_given_back(asked):
    """At closeness 1 every change costs. `d`, a whole number from 0 to 29, is moved by 1 where it is as it was."""
    explainer, answer = asked
    assert not Judge(explainer, answer).judge().faults
    found, place = answer.explanation, answer.schema.names.index("d")
    row = int(np.flatnonzero(found.raw[:, 0, place] == found.own[:, place])[0])
    more = found.raw[row, 0].copy()
    more[place] += 1 if more[place] < 15 else -1
    faults = Judge(explainer, with_raw(answer, more, row, 0)).judge().faults
    assert any(text.startswith(f"row {row}, option 0: ['d'] of") for text in faults["needless"])
    contained = Judge(explainer, with_raw(answer, more, row, 1)).judge().faults
    assert f"row {row}: option 1 contains 0, which is as good" in contained["contained"]


def test_the_judge_finds_options_that_are_repeated_without_a_note(asked):
    explainer, answer = asked
    repeated = with_raw(answer, answer.explanation.raw[0, 0], 0, 1)
    assert "merged" in Judge(explainer, repeated).judge().faults
    last = with_raw(answer, answer.explanation.raw[0, 1], 0, 2)
    assert "noted" in Judge(explainer, last).judge().faults


def test_identical_options_are_merged_and_the_note_says_how_many_there_are():
    """Two categories of two values each, of which one may change: there are few ways."""
    explainer, refused = fit("categories", "function", laws=False, seed=2)
    names = list(explainer.schema.names)
    found = explainer.explain(refused.head(20), n=5, immutable=names[2:], safety=0).explanation
    different = [len({tuple(np.nan_to_num(option, nan=-1)) for option in row}) for row in found.raw]
    assert min(different) < 5
    for row, count in enumerate(different):
        assert not same(found.raw[row, 1:count], found.raw[row, : count - 1]).all(axis=1).any()
        assert same(found.raw[row, count:], found.raw[row, count - 1]).all()
        notes = [{note.key: note.values for note in each} for each in found.notes[row]]
        if count < 5 and found.status[row, 0] != "infeasible":
            key = "options_alike" if count == 1 else "options_few"
            assert all(each[key] == {"options": 5, "different": count} for each in notes)


def test_the_first_option_is_the_answer_to_one():
    explainer, refused = fit("mixed", "boosting", laws=True, seed=1)
    for closeness in CLOSENESS:
        one, five = (explainer.explain(refused.head(12), n=n, closeness=closeness).explanation for n in (1, 5))
        assert same(one.raw[:, 0], five.raw[:, 0]).all()


def test_all_sets_of_changes_but_none_and_all_are_tried():
    found = reverts(np.array([True, False, True, True]))
    assert sorted(tuple(np.flatnonzero(each).tolist()) for each in found) == [(0,), (0, 2), (0, 3), (2,), (2, 3), (3,)]
    assert len(reverts(np.array([True, False]))) == 0
