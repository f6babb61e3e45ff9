"""Several dialogues side by side, with their requests merged."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Generic

import torch

from tdce.methods.protocol import Dialogue, Reply, Request, Result


class Dialogues(Generic[Result]):
    """Several dialogues that advance independently."""

    def __init__(self, dialogues: Sequence[Dialogue[Result]]) -> None:
        self.dialogues = dialogues
        self.requests: dict[int, Request] = {}  # of dialogues that wait for a reply, by number
        self.results: dict[int, Result] = {}  # of dialogues that have ended
        for i in range(len(dialogues)):
            self.resume(i, None)

    def resume(self, i: int, reply: Reply | None) -> None:
        """Run a dialogue to its next request or its end."""
        try:
            self.requests[i] = self.dialogues[i].send(reply)  # type: ignore[arg-type]  # None starts it
        except StopIteration as end:
            self.results[i] = end.value
            self.requests.pop(i, None)


def together(*dialogues: Dialogue[Any]) -> Dialogue[list[Any]]:
    """Merge independent dialogues into one, which returns all results. Their requests of a round, each with one
    candidate per row, become one request."""
    several = Dialogues(dialogues)
    while several.requests:
        now = list(several.requests.items())
        request = Request(torch.cat([each.x for _, each in now]), torch.cat([each.at for _, each in now]))
        reply = yield request
        parts = torch.split(torch.arange(len(request.at)), [len(each.at) for _, each in now])
        for (i, _), which in zip(now, parts, strict=True):
            several.resume(i, reply.take(which))
    return [several.results[i] for i in range(len(dialogues))]
