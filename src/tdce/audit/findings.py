"""Findings: the result of verifying evidence, for scripts and people."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from tdce.audit.reading import Problem
from tdce.explainer import machine
from tdce.methods import Agreement

MAX_PROBLEMS = 100_000  # kept in the list
CHAIN_FIELDS = ("", "hash", "previous", "number", "lines", "record")  # that link a line to the chain


@dataclass
class Findings:
    """The result of `verify`; `problems` lists what does not hold."""

    lines: int = 0
    answers: int = 0
    rows: int = 0  # number of rows with an answer
    written: str = ""  # the time in the first line
    complete: bool = False  # whether the last line is present
    signed_by: str = ""  # the public key of the signature; empty if unsigned
    decisions: int | None = None  # answers for which the model decides as recorded; None: not checked
    replayed: int | None = None  # answers that the replay reproduces; None: not replayed
    different_cells: int = 0  # number of values that differ in the others
    largest_difference: float = 0.0  # the largest difference of two such numbers
    reasons: list[Agreement] = field(default_factory=list)  # agreement of the methods of principal reasons, as recorded
    other_machines: list[dict[str, str]] = field(default_factory=list)  # machines other than this one that answered
    notes: list[str] = field(default_factory=list)  # what could not be checked, and why
    problems: list[Problem] = field(default_factory=list)
    count: int = 0  # of all problems, including those not in the list

    @property
    def holds(self) -> bool:
        """Whether there are no problems."""
        return self.count == 0

    def add(self, *problems: Problem) -> None:
        self.count += len(problems)
        self.problems += problems[: max(0, MAX_PROBLEMS - len(self.problems))]

    def summary(self, has_public_key: bool) -> list[tuple[str, str]]:
        """The findings for people, as pairs of subject and text; `has_public_key`: whether a public key was given."""
        broken = sum(problem.field in CHAIN_FIELDS for problem in self.problems)
        answers = f"{self.answers:,} answers to {self.rows:,} rows, written {self.written or 'at an unknown time'}"
        signature = f"by {self.signed_by[:16]}…" if self.signed_by else "none"
        if self.signed_by and not has_public_key:
            signature += "; to check whose key that is, give the signer's: --public-key FILE"
        lines = [
            ("record", f"{answers}; {'complete' if self.complete else 'not complete'}"),
            ("chain", f"broken in {broken:,} places" if broken else f"intact over {self.lines:,} lines"),
            ("signature", signature),
            ("decisions", _share(self.decisions, self.answers, "reproduced")),
            ("values", _share(self.replayed, self.answers, "reproduced to the bit") + self._differences()),
        ]
        if self.reasons:
            shares = (f"{each.one} and {each.other} {100 * each.first:.0f} %" for each in self.reasons)
            people = max(each.people for each in self.reasons)
            lines.append(("reasons", f"the first reason is the same, of up to {people:,} people: {', '.join(shares)}"))
        lines += [
            ("machine", f"answered on {_describe_machine(each)}; this is {_describe_machine(machine())}")
            for each in self.other_machines[:3]
        ]
        return lines + [("note", note) for note in self.notes]

    def _differences(self) -> str:
        if not self.different_cells:
            return ""
        return f"; {self.different_cells:,} cells differ, by up to {self.largest_difference:g}"

    def to_json(self) -> dict[str, Any]:
        """The findings as JSON values, as `tdce verify --json` prints them."""
        return {"holds": self.holds, **asdict(self), "problems": [each._asdict() for each in self.problems],
                "reasons": [each._asdict() for each in self.reasons]}  # fmt: skip


def _share(part: int | None, whole: int, text: str) -> str:
    return "not checked" if part is None else f"{part:,} of {whole:,} {text}"


def _describe_machine(its: Mapping[str, str]) -> str:
    versions = ", ".join(f"{name} {its[name]}" for name in ("tdce", "torch", "numpy", "python"))
    return f"{its['instructions']} ({versions})"
