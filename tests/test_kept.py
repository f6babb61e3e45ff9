"""No line of any method breaks a law or a rule, whatever they are; all is checked by hand."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest
from fits import kept
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import tdce
from tdce import InputError
from tdce.methods.baselines.counternet import CounterNet
from tdce.methods.driver import explain
from tdce.methods.protocol import Method, task_of
from tdce.methods.question import Question
from tdce.methods.registry import METHODS
from tdce.models.goals import Class, Goals
from tdce.schema.constraints.laws import Determines, Follows, Given, Order, State
from tdce.schema.feasible import FeasibleSet
from tdce.schema.schema import Schema

STATES = {"Bonn": "NRW", "Trier": "RP", "Mainz": "RP"}
NUMBERS = ["rent", "heating", "housing", "trades", "days"]
LAWS = (
    Follows("housing", ("rent", "heating"), (1, 1)),
    Order("good", "trades"),
    Determines("town", "state", tuple(STATES.items())),
    Given(State("days", (-1,)), State("outcome", ("never",)), usual="never"),
    Given(State("outcome", ("never",)), State("days", (-1,)), otherwise="failure"),
    Given(State("outcome", ("success", "failure")), State("days", (-1,), but=True), usual=100),
)


def clients(rows: int = 400, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    rent, heating, trades = rng.integers(200, 900, rows), rng.integers(20, 90, rows), rng.integers(0, 30, rows)
    good, town, called = rng.binomial(trades, 0.7), rng.choice(list(STATES), rows), rng.random(rows) < 0.5
    outcome = np.where(called, rng.choice(["success", "failure"], rows), "never")
    score = 2.0 * (outcome == "success") + 0.2 * (good - 10) - 0.004 * (rent - 500) + 0.5 * (town == "Bonn")
    frame = pd.DataFrame({"rent": rent, "heating": heating, "housing": rent + heating, "trades": trades, "good": good})
    days = np.where(called, rng.integers(1, 400, rows), -1)
    frame = frame.assign(town=town, state=pd.Series(town).map(STATES), days=days, outcome=outcome)
    return frame.assign(answer=np.where(score + rng.normal(0, 0.5, rows) > 0, "yes", "no"))


@pytest.fixture(scope="module")
def explainer() -> tdce.Explainer:
    schema = Schema(Schema.infer(clients(), "answer").features, LAWS)
    made = tdce.Explainer(hidden=16, steps=30, progress="silent")
    return kept("kept", lambda: made.fit(clients(), label="answer", favourable="yes", schema=schema))


@pytest.fixture(scope="module", params=METHODS)
def method(request: pytest.FixtureRequest, explainer: tdce.Explainer) -> Method:
    made = CounterNet(steps=100) if request.param == "counternet" else METHODS[request.param]()
    return made.fit(explainer.fitted.task())  # once for all rules


@pytest.fixture(scope="module")
def people(explainer: tdce.Explainer) -> pd.DataFrame:
    frame = clients(200, seed=1).drop(columns="answer")
    return frame[(explainer.predict(frame) == "no").to_numpy()].reset_index(drop=True)


class Rule(NamedTuple):
    """By hand: whether it holds, of columns before and after."""

    text: str
    columns: list[str]
    holds: Callable[[pd.DataFrame, pd.DataFrame], pd.Series]


def changes(before: pd.DataFrame, after: pd.DataFrame) -> pd.DataFrame:
    return before != after


FOUND = [
    Rule("a sum", ["rent", "heating", "housing"], lambda _, f: f["housing"] == f["rent"] + f["heating"]),
    Rule("an order", ["trades", "good"], lambda _, f: f["good"] <= f["trades"]),
    Rule("a map", ["town", "state"], lambda _, f: f["state"] == f["town"].map(STATES)),
    Rule("a state", ["days", "outcome"], lambda _, f: (f["days"] == -1) == (f["outcome"] == "never")),
]
ORDERS = {"<=": operator.le, ">=": operator.ge, "<": operator.lt, ">": operator.gt, "==": operator.eq}
ONE, ORDER = st.sampled_from(NUMBERS), st.sampled_from([*ORDERS])


@st.composite
def rules(draw: st.DrawFn) -> Rule:
    kind, a, b, order = draw(st.integers(0, 6)), draw(ONE), draw(ONE), draw(ORDER)
    many = [*NUMBERS, "good", "town", "state", "outcome"]
    if kind == 0:
        k = draw(st.sampled_from([0.1, 1, 3]))
        return Rule(f"{a} {order} {k} * {b}", [a, b], lambda _, f: ORDERS[order](f[a], k * f[b]))
    if kind == 1:
        return Rule(f"{a} {order} was({b})", [a, b], lambda was, f: ORDERS[order](f[a], was[b]))
    if kind == 2:
        town, least = draw(st.sampled_from([*STATES])), draw(st.sampled_from([10, 300]))
        text = f'if town == "{town}" then {a} >= {least}'
        return Rule(text, ["town", a], lambda _, f: (f["town"] != town) | (f[a] >= least))
    if kind == 3:
        state, most = draw(st.sampled_from(["NRW", "RP"])), draw(st.sampled_from([10, 300]))
        text = f'if {a} > {most} then state != "{state}"'
        return Rule(text, ["state", a], lambda _, f: (f[a] <= most) | (f["state"] != state))
    if kind == 4:
        count, decided = (
            draw(st.integers(0, 3)),
            [name for name in many if name not in ("housing", "state")],
        )  # the others follow
        return Rule(f"at most {count} changes", many, lambda was, f: changes(was, f)[decided].sum(axis=1) <= count)
    if kind == 5:
        c = draw(st.sampled_from([name for name in many if name != a]))
        return Rule(f"{a}, {c} together", [a, c], lambda was, f: changes(was, f)[a] == changes(was, f)[c])
    step = draw(st.sampled_from([5, 50]))
    return Rule(f"{a} in steps of {step}", [a], lambda _, f: f[a] % step == 0)


def lines(method: Method, rows: pd.DataFrame, given: list[Rule], options: int) -> list[pd.DataFrame]:
    """All first options, all second ones, …; rules that contradict each other are none to try."""
    encoder = task_of(method).encoder
    try:
        feasible = FeasibleSet.of(encoder, rows, rules=[rule.text for rule in given])
    except InputError as error:
        assume("contradict" not in str(error) and "allows nothing" not in str(error))
        raise
    found = explain(method, feasible, Goals.all(Class(1), len(rows)), Question(n=options))
    return [encoder.write(raw, rows) for raw in np.moveaxis(found.raw, 1, 0)]


def assert_kept(method: Method, before: pd.DataFrame, given: list[Rule], options: int) -> None:
    """In every line, unless the columns are as they were."""
    for after in lines(method, before, given, options):
        for rule in [*FOUND, *given]:
            as_was = ~changes(before, after)[rule.columns].any(axis=1)
            broken = ~(as_was | rule.holds(before, after))
            assert not broken.any(), (rule.text, before[broken], after[broken])


@settings(max_examples=3)
@given(st.lists(rules(), min_size=1, max_size=3), st.integers(0, 99))
def test_no_method_breaks_any_law_or_rule_in_any_line(method, people, given, seed):
    assert_kept(method, people.sample(4, random_state=seed), given, options=1 if method.random else 2)


@pytest.mark.slow
@settings(max_examples=25)
@given(st.lists(rules(), min_size=1, max_size=4), st.integers(0, 99))
def test_really_no_method_does(method, people, given, seed):
    assert_kept(method, people.sample(16, random_state=seed), given, options=2)


def test_the_laws_are_not_idle(explainer, people):
    """The same networks without the laws contradict themselves: so that the tests above say something."""
    encoder = replace(explainer.fitted.encoder, full_schema=explainer.schema.without_laws())
    free = METHODS["nice"]().fit(replace(explainer.fitted, encoder=encoder, memo={}).task())
    (after,) = lines(free, people, [], options=1)
    assert not np.all([rule.holds(people, after) for rule in FOUND])
