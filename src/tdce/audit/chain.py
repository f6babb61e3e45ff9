"""The chain of evidence: each line holds the hash of the line before, and its own."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path

from tdce._core import InputError
from tdce.audit.keys import Signer
from tdce.audit.record import BLOCK_PREFIX, EVIDENCE_FORMAT, AnswerLike, Record, block_lines, timestamp
from tdce.datasets import whole_file
from tdce.explainer import canonical, digest

GENESIS_HASH = "0" * 64  # in place of the hash before the first line


@dataclass(frozen=True)
class ChainState:
    """All that is needed to resume a chain; `json.dumps(asdict(state))` stores it, `ChainState(**…)` restores it."""

    lines: int = 0  # written so far
    last_hash: str = GENESIS_HASH  # of the last of them
    run_digest: str = ""  # of what the first line says about question and artefact
    machine_digest: str = ""  # of the machine that computed the last answers


class Chain:
    """Lines of evidence in their order: blocks of answers to one question by one artefact.

    >>> chain = Chain()
    >>> for answer in blocks:
    ...     file.writelines(chain.answer_lines(answer))  # Chain(state=chain.state) resumes here
    >>> file.write(chain.end())
    """

    def __init__(self, secret: bytes | None = None, state: ChainState | None = None) -> None:
        self.secret = secret  # None: lines hold values
        self.state = state or ChainState()

    def answer_lines(self, answer: AnswerLike) -> Iterator[str]:
        """The lines of one answer, each with its line end; the first answer is preceded by the first line."""
        return self.link(block_lines(answer, self.secret))

    def link(self, lines: Iterable[str]) -> Iterator[str]:
        """The same of the lines of blocks, made by `block_lines` in any process and given in their order."""
        for line in lines:
            if line.startswith(BLOCK_PREFIX):
                yield from self._block_head(**json.loads(line))
            else:
                yield self._link_text("answer", line.rstrip("\n"))

    def _block_head(self, about: Record, machine: Record, block: Record | None = None) -> Iterator[str]:
        """The lines before the answers of a block: what differs from the block before."""
        run_digest, machine_digest = digest("about", about), digest("machine", machine)
        if self.state.lines == 0:
            self.state = ChainState(run_digest=run_digest, machine_digest=machine_digest)
            head = {"format": EVIDENCE_FORMAT, "written": timestamp(), **about, "machine": machine}
            yield self._link("head", head)
        if run_digest != self.state.run_digest:
            raise InputError("this answer is to another question, or by another explainer, than the answers before it; "
                             "begin a new file of evidence")  # fmt: skip
        if machine_digest != self.state.machine_digest:
            self.state = replace(self.state, machine_digest=machine_digest)
            yield self._link("machine", {"machine": machine})
        if block is not None:
            yield self._link("block", block)

    def end(self, signer: Signer | None = None) -> str:
        """The last line, with the number of lines before it; without it the evidence is not complete."""
        if self.state.lines == 0:
            raise InputError("there is no answer to write evidence of")
        signature = None
        if signer is not None:
            signature = {"algorithm": "Ed25519", "key": signer.public, "value": signer.sign(signed_bytes(self.state))}
        return self._link("end", {"lines": self.state.lines, "signature": signature})

    def _link(self, kind: str, record: Record) -> str:
        return self._link_text(kind, canonical(record))

    def _link_text(self, kind: str, text: str) -> str:
        """The line of a record that is JSON already; advances `state`."""
        place, previous = f'"record":"{kind}","number":{self.state.lines}', f'"previous":"{self.state.last_hash}"'
        line, own_hash = seal_line(f"{{{place},{text[1:-1]},{previous}}}")
        self.state = replace(self.state, lines=self.state.lines + 1, last_hash=own_hash)
        return line


def write_evidence(
    path: Path, answers: Iterable[AnswerLike], signer: Signer | None = None, secret: bytes | None = None
) -> None:
    """Write a whole file of evidence, from blocks of answers in their order."""
    chain = Chain(secret)
    with whole_file(path) as file:
        for answer in answers:
            file.writelines(line.encode() for line in chain.answer_lines(answer))
        file.write(chain.end(signer).encode())


def seal_line(text: str) -> tuple[str, str]:
    """A line with its hash, and the hash: the SHA-256 of the line without it."""
    own_hash = sha256(text.encode()).hexdigest()
    return f'{text[:-1]},"hash":"{own_hash}"}}\n', own_hash


def signed_bytes(state: ChainState) -> bytes:
    """What is signed: the number of lines before the last one, and the hash of the last of these."""
    return f"tdce evidence {EVIDENCE_FORMAT}\n{state.lines}\n{state.last_hash}\n".encode()
