"""A model behind an HTTP endpoint: rows go in as JSON, scores come out.

POST {"rows": [{"age": 34, "job": "clerk"}, …]}  ->  {"scores": [0.31, …]} or {"scores": [[0.69, 0.31], …]}
"""

from __future__ import annotations

import json
import math
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from tdce._core import InputError, plain, show

RETRY_STATUS = (408, 425, 429, 500, 502, 503, 504)  # after which a request is tried again


@dataclass(frozen=True)
class Endpoint:
    """A function of data frames that sends them in batches, with time-outs and retries."""

    address: str
    batch: int = 2_000
    timeout: float = 60.0  # seconds
    tries: int = 4
    pause: float = 0.2  # seconds before the second try; doubles with each further try

    def __call__(self, frame: pd.DataFrame) -> Any:
        records = _records(frame)
        scores: list[Any] = []
        for i in range(0, len(records), self.batch):
            batch = records[i : i + self.batch]
            reply = self._scores(json.dumps({"rows": batch}, allow_nan=False).encode())
            if len(reply) != len(batch):
                raise InputError(f"the model at {self.address} returned {len(reply)} scores for {len(batch)} rows")
            scores += reply
        return np.asarray(scores)

    def _scores(self, body: bytes) -> list[Any]:
        for attempt in range(self.tries):
            last = attempt == self.tries - 1
            request = urllib.request.Request(self.address, body, {"Content-Type": "application/json"})
            try:
                with urllib.request.urlopen(request, timeout=self.timeout) as response:
                    return self._read(response.read())
            except urllib.error.HTTPError as error:
                if last or error.code not in RETRY_STATUS:
                    text = error.read(300).decode(errors="replace")
                    raise InputError(f"the model at {self.address} answers {error.code}: {show(text)}") from None
            except (urllib.error.URLError, TimeoutError, ConnectionError) as error:
                if last:
                    reason = getattr(error, "reason", error)
                    raise InputError(
                        f"the model at {self.address} cannot be reached: {reason}; is it running?"
                    ) from None
            time.sleep(self.pause * 2**attempt)
        raise AssertionError("the last try returns or raises")

    def _read(self, body: bytes) -> list[Any]:
        try:
            reply = json.loads(body)
        except ValueError:
            raise InputError(f"the model at {self.address} does not answer with JSON: {show(body[:80])}") from None
        scores = reply.get("scores") if isinstance(reply, dict) else reply
        if not isinstance(scores, list):
            raise InputError(f'the model at {self.address} must answer {{"scores": […]}}, not {show(reply)}')
        return scores


def _records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """One object per row; a missing cell is None."""
    columns = {str(name): [_cell(cell) for cell in frame[name].tolist()] for name in frame.columns}
    return [dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True)]


def _cell(cell: Any) -> Any:
    cell = plain(cell)
    return None if cell is pd.NA or cell is None or (isinstance(cell, float) and math.isnan(cell)) else cell
