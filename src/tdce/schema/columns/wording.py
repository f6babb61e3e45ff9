"""How a column is shown to people: label, unit, number format, words for values, verb, and whether it may be named."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, Self, cast

from tdce._core import InputError, Name, Value, is_number, is_value, listing, show

Phrase = str | Mapping[str, str]
"""A text, or one for each language: `{"en": "your age", "de": "Ihr Alter"}`."""

Forms = Mapping[str, Phrase]
"""Several forms of what a value is called, each a phrase: its `name` in a table, and how sentences put it."""

FORMATS = ("plain", "money", "percent", "date", "year")
AUDIENCES = ("everyone", "analyst")
VERB_PLACES = ("label", "before", "after", "change")
"""What a verb may have in braces."""

FACT_PLACES = ("label", "value")
"""What the fact of a column may have in braces."""

VALUE_FORMS = {"name": (), "clause": ("instead",), "instead": (), "fact": ()}
"""The forms of a column's value, and what each may have in braces: `own` has the name "owned"; the fact "You own your
home"; as the new value the clause "you owned your home {instead}"; as the old one "instead of owning it"."""

OUTCOME_FORMS = {"name": (), "fact": (), "refusal": (), "clause": ()}
"""The same for a model's decision: "Approved", "your application was approved", "your application was not approved",
"your application would be approved"."""

MAX_TEXT_LENGTH = 1_000


@dataclass(frozen=True)
class Wording:
    """The words of one column, all of them optional."""

    checked: ClassVar[bool] = False  # whether made by `of`
    label: Phrase = field(default="", hash=False)  # "the amount"; by default the column's name as words
    unit: Phrase = field(default="", hash=False)  # "kg", "month|months" (singular, plural), a currency: "EUR"
    format: str = "plain"  # or money, percent (for shares), date, year, or a pattern: "#,##0.00"
    values: Mapping[str, Phrase | Forms] = field(default_factory=dict, hash=False)  # by category or number
    verb: Phrase = field(default="", hash=False)  # "lower", or a clause with placeholders: "{label} ran {change}"
    seen_by: str = "everyone"  # or "analyst": hidden from the people a decision is about
    named: bool = True  # False: never named to anybody
    title: Phrase = field(default="", hash=False)  # its name in a table; by default the label without its article
    fact: Phrase = field(default="", hash=False)  # a sentence about a person's own value: "The loan runs {value}"

    @classmethod
    def of(cls, column: Name, given: Any) -> Self:
        """Make a wording from a mapping or an unchecked wording; raise an error for anything invalid."""
        known = [each.name for each in fields(cls)]
        if isinstance(given, cls):
            if given.checked:
                return given
            given = {key: getattr(given, key) for key in known}
        if not isinstance(given, Mapping):
            raise InputError(f"{column!r}: words {show(given)} must be a mapping with some of {listing(known)}")
        for key in given:
            if key not in known:
                raise InputError(f"{column!r}: words have an unknown key {show(key)}; known: {listing(known)}")
        settings = dict(given)
        for key in ("label", "title", "unit", "verb", "fact"):
            if key in settings:
                settings[key] = _check_phrase(column, key, settings[key])
        if "values" in settings:
            settings["values"] = _check_values(column, settings["values"], VALUE_FORMS)
        words = cls(**settings)
        words._check(column)
        object.__setattr__(words, "checked", True)
        return words

    def entry(self) -> dict[str, Any]:
        """The entry in a schema's JSON, without defaults."""
        settings = {each.name: getattr(self, each.name) for each in fields(self)}
        return {key: value for key, value in settings.items() if value != getattr(NO_WORDING, key)}

    def among(self, values: tuple[Value, ...]) -> Self:
        """The same without words for values other than these."""
        known = {json_key(value) for value in values}
        return replace(self, values={key: phrase for key, phrase in self.values.items() if key in known})

    def texts(self) -> Iterator[str]:
        """The words for the label and the values, in every language."""
        values = [phrase for words in self.values.values() for phrase in _phrases(words)]
        for phrase in (self.label, self.title, *values):
            yield from filter(None, _texts(phrase))

    def _check(self, column: Name) -> None:
        if not isinstance(self.named, bool):
            raise InputError(f"{column!r}: named {show(self.named)} must be true or false")
        if not isinstance(self.seen_by, str) or self.seen_by not in AUDIENCES:
            raise InputError(f"{column!r}: seen_by {show(self.seen_by)} must be one of {listing(AUDIENCES)}")
        if not isinstance(self.format, str) or self.format not in FORMATS:
            _check_pattern(column, self.format)
        if self.format == "money":
            _check_currency(column, self.unit)
        for verb in _texts(self.verb):
            _check_verb(column, verb)
        for fact in _texts(self.fact):
            if fact and "<value>" not in (_filled(fact, FACT_PLACES) or ""):
                raise InputError(f"{column!r}: fact {show(fact)} must be a sentence with {{value}} in it (and perhaps "
                                 "{label})")  # fmt: skip


NO_WORDING = Wording()


def json_key(value: Any) -> str:
    """A value as a key of a JSON object: its text, `true`, `1`, `0.5`."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def value_form(words: Phrase | Forms, form: str) -> Phrase | None:
    """One form of the words for a value or a decision; None if it has no such form. A plain phrase is the name."""
    if _is_forms(words):
        return cast(Forms, words).get(form)
    return cast(Phrase, words) if form == "name" else None


def check_outcomes(given: Any) -> dict[str, Phrase | Forms]:
    """Check the words for a model's decisions: `{"good": {"en": "Approved", "de": "Bewilligt"}}`."""
    return _check_values("outcomes", given, OUTCOME_FORMS)


def _check_phrase(column: Name, key: str, given: Any, may_be_empty: bool = False) -> Phrase:
    if given == "" or _is_text(given):
        return cast(str, given)
    texts = (
        [*given, *(text for text in given.values() if text or not may_be_empty)] if isinstance(given, Mapping) else []
    )
    if texts and all(map(_is_text, texts)):
        return dict(given)
    raise InputError(f"{column!r}: {key} {show(given)} must be a text of one line, or a text for each language: "
                     '{"en": "…", "de": "…"}')  # fmt: skip


def _is_text(given: Any) -> bool:
    return isinstance(given, str) and 0 < len(given) <= MAX_TEXT_LENGTH and given.isprintable() and is_value(given)


def _check_values(column: Name, given: Any, forms: Mapping[str, tuple[str, ...]]) -> dict[str, Phrase | Forms]:
    if not isinstance(given, Mapping):
        raise InputError(f"{column!r}: values {show(given)} must be a mapping from values to texts")
    return {json_key(value): _check_value(column, value, words, forms) for value, words in given.items()}


def _check_value(column: Name, value: Any, words: Any, forms: Mapping[str, tuple[str, ...]]) -> Phrase | Forms:
    """Check the words for one value: a phrase, or a phrase per form, with known placeholders only."""
    if not _is_forms(words):
        return _check_phrase(column, f"the words of {show(value)}", words)
    checked = {}
    for form, phrase in words.items():
        if form not in forms:
            raise InputError(f"{column!r}: the words of {show(value)} have an unknown form {show(form)}; known: "
                             f"{listing(forms)}")  # fmt: skip
        unsaid = form == "instead"  # may be empty in some languages
        checked[form] = _check_phrase(column, f"the {form} of {show(value)}", phrase, unsaid)
        for text in _texts(checked[form]):
            if form != "name" and _filled(text, forms[form]) is None:
                places = listing([f"{{{place}}}" for place in forms[form]]) or "nothing"
                raise InputError(f"{column!r}: the {form} of {show(value)} is {show(text)}; it may have {places} in "
                                 "braces")  # fmt: skip
    return checked


def _is_forms(words: Any) -> bool:
    """Whether words are several forms rather than one phrase; names of forms are longer than those of languages."""
    return isinstance(words, Mapping) and any(key in VALUE_FORMS or key in OUTCOME_FORMS for key in words)


def _phrases(words: Phrase | Forms) -> Iterator[Phrase]:
    """All forms of the words for a value."""
    if _is_forms(words):
        yield from cast(Forms, words).values()
    else:
        yield cast(Phrase, words)


def _texts(phrase: Phrase) -> list[str]:
    """A phrase in all its languages."""
    return [phrase] if isinstance(phrase, str) else list(phrase.values())


def check_values(column: Name, words: Wording, known: tuple[Value, ...] | None) -> None:
    """Check that only these values have words; None: only numbers may."""
    keys = None if known is None else {json_key(value) for value in known}
    for key in words.values:
        if keys is None and not is_number(_number(key)):
            raise InputError(f"{column!r}: values has words for {show(key)}, which is not a number")
        if keys is not None and key not in keys:
            raise InputError(f"{column!r}: values has words for {show(key)}, not one of {listing(sorted(keys))}")


def _number(text: str) -> Any:
    try:
        return float(text)
    except ValueError:
        return None


def _check_pattern(column: Name, given: Any) -> None:
    from babel.numbers import format_decimal, parse_pattern  # imported here: few columns need it

    try:
        if isinstance(given, str) and len(given) <= MAX_TEXT_LENGTH and any(c.isdigit() for c in format_decimal(
                1234.5, parse_pattern(given), locale="en")):  # fmt: skip
            return
    except (ValueError, IndexError, OverflowError):
        pass
    raise InputError(f"{column!r}: format {show(given)} must be one of {listing(FORMATS)}, or a number pattern such "
                     "as '#,##0.00'")  # fmt: skip


def _check_currency(column: Name, unit: Any) -> None:
    from babel.numbers import is_currency

    if not isinstance(unit, str) or not is_currency(unit):
        raise InputError(f"{column!r}: the unit of money is {show(unit)}; it must be the code of a currency, such as "
                         "'EUR'")  # fmt: skip


def _check_verb(column: Name, verb: str) -> None:
    """Check that the words are a verb, or a clause whose placeholders can be filled in."""
    if not set("{}") & set(verb):
        return
    clause = _filled(verb, VERB_PLACES) or ""
    if "<after>" not in clause and "<change>" not in clause:
        raise InputError(f"{column!r}: verb {show(verb)} must be a verb, or a clause with {{change}} or {{after}} in "
                         "it (and perhaps {label} and {before})")  # fmt: skip


def _filled(text: str, places: tuple[str, ...]) -> str | None:
    """The text with its placeholders filled with marks; None if it has unknown placeholders."""
    try:
        return text.format(**{place: f"<{place}>" for place in places})
    except (ValueError, KeyError, IndexError, AttributeError):
        return None
