"""A chain of records: each line has the hash of the one before, and its own."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from tdce.errors import InputError
from tdce.evidence.keys import Signer
from tdce.evidence.record import FORMAT, Answered, Record, about, canonical, digest, now, origin, records
from tdce.tables import write_whole

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
        said, machine = about(answer, self.secret is not None), dict(origin(answer).machine)
        whole, where = digest("about", said), digest("machine", machine)
        if self.state.lines == 0:
            self.state = State(about=whole, machine=where)
            yield self._line({"record": "head", "format": FORMAT, "written": now(), **said, "machine": machine})
        if whole != self.state.about:
            raise InputError("this answer is to another question, or by another explainer, than the answers before it; "
                             "begin a new file of evidence")  # fmt: skip
        if where != self.state.machine:
            yield self._line({"record": "machine", "machine": machine}, machine=where)
        for record in records(answer, self.secret):
            yield self._line(record)

    def end(self, signer: Signer | None = None) -> str:
        """The last line, with the number of lines before it; without it the evidence is not complete."""
        if self.state.lines == 0:
            raise InputError("there is no answer to give evidence of")
        signature = None
        if signer is not None:
            signature = {"algorithm": "Ed25519", "key": signer.public, "value": signer.sign(signed(self.state))}
        return self._line({"record": "end", "lines": self.state.lines, "signature": signature})

    def _line(self, record: Record, **changes: Any) -> str:
        """Numbered and linked; `state` goes on."""
        kind, rest = record["record"], {key: value for key, value in record.items() if key != "record"}
        text, own = sealed({"record": kind, "number": self.state.lines, **rest, "previous": self.state.head})
        self.state = State(self.state.lines + 1, own, self.state.about, changes.get("machine", self.state.machine))
        return text


def write(path: Path, answers: Iterable[Answered], signer: Signer | None = None, secret: bytes | None = None) -> None:
    """A whole file of evidence, from blocks of answers in their order."""
    chain = Chain(secret)
    every = (line.encode() for answer in answers for line in chain.records(answer))
    last = (chain.end(signer).encode() for _ in range(1))  # made when all others are written
    write_whole(path, itertools.chain(every, last))


def sealed(record: Record) -> tuple[str, str]:
    """A line of a record with its hash, and the hash: SHA-256 of the line as it is without it."""
    text = canonical(record)
    own = sha256(text.encode()).hexdigest()
    return f'{text[:-1]},"hash":"{own}"}}\n', own


def signed(state: State) -> bytes:
    """What a signature is of: how many lines there are before the last one, and the hash of the last of these."""
    return f"tdce evidence {FORMAT}\n{state.lines}\n{state.head}\n".encode()
