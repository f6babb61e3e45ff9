"""Letters: what they say, the templates they are made from, the files they are written to."""

import dataclasses
import datetime
import io
import os
import re
import sys
from pathlib import Path

import lending
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_cli import run

import tdce
from tdce import InputError
from tdce.methods.explanation import Line
from tdce.models.goal_wording import TargetPart
from tdce.report.language.catalogue import languages
from tdce.report.language.speaker import Speaker
from tdce.report.letters.blocks import Run, read_blocks, write_text
from tdce.report.letters.content import Letter, Stationery, compose_letters
from tdce.report.letters.document import write_document
from tdce.report.letters.template import PARTS, Template
from tdce.report.letters.writing import write_letter
from tdce.report.people import file_names

DAY = datetime.date(2026, 1, 31)
GERMAN = tdce.load("german")


def line(*changes, status="valid", safety=0.93, **more) -> Line:
    return Line(
        status, "good", 0.31, 0.62, 0.5, list(changes), "", wanted=(TargetPart("class", "good"),), safety=safety, **more
    )


def letter(language="en", *options: Line, reasons=("duration_months",), row=0, **stationery) -> Letter:
    rows = GERMAN.frame.iloc[[row]].reset_index(drop=True)
    speaker = Speaker.of(GERMAN.schema, language)
    paper = Stationery(**{"date": DAY, **stationery})
    return compose_letters(rows, [list(options)], [list(reasons)], speaker, paper)[0]


def text(written: Letter) -> str:
    return write_letter(written, Template.read(), "txt").decode()


SHORTER, OWN_HOME = ("duration_months", 36, 24), ("housing", "rent", "own")

ENGLISH_LETTER = """\
Example Bank
1 Market Street

                                                               31 January 2026

The decision in your case
=========================

Dear Ms Example,

We have assessed your case with the help of a statistical model. Your
application was not approved.

Why
---
The principal reason is:

- The loan is to run for 6 months.

What would change the decision
------------------------------
Your application would be approved if the loan ran for 24 months instead of 36
and you lived in a home of your own instead of in a rented home.

This result is stable: of ten models trained again on similar data, about 9
would decide the same.

What this letter is not
-----------------------
This letter is neither an offer nor a promise. It describes how the model
would decide if nothing but the points named here were different. Any new
decision is made on the information, the rules and the model that apply at
that time.

Whom to ask
-----------
If you have questions, or believe that some of this information is wrong,
please contact the desk, 01 23.

Yours sincerely,
Example Bank
"""

GERMAN_LETTER = """\
                                                               31. Januar 2026

Die Entscheidung in Ihrem Fall
==============================

Sehr geehrte Damen und Herren,

wir haben Ihren Fall mit Hilfe eines statistischen Modells geprüft. Ihr Antrag
wurde nicht bewilligt.

Warum
-----
Dafür war vor allem diese Angabe ausschlaggebend:

- Der Kredit soll 6 Monate laufen.

Was die Entscheidung ändern würde
---------------------------------
Ihr Antrag würde bewilligt, wenn der Kredit 24 statt 36 Monate liefe und Sie
in Wohneigentum statt zur Miete wohnten.

Dieses Ergebnis ist stabil: Von zehn Modellen, die mit ähnlichen Daten neu
trainiert werden, würden etwa 9 ebenso entscheiden.

Was dieses Schreiben nicht ist
------------------------------
Dieses Schreiben ist weder ein Angebot noch eine Zusage. Es beschreibt, wie
das Modell entschiede, wenn allein die hier genannten Punkte anders wären.
Jede neue Entscheidung richtet sich nach den Angaben, den Regeln und dem
Modell, die dann gelten.

An wen Sie sich wenden können
-----------------------------
Wenn Sie Fragen haben oder eine dieser Angaben für falsch halten, wenden Sie
sich bitte an uns.

Mit freundlichen Grüßen
"""


# What a letter says


def test_a_letter_in_english_reads_as_a_whole():
    rows = GERMAN.frame.iloc[[0]].assign(who="Ms  Example")
    paper = Stationery(DAY, "Example Bank\n1 Market Street\n", "the desk, 01 23", name="who")
    speaker = Speaker.of(GERMAN.schema)
    whole = compose_letters(rows, [[line(SHORTER, OWN_HOME)]], [["duration_months"]], speaker, paper)[0]
    assert text(whole) == ENGLISH_LETTER


def test_a_letter_in_german_reads_as_a_whole():
    assert text(letter("de", line(SHORTER, OWN_HOME))) == GERMAN_LETTER


def test_more_than_two_changes_are_a_list():
    changes = [SHORTER, OWN_HOME, ("telephone", "no", "yes")]
    assert (
        "Your application would be approved if\n\n- the loan ran for 24 months instead of 36,\n- you lived in a home "
        "of your own instead of in a rented home and\n- a telephone were registered in your name.\n"
    ) in text(letter("en", line(*changes)))
    german = letter("de", line(*changes)).ways[0]
    assert (german.lead, german.points[-1]) == ("Ihr Antrag würde bewilligt, wenn",
                                                "auf Ihren Namen ein Telefon angemeldet wäre.")  # fmt: skip


def test_several_ways_are_numbered_and_repetitions_are_left_out():
    whole = letter("en", line(SHORTER), line(OWN_HOME), line(SHORTER), line(status="best_effort"))
    assert [way.sentence.split(" if ")[1][:8] for way in whole.ways] == ["the loan", "you live"]
    written = text(whole)
    assert "Each of these would be enough on its own:\n\n1. Your application would be approved if the loan" in written
    assert "\n2. Your application would be approved if you lived" in written


@pytest.mark.parametrize(
    ("safety", "english", "german"),
    [(0.99, "stable: of ten models trained again on similar data, nearly all would", "würden fast alle ebenso"),
     (0.84, "stable: of ten models trained again on similar data, about 8 would", "würden etwa 8 ebenso"),
     (0.31, "uncertain: of ten models trained again on similar data, only about 3 would", "würden nur etwa 3 ebenso"),
     (0.01, "uncertain: of ten models trained again on similar data, hardly any would", "würde kaum eines ebenso")],
)  # fmt: skip
def test_safety_is_a_natural_frequency(safety, english, german):
    assert english in letter("en", line(SHORTER, safety=safety)).ways[0].safety
    assert german in letter("de", line(SHORTER, safety=safety)).ways[0].safety


def test_safety_that_is_not_known_is_not_mentioned():
    assert letter("en", line(SHORTER, safety=np.nan)).ways[0].safety == ""


def test_whoever_is_accepted_already_reads_that_and_no_reasons():
    whole = letter("en", line(status="already"))
    assert whole.decision.endswith("model. Your application was approved.")
    assert (whole.reasons, whole.ways, whole.no_way) == ([], [], "")
    assert "What would change" not in text(whole)
    assert "neither an offer nor a promise" in text(whole)


def test_whoever_has_no_way_reads_that_none_was_found():
    none = letter("de", line(status="infeasible"), reasons=())
    assert none.no_way == "Wir haben keine Änderung gefunden, die zu einer anderen Entscheidung führen würde."
    assert none.no_way[:40] in text(none).replace("\n", " ")
    closer = letter("en", line(SHORTER, status="best_effort"))
    assert closer.ways == []
    assert closer.no_way.endswith("would still not reach it, if the loan ran for 24 months instead of 36.")


def test_without_words_for_the_decision_the_letter_says_it_plainly():
    rows, schema = GERMAN.frame.head(1), dataclasses.replace(GERMAN.schema, outcomes={})
    for option, english in (
        (line(SHORTER), "The decision is not “good”."),
        (line(status="already"), "The decision is “good”."),
        (line(SHORTER)._replace(number=True, before=598.25, wanted=(TargetPart("at_least", None, low=620),)),
         "The prediction is 598.2; the aim is at least 620."),
    ):  # fmt: skip
        whole = compose_letters(rows, [[option]], [[]], Speaker.of(schema), Stationery(DAY))[0]
        assert whole.decision.endswith(f"model. {english}")


@pytest.mark.parametrize("language", languages())
def test_a_letter_names_nothing_that_is_hidden(language):
    schema = GERMAN.schema.change("housing", words={**GERMAN.schema["housing"].words.entry(), "seen_by": "analyst"})
    rows, speaker = GERMAN.frame.head(1), Speaker.of(schema, language)
    whole = compose_letters(rows, [[line(SHORTER, OWN_HOME)]], [["duration_months"]], speaker, Stationery(DAY))[0]
    assert "housing" not in whole.row
    for form in ("html", "txt"):
        written = write_letter(whole, Template.read(), form).decode()
        assert not any(word in written for word in ("home", "rented", "Wohn", "Miete"))


def test_a_template_sees_pass_through_columns_as_they_are_and_features_as_people_write_them():
    rows = GERMAN.frame.head(1).assign(postcode=10115, nothing=None)
    whole = compose_letters(rows, [[line(SHORTER)]], [[]], Speaker.of(GERMAN.schema), Stationery(DAY))[0]
    assert whole.row["postcode"] == "10115"
    assert whole.row["nothing"] == ""
    assert whole.row["credit_amount"] == "1,169 DM"


def test_the_default_date_is_today():
    assert letter("en", line(SHORTER), date=None, today=datetime.date(2030, 12, 24)).date == "24 December 2030"


# Templates


def test_what_the_table_says_is_escaped():
    rows = GERMAN.frame.head(1).assign(who="<script>alert(1)</script> & {{ 7 * 7 }}")
    paper = Stationery(DAY, sender="<b>Bank</b>", contact="<i>x</i>", subject="<u>", name="who")
    whole = compose_letters(rows, [[line(SHORTER)]], [[]], Speaker.of(GERMAN.schema), paper)[0]
    html = write_letter(whole, Template.read(), "html").decode()
    assert "<script" not in html
    assert "&lt;script&gt;alert(1)&lt;/script&gt; &amp; {{ 7 * 7 }}" in html
    assert not re.search(r"<(b|i|u)>", html)
    assert "<script>alert(1)</script> & {{ 7 * 7 }}" in text(whole)  # where it is no markup


def test_the_users_own_template_is_used(tmp_path):
    path = tmp_path / "own.html"
    path.write_text(
        "\ufeff{% macro item(t) %}<li>{{ t }}</li>{% endmacro %}{% set n = namespace(i=0) %}<p>{{ id }}: "
        "{{ row.purpose }}, {{ ways[0].points | join('|') }}</p>{% for r in reasons %}{{ item(r) }}{% endfor %}",
        encoding="utf-8",
    )
    html = Template.read(path).render(letter("en", line(SHORTER)))
    assert html == (
        "<p>0: radio or television, the loan ran for 24 months instead of 36.</p>"
        "<li>The loan is to run for 6 months.</li>"
    )


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("a\n{% if ways %}\nb", "the template T.html, line 3: Unexpected end of template"),
        ("a\n\n{{ dat }}", "the template T.html, line 3: there is no 'dat'; did you mean 'date'? known: id, language"),
        ("{% frob %}", "the template T.html, line 1: Encountered unknown tag 'frob'"),
        ("{{ date | nothing }}", "the template T.html, line 1: No filter named 'nothing'"),
        ("{% include 'x.html' %}", "the template T.html, line 1: "),
        ("\n\n\n{{ row.nobody }}", "the template T.html, line 4: 'dict object' has no attribute 'nobody'"),
        ("\n{{ ways[7].sentence }}", "the template T.html, line 2: "),
        ("\n{{ 1 / 0 }}", "the template T.html, line 2: division by zero"),
        ("\n{{ date.__class__.__mro__ }}", "the template T.html, line 2: access to attribute '__class__' of 'str'"),
        ("{{ reasons.append('x') }}", "the template T.html, line 1: "),
        ("{% for i in range(999999999) %}{% endfor %}", "the template T.html, line 1: Range too big"),
    ],
)  # fmt: skip
def test_a_broken_template_is_named_with_its_line(template, message):
    with pytest.raises(InputError) as error:
        Template.parse(template, "T.html").render(letter("en", line(SHORTER)))
    assert str(error.value).startswith(message)


def test_a_template_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(InputError, match=r"the template .*none\.html cannot be read: No such file"):
        Template.read(tmp_path / "none.html")
    (tmp_path / "latin.html").write_bytes("Grüße".encode("latin-1"))
    with pytest.raises(InputError, match=r"latin\.html is not in UTF-8; save it as UTF-8"):
        Template.read(tmp_path / "latin.html")
    (tmp_path / "big.html").write_bytes(b" " * (1 << 20) + b" ")
    with pytest.raises(InputError, match="has 1,048,577 bytes; at most 1,048,576"):
        Template.read(tmp_path / "big.html")


def test_the_parts_that_docs_list_are_those_of_a_letter():
    docs = (Path(__file__).parent.parent / "docs" / "language.md").read_text(encoding="utf-8")
    table = docs.partition("## Letters")[2].partition("\n## ")[0]
    named = {name for cells in re.findall(r"^\| (`.*?) \|", table, flags=re.MULTILINE) for name in
             re.findall(r"`(\w+)", cells)}  # fmt: skip
    assert named == set(PARTS)


# The other forms


def test_blocks_are_what_a_browser_shows():
    html = (
        "<html><head><title>t</title><style>p {}</style></head><body>loose <!-- no -->text<p>  a\n <b> bold </b>and "
        "<em>it</em><br> next  </p><h1>Head</h1><ul><li>one</li><li><p>two &amp; 3</p></li></ul><ol><li>x<li>y</ol>"
        "<p class='x date'>right</p><script>no()</script><p> </p></body></html>"
    )
    blocks = read_blocks(html)
    assert [(b.kind, b.number, b.right, b.text) for b in blocks] == [
        ("paragraph", 0, False, "loose text"), ("paragraph", 0, False, "a bold and it\nnext"),
        ("heading", 0, False, "Head"), ("bullet", 1, False, "one"), ("bullet", 2, False, "two & 3"),
        ("number", 1, False, "x"), ("number", 2, False, "y"), ("paragraph", 0, True, "right"),
    ]  # fmt: skip
    assert blocks[1].runs[1:3] == [Run("bold ", bold=True), Run("and ")]
    assert write_text(blocks).splitlines()[:9] == [
        "loose text", "", "a bold and it", "next", "", "Head", "====", "", "- one",
    ]  # fmt: skip


def test_text_is_wrapped_and_hangs_in_lists():
    lines = write_text(read_blocks(f"<ol><li>{'word ' * 40}</li></ol>")).splitlines()
    assert max(map(len, lines)) <= 78
    assert lines[0].startswith("1. word")
    assert all(each.startswith("   word") for each in lines[1:])


@given(st.text(max_size=300))
def test_any_text_survives_as_text(words):
    from html import escape

    said = " ".join(re.sub(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff\s]+", " ", words).split(" ")).strip()
    html = f"<p>{escape(said)}</p>"
    assert " ".join(block.text for block in read_blocks(html)).split() == said.split()


def test_a_document_has_the_paragraphs_and_the_same_bytes_each_time():
    docx = pytest.importorskip("docx")
    whole = letter("de", line(SHORTER, OWN_HOME), sender="Bank\nStraße 1")
    made = write_letter(whole, Template.read(), "docx")
    assert made == write_letter(whole, Template.read(), "docx")
    document = docx.Document(io.BytesIO(made))
    blocks = read_blocks(Template.read().render(whole))
    assert [p.text for p in document.paragraphs] == [block.text for block in blocks]
    styles = {p.text: p.style.name for p in document.paragraphs}
    assert styles["Die Entscheidung in Ihrem Fall"] == "Heading 1"
    assert styles["Warum"] == "Heading 2"
    assert styles["Der Kredit soll 6 Monate laufen."] == "List Bullet"
    assert document.core_properties.title == "Die Entscheidung in Ihrem Fall"
    assert document.core_properties.author == ""
    bold = docx.Document(io.BytesIO(write_document(read_blocks("<ol><li>a <b>b</b></ol>"), "t", "en")))
    assert bold.paragraphs[0].text == "1. a b"
    assert [run.bold for run in bold.paragraphs[0].runs] == [None, None, True]


def test_a_document_needs_its_extra(monkeypatch, tmp_path, answer):
    monkeypatch.setitem(sys.modules, "docx", None)
    monkeypatch.setattr("tdce._core.extras.find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"needs python-docx; install it with `pip install 'tdce\[letters\]'`"):
        answer.to_letters(tmp_path / "out", forms=["docx"])
    assert not list(tmp_path.iterdir())


# Files


def test_ids_that_are_safe_name_their_files_and_others_get_a_hash():
    safe = ["A-1", "12.5", "Zoë_2", "名前"]
    assert file_names(safe) == safe
    odd = ["../../etc/passwd", "a/b", "a b", "", "..", "con", "NUL.txt", "x" * 200, "-a", "a\0b", "."]
    names = file_names(odd)
    assert len(set(names)) == len(odd)
    for name in names:
        assert re.fullmatch(r"\w[\w.-]*-[0-9a-f]{8}", name)
        assert len(name.encode()) < 250
    assert file_names(["a/b", "a-b"])[1] == "a-b"
    anna, small = file_names(["Anna", "anna"])
    assert anna.casefold() != small.casefold()


@given(st.lists(st.text(max_size=40), max_size=20))
def test_names_of_files_are_different_and_safe(ids):
    names = file_names(ids)
    assert len({name.casefold() for name in names}) == len(ids)
    for name in names:
        assert not set(name) & set('/\\:*?"<>|\0\n ')
        assert name not in ("", ".", "..")
        assert len(name.encode()) < 250


@pytest.fixture(scope="module")
def explainer() -> tdce.Explainer:
    return lending.explainer()


@pytest.fixture(scope="module")
def answer(explainer):
    people = lending.refused(explainer, 3)
    return explainer.explain(people.assign(person=["A/1", "B 2", "C-3"], called=["Ada", None, "Cyd"]), n=2)


def test_an_answer_gives_a_letter_for_each_row(answer):
    letters = answer.letters("de", date="2026-01-31", sender="Bank", contact="uns", subject="Bescheid", name="called")
    assert len(letters) == len(answer.rows)
    assert letters[0].startswith("Bank\n")
    assert "\nBescheid\n" in letters[0]
    assert "\nGuten Tag Ada,\n" in letters[0]
    assert "\nSehr geehrte Damen und Herren,\n" in letters[1]
    assert letters == answer.letters("de", date=DAY, sender="Bank", contact="uns", subject="Bescheid", name="called")
    assert answer.letters("de", form="html", date=DAY)[0].startswith("<!doctype html>")


def test_the_reasons_are_those_of_the_first_option_even_if_labels_repeat(answer):
    same = dataclasses.replace(answer, rows=answer.rows.set_axis([7] * len(answer.rows)))
    named = answer._named_reasons(answer.speaker())
    assert same._named_reasons(answer.speaker()) == named
    own = answer.reasons().query("option == 0")
    assert named == [own[own["row"] == row]["feature"].tolist() for row in answer.rows.index]
    assert any(named)


def test_what_an_applicant_may_not_see_takes_no_place_among_the_reasons(explainer):
    people = lending.refused(explainer, 20)
    hidden = explainer.with_words({"income": {"seen_by": "analyst"}}).explain(people, closeness=0.2)
    named = hidden._named_reasons(hidden.speaker())
    assert "income" in set(hidden.reasons()["feature"])
    assert not any("income" in some for some in named)


def test_letters_are_files_named_by_id(answer, tmp_path):
    forms = ["html", "txt", "docx"] if "docx" in sys.modules or _has_docx() else ["html", "txt"]
    paths = answer.to_letters(tmp_path / "out", "en", forms=forms, id="person", date=DAY)
    names = file_names(["A/1", "B 2", "C-3"])
    assert [path.name for path in paths] == [f"{name}.{form}" for name in names for form in forms]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == sorted(path.name for path in paths)
    assert (tmp_path / "out" / "C-3.txt").read_text(encoding="utf-8") == answer.letters("en", date=DAY)[2]
    again = answer.to_letters(tmp_path / "again", "en", forms=forms, id="person", date=DAY)
    assert [path.read_bytes() for path in again] == [path.read_bytes() for path in paths]
    unnamed = answer.to_letters(tmp_path / "plain", date=DAY)
    assert [path.stem for path in unnamed] == [str(label) for label in answer.rows.index]


def _has_docx() -> bool:
    from importlib.util import find_spec

    return find_spec("docx") is not None


def test_a_folder_is_never_overwritten(answer, tmp_path):
    (tmp_path / "empty").mkdir()
    answer.to_letters(tmp_path / "empty", date=DAY)
    assert len(list((tmp_path / "empty").iterdir())) == 3
    before = sorted((path.name, path.read_bytes()) for path in (tmp_path / "empty").iterdir())
    with pytest.raises(InputError, match="empty holds files already; name a new folder, or empty this one"):
        answer.to_letters(tmp_path / "empty", date="2027-01-01")
    assert sorted((path.name, path.read_bytes()) for path in (tmp_path / "empty").iterdir()) == before
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError, match="file is a file; name a new folder"):
        answer.to_letters(tmp_path / "file")
    with pytest.raises(InputError, match=r"there is no folder .*none to make out in"):
        answer.to_letters(tmp_path / "none" / "out")


def test_all_letters_are_written_or_none(answer, tmp_path, monkeypatch):
    broken = tmp_path / "broken.html"
    broken.write_text("{{ date }}\n{% if id == 'C-3' %}{{ ways[99].lead }}{% endif %}")
    (tmp_path / "place").mkdir()
    with pytest.raises(InputError, match=r"broken\.html, line 2: "):
        answer.to_letters(tmp_path / "place" / "out", id="person", template=broken)
    assert list((tmp_path / "place").iterdir()) == []

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(InputError, match=r"out cannot be written: No space left on device; make room"):
        answer.to_letters(tmp_path / "place" / "out")
    assert list((tmp_path / "place").iterdir()) == []


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="whoever is root may write everywhere")
def test_a_folder_that_cannot_be_made_is_named(answer, tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(InputError, match="cannot be written: Permission denied"):
        answer.to_letters(tmp_path / "out")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"forms": []}, "forms is []; it must be a list of some of html, txt, docx"),
        ({"forms": "html"}, "forms is 'html'; it must be a list"),
        ({"forms": ["pdf"]}, "form is 'pdf'; it must be one of html, txt, docx"),
        ({"forms": ["txt", "txt"]}, "forms is ['txt', 'txt']; name each form once"),
        ({"id": "persn"}, "id: there is no column 'persn'; did you mean 'person'? known: income, debt"),
        ({"id": "same"}, "column 'same' has the id '1' twice, in rows 1 and 2; each letter needs one of its own"),
        ({"id": "called"}, "column 'called' has no id in row 2; each letter needs one"),
        ({"name": "x"}, "name: there is no column 'x'"),
        ({"date": "31.1.2026"}, "date is '31.1.2026'; it must be a date, such as 2026-01-31"),
        ({"date": 3}, "date is 3; it must be a date"),
        ({"date": datetime.datetime(2026, 1, 31, 5)}, "it must be a date"),
        ({"language": "xx"}, "language is 'xx'; known: de, en"),
        ({"sender": 3}, "sender is 3; it must be text"),
        ({"template": "none.html"}, "the template none.html cannot be read"),
    ],
)  # fmt: skip
def test_what_cannot_be_written_is_named(answer, tmp_path, given, message):
    odd = dataclasses.replace(answer, rows=answer.rows.assign(same=1))
    with pytest.raises(InputError) as error:
        odd.to_letters(tmp_path / "out", **given)
    assert message in str(error.value)
    assert not list(tmp_path.iterdir())


def test_the_form_of_a_letter_that_is_returned_is_checked(answer):
    with pytest.raises(InputError, match="form is 'docx'; it must be one of txt, html"):
        answer.letters(form="docx")


# The command line


def test_the_command_writes_a_folder(explainer, tmp_path):
    explainer.save(tmp_path / "a.tdce")
    people = lending.refused(explainer, 3).assign(person=["A/1", "B 2", "C-3"])
    people.to_csv(tmp_path / "rows.csv", index=False)
    command = ["letters", "a.tdce", "rows.csv", "--out", "post", "--id", "person", "--format", "txt,html"]
    command += ["--language", "de", "--date", "2026-01-31", "--sender", "Bank", "--sender", "Straße 1"]
    command += ["--contact", "die Auskunft", "-n", "2"]
    done = run(*command, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("Written: post (6 files)\n")
    expected = explainer.explain(pd.read_csv(tmp_path / "rows.csv"), n=2).letters(
        "de", date=DAY, sender="Bank\nStraße 1", contact="die Auskunft"
    )
    written = [(tmp_path / "post" / f"{name}.txt").read_text(encoding="utf-8") for name in file_names(people["person"])]
    assert written == expected
    again = run(*command, cwd=tmp_path)
    assert (again.returncode, again.stderr) == (
        2,
        "tdce: post holds files already; name a new folder, or empty this one\n",
    )
    (tmp_path / "own.html").write_text("<p>{{ dat }}</p>")
    broken = run(*command[:4], "new", "--template", "own.html", cwd=tmp_path)
    assert broken.returncode == 2
    assert broken.stderr.startswith("tdce: the template own.html, line 1: there is no 'dat'; did you mean 'date'?")
    assert not (tmp_path / "new").exists()
