"""The sentences, against a file that was read by a person, and what a report says, of an answer written by hand.

`TDCE_GOLDEN=write pytest tests/test_report.py` writes the file anew; read what changed before you commit it.
"""

import base64
import gzip
import hashlib
import json
import os
import pickle
import re
import zipfile
from dataclasses import replace
from pathlib import Path

import lending
import numpy as np
import pandas as pd
import pytest
from report_size import repeat

import tdce
from tdce._core.notes import Note
from tdce.explainer.answer import Answer
from tdce.methods.explanation import Explanation, Line
from tdce.methods.question import Question
from tdce.models.goals import AtLeast, Between, Class, Goals, Not
from tdce.models.oracle import Usage
from tdce.models.output_goals import AllGoals, ModelDecides, Range
from tdce.models.outputs import Output
from tdce.report import page as report_page
from tdce.report.histograms import Histogram, Population
from tdce.report.language.catalogue import load_catalogue
from tdce.report.language.speaker import Speaker, spoken_name
from tdce.report.thresholds import score_thresholds
from tdce.schema.columns.numeric import Numeric
from tdce.schema.encoder import Encoder
from tdce.schema.feasible import FeasibleSet
from tdce.schema.schema import Schema

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
    notes = np.empty((4, 2), dtype=object)
    notes.fill(())
    notes[0, 1] = (Note("odd_value", ("debt",), values={"text": "is <odd>"}),)
    notes[3].fill((Note("all_immutable"),))
    feasible = FeasibleSet.of(Encoder.fit(table), rows)
    found = Explanation(feasible.own, raw, status, np.array([0.31, 0.25, 0.99, 0.1]), after, plausible, notes,
                        distance=np.array([[0.72, 1.0], [1.4, 0.0], [0.0, 0.0], [0.0, 0.0]]))  # fmt: skip
    return Answer.of(rows, feasible, Goals.all(Class(1), 4), Question(n=2), found, ("bad", "good"), Usage())


def page_of(answer: Answer, folder: Path, **settings: object) -> str:
    answer.to_html(folder / "page.html", **settings)
    return (folder / "page.html").read_text(encoding="utf-8")


def applicant_pages(answer: Answer, folder: Path, **settings: object) -> dict[str, str]:
    answer.to_html(folder, audience="applicant", **settings)
    return {path.name: path.read_text(encoding="utf-8") for path in sorted(folder.iterdir())}


def data_of(text: str) -> dict:
    """What the script of a page reads."""
    kind, block = re.search(r'<script type="([^"]+)" id="data">(.*?)</script>', text, flags=re.DOTALL).groups()
    return json.loads(block if kind == "application/json" else gzip.decompress(base64.b64decode(block)))


def cards(text: str) -> list[list[list[tuple[str, str, str]]]]:
    """By person and option: the changes that a card shows."""
    people = data_of(text)["people"]
    features, n = people["features"], people["options"]
    lines = [list(zip(flat[::2], flat[1::2], strict=True)) for flat in people["changes"]]
    found = [
        [(features[f]["label"], features[f]["texts"][features[f]["now"][line // n]], features[f]["texts"][code])
         for f, code in changes]
        for line, changes in enumerate(lines)
    ]  # fmt: skip
    return [found[i : i + n] for i in range(0, len(found), n)]


def cells(text: str, table: str) -> list[list[str]]:
    """The cells of the first table of that class."""
    body = re.search(rf'<table class="{table}">(.*?)</table>', text, flags=re.DOTALL)[1]
    rows = re.findall(r"<tr.*?</tr>", body, flags=re.DOTALL)
    return [[re.sub(r"<[^>]+>", "", cell).strip() for cell in re.findall(r"<t[hd].*?</t[hd]>", row)] for row in rows]


def test_the_sentences_are_those_of_the_golden_file():
    agrees("sentences.txt", "\n".join(written().sentences()) + "\n")


def test_a_sentence_has_the_new_value_first_and_says_instead_of_what():
    first = written().sentences()[0]
    assert first == "The decision would be “good” if net income were 3,500 instead of 2,000."


def test_a_card_has_the_own_value_before_and_the_proposal_after(tmp_path):
    ada, bo, cyd, dan = cards(page_of(written(), tmp_path))
    assert ada == [[("net income", "2,000", "3,500")], [("debt", "1,250.5", "99"), ("housing", "rent", "own")]]
    assert bo == [[("net income", "2,000", "3,500"), ("debt", "not known", "1,250.5")], []]
    assert cyd == dan == [[], []]


def test_the_changes_have_the_own_value_before_and_the_proposal_after():
    changes = written().changes()
    assert changes.iloc[0].tolist() == ["Ada", 0, "net_income", 2000, 3500]
    assert changes.iloc[1].tolist() == ["Ada", 1, "debt", 1250.5, 99.0]
    assert changes.iloc[2].tolist() == ["Ada", 1, "housing", "rent", "own"]
    assert changes["row"].tolist() == ["Ada"] * 3 + ["Bo & Co"] * 2


@pytest.mark.parametrize(
    ("status", "changes", "text"),
    [
        ("valid", [("debt", 5, 3)], "The decision would be “good” if debt were 3 instead of 5."),
        ("best_effort", [("debt", 5, 3)],
         "The decision would be closer to “good”, but would still not reach it, if debt were 3 instead of 5."),
        ("best_effort", [], "No change was found that brings the decision closer to “good”."),
        ("already", [], "The decision is already “good”."),
        ("infeasible", [], "Nothing can change (why), so no other outcome was found."),
        ("valid", [("a_b", None, "x"), ("c", 1, 2)],
         "The decision would be “good” if a b were “x” (not known so far) and c were 2 instead of 1."),
    ],
)  # fmt: skip
def test_each_status_has_its_sentence(status, changes, text):
    assert ENGLISH.sentence(Line(status, "good", 0.31, 0.62, 0.5, changes, "why")) == text


@pytest.mark.parametrize(
    ("status", "changes", "text"),
    [
        ("valid", [("debt", 5, 3)], "the decision would be “good” (31 % to 62 %)"),
        ("best_effort", [("debt", 5, 3)], "still not “good”, but closer (31 % to 62 %)"),
        ("best_effort", [], "no change was found that brings the decision closer to “good” (31 %)"),
        ("already", [], "the decision is already “good” (31 %)"),
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
    assert ENGLISH.typical(plausibility) == f"{share} of real people with the desired outcome"


@pytest.mark.parametrize(
    ("status", "safety", "said"),
    [("valid", 0.874, "safely accepted: about 87 % of models trained again would accept it, too"),
     ("valid", 0.749, ""),
     ("valid", 0.9999, "safely accepted: about 99 % of models trained again would accept it, too"),
     ("already", 0.9, ""),
     ("best_effort", 0.9, ""), ("valid", float("nan"), "")],
)  # fmt: skip
def test_what_is_safely_accepted_is_said_beside_how_typical_it_is(status, safety, said):
    for plausibility, typical in (
        (0.374, "more typical than 37 % of real people with the desired outcome"),
        (float("nan"), ""),
    ):
        line = Line(status, "good", 0.31, 0.62, plausibility, [], "", safety=safety)
        assert ENGLISH.standing(line) == "; ".join(filter(None, (typical, said)))


def test_what_is_barely_accepted_is_noted_as_a_share_of_models():
    note = Note("barely", values={"safety": 0.6014})
    line = Line("valid", "good", 0.31, 0.62, 0.5, [], "", notes=(note,), safety=0.6014)
    assert ENGLISH.note(line) == "barely accepted: only about 60 % of models trained again would accept it"
    german = Speaker.of(Schema((Numeric("x", 0, 1),)), "de")
    assert german.note(line) == "knapp angenommen: nur etwa 60 % der neu trainierten Modelle würden es annehmen"


def test_a_card_says_how_typical_each_option_is_where_that_is_known(tmp_path):
    people = data_of(page_of(written(), tmp_path))["people"]
    said = [people["typical"]["texts"][code] for code in people["typical"]["codes"]]
    assert said[0] == "More typical than 37 % of real people with the desired outcome"
    assert people["plausibility"][:4] == [370, 4, 996, None]
    assert said[3] == ENGLISH.typical(float("nan")) == ""


def test_words_are_quoted_and_numbers_are_not():
    bullet = ENGLISH.bullet
    assert bullet("housing", "rent", "own") == "housing: “own” instead of “rent”"
    assert bullet("net_income", 1000, 2000) == "net income: 2,000 instead of 1,000"
    assert bullet("job", None, "clerk") == "job: “clerk” (not known so far)"
    assert spoken_name("years_at_work") == "years at work"
    assert spoken_name(7) == "7"


@pytest.mark.parametrize(
    ("status", "safety", "text"),
    [
        ("valid", 0.9, "The decision would be “good”, safely, if debt were 3 instead of 5."),
        ("valid", 0.6, "The decision would be “good”, but only barely, if debt were 3 instead of 5."),
        ("valid", float("nan"), "The decision would be “good” if debt were 3 instead of 5."),
        ("best_effort", 0.9,
         "The decision would be closer to “good”, but would still not reach it, if debt were 3 instead of 5."),
    ],
)  # fmt: skip
def test_a_card_is_led_by_what_to_do_what_it_brings_and_how_safe_that_is(status, safety, text):
    line = Line(status, "good", 0.31, 0.62, 0.5, [("debt", 5, 3)], "", safety=safety)
    assert ENGLISH.summary(line) == text
    if status == "valid" and safety == 0.6:
        german = Speaker.of(Schema((Numeric("x", 0, 1),)), "de")
        assert (
            german.summary(line)
            == "Die Entscheidung wäre „good“, aber nur knapp, wenn der Wert „debt“ 3 statt 5 betrüge."
        )


# ---- the finding


def finding_of(text: str) -> dict[str, object]:
    summary = text.split('<section id="summary"')[1].split('<section id="people"')[0]
    plain = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", summary.split("</h2>")[1].split('<div class="findings">')[0]))
    step = r"<b>(.*?)</b> <span>(.*?)</span>.*?class=\"num\">(.*?)<"
    return {
        "headline": re.search(r'class="finding">(.*?)</h2>', summary)[1],
        "details": plain.strip(),
        "steps": re.findall(step, summary),
        "left": re.findall(r'data-find="(.*?)">.*?</a> <span>(.*?)</span>', summary),
    }


def test_the_first_screen_says_who_has_a_way_the_first_steps_and_who_is_left_without(tmp_path):
    found = finding_of(page_of(written(), tmp_path))  # Ada has a way, Bo and Dan have none, Cyd needs none
    assert found == {
        "headline": "1 of 3 people have a way to “good”.",
        "details": "Features changed on average: 1. 2 people are left without. Accepted already: 1.",
        "steps": [("Net income", "up by 1,500 (median of 1)", "1")],
        "left": [("Person Bo &amp; Co", "not reached"), ("Person Dan", "nothing may change")],
    }


def test_the_first_screen_says_how_many_ways_are_safe(lent, tmp_path):
    answer = lent.explain(lending.refused(lent, 12))
    valid = answer.explanation.status[:, 0] == "valid"
    safety = np.where(np.arange(12) < 5, 0.5, 0.9)[:, None]
    found = finding_of(page_of(replace(answer, explanation=replace(answer.explanation, safety=safety)), tmp_path))
    assert found["details"].startswith(f"Safely for {valid[5:].sum()}, barely for {valid[:5].sum()}.")
    assert sum(int(people) for *_, people in found["steps"]) <= valid.sum()
    first = [lines[0].reasons[0][0] for lines in answer.lines if lines[0].reasons]
    steps = {label.lower(): int(people) for label, _, people in found["steps"]}
    assert steps == {name: first.count(name) for name in set(first)}


def test_log_odds_hashes_and_versions_are_in_the_appendix_only(lent, tmp_path):
    text = page_of(lent.explain(lending.refused(lent, 3)), tmp_path)
    before, appendix = text.split('<section id="appendix"')
    shown = before.split("</style>")[1]
    for word in ("Log odds", "SHA-256", "Versions", "torch"):
        assert word not in shown
        assert word in appendix


# ---- what people are called


def named(answer: Answer, names: list) -> Answer:
    return replace(answer, rows=answer.rows.assign(customer=names), written=answer.written)


def test_people_are_called_by_their_id_and_it_is_no_group(tmp_path):
    answer = named(written(), ["A-1", "B-2", "A-1 b", 7])
    text = page_of(answer, tmp_path, id="customer")
    assert data_of(text)["people"]["label"] == ["A-1", "B-2", "A-1 b", "7"]
    assert [label for label, _ in finding_of(text)["left"]] == ["B-2", "7"]
    assert ">customer<" not in text
    indexed = replace(answer, rows=answer.rows.rename_axis("who"))
    assert data_of(page_of(indexed, tmp_path, id="who"))["people"]["label"] == ["Ada", "Bo & Co", "Cyd", "Dan"]


@pytest.mark.parametrize(
    ("id", "words"),
    [("custom", "id is 'custom', but the rows have no such column; did you mean 'customer'"),
     ("housing", "id is 'housing', a feature of the model; name a column that is passed through"),
     ("customer", "'customer' is empty in row 'Cyd'")],
)  # fmt: skip
def test_an_id_that_does_not_name_everybody_is_refused(id, words, tmp_path):
    with pytest.raises(tdce.InputError, match=words):
        named(written(), ["A", "B", None, "D"]).to_html(tmp_path / "page.html", id=id)
    assert not list(tmp_path.iterdir())


# ---- a page for each applicant


def test_an_applicants_page_has_nobody_elses_data_no_hash_and_no_version(tmp_path):
    made = tdce.Explainer(hidden=8, steps=5, progress="silent")
    made.fit(lending.table(80), label="decision", favourable="yes").save(tmp_path / "secret-name.tdce")
    rows = lending.refused(made, 12).head(6).assign(customer=[f"customer-{i}-end" for i in range(6)], branch="Nowhere")
    rows["income"] = [111_011 + i for i in range(6)]  # values that only they have
    rows.index = [f"index-{i}-end" for i in range(6)]
    answer = made.explain(rows, n=2)
    pages = applicant_pages(answer, tmp_path / "pages", id="customer")
    assert list(pages) == [f"customer-{i}-end.html" for i in range(6)]
    for i, page in enumerate(pages.values()):
        assert f"customer-{i}-end" in page
        people = data_of(page)["people"]
        assert len(people["label"]) == 1
        seen = page + json.dumps(data_of(page), ensure_ascii=False)
        for other in set(range(6)) - {i}:
            income = 111_011 + other
            for text in (f"customer-{other}-end", f"index-{other}-end", f"{income:,}", str(income)):
                assert text not in seen
        shown = seen.split("</style>")[1]
        assert not re.search(r"\b[0-9a-f]{32,}\b", shown)  # a digest
        for word in (
            "secret-name",
            "Nowhere",
            "SHA",
            "torch",
            "tdce 0",
            tdce.__version__,
            made.report["fitted"],
            "seed",
        ):
            assert word not in shown, word
        digests = {
            made.provenance.artefact,
            made.provenance.schema,
            *(each["digest"] for each in made.provenance.models),
        }
        assert not any(digest and digest in seen for digest in digests)


def test_a_zip_holds_the_same_pages_as_a_folder_and_is_the_same_to_the_byte(tmp_path):
    answer = written()
    pages = applicant_pages(answer, tmp_path / "pages")
    for name in ("one.zip", "two.zip"):
        answer.to_html(tmp_path / name, audience="applicant")
    with zipfile.ZipFile(tmp_path / "one.zip") as packed:
        assert {name: packed.read(name).decode() for name in packed.namelist()} == pages
    assert (tmp_path / "one.zip").read_bytes() == (tmp_path / "two.zip").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one.zip", "pages", "two.zip"]  # no draft is left


def test_one_applicant_may_have_a_file_of_any_name_and_several_may_not(lent, tmp_path):
    people = lending.refused(lent, 2)
    lent.explain(people.head(1)).to_html(tmp_path / "page.html", audience="applicant")
    assert "What would change the decision" in (tmp_path / "page.html").read_text(encoding="utf-8")
    with pytest.raises(tdce.InputError, match="would be the page of one applicant, but there are 2"):
        lent.explain(people).to_html(tmp_path / "two.html", audience="applicant")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("mine")
    with pytest.raises(tdce.InputError, match="full exists already; name a new folder"):
        lent.explain(people).to_html(tmp_path / "full", audience="applicant")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["full", "page.html"]


def test_applicants_with_the_same_label_get_a_page_each(tmp_path, lent):
    two = lending.refused(lent, 2).set_axis(["A", "A"])
    first, second = applicant_pages(lent.explain(two), tmp_path / "pages")
    assert re.fullmatch(r"A-[0-9a-f]{8}\.html", first)
    assert re.fullmatch(r"A-[0-9a-f]{8}\.html", second)


# ---- over all people


def test_what_changes_is_counted_over_first_options(tmp_path):
    _, income, debt = cells(page_of(written(), tmp_path), "changes")  # of Ada and Bo, the only two who change anything
    assert income == ["net income", "100 % (2)", "up by 1,500 (median of 2)", "debt (1)"]
    assert debt == ["debt", "50 % (1)", "most often not known → 1,250.5 (1)", "net income (1)"]


def test_features_that_change_together_are_counted(tmp_path):
    assert cells(page_of(written(), tmp_path), "pairs")[1:] == [["net income", "2", "1"], ["debt", "1", "1"]]


def test_groups_say_who_would_be_accepted_and_after_how_many_changes(tmp_path):
    answer = written()
    rows = answer.rows.assign(branch=["north", "north", "south", "south"], id=["a", "b", "c", "d"])
    text = page_of(replace(answer, rows=rows), tmp_path)
    groups = re.findall(r'<option value="\d">(.*?)</option>', text.split('id="group"')[1].split("</select>")[0])
    assert groups == ["net income", "debt", "housing", "branch", "id"]  # four ids of four people are still few
    branch = text.split('aria-label="branch"')[1]
    north, south = cells(branch, "figures")[1:]
    assert north == ["north (few people)", "2", "0", "50 %", "1", "0", "1.00", "0.72", "37 %"]
    assert south == ["south (few people)", "2", "1", "0 %", "0", "1", "–", "–", "–"]
    # 0.59: 1,500 of 2,000 to 4,550, the 5 % and the 95 % quantile of the four incomes


def test_ids_are_no_groups_and_numbers_are_cut_into_quarters(lent, tmp_path):
    answer = lent.explain(lending.refused(lent, 40).assign(id=[f"person {i}" for i in range(40)]))
    text = page_of(answer, tmp_path)
    choice = text.split('id="group"')[1].split("</select>")[0]
    assert ">id<" not in choice
    income = cells(text.split('aria-label="income"')[1], "figures")[1:]
    assert len(income) == 4
    assert sum(int(row[1]) for row in income) == 40


@pytest.mark.parametrize("dtype", ["Int64", "string", "boolean", "Float64", "category"])
def test_missing_cells_of_any_dtype_are_a_group_of_their_own(dtype, lent, tmp_path):
    cells_of = {"string": ["a", None], "boolean": [True, None], "category": ["a", None]}.get(dtype, [1, None])
    people = lending.refused(lent, 4).assign(extra=pd.array(cells_of * 2, dtype=dtype))
    text = page_of(lent.explain(people), tmp_path)
    assert [row[:2] for row in cells(text.split('aria-label="extra"')[1], "figures")[1:]][-1] == [
        "not known (few people)",
        "2",
    ]


def test_the_metrics_are_shown_with_how_to_read_them(tmp_path):
    text = page_of(written(), tmp_path, metrics={"validity": 0.5, "gower": 0.0123456})
    assert cells(text, "metrics")[1:] == [
        ["validity", "0.5", "high", "share of rows that the model then puts in the target class"],
        ["gower", "0.0123", "low", "how much changed, over all features alike: 0 nothing, 1 everything"],
    ]
    assert "No metrics were measured" in page_of(written(), tmp_path)


@pytest.mark.parametrize(
    ("settings", "words"),
    [({"metrics": {"charm": 1.0}}, "metric is 'charm'; it must be one of l2, "),
     ({"metrics": {"gower": "low"}}, "the metric gower is 'low'; it must be a finite number"),
     ({"metrics": 3}, "metrics is 3; it must be what tdce.evaluate returned"),
     ({"population": 3}, "population is 3; give what Explainer.population"),
     ({"audience": "friends"}, "audience is 'friends'"), ({"language": "xx"}, "language is 'xx'")],
)  # fmt: skip
def test_a_wrong_setting_is_named_and_nothing_is_written(settings, words, tmp_path):
    with pytest.raises(tdce.InputError, match=words):
        written().to_html(tmp_path / "page.html", **settings)
    assert not list(tmp_path.iterdir())


# ---- where it comes from


@pytest.fixture(scope="module")
def lent():
    return lending.explainer()


def facts(text: str) -> dict[str, str]:
    return dict(re.findall(r"<dt>(.*?)</dt><dd[^>]*>(.*?)</dd>", text, flags=re.DOTALL))


def test_the_summary_names_the_file_by_its_hash_and_the_date_of_the_fit(tmp_path):
    made = tdce.Explainer(hidden=8, steps=5, progress="silent")
    made.fit(lending.table(80), label="decision", favourable="yes")
    rows = lending.table(4, seed=3)
    fresh = facts(page_of(made.explain(rows), tmp_path))
    assert fresh["Fitted"] == made.report["fitted"]
    assert "File" not in fresh
    made.save(tmp_path / "m.tdce")
    os.utime(tmp_path / "m.tdce", (1_700_000_000, 1_700_000_000))
    loaded = facts(page_of(tdce.Explainer.load(tmp_path / "m.tdce").explain(rows), tmp_path))
    assert loaded["File"] == "m.tdce"
    assert loaded["SHA-256 of the file"] == hashlib.sha256((tmp_path / "m.tdce").read_bytes()).hexdigest()
    assert loaded["File written"] == "2023-11-14 22:13 UTC"
    assert "Fitted" not in loaded  # a file has no date, so that the same fit gives the same bytes
    made.fit(lending.table(80), label="decision", favourable="yes")
    assert "File" not in facts(page_of(made.explain(rows), tmp_path))


def test_the_same_answer_gives_the_same_page(lent, tmp_path):
    rows = lending.refused(lent, 5)
    first = page_of(lent.explain(rows), tmp_path)
    assert first == page_of(pickle.loads(pickle.dumps(lent.explain(rows))), tmp_path)


def test_what_an_answer_knows_of_its_explainer_is_small(lent):
    assert len(pickle.dumps(lent.explain(lending.refused(lent, 1)))) < 20_000


def test_the_threshold_is_where_the_model_turns():
    assert score_thresholds(Class(1), 2) == [0.5]
    assert score_thresholds(Class(1), 3) == []
    assert score_thresholds(Not(0), 2) == [0.5]
    assert score_thresholds(AtLeast(1, 0.8), 3) == [0.8]
    assert score_thresholds(Between(1, 0.5, 0.7), 2) == [0.5, 0.7]
    assert score_thresholds(Range(high=8), 0) == [8]
    turning = Output(classes=("no", "yes"), decides=True, border=0.3)
    assert score_thresholds(ModelDecides(Class(1), turning), 2) == [0.3]
    assert score_thresholds(ModelDecides(Class(0), turning), 2) == [0.7]
    assert score_thresholds(AllGoals(((ModelDecides(Class(1), turning), 0, 4), (Range(high=8), 4, 5)), turning), 0) == [
        0.3
    ]


# ---- the people beside


def test_synthetic_people_stand_beside_unless_real_ones_are_kept_or_given(lent, tmp_path):
    lent.keep_rows = False
    assert not lent.population().real
    rows = lending.refused(lent, 3)
    assert "512 synthetic rows" in page_of(lent.explain(rows), tmp_path)
    assert lent.population(lending.table(200)).real
    assert "200 real people" in page_of(lent.explain(rows), tmp_path, population=lent.population(lending.table(200)))
    lent.keep_rows = True
    assert lent.population().real
    lent.keep_rows = False


def test_of_real_people_no_few_are_counted_and_no_end_is_anybodys(lent):
    table = lending.table(400)
    table.loc[0, "income"] = 54_321  # one who would be known by it
    found = lent.population(table)
    assert sum(found.class_sizes) == found.rows == 400
    for histogram in found.histograms:
        assert all(n == 0 or n >= 5 for row in histogram.counts for n in row)
    income = found["income"]
    assert income.low >= 0
    assert income.high < 10_000
    assert income.low % 10 == income.high % 10 == 0
    assert not {income.low, income.high} & {table["income"].min(), table["income"].max()}


def test_a_value_stands_where_its_bin_is():
    number = Histogram("n", ((0,) * 10,), 0.0, 50.0)
    assert number.position(np.array([0, 25, 50, 70, -3, np.nan])).tolist()[:5] == [0, 0.5, 1, 1, 0]
    assert number.bin_index(np.array([0, 4.9, 5, 50, np.nan])).tolist() == [0, 0, 1, 9, -1]
    tens = Histogram("n", ((1, 3),), 0.0, 20.0)
    np.testing.assert_allclose(tens.shares(np.array([0, 10, 15, 99])), [[0, 0.25, 0.625, 1]])  # halfway through 3 of 4
    one_each = Histogram("n", ((1, 3),), 0.5, 2.5, discrete=True)
    np.testing.assert_allclose(one_each.shares(np.array([1, 2])), [[0, 0.25]])  # nobody who has the same has less
    word = Histogram("w", ((0,) * 3,), categories=(4, 0, -1))  # two named ones, and the others
    assert word.bin_index(np.array([4, 0, 7, np.nan])).tolist() == [0, 1, 2, -1]
    np.testing.assert_allclose(word.position(np.array([4.0, 0, 7])), [1 / 6, 1 / 2, 5 / 6])
    np.testing.assert_allclose(replace(word, counts=((1, 2, 1),)).shares(np.array([4.0, 0, 7])), [[0.25, 0.5, 0.25]])


def test_the_bins_count_everybody_in_the_right_place():
    frame = pd.DataFrame({"n": [*range(1, 11)] * 10, "w": ["u", "v"] * 50})
    encoder = Encoder.fit(frame)
    y = np.array([0, 1] * 50)
    found = Population.of(encoder, encoder.read(frame), y, ("no", "yes"), real=False)
    assert found["n"].counts == ((10, 0) * 5, (0, 10) * 5)  # odd ones are no, even ones yes
    assert (found["n"].low, found["n"].high, found["n"].ends) == (0.5, 10.5, (1, 10))
    assert found["w"].counts == ((50, 0), (0, 50))


# ---- who may see what


def test_what_may_not_be_named_is_nowhere_in_a_page(tmp_path):
    table = lending.table(300)
    schema = tdce.Schema.infer(table, "decision")
    words = {"label": "Wohnlage", "values": {"own": "Eigenheim"}, "named": False}
    schema = schema.change("housing", words=words).change("debt", words={"label": "Schulden", "seen_by": "analyst"})
    schema = schema.with_rules("housing != 'rent'")
    made = tdce.Explainer(hidden=16, steps=20, progress="silent")
    made.fit(table, label="decision", favourable="yes", schema=schema)
    rows = table.drop(columns="decision").head(60)
    answer = made.explain(rows, costs={"housing": 0, "debt": 0.1}, rules=["housing != 'with parents'"], n=2)
    assert "housing" in answer.changes()["feature"].tolist()
    analyst = page_of(answer, tmp_path, population=made.population(table))
    for word in ("housing", "Wohnlage", "Eigenheim", "with parents"):
        assert word not in analyst
    assert "Schulden" in analyst
    applicants = applicant_pages(answer, tmp_path / "pages")
    assert not any(word in page for page in applicants.values() for word in ("Schulden", "debt", "housing", "Wohnlage"))
    assert sum(sum(data_of(page)["people"]["unnamed"]) for page in applicants.values()) > 0


def test_nothing_that_the_table_says_is_markup(tmp_path):
    bad = "</script><script>alert(1)</script><img src=x onerror=alert(1)>"
    table = pd.DataFrame(
        {
            f"n{bad}": [i * 7 % 13 for i in range(40)],
            f"w{bad}": [f"u{bad}", "v"] * 20,
            f"y{bad}": [f"no{bad}", "yes"] * 20,
        }
    )
    made = tdce.Explainer(hidden=8, steps=5, progress="silent").fit(table, label=f"y{bad}", favourable="yes")
    made.save(tmp_path / "m<img src=x>.tdce")
    rows = table.drop(columns=f"y{bad}").head(6).set_axis([f"row{bad}{i}" for i in range(6)])
    rows = rows.assign(**{f"branch{bad}": [f"b{bad}", "c"] * 3})
    rows.iloc[0, 0] = 1_000  # which is remarked on
    answer = made.explain(rows, n=2, costs={f"n{bad}": 2})
    text = page_of(answer, tmp_path, title=f"title{bad}", population=made.population(table))
    assert text.count("<script") == text.count("</script") == 2  # the page's own
    assert "<img" not in text
    assert "alert(1)" in text
    people = data_of(text)["people"]
    assert people["label"][0] == f"Person row{bad}0"
    assert people["features"][1]["label"] == f"w{bad}"
    assert f"u{bad}" in people["features"][1]["texts"]


def test_a_page_asks_for_nothing_and_runs_only_its_own_script(tmp_path):
    text = page_of(written(), tmp_path)
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', text)[1]
    script = re.findall(r"<script>(.*?)</script>", text, flags=re.DOTALL)
    own = base64.b64encode(hashlib.sha256(script[0].encode()).digest()).decode()
    assert policy.startswith(f"default-src 'none'; script-src 'sha256-{own}';")
    assert not any(
        word in re.sub(r"http://www.w3.org/2000/svg", "", text)
        for word in ("http:", "https:", " src=", "@import", "url(")
    )


def test_analysts_see_what_each_change_is_worth(lent, tmp_path):
    answer = lent.explain(lending.refused(lent, 6), n=2)
    people = data_of(page_of(answer, tmp_path))["people"]
    for line, shown in zip((line for options in answer.lines for line in options), people["loss"], strict=True):
        assert shown == [round(loss, 2) for _, loss in line.reasons[:4]]  # changes are in the order of the reasons
    assert any(people["loss"])
    applicant = data_of(applicant_pages(answer, tmp_path / "pages").popitem()[1])["people"]
    assert applicant["loss"] == []
    assert applicant["reasons"] == {}
    budget = lent.explain(lending.refused(lent, 1), max_model_rows=3)
    (shown,), ((line,),) = data_of(page_of(budget, tmp_path))["people"]["loss"], budget.lines
    assert len(line.changes) == 1 or set(shown) <= {None}  # of a single change it is known without a query


def test_a_page_is_written_in_german(tmp_path):
    text = page_of(written(), tmp_path, language="de")
    assert '<html lang="de">' in text
    assert '<h2 id="people-h">Person für Person</h2>' in text
    assert data_of(text)["words"]["statuses"]["valid"] == "würde angenommen"
    measured = page_of(written(), tmp_path, language="de", metrics={"gower": 0.25, "two_sample": 0.5})
    assert cells(measured, "metrics")[1:] == [
        ["gower", "0,25", "niedrig", "wie viel sich änderte, über alle Merkmale gleich gewichtet: 0 nichts, 1 alles"],
        ["two_sample", "0,5", "0,5", "wie gut ein Klassifikator sie von zurückgehaltenen Zeilen der Zielklasse "
         "unterscheidet: seine AUC"],
    ]  # fmt: skip


def test_no_english_of_ours_is_left_on_a_german_page(lent, tmp_path):
    answer = lent.explain(lending.refused(lent, 30), n=2)
    text = page_of(answer, tmp_path, language="de", metrics=lent.evaluate(answer))
    english, german = load_catalogue("en").messages, str(load_catalogue("de").messages)
    said = [text for key, text in english.items() if key.startswith(("report_", "metric_", "status_"))]
    assert [each for each in said if len(each) > 7 and "{" not in each and each not in german and each in text] == []


# ---- many people


def pool(lent: tdce.Explainer, count: int) -> Answer:
    return repeat(lent.explain(lending.refused(lent, 40), n=2), count)


def test_ten_thousand_people_take_less_than_a_kilobyte_each_beyond_the_first_megabyte(lent, tmp_path):
    text = page_of(pool(lent, 10_000), tmp_path)
    assert len(data_of(text)["people"]["label"]) == 10_000
    assert (len(text.encode()) - (1 << 20)) / 10_000 < 1_000


def test_a_heavy_page_is_packed_and_says_the_same(lent, tmp_path, monkeypatch):
    answer = pool(lent, 200)
    plain = page_of(answer, tmp_path)
    monkeypatch.setattr(report_page, "PLAIN_BYTES", 0)
    monkeypatch.setattr(report_page, "PLAIN_BYTES_PER_ROW", 10)
    packed = page_of(answer, tmp_path)
    assert 'type="application/gzip+base64"' in packed
    assert len(packed) < len(plain)
    assert data_of(packed) == data_of(plain)
