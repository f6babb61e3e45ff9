"""What people read: sentences, letters, reasons and notes, by language and audience, and what is never in them."""

import dataclasses
import json
import math
import pickle
import string
from importlib import resources

import lending
import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import tdce
from tdce import InputError
from tdce._core.notes import Note
from tdce.methods.attribution import change_losses, rank_reasons, shown_margin
from tdce.methods.explanation import Line
from tdce.models.goal_wording import TargetPart, describe_goal, progress_key, score_kind, target_parts
from tdce.models.goals import Between, Class, Goals, Not
from tdce.models.oracle import Oracle
from tdce.models.output_goals import AllGoals, Range
from tdce.models.outputs import Output
from tdce.report.language.catalogue import languages, load_catalogue
from tdce.report.language.speaker import Speaker
from tdce.schema import ConstraintSet
from tdce.schema.columns.categorical import Categorical
from tdce.schema.columns.numeric import Numeric
from tdce.schema.columns.wording import Wording
from tdce.schema.schema import Schema

LOAN = Schema(
    (
        Numeric("duration", 1, 72, 1, words={
            "label": {"en": "the term", "de": "die Laufzeit"},
            "unit": {"en": "month|months", "de": "Monat|Monate"},
            "verb": {"en": "the loan ran {change}", "de": "der Kredit {change} liefe"},
        }),
        Numeric("amount", 0, 10_000, 0.01, missing=True, words={
            "label": {"en": "the amount", "de": "der Betrag"}, "unit": "EUR", "format": "money",
        }),
        Numeric("rate", 0, 1, words={"format": "percent"}),
        Numeric("born", 1900, 2020, 1, words={"format": "year", "label": "the year of birth"}),
        Numeric("since", 0, 30_000, 1, words={"format": "date"}),
        Numeric("calls", -1, 10, 1, marks=(-1,), words={
            "values": {"-1": {"en": "never called", "de": "nie angerufen"}},
        }),
        Numeric("weight", 0, 100, words={"format": "0.00", "unit": "kg"}),
        Categorical("housing", ("own", "rent"), words={
            "label": {"en": "the home", "de": "die Wohnung"},
            "values": {"own": {"en": "owned", "de": "Eigentum"}, "rent": {"en": "rented", "de": "gemietet"}},
        }),
        Categorical("phone", (False, True)),
        Categorical("job_title", ("clerk", "cook")),
    ),
    outcomes={"good": {"en": "Approved", "de": "Bewilligt"}},
)  # fmt: skip
TERM, AMOUNT = ("duration", 36, 24), ("amount", 4800, 3200)
PROMISE = "This describes what the model would have answered; it is not an offer or a promise."


def said(*changes, status="valid", target="yes", **more) -> Line:
    return Line(status, target, 0.31, 0.62, 0.5, list(changes), more.pop("note", ""), **more)


def speaker(language="en", audience="applicant", schema=LOAN) -> Speaker:
    return Speaker.of(schema, language, audience)


# Sentences


def test_the_sentence_of_two_changes_reads_as_a_customer_would_like_it():
    both = said(TERM, AMOUNT, target="good")
    assert speaker().sentence(both) == (
        "Approved if the loan ran 24 months instead of 36 and the amount were 3,200 € instead of 4,800 €."
    )
    assert speaker("de").sentence(both) == (
        "Bewilligt, wenn der Kredit 24 statt 36 Monate liefe und der Betrag 3.200 € statt 4.800 € betrüge."
    )


@pytest.mark.parametrize(
    ("changes", "english", "german"),
    [
        ([("duration", 2, 1)], "the loan ran 1 month instead of 2", "der Kredit 1 statt 2 Monate liefe"),
        ([("duration", 1, 2)], "the loan ran 2 months instead of 1", "der Kredit 2 statt 1 Monat liefe"),
        ([("amount", None, 3200.5)], "the amount were 3,200.50 € (not known so far)",
         "der Betrag 3.200,50 € (bisher nicht bekannt) betrüge"),
        ([("rate", 0.125, 0.1)], "rate were 10 % instead of 12.5 %", "der Wert „rate“ 10 % statt 12,5 % betrüge"),
        ([("born", 1960, 1970)], "the year of birth were 1970 instead of 1960",
         "bei „the year of birth“ nicht 1960, sondern 1970 stünde"),
        ([("since", 20120, 20484)], "the date under “since” were 31 January 2026 instead of 1 February 2025",
         "bei „since“ nicht der 1. Februar 2025, sondern der 31. Januar 2026 stünde"),
        ([("calls", -1.0, 3)], "calls were 3 instead of never called",
         "bei „calls“ nicht „nie angerufen“, sondern 3 stünde"),
        ([("weight", 70.5, 1.0)], "weight were 1.00 kg instead of 70.50",
         "der Wert „weight“ 1,00 statt 70,50 kg betrüge"),
        ([("housing", "rent", "own")], "the home were owned instead of rented",
         "bei „Wohnung“ nicht „gemietet“, sondern „Eigentum“ stünde"),
        ([("phone", np.False_, True)], "the answer to “phone” were yes instead of no",
         "bei „phone“ nicht „nein“, sondern „ja“ stünde"),
        ([("job_title", "cook", "clerk")], "job title were “clerk” instead of “cook”",
         "bei „job title“ nicht „cook“, sondern „clerk“ stünde"),
        ([TERM, AMOUNT, ("phone", True, False)],
         "the loan ran 24 months instead of 36, the amount were 3,200 € instead of 4,800 € and the answer to “phone” "
         "were no instead of yes",
         "der Kredit 24 statt 36 Monate liefe, der Betrag 3.200 € statt 4.800 € betrüge und bei „phone“ nicht „ja“, "
         "sondern „nein“ stünde"),
    ],
)  # fmt: skip
def test_every_sort_of_value_is_spoken_in_both_languages(changes, english, german):
    assert speaker().sentence(said(*changes)) == f"The decision would be “yes” if {english}."
    assert speaker("de").sentence(said(*changes)) == f"Die Entscheidung wäre „yes“, wenn {german}."


@pytest.mark.parametrize(
    ("line", "german"),
    [
        (said(AMOUNT, status="best_effort"),
         "Die Entscheidung käme näher an „yes“, ohne es zu erreichen, wenn der Betrag 3.200 € statt 4.800 € betrüge."),
        (said(status="best_effort"), "Es wurde keine Änderung gefunden, die die Entscheidung näher an „yes“ brächte."),
        (said(status="already"), "Die Entscheidung ist bereits „yes“."),
        (said(status="infeasible", notes=(Note("all_immutable"),)),
         "Keine Änderung ist möglich (jedes Merkmal ist unveränderlich); deshalb wurde kein anderes Ergebnis "
         "gefunden."),
        (said(status="infeasible"), "Keine Änderung ist möglich; deshalb wurde kein anderes Ergebnis gefunden."),
    ],
)  # fmt: skip
def test_every_status_has_a_german_sentence(line, german):
    assert speaker("de").sentence(line) == german


@pytest.mark.parametrize(
    ("wanted", "english", "german"),
    [
        ((TargetPart("class", "good"),), "“Approved”", "„Bewilligt“"),
        ((TargetPart("not", "bad"),), "anything but “bad”", "alles außer „bad“"),
        ((TargetPart("between", "x", 0.0, 0.705),), "“x” at 0 % to 70.5 %", "„x“ mit 0 % bis 70,5 %"),
        ((TargetPart("at_least", None, low=1620.5),), "at least 1,620.5", "mindestens 1.620,5"),
        ((TargetPart("at_most", "rate_in_percent", high=8),), "rate in percent at most 8",
         "rate in percent höchstens 8"),
        ((TargetPart("range", None, 620, 680),), "between 620 and 680", "zwischen 620 und 680"),
        ((TargetPart("class", "yes"), TargetPart("at_most", "rate", high=8)), "“yes” and rate at most 8",
         "„yes“ und rate höchstens 8"),
    ],
)  # fmt: skip
def test_what_is_wanted_is_spoken_in_its_own_units(wanted, english, german):
    line = said(AMOUNT, wanted=wanted)
    assert speaker().target(line) == english
    assert speaker("de").target(line) == german


def test_a_predicted_number_is_not_a_percentage():
    line = said(AMOUNT, wanted=(TargetPart("at_least", None, low=620),), number=True)._replace(
        before=598.25, after=12345.6
    )
    assert speaker().headline(line) == "the prediction would be at least 620 (598.2 to 12,346)"
    assert speaker("de").headline(line) == "die Vorhersage wäre mindestens 620 (von 598,2 auf 12.346)"


def test_goals_say_what_they_want_as_their_text_does():
    rate = Output("rate")
    goals = [Class(1), Not(0), Between(1, 0.5, 0.7)]
    for goal in goals:
        line = said(target=None, wanted=target_parts(goal, ("bad", "good")))
        text = speaker(schema=dataclasses.replace(LOAN, outcomes={})).target(line)
        assert text.replace("“", "").replace("”", "") == describe_goal(goal, ("bad", "good"))
    both = AllGoals(((Class(0), 0, 2), (Range(high=8, output=rate), 2, 3)), rate)
    assert target_parts(both, ("yes", "no", "rate")) == (
        TargetPart("class", "yes"),
        TargetPart("at_most", "rate", None, 8),
    )


@pytest.mark.parametrize(
    ("verb", "sentence", "bullet"),
    [
        ("lower", "if you were to lower the amount to 3,200 € instead of 4,800 €.",
         "lower the amount to 3,200 € instead of 4,800 €"),
        ("wait until", "if you were to wait until the amount 3,200 € instead of 4,800 €.",
         "wait until the amount 3,200 € instead of 4,800 €"),
        ("you waited until {label} was {after}", "if you waited until the amount was 3,200 €.",
         "amount: 3,200 € instead of 4,800 €"),
        ({"de": "{label} von {before} auf {after} sänke"}, "if the amount von 4,800 € auf 3,200 € sänke.",
         "amount: 3,200 € instead of 4,800 €"),
    ],
)  # fmt: skip
def test_a_verb_is_how_the_change_is_spoken(verb, sentence, bullet):
    schema = LOAN.change("amount", words={**LOAN["amount"].words.entry(), "verb": verb})
    assert speaker(schema=schema).sentence(said(AMOUNT)).endswith(sentence)
    assert speaker(schema=schema).bullet(*AMOUNT) == bullet


HOME = {
    "label": {"en": "the home", "de": "die Wohnung"},
    "values": {
        "own": {
            "name": {"en": "owned", "de": "Eigentum"},
            "clause": {"en": "you owned your home {instead}", "de": "Sie in Wohneigentum {instead} wohnten"},
            "instead": {"en": "instead of owning it", "de": ""},
            "fact": {"en": "you own your home", "de": "Sie wohnen in Wohneigentum"},
        },
        "rent": {
            "name": "rented",
            "clause": {"en": "you rented your home {instead}"},
            "instead": {"en": "instead of renting it", "de": "statt zur Miete"},
        },
    },
}


def test_a_value_is_spoken_in_the_form_that_its_place_needs():
    schema = LOAN.change("housing", words=HOME)
    english, german = speaker(schema=schema), speaker("de", schema=schema)
    assert english.clause("housing", "rent", "own") == "you owned your home instead of renting it"
    assert german.clause("housing", "rent", "own") == "Sie in Wohneigentum statt zur Miete wohnten"
    assert german.clause("housing", "own", "rent") == "you rented your home"  # an empty text is not replaced by English
    assert english.clause("housing", None, "own") == "you owned your home"
    assert english.fact("housing", "own") == "You own your home."
    assert english.fact("housing", "rent") == "Home: rented"
    assert english.fact("housing", None) == "Home: not known"
    assert english.value("housing", "own") == "owned"
    assert english.bullet("housing", "rent", "own") == "home: owned instead of rented"
    half = {"values": {"own": {"clause": "you owned your home {instead}"}}}
    talk = speaker(schema=LOAN.change("housing", words=half))
    assert talk.clause("housing", "rent", "own") == "you owned your home instead of “rent”"
    assert talk.value("housing", "own") == "own"


def test_the_fact_of_a_column_is_a_sentence_about_the_own_value():
    words = {**LOAN["duration"].words.entry(), "fact": {"en": "{label} is {value}", "de": "{label} ist {value}"}}
    schema = LOAN.change("duration", words=words)
    assert speaker(schema=schema).fact("duration", 24) == "The term is 24 months."
    assert speaker("de", schema=schema).fact("duration", 1) == "Die Laufzeit ist 1 Monat."
    assert speaker(schema=schema).fact("duration", None) == "Term: not known"
    assert speaker().fact("duration", 24) == "Term: 24 months"


def test_a_decision_is_spoken_in_the_form_that_its_place_needs():
    forms = {"name": "Approved", "clause": "your loan would be granted", "refusal": "your loan was not granted"}
    talk, line = speaker(schema=dataclasses.replace(LOAN, outcomes={"good": forms})), said(TERM, target="good")
    assert talk.sentence(line) == "Your loan would be granted if the loan ran 24 months instead of 36."
    assert talk.target(line) == "“Approved”"
    assert talk.outcome_form(line, "refusal") == "your loan was not granted"
    assert talk.outcome_form(line, "fact") == ""
    assert talk.outcome_form(line._replace(wanted=(TargetPart("not", "good"),)), "refusal") == ""


@pytest.mark.parametrize(
    ("label", "title"),
    [("der wertvollste Besitz", "wertvollster Besitz"), ("das höchste bekannte Gebot", "höchstes bekanntes Gebot"),
     ("die freien Rücklagen", "freie Rücklagen"), ("die monatliche Rate", "monatliche Rate"),
     ("der monatlich gezahlte Betrag", "monatlich gezahlter Betrag"), ("die Klasse der Rate", "Klasse der Rate"),
     ("weitere Haftende", "weitere Haftende"), ("das Alter", "Alter"), ("der", "der")],
)  # fmt: skip
def test_a_title_has_no_article_and_strong_adjectives(label, title):
    schema = LOAN.change("amount", words={"label": {"de": label, "en": "the best offer"}})
    assert speaker("de", schema=schema).title("amount") == title
    assert speaker(schema=schema).title("amount") == "best offer"


def test_a_title_may_be_given():
    schema = LOAN.change("amount", words={"label": "the amount that you ask for", "title": {"en": "amount asked for"}})
    assert speaker(schema=schema).title("amount") == "amount asked for"


def test_tables_leave_the_article_out():
    assert speaker().title("amount") == "amount"
    assert speaker("de").title("amount") == "Betrag"
    assert speaker().title("job_title") == "job title"
    assert speaker().label("amount") == "the amount"


def test_a_region_has_numbers_of_its_own():
    assert speaker("de").value("amount", 1234567.5) == "1.234.567,50 €"
    assert speaker("de-CH").value("job_title", 1234567.5) == "1’234’567.5"
    assert speaker("en-US").value("since", 20484) == "January 31, 2026"
    assert speaker("en_US").label("amount") == "the amount"


@pytest.mark.parametrize(
    ("cell", "text"),
    [(20484, "31 January 2026"), (20260131, "31 January 2026"), ("2026-01-31", "31 January 2026"),
     (pd.Timestamp("2026-01-31 15:30"), "31 Jan 2026, 15:30:00"), (20261332, "20,261,332"), ("soon", "soon"),
     (0.5, "0.5"), (1e9, "1,000,000,000")],
)  # fmt: skip
def test_a_date_may_be_written_in_several_ways(cell, text):
    assert speaker().value("since", cell) == text


# Letters and reasons


def test_a_paragraph_for_a_letter_has_the_main_point_first_and_promises_nothing():
    line = said(TERM, AMOUNT, reasons=[("amount", 1.5), ("duration", 0.2)])
    assert speaker().letter(line) == (
        "The decision would be “yes” if the amount were 3,200 € instead of 4,800 € and the loan ran 24 months instead "
        f"of 36. {PROMISE}"
    )
    assert speaker("de").letter(line._replace(target="good")) == (
        "Bewilligt, wenn der Betrag 3.200 € statt 4.800 € betrüge und der Kredit 24 statt 36 Monate liefe. Dies "
        "beschreibt, was das Modell geantwortet hätte; es ist weder ein Angebot noch eine Zusage."
    )


@pytest.mark.parametrize("language", languages())
@pytest.mark.parametrize("status", ["valid", "best_effort", "already", "infeasible"])
def test_every_letter_says_that_nothing_is_promised(language, status):
    for changes in ([], [TERM], [TERM, AMOUNT]):
        talk = speaker(language)
        assert talk.letter(said(*changes, status=status)).endswith(talk.text("promise"))


def test_reasons_have_the_persons_own_values():
    line = said(TERM, AMOUNT, ("phone", None, True), reasons=[("amount", 1.5), ("duration", 0.2), ("phone", 0.1)])
    assert speaker().reasons(line) == ["Amount: 4,800 €", "Term: 36 months", "Phone: not known"]


def test_what_an_audience_may_not_see_takes_no_place_among_the_four_reasons():
    changes = (AMOUNT, TERM, ("phone", None, True), ("housing", "rent", "own"), ("rate", 0.1, 0.2))
    line = said(*changes, reasons=[(name, 5.0 - i) for i, (name, *_) in enumerate(changes)])
    assert [
        len(speaker(audience=who, schema=barred(seen_by="analyst")).reasons(line)) for who in ("applicant", "analyst")
    ] == [4, 4]


def test_reasons_are_ranked_by_their_loss_and_ties_by_the_column():
    nan = math.nan
    assert rank_reasons([("a", 1.0), ("b", 2.0), ("c", 1.0), ("d", -1.0)]) == [
        ("b", 2.0),
        ("a", 1.0),
        ("c", 1.0),
        ("d", -1.0),
    ]
    assert [name for name, _ in rank_reasons([("a", nan), ("b", nan), ("c", 0.5)])] == ["c", "a", "b"]


@pytest.fixture(scope="module")
def explainer() -> tdce.Explainer:
    return lending.explainer()


@pytest.fixture(scope="module")
def answer(explainer):
    return explainer.explain(lending.refused(explainer, 40), n=3, closeness=0.2)


def odds(explainer, frame):
    p = explainer.predict_proba(frame)["yes"].clip(1e-6, 1 - 1e-6).to_numpy()
    return np.log(p / (1 - p))


def test_a_loss_is_the_log_odds_that_go_when_the_change_is_given_back(explainer, answer):
    reasons, lines = answer.reasons(), answer.to_frame().reset_index(drop=True)
    features = list(answer.features)
    assert reasons.groupby(["row", "option"]).size().max() >= 2
    place = {(row, option): i for i, (row, option) in enumerate(lines[["row", "option"]].itertuples(index=False))}
    at = [place[each] for each in reasons[["row", "option"]].itertuples(index=False, name=None)]
    whole = lines.loc[at, features].reset_index(drop=True)
    back = whole.copy()
    for i, (row, feature) in enumerate(reasons[["row", "feature"]].itertuples(index=False)):
        back.loc[i, feature] = answer.rows.loc[row, feature]
    np.testing.assert_allclose(reasons["loss"], odds(explainer, whole) - odds(explainer, back), atol=1e-5)
    assert (reasons["loss"] == reasons["loss"].round(6)).all()


def test_reasons_name_every_change_of_a_line_most_important_first(answer):
    reasons = answer.reasons()
    for (row, option), some in reasons.groupby(["row", "option"]):
        assert some["rank"].tolist() == list(range(1, len(some) + 1))
        assert some["loss"].is_monotonic_decreasing
        line = answer.lines[answer.rows.index.get_loc(row)][option]
        assert list(line.reasons) == list(some[["feature", "loss"]].itertuples(index=False, name=None))
        assert {name for name, _ in line.reasons} == {name for name, *_ in line.changes}


def test_reasons_do_not_depend_on_the_company(explainer, answer):
    alone = [explainer.explain(answer.rows.iloc[[i]], n=3, closeness=0.2).reasons() for i in (3, 17)]
    whole = answer.reasons()
    for one in alone:
        own = whole[whole["row"] == one["row"].iloc[0]].reset_index(drop=True)
        pd.testing.assert_frame_equal(one, own, check_exact=True)
    turned = explainer.explain(answer.rows.iloc[::-1], n=3, closeness=0.2).reasons()
    order = ["row", "option", "rank"]
    pd.testing.assert_frame_equal(
        turned.sort_values(order, ignore_index=True), whole.sort_values(order, ignore_index=True), check_exact=True
    )


def test_where_one_thing_changed_the_model_is_not_asked_again(explainer, monkeypatch):
    people = lending.refused(explainer, 20)
    single = explainer.explain(people, rules=["at most 1 changes"])
    with monkeypatch.context() as patch:
        patch.setattr("tdce.methods.driver.change_losses", lambda *_: None)
        without = explainer.explain(people, rules=["at most 1 changes"])
    assert (single.model_calls, single.model_rows) == (without.model_calls, without.model_rows)
    assert len(single.reasons()) > 10
    assert single.reasons()["loss"].notna().all()


class Sum:
    """A model that predicts the sum of its features."""

    outputs = (Output(),)

    def score(self, raw):
        return raw.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("budget", [None, 2, 1])
def test_losses_are_one_call_that_keeps_to_the_budget(budget):
    own = np.array([[1.0, 1.0]])  # 2, and 10 are wanted: a margin of -8
    raw = np.array([[[5.0, 7.0], [1.0, 10.0], [5.0, 7.0], [1.0, 1.0]]])  # 12, 11, 12 and 2
    oracle, goals = Oracle(Sum(), budget), Goals.all(Range(low=10), 1)
    found = change_losses(oracle, ConstraintSet(), own, raw, goals, np.array([-8.0]), np.array([[2.0, 1.0, 2.0, -8.0]]))
    nan = math.nan
    several = [4.0, 6.0] if budget is None else [nan, nan]  # 1 + 7 is 4 less than 12, 5 + 1 is 6 less
    np.testing.assert_array_equal(found, [[several, [nan, 9.0], several, [nan, nan]]])
    assert (oracle.usage.calls, oracle.usage.rows) == ((1, 2) if budget is None else (0, 0))


def test_a_model_that_is_certain_gives_a_loss_that_is_a_number():
    score = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.3, 0.7]], dtype=torch.double)
    found = shown_margin(score, Goals.all(Class(1), 3))
    assert found.tolist() == pytest.approx([-13.815510, 13.815510, math.log(0.7 / 0.3)], abs=1e-5)


def test_a_budget_that_is_used_up_leaves_no_reasons_and_breaks_no_promise(explainer):
    people = lending.refused(explainer, 20)
    for budget in (60, 300, 1000, 3000):
        answer = explainer.explain(people, closeness=0.0, max_model_rows=budget)
        assert answer.model_rows <= budget
        for (line,) in answer.lines:
            assert {name for name, _ in line.reasons} == {name for name, *_ in line.changes}
            if all(math.isnan(loss) for _, loss in line.reasons):
                assert [name for name, _ in line.reasons] == [name for name, *_ in line.changes]


# What must not be named


def barred(**words) -> Schema:
    return LOAN.change("amount", words={**LOAN["amount"].words.entry(), **words})


def test_what_is_barred_is_counted_and_not_named():
    schema = barred(named=False)
    for audience in ("applicant", "analyst"):
        talk = speaker(audience=audience, schema=schema)
        assert not talk.may_name("amount")
        assert talk.sentence(said(TERM, AMOUNT)) == (
            "The decision would be “yes” if the loan ran 24 months instead of 36 and a further point, which is not "
            "named here, changed as well."
        )
        assert (
            talk.sentence(said(AMOUNT)) == "The decision would be “yes” if one point, which is not named here, changed."
        )
        assert " and a further point, which is not named here, changed as well. " in talk.letter(said(TERM, AMOUNT))
        assert talk.reasons(said(TERM, AMOUNT, reasons=[("duration", 1.0)])) == ["Term: 36 months"]
    german = speaker("de", schema=schema.change("duration", words={"named": False}))
    assert german.sentence(said(TERM, AMOUNT, ("phone", False, True))) == (
        "Die Entscheidung wäre „yes“, wenn bei „phone“ nicht „nein“, sondern „ja“ stünde und 2 weitere Punkte, die "
        "hier nicht genannt werden, anders wären."
    )


def test_what_is_for_analysts_is_for_analysts():
    schema, line = barred(seen_by="analyst"), said(AMOUNT, reasons=[("amount", 1.0)])
    assert speaker(schema=schema).reasons(line) == []
    assert "not named here" in speaker(schema=schema).sentence(line)
    assert speaker(audience="analyst", schema=schema).reasons(line) == ["Amount: 4,800 €"]
    assert "3,200 €" in speaker(audience="analyst", schema=schema).sentence(line)


REMARKS = (
    Note("stuck", ("duration", "amount")), Note("immutable", ("amount",)), Note("missing", ("amount",)),
    Note("far_outside", ("amount",), values={"value": 99999.0, "low": 0.0, "high": 5000.0}),
    Note("rules_together", rules=("amount <= 7", "at most 2 changes")),
    Note("rules_without", rules=("amount <= 7",)),
    Note("budget", values={"rows": 12345}),
)  # fmt: skip


def test_notes_name_nothing_that_is_barred():
    line = said(status="infeasible", notes=REMARKS)
    assert speaker(schema=barred(named=False)).note(line) == (
        "no other allowed value for term; there is no answer under these rules together: a rule that is not named "
        "here, “at most 2 changes”; without a rule that is not named here there is one; the query budget of "
        "12,345 model rows (max_model_rows) is used up"
    )
    german = speaker("de").note(line)
    assert german.startswith("kein anderer zulässiger Wert für Laufzeit, Betrag; unveränderlich: Betrag")
    assert "Betrag 99.999 € liegt weit außerhalb des gelernten Bereichs, 0 € bis 5.000 €" in german
    alone = said(status="infeasible", notes=(Note("stuck", ("amount",)),))
    assert speaker(schema=barred(named=False)).note(alone) == "no other allowed value for what may change"


def test_a_note_that_is_only_text_loses_the_parts_that_name_what_is_barred():
    line = said(status="infeasible", note="amount is odd; damounted; the Amount too; fine")
    assert speaker(schema=barred(named=False)).note(line) == "damounted; fine"


def test_the_notes_of_scripts_name_nothing_that_is_barred_to_all(explainer):
    rows = lending.refused(explainer, 2).assign(age=150)
    assert explainer.explain(rows).to_frame()["note"].str.contains("age 150 is outside").all()
    hidden = explainer.with_words({"age": {"named": False}})
    assert not hidden.explain(rows).to_frame()["note"].str.contains("age").any()


def test_an_answer_names_nothing_that_is_barred_in_any_words(explainer, tmp_path):
    people = lending.refused(explainer, 30)
    secret = {"label": "Zweitgehalt", "unit": "Taler", "verb": "hoard"}
    for words in ({**secret, "named": False}, {**secret, "seen_by": "analyst"}):
        asked = {"n": 2, "rules": ["income <= 100000"], "closeness": 0.2}
        answer = explainer.with_words({"income": words}).explain(people, **asked)
        assert "income" in set(answer.changes()["feature"])
        assert ("income" in set(answer.reasons()["feature"])) == ("seen_by" in words)
        for language in languages():
            talk = answer.speaker(language)
            pages = tmp_path / f"{language}-{'seen_by' in words}"
            answer.to_html(pages, language=language, audience="applicant")
            lines = [line for options in answer.lines for line in options]
            texts = [*answer.sentences(language), *answer.letters(language), *map(talk.note, lines),
                     *(reason for line in lines for reason in talk.reasons(line)),
                     *(page.read_text(encoding="utf-8") for page in pages.iterdir())]  # fmt: skip
            for text in texts:
                assert not any(word in text.lower() for word in ("income", "zweitgehalt", "taler", "hoard"))


NAMES = st.text(string.ascii_lowercase, min_size=3, max_size=6).map("zq{}".format)  # that no message has in it


@st.composite
def tables(draw):
    names = draw(st.lists(NAMES, min_size=2, max_size=5, unique=True))
    columns, secrets = [], {}
    for i, name in enumerate(names):
        mode = draw(st.sampled_from(["open", "never", "analyst"])) if i else "never"
        words = {"label": f"xj{name}l"} | ({"named": False} if mode == "never" else {})
        words |= {"seen_by": "analyst"} if mode == "analyst" else {}
        if draw(st.booleans()):
            column = Categorical(name, (f"{name}a", f"{name}b"), words=words | {"values": {f"{name}a": f"xj{name}v"}})
        else:
            column = Numeric(
                name, 0, 10**6, words=words | {"unit": f"xj{name}u", "verb": draw(st.sampled_from(["", "lift"]))}
            )
        columns.append(column)
        secrets[name] = mode
    return Schema(tuple(columns)), secrets


def cells(column):
    return column.categories if isinstance(column, Categorical) else (1234, 4321)


@settings(max_examples=60, deadline=None)
@given(tables(), st.sampled_from(languages()), st.sampled_from(["applicant", "analyst"]), st.data())
def test_no_words_name_what_is_barred(table, language, audience, data):
    schema, secrets = table
    names = list(schema.names)
    talk = Speaker.of(schema, language, audience)
    moved = data.draw(st.lists(st.sampled_from(names), unique=True))
    some = tuple(data.draw(st.lists(st.sampled_from(names), min_size=1, unique=True)))
    key = data.draw(st.sampled_from(["stuck", "immutable", "missing", "rules_together", "rule_alone", "never_seen"]))
    columns = some if key in ("stuck", "immutable") else some[:1]
    values = {"value": cells(schema[columns[0]])[0]} if key == "never_seen" else {}
    rules = tuple(f"{name} <= 3" for name in some)
    note = Note(key, rules=rules) if "rule" in key else Note(key, columns, values=values)
    changes = [(name, *cells(schema[name])) for name in moved]
    status = data.draw(st.sampled_from(["valid", "best_effort"] if moved else ["already", "infeasible", "best_effort"]))
    line = said(*changes, status=status, notes=(note,), reasons=[(name, 1.0) for name in moved])
    texts = [talk.sentence(line), talk.letter(line), talk.headline(line), talk.note(line), *talk.reasons(line)]
    for name, mode in secrets.items():
        hidden = mode == "never" or (mode == "analyst" and audience == "applicant")
        assert talk.may_name(name) != hidden
        others = [other for other in names if other != name]
        if hidden and not any(name in other for other in others):
            assert not any(name in text for text in texts)  # which is in its label, its unit and its values as well


# The schema's words


def test_words_survive_json_and_a_pickle():
    again = Schema.from_json(LOAN.to_json())
    assert again == LOAN
    assert again.outcomes == LOAN.outcomes
    assert pickle.loads(pickle.dumps(LOAN)) == LOAN
    assert hash(again) == hash(LOAN)
    assert speaker(schema=again).sentence(said(TERM)) == speaker().sentence(said(TERM))


def test_forms_of_values_survive_json():
    outcomes = {"good": {"name": "Approved", "fact": {"en": "it was approved"}}}
    schema = dataclasses.replace(LOAN.change("housing", words=HOME), outcomes=outcomes)
    assert Schema.from_json(schema.to_json()) == schema
    assert Schema.from_json(schema.to_json()).outcomes == outcomes
    assert "Sie wohnen in Wohneigentum" in set(schema["housing"].words.texts())


def test_words_are_left_out_of_json_where_there_are_none():
    text = LOAN.without_words().to_json()
    assert "words" not in text
    assert "outcomes" not in text
    assert '"words": {"format": "percent"}' in LOAN.to_json()


def test_words_survive_saving_and_a_damaged_one_is_refused(explainer, tmp_path):
    made = explainer.with_words({"income": {"label": "the pay", "unit": "EUR", "format": "money"}}, {"yes": "Granted"})
    made.save(tmp_path / "a.tdce")
    loaded = tdce.Explainer.load(tmp_path / "a.tdce")
    assert loaded.schema == made.schema
    assert loaded.schema["income"].words == Wording("the pay", "EUR", "money")
    content = json.loads(made.schema.to_json())
    content["features"][0]["words"]["unit"] = "nonsense"
    with pytest.raises(InputError, match="'income': the unit of money is 'nonsense'; it must be the code of a "):
        Schema.from_json(json.dumps(content))


def test_another_kind_of_column_keeps_the_words_that_fit():
    schema = Schema((Numeric("code", 1, 3, 1, words={"label": "the code", "values": {1: "one", 7: "seven"}}),))
    codes = schema.change("code", kind="categorical")
    assert codes["code"].words == Wording("the code", values={"1": "one"})
    assert codes.change("code", kind="numeric")["code"].words == codes["code"].words


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("label", "words 'label' must be a mapping with some of label, unit, format, values, verb, seen_by, named, "
         "title, fact"),
        ({"lable": "x"}, "words have an unknown key 'lable'; known: label, unit"),
        ({"label": 3}, "label 3 must be a text of one line, or a text for each language"),
        ({"label": {}}, "label {} must be a text"),
        ({"label": {"en": ""}}, "must be a text"),
        ({"label": "two\nlines"}, "must be a text of one line"),
        ({"label": "\ud800"}, "must be a text"),
        ({"unit": ["kg"]}, "unit ['kg'] must be a text"),
        ({"format": "money"}, "the unit of money is ''; it must be the code of a currency, such as 'EUR'"),
        ({"format": "money", "unit": {"en": "EUR"}}, "it must be the code of a currency"),
        ({"format": "dollars"}, "format 'dollars' must be one of plain, money, percent, date, year, or a number "),
        ({"format": 2}, "format 2 must be one of"),
        ({"values": ["own"]}, "values ['own'] must be a mapping from values to texts"),
        ({"values": {"boat": "a boat"}}, "values has words for 'boat', not one of own, rent"),
        ({"values": {"own": 1}}, "the words of 'own' 1 must be a text"),
        ({"verb": "{label} ran"}, "verb '{label} ran' must be a verb, or a clause with {change} or {after} in it"),
        ({"verb": "{0}"}, "must be a verb, or a clause"),
        ({"verb": "{change} {x}"}, "must be a verb, or a clause"),
        ({"verb": "{change.__class__}"}, "must be a verb, or a clause"),
        ({"verb": "{change"}, "must be a verb, or a clause"),
        ({"fact": "you rent"}, "fact 'you rent' must be a sentence with {value} in it (and perhaps {label})"),
        ({"fact": {"en": "{value} {after}"}}, "must be a sentence with {value} in it"),
        ({"values": {"own": {"name": "owned", "claus": "x"}}}, "the words of 'own' have an unknown form 'claus'; "
         "known: name, clause, instead, fact"),
        ({"values": {"own": {"refusal": "x"}}}, "unknown form 'refusal'"),
        ({"values": {"own": {"clause": "you owned {before}"}}}, "the clause of 'own' is 'you owned {before}'; it may "
         "have {instead} in braces"),
        ({"values": {"own": {"fact": "{instead}"}}}, "the fact of 'own' is '{instead}'; it may have nothing in braces"),
        ({"values": {"own": {"clause": {"en": ""}}}}, "the clause of 'own' {'en': ''} must be a text"),
        ({"title": 3}, "title 3 must be a text"),
        ({"seen_by": "me"}, "seen_by 'me' must be one of everyone, analyst"),
        ({"named": "no"}, "named 'no' must be true or false"),
    ],
)  # fmt: skip
def test_words_that_make_no_sense_are_named(words, message):
    with pytest.raises(InputError) as error:
        LOAN.change("housing", words=words)
    assert str(error.value).startswith("'housing': ")
    assert message in str(error.value)
    if isinstance(words, dict) and set(words) <= {field.name for field in dataclasses.fields(Wording)}:
        with pytest.raises(InputError):
            LOAN.change("housing", words=Wording(**words))


def test_numbers_have_words_for_numbers_only():
    with pytest.raises(InputError, match="'calls': values has words for 'often', which is not a number"):
        LOAN.change("calls", words={"values": {"often": "x"}})


def test_outcomes_that_make_no_sense_are_named():
    for given_, message in (({"good": 3}, "the words of 'good' 3 must be a text"), (["good"], "must be a mapping")):
        with pytest.raises(InputError, match=message):
            dataclasses.replace(LOAN, outcomes=given_)
    text = LOAN.to_json().replace('"value": "good"', '"vale": "good"')
    with pytest.raises(InputError, match="it needs a value and words"):
        Schema.from_json(text)


# The catalogues


def places(message: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(message) if name}


@pytest.mark.parametrize("language", languages())
def test_every_language_has_the_same_messages_with_the_same_places(language):
    english, other = load_catalogue("en").messages, load_catalogue(language).messages
    assert set(other) == set(english)
    free = {"instead_unit": {"after_unit", "before_unit", "before", "after"}}  # which of the units it names is its own
    clauses = {"label", "title", "before", "after", "change"}  # all of which are known to a clause without a verb
    free |= {key: clauses for key in english if key.startswith("clause_") and "do" not in key}
    for key, message in english.items():
        assert isinstance(message, str) == isinstance(other[key], str), key
        if isinstance(message, str):
            assert places(other[key]) == places(message) or places(other[key]) < free.get(key, set()), key
        else:
            assert places(other[key]["other"]) == places(message["other"]), key


def test_another_language_is_a_file(tmp_path, monkeypatch):
    english = resources.files("tdce.report.language").joinpath("en.toml").read_text(encoding="utf-8")
    french = english.replace('"en_GB"', '"fr_FR"').replace(
        '"{after} instead of {before}"', '"{after} au lieu de {before}"'
    )
    (tmp_path / "fr.toml").write_text(french, encoding="utf-8")
    monkeypatch.setattr("tdce.report.language.catalogue.FOLDER", tmp_path)
    assert languages() == ("fr",)
    spaced = speaker("fr").bullet("amount", 4800, 3200.5).replace("\u202f", " ")
    assert spaced == "amount: 3 200,50 € au lieu de 4 800 €"  # the schema has no French: English


@pytest.mark.parametrize("language", ["xx", "", "english", "../en", None, 3, "EN"])
def test_an_unknown_language_is_named_with_those_that_are_known(language):
    with pytest.raises(InputError, match=r"language is .* known: de, en"):
        Speaker.of(LOAN, language)


def test_an_unknown_region_is_named():
    with pytest.raises(InputError, match="language is 'de-QQ', whose region is unknown; use 'de'"):
        Speaker.of(LOAN, "de-QQ")


def test_an_unknown_audience_is_named():
    with pytest.raises(InputError, match="audience is 'boss'; it must be one of applicant, analyst"):
        Speaker.of(LOAN, audience="boss")


def test_a_missing_message_is_named():
    with pytest.raises(InputError, match=r"the catalogue of 'de' has no message 'hello'; add it to de\.toml"):
        speaker("de").text("hello")
    with pytest.raises(InputError, match="the message 'reason' of 'en' cannot be filled in: 'value'"):
        speaker().text("reason", label="x")


def test_every_remark_that_goals_make_has_a_message():
    for goal in (Class(0), Between(0, 0.1, 0.2), Range(low=1), AllGoals(((Class(0), 0, 2),), Output())):
        kind = score_kind(goal)
        for key in (f"nothing_{progress_key(goal)}", f"only_raises_{kind}", f"only_lowers_{kind}"):
            assert key in load_catalogue("en").messages


# The German credit data


def test_words_are_no_reason_to_measure_again(monkeypatch):
    pytest.importorskip("sklearn")
    from tdce_reproduction.benchmark import fingerprint

    made, columns = tdce.Explainer(), fingerprint.plain_schema
    assert columns("german")["age"].words != Wording()
    found = fingerprint.fit_fingerprint("german", made)
    monkeypatch.setattr(fingerprint, "plain_schema", lambda data: columns(data).without_words())
    assert fingerprint.fit_fingerprint("german", made) == found


def test_other_words_change_nothing_else(explainer, answer):
    other = explainer.with_words({"income": {"label": "the pay", "unit": "EUR", "format": "money"}})
    again = other.explain(answer.rows, n=3, closeness=0.2)
    pd.testing.assert_frame_equal(again.to_frame(), answer.to_frame(), check_exact=True)
    assert any("the pay" in text for text in again.sentences())
    assert not any("the pay" in text for text in answer.sentences())
