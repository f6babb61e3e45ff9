"""Models whose score of a row depends on the other rows of a call: each row is asked about alone, or in fixed
company."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from tdce._core import AnyFrame, InputError, as_pandas


@dataclass(frozen=True, eq=False)
class OneByOne:
    """A model that is asked about one row at a time, for those that look at the other rows of a call, as models that
    learn in context do. A call a row takes long: give `explain` a query budget (`max_model_rows`).

    Examples
    --------
    >>> import tdce
    >>> def rank(frame):  # the score of a row depends on who else is in the call
    ...     return frame["income"].rank(pct=True).to_numpy()
    >>> table = tdce.load("german").frame.rename(columns={"credit_amount": "income"})
    >>> model = tdce.OneByOne(rank, company=table.head(50))  # now it is the rank among these 50
    """

    model: Any  # an estimator, a function, or whatever else `Explainer(model=...)` takes
    company: AnyFrame | None = None  # rows that come along in every call, before the one that is asked about

    def __post_init__(self) -> None:
        if isinstance(self.model, OneByOne | dict):
            raise InputError("OneByOne takes one model; of several outputs, wrap each: {'risk': OneByOne(model), …}")
        if self.company is not None:
            object.__setattr__(self, "company", as_pandas(self.company, "company").reset_index(drop=True))


def ask_one_by_one(
    ask: Callable[[pd.DataFrame], Any],
    frame: pd.DataFrame,
    company: pd.DataFrame,  # without rows: each is asked about alone
    name: str,  # of the model
) -> Any:
    """(n,) or (n, k) what a model says of each row, which is always the last of a call."""
    whole = (
        pd.concat([company[frame.columns].astype(frame.dtypes), frame], ignore_index=True) if len(company) else frame
    )
    before, answers = np.arange(len(company)), []
    for i in range(len(company), len(whole)):
        part = whole.iloc[[*before, i]].reset_index(drop=True)
        answer = ask(part)
        values = np.asarray(answer.detach().cpu() if hasattr(answer, "detach") else answer)
        if values.ndim not in (1, 2) or len(values) != len(part):
            raise InputError(f"the model {name} returns an array of shape {values.shape} for {len(part)} rows")
        answers.append(values[-1:])
    return np.concatenate(answers) if answers else ask(frame)
