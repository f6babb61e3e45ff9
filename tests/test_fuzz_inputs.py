"""Mutated schemas, questions and message files: each is read or refused with an InputError, and nothing warns."""

import pytest
import text_mutants


@pytest.fixture(scope="module")
def kinds():
    return text_mutants.kinds(text_mutants.explainer())


@pytest.mark.parametrize(
    ("kind", "tries", "seed"),
    [
        ("schema", 600, 1),
        ("question", 600, 1),
        ("messages", 60, 1),
        pytest.param("schema", 20_000, 0, marks=pytest.mark.slow),
        pytest.param("question", 20_000, 0, marks=pytest.mark.slow),
    ],
)
def test_a_mutant_is_read_or_refused_in_words(kinds, kind, tries, seed):
    texts, use, is_json = kinds[kind]
    for text in texts[:6]:
        if kind != "question":
            use(text)
    counts, failures = text_mutants.fuzz(texts, use, tries, seed, is_json)
    assert failures == []
    assert counts["refused"] > tries / 20
    assert counts["used"] > tries / 50
