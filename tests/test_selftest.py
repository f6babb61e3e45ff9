"""Other processors, as far as this one can imitate them: the same promises with fewer instruction sets."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import lawful
import lending
import numpy as np
import pandas as pd
import pytest
import torch
from fits import SHORT, SMALL

import tdce
from tdce._core.selftest import OTHER_PROCESSORS
from tdce.schema.constraints.laws import Equivalent, Follows

ASK = """
import sys, pandas as pd, tdce, torch
folder, out, tests, *others = sys.argv[1:]
for name, asked in ASKED.items():
    explainer = tdce.Explainer.load(f"{folder}/{name}.tdce", progress="silent")
    rows = pd.read_pickle(f"{folder}/{name}.pkl")
    pd.concat(explainer.explain(rows, **each).to_frame() for each in asked).to_pickle(f"{out}-{name}")
print(torch.backends.cpu.get_cpu_capability())
sys.path.insert(0, tests)
import company
company.company_does_not_matter(company.QUESTION)
for method in others:
    company.another_method_keeps_the_promise_too(method)
print("all kept")
"""
ASKED = {
    "lending": ({}, {"n": 3}, {"closeness": 0.0}),  # the first is answered in one pass
    "price_list": ({"n": 2}, {"n": 2, "immutable": ["satisfaction", "calls"]}),  # a price that follows, and services
}
SAID = f"ASKED = {ASKED}{ASK}"


def table(rows: int, seed: int) -> pd.DataFrame:
    """With a number that has no grid: every bit of it would show."""
    frame = lending.table(rows, seed)
    return frame.assign(debt=frame["debt"] * np.exp(1 + np.arange(rows) / rows))


@pytest.fixture(scope="module")
def asked(tmp_path_factory) -> tuple[Path, dict[str, pd.DataFrame]]:
    """Fitted explainers, people, and what this process answers."""
    folder = tmp_path_factory.mktemp("machines")
    lender = tdce.Explainer(hidden=64, steps=60, plans=replace(SHORT, precedents=100), progress="silent")
    lender.fit(table(300, seed=0), label="decision", favourable="yes")
    prices = lawful.price_list(rows=600).frame
    shop = tdce.Explainer(**SMALL, plans=SHORT, progress="silent").fit(prices, label="label", favourable="yes")
    assert {Follows, Equivalent} <= set(map(type, shop.schema.laws))
    people = {"lending": table(200, seed=1).drop(columns="decision"), "price_list": prices.drop(columns="label")}
    answers = {}
    for explainer, (name, rows) in zip((lender, shop), people.items(), strict=True):
        refused = rows[(explainer.predict(rows) == "no").to_numpy()].head(40)
        explainer.save(folder / f"{name}.tdce")
        refused.to_pickle(folder / f"{name}.pkl")
        answers[name] = pd.concat(explainer.explain(refused, **each).to_frame() for each in ASKED[name])
    changed = answers["price_list"]["price"].to_numpy() != prices["price"][answers["price_list"].index].to_numpy()
    assert changed.mean() > 0.3  # what follows was computed anew
    return folder, answers


TOGETHER = {  # a process each, which imports torch, and the methods that it asks: those that train nothing of their own
    (OTHER_PROCESSORS[0], OTHER_PROCESSORS[2]): ("wachter", "face"),
    (OTHER_PROCESSORS[1], OTHER_PROCESSORS[3]): ("guided", "nice"),
    OTHER_PROCESSORS[4:]: ("guided_literal",),
}


@pytest.mark.parametrize("settings", TOGETHER, ids=" ".join)
def test_other_instructions_give_the_same_values_in_any_batch(settings, asked):
    """In one process: the answers to six decimals, then the promises of tests/test_company.py."""
    folder, here = asked
    out = folder / f"{len(list(folder.iterdir()))}"
    switches = dict(each.split("=") for each in settings)
    done = subprocess.run(
        [sys.executable, "-c", SAID, folder, out, Path(__file__).parent, *TOGETHER[settings]],
        env=os.environ | switches,
        capture_output=True,
        text=True,
        check=False,
    )
    used = torch.backends.cpu.get_cpu_capability()  # on this machine AVX512, AVX2 or none of them
    if used.startswith("AVX"):
        used = switches.get("ATEN_CPU_CAPABILITY", used).upper()
    for name, answers in here.items():
        path = folder / f"{out.name}-{name}"
        assert path.exists(), done.stderr
        pd.testing.assert_frame_equal(pd.read_pickle(path), answers, check_exact=True)
    assert done.stdout == f"{used}\nall kept\n", done.stderr[-3000:]
