"""Every value of every feature of the tables inside the package, as sentences put it, in golden files that were read
from beginning to end. `TDCE_GOLDEN=write pytest tests/test_phrases.py` renews them; read what then differs."""

import os
import re
from itertools import product
from pathlib import Path

import pytest

import tdce
from tdce.report import Speaker, languages
from tdce.schema import Categorical, Numeric, Schema

GOLDEN = Path(__file__).parent / "golden"
ALL_PAIRS = 8  # of values; of a feature with more, each value is said before and after one other
IF = {"en": "if", "de": "wenn"}

UNKNOWN = Schema(
    (
        Numeric("annual_inc", 0, 100_000),
        Numeric("rate", 0, 1, words={"format": "percent"}),
        Numeric("delinq_2yrs", -1, 10, 1, marks=(-1,), words={"values": {"-1": {"en": "never", "de": "nie"}}}),
        Numeric("dti", 0, 100, words={"label": {"en": "the debt ratio", "de": "die Schuldenquote"}, "unit": "%"}),
        Numeric("sum", 0, 10_000, words={"label": {"en": "the amount", "de": "der Betrag"}, "unit": "EUR",
                                         "format": "money"}),
        Numeric("reserves", 0, 10_000, words={"label": {"en": "the reserves", "de": "die freien Rücklagen"},
                                              "unit": "EUR", "format": "money"}),
        Numeric("open_since", 0, 30_000, words={"format": "date"}),
        Numeric("built", 1900, 2020, 1, words={"format": "year", "label": {"en": "the year of construction",
                                                                         "de": "das Baujahr"}}),
        Categorical("home_ownership", ("MORTGAGE", "OWN", "RENT")),
        Categorical("region", ("north", "south"), words={
            "label": {"en": "the region", "de": "die Region"},
            "values": {"north": {"en": "north", "de": "Norden"}, "south": {"en": "south", "de": "Süden"}},
        }),
        Categorical("has_phone", (False, True)),
    )
)  # fmt: skip
"""Columns that nobody has given words, or only some."""


def agrees(name: str, text: str) -> None:
    """With the file of that name; or the file is made to agree."""
    path = GOLDEN / name
    if os.environ.get("TDCE_GOLDEN") == "write":
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


def values(column) -> tuple:
    """All categories; of a number those that have words, the smallest and the largest one, and one that is 1."""
    if isinstance(column, Categorical):
        return column.categories
    worded = [int(key) for key in column.words.values]
    ends = [1] * (column.low < 1 < column.high) + [int(column.low), int(column.high)]
    return tuple(dict.fromkeys([*worded, *(ends if len(worded) < 2 else [])]))


def pairs(column) -> list[tuple]:
    known = values(column)
    if len(known) <= ALL_PAIRS:
        return [(before, after) for after, before in product(known, known) if before != after]
    return list(zip(known, (*known[1:], known[0]), strict=True))


def render(schema: Schema) -> str:
    talks = {language: Speaker.of(schema, language) for language in ("en", "de")}
    lines = []
    for column in schema:
        titles = " / ".join(talk.title(column.name) for talk in talks.values())
        lines += ["", f"# {column.name}: {titles}"]
        for cell in values(column):
            for talk in talks.values():
                lines.append(f"{talk.title(column.name)}: {talk.value(column.name, cell)}")
                lines.append(f"    {talk.fact(column.name, cell)}")
        for before, after in pairs(column):
            for language, talk in talks.items():
                lines.append(f"  {IF[language]} {talk.clause(column.name, before, after)}")
        for language, talk in talks.items() if column.missing else ():
            lines.append(f"    {talk.fact(column.name, None)}")
            lines.append(f"  {IF[language]} {talk.clause(column.name, None, values(column)[0])}")
    return "\n".join(lines[1:]) + "\n"


@pytest.mark.parametrize("name", ["german", "adult"])
def test_every_value_is_said_as_in_the_golden_file(name):
    agrees(f"phrases_{name}.txt", render(tdce.load(name).schema))


def test_the_flags_of_adult_are_said_as_in_the_golden_file():
    schema = tdce.load("adult", preset="paper").schema
    flags = tuple(column for column in schema if column.name.endswith("_flag"))
    agrees("phrases_flags.txt", render(Schema(flags)))


def test_columns_without_words_are_said_as_in_the_golden_file():
    agrees("phrases_unknown.txt", render(UNKNOWN))


@pytest.mark.parametrize("name", ["german", "adult"])
def test_every_value_of_every_feature_has_all_forms_in_every_language(name):
    for column in tdce.load(name).schema:
        words = column.words
        assert set(words.label) >= set(languages())
        if not isinstance(column, Categorical):
            assert set(words.verb) >= set(languages())
            assert set(words.fact) >= set(languages())
            continue
        assert set(words.values) == set(column.categories)
        for forms in words.values.values():
            assert {"name", "clause", "instead"} <= set(forms)
            assert all(set(phrase) >= set(languages()) for phrase in forms.values())


@pytest.mark.parametrize(
    "name", ["phrases_german.txt", "phrases_adult.txt", "phrases_flags.txt", "phrases_unknown.txt"]
)
def test_no_phrase_has_a_gap_a_brace_or_a_doubled_word(name):
    text = (GOLDEN / name).read_text(encoding="utf-8")
    for line in text.splitlines():
        said = line.strip()
        assert "  " not in said
        assert not set("{}*|") & set(said)
        assert not re.search(r"\b(\w+) \1\b", said), said
        assert not re.search(r"\s[,.;]", said), said


@pytest.mark.parametrize(
    "ugly",
    ["nobody instead of", "non-existent", "Wertvollste Besitz", "Zweck: einen", "Wohnung Eigentum statt",
     "wertvollste Besitz:", "statt nicht vorhanden"],
)  # fmt: skip
def test_what_was_hard_to_read_is_never_written(ugly):
    for path in GOLDEN.glob("phrases_*.txt"):
        assert ugly.lower() not in path.read_text(encoding="utf-8").lower()
