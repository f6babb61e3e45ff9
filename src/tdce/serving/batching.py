"""Split an answer by request, when several were explained in one call, and join those to the blocks of a file."""

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
from tdce.schema import write_values


def split_answer(answer: Answer, frames: list[pd.DataFrame]) -> Iterator[Answer]:
    """Split an answer to frames that were explained together into one per frame."""
    start = 0
    for frame in frames:
        yield _take_rows(answer, np.arange(start, start + len(frame)), frame)
        start += len(frame)


def _take_rows(answer: Answer, at: Positions, rows: pd.DataFrame) -> Answer:
    """The part of an answer for some rows, with the index of `rows`."""
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


def join_answers(answers: list[Answer]) -> Answer:
    """Join the answers to the blocks of one table."""
    first, *others = answers
    if not others:
        return first
    goals = Goals.of([answer.goals.goal(i) for answer in answers for i in range(len(answer.rows))])
    explanation = Explanation(
        *(_concatenate([getattr(answer.explanation, each.name) for answer in answers]) for each in fields(Explanation))
    )
    rows = pd.concat([answer.rows for answer in answers])
    repeated = np.repeat(np.arange(len(rows)), first.options)
    raw = explanation.raw.reshape(len(repeated), -1)
    return replace(
        first,
        rows=rows,
        written=write_values(first.schema, raw, rows.iloc[repeated], explanation.own[repeated]),  # in the table's types
        goals=goals,
        explanation=explanation,
        target=_concatenate([answer.target for answer in answers]),
        wanted=_concatenate([answer.wanted for answer in answers]),
        usage=Usage(sum(a.model_calls for a in answers), sum(a.model_rows for a in answers)),
    )


def _concatenate(parts: list[Any]) -> Any:
    """Concatenate parts; None if any part is None."""
    return None if any(part is None for part in parts) else np.concatenate(parts)
