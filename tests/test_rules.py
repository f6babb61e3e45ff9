"""Rules written by the user hold in every line of every method."""

import copy
import json
from dataclasses import replace

import lending
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import tdce
from tdce import InputError
from tdce._core.notes import Note
from tdce.cli import app
from tdce.methods import conflicts
from tdce.methods.conflicts import HasAnswer, find_conflicts
from tdce.schema.columns.categorical import Categorical
from tdce.schema.columns.numeric import Numeric
from tdce.schema.constraints.rules import narrow_columns, parse_rule
from tdce.schema.encoder import Encoder
from tdce.schema.feasible import FeasibleSet
from tdce.schema.schema import Schema


@pytest.fixture(scope="module")
def explainer() -> tdce.Explainer:
    return lending.explainer()


@pytest.fixture(scope="module")
def people(explainer) -> pd.DataFrame:
    return lending.refused(explainer, 24)


def test_a_rule_between_two_columns_holds_in_every_line(explainer, people):
    frame = explainer.explain(people, rules=["debt >= 0.6 * income"], n=2).to_frame()
    before = people.loc[frame["row"]].reset_index(drop=True)
    kept = (frame["debt"] >= 0.6 * frame["income"] - 1e-6).to_numpy()
    as_was = (
        (frame["debt"].to_numpy() == before["debt"]) & (frame["income"].to_numpy() == before["income"])
    ).to_numpy()
    assert (kept | as_was).all()
    assert (frame["status"] == "valid").mean() > 0.9
    free = explainer.explain(people).to_frame()
    assert (free["debt"] < 0.6 * free["income"]).any(), "the rule is not idle"


def test_a_range_a_direction_and_a_list_are_kept_from_the_start(explainer, people):
    rules = ["debt >= 1500", "income <= was(income)", 'housing in ("own", "rent")', "debt in steps of 50"]
    people = people.head(12)
    frame = explainer.explain(people, rules=rules).to_frame()
    changed = frame["debt"].to_numpy() != people["debt"].to_numpy()
    assert changed.any()
    assert (frame["debt"][changed] >= 1500).all()
    assert (frame["debt"][changed] % 50 == 0).all()
    assert (frame["income"].to_numpy() <= people["income"].to_numpy()).all()
    moved = frame["housing"].to_numpy() != people["housing"].to_numpy()
    assert set(frame["housing"][moved]) <= {"own", "rent"}


def test_a_rule_does_not_lift_the_schemas_own_direction(explainer):
    falls = explainer.schema.change("debt", direction="decrease")["debt"]
    (column,) = narrow_columns([parse_rule("debt >= was(debt)", [falls])], [falls])
    assert column.direction == "decrease"
    (column,) = narrow_columns(
        [parse_rule("debt >= was(debt)", [explainer.schema["debt"]])], [explainer.schema["debt"]]
    )
    assert column.direction == "increase"


def test_what_follows_from_a_change_follows(explainer, people):
    """To own a home, the rule says, one is at least 50: so that the age moves too, or the housing does not."""
    frame = explainer.explain(people, rules=['if housing == "own" then age >= 50']).to_frame()
    bought = (frame["housing"].to_numpy() == "own") & (people["housing"].to_numpy() != "own")
    assert (frame["age"][bought] >= 50).all()


LOAN = Schema((
    Numeric("loan", 0, 1000, step=1), Numeric("income", 0, 100, step=1), Numeric("rate", 0, 10, step=0.25),
    Categorical("job", ("none", "some")),
))  # fmt: skip
PERSON = {"loan": 40, "income": 10, "rate": 2.0, "job": "some"}


def settled(rules: list[str], proposed: dict[str, object], own: dict[str, object] = PERSON) -> dict[str, object]:
    """What becomes of the features that are proposed to a person."""
    frame = pd.DataFrame([own, own | proposed])
    ends = [PERSON | {"loan": 0, "income": 0, "rate": 0.0}, {"loan": 1000, "income": 100, "rate": 10.0, "job": "none"}]
    encoder = Encoder.fit(pd.DataFrame(ends), LOAN)
    feasible = FeasibleSet.of(encoder, frame.head(1), rules=rules)
    raw = feasible.snap(encoder.encode(frame.tail(1)))
    assert feasible.contains(raw).all()
    return encoder.write(raw, frame.head(1))[[*proposed]].iloc[0].to_dict()


@pytest.mark.parametrize(("rule", "proposed", "answer"), [
    ("loan <= 5 * income", {"loan": 90}, {"loan": 50}),
    ("loan < 5 * income", {"loan": 90}, {"loan": 49}),
    ("loan <= 5 * income", {"income": 3}, {"income": 8}),
    ("loan <= 5 * income", {"income": 3, "loan": 45}, {"income": 9, "loan": 45}),  # the loan stays
    ("loan <= 5 * income", {"income": 15, "loan": 90}, {"income": 15, "loan": 75}),  # the income stays
    ("loan + 10 * income >= 135", {"income": 9, "loan": 30}, {"income": 10, "loan": 38}),  # neither alone is enough
    ("loan * rate <= 123", {"rate": 9.0}, {"rate": 3.0}),  # 3.075 is not on the grid
    ("loan <= 5 * income or loan <= 60", {"loan": 90, "income": 11}, {"loan": 60, "income": 11}),
    ('if job == "some" then loan <= 60', {"loan": 90, "job": "some"}, {"loan": 90, "job": "none"}),  # what may follows
    ('if job == "none" then loan <= 10', {"job": "none"}, {"job": "some"}),  # no number changed: undone
    ("loan == 4 * income", {"loan": 90}, {"loan": 40}),  # there is no part of the way
    ("loan <= 5 * income", {"loan": 48}, {"loan": 48}),
])  # fmt: skip
def test_a_number_that_breaks_a_rule_moves_back_to_its_boundary(rule, proposed, answer):
    assert settled([rule], proposed) == answer


@given(st.integers(0, 1000), st.integers(1, 100), st.integers(0, 1000), st.sampled_from([
    "loan <= 5 * income", "loan >= 3 * income", "loan < 500 or loan > 700", "abs(loan - was(loan)) <= 30",
    "loan / income <= 7",
]))  # fmt: skip
def test_nothing_nearer_to_the_proposal_keeps_the_rule(loan, income, proposed, text):
    """Every loan between the person's own and the proposed one is tried. Where several stretches of them keep the rule,
    the end of one of them is found."""
    rule, own = parse_rule(text, LOAN.features), PERSON | {"loan": loan, "income": income}
    way = np.arange(loan, proposed + np.sign(proposed - loan + 0.5), np.sign(proposed - loan + 0.5))
    tried = np.tile([float(loan), income, 2.0, 1.0], (len(way), 1))
    tried[:, 0] = way
    good = ~rule.broken(tried, np.tile(tried[:1], (len(way), 1)))
    good[0] = True  # nobody need change
    last = set(way[good & ~np.append(good[1:], False)].tolist())
    assert settled([text], {"loan": proposed}, own)["loan"] in (last if not good[-1] else {proposed})


def test_decimals_of_32_bits_do_not_cross_a_boundary_by_rounding():
    encoder = Encoder.fit(pd.DataFrame({"a": np.linspace(0, 1, 50), "b": np.linspace(0, 1, 50)}),
                          Schema((Numeric("a", 0, 1), Numeric("b", 0, 1))))  # fmt: skip
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.random(200) * 0.1, "b": rng.random(200)}).astype("float32")
    feasible = FeasibleSet.of(encoder, frame, rules=["a <= b / 3"])
    raw = feasible.snap(encoder.encode(frame.assign(a=np.float32(0.9))))
    written = encoder.write(raw, frame)
    fine = feasible.own[:, 0] <= feasible.own[:, 1] / 3
    np.testing.assert_array_equal(encoder.read(written), raw)
    np.testing.assert_allclose(raw[fine, 0], feasible.own[fine, 1] / 3, rtol=1e-6)
    assert feasible.contains(raw).all()


def test_of_too_many_changes_the_smallest_shares_of_a_range_are_given_back():
    columns = (Numeric("a", 100, 110), Numeric("b", 0, 100), Categorical("c", ("x", "y")))
    own = np.array([[100.0, 0.0, 0.0]] * 2)
    raw = np.array([[105.0, 20.0, 0.0], [105.0, 20.0, 1.0]])  # a half, a fifth, and all of a category
    one, two = (parse_rule(f"at most {count} changes", columns) for count in (1, 2))
    assert one.broken(raw, own).tolist() == [True, True]
    assert one.reverted(raw, own).tolist() == [[False, True, False], [True, True, False]]
    assert two.broken(raw, own).tolist() == [False, True]
    assert two.reverted(raw, own)[1].tolist() == [False, True, False]


def test_steps_are_of_one_column_of_numbers():
    columns = (Numeric("a", 0, 100), Numeric("b", 0, 100, step=50), Categorical("c", ("x", "y")))
    rule = parse_rule("a in steps of 25", columns)
    assert rule.broken(np.array([[50.0, 0, 0], [60.0, 0, 0], [-25.0, 0, 0]]), np.zeros((3, 3))).tolist() == [
        False, True, False,
    ]  # fmt: skip
    assert rule.narrow(columns)[0].step == 25
    assert parse_rule("b in steps of 25", columns).narrow(columns) == columns  # its own grid is coarser
    for text in ("a, b in steps of 5", "c in steps of 5", "a in steps of inf", "a in steps of -5", "a in steps of x"):
        with pytest.raises(InputError, match="one column of numbers and a positive step"):
            parse_rule(text, columns)


def test_a_rule_narrows_what_another_one_says_later():
    columns = tuple(Numeric(name, 0, 100) for name in "abc")
    rules = [parse_rule(text, columns) for text in ("a <= b", "b <= c", "c <= 7")]
    assert [column.bounds for column in narrow_columns(rules, columns)] == [(0, 7)] * 3


@pytest.mark.parametrize("count", [1, 2])
def test_a_maximum_number_of_features_change(explainer, people, count):
    answer = explainer.explain(people, rules=[f"at most {count} changes"], closeness=0.2)
    changed = (answer.explanation.raw[:, 0] != answer.explanation.own).sum(axis=1)
    assert changed.max() == count
    assert (answer.explanation.status == "valid").mean() > 0.9
    assert (explainer.explain(people, closeness=0.2).explanation.raw[:, 0] != answer.explanation.own).sum(
        axis=1
    ).max() > count


def test_features_that_exclude_each_other_and_features_that_go_together(explainer, people):
    answer = explainer.explain(people, rules=["at most 1 change of income, debt"], closeness=0.2)
    changed = answer.explanation.raw[:, 0] != answer.explanation.own
    assert not (changed[:, 0] & changed[:, 1]).any()
    answer = explainer.explain(people, rules=["income, debt together"])
    changed = answer.explanation.raw[:, 0] != answer.explanation.own
    assert (changed[:, 0] == changed[:, 1]).all()
    assert changed[:, 0].any()


def test_costs_say_what_is_preferred(explainer, people):
    def share(**costs: float) -> float:
        found = explainer.explain(people, costs=costs).explanation
        return float((found.raw[:, 0, 0] != found.own[:, 0]).mean())

    assert share(income=5) < share() < share(debt=5)
    free = explainer.explain(people, costs=dict.fromkeys(people.columns, 0), closeness=1).explanation
    assert (free.status == "valid").all()


def test_rules_that_contradict_each_other_are_named_before_any_work(explainer, people):
    rules = ["age >= 20", "income >= 4000", "debt <= 9000", "income < 3000"]
    with pytest.raises(InputError, match=r"contradict each other, within the schema: income >= 4000; income < 3000$"):
        explainer.explain(people, rules=rules)
    with pytest.raises(InputError, match="this rule allows nothing, within the schema: age > 500"):
        explainer.explain(people, rules=["age > 500"])
    with pytest.raises(InputError, match="contradict"):
        explainer.explain(people, rules=['housing == "own"', 'housing != "own"'])


def test_where_nothing_is_found_the_note_names_the_rule_that_stands_in_the_way(explainer, people):
    rules, people = ["income == was(income)", "debt == was(debt)", "age <= 90"], people.head(12)
    frame = explainer.explain(people, rules=rules, immutable=["housing", "age"]).to_frame()
    stuck = frame[frame["status"] == "infeasible"]
    assert len(stuck) > 5
    named = "these rules together: 'income == was(income)', 'debt == was(debt)'; without any one of them there is one"
    assert stuck["note"].str.contains(named, regex=False).mean() > 0.4
    assert stuck["note"].str.contains("without").all(), "some are so far from a yes that only one of the two would do"
    assert not stuck["note"].str.contains("age <= 90").any()
    for name in ("income", "debt", "housing"):
        assert (frame[name].to_numpy() == people[name].to_numpy()).all()
    one = explainer.explain(people, rules=["at most 0 changes"]).to_frame()
    assert (one["status"] == "infeasible").all()
    assert one["note"].str.contains("without the rule 'at most 0 changes' there is an answer", regex=False).all()


def test_of_two_rules_either_of_which_is_enough_one_is_named(explainer, people):
    """Without it there would be no answer either, so the note does not say that there is one."""
    rules = ["at most 0 changes", "income, debt, housing, age together"]
    note = explainer.explain(people.head(4), rules=rules, immutable=["housing", "age"]).to_frame()["note"]
    assert note.str.contains("the rule 'income, debt, housing, age together' alone leaves no answer", regex=False).all()


def family(blocking: list[set[int]], asked: list[int]) -> HasAnswer:
    """There is no answer under rules of which some are one of these sets."""

    def answered(at: np.ndarray, kept: np.ndarray) -> np.ndarray:
        asked.append(len(at))
        return np.full(len(at), not any(each <= set(np.flatnonzero(kept)) for each in blocking))

    return answered


@pytest.mark.parametrize(("blocking", "together", "single"), [
    ([{0}], {0}, {0}),
    ([{0, 2}], {0, 2}, {0, 2}),  # only together
    ([{0}, {1}], {1}, set()),  # either alone
    ([{0, 1}, {0, 2}], {0, 2}, {0}),  # without the first there is one, without the second alone not
])  # fmt: skip
def test_as_few_rules_as_leave_no_answer_by_hand(blocking, together, single):
    found = find_conflicts(family(blocking, []), np.arange(1), 3)
    assert (set(np.flatnonzero(found.together[0])), set(np.flatnonzero(found.single[0]))) == (together, single)


@given(st.lists(st.sets(st.integers(0, 4), min_size=1), min_size=1, max_size=5), st.integers(1, 9))
def test_as_few_rules_as_leave_no_answer(blocking, rows):
    """By trying all there are: no answer under these, and one without any of them."""
    asked: list[int] = []
    answered = family(blocking, asked)
    found = find_conflicts(answered, np.arange(rows), 5)
    assert len(asked) <= 10
    assert (found.together == found.together[0]).all()
    one, everything = np.arange(1), np.ones(5, dtype=bool)
    assert not answered(one, found.together[0])[0]
    for i in range(5):
        without = np.arange(5) != i
        assert found.single[0, i] == answered(one, everything & without)[0]
        assert not found.together[0, i] or answered(one, found.together[0] & without)[0]


@given(st.lists(st.lists(st.sets(st.integers(0, 3), min_size=1), min_size=1, max_size=3), min_size=2, max_size=6))
def test_the_conflict_of_a_row_does_not_depend_on_other_rows(blocking):
    each = [family(one, []) for one in blocking]

    def answered(at: np.ndarray, kept: np.ndarray) -> np.ndarray:
        return np.array([each[row](np.zeros(1), kept)[0] for row in at])

    together = find_conflicts(answered, np.arange(len(each)), 4)
    for row in range(len(each)):
        alone = find_conflicts(answered, np.array([row]), 4)
        assert (together.together[row] == alone.together[0]).all()
        assert (together.single[row] == alone.single[0]).all()


def test_rows_with_the_same_rules_left_are_asked_about_together():
    asked: list[int] = []
    each = [family([{0, 1}], asked), family([{2}], asked)]

    def answered(at: np.ndarray, kept: np.ndarray) -> np.ndarray:
        asked.append(len(at))
        return np.array([each[row % 2](np.zeros(1), kept)[0] for row in at])

    found = find_conflicts(answered, np.arange(10), 3)
    assert found.together.tolist() == [[True, True, False], [False, False, True]] * 5
    # three with one rule left out; then the second five once more
    assert len([size for size in asked if size > 1]) == 4


def test_of_very_many_rules_none_is_named(explainer, people):
    rules = [*(f"age >= {i}" for i in range(12)), "at most 0 changes"]
    note = explainer.explain(people.head(2), rules=rules).to_frame()["note"]
    assert note.str.contains(
        "the 13 rules conflict; which of them do is only worked out for up to 12", regex=False
    ).all()


@pytest.mark.parametrize(("together", "single", "said"), [
    (("a",), ("a",), [Note("rule_without", rules=("a",))]),
    (("a",), (), [Note("rule_alone", rules=("a",))]),
    (("a", "b"), (), [Note("rules_together", rules=("a", "b"))]),
    (("a", "b"), ("b",), [Note("rules_together", rules=("a", "b")), Note("rules_without", rules=("b",))]),
    (("a", "b"), ("a", "b"), [Note("rules_together", rules=("a", "b")), Note("rules_without_any")]),
])  # fmt: skip
def test_a_conflict_in_notes(together, single, said):
    assert conflicts._row_notes(together, single) == said


@pytest.fixture(scope="module")
def nice(explainer) -> tdce.Explainer:
    """The quickest method."""
    nice = tdce.Explainer("nice", progress="silent")
    nice.fitted_ = explainer.fitted_
    return nice


HARDLY = "income <= 930 or income == was(income)"
TOO_LITTLE = {"rules": ["debt >= 0", HARDLY], "immutable": ["debt", "housing", "age"]}


@pytest.mark.parametrize(("most", "words"), [(2, f"without the rule '{HARDLY}'"), (1, "the 2 rules conflict")])
def test_of_just_as_many_rules_as_are_told_apart_one_is_named(nice, people, monkeypatch, most, words):
    monkeypatch.setattr(conflicts, "MOST_RULES", most)
    (note,) = nice.explain(people.iloc[[5]], **TOO_LITTLE).to_frame()["note"]
    assert note.startswith(words)


def test_a_row_that_its_rules_leave_something_to_change_is_not_infeasible(nice, people):
    answer = nice.explain(people.iloc[[5, 0]], **TOO_LITTLE)
    (changed,), (stuck,) = answer.lines
    assert (changed.status, stuck.status) == ("best_effort", "infeasible")
    assert ([name for name, *_ in changed.changes], stuck.changes) == (["income"], [])
    assert all(line.note.startswith(f"without the rule '{HARDLY}' there is an answer") for line in (changed, stuck))
    (line,) = nice.explain(people.iloc[[1]], **TOO_LITTLE).lines[0]  # without the rule there is none either
    assert (line.status, "rule" in line.note) == ("best_effort", False)


@pytest.mark.parametrize("own", [1, 2])
def test_rules_of_the_schema_are_named_like_those_of_the_question(nice, people, own):
    rules, rows = [HARDLY, "debt >= 0"], people.iloc[[5, 0]]
    (expected, *_), _ = asked = nice.explain(rows, **TOO_LITTLE | {"rules": rules}).lines
    assert expected.note.startswith(f"without the rule '{HARDLY}' there is an answer")
    encoder, ruled = nice.fitted.encoder, copy.copy(nice)
    schema = encoder.schema.with_rules(*rules[:own])
    ruled.fitted_ = replace(nice.fitted, encoder=replace(encoder, full_schema=schema))
    assert ruled.explain(rows, **TOO_LITTLE | {"rules": rules[own:]}).lines == asked


@pytest.mark.parametrize(("rules", "words"), [
    (["incme > 3"], "did you mean income"),
    (["income >"], "character 9"),
    (["income, incme together"], "there is no column incme"),
    (["income, income together"], "appears twice"),
    (["housing in steps of 5"], "one column of numbers and a positive step"),
    (["income in steps of 0"], "one column of numbers and a positive step"),
    (["income in steps of nan"], "one column of numbers and a positive step"),
    (["At most -1 changes"], "-1 must be a whole number"),
    ("income > 3", r"must be a list of texts: rules=\['income > 3'\]"),
    ([3], "rules has 3"),
])  # fmt: skip
def test_a_mistake_is_pointed_at(explainer, people, rules, words):
    with pytest.raises(InputError, match=words):
        explainer.explain(people, rules=rules)


@pytest.mark.parametrize(("costs", "words"), [
    ({"incme": 1}, "no feature 'incme'"), ({"income": -1}, "the cost of 'income' is -1"), ([1], r"costs is \[1\]"),
])  # fmt: skip
def test_a_wrong_cost_is_named(explainer, people, costs, words):
    with pytest.raises(InputError, match=words):
        explainer.explain(people, costs=costs)


def test_the_schema_carries_rules_and_costs(explainer, people):
    schema = explainer.schema.with_rules("debt >= 0.6 * income", costs={"age": 3})
    assert Schema.from_json(schema.to_json()) == schema
    assert str(schema).endswith("Rule: debt >= 0.6 * income")
    given = tdce.Explainer(hidden=16, steps=20, progress="silent")
    given.fit(lending.table(300), label="decision", favourable="yes", schema=schema)
    frame = given.explain(people).to_frame()
    same = frame["debt"].to_numpy() == people["debt"].to_numpy()
    same &= frame["income"].to_numpy() == people["income"].to_numpy()
    assert (same | (frame["debt"] >= 0.6 * frame["income"]).to_numpy()).all()
    with pytest.raises(InputError, match="there is no column incme"):
        schema.with_rules("incme > 2")
    text = json.loads(schema.to_json()) | {"costs": [{"name": "age"}]}
    with pytest.raises(InputError, match="needs a name and a cost"):
        Schema.from_json(json.dumps(text))


def test_the_command_line_takes_them(explainer, people, tmp_path):
    model, rows, out = (str(tmp_path / name) for name in ("m.tdce", "rows.csv", "out.csv"))
    explainer.save(model)
    people.to_csv(rows, index=False)
    words = ["explain", model, rows, "--rule", "at most 1 change", "--rule", "debt >= 500", "--costs", "age=5,debt=0.5"]
    assert CliRunner().invoke(app, [*words, "--out", out]).exit_code == 0
    frame = pd.read_csv(out)
    expected = explainer.explain(people, rules=["at most 1 change", "debt >= 500"], costs={"age": 5, "debt": 0.5})
    pd.testing.assert_frame_equal(frame[people.columns], expected.to_frame()[people.columns].reset_index(drop=True))
    wrong = CliRunner().invoke(app, [*words, "--costs", "age", "--out", out])
    assert "must be a column, = and a number" in str(wrong.exception)


def test_evaluate_measures_by_the_rules_that_were_asked(explainer, people):
    answer = explainer.explain(people, rules=["debt >= 0.6 * income"])
    assert explainer.evaluate(answer)["violations"] == 0
