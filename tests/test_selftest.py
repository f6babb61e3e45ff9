"""Other processors, as far as this one can imitate them: the same promises with fewer instruction sets."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import lending
import numpy as np
import pandas as pd
import pytest
from fits import SHORT

import tdce
from tdce._core.selftest import OTHER_PROCESSORS

ASK = """
import sys, pandas as pd, tdce
folder, out, tests, *others = sys.argv[1:]
explainer = tdce.Explainer.load(f"{folder}/lending.tdce", progress="silent")
rows = pd.read_pickle(f"{folder}/people.pkl")
pd.concat(explainer.explain(rows, **asked).to_frame() for asked in ASKED).to_pickle(out)
sys.path.insert(0, tests)
import company
company.company_does_not_matter(company.QUESTION)
for method in others:
    company.another_method_keeps_the_promise_too(method)
print("all kept")
"""
ASKED = ({}, {"n": 3}, {"closeness": 0.0})  # the first is answered in one pass
SAID = f"ASKED = {ASKED}{ASK}"


def table(rows: int, seed: int) -> pd.DataFrame:
    """With a number that has no grid: every bit of it would show."""
    frame = lending.table(rows, seed)
    return frame.assign(debt=frame["debt"] * np.exp(1 + np.arange(rows) / rows))


@pytest.fixture(scope="module")
def asked(tmp_path_factory) -> tuple[Path, pd.DataFrame]:
    """A fitted explainer, people, and what this process answers."""
    folder = tmp_path_factory.mktemp("machines")
    plans = replace(SHORT, amortised=replace(SHORT.amortised, steps=200), amortised_answers=200)
    explainer = tdce.Explainer(hidden=64, steps=60, fast=True, plans=plans, progress="silent")
    explainer.fit(table(300, seed=0), label="decision", favourable="yes")
    explainer.save(folder / "lending.tdce")
    people = table(200, seed=1).drop(columns="decision")
    people = people[(explainer.predict(people) == "no").to_numpy()].head(40)
    people.to_pickle(folder / "people.pkl")
    return folder, pd.concat(explainer.explain(people, **each).to_frame() for each in ASKED)


TOGETHER = {  # a process each, which imports torch, and the methods that it asks: those that train nothing of their own
    (OTHER_PROCESSORS[0], OTHER_PROCESSORS[2]): ("wachter", "face"),
    (OTHER_PROCESSORS[1], OTHER_PROCESSORS[3]): ("guided", "nice"),
    OTHER_PROCESSORS[4:]: ("guided_literal",),
}


@pytest.mark.parametrize("settings", TOGETHER, ids=" ".join)
def test_other_instructions_give_the_same_values_in_any_batch(settings, asked):
    """In one process: the answers to six decimals, then the promises of tests/test_company.py."""
    folder, here = asked
    out = folder / f"{len(list(folder.iterdir()))}.pkl"
    done = subprocess.run(
        [sys.executable, "-c", SAID, folder, out, Path(__file__).parent, *TOGETHER[settings]],
        env=os.environ | dict(each.split("=") for each in settings),
        capture_output=True,
        text=True,
        check=False,
    )
    assert out.exists(), done.stderr
    pd.testing.assert_frame_equal(pd.read_pickle(out), here, check_exact=True)
    assert done.stdout == "all kept\n", done.stderr[-3000:]
