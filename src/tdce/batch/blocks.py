"""The block function: some rows in, their answer out. The command line, its workers, Ray and Spark call this one."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from tdce._core import Name
from tdce.datasets import frame_of
from tdce.explainer import Answer, Explainer
from tdce.models import Ensemble

ADDED = ("row", "option", "status", "score_before", "score_after", "plausibility", "note")
"""The columns that an answer has after those of the table."""


@dataclass(frozen=True)
class Asked:
    """All that `Explainer.explain` takes besides rows; plain values, which can be pickled."""

    target: Any = None
    n: int = 1
    immutable: tuple[Name, ...] = ()
    rules: tuple[str, ...] = ()
    costs: Mapping[Name, float] = field(default_factory=dict)
    seed: int = 0
    closeness: float | None = None
    threshold: float | None = None


def explain_block(
    explainer: Explainer,
    rows: pd.DataFrame,
    asked: Asked,
    budget: int | None = None,
    ensemble: Ensemble | None = None,
) -> Answer:
    """Pure: the same rows, explainer and question give the same bits, in any process and any company."""
    return explainer.explain(rows, **vars(asked), max_model_rows=budget, robust=ensemble)


@dataclass
class BlockCheck:
    """What is to be checked of each block before any work: every cell, and once the question."""

    explainer: Explainer
    asked: Asked
    told: Callable[[int], object] = lambda rows: None  # how many have been checked
    rows: int = 0

    def __call__(self, rows: pd.DataFrame) -> None:
        self.explainer.fitted.encoder.read(rows)
        if self.rows == 0:
            explain_block(self.explainer, rows.head(0), self.asked)
        self.rows += len(rows)
        self.told(self.rows)


def explain_arrow(explainer: Explainer, rows: pa.Table, asked: Asked, ensemble: Ensemble | None = None) -> pa.Table:
    """The same for engines, whose tables have no order: without the column `row`, in the types of the rows."""
    return arrow_of(explain_block(explainer, block_of(rows), asked, None, ensemble), rows.schema)


def block_of(rows: pa.Table) -> pd.DataFrame:
    """Rows of an engine, numbered from 0."""
    return frame_of(rows).reset_index(drop=True)


def arrow_of(answer: Answer, rows: pa.Schema) -> pa.Table:
    """An answer to rows of these types, as an engine takes it."""
    frame = answer.to_frame()
    kept = [name for i, name in enumerate(frame.columns) if i != len(frame.columns) - len(ADDED)]
    return pa.Table.from_pandas(frame[kept], schema=answer_types(rows), preserve_index=False)


def answer_types(rows: pa.Schema) -> pa.Schema:
    """Of what `arrow_of` returns."""
    types = (pa.int64(), pa.string(), pa.float64(), pa.float64(), pa.float64(), pa.string())
    added = [pa.field(unused_name(name, rows.names), kind) for name, kind in zip(ADDED[1:], types, strict=True)]
    return pa.schema([*(pa.field(each.name, each.type) for each in rows), *added])


def unused_name(name: str, taken: list[str]) -> str:
    """The name, with `tdce_` before it until the table does not have it."""
    while name in taken:
        name = f"tdce_{name}"
    return name


@lru_cache(maxsize=1)
def explainer_of(content: bytes, model: str | None = None) -> Explainer:
    """An artefact that came as bytes, loaded once per process; one thread, because there are other processes."""
    import torch

    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "sent.tdce"
        path.write_bytes(content)
        return Explainer.load(path, progress="silent", model=model)
