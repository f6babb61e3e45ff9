"""The forms of words for values that most tables share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Text = dict[str, str]
"""A text in both languages."""


def both(english: str, german: str) -> Text:
    return {"en": english, "de": german}


def value(name: Text, fact: Text | None, clause: Text, instead: Text) -> dict[str, Text]:
    """All forms of a value; without a fact, people read the column's title and the value's name."""
    return {"name": name, "clause": clause, "instead": instead} | ({"fact": fact} if fact else {})


def filled(
    clause: Text, fact: Text | None, instead: Text, values: Mapping[str, tuple[Text, Text]]
) -> dict[str, dict[str, Text]]:
    """Values that share sentences: each has a name, and a phrase that replaces `*` in the sentences.

    `clause` and `fact` are sentences about the new and the old value; `instead` is how a clause mentions the old one.
    """
    return {
        key: value(name, fact and _put(fact, phrase), _put(clause, phrase), _put(instead, phrase))
        for key, (name, phrase) in values.items()
    }


def _put(sentence: Text, phrase: Text) -> Text:
    return {language: text.replace("*", phrase[language]) for language, text in sentence.items()}


AGE: dict[str, Any] = {
    "label": both("the age", "das Alter"),
    "verb": both("you were {after} years old instead of {before}", "Sie {after} statt {before} Jahre alt wären"),
    "fact": both("You are {value} years old", "Sie sind {value} Jahre alt"),
}
"""The words of an age."""
