"""The parser of rules: a small grammar; no part of a rule is ever run as code.

    rule       = "if" rule "then" rule | either
    either     = both {"or" both}
    both       = single {"and" single}
    single     = {"not"} comparison
    comparison = sum {("<" | "<=" | ">" | ">=" | "==" | "!=") sum} | sum ["not"] "in" "(" constant {"," constant} ")"
    sum        = product {("+" | "-") product}
    product    = part {("*" | "/") part}
    part       = {"-"} (constant | column | "abs" "(" sum ")" | "missing" "(" column ")" | "(" rule ")")
    column     = name | "was" "(" name ")"                the proposed value, or the current one
    name       = a plain word | `any name`                a backtick inside is doubled
    constant   = number | "text" | 'text' | true | false  a quote inside is doubled

{} any number of times, [] once or not at all.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import NamedTuple, TypeGuard

import numpy as np

from tdce._core import LARGEST_VALUE, InputError, Name, Value, listing, show, suggest
from tdce.schema.columns.base import Column
from tdce.schema.constraints.statements import (
    ARITHMETIC,
    OPERATORS,
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

MAX_DEPTH = 30  # of nested parentheses and ifs
ERROR_CONTEXT = 60  # characters shown on either side of a mistake
LONGEST_MESSAGE = 1_500  # of an error, in characters

Node = Term | Statement

FUNCTIONS = ("abs", "missing", "was")
KEYWORDS = ("and", "or", "not", "if", "then", "in", "true", "false", *FUNCTIONS)
EQUALITY = ("==", "!=")
SYMBOLS = (*OPERATORS, *ARITHMETIC, "(", ")", ",")
CORRECTIONS = {"=": "==", "=<": "<=", "=>": ">=", "<>": "!=", "≤": "<=", "≥": ">=", "≠": "!=", "!": "not", "&": "and",
         "&&": "and", "|": "or", "||": "or", "[": "(", "]": ")", "−": "-", "×": "*", "“": '"', "”": '"'}  # fmt: skip
NULL = ("none", "null", "nan", "na")

WORD = re.compile(r"[^\W\d]\w*")
TOKEN = re.compile(rf"""
    (?P<number> (?: [0-9]+\.?[0-9]* | \.[0-9]+ ) (?: [eE][+-]?[0-9]+ )? )
  | (?P<word>   {WORD.pattern} )
  | (?P<name>   ` (?: [^`] | `` )*+ ` )
  | (?P<text>   " (?: [^"] | "" )*+ " | ' (?: [^'] | '' )*+ ' )
  | (?P<symbol> <= | >= | == | != | <> | =< | => | && | \|\| | \S )
""", re.VERBOSE)  # fmt: skip


def quote_name(name: Name) -> str:
    """A column's name as written in a rule."""
    plain = isinstance(name, str) and WORD.fullmatch(name) and name not in KEYWORDS
    return str(name) if plain else f"`{str(name).replace('`', '``')}`"


def quote_value(value: Value) -> str:
    """A constant as written in a rule."""
    if isinstance(value, str):
        return '"' + value.replace('"', '""') + '"'
    return str(value).lower()


class Token(NamedTuple):
    kind: str  # number, word, name, text, symbol or end
    text: str
    at: int  # position in the rule

    def __str__(self) -> str:
        return "the end" if self.kind == "end" else show(self.text, spell=str)

    @property
    def content(self) -> str:
        """The text without quotes or backticks."""
        quote = self.text[0]
        return self.text[1:-1].replace(2 * quote, quote)


class Parser:
    """A parser with one method per line of the grammar; each leaves `now` at the first token after its part."""

    def __init__(self, text: str, features: Iterable[Column]) -> None:
        self.text, self.features = text, tuple(features)
        self.names = tuple(column.name for column in self.features)
        self.columns: dict[Name, None] = {}
        self.depth = 0
        self.tokens = self._tokenize()
        self.now = next(self.tokens)

    def parse(self) -> Statement:
        """Parse the whole text as a rule."""
        if not self.text:
            raise InputError("the rule is empty; write one, such as loan <= 5 * income")
        statement = self._statement(self.now, self.rule())
        if self.now.kind != "end":
            raise self._error(self.now, f"{self.now} does not belong here{self._remedy(self.now)}")
        if not self.columns:
            raise self._error(0, f"the rule names no column; known: {listing(map(quote_name, self.names))}")
        return statement

    def rule(self) -> Node:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise self._error(self.now, f"more than {MAX_DEPTH} parentheses or ifs are nested; split it into several "
                                        "rules")  # fmt: skip
        node: Node
        if self._take("if"):
            condition = self._statement(self.now, self.rule())
            self._expect("then")
            node = AnyOf((condition.negate(), self._statement(self.now, self.rule())))
        else:
            node = self.either()
        self.depth -= 1
        return node

    def either(self) -> Node:
        return self._join("or", self.both, AnyOf)

    def both(self) -> Node:
        return self._join("and", self.single, AllOf)

    def single(self) -> Node:
        nots = self._count("not")
        if not nots:
            return self.comparison()
        statement = self._statement(self.now, self.comparison())
        return statement.negate() if nots % 2 else statement

    def comparison(self) -> Node:
        start, left = self.now, self.sum()
        if self._sees("in", "not"):
            negated = self._take("not")
            self._expect("in")
            any_of = AnyOf(tuple(self._compare(start, left, "==", *constant) for constant in self.constants()))
            return any_of.negate() if negated else any_of
        links: list[Statement] = []
        while operator := self._take(*OPERATORS):
            middle, right = self.now, self.sum()
            links.append(self._compare(start, left, operator.text, middle, right))
            start, left = middle, right
        return AllOf(tuple(links)) if len(links) > 1 else links[0] if links else left

    def constants(self) -> Iterator[tuple[Token, Constant]]:
        opening = self._expect("(")
        while True:
            start, node = self.now, self.part()
            if not isinstance(node, Constant):
                raise self._error(start, f"{start} is not a constant; a list holds numbers, texts, true or false")
            yield start, node
            if not self._take(","):
                return self._close(opening)

    def sum(self) -> Node:
        return self._compute(("+", "-"), self.product)

    def product(self) -> Node:
        return self._compute(("*", "/"), self.part)

    def part(self) -> Node:
        minuses = self._count("-")
        if not minuses:
            return self.operand()
        term = self._number(self.now, self.operand())
        if minuses % 2 == 0:
            return term
        if isinstance(term, Constant) and not isinstance(term.value, str):
            return Constant(-term.value)
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
            start, node = self.now, self.rule()
            self._close(opening)
            return node if opening is token else self._apply(token.text, start, node)
        raise self._error(token, f"expected a value here, not {token}{self._remedy(token)}")

    def _apply(self, function: str, start: Token, node: Node) -> Node:
        if function == "abs":
            return Applied(np.absolute, self._number(start, node))
        if not isinstance(node, Cell) or (node.was and function == "was"):
            raise self._error(start, f"{function}(...) takes the name of one column")
        return Missing(node) if function == "missing" else replace(node, was=True)

    def _join(self, word: str, parse: Callable[[], Node], join: Callable[[tuple[Statement, ...]], Statement]) -> Node:
        start, first = self.now, parse()
        if not self._sees(word):
            return first
        parts = [self._statement(start, first)]
        while self._take(word):
            parts.append(self._statement(self.now, parse()))
        return join(tuple(parts))

    def _compute(self, symbols: tuple[str, ...], parse: Callable[[], Node]) -> Node:
        start, first = self.now, parse()
        if not self._sees(*symbols):
            return first
        first, rest = self._number(start, first), []
        while symbol := self._take(*symbols):
            rest.append((symbol.text, self._number(self.now, parse())))
        return Arithmetic(first, tuple(rest))

    def _statement(self, start: Token, node: Node) -> Statement:
        if isinstance(node, Statement):
            return node
        raise self._error(start, f"{_spell(node)} alone is neither true nor false; compare it with a value")

    def _number(self, start: Token, node: Node) -> Term:
        if isinstance(node, Term) and _is_number(node):
            return node
        raise self._error(start, f"{_spell(node)} is not a number; arithmetic needs numbers")

    def _compare(self, start: Token, left: Node, operator: str, middle: Token, right: Node) -> Statement:
        """Compare numbers by size, categories by value."""
        if _is_number(left) and _is_number(right):
            return Comparison(left, operator, right)
        if _is_category(left) and isinstance(right, Term):
            return self._compare_category(start, left, operator, middle, right)
        if _is_category(right) and isinstance(left, Term):
            return self._compare_category(middle, right, OPERATORS[operator].flipped, start, left)
        token, wrong, other = (middle, right, left) if _is_number(left) or _is_category(left) else (start, left, right)
        raise self._error(token, f"{_spell(wrong)} cannot be compared with {_spell(other)}; "
                                 "compare numbers with numbers, and categorical columns with categories")  # fmt: skip

    def _compare_category(self, start: Token, cell: Cell, operator: str, middle: Token, other: Term) -> Statement:
        self._check_ordered(start, cell, operator)
        if operator not in EQUALITY:
            return self._compare_rank(cell, operator, middle, other)
        holds, positions = OPERATORS[operator].holds, {_key(c): i for i, c in enumerate(cell.categories)}
        known = listing(map(quote_value, cell.categories))
        if isinstance(other, Constant):
            if _key(other.value) not in positions:
                hint = suggest(other.value, cell.categories, quote_value)
                raise self._error(middle, f"{_spell(cell)} has no category {_spell(other)}; {hint}known: {known}")
            position = positions[_key(other.value)]
            return OneOf(cell, tuple(i for i in range(cell.size) if holds(i, position)))
        if not _is_category(other):
            raise self._error(middle, f"{_spell(other)} is a number, but {_spell(cell)} holds categories; "
                                      f"compare it with one of {known}")  # fmt: skip
        ranks = tuple(positions.get(_key(c), -1) for c in other.categories)
        if max(ranks, default=-1) < 0:
            raise self._error(middle, f"{_spell(other)} and {_spell(cell)} have no category in common: "
                                      f"{listing(map(quote_value, other.categories))} and {known}")  # fmt: skip
        return Comparison(cell, operator, Ranked(other, ranks))

    def _compare_rank(self, cell: Cell, operator: str, middle: Token, other: Term) -> Statement:
        """Compare by the column's order; a category without a rank is neither less nor more."""
        ranks = {_key(c): float(i) for i, c in enumerate(cell.order)}
        left = Ranked(cell, tuple(ranks.get(_key(c), np.nan) for c in cell.categories))
        known = listing(map(quote_value, cell.order))
        if isinstance(other, Constant):
            if _key(other.value) not in ranks:
                hint = suggest(other.value, cell.order, quote_value)
                raise self._error(middle, f"{_spell(other)} has no rank in the order of {_spell(cell)}; {hint}"
                                          f"known: {known}")  # fmt: skip
            return Comparison(left, operator, Constant(ranks[_key(other.value)]))
        if not isinstance(other, Cell) or other.order != cell.order:
            raise self._error(middle, f"{_spell(other)} does not have the order of {_spell(cell)}: {known}")
        return Comparison(left, operator, Ranked(other, tuple(ranks.get(_key(c), np.nan) for c in other.categories)))

    def _check_ordered(self, token: Token, cell: Cell, operator: str) -> None:
        """Check that categories compared by < or > have an order."""
        if operator not in EQUALITY and not cell.order:
            raise self._error(token, f"{_spell(cell)} holds categories, which have no order; compare them with "
                                     "==, != or in")  # fmt: skip

    def parse_columns(self) -> tuple[int, ...]:
        """The positions of the columns in a text that lists their names, separated by commas."""
        positions = [self._cell(self._next()).at]
        while self._take(","):
            token = self._next()
            positions.append(self._cell(token).at)
            if positions[-1] in positions[:-1]:
                raise self._error(token, f"{token} appears twice")
        if self.now.kind != "end":
            raise self._error(self.now, f"expected a comma here, not {self.now}")
        return tuple(positions)

    def _cell(self, token: Token) -> Cell:
        name = token.content if token.kind == "name" else token.text
        matches = [i for i, known in enumerate(self.names) if str(known) == name]
        if len(matches) == 1:
            column = self.features[matches[0]]
            self.columns[column.name] = None
            return Cell(column, matches[0])
        if matches:
            raise self._error(token, f"{name} is ambiguous: a number and a text are both the name of a column; rename "
                                     "one of them")  # fmt: skip
        message, quoted = f"there is no column {token}", f"a text needs quotes: {quote_value(name)}"
        if token.kind == "word" and any(name in getattr(column, "categories", ()) for column in self.features):
            raise self._error(token, f"{message}; {quoted}")
        if remedy := self._remedy(token):
            raise self._error(token, message + remedy)
        names = self.names
        beginning = [n for n in names if str(n).startswith(name)]
        hint = suggest(name, names, quote_name) or suggest(name, beginning, quote_name, cutoff=0)
        message += f"; {hint}known: {listing(map(quote_name, names))}"
        raise self._error(token, f"{message}; {quoted}" if token.kind == "word" else message)

    def _value(self, token: Token) -> Value:
        value = int(token.text) if token.text.isdecimal() and len(token.text) < 100 else float(token.text)
        if value > LARGEST_VALUE:
            raise self._error(token, f"{token} is larger than {LARGEST_VALUE:g}, the largest number allowed")
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
            raise self._error(self.now, f"expected {text} here, not {self.now}{self._remedy(self.now)}")
        return self._next()

    def _close(self, opening: Token) -> None:
        if self.now.kind == "end":
            raise self._error(opening, "this ( is never closed; add a )")
        self._expect(")")

    def _remedy(self, token: Token) -> str:
        """A hint at what the user probably means by a misplaced word or symbol."""
        lower = token.text.lower()
        if token.text in KEYWORDS:
            return f"; the column of this name is written {quote_name(lower)}" if lower in self.names else ""
        if lower in KEYWORDS:
            return f"; did you mean {lower}?"
        if lower in NULL:
            return "; to test for a missing value, write missing(column)"
        return {",": "; write numbers without commas: 5000, 0.5", ")": "; it closes no ("}.get(lower, "")

    def _tokenize(self) -> Iterator[Token]:
        for match in TOKEN.finditer(self.text):  # everything but white space
            token = Token(str(match.lastgroup), match.group(), match.start())
            if token.text in CORRECTIONS:
                raise self._error(token, f"{token} is not allowed in rules; write {CORRECTIONS[token.text]}")
            if token.text in ("`", '"', "'"):
                raise self._error(token, f"this {token} is never closed; add a second one (double it inside)")
            if token.kind == "symbol" and token.text not in SYMBOLS:
                raise self._error(token, f"{token} is not allowed in rules; put names with more than letters, digits "
                                         "and _ in backticks, and texts in quotes")  # fmt: skip
            yield token
        yield Token("end", "", len(self.text))

    def _error(self, place: Token | int, message: str) -> InputError:
        """An error whose first line is complete; the other lines show the place."""
        at = place if isinstance(place, int) else place.at
        first = max(0, at - ERROR_CONTEXT)
        line = _printable(self.text[first : at + ERROR_CONTEXT])
        said = show(_printable(message), LONGEST_MESSAGE, str)
        message = f"rule, character {at + 1}: {said}\n    {line}\n    {' ' * (at - first)}^"
        return InputError(message, "rule", character=at + 1)


def _is_number(node: Node) -> TypeGuard[Term]:
    if isinstance(node, Constant):
        return not isinstance(node.value, str | bool)
    return isinstance(node, Term) and not _is_category(node)


def _is_category(node: Node) -> TypeGuard[Cell]:
    return isinstance(node, Cell) and node.size > 0


def _key(value: Value) -> tuple[bool, Value]:
    """A key that distinguishes True from 1, which are equal in Python."""
    return isinstance(value, bool), value


def _spell(node: Node) -> str:
    """Describe a part of a rule for a message."""
    if isinstance(node, Constant):
        return quote_value(node.value)
    if isinstance(node, Cell):
        return f"was({quote_name(node.column.name)})" if node.was else quote_name(node.column.name)
    return "a statement" if isinstance(node, Statement) else "a computed number"


def _printable(text: str) -> str:
    """The text on one line, with every character in its place."""
    return "".join(c if c.isprintable() else " " for c in text)
