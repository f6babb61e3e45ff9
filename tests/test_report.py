"""The sentences and the page: against files that were read by a person, from an answer written by hand.

`TDCE_GOLDEN=write pytest tests/test_report.py` writes the files anew; read what changed before you commit it.
"""

import os
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from tdce.answer import Answer
from tdce.encoder import Encoder
from tdce.explanation import Explanation, Line, Question
from tdce.goal import Class, Goals
from tdce.limits import Limits
from tdce.remarks import Remark
from tdce.report.page import page
from tdce.schema import Numeric, Schema
from tdce.words.speaker import Speaker, spoken

GOLDEN = Path(__file__).parent / "golden"
ENGLISH = Speaker.of(Schema((Numeric("x", 0, 1),)))  # of columns that have no words


def agrees(name: str, text: str) -> None:
    """With the file of that name; or the file is made to agree."""
    path = GOLDEN / name
    if os.environ.get("TDCE_GOLDEN") == "write":
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


def written() -> Answer:
    """Four people and two options each: one line or more of every status."""
    table = pd.DataFrame(
        {"net_income": [2000, 3500, 5000], "debt": [0.0, 1250.5, 99.0], "housing": ["own", "rent", "own"]}
    )
    rows = pd.DataFrame(
        {"net_income": [2000, 2000, 5000, 2000], "debt": [1250.5, None, 0.0, 99.0],
         "housing": ["rent", "rent", "own", "rent"]},
        index=["Ada", "Bo & Co", "Cyd", "Dan"],
    )  # fmt: skip
    own, rent = 0.0, 1.0  # the categories in their order
    raw = np.array(
        [
            [[3500, 1250.5, rent], [2000, 99.0, own]],
            [[3500, 1250.5, rent], [2000, np.nan, rent]],  # a debt that was missing, and nothing found
            [[5000, 0.0, own]] * 2,
            [[2000, 99.0, rent]] * 2,
        ]
    )  # fmt: skip
    status = np.array([["valid", "valid"], ["best_effort", "best_effort"], ["already"] * 2, ["infeasible"] * 2])
    after = np.array([[0.62, 0.9], [0.4, 0.25], [0.99, 0.99], [0.1, 0.1]])
    plausible = np.array([[0.37, 0.004], [0.996, np.nan], [0.5, 0.5], [0.12, 0.12]])
    remarks = np.empty((4, 2), dtype=object)
    remarks.fill(())
    remarks[0, 1] = (Remark("odd_value", ("debt",), values={"text": "is <odd>"}),)
    remarks[3].fill((Remark("all_immutable"),))
    limits = Limits.of(Encoder.fit(table), rows)
    found = Explanation(limits.own, raw, status, np.array([0.31, 0.25, 0.99, 0.1]), after, plausible, remarks)
    nobody = SimpleNamespace(calls=0, rows=0)  # was asked
    return Answer.of(rows, limits, Question(Goals.all(Class(1), 4), options=2), found, ("bad", "good"), nobody)


def shown() -> str:
    answer = written()
    return page(answer.rows, answer.lines, answer.speaker())


class Cells(HTMLParser):
    """The cells of the tables of a page, each table as (head, rows)."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tables: list[list[list[str]]] = []
        self.open = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        self.open = tag in ("td", "th")

    def handle_endtag(self, tag: str) -> None:
        self.open = self.open and tag not in ("td", "th")

    def handle_data(self, data: str) -> None:
        if self.open:
            self.tables[-1][-1].append(data)


def test_the_sentences_are_those_of_the_golden_file():
    agrees("sentences.txt", "\n".join(written().sentences()) + "\n")


def test_the_page_is_that_of_the_golden_file():
    agrees("page.html", shown())


def test_a_sentence_has_the_new_value_first_and_says_instead_of_what():
    first = written().sentences()[0]
    assert first == "The answer would be “good” if net income were 3,500 instead of 2,000."


def test_the_page_has_the_own_value_under_now_and_the_proposal_under_then():
    first, second, third = Cells(shown()).tables
    assert first == [["Feature", "Now", "Then"], ["net income", "2,000", "3,500"]]
    assert second == [["Feature", "Now", "Then"], ["debt", "1,250.5", "99"], ["housing", "rent", "own"]]
    assert third[1:] == [["net income", "2,000", "3,500"], ["debt", "not known", "1,250.5"]]


def test_the_changes_have_the_own_value_before_and_the_proposal_after():
    changes = written().changes()
    assert changes.iloc[0].tolist() == ["Ada", 0, "net_income", 2000, 3500]
    assert changes.iloc[1].tolist() == ["Ada", 1, "debt", 1250.5, 99.0]
    assert changes.iloc[2].tolist() == ["Ada", 1, "housing", "rent", "own"]
    assert changes["row"].tolist() == ["Ada"] * 3 + ["Bo & Co"] * 2


@pytest.mark.parametrize(
    ("status", "changes", "text"),
    [
        ("valid", [("debt", 5, 3)], "The answer would be “good” if debt were 3 instead of 5."),
        ("best_effort", [("debt", 5, 3)],
         "The answer would be nearer to “good”, but still not that, if debt were 3 instead of 5."),
        ("best_effort", [], "No change was found that brings the answer nearer to “good”."),
        ("already", [], "The answer is already “good”."),
        ("infeasible", [], "Nothing can change (why), so no other answer was found."),
        ("valid", [("a_b", None, "x"), ("c", 1, 2)],
         "The answer would be “good” if a b were “x” (not known so far) and c were 2 instead of 1."),
    ],
)  # fmt: skip
def test_each_status_has_its_sentence(status, changes, text):
    assert ENGLISH.sentence(Line(status, "good", 0.31, 0.62, 0.5, changes, "why")) == text


@pytest.mark.parametrize(
    ("status", "changes", "text"),
    [
        ("valid", [("debt", 5, 3)], "the answer would be “good” (31 % to 62 %)"),
        ("best_effort", [("debt", 5, 3)], "still not “good”, but nearer (31 % to 62 %)"),
        ("best_effort", [], "no change was found that brings the answer nearer to “good” (31 %)"),
        ("already", [], "the answer is already “good” (31 %)"),
        ("infeasible", [], "nothing can change (why)"),
    ],
)
def test_each_status_has_its_headline(status, changes, text):
    assert ENGLISH.headline(Line(status, "good", 0.31, 0.62, 0.5, changes, "why")) == text


@pytest.mark.parametrize(
    ("cell", "text"),
    [
        (1234567, "1,234,567"), (1234.0, "1,234"), (1234.5, "1,234.5"), (-0.25, "-0.25"), (0.1 + 0.2, "0.3"),
        (np.int64(7), "7"), (np.float32(2.5), "2.5"), (1e15, "1E15"), (999_999_999_999_999.0, "999,999,999,999,999"),
        (-1e15, "-1E15"), (12345.678901234, "12,345.6789"),
        ("own", "own"), ("1234", "1234"), (True, "yes"), (None, "not known"), (float("nan"), "not known"),
        (pd.NA, "not known"), (pd.Timestamp("2026-01-31"), "31 January 2026"),
    ],
)  # fmt: skip
def test_a_cell_is_written_as_people_write_it(cell, text):
    assert ENGLISH.value("x", cell) == text


@pytest.mark.parametrize(
    ("plausibility", "share"),
    [(0.0, "less typical than 99 %"), (0.0099, "less typical than 99 %"), (0.01, "more typical than 1 %"),
     (0.374, "more typical than 37 %"), (0.98, "more typical than 98 %"), (0.996, "more typical than 99 %"),
     (1.0, "more typical than 99 %")],
)  # fmt: skip
def test_a_plausibility_is_a_share_of_people(plausibility, share):
    assert ENGLISH.typical(plausibility) == f"{share} of real people with the wanted outcome"


def test_the_page_says_how_typical_each_option_is_where_that_is_known():
    assert shown().count("of real people with the wanted outcome") == 7  # of eight options
    assert ENGLISH.typical(float("nan")) == ""


def test_words_are_quoted_and_numbers_are_not():
    bullet = ENGLISH.bullet
    assert bullet("housing", "rent", "own") == "housing “own” instead of “rent”"
    assert bullet("net_income", 1000, 2000) == "net income 2,000 instead of 1,000"
    assert bullet("job", None, "clerk") == "job “clerk” (not known so far)"
    assert spoken("years_at_work") == "years at work"
    assert spoken(7) == "7"
