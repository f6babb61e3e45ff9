"""A row's answer is the same to the bit alone, shuffled and in parts: on tables of all widths, of any number of rows.

The networks here are not trained, for the promise has nothing to do with what they learned. tests/test_machines.py asks
for these promises again with other instruction sets.
"""

import os

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

import tdce
from tdce.diffusion.model import TabularDiffusion
from tdce.encoder import Encoder
from tdce.fitting import Fitted
from tdce.methods import METHODS
from tdce.models.classifier import Classifier
from tdce.plausibility import reference
from tdce.progress import Progress
from tdce.schema import Schema

EXAMPLES = int(os.environ.get("TDCE_EXAMPLES", "2"))  # besides the one that is written out


def table(rows: int, numbers: int, categories: tuple[int, ...], seed: int) -> pd.DataFrame:
    """Half of the numbers have a grid, half have none."""
    rng = np.random.default_rng(seed)
    columns = {f"n{i}": rng.normal(size=rows) if i % 2 else rng.integers(0, 50, rows) for i in range(numbers)}
    columns |= {f"c{i}": rng.choice([f"v{k}" for k in range(size)], rows) for i, size in enumerate(categories)}
    return pd.DataFrame(columns)


def untrained(frame: pd.DataFrame, classes: int, hidden: int) -> tdce.Explainer:
    """An explainer whose networks are as they were drawn."""
    encoder = Encoder.fit(frame, Schema.infer(frame))
    raw = encoder.read(frame)
    x = encoder.embed(raw).float()
    classifier = Classifier(encoder.space.width, classes, hidden)
    classifier.temperature.fill_(0.1)  # so that its answers differ
    diffusion = TabularDiffusion(encoder.space, hidden, classes=classes)
    if encoder.space.num:
        diffusion.low, diffusion.high = x[:, : encoder.space.num].amin(dim=0), x[:, : encoder.space.num].amax(dim=0)
    for module in (classifier, diffusion):
        module.eval().requires_grad_(False)
    y = classifier(x).argmax(dim=1)
    made = tdce.Explainer(hidden=hidden, progress="silent")
    typical = reference(encoder, diffusion, raw, y, classes, 0, Progress("silent"))
    made.fitted_ = Fitted(
        encoder, "y", tuple(range(classes)), None, classifier, diffusion, raw, y, raw, typical, {"seed": 0}
    )
    return made


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


@settings(
    max_examples=max(EXAMPLES, 1),
    deadline=None,
    phases=(Phase.explicit, Phase.generate)[: 1 + (EXAMPLES > 0)],
    suppress_health_check=list(HealthCheck),
)
@given(questions())
@example(
    {"numbers": 5, "categories": (3, 7, 2), "classes": 3, "hidden": 24, "rows": 90,
     "asked": {"n": 3, "closeness": 0.0}, "seed": 11}
)  # fmt: skip
def test_company_does_not_matter(question):
    frame = table(200, question["numbers"], question["categories"], question["seed"])
    explainer = untrained(frame, question["classes"], question["hidden"])
    people = table(question["rows"], question["numbers"], question["categories"], question["seed"] + 1)
    target, n = question["seed"] % question["classes"], len(people)

    def asked(rows: pd.DataFrame) -> pd.DataFrame:
        return explainer.explain(rows, target=target, seed=question["seed"], **question["asked"]).to_frame()

    whole = asked(people)
    order = np.random.default_rng(0).permutation(n)
    parts = [people.iloc[order], people.iloc[[n // 2]], people.iloc[: n // 3 + 1], people.iloc[n // 2 :]]
    for part in parts:
        pd.testing.assert_frame_equal(asked(part), whole.loc[part.index], check_exact=True)
    proba = explainer.predict_proba(whole.iloc[[n // 2]])[target]
    assert proba.iloc[0] == whole["score_after"].iloc[n // 2]


SHORT = {"tdce_paper": 12, "tdce_printed": 12, "wachter": 40, "revise": 30, "clue": 30, "counternet": 50}  # steps


@pytest.mark.parametrize("method", [method for method in METHODS if method != "tdce"])
def test_the_other_methods_keep_the_promise_too(method):
    frame = table(150, 3, (3, 2), seed=0)
    explainer = untrained(frame, 3, hidden=10)
    explainer.method = METHODS[method](**({"steps": SHORT[method]} if method in SHORT else {}))
    people = table(90, 3, (3, 2), seed=1)
    whole = explainer.explain(people, target=1).to_frame()
    for part in (people.iloc[::-1], people.iloc[[77]], people.iloc[10:50]):
        pd.testing.assert_frame_equal(
            explainer.explain(part, target=1).to_frame(), whole.loc[part.index], check_exact=True
        )


def test_one_thread_and_two_give_the_same_bits():
    frame = table(300, 5, (4, 3), seed=0)
    explainer, people, threads = untrained(frame, 3, hidden=40), table(700, 5, (4, 3), seed=1), torch.get_num_threads()
    found = []
    try:
        for count in (1, 2):
            torch.set_num_threads(count)
            found.append(explainer.explain(people, target=1, closeness=0.2).to_frame())
    finally:
        torch.set_num_threads(threads)
    pd.testing.assert_frame_equal(*found, check_exact=True)
