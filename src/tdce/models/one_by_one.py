"""Models whose score of a row depends on the other rows of a call: each row is sent alone, or after the same rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from tdce._core import AnyFrame, InputError, as_pandas


@dataclass(frozen=True, eq=False)
class OneByOne:
    """A model that is queried one row at a time, because its scores depend on the other rows of a call (as those of
    in-context learners do). One call per row is slow: give `explain` a query budget (`max_model_rows`).

    Examples
    --------
    >>> import tdce
    >>> def rank(frame):  # the score of a row depends on who else is in the call
    ...     return frame["income"].rank(pct=True).to_numpy()
    >>> table = tdce.load("german").frame.rename(columns={"credit_amount": "income"})
    >>> model = tdce.OneByOne(rank, company=table.head(50))  # now it is the rank among these 50
    """

    model: Any  # an estimator, a function, or anything else that `Explainer(model=...)` takes
    company: AnyFrame | None = None  # rows that precede the queried row in every call

    def __post_init__(self) -> None:
        if isinstance(self.model, OneByOne | dict):
            raise InputError("OneByOne takes one model; of several outputs, wrap each: {'risk': OneByOne(model), …}")
        if self.company is not None:
            object.__setattr__(self, "company", as_pandas(self.company, "company").reset_index(drop=True))


def ask_one_by_one(
    ask: Callable[[pd.DataFrame], Any],
    frame: pd.DataFrame,
    company: pd.DataFrame,  # rows that precede each row; may be empty
    name: str,  # of the model
) -> Any:
    """(n,) or (n, k) a model's result for each row, which is always the last of its call."""
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
