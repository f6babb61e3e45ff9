"""A row's answer is the same to the bit alone, shuffled and in parts: on tables of all widths, of any number of rows.

The networks here are not trained, for the promise has nothing to do with what they learned. The questions themselves
are in tests/company.py: tests/test_selftest.py asks them again with other instruction sets.
"""

import os

import pandas as pd
import pytest
import torch
from company import (
    NUMBERS_ALONE,
    QUESTION,
    another_method_keeps_the_promise_too,
    company_does_not_matter,
    table,
    untrained,
)
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tdce.methods.registry import METHODS

EXAMPLES = int(os.environ.get("TDCE_EXAMPLES", "1"))  # besides those that are written out


@st.composite
def questions(draw):
    numbers = draw(st.integers(1, 12))
    left = draw(st.integers(0, 40 - numbers))  # columns for the categories: the encoded width is 1 to 40
    sizes = []
    while left >= 2:
        sizes.append(draw(st.integers(2, min(left, 9))))
        left -= sizes[-1]
    return {
        "numbers": numbers,
        "categories": tuple(sizes),
        "classes": draw(st.integers(2, 7)),
        "hidden": draw(st.sampled_from([7, 16, 24])),
        "rows": draw(st.one_of(st.integers(1, 70), st.integers(71, 900), st.sampled_from([1024, 1025, 1100]))),
        "asked": draw(st.sampled_from([{}, {"closeness": 0.0}, {"n": 3}, {"n": 3, "closeness": 0.0}])),
        "seed": draw(st.integers(0, 2**32 - 1)),
    }


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(questions())
@example(QUESTION)
@example(NUMBERS_ALONE)
def test_company_does_not_matter(question):
    company_does_not_matter(question)


@pytest.mark.parametrize("method", [method for method in METHODS if method != "search"])
def test_the_other_methods_keep_the_promise_too(method):
    another_method_keeps_the_promise_too(method)


def test_one_thread_and_two_give_the_same_bits():
    frame = table(300, 5, (4, 3), seed=0)
    explainer, people, threads = untrained(frame, 3, hidden=40), table(250, 5, (4, 3), seed=1), torch.get_num_threads()
    found = []
    try:
        for count in (1, 2):
            torch.set_num_threads(count)
            found.append(explainer.explain(people, target=1, closeness=0.2).to_frame())
    finally:
        torch.set_num_threads(threads)
    pd.testing.assert_frame_equal(*found, check_exact=True)
