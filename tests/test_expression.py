"""Rules as text: every form on tables that can be checked by eye, random rules by a second route, and mistakes."""

import operator
import pickle
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tdce._core.errors import InputError
from tdce.schema.columns.categorical import Categorical
from tdce.schema.columns.numeric import Numeric
from tdce.schema.constraints.expression import MAX_RULE_LENGTH, Expression
from tdce.schema.constraints.grammar import KEYWORDS, MAX_DEPTH, quote_name, quote_value
from tdce.schema.schema import Schema

NAN = float("nan")


def numbers(*names):
    return Schema(tuple(Numeric(name, -100, 100) for name in names))


def broken(text, columns, *rows, own=None):
    """Which rows break the rule. Columns are names of numbers, or columns; a category is given by its value."""
    schema = Schema(tuple(Numeric(c, -100, 100) if isinstance(c, str | int) else c for c in columns))
    return Expression.parse(text, schema).broken(raw(schema, rows), raw(schema, rows if own is None else own)).tolist()


def raw(schema, rows):
    return np.array([[number(c, v) for c, v in zip(schema, row, strict=True)] for row in rows], dtype=float)


def number(column, value):
    if value is None:
        return NAN
    return column.categories.index(value) if isinstance(column, Categorical) else value


EMPLOYMENT = Categorical("employment", ("employed", "unemployed"))
JOB = Categorical("job", ("clerk", "none", "nurse"))
OUTCOME = Categorical("poutcome", ("failure", "success", "unknown"))
HISTORY = Categorical("credit history", ("bad", "good", "paid duly"))


def test_a_loan_is_at_most_five_incomes():
    assert broken("loan <= 5 * income", ["loan", "income"], (50, 10), (51, 10), (-1, 0)) == [False, True, False]


def test_a_chain_holds_if_every_link_does():
    rows = [(0, 0), (3, 5), (5, 3), (-1, 3)]
    assert broken("0 <= trades_ok <= trades", ["trades_ok", "trades"], *rows) == [False, False, True, True]
    assert broken("a < b > c", ["a", "b", "c"], (1, 2, 1), (1, 2, 3), (2, 1, 0)) == [False, True, True]


def test_if_says_nothing_where_its_condition_is_false():
    rows = [("unemployed", "none"), ("unemployed", "clerk"), ("employed", "clerk"), ("employed", "none")]
    text = 'if employment == "unemployed" then job == "none"'
    assert broken(text, [EMPLOYMENT, JOB], *rows) == [False, True, False, False]


def test_what_follows_then_may_be_several_statements():
    rows = [(-1, 0, "unknown"), (-1, 1, "unknown"), (-1, 0, "success"), (5, 1, "success")]
    text = 'if pdays == -1 then previous == 0 and poutcome == "unknown"'
    assert broken(text, ["pdays", "previous", OUTCOME], *rows) == [False, True, True, False]


def test_ifs_inside_each_other():
    rows = [(1, 1, 1), (1, 1, 0), (1, 0, 0), (0, 1, 0)]
    for text in ("if a == 1 then if b == 1 then c == 1", "if a == 1 then (if b == 1 then c == 1)"):
        assert broken(text, ["a", "b", "c"], *rows) == [False, True, False, False]


def test_one_of_a_list():
    rows = [("good",), ("paid duly",), ("bad",), (None,)]
    for text in ('`credit history` in ("good", "paid duly")', "`credit history` in ('good', 'paid duly')"):
        assert broken(text, [HISTORY], *rows) == [False, False, True, False]
    assert broken('`credit history` not in ("good")', [HISTORY], *rows) == [True, False, False, False]
    assert broken("`a` not in (1, 2)", ["a"], (1,), (2,), (3,), (None,)) == [True, True, False, False]
    assert broken("a + 1 in (2, -3)", ["a"], (1,), (-4,), (2,), (None,)) == [False, False, True, False]


def test_not_and_or():
    rows = [(4, 5), (3, 1), (3, 2), (None, 1), (None, 5)]
    assert broken("not (a > 3 or b < 2)", ["a", "b"], *rows) == [True, True, False, True, False]
    assert broken("not a > 3 and not b < 2", ["a", "b"], *rows) == [True, True, False, True, False]
    assert broken("not not not a > 3", ["a"], (4,), (3,)) == [True, False]


def test_and_binds_more_than_or():
    rows = [(1, 0, 0), (0, 1, 0), (0, 1, 1)]
    assert broken("a == 1 or b == 1 and c == 1", ["a", "b", "c"], *rows) == [False, True, False]
    assert broken("(a == 1 or b == 1) and c == 1", ["a", "b", "c"], *rows) == [True, True, False]


def test_arithmetic():
    assert broken("a + b == c", ["a", "b", "c"], (1, 2, 3), (1, 2, 4)) == [False, True]
    assert broken("-a / 2 < b", ["a", "b"], (4, -1), (4, -2), (-4, 2)) == [False, True, True]
    assert broken("abs(a - b) <= 10", ["a", "b"], (1, 11), (11, 1), (1, 12)) == [False, False, True]
    assert broken("a - b - 1 == 0", ["a", "b"], (3, 2), (2, 3)) == [False, True]
    assert broken("8 / a / 2 * 3 == 6", ["a"], (2,), (1,)) == [False, True]
    assert broken("--a == 2 and - - -a == -2 and -(a + 1) == -3", ["a"], (2,), (-2,)) == [False, True]
    assert broken("(a + 1) * 2 == 6", ["a"], (2,), (2.5,)) == [False, True]


def test_a_value_is_compared_with_what_the_person_has_now():
    assert broken("age >= was(age)", ["age"], (30,), (31,), (29,), own=[(30,)] * 3) == [False, False, True]
    assert broken("job == was(job)", [JOB], ("nurse",), ("none",), own=[("nurse",)] * 2) == [False, True]
    assert broken('if was(job) == "none" then a == was(a)', ["a", JOB], (1, "clerk"), (1, "clerk"), (2, "clerk"),
                  own=[(1, "none"), (2, "none"), (1, "clerk")]) == [False, True, False]  # fmt: skip


@pytest.mark.parametrize("operator", ["<", "<=", ">", ">=", "==", "!="])
def test_a_condition_about_what_is_missing_says_nothing(operator):
    """It is neither true nor false, whichever side is missing and however it is said."""
    rows = [(None, 0, 3), (0, None, 3), (None, None, 3)]
    for text in (f"if a {operator} b then c >= 10", f"if not (a {operator} b) then c >= 10"):
        assert broken(text, ["a", "b", "c"], *rows) == [False] * 3
    assert broken(f"a {operator} b or c >= 10", ["a", "b", "c"], *rows) == [False] * 3


def test_missing_is_known_and_everything_else_about_it_is_not():
    columns, rows = ["income"], [(None,), (5,)]
    assert broken("missing(income)", columns, *rows) == [False, True]
    assert broken("not missing(income)", columns, *rows) == [True, False]
    assert broken("missing(was(income))", columns, *rows, own=[(5,), (None,)]) == [True, False]
    for text in ("income > 9", "income != 5", "not income > 9", "income == income", "0 * income == 1", "income in (1)"):
        assert not broken(text, columns, *rows)[0]


def test_what_is_unknown_is_not_broken_but_what_is_false_anyway_is():
    rows = [(None, 1), (None, 0)]
    assert broken("a == 1 and b == 1", ["a", "b"], *rows) == [False, True]
    assert broken("a == 1 or b == 1", ["a", "b"], *rows) == [False, False]
    assert broken("if a == 1 then b == 1", ["a", "b"], *rows) == [False, False]


def test_division_by_zero_is_unknown():
    assert broken("a / b > 1", ["a", "b"], (1, 0), (0, 0), (1, 1)) == [False, False, True]
    assert broken("not a / b > 1", ["a", "b"], (1, 0), (0, 0), (2, 1)) == [False, False, True]
    assert broken("1 / (a + b - c) == 0", ["a", "b", "c"], (0.1, 0.2, 0.3), (1, 1, 1)) == [False, True]


def test_rounding_in_arithmetic_is_forgiven_and_cells_are_compared_exactly():
    tenths = (0.1, 0.2, 0.3)  # 0.1 + 0.2 is 0.30000000000000004
    for text in ("a + b == c", "a + b <= c", "a + b - c == 0", "c - b == a", "not a + b > c", "(a + b) / c == 1"):
        assert broken(text, ["a", "b", "c"], tenths) == [False]
    assert broken("a + b > c", ["a", "b", "c"], tenths) == [True]
    assert broken("a + b == c", ["a", "b", "c"], (1, 1, 2 + 1e-9), (1, 1, 2 + 4e-9)) == [False, True]
    assert broken("a == b", ["a", "b"], (0.1 + 0.2, 0.3)) == [True]
    assert broken("-a == b", ["a", "b"], (0.1 + 0.2, -0.3)) == [True]
    assert broken("a == 0.3", ["a"], (0.1 + 0.2,), (0.3,)) == [True, False]


def test_numbers_too_large_for_a_float_are_unknown():
    assert broken("a * a * a > 0", ["a"], (-1e149,), (-1,)) == [False, True]


def test_categories_may_be_flags_codes_and_words():
    flag, code = Categorical("employed", (False, True)), Categorical("code", (-1, 1.5, "1", 'two "s'))
    assert broken("employed == true", [flag], (True,), (False,)) == [False, True]
    assert broken("false == employed", [flag], (True,), (False,)) == [True, False]
    assert broken("employed in (true, false)", [flag], (True,), (None,)) == [False, False]
    assert broken("code == -1", [code], (-1,), ("1",)) == [False, True]
    assert broken("code in (1.5, '1')", [code], (1.5,), ("1",), (-1,)) == [False, False, True]
    assert broken('code != "two ""s"', [code], ('two "s',), (-1,)) == [True, False]
    with pytest.raises(InputError, match="employed has no category 1; known: false, true"):
        broken("employed == 1", [flag], (True,))


def test_two_columns_of_categories_are_compared_by_their_values():
    left, right = Categorical("a", ("x", "y", "z")), Categorical("b", ("w", "z", "x"))
    rows = [("x", "x"), ("y", "z"), ("z", "z"), ("x", "w"), (None, "x"), ("x", None)]
    assert broken("a == b", [left, right], *rows) == [False, True, False, True, False, False]
    assert broken("a != b", [left, right], *rows) == [True, False, True, False, False, False]


def test_categories_of_a_column_that_says_so_have_an_order():
    school = Categorical("education", ("none", "other", "school", "university"), order=("none", "school", "university"))
    rows = [("none",), ("school",), ("university",), (None,), ("other",)]
    own = [("school",)] * 5
    assert broken("education >= was(education)", [school], *rows, own=own) == [True, False, False, False, False]
    assert broken('education < "university"', [school], *rows) == [False, False, True, False, False]
    assert broken('"school" <= education', [school], *rows) == [True, False, False, False, False]
    with pytest.raises(InputError, match='"other" has no rank in the order of education'):
        broken('education < "other"', [school], ("none",))


AWKWARD = ["credit history", "a`b", "``", "", 'he said "no"', "naïve", "größe", "年齢", "3", "a-b", "x\ny", *KEYWORDS]


@pytest.mark.parametrize("name", [*AWKWARD, 3, -3], ids=repr)
def test_any_name_can_be_written(name):
    schema = numbers("other", name)
    for text in (f"{quote_name(name)} > 1", f"`{str(name).replace('`', '``')}` > 1"):
        found = Expression.parse(text, schema)
        assert found.columns == (name,)
        assert found.broken(np.array([[2.0, 1], [1, 2]]), np.zeros((2, 2))).tolist() == [True, False]


def test_plain_words_need_no_backticks():
    assert [quote_name(n) for n in ("größe", "年齢", "_x1", "in", 3, "a b", "a`b")] == [
        "größe", "年齢", "_x1", "`in`", "`3`", "`a b`", "`a``b`"]  # fmt: skip
    assert [quote_value(v) for v in ("a", 'a"b', True, -1, 1e30)] == ['"a"', '"a""b"', "true", "-1", "1e+30"]


def test_an_expression_says_its_text_and_its_columns():
    found = Expression.parse("\n if was(c) > 1 then a <\n b + c \t", numbers("a", "b", "c", "d"))
    assert found.text == "if was(c) > 1 then a <\n b + c"
    assert found.columns == ("c", "a", "b")
    assert pickle.loads(pickle.dumps(found)) == found
    assert hash(found) == hash(Expression.parse(found.text, numbers("a", "b", "c", "d")))
    assert found != Expression.parse("a < b", numbers("a", "b", "c", "d"))


def test_it_changes_no_argument_and_knows_rows_of_any_number():
    found, rows = Expression.parse("a + b < 3 or 1 > 2", numbers("a", "b")), np.array([[1.0, 2], [1, 1]])
    assert found.broken(rows, rows).tolist() == [True, False]
    assert found.broken(np.zeros((0, 2)), np.zeros((0, 2))).tolist() == []
    assert rows.tolist() == [[1, 2], [1, 1]]


# Mistakes.

TABLE = Schema((Numeric("age", 18, 90), Numeric("income", 0, 9), JOB, EMPLOYMENT, HISTORY, Categorical("flag", (0, 1)),
                Numeric("in", 0, 1), Numeric("abs", 0, 1), Categorical("pet", ("cat", "dog"))))  # fmt: skip


@pytest.mark.parametrize(
    ("text", "place", "says"),
    [
        ("age > ", "     ^", "expected a value here, not the end"),
        ("age = 3", "    ^", "= is not allowed in rules; write =="),
        ("age => 3", "    ^", "write >="),
        ("age > 3 && income > 1", "        ^", "write and"),
        ("age ≥ 3", "    ^", "write >="),
        ("age > 3 # old", "        ^", "# is not allowed in rules; put names with more than letters"),
        ("agee > 3", "^", "there is no column agee; did you mean age? known: age, income, job"),
        ("1 < `agee`", "    ^", "there is no column `agee`; did you mean age? known: age, income, job"),
        ("history in ('good')", "^", "did you mean `credit history`?"),
        ("credit history == 'good'", "^", "did you mean `credit history`?"),
        ("job == clerk", "       ^", 'there is no column clerk; a text needs quotes: "clerk"'),
        ("job == none", "       ^", 'a text needs quotes: "none"'),
        ("job == baker", "       ^", 'a text needs quotes: "baker"'),
        ("income == null", "          ^", "missing(column)"),
        ("flag == True", "        ^", "did you mean true?"),
        ("age > 3 AND income > 1", "        ^", "AND does not belong here; did you mean and?"),
        ('job == "Nurse "', "       ^", 'job has no category "Nurse "; did you mean "nurse"? known: "clerk", "none"'),
        ('"x" != job', "^", 'job has no category "x"; known: "clerk", "none", "nurse"'),
        ('job in ("clerk", "nrse")', "                 ^", 'did you mean "nurse"?'),
        ("job == 3", "       ^", "job has no category 3"),
        ("job == age", "       ^", "age is a number, but job holds categories; compare it with one of"),
        ("age + 1 == job", "^", "a computed number is a number, but job holds categories"),
        ('age == "old"', "       ^", '"old" cannot be compared with age'),
        ('"old" == age', "^", '"old" cannot be compared with age'),
        ("age > true", "      ^", "true cannot be compared with age"),
        ('"a" == "b"', "^", '"a" cannot be compared with "b"'),
        ("(age > 1) == (income > 1)", "^", "a statement cannot be compared with a statement"),
        ("age > (income > 1)", "      ^", "a statement cannot be compared with age"),
        ("job < 'nurse'", "^", "job holds categories, which have no order; compare them with ==, != or in"),
        ("1 >= flag", "     ^", "flag holds categories, which have no order"),
        ("age < 1 + job", "          ^", "job is not a number"),
        ("age < -'x'", "       ^", '"x" is not a number'),
        ("abs(job) < 1", "    ^", "job is not a number"),
        ("(age > 1) + 1 < 2", "^", "a statement is not a number"),
        ("job == pet", "       ^", 'pet and job have no category in common: "cat", "dog" and "clerk", "none"'),
        ("(age > 1", "^", "this ( is never closed"),
        ("age > 1 and (income > 1 or (age > 3)", "            ^", "this ( is never closed"),
        ("age in (1, 2", "       ^", "this ( is never closed"),
        ("age > 1)", "       ^", ") does not belong here; it closes no ("),
        ("(age > 1 income)", "         ^", "expected ) here, not income"),
        ("age > 1 income", "        ^", "income does not belong here"),
        ("income > 1,000", "          ^", "write numbers without commas"),
        ("age in ()", "        ^", "expected a value here, not )"),
        ("age in 3", "       ^", "expected ( here, not 3"),
        ("age in (1, income)", "           ^", "income is not a constant"),
        ("age not 3", "        ^", "expected in here, not 3"),
        ("in > 3", "^", "expected a value here, not in; the column of this name is written `in`"),
        ("abs > 3", "^", "the column of this name is written `abs`"),
        ("then > 3", "^", "expected a value here, not then"),
        ("if age > 1", "          ^", "expected then here, not the end"),
        ("if age then income > 1", "   ^", "age alone is neither true nor false; compare it with a value"),
        ("not age", "    ^", "age alone is neither"),
        ("age > 1 or income", "           ^", "income alone is neither"),
        ("age or income > 1", "^", "age alone is neither"),
        ("age + 1", "^", "a computed number alone is neither"),
        ("was(age + 1) > 2", "    ^", "was(...) takes the name of one column"),
        ("was(was(age)) > 2", "    ^", "was(...) takes the name of one column"),
        ("missing(3)", "        ^", "missing(...) takes the name of one column"),
        ("1 < 2", "^", "the rule names no column; known: age"),
        ("`age > 3", "^", "this ` is never closed"),
        ('job == "clerk', "       ^", 'this " is never closed'),
        ("age > 1e200", "      ^", "1e200 is larger than 1e+150"),
        ("age\n> \nincom", "       ^", "did you mean income?"),
    ],
)  # fmt: skip
def test_a_mistake_is_shown_at_its_place(text, place, says):
    with pytest.raises(InputError) as caught:
        Expression.parse(text, TABLE)
    first, line, caret = str(caught.value).split("\n")
    assert says in first
    assert first.startswith(f"rule, character {len(place)}: ")
    assert line == f"    {text.strip()}".replace("\n", " ")
    assert caret == f"    {place}"


@pytest.mark.parametrize("text", ["", " \n "])
def test_an_empty_rule_is_named(text):
    with pytest.raises(InputError, match=r"the rule is empty; write one, such as"):
        Expression.parse(text, TABLE)


def test_a_rule_is_text():
    with pytest.raises(InputError, match="the rule 3 must be text"):
        Expression.parse(3, TABLE)


def test_two_columns_that_are_written_the_same_are_named():
    with pytest.raises(InputError, match="3 is ambiguous: a number and a text are both the name of a column"):
        Expression.parse("`3` > 1", numbers(3, "3"))


@pytest.mark.parametrize("opening", ["(", "abs(", "not (", "-(", "if age > 1 then ", "if ("])
def test_what_is_too_deep_is_named(opening):
    with pytest.raises(InputError, match=f"more than {MAX_DEPTH} parentheses or ifs are nested"):
        Expression.parse(opening * 400 + "age", TABLE)


LONG = {
    "and": " and ".join(["age > 1"] * 800),
    "plus": "age == " + " + ".join(["1"] * 2000),
    "not": "not " * 2000 + "age > 1",
    "minus": "age > " + "-" * 9000 + "1",
    "in": "age in (" + ", ".join(["1"] * 3000) + ")",
    "(": "(" * (MAX_DEPTH - 1) + "age > 1" + ")" * (MAX_DEPTH - 1),
    "0": "age > " + "0" * 9000,
}


@pytest.mark.parametrize("text", LONG.values(), ids=LONG)
def test_what_is_long_but_not_deep_is_read(text):
    assert Expression.parse(text, TABLE).broken(np.full((1, len(TABLE)), 50.0), np.zeros((1, len(TABLE)))).shape == (1,)


def test_what_is_too_long_is_named():
    with pytest.raises(InputError, match="has 10,004 characters; split it into several rules of at most 10,000 each"):
        Expression.parse("a > " + "1" * MAX_RULE_LENGTH, TABLE)


def test_of_a_long_rule_only_the_surroundings_are_shown():
    with pytest.raises(InputError) as caught:
        Expression.parse("age > 1 and " * 50 + "age = 3" + " and age > 1" * 50, TABLE)
    first, line, caret = str(caught.value).split("\n")
    assert first.startswith("rule, character 605: = is not")
    assert len(line) == 124
    assert line[caret.index("^")] == "="


@given(st.text(st.sampled_from("ab1.\"'`()<>=!+-*/, \nifthenorandotinwasmissingabstrue"), max_size=30))
def test_any_text_is_read_or_its_mistake_is_named(text):
    schema = Schema((Numeric("a", 0, 1), Categorical("b", ("a", "b"))))
    try:
        found = Expression.parse(text, schema)
    except InputError:
        return
    assert found.broken(np.zeros((2, 2)), np.full((2, 2), NAN)).shape == (2,)


# What a rule implies.


@pytest.mark.parametrize(
    ("text", "a", "b"),
    [
        ("a <= 3", (0, 3), (5, 9)),
        ("a < 3", (0, np.nextafter(3, 0)), (5, 9)),
        ("3 < a", (np.nextafter(3, 9), 8), (5, 9)),
        ("2 <= a <= 4", (2, 4), (5, 9)),
        ("a == 4", (4, 4), (5, 9)),
        ("a == b", (5, 8), (5, 8)),
        ("b <= a", (5, 8), (5, 8)),
        ("a >= b and b >= 6", (6, 8), (6, 8)),
        ("b >= 6 and a >= b", (6, 8), (6, 8)),
        ("a <= -1", (0, -1), (5, 9)),
        ("not a > 3", (0, 3), (5, 9)),
        ("not (a > 3 or b > 7)", (0, 3), (5, 7)),
        ("a in (2, 4, 3)", (2, 4), (5, 9)),
        ("a < 2 or a == 5", (0, 5), (5, 9)),
        ("if b >= 5 then a <= 3", (0, 3), (5, 9)),
        ("if b > 5 then a <= 3", (0, 8), (5, 9)),
        ("a < -1 or a > 9", (0, np.nextafter(-1, -9)), (5, 9)),
        ("a != 3", (0, 8), (5, 9)),
        ("a not in (0, 8)", (0, 8), (5, 9)),
        ("a + 0 <= 3", (0, 8), (5, 9)),
        ("a <= was(b)", (0, 8), (5, 9)),
        ("was(a) <= 3", (0, 8), (5, 9)),
        ("missing(a)", (0, 8), (5, 9)),
        ("a <= 3 or missing(a)", (0, 8), (5, 9)),
    ],
)  # fmt: skip
def test_what_a_rule_leaves_of_a_range(text, a, b):
    low, high = np.array([0.0, 5]), np.array([8.0, 9])
    lowest, highest = Expression.parse(text, numbers("a", "b")).narrow(low, high)
    assert list(zip(lowest.tolist(), highest.tolist(), strict=True)) == [a, b]
    assert (low.tolist(), high.tolist()) == ([0, 5], [8, 9])


def test_a_chain_narrows_from_both_ends():
    low, high = np.array([1.0, -np.inf, -np.inf]), np.array([np.inf, np.inf, 5])
    low, high = Expression.parse("a <= b <= c", numbers("a", "b", "c")).narrow(low, high)
    assert (low.tolist(), high.tolist()) == ([1, 1, 1], [5, 5, 5])


def test_an_open_end_stays_open():
    low, high = Expression.parse("a < b", numbers("a", "b")).narrow(np.full(2, -np.inf), np.full(2, np.inf))
    assert (low.tolist(), high.tolist()) == ([-np.inf] * 2, [np.inf] * 2)


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ('job == "none"', {"none"}),
        ('"none" == job', {"none"}),
        ('job != "none"', {"clerk", "nurse"}),
        ('job in ("none", "nurse")', {"none", "nurse"}),
        ('job not in ("none", "nurse")', {"clerk"}),
        ('not job == "none"', {"clerk", "nurse"}),
        ('job != "none" and age > 3 and job != "nurse"', {"clerk"}),
        ('job == "none" and job == "nurse"', set()),
        ('job == "none" or job == "nurse"', {"none", "nurse"}),
        ('job == "none" or age > 3', None),
        ('if age > 3 then job == "none"', None),
        ('was(job) == "none"', None),
        ('pet == "cat"', None),
        ("job == was(job)", None),
        ("missing(job)", None),
    ],
)
def test_which_categories_a_rule_leaves(text, left):
    assert Expression.parse(text, TABLE).allowed("job") == left


# Random rules by a second route: row by row, in exact fractions, None for unknown.

COMPARE = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq,
           "!=": operator.ne}  # fmt: skip
COMPUTE = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv}
RANDOM = Schema((Numeric("x", -9, 9), Numeric("y z", -9, 9), Numeric(3, -9, 9), Categorical("c", ("u", "v", "w")),
                 Categorical("d", ("w", "t", "u"))))  # fmt: skip

constants = st.sampled_from(["0", "1", "2", "-1", "3", ".5"]).map(lambda text: (text, Fraction(text)))
numeric = st.sampled_from(["x", "y z", 3]).flatmap(lambda name: st.tuples(st.just(name), st.booleans()))
leaves = st.one_of(st.tuples(st.just("constant"), constants), st.tuples(st.just("column"), numeric))
terms = st.one_of(
    leaves,
    st.tuples(st.sampled_from(list(COMPUTE)), leaves, leaves),
    st.tuples(st.sampled_from(["neg", "abs"]), st.tuples(st.sampled_from(list(COMPUTE)), leaves, leaves)),
)
words = st.tuples(st.sampled_from("cd"), st.booleans())
atoms = st.one_of(
    st.tuples(st.just("compare"), st.lists(st.tuples(st.sampled_from(list(COMPARE)), terms), min_size=2, max_size=3)),
    st.tuples(st.just("among"), terms, st.lists(constants, min_size=1, max_size=3), st.booleans()),
    st.tuples(st.just("word"), words, st.sampled_from(["==", "!="]), st.sampled_from("uw")),
    st.tuples(st.just("words"), words, st.sampled_from(["==", "!="]), words),
    st.tuples(st.just("missing"), st.one_of(numeric, words)),
)
rules = st.recursive(
    atoms,
    lambda inner: st.one_of(
        st.tuples(st.just("not"), inner),
        st.tuples(st.sampled_from(["and", "or"]), st.lists(inner, min_size=2, max_size=3)),
        st.tuples(st.just("if"), inner, inner),
    ),
    max_leaves=5,
)


def text_of(node):
    match node:
        case "constant", (text, _):
            return text
        case "column", (name, was):
            return text_of_column(name, was)
        case "neg", inner:
            return f"-({text_of(inner)})"
        case "abs", inner:
            return f"abs({text_of(inner)})"
        case "compare", [(_, first), *links]:
            return text_of(first) + "".join(f" {order} {text_of(term)}" for order, term in links)
        case "among", term, listed, negated:
            return f"{text_of(term)} {'not ' * negated}in ({', '.join(text for text, _ in listed)})"
        case "word", column, order, value:
            return f'{text_of_column(*column)} {order} "{value}"'
        case "words", left, order, right:
            return f"{text_of_column(*left)} {order} {text_of_column(*right)}"
        case "missing", column:
            return f"missing({text_of_column(*column)})"
        case "not", inner:
            return f"not ({text_of(inner)})"
        case ("and" | "or") as word, parts:
            return f" {word} ".join(f"({text_of(part)})" for part in parts)
        case "if", condition, then:
            return f"if {text_of(condition)} then ({text_of(then)})"
        case sign, left, right:
            return f"({text_of(left)} {sign} {text_of(right)})"


def text_of_column(name, was):
    return f"was({quote_name(name)})" if was else quote_name(name)


def both(function, left, right):
    return None if left is None or right is None else function(left, right)


def truth_of_all(truths):
    return False if False in truths else None if None in truths else True


def opposite(truth):
    return None if truth is None else not truth


def value_of(node, new, old):
    """Of a node in a row: a dict from names to cells, None if missing."""
    match node:
        case "constant", (_, value):
            return value
        case "column", (name, was):
            return (old if was else new)[name]
        case ("neg" | "abs") as word, inner:
            value = value_of(inner, new, old)
            return None if value is None else -value if word == "neg" else abs(value)
        case "compare", links:
            values = [value_of(term, new, old) for _, term in links]
            orders = [COMPARE[order] for order, _ in links[1:]]
            return truth_of_all([both(o, a, b) for o, a, b in zip(orders, values, values[1:], strict=False)])
        case "among", term, listed, negated:
            value = value_of(term, new, old)
            return None if value is None else (value in [constant for _, constant in listed]) != negated
        case "word", (name, was), order, word:
            return both(COMPARE[order], (old if was else new)[name], word)
        case "words", (left, left_was), order, (right, right_was):
            return both(COMPARE[order], (old if left_was else new)[left], (old if right_was else new)[right])
        case "missing", (name, was):
            return (old if was else new)[name] is None
        case "not", inner:
            return opposite(value_of(inner, new, old))
        case "and", parts:
            return truth_of_all([value_of(part, new, old) for part in parts])
        case "or", parts:
            return opposite(truth_of_all([opposite(value_of(part, new, old)) for part in parts]))
        case "if", condition, then:
            return value_of(("or", [("not", condition), then]), new, old)
        case sign, left, right:
            a, b = value_of(left, new, old), value_of(right, new, old)
            return None if sign == "/" and b == 0 else both(COMPUTE[sign], a, b)


def parsed(node):
    """None if it has no column."""
    try:
        return Expression.parse(text_of(node), RANDOM)
    except InputError as error:
        if "names no column" not in str(error):
            raise


def random_rows(seed, missing=0.15):
    draw = np.random.default_rng(seed)
    rows = np.column_stack([draw.integers(-2, 4, (20, 3)) / draw.choice([1, 2], (20, 3)), draw.integers(0, 3, (20, 2))])
    return np.where(draw.random(rows.shape) < missing, NAN, rows)


def as_dicts(rows):
    cells = [column.cells(values) for column, values in zip(RANDOM, rows.T, strict=True)]
    exact = [[Fraction(v) if isinstance(v, float) else v for v in each] for each in cells]
    return [dict(zip(RANDOM.names, row, strict=True)) for row in zip(*exact, strict=True)]


NEW, OLD = random_rows(0), random_rows(1)
PEOPLE = list(zip(as_dicts(NEW), as_dicts(OLD), strict=True))


WHOLE = random_rows(2, missing=0)


@given(rules)
def test_random_rules_and_what_they_leave_by_a_second_route(node):
    found = parsed(node)
    if found is None:
        return
    expected = [value_of(node, new, old) is False for new, old in PEOPLE]
    assert found.broken(NEW, OLD).tolist() == expected
    opposite_of = Expression.parse(f"not ({text_of(node)})", RANDOM)
    assert opposite_of.broken(NEW, OLD).tolist() == [value_of(node, new, old) is True for new, old in PEOPLE]
    check_what_is_left(found)


def check_what_is_left(found):
    """No whole row that keeps the rule lies outside; where a division by zero is unknown, nothing is narrowed."""
    kept = WHOLE[~found.broken(WHOLE, WHOLE)]
    low, high = found.narrow(WHOLE.min(axis=0), WHOLE.max(axis=0))
    assert ((low <= kept) & (kept <= high)).all()
    for name in ("c", "d"):
        values = RANDOM[name].cells(kept[:, RANDOM.names.index(name)])
        left = found.allowed(name)
        assert left is None or set(values) <= left
