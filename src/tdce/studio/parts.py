"""Answers taken apart and put together: of requests that were explained in one call, and of the blocks of a file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pandas as pd
import torch

from tdce.answer import Answer
from tdce.cells import Positions
from tdce.explanation import Explanation
from tdce.goal import Goals


def split(answer: Answer, frames: list[pd.DataFrame]) -> Iterator[Answer]:
    """The answer to each of the frames that were put together."""
    start = 0
    for frame in frames:
        yield _part(answer, np.arange(start, start + len(frame)), frame)
        start += len(frame)


def _part(answer: Answer, at: Positions, rows: pd.DataFrame) -> Answer:
    """The answer to some of its rows, with the index of `rows`."""
    lines = (at[:, None] * answer.options + np.arange(answer.options)).reshape(-1)
    written = answer.written.iloc[lines].set_axis(rows.index.repeat(answer.options), axis=0)
    goals = answer.question.goals.take(torch.from_numpy(at))
    return _with(answer, rows, written, goals, answer.found.take(at), answer.target[at])


def joined(answers: list[Answer]) -> Answer:
    """The answers to blocks of one table, as one."""
    first = answers[0]
    if len(answers) == 1:
        return first
    found = [answer.found for answer in answers]
    names = [field.name for field in fields(Explanation)]
    whole = Explanation(*(np.concatenate([getattr(each, name) for each in found]) for name in names))
    goals = Goals.of([answer.question.goals.goal(i) for answer in answers for i in range(len(answer.rows))])
    rows, written = (pd.concat([getattr(answer, name) for answer in answers]) for name in ("rows", "written"))
    return _with(
        first, rows, written, goals, whole, np.concatenate([answer.target for answer in answers]),
        sum(answer.model_calls for answer in answers), sum(answer.model_rows for answer in answers),
    )  # fmt: skip


def _with(
    answer: Answer,
    rows: pd.DataFrame,
    written: pd.DataFrame,
    goals: Goals,
    found: Explanation,
    target: Any,
    calls: int | None = None,
    asked: int | None = None,
) -> Answer:
    """The answer with other rows, and nothing of what it has worked out about the old ones."""
    return replace(
        answer, rows=rows, written=written, question=replace(answer.question, goals=goals), found=found, target=target,
        model_calls=answer.model_calls if calls is None else calls,
        model_rows=answer.model_rows if asked is None else asked,
    )  # fmt: skip
