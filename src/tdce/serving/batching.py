"""Answers taken apart and put together: of requests that were explained in one call, and of the blocks of a file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pandas as pd
import torch

from tdce._core import Positions
from tdce.explainer import Answer
from tdce.methods import Explanation
from tdce.models import Goals, Usage


def split(answer: Answer, frames: list[pd.DataFrame]) -> Iterator[Answer]:
    """The answer to each of the frames that were put together."""
    start = 0
    for frame in frames:
        yield _part(answer, np.arange(start, start + len(frame)), frame)
        start += len(frame)


def _part(answer: Answer, at: Positions, rows: pd.DataFrame) -> Answer:
    """The answer to some of its rows, with the index of `rows`."""
    lines = (at[:, None] * answer.options + np.arange(answer.options)).reshape(-1)
    return replace(
        answer,
        rows=rows,
        written=answer.written.iloc[lines].set_axis(rows.index.repeat(answer.options), axis=0),
        goals=answer.goals.take(torch.from_numpy(at)),
        explanation=answer.explanation.take(at),
        target=answer.target[at],
        wanted=answer.wanted[at],
    )


def joined(answers: list[Answer]) -> Answer:
    """The answers to blocks of one table, as one."""
    first, *others = answers
    if not others:
        return first
    goals = Goals.of([answer.goals.goal(i) for answer in answers for i in range(len(answer.rows))])
    found = (_stacked([getattr(answer.explanation, field.name) for answer in answers]) for field in fields(Explanation))
    return replace(
        first,
        rows=pd.concat([answer.rows for answer in answers]),
        written=pd.concat([answer.written for answer in answers]),
        goals=goals,
        explanation=Explanation(*found),
        target=_stacked([answer.target for answer in answers]),
        wanted=_stacked([answer.wanted for answer in answers]),
        usage=Usage(sum(a.model_calls for a in answers), sum(a.model_rows for a in answers)),
    )


def _stacked(parts: list[Any]) -> Any:
    return None if any(part is None for part in parts) else np.concatenate(parts)
