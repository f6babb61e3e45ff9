"""What was found when evidence was checked, for scripts and for people."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from tdce.audit.reading import Problem
from tdce.explainer import machine

MOST_PROBLEMS = 100_000  # problems that are kept
CHAIN = ("", "hash", "previous", "number", "lines", "record")  # fields by which a line hangs in the chain


@dataclass
class Findings:
    """What was found; `problems` has all that does not hold."""

    lines: int = 0
    answers: int = 0
    rows: int = 0  # that these are about
    written: str = ""  # when, as the first line says
    complete: bool = False  # whether there is a last line
    signed_by: str = ""  # the public key of the signature; empty: none
    decisions: int | None = None  # answers of which the model says what is recorded; None: not checked
    repeated: int | None = None  # answers that are the same to the bit; None: the question was not asked again
    cells_off: int = 0  # cells that are not, in the others
    largest_off: float = 0.0  # the largest difference of two numbers among them
    elsewhere: list[dict[str, str]] = field(default_factory=list)  # machines of the record that differ from this one
    notes: list[str] = field(default_factory=list)  # what could not be checked, and why
    problems: list[Problem] = field(default_factory=list)
    count: int = 0  # of all problems, also of those that are not kept

    @property
    def holds(self) -> bool:
        return self.count == 0

    def add(self, *problems: Problem) -> None:
        self.count += len(problems)
        self.problems += problems[: max(0, MOST_PROBLEMS - len(self.problems))]

    def summary(self, known: bool) -> list[tuple[str, str]]:
        """For people, by subject; `known`: whether a public key was given."""
        broken = sum(problem.field in CHAIN for problem in self.problems)
        answers = f"{self.answers:,} answers to {self.rows:,} rows, written {self.written or 'nobody knows when'}"
        signature = f"by {self.signed_by[:16]}…" if self.signed_by else "none"
        if self.signed_by and not known:
            signature += "; whose key that is, only you can know: give it, --public-key FILE"
        said = [
            ("record", f"{answers}; {'complete' if self.complete else 'not complete'}"),
            ("chain", f"broken in {broken:,} places" if broken else f"intact over {self.lines:,} lines"),
            ("signature", signature),
            ("verdicts", _of(self.decisions, self.answers, "reproduced")),
            ("values", _of(self.repeated, self.answers, "reproduced to the bit") + self._off()),
        ]
        said += [
            ("elsewhere", f"answered on {_where(each)}; this is {_where(machine())}") for each in self.elsewhere[:3]
        ]
        return said + [("remark", note) for note in self.notes]

    def _off(self) -> str:
        return f"; {self.cells_off:,} cells differ, by up to {self.largest_off:g}" if self.cells_off else ""

    def to_json(self) -> dict[str, Any]:
        return {"holds": self.holds, **asdict(self), "problems": [each._asdict() for each in self.problems]}


def _of(some: int | None, all_of: int, words: str) -> str:
    return "not checked" if some is None else f"{some:,} of {all_of:,} {words}"


def _where(its: Mapping[str, str]) -> str:
    versions = ", ".join(f"{name} {its[name]}" for name in ("tdce", "torch", "numpy", "python"))
    return f"{its['instructions']} ({versions})"
