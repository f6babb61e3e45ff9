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

GENESIS_HASH = "0" * 64  # the hash before the first line


@dataclass(frozen=True)
class ChainState:
    """What is needed to resume a chain; `json.dumps(asdict(state))` stores it, `ChainState(**…)` restores it."""

    lines: int = 0  # written so far
    last_hash: str = GENESIS_HASH  # of the last line
    run_digest: str = ""  # of the question and the artefact in the first line
    machine_digest: str = ""  # of the machine that computed the last answers


class Chain:
    """The lines of evidence in order: blocks of answers to one question by one artefact.

    >>> chain = Chain()
    >>> for answer in blocks:
    ...     file.writelines(chain.answer_lines(answer))  # Chain(state=chain.state) resumes here
    >>> file.write(chain.end())
    """

    def __init__(self, secret: bytes | None = None, state: ChainState | None = None) -> None:
        self.secret = secret  # None: lines hold values
        self.state = state or ChainState()

    def answer_lines(self, answer: AnswerLike) -> Iterator[str]:
        """The lines of one answer, with line ends; before the first answer, also the first line of the evidence."""
        return self.link(block_lines(answer, self.secret))

    def link(self, lines: Iterable[str]) -> Iterator[str]:
        """Like `answer_lines`, from lines that `block_lines` made in any process, given in order."""
        for line in lines:
            if line.startswith(BLOCK_PREFIX):
                yield from self._block_head(**json.loads(line))
            else:
                yield self._link_text("answer", line.rstrip("\n"))

    def _block_head(self, about: Record, machine: Record, block: Record | None = None) -> Iterator[str]:
        """The lines before the answers of a block, with what differs from the previous block."""
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
        """The last line, with the number of lines before it; without it, the evidence is not complete."""
        if self.state.lines == 0:
            raise InputError("there is no answer to write evidence of")
        signature = None
        if signer is not None:
            signature = {"algorithm": "Ed25519", "key": signer.public, "value": signer.sign(signed_bytes(self.state))}
        return self._link("end", {"lines": self.state.lines, "signature": signature})

    def _link(self, kind: str, record: Record) -> str:
        return self._link_text(kind, canonical(record))

    def _link_text(self, kind: str, text: str) -> str:
        """Link a record, given as JSON, to the chain: return its line and advance `state`."""
        place, previous = f'"record":"{kind}","number":{self.state.lines}', f'"previous":"{self.state.last_hash}"'
        line, own_hash = seal_line(f"{{{place},{text[1:-1]},{previous}}}")
        self.state = replace(self.state, lines=self.state.lines + 1, last_hash=own_hash)
        return line


def write_evidence(
    path: Path, answers: Iterable[AnswerLike], signer: Signer | None = None, secret: bytes | None = None
) -> None:
    """Write a complete file of evidence from blocks of answers in order."""
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
    """The signed content: the number of lines before the last line, and the hash of the line before it."""
    return f"tdce evidence {EVIDENCE_FORMAT}\n{state.lines}\n{state.last_hash}\n".encode()
