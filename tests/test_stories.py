"""Advice at which somebody at a bank desk would laugh, and that no answer gives."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from fits import kept

import tdce
from tdce.schema.columns.base import Column
from tdce.schema.schema import Schema

DAYS = {"jan": 31, "feb": 28, "mar": 31, "apr": 30}


def clients(rows: int = 4_000, seed: int = 0) -> pd.DataFrame:
    """Who was called before is seldom refused, and good with successes; trades, lateness and the day count too."""
    rng = np.random.default_rng(seed)
    called = rng.random(rows) < 0.3
    outcome = np.where(called, rng.choice(["success", "failure"], rows), "unknown")
    month = rng.choice(list(DAYS), rows)
    trades = rng.integers(5, 30, rows)
    satisfactory = rng.binomial(trades, rng.choice([0.5, 0.95], rows))
    late = rng.choice([-2, -1, 0, 2, 3, 4], rows)
    day = np.array([rng.integers(1, DAYS[m] + 1) for m in month])
    income = rng.integers(1_000, 6_000, rows)
    score = 2.0 * (outcome == "success") + 0.25 * (satisfactory - 14) - 0.6 * late + 0.06 * (day - 15)
    score += 0.0004 * (income - 4_000) + 0.4 * (month == "feb") + rng.normal(0, 0.5, rows)
    return pd.DataFrame({
        "days_since_call": np.where(called, rng.integers(1, 400, rows), -1),
        "calls": np.where(called, rng.integers(1, 6, rows), 0),
        "outcome": outcome,
        "month": month,
        "day": day,
        "trades": np.where(rng.random(rows) < 0.002, 0.19, trades + 0.0),  # some cells were imputed
        "satisfactory": satisfactory.clip(max=5 * (trades < 5) + trades),
        "months_late": late,
        "income": income,
        "answer": np.where(score > 0, "yes", "no"),
    })  # fmt: skip


@pytest.fixture(scope="module")
def explainer() -> tdce.Explainer:
    made = tdce.Explainer(hidden=32, steps=150, progress="silent")
    schema = Schema.infer(clients(), "answer", roles=False)  # laws alone hold these stories together
    return kept("stories", lambda: made.fit(clients(), label="answer", favourable="yes", schema=schema))


@pytest.fixture(scope="module")
def people(explainer) -> pd.DataFrame:
    frame = clients(600, seed=1).drop(columns="answer")
    return frame[(explainer.predict(frame) == "no").to_numpy()].head(80)


def answers(explainer: tdce.Explainer, people: pd.DataFrame, laws: bool = True, **options: object) -> pd.DataFrame:
    """With laws off: of the same networks with a schema that knows nothing."""
    if not laws:
        asked, fitted = tdce.Explainer(progress="silent"), explainer.fitted
        columns = tuple(replace(each, column=knowing_nothing(each.column)) for each in fitted.encoder.columns)
        asked.fitted_ = replace(fitted, encoder=replace(fitted.encoder, columns=columns, full_schema=None), memo={})
        explainer = asked
    return explainer.explain(people, closeness=0.9, **options).to_frame()


def knowing_nothing(column: Column) -> Column:
    """Encoded as before: marks may be proposed like any number."""
    return replace(column, proposed=column.marks) if column.marks else column.unrestricted()


def never_called(frame: pd.DataFrame) -> np.ndarray:
    states = frame["days_since_call"] == -1, frame["calls"] == 0, frame["outcome"] == "unknown"
    return np.asarray(np.stack(states).sum(axis=0) % 3 != 0)


def impossible_day(frame: pd.DataFrame) -> np.ndarray:
    return (frame["day"] > frame["month"].map(DAYS)).to_numpy()


def more_than_all(frame: pd.DataFrame) -> np.ndarray:
    return (frame["satisfactory"] > frame["trades"]).to_numpy()


def never_seen(frame: pd.DataFrame) -> np.ndarray:
    return (frame["months_late"] == 1).to_numpy()


def decimals(frame: pd.DataFrame) -> np.ndarray:
    return (frame["trades"] % 1 != 0).to_numpy()


STORIES = [never_called, impossible_day, more_than_all, never_seen, decimals]


@pytest.fixture(scope="module")
def told(explainer, people) -> pd.DataFrame:
    return answers(explainer, people, n=2)


def test_the_table_shows_what_it_has_to(explainer):
    said = set(map(str, explainer.schema.laws))
    assert {
        "days_since_call is -1 exactly where calls is 0 and outcome is unknown",
        "if month is feb, then day is none of 29, 30, 31",
        "satisfactory is at most trades",
    } <= said
    assert explainer.schema["months_late"].levels == (-2, -1, 0, 2, 3, 4)
    assert (explainer.schema["trades"].step, explainer.schema["trades"].odd > 0) == (1, True)


@pytest.mark.parametrize("story", STORIES)
def test_nobody_laughs(told, people, story):
    before = story(people.loc[told["row"]])
    assert not (story(told) & ~before).any()


def test_somebody_would_otherwise(explainer, people):
    """The same networks without what the schema knows: so that the tests above are not idle."""
    frame = answers(explainer, people, laws=False)
    before = np.any([story(people) for story in STORIES], axis=0)
    assert (np.any([story(frame) for story in STORIES], axis=0) & ~before).mean() > 0.1


def test_who_is_told_of_a_call_gets_all_that_belongs_to_it(explainer, people):
    """A last campaign that succeeded, for somebody who was never called: its day and its number come with it."""
    never = people[people["outcome"] == "unknown"].head(40)
    fixed = [name for name in people.columns if name not in ("days_since_call", "calls", "outcome")]
    frame = answers(explainer, never, immutable=fixed)
    called = frame[frame["outcome"] == "success"]
    assert (called["status"] == "valid").sum() >= 5
    assert called["days_since_call"].between(1, 399).all()
    assert called["calls"].between(1, 5).all()


def test_nobody_who_was_called_is_told_that_they_never_were(told, people):
    before = people.loc[told["row"]]
    assert not ((told["days_since_call"] == -1).to_numpy() & (before["days_since_call"] != -1).to_numpy()).any()


def test_nearly_all_have_an_answer_all_the_same(told):
    assert (told["status"] == "valid").mean() > 0.95


def test_nobody_is_told_to_become_unknown(told, people):
    before = people.loc[told["row"]]
    became = (told["outcome"] == "unknown").to_numpy() & (before["outcome"] != "unknown").to_numpy()
    assert not became.any()


def test_the_schema_of_the_demo_proposes_neither_misery_nor_ignorance():
    schema = tdce.load("german").schema
    assert "unknown or no savings" not in schema["savings"].allowed
    assert 'employment != "unemployed"' in schema.rules
    assert schema["savings"].order == ("below 100 DM", "100 to 500 DM", "500 to 1000 DM", "1000 DM or more")
    assert Schema.from_json(schema.to_json()) == schema
