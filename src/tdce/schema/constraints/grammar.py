"""How a rule is read: a small grammar of our own, nothing of which is ever run as code.

    rule       = "if" rule "then" rule | either
    either     = both {"or" both}
    both       = single {"and" single}
    single     = {"not"} comparison
    comparison = sum {("<" | "<=" | ">" | ">=" | "==" | "!=") sum} | sum ["not"] "in" "(" constant {"," constant} ")"
    sum        = product {("+" | "-") product}
    product    = part {("*" | "/") part}
    part       = {"-"} (constant | column | "abs" "(" sum ")" | "missing" "(" column ")" | "(" rule ")")
    column     = name | "was" "(" name ")"                what is proposed, or what the person has now
    name       = a plain word | `any name`                a backtick inside is doubled
    constant   = number | "text" | 'text' | true | false  a quote inside is doubled

{} any number of times, [] once or not at all.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from difflib import get_close_matches
from typing import Any, NamedTuple, TypeGuard

import numpy as np

from tdce._core import LARGEST, InputError, Name, Value, listing, show
from tdce.schema.columns.base import Column
from tdce.schema.constraints.statements import (
    ORDERS,
    STEPS,
    AllOf,
    AnyOf,
    Applied,
    Arithmetic,
    Cell,
    Comparison,
    Constant,
    Missing,
    OneOf,
    Ranked,
    Statement,
    Term,
)

DEEPEST = 30  # of parentheses and ifs inside each other
ASIDE = 60  # characters that an error shows on either side of a mistake

Node = Term | Statement

FUNCTIONS = ("abs", "missing", "was")
KEYWORDS = ("and", "or", "not", "if", "then", "in", "true", "false", *FUNCTIONS)
EQUALITY = ("==", "!=")
SIGNS = (*ORDERS, *STEPS, "(", ")", ",")
MEANT = {"=": "==", "=<": "<=", "=>": ">=", "<>": "!=", "≤": "<=", "≥": ">=", "≠": "!=", "!": "not", "&": "and",
         "&&": "and", "|": "or", "||": "or", "[": "(", "]": ")", "−": "-", "×": "*", "“": '"', "”": '"'}  # fmt: skip
NULL = ("none", "null", "nan", "na")

WORD = re.compile(r"[^\W\d]\w*")
TOKEN = re.compile(rf"""
    (?P<number> (?: [0-9]+\.?[0-9]* | \.[0-9]+ ) (?: [eE][+-]?[0-9]+ )? )
  | (?P<word>   {WORD.pattern} )
  | (?P<name>   ` (?: [^`] | `` )*+ ` )
  | (?P<text>   " (?: [^"] | "" )*+ " | ' (?: [^'] | '' )*+ ' )
  | (?P<sign>   <= | >= | == | != | <> | =< | => | && | \|\| | \S )
""", re.VERBOSE)  # fmt: skip


def named(name: Name) -> str:
    """A column's name as a rule writes it."""
    plain = isinstance(name, str) and WORD.fullmatch(name) and name not in KEYWORDS
    return str(name) if plain else f"`{str(name).replace('`', '``')}`"


def written(value: Value) -> str:
    """A constant as a rule writes it."""
    if isinstance(value, str):
        return '"' + value.replace('"', '""') + '"'
    return str(value).lower()


class Token(NamedTuple):
    kind: str  # number, word, name, text, sign or end
    text: str
    at: int

    def __str__(self) -> str:
        return "the end" if self.kind == "end" else show(self.text, spell=str)

    @property
    def content(self) -> str:
        """Without quotes or backticks."""
        quote = self.text[0]
        return self.text[1:-1].replace(2 * quote, quote)


class Parser:
    """One method for each line of the grammar; each leaves `now` at the first token that is not its own."""

    def __init__(self, text: str, features: Iterable[Column]) -> None:
        self.text, self.features = text, tuple(features)
        self.names = tuple(column.name for column in self.features)
        self.columns: dict[Name, None] = {}
        self.depth = 0
        self.tokens = self._tokens()
        self.now = next(self.tokens)

    def whole(self) -> Statement:
        if not self.text:
            raise InputError("the rule is empty; write one, such as loan <= 5 * income")
        statement = self._true_or_false(self.now, self.rule())
        if self.now.kind != "end":
            raise self._wrong(self.now, f"{self.now} does not belong here{self._remedy(self.now)}")
        if not self.columns:
            raise self._wrong(0, f"the rule names no column; known: {listing(map(named, self.names))}")
        return statement

    def rule(self) -> Node:
        self.depth += 1
        if self.depth > DEEPEST:
            raise self._wrong(self.now, f"more than {DEEPEST} parentheses or ifs are inside each other; "
                                        "give it as several rules")  # fmt: skip
        found: Node
        if self._take("if"):
            condition = self._true_or_false(self.now, self.rule())
            self._expect("then")
            found = AnyOf((condition.negated(), self._true_or_false(self.now, self.rule())))
        else:
            found = self.either()
        self.depth -= 1
        return found

    def either(self) -> Node:
        return self._joined("or", self.both, AnyOf)

    def both(self) -> Node:
        return self._joined("and", self.single, AllOf)

    def single(self) -> Node:
        nots = self._count("not")
        if not nots:
            return self.comparison()
        statement = self._true_or_false(self.now, self.comparison())
        return statement.negated() if nots % 2 else statement

    def comparison(self) -> Node:
        start, left = self.now, self.sum()
        if self._sees("in", "not"):
            negated = self._take("not")
            self._expect("in")
            found = AnyOf(tuple(self._compared(start, left, "==", *constant) for constant in self.constants()))
            return found.negated() if negated else found
        links: list[Statement] = []
        while order := self._take(*ORDERS):
            middle, right = self.now, self.sum()
            links.append(self._compared(start, left, order.text, middle, right))
            start, left = middle, right
        return AllOf(tuple(links)) if len(links) > 1 else links[0] if links else left

    def constants(self) -> Iterator[tuple[Token, Constant]]:
        opening = self._expect("(")
        while True:
            start, found = self.now, self.part()
            if not isinstance(found, Constant):
                raise self._wrong(start, f"{start} is no constant; a list holds numbers, texts, true or false")
            yield start, found
            if not self._take(","):
                return self._close(opening)

    def sum(self) -> Node:
        return self._computed(("+", "-"), self.product)

    def product(self) -> Node:
        return self._computed(("*", "/"), self.part)

    def part(self) -> Node:
        minuses = self._count("-")
        if not minuses:
            return self.operand()
        term = self._number(self.now, self.operand())
        if minuses % 2 == 0:
            return term
        if isinstance(term, Constant) and not isinstance(term.of, str):
            return Constant(-term.of)
        return Applied(np.negative, term)

    def operand(self) -> Node:
        token = self._next()
        if token.kind == "number":
            return Constant(self._value(token))
        if token.kind == "text":
            return Constant(token.content)
        if token.text in ("true", "false"):
            return Constant(token.text == "true")
        if token.kind == "name" or (token.kind == "word" and token.text not in KEYWORDS):
            return self._cell(token)
        if token.text == "(" or (token.text in FUNCTIONS and self._sees("(")):
            opening = token if token.text == "(" else self._next()
            start, found = self.now, self.rule()
            self._close(opening)
            return found if opening is token else self._applied(token.text, start, found)
        raise self._wrong(token, f"a value is expected here, not {token}{self._remedy(token)}")

    def _applied(self, function: str, start: Token, found: Node) -> Node:
        if function == "abs":
            return Applied(np.absolute, self._number(start, found))
        if not isinstance(found, Cell) or (found.was and function == "was"):
            raise self._wrong(start, f"{function}(...) takes the name of one column")
        return Missing(found) if function == "missing" else replace(found, was=True)

    def _joined(self, word: str, parse: Callable[[], Node], join: Callable[[tuple[Statement, ...]], Statement]) -> Node:
        start, first = self.now, parse()
        if not self._sees(word):
            return first
        parts = [self._true_or_false(start, first)]
        while self._take(word):
            parts.append(self._true_or_false(self.now, parse()))
        return join(tuple(parts))

    def _computed(self, signs: tuple[str, ...], parse: Callable[[], Node]) -> Node:
        start, first = self.now, parse()
        if not self._sees(*signs):
            return first
        first, rest = self._number(start, first), []
        while sign := self._take(*signs):
            rest.append((sign.text, self._number(self.now, parse())))
        return Arithmetic(first, tuple(rest))

    def _true_or_false(self, start: Token, found: Node) -> Statement:
        if isinstance(found, Statement):
            return found
        raise self._wrong(start, f"{_spelled(found)} alone is neither true nor false; compare it with a value")

    def _number(self, start: Token, found: Node) -> Term:
        if isinstance(found, Term) and _is_number(found):
            return found
        raise self._wrong(start, f"{_spelled(found)} is no number; only numbers can be computed with")

    def _compared(self, start: Token, left: Node, order: str, middle: Token, right: Node) -> Statement:
        """Numbers by size, categories by their values."""
        if _is_number(left) and _is_number(right):
            return Comparison(left, order, right)
        if _is_category(left) and isinstance(right, Term):
            return self._matched(start, left, order, middle, right)
        if _is_category(right) and isinstance(left, Term):
            return self._matched(middle, right, ORDERS[order].flipped, start, left)
        token, wrong, other = (middle, right, left) if _is_number(left) or _is_category(left) else (start, left, right)
        raise self._wrong(token, f"{_spelled(wrong)} cannot be compared with {_spelled(other)}; "
                                 "compare numbers with numbers, and columns of categories with them")  # fmt: skip

    def _matched(self, start: Token, cell: Cell, order: str, middle: Token, other: Term) -> Statement:
        self._check_ordered(start, cell, order)
        if order not in EQUALITY:
            return self._ranked(cell, order, middle, other)
        holds, positions = ORDERS[order].holds, {_key(c): i for i, c in enumerate(cell.categories)}
        known = listing(map(written, cell.categories))
        if isinstance(other, Constant):
            if _key(other.of) not in positions:
                meant = _meant(str(other.of), cell.categories, written)
                raise self._wrong(middle, f"{_spelled(cell)} has no category {_spelled(other)}; {meant}known: {known}")
            position = positions[_key(other.of)]
            return OneOf(cell, tuple(i for i in range(len(cell.categories)) if holds(i, position)))
        if not _is_category(other):
            raise self._wrong(middle, f"{_spelled(other)} is a number, but {_spelled(cell)} holds categories; "
                                      f"compare it with one of {known}")  # fmt: skip
        ranks = tuple(positions.get(_key(c), -1) for c in other.categories)
        if max(ranks) < 0:
            raise self._wrong(middle, f"{_spelled(other)} and {_spelled(cell)} do not have the same categories: "
                                      f"{listing(map(written, other.categories))} and {known}")  # fmt: skip
        return Comparison(cell, order, Ranked(other, ranks))

    def _ranked(self, cell: Cell, order: str, middle: Token, other: Term) -> Statement:
        """By the column's order; what has no place in it is neither less nor more."""
        ranks = {_key(c): float(i) for i, c in enumerate(cell.order)}
        mine = Ranked(cell, tuple(ranks.get(_key(c), np.nan) for c in cell.categories))
        known = listing(map(written, cell.order))
        if isinstance(other, Constant):
            if _key(other.of) not in ranks:
                meant = _meant(str(other.of), cell.order, written)
                raise self._wrong(middle, f"{_spelled(other)} has no place in the order of {_spelled(cell)}; {meant}"
                                          f"known: {known}")  # fmt: skip
            return Comparison(mine, order, Constant(ranks[_key(other.of)]))
        if not isinstance(other, Cell) or other.order != cell.order:
            raise self._wrong(middle, f"{_spelled(other)} does not have the order of {_spelled(cell)}: {known}")
        return Comparison(mine, order, Ranked(other, tuple(ranks.get(_key(c), np.nan) for c in other.categories)))

    def _check_ordered(self, token: Token, cell: Cell, order: str) -> None:
        """Only categories whose column has an order are less or more."""
        if order not in EQUALITY and not cell.order:
            raise self._wrong(token, f"{_spelled(cell)} holds categories, which have no order; compare them with "
                                     "==, != or in")  # fmt: skip

    def listed(self) -> tuple[int, ...]:
        """The positions of columns, for a text that is nothing but their names, separated by commas."""
        found = [self._cell(self._next()).at]
        while self._take(","):
            token = self._next()
            found.append(self._cell(token).at)
            if found[-1] in found[:-1]:
                raise self._wrong(token, f"{token} appears twice")
        if self.now.kind != "end":
            raise self._wrong(self.now, f"a comma is expected here, not {self.now}")
        return tuple(found)

    def _cell(self, token: Token) -> Cell:
        name = token.content if token.kind == "name" else token.text
        found = [i for i, known in enumerate(self.names) if str(known) == name]
        if len(found) == 1:
            column = self.features[found[0]]
            self.columns[column.name] = None
            return Cell(column, found[0])
        if found:
            raise self._wrong(token, f"a number and a text are both the name of a column {name}; rename one of them")
        message, quoted = f"there is no column {token}", f"a text needs quotes: {written(name)}"
        if token.kind == "word" and any(name in getattr(column, "categories", ()) for column in self.features):
            raise self._wrong(token, f"{message}; {quoted}")
        if remedy := self._remedy(token):
            raise self._wrong(token, message + remedy)
        names = self.names
        meant = _meant(name, names, named) or _meant(name, [n for n in names if str(n).startswith(name)], named, 0)
        message += f"; {meant}known: {listing(map(named, names))}"
        raise self._wrong(token, f"{message}; {quoted}" if token.kind == "word" else message)

    def _value(self, token: Token) -> Value:
        value = int(token.text) if token.text.isdecimal() and len(token.text) < 100 else float(token.text)
        if value > LARGEST:
            raise self._wrong(token, f"{token} is beyond {LARGEST:g}, and no real number")
        return value

    def _sees(self, *texts: str) -> bool:
        return self.now.text in texts

    def _next(self) -> Token:
        token, self.now = self.now, next(self.tokens, self.now)
        return token

    def _take(self, *texts: str) -> Token | None:
        return self._next() if self._sees(*texts) else None

    def _count(self, text: str) -> int:
        count = 0
        while self._take(text):
            count += 1
        return count

    def _expect(self, text: str) -> Token:
        if not self._sees(text):
            raise self._wrong(self.now, f"{text} is expected here, not {self.now}{self._remedy(self.now)}")
        return self._next()

    def _close(self, opening: Token) -> None:
        if self.now.kind == "end":
            raise self._wrong(opening, "this ( is never closed; add a )")
        self._expect(")")

    def _remedy(self, token: Token) -> str:
        """What is probably meant by a word or a sign in the wrong place."""
        small = token.text.lower()
        if token.text in KEYWORDS:
            return f"; the column of this name is written {named(small)}" if small in self.names else ""
        if small in KEYWORDS:
            return f"; did you mean {small}?"
        if small in NULL:
            return "; whether a value is missing is asked with missing(column)"
        return {",": "; numbers are written without commas: 5000, 0.5", ")": "; it closes no ("}.get(small, "")

    def _tokens(self) -> Iterator[Token]:
        for match in TOKEN.finditer(self.text):  # all but blanks
            token = Token(str(match.lastgroup), match.group(), match.start())
            if token.text in MEANT:
                raise self._wrong(token, f"{token} is not a sign of rules; write {MEANT[token.text]}")
            if token.text in ("`", '"', "'"):
                raise self._wrong(token, f"this {token} is never closed; add a second one (inside, it is doubled)")
            if token.kind == "sign" and token.text not in SIGNS:
                raise self._wrong(token, f"{token} is not a sign of rules; names with more than letters, digits and _ "
                                         "stand in backticks, texts in quotes")  # fmt: skip
            yield token
        yield Token("end", "", len(self.text))

    def _wrong(self, place: Token | int, message: str) -> InputError:
        """An error whose first line says it all; the others show the place."""
        at = place if isinstance(place, int) else place.at
        first = max(0, at - ASIDE)
        line = _printable(self.text[first : at + ASIDE])
        return InputError(f"rule, character {at + 1}: {_printable(message)}\n    {line}\n    {' ' * (at - first)}^")


def _is_number(node: Node) -> TypeGuard[Term]:
    if isinstance(node, Constant):
        return not isinstance(node.of, str | bool)
    return isinstance(node, Term) and not _is_category(node)


def _is_category(node: Node) -> TypeGuard[Cell]:
    return isinstance(node, Cell) and bool(node.categories)


def _key(value: Value) -> tuple[bool, Value]:
    """Python takes True for 1; here they are different values."""
    return isinstance(value, bool), value


def _meant(text: str, among: Iterable[Any], spell: Callable[[Any], str], alike: float = 0.6) -> str:
    by_text = {str(each).lower(): each for each in among}
    found = get_close_matches(text.lower(), by_text, n=1, cutoff=alike)
    return f"did you mean {spell(by_text[found[0]])}? " if found else ""


def _spelled(node: Node) -> str:
    """A part of a rule, for a message."""
    if isinstance(node, Constant):
        return written(node.of)
    if isinstance(node, Cell):
        return f"was({named(node.column.name)})" if node.was else named(node.column.name)
    return "a statement" if isinstance(node, Statement) else "a computed number"


def _printable(text: str) -> str:
    """On one line, each character in its place."""
    return "".join(c if c.isprintable() else " " for c in text)
