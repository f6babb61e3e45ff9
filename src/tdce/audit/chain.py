"""A chain of records: each line has the hash of the one before, and its own."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path

from tdce._core import InputError
from tdce.audit.keys import Signer
from tdce.audit.record import ABOUT, FORMAT, Answered, Record, block_lines, now
from tdce.datasets import whole_file
from tdce.explainer import canonical, digest

START = "0" * 64  # in the place of the hash before the first line


@dataclass(frozen=True)
class State:
    """All that is needed to go on after a kill; `json.dumps(asdict(state))` keeps it, `State(**…)` brings it back."""

    lines: int = 0  # written so far
    head: str = START  # the hash of the last of them
    about: str = ""  # the hash of what the first line says of question and artefact
    machine: str = ""  # the hash of where the last answers come from


class Chain:
    """Lines of evidence, in order, block after block of answers to one question by one artefact.

    >>> chain = Chain()
    >>> for answer in blocks:
    ...     file.writelines(chain.records(answer))  # chain.state is small: keep it, and Chain(state=...) goes on there
    >>> file.write(chain.end())
    """

    def __init__(self, secret: bytes | None = None, state: State | None = None) -> None:
        self.secret = secret  # None: values are held
        self.state = state or State()

    def records(self, answer: Answered) -> Iterator[str]:
        """The lines of one answer, each with its line end; before the first answer the first line."""
        return self.link(block_lines(answer, self.secret))

    def link(self, lines: Iterable[str]) -> Iterator[str]:
        """The same of pieces that were made elsewhere, by `record.piece`, one after the other."""
        for line in lines:
            if line.startswith(ABOUT):
                yield from self._head(**json.loads(line))
            else:
                yield self._linked("answer", line.rstrip("\n"))

    def _head(self, about: Record, machine: Record, block: Record | None = None) -> Iterator[str]:
        """What is to be said before the answers of a piece, if it is not what was said before."""
        whole, where = digest("about", about), digest("machine", machine)
        if self.state.lines == 0:
            self.state = State(about=whole, machine=where)
            yield self._line("head", {"format": FORMAT, "written": now(), **about, "machine": machine})
        if whole != self.state.about:
            raise InputError("this answer is to another question, or by another explainer, than the answers before it; "
                             "begin a new file of evidence")  # fmt: skip
        if where != self.state.machine:
            self.state = replace(self.state, machine=where)
            yield self._line("machine", {"machine": machine})
        if block is not None:
            yield self._line("block", block)

    def end(self, signer: Signer | None = None) -> str:
        """The last line, with the number of lines before it; without it the evidence is not complete."""
        if self.state.lines == 0:
            raise InputError("there is no answer to give evidence of")
        signature = None
        if signer is not None:
            signature = {"algorithm": "Ed25519", "key": signer.public, "value": signer.sign(signed(self.state))}
        return self._line("end", {"lines": self.state.lines, "signature": signature})

    def _line(self, kind: str, record: Record) -> str:
        return self._linked(kind, canonical(record))

    def _linked(self, kind: str, text: str) -> str:
        """A record, as JSON, in its place; `state` goes on."""
        place, previous = f'"record":"{kind}","number":{self.state.lines}', f'"previous":"{self.state.head}"'
        line, own = seal_line(f"{{{place},{text[1:-1]},{previous}}}")
        self.state = replace(self.state, lines=self.state.lines + 1, head=own)
        return line


def write_evidence(
    path: Path, answers: Iterable[Answered], signer: Signer | None = None, secret: bytes | None = None
) -> None:
    """A whole file of evidence, from blocks of answers in their order."""
    chain = Chain(secret)
    with whole_file(path) as file:
        for answer in answers:
            file.writelines(line.encode() for line in chain.records(answer))
        file.write(chain.end(signer).encode())


def seal_line(text: str) -> tuple[str, str]:
    """A line with its hash, and the hash: SHA-256 of the line as it is without it."""
    own = sha256(text.encode()).hexdigest()
    return f'{text[:-1]},"hash":"{own}"}}\n', own


def signed(state: State) -> bytes:
    """What a signature is of: how many lines there are before the last one, and the hash of the last of these."""
    return f"tdce evidence {FORMAT}\n{state.lines}\n{state.head}\n".encode()
