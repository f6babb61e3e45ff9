"""Preparation of tables by presets: derive columns, choose rows, balance classes."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray


def random_order(rows: int, seed: int) -> NDArray[np.int64]:
    """Shuffle row positions, in the same order on every machine and with every version of numpy."""
    # numpy keeps the raw output of Philox stable across versions, but not its shuffling.
    words = np.random.Philox(seed).random_raw(rows)
    return np.argsort(words, kind="stable").astype(np.int64)


def sample(frame: pd.DataFrame, size: int) -> pd.DataFrame:
    """Draw `size` rows, kept in order, with the fixed seed 0, so that everybody gets the same rows."""
    return frame.iloc[np.sort(random_order(len(frame), seed=0)[:size])]


def balance(frame: pd.DataFrame, label: str) -> pd.DataFrame:
    """Draw as many rows of each class as the smallest class has, kept in order."""
    smallest = int(frame[label].value_counts().min())
    kept = [sample(rows, smallest) for _, rows in frame.groupby(label)]
    return pd.concat(kept).sort_index()


def adult_paper(frame: pd.DataFrame) -> pd.DataFrame:
    """Add four categories as 0/1 flags; where the country is missing, so is its flag."""
    country = frame["native_country"]
    return frame.assign(  # PAPER[11]
        married_flag=frame["marital_status"].str.startswith("Married").astype("int64"),
        white_flag=(frame["race"] == "White").astype("int64"),
        male_flag=(frame["sex"] == "Male").astype("int64"),
        us_native_flag=(country == "United-States").astype("Int64").mask(country.isna()),
    )


def gmc_paper(frame: pd.DataFrame) -> pd.DataFrame:
    """Keep complete rows and balance the classes."""
    return balance(frame.dropna(), "serious_delinquency")  # PAPER[13]


def law_paper(frame: pd.DataFrame) -> pd.DataFrame:
    """Balance the classes."""
    return balance(frame, "bar_exam")  # PAPER[13]


def law_paper_size(frame: pd.DataFrame) -> pd.DataFrame:
    """Draw the paper's 7,502 rows: all of the smaller class, and others up to that number."""
    failed = frame["bar_exam"] == "failed"
    return pd.concat([frame[failed], sample(frame[~failed], 7_502 - int(failed.sum()))]).sort_index()  # PAPER[13]


def lcd_full(frame: pd.DataFrame) -> pd.DataFrame:
    """Make placeholders in debt_to_income missing."""
    ratio = frame["debt_to_income"]
    return frame.assign(debt_to_income=ratio.mask(ratio.isin([-1, 999])))


def lcd_paper(frame: pd.DataFrame) -> pd.DataFrame:
    """Draw 12,000 of the loans that have a last FICO score."""
    return sample(lcd_full(frame).dropna(subset=["last_fico_score"]), 12_000)  # PAPER[12]
