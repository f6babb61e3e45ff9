"""The speaker, which puts the lines of an answer into words, in one language and for one audience.

It says what would change the model's decision, promises nothing, and never names a feature that the schema hides.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import isnan
from typing import Any, Literal, Self, get_args

import pandas as pd

from tdce._core import Name, check_choice, is_blank, is_number, plain
from tdce.methods import LOW_SAFETY, MOST_REASONS, Line, Status
from tdce.models import TargetPart
from tdce.report.language.catalogue import Catalogue, load_catalogue
from tdce.report.language.formats import write_chance, write_date, write_money, write_number, write_percent, write_year
from tdce.report.language.note_text import Namer, mentions, note_text
from tdce.schema import NO_WORDING, Forms, Phrase, Schema, Wording, json_key, value_form

Audience = Literal["applicant", "analyst"]
GAP = "\0"  # placeholder for a part of a sentence; never occurs in a schema's words


@dataclass(frozen=True, eq=False)
class Speaker:
    """Sentences, letters, headlines and notes about the lines of an answer."""

    messages: Catalogue
    words: dict[Name, Wording]
    outcomes: dict[str, Phrase | Forms]
    audience: Audience
    followers: frozenset[Name] = frozenset()  # features whose change is a consequence of other changes

    @classmethod
    def of(cls, schema: Schema, language: str = "en", audience: Audience = "applicant") -> Self:
        """Make a speaker with the words of a schema.

        - `language`: `en`, `de`, optionally with a region for numbers and dates: `de-CH`.
        - `audience`: the applicant, whom the decision is about, or an analyst, who may also see features that the
          schema reserves for analysts.
        """
        words = {column.name: column.words for column in schema}
        audience = check_choice("audience", audience, get_args(Audience))
        return cls(load_catalogue(language), words, dict(schema.outcomes), audience, frozenset(schema.followers))

    @property
    def language(self) -> str:
        return self.messages.language

    def text(self, key: str, **values: Any) -> str:
        """A message of the catalogue."""
        return self.messages.text(key, **values)

    # Names and values

    def may_name(self, feature: Name) -> bool:
        """Whether this audience may be told that the feature matters."""
        words = self._words(feature)
        return words.named and (words.seen_by == "everyone" or self.audience == "analyst")

    def label(self, feature: Name) -> str:
        """The name of a feature in a sentence."""
        return self.translate(self._words(feature).label) or spoken_name(feature)

    def title(self, feature: Name) -> str:
        """The name of a feature in a table, without an article."""
        return self.translate(self._words(feature).title) or without_article(self.messages, self.label(feature))

    def value(self, feature: Name, cell: Any) -> str:
        """A cell in the form people write it: `3,200 €`, `24 months`, `owned`."""
        return " ".join(filter(None, self._written(feature, cell)))

    def target(self, line: Line) -> str:
        """The wanted outcome in words."""
        parts = [self._target_part(part) for part in line.wanted or (TargetPart("class", line.target),)]
        return self.messages.join(parts)

    def outcome(self, of: Any) -> str:
        """The model's outcome in quotation marks: in the words of the schema, or unchanged."""
        return self.text("quoted", text=self.outcome_name(of))

    def outcome_name(self, of: Any) -> str:
        """The model's outcome without quotation marks."""
        return self.translate(value_form(self.outcomes.get(json_key(of), ""), "name") or "") or str(of)

    def score(self, number: float, predicted: bool, border: float = 0.5) -> str:
        """A probability in percent, with enough digits to stay on its side of the threshold, or a predicted number."""
        if not predicted:
            return write_chance(self.messages, number, border)
        return write_number(
            self.messages, number, digits=15 if abs(number) >= 1e4 else 4, pattern=_prediction_pattern(number)
        )

    def share(self, number: float) -> str:
        """A share in whole percent."""
        return write_percent(self.messages, number, "rounded_share")

    def typical(self, plausibility: float) -> str:
        """`more typical than 37 % of real people with the desired outcome`; empty if unknown."""
        if isnan(plausibility):
            return ""
        key = "more_typical" if plausibility >= 0.01 else "less_typical"
        return self.text(key, share=self.share(min(plausibility, 0.99) if plausibility >= 0.01 else 0.99))

    def standing(self, line: Line) -> str:
        """How typical a line is and, if the model accepts it, how safely; a barely accepted line has a note."""
        safe = line.status == Status.VALID and line.safety >= LOW_SAFETY
        parts = (
            self.typical(line.plausibility),
            self.text("safely", share=self.share(min(line.safety, 0.99))) if safe else "",
        )
        return "; ".join(filter(None, parts))

    def status(self, status: str) -> str:
        return self.text(f"status_{Status(status).value}")

    # Lines of an answer

    def changes(self, line: Line) -> list[tuple[Name, Any, Any]]:
        """The changes that may be named."""
        return [change for change in line.changes if self.may_name(change[0])]

    def decisions(self, line: Line) -> list[tuple[Name, Any, Any]]:
        """The changes that may be named, without consequences of others."""
        return [change for change in self.changes(line) if change[0] not in self.followers]

    def consequences(self, line: Line) -> str:
        """`What follows: total paid: 240 instead of 120.`, or nothing."""
        following = [change for change in self.changes(line) if change[0] in self.followers]
        points = [self.text("point", label=self.title(name), change=self._change(name, *c)) for name, *c in following]
        return self.text("consequences", clauses=self.messages.join(points)) if points else ""

    def unnamed(self, line: Line) -> int:
        """The number of changes that may not be named."""
        return len(line.changes) - len(self.changes(line))

    def headline(self, line: Line) -> str:
        """The resulting decision, with the model's probability of the target, or its prediction."""
        border = next((part.low for part in line.wanted or () if part.kind == "between" and part.low), 0.5)
        before, after = (self.score(score, line.number, border) for score in (line.before, line.after))
        values = {"subject": self._subject(line), "target": self.target(line), "before": before, "after": after}
        return self._by_status("headline", line, values)

    def bullet(self, feature: Name, before: Any, after: Any) -> str:
        """One change: `term: 24 months instead of 36`, or with its verb, `lower the amount to 3,200 € instead of …`."""
        verb = self.translate(self._words(feature).verb)
        key = "point" if not verb or "{" in verb else f"do{self._open(verb)}"
        label = self.title(feature) if key == "point" else self.label(feature)
        return self.text(key, label=label, change=self._change(feature, before, after), verb=verb)

    def sentence(self, line: Line) -> str:
        """`The decision would be “good” if the loan ran 24 months instead of 36 and the amount were 3,200 € …`."""
        text = self._sentence(line, self.messages.join(self.clauses(line)))
        return " ".join(filter(None, [text, self.consequences(line)]))

    def summary(self, line: Line) -> str:
        """One sentence: what to change, the result, and how safe it is: `Approved, safely, if the loan ran …`."""
        known = line.status == Status.VALID and not isnan(line.safety)
        how = self.text("how_barely" if line.safety < LOW_SAFETY else "how_safely") if known else ""
        return self._sentence(line, self.messages.join(self.clauses(line)), how)

    def lead(self, line: Line) -> tuple[str, str]:
        """The text before and after the conditions of a line's sentence: `Approved if` and `.`."""
        before, _, after = self._sentence(line, GAP).partition(GAP)
        return before.strip(), after.strip()

    def _sentence(self, line: Line, clauses: str, how: str = "") -> str:
        """The sentence on what would change the decision; `how` follows the outcome."""
        values = {"subject": self._subject(line), "target": f"{self.target(line)}{how}", "clauses": clauses}
        if line.status == Status.VALID and (outcome := self.outcome_form(line, "clause")):
            text = self.text("sentence_clause", outcome=f"{outcome}{how}", **values)
        elif line.status == Status.VALID and (outcome := self.outcome_form(line, "name")):
            text = self.text("sentence_outcome", outcome=f"{outcome}{how}", **values)
        else:
            text = self._by_status("sentence", line, values)
        return capitalise(text)

    def clauses(self, line: Line) -> list[str]:
        """The conditions of a line's sentence, most important first, and the number of those not named."""
        ranks = {feature: rank for rank, (feature, _) in enumerate(line.reasons)}
        named = sorted(self.decisions(line), key=lambda change: ranks.get(change[0], len(ranks)))
        clauses = [self.clause(*change) for change in named]
        if hidden := self.unnamed(line):
            clauses.append(self.text("unnamed_too" if clauses else "unnamed_alone", count=hidden))
        return clauses

    def letter(self, line: Line) -> str:
        """A paragraph for a letter: the sentence, and a note that nothing is promised."""
        return f"{self.sentence(line)} {self.text('promise')}"

    def fact(self, feature: Name, cell: Any) -> str:
        """A person's own value as a sentence, `You rent your home.`; without words for it, `Home: rented`."""
        words = self._words(feature)
        fact = self._form(words, cell, "fact")
        if not fact and not _is_missing(cell) and (template := self.translate(words.fact)):
            fact = template.format(label=self.label(feature), value=self.value(feature, cell))
        if fact:
            return f"{capitalise(fact)}."
        return self.text("reason", label=capitalise(self.title(feature)), value=self.value(feature, cell))

    def outcome_form(self, line: Line, form: str) -> str:
        """One form of the schema's words for the target, if it is a single class that has them."""
        wanted = line.wanted or (TargetPart("class", line.target),)
        if len(wanted) > 1 or wanted[0].kind != "class":
            return ""
        return self.translate(value_form(self.outcomes.get(json_key(wanted[0].of), ""), form) or "")

    def reasons(self, line: Line) -> list[str]:
        """The principal reasons against the target, at most four: each feature with its present value."""
        own = {feature: before for feature, before, _ in line.changes}
        named = [feature for feature, _ in line.reasons if self.may_name(feature)][:MOST_REASONS]
        return [
            self.text("reason", label=capitalise(self.title(name)), value=self.value(name, own[name])) for name in named
        ]

    def note(self, line: Line) -> str:
        """The notes of a line, without anything that must not be named."""
        if not line.notes:
            parts = [part for part in line.note.split("; ") if not self._names_hidden(part)]
            return "; ".join(parts)
        return note_text(line.notes, self.messages, SpokenNames(self))

    def translate(self, phrase: Phrase) -> str:
        """A phrase of the schema in this language, else in English, else in any language."""
        if isinstance(phrase, str):
            return phrase
        for language in (self.messages.base_language, "en"):
            if language in phrase:
                return phrase[language]
        return next(iter(phrase.values()))

    # Parts of them

    def _subject(self, line: Line) -> str:
        """The subject of a sentence: the model's decision, or a predicted number."""
        return self.text("subject_prediction" if line.number else "subject_decision")

    def _by_status(self, form: str, line: Line, values: dict[str, str]) -> str:
        """The headline or sentence for the status of a line."""
        key = line.status
        if key == Status.INFEASIBLE:
            values["note"] = self.note(line)
            key += "" if values["note"] else "_alone"
        if key == Status.BEST_EFFORT and not line.changes:
            key = "nothing"
        return self.text(f"{form}_{key}", **values)

    def clause(self, feature: Name, before: Any, after: Any) -> str:
        """A change as a condition of a sentence: `the amount were 3,200 € instead of 4,800 €`."""
        words, change = self._words(feature), self._change(feature, before, after)
        if clause := self._form(words, after, "clause"):
            return " ".join(clause.format(instead=self._instead(feature, before)).split())
        verb, label = self.translate(words.verb), self.label(feature)
        if "{" in verb:
            old, new = self.value(feature, before), self.value(feature, after)
            return verb.format(label=label, change=change, before=old, after=new)
        if verb:
            return self.text(f"clause_do{self._open(verb)}", verb=verb, label=label, change=change)
        return self._plain_clause(feature, before, after)

    def _plain_clause(self, feature: Name, before: Any, after: Any) -> str:
        """The clause of a column without a verb, worded to be correct for any name of a column."""
        kind = self._kind_of_clause(feature, before, after)
        in_quotes = self._in_quotes if kind in ("answer", "entry") else self.value
        is_new = _is_missing(before) and kind not in ("amount", "number")
        return self.text(
            f"clause_{kind}_new" if is_new else f"clause_{kind}",
            label=self.label(feature),
            title=self.text("quoted", text=self.title(feature)),
            before=in_quotes(feature, before),
            after=in_quotes(feature, after),
            change=self._change(feature, before, after),
        )

    def _kind_of_clause(self, feature: Name, before: Any, after: Any) -> str:
        """The kind of clause: date, answer, entry, `amount` (a number with a singular article) or `number`."""
        words, cell = self._words(feature), plain(after)
        if (words.format == "date" or hasattr(after, "isoformat")) and write_date(self.messages, after) is not None:
            return "date"
        if isinstance(cell, bool):
            return "answer"
        has_words = any(self._form(words, each, "name") is not None for each in (before, after))
        if not is_number(cell) or words.format == "year" or has_words:
            return "entry"
        article = self.label(feature).partition(" ")[0].lower()
        return "amount" if article in self.text("singular_articles").split() else "number"

    def _instead(self, feature: Name, before: Any) -> str:
        """How the clause about a new value mentions the old one: `instead of renting it`."""
        if _is_missing(before):
            return ""
        instead = self._form(self._words(feature), before, "instead")
        old = " ".join(filter(None, self._quoted(feature, before)))
        return self.text("instead_of", before=old) if instead is None else instead

    def _form(self, words: Wording, cell: Any, form: str) -> str | None:
        """One form of the words for a value, if it has that form."""
        known = None if _is_missing(cell) else words.values.get(json_key(plain(cell)))
        phrase = None if known is None else value_form(known, form)
        return None if phrase is None else self.translate(phrase)

    def _open(self, verb: str) -> str:
        """The ending of the keys of messages for verbs such as `wait until`, which take no `to` after the label."""
        return "_open" if verb.split()[-1] in self.text("open_verbs").split() else ""

    def _change(self, feature: Name, before: Any, after: Any) -> str:
        """`24 months instead of 36`."""
        (new, unit), (old, old_unit) = self._quoted(feature, after), self._quoted(feature, before)
        if _is_missing(before):
            return self.text("new", after=f"{new} {unit}" if unit else new)
        if unit and old_unit:
            return self.text("instead_unit", after=new, before=old, after_unit=unit, before_unit=old_unit)
        return self.text(
            "instead", after=f"{new} {unit}" if unit else new, before=f"{old} {old_unit}" if old_unit else old
        )

    def _written(self, feature: Name, cell: Any) -> tuple[str, str]:
        """A cell without its unit, and its unit."""
        words = self._words(feature)
        if _is_missing(cell):
            return self.text("not_known"), ""
        if (name := self._form(words, cell, "name")) is not None:
            return name, ""
        if (words.format == "date" or hasattr(cell, "isoformat")) and (
            day := write_date(self.messages, cell)
        ) is not None:
            return day, ""
        cell = plain(cell)
        if isinstance(cell, bool):
            return self.text("yes" if cell else "no"), ""
        if not is_number(cell):
            return str(cell), ""
        number = float(cell)
        return self._number(words, number), "" if words.format == "money" else self._unit(words, number)

    def _number(self, words: Wording, number: float) -> str:
        if words.format == "money":
            return write_money(self.messages, number, str(words.unit))
        if words.format == "percent":
            return write_percent(self.messages, number)
        if words.format == "year":
            return write_year(number)
        if words.format in ("plain", "date"):
            return write_number(self.messages, number)
        return write_number(self.messages, number, words.format, digits=15)

    def _unit(self, words: Wording, number: float) -> str:
        """The unit, in the singular or in the plural."""
        forms = self.translate(words.unit).split("|")
        one = self.messages.locale.plural_form(abs(number)) == "one"
        return (forms[0] if one else forms[-1]).strip()

    def _quoted(self, feature: Name, cell: Any) -> tuple[str, str]:
        """A cell and its unit; a text without words in the schema is put in quotation marks."""
        text, unit = self._written(feature, cell)
        if isinstance(cell, str) and text == cell and json_key(cell) not in self._words(feature).values:
            return self.text("quoted", text=text), unit
        return text, unit

    def _in_quotes(self, feature: Name, cell: Any) -> str:
        """A cell with its unit; in quotation marks unless it is a number."""
        text, unit = self._written(feature, cell)
        if is_number(plain(cell)) and self._form(self._words(feature), cell, "name") is None:
            return f"{text} {unit}" if unit else text
        return self.text("quoted", text=text)

    def _target_part(self, part: TargetPart) -> str:
        if part.kind in ("class", "not", "between"):
            of = self.outcome(part.of)
            low, high = (end and write_percent(self.messages, end) for end in (part.low, part.high))
            return self.text(f"wanted_{part.kind}", of=of, low=low or self.score(0.0, False), high=high)
        low, high = (None if end is None else write_number(self.messages, end) for end in (part.low, part.high))
        wanted = self.text(f"wanted_{part.kind}", low=low, high=high)
        return self.text("wanted_named", name=spoken_name(part.of), wanted=wanted) if part.of else wanted

    def _names_hidden(self, text: str) -> bool:
        hidden = (name for name in self.words if not self.may_name(name))
        return any(
            mentions(text, name_or_phrase)
            for name in hidden
            for name_or_phrase in (str(name), spoken_name(name), *self.words[name].texts())
        )

    def _words(self, feature: Name) -> Wording:
        return self.words.get(feature, NO_WORDING)


class SpokenNames(Namer):
    """For people: names and numbers in notes as the speaker writes them."""

    def __init__(self, speaker: Speaker) -> None:
        self.speaker = speaker

    def columns(self, names: Iterable[Name]) -> list[str]:
        return [self.speaker.title(name) for name in names if self.speaker.may_name(name)]

    def rule(self, rule: str) -> str | None:
        hidden = (str(name) for name in self.speaker.words if not self.speaker.may_name(name))
        return None if any(mentions(rule, name) for name in hidden) else self.speaker.text("quoted", text=rule)

    def value(self, feature: Name, cell: Any) -> str:
        return self.speaker.value(feature, cell)

    def score(self, number: float) -> str:
        return write_number(self.speaker.messages, number, digits=3)


def spoken_name(name: Any) -> str:
    """A column's name as words: `years_at_work` is `years at work`."""
    return str(name).replace("_", " ")


def _prediction_pattern(number: float) -> str:
    return "#,##0" if abs(number) >= 1e4 else "#,##0.##########"


def _is_missing(cell: Any) -> bool:
    return is_blank(cell) or bool(pd.api.types.is_scalar(cell) and pd.isna(cell))


def capitalise(text: str) -> str:
    """Capitalise a text for the beginning of a sentence."""
    return text[:1].upper() + text[1:]


def without_article(messages: Catalogue, label: str) -> str:
    """A label as the title of a table: `the amount` is `amount`, `der wertvollste Besitz` is `wertvollster Besitz`."""
    article, _, rest = label.partition(" ")
    articles = messages.text("articles").split()
    if not rest or article.lower() not in articles:
        return label
    endings = messages.text("adjective_endings").split()
    return _strong(rest, endings[articles.index(article.lower())]) if endings else rest


def _strong(phrase: str, ending: str) -> str:
    """Inflect the adjectives at the start of a German phrase for use without its article; nouns have capitals."""
    words = phrase.split(" ")
    first_noun = next((i for i, word in enumerate(words) if not word[:1].islower()), 0)
    for i, word in enumerate(words[:first_noun]):
        if word.endswith("e"):
            words[i] = word[:-1] + ending
        elif word.endswith("en") and ending == "e":  # the plural
            words[i] = word[:-1]
    return " ".join(words)
