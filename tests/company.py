"""The promise that a row's answer does not depend on its company, asked of explainers whose networks are not trained.

Without pytest: tests/test_selftest.py asks it in processes with other instruction sets, which should start quickly.
"""

import copy
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

import tdce
from tdce._core.progress import Progress
from tdce.diffusion.model import TabularDiffusion
from tdce.diffusion.plausibility import measure_energy_quantiles
from tdce.explainer.fitting import Fitted
from tdce.methods.registry import METHODS
from tdce.models.classifier import Classifier
from tdce.models.model import NetworkModel
from tdce.models.second_opinion import SecondOpinion
from tdce.schema.encoder import Encoder
from tdce.schema.schema import Schema

QUESTION = {
    "numbers": 5, "categories": (3, 7, 2), "classes": 3, "hidden": 24, "rows": 90,
    "asked": {"n": 3, "closeness": 0.0}, "seed": 11,
}  # fmt: skip
NUMBERS_ALONE = {
    "numbers": 7, "categories": (), "classes": 7, "hidden": 7, "rows": 150, "asked": {"closeness": 0.0}, "seed": 10091,
}  # fmt: skip
SHORT = {"guided": 12, "guided_literal": 12, "wachter": 40, "revise": 30, "clue": 30, "counternet": 50}  # steps


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
    typical = measure_energy_quantiles(encoder, diffusion, raw, y, classes, 0, Progress("silent"))
    model = NetworkModel(classifier, encoder.embed, tuple(range(classes)))
    opinion = SecondOpinion.fit(x, encoder.space.num, np.eye(classes)[y.numpy()], model.outputs)
    made.fitted_ = Fitted(
        encoder, "y", None, classifier, diffusion, raw, y, raw, typical, model, opinion, {"seed": 0},
    )  # fmt: skip
    return made


def company_does_not_matter(question: dict[str, Any]) -> None:
    frame = table(200, question["numbers"], question["categories"], question["seed"])
    explainer = untrained(frame, question["classes"], question["hidden"])
    people = table(question["rows"], question["numbers"], question["categories"], question["seed"] + 1)
    target, n = question["seed"] % question["classes"], len(people)

    def asked(rows: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
        answer = explainer.explain(rows, target=target, seed=question["seed"], **question["asked"])
        return answer.to_frame(), answer.reasons().set_index("row")

    whole, reasons = asked(people)
    order = np.random.default_rng(0).permutation(n)
    parts = [people.iloc[order], people.iloc[[n // 2]], people.iloc[: n // 3 + 1], people.iloc[n // 2 :]]
    for part in parts:
        found, why = asked(part)
        pd.testing.assert_frame_equal(found, whole.loc[part.index], check_exact=True)
        kept = part.index[part.index.isin(reasons.index)].rename("row")  # pandas 2 takes the name of what it is given
        pd.testing.assert_frame_equal(why, reasons.loc[kept], check_exact=True)
    proba = explainer.predict_proba(whole.iloc[[n // 2]])[target]
    assert proba.iloc[0] == whole["score_after"].iloc[n // 2]


@cache
def of_three_classes() -> tdce.Explainer:
    """What its copies train is trained once."""
    return untrained(table(150, 3, (3, 2), seed=0), 3, hidden=10)


def another_method_keeps_the_promise_too(method: str) -> None:
    explainer = copy.copy(of_three_classes())
    explainer.method = METHODS[method](**({"steps": SHORT[method]} if method in SHORT else {}))
    people = table(90, 3, (3, 2), seed=1)
    whole = explainer.explain(people, target=1).to_frame()
    for part in (people.iloc[::-1], people.iloc[[77]], people.iloc[10:50]):
        pd.testing.assert_frame_equal(
            explainer.explain(part, target=1).to_frame(), whole.loc[part.index], check_exact=True
        )
