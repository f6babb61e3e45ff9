"""Texts of errors: values cut short, lists, and what was probably meant."""

import time

import pytest

from tdce._core import closest, listing, suggest
from tdce._core.arguments import check_choice
from tdce._core.errors import InputError, show


@pytest.mark.parametrize(
    ("value", "known", "match"),
    [
        ("incom", ["age", "income"], "income"),
        ("Income", ["age", "income"], "income"),
        ("INCOME ", ["Income"], "Income"),
        ("zzz", ["age", "income"], None),
        ("age", [], None),
        (1, [10, 2], 10),  # numbers are compared as people write them
        (None, ["none"], "none"),
        (1000 * "x", [100 * "x"], 100 * "x"),
    ],
)
def test_the_closest_name_is_found(value, known, match):
    assert closest(value, known) == match
    assert suggest(value, known) == ("" if match is None else f"did you mean {show(match)}? ")


def test_a_number_that_python_refuses_to_write_has_no_suggestion():
    assert suggest(10**6000, ["1"]) == ""


def test_a_suggestion_does_not_keep_anybody_waiting():
    began = time.process_time()
    suggest("value 12345678", (f"value {i:08d}" for i in range(10**6)))
    assert time.process_time() - began < 1


def test_a_wrong_choice_is_named_with_the_one_that_was_meant():
    with pytest.raises(InputError, match=r"^progress is 'line'; did you mean 'lines'\? it must be one of bar, lines$"):
        check_choice("progress", "line", ["bar", "lines"])


def test_a_list_is_cut_short():
    assert listing(range(14)) == "0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, … (2 more)"
