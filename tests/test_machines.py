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
ASK = """
import sys, pandas as pd, tdce
model, people, out = sys.argv[1:]
explainer, rows = tdce.Explainer.load(model, progress="silent"), pd.read_pickle(people)
frames = [explainer.explain(rows, **asked).to_frame() for asked in ({}, {"n": 3}, {"closeness": 0.0})]
pd.concat(frames).to_pickle(out)
"""


def process(setting: str, *words: object) -> subprocess.CompletedProcess[str]:
    name, value = setting.split("=")
    environment = os.environ | {name: value, "TDCE_EXAMPLES": "3"}
    return subprocess.run(
        [sys.executable, *map(str, words)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        cwd=HERE.parent,
    )


@pytest.mark.parametrize("setting", OTHERS)
def test_company_does_not_matter_with_other_instructions_either(setting):
    quick = "not (counternet or cchvae or revise or clue or one_thread)"  # those four train networks of their own
    done = process(setting, "-m", "pytest", "-p", "no:cacheprovider", "-k", quick, HERE / "test_company.py")
    assert done.returncode == 0, done.stdout[-3000:]
    assert "4 passed" in done.stdout


def table(rows: int, seed: int) -> pd.DataFrame:
    """With a number that has no grid: every bit of it would show."""
    frame = lending.table(rows, seed)
    return frame.assign(debt=frame["debt"] * np.exp(1 + np.arange(rows) / rows))


@pytest.fixture(scope="module")
def asked(tmp_path_factory) -> tuple[Path, pd.DataFrame]:
    """A fitted explainer, people, and what this process answers."""
    folder = tmp_path_factory.mktemp("machines")
    frame = table(600, seed=0)
    explainer = tdce.Explainer(hidden=64, steps=200, progress="silent").fit(frame, "decision", "yes")
    explainer.save(folder / "lending.tdce")
    people = table(400, seed=1).drop(columns="decision")
    people[(explainer.predict(people) == "no").to_numpy()].head(150).to_pickle(folder / "people.pkl")
    done = subprocess.run(
        [sys.executable, "-c", ASK, *(folder / name for name in ("lending.tdce", "people.pkl", "here.pkl"))],
        check=False,
    )
    assert done.returncode == 0
    return folder, pd.read_pickle(folder / "here.pkl")


@pytest.mark.parametrize("setting", OTHERS)
def test_other_instructions_give_the_same_values_and_the_same_six_decimals(setting, asked):
    folder, here = asked
    out = folder / f"{setting}.pkl"
    done = process(setting, "-c", ASK, folder / "lending.tdce", folder / "people.pkl", out)
    assert done.returncode == 0, done.stderr
    pd.testing.assert_frame_equal(pd.read_pickle(out), here, check_exact=True)
