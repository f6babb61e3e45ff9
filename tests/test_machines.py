"""Other processors, as far as this one can play them: the same promises with other instruction sets left unused."""

import os
import subprocess
import sys
from pathlib import Path

import lending
import numpy as np
import pandas as pd
import pytest

import tdce
from tdce.machine import OTHERS

HERE = Path(__file__).parent
QUICK = "not (counternet or cchvae or revise or clue or one_thread)"  # those four train networks of their own
ASK = """
import sys, pandas as pd, pytest, tdce
folder, out, company, quick = sys.argv[1:]
explainer = tdce.Explainer.load(f"{folder}/lending.tdce", progress="silent")
rows = pd.read_pickle(f"{folder}/people.pkl")
pd.concat(explainer.explain(rows, **asked).to_frame() for asked in ASKED).to_pickle(out)
sys.exit(pytest.main(["-p", "no:cacheprovider", "-k", quick, company]))
"""
ASKED = ({}, {"n": 3}, {"closeness": 0.0})


def table(rows: int, seed: int) -> pd.DataFrame:
    """With a number that has no grid: every bit of it would show."""
    frame = lending.table(rows, seed)
    return frame.assign(debt=frame["debt"] * np.exp(1 + np.arange(rows) / rows))


@pytest.fixture(scope="module")
def asked(tmp_path_factory) -> tuple[Path, pd.DataFrame]:
    """A fitted explainer, people, and what this process answers."""
    folder = tmp_path_factory.mktemp("machines")
    explainer = tdce.Explainer(hidden=64, steps=200, progress="silent").fit(table(600, seed=0), "decision", "yes")
    explainer.save(folder / "lending.tdce")
    people = table(400, seed=1).drop(columns="decision")
    people = people[(explainer.predict(people) == "no").to_numpy()].head(70)
    people.to_pickle(folder / "people.pkl")
    return folder, pd.concat(explainer.explain(people, **each).to_frame() for each in ASKED)


TOGETHER = [(OTHERS[0], OTHERS[2]), (OTHERS[1], OTHERS[3]), OTHERS[4:]]  # a process each, which imports torch


@pytest.mark.parametrize("settings", TOGETHER, ids=" ".join)
def test_other_instructions_give_the_same_values_and_company_does_not_matter_with_them_either(settings, asked):
    """In one process: the answers to six decimals, then tests/test_company.py."""
    folder, here = asked
    out = folder / f"{len(list(folder.iterdir()))}.pkl"
    done = subprocess.run(
        [sys.executable, "-c", f"ASKED = {ASKED}{ASK}", folder, out, HERE / "test_company.py", QUICK],
        env=os.environ | dict(each.split("=") for each in settings) | {"TDCE_EXAMPLES": "1"},
        capture_output=True,
        text=True,
        check=False,
        cwd=HERE.parent,
    )
    assert out.exists(), done.stderr
    pd.testing.assert_frame_equal(pd.read_pickle(out), here, check_exact=True)
    assert done.returncode == 0, done.stdout[-3000:]
    assert "6 passed" in done.stdout
