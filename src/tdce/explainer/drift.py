"""The result of `monitor`: the checks of a table against what was learned, for people, for scripts and as a page."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, replace
from typing import Any, Self

import pandas as pd

from tdce._core import check_optional, check_path, check_text
from tdce.datasets import check_writable, write_whole
from tdce.report import render_drift


@dataclass(frozen=True)
class Finding:
    """One check of a table."""

    check: str  # column, missing, range, middle, spread, category, shares, law, plausibility, accuracy
    subject: str  # the column, or the law
    learned: str  # what it was in `fit`
    now: str
    effect: float  # size of the difference, in the unit of the check
    p: float | None  # probability of a difference this large by chance; None: not tested
    least: float = 0.0  # smallest effect that matters
    changed: bool = False

    def judge(self, level: float) -> Self:
        """A copy with the verdict: changed if the difference is beyond chance at this level and large enough."""
        return replace(self, changed=self.p is not None and self.p < level and self.effect >= self.least)

    def __str__(self) -> str:
        return f"{self.subject} ({self.check}): {self.learned}, now {self.now}"


@dataclass(frozen=True)
class Drift:
    """Whether a table has drifted from the learned one, with all checks.

    Examples
    --------
    >>> import tdce
    >>> data = tdce.load("german")
    >>> explainer = tdce.Explainer(hidden=32, steps=100).fit(data.frame, label=data.label, favourable="good")
    >>> explainer.monitor(data.frame.sample(300, random_state=1)).changed
    False
    >>> older = data.frame.assign(age=data.frame["age"] + 10)
    >>> [finding.subject for finding in explainer.monitor(older).changes if finding.check == "middle"]
    ['age']
    """

    rows: int  # number of rows checked
    learned_rows: int
    level: float  # probability of any false alarm
    findings: tuple[Finding, ...]  # changed ones first
    notes: tuple[str, ...] = ()  # what was not checked, and why
    extra: tuple[str, ...] = ()  # columns that were not learned

    @property
    def changed(self) -> bool:
        """Whether any check found a change."""
        return bool(self.changes)

    @property
    def changes(self) -> tuple[Finding, ...]:
        """The checks that found a change."""
        return tuple(finding for finding in self.findings if finding.changed)

    def __repr__(self) -> str:
        return f"<Drift of {self.rows:,} rows: {len(self.changes)} of {len(self.findings)} checks changed>"

    def to_frame(self) -> pd.DataFrame:
        """Get the checks as a frame.

        Returns
        -------
        pandas.DataFrame
            One line per check: check, subject, learned, now, effect, p, least, changed.
        """
        names = ("check", "subject", "learned", "now", "effect", "p", "least", "changed")
        return pd.DataFrame([asdict(finding) for finding in self.findings], columns=list(names))

    def to_json(self) -> str:
        """Get the result as JSON.

        Returns
        -------
        str
            An object with changed, rows, learned_rows, level, findings, notes and extra columns.
        """
        return json.dumps({"changed": self.changed, **asdict(self)}, indent=2, ensure_ascii=False)

    def to_html(self, path: str | os.PathLike[str], *, title: str | None = None) -> None:
        """Write an HTML page: first what has changed, then all checks.

        Parameters
        ----------
        path : str or path
            The file, FILE.html.
        title : str, optional
            The headline.
        """
        where, headline = check_path("path", path), check_optional("title", title, check_text)
        check_writable(where, endings=None)
        write_whole(where, self._html(headline).encode())

    def _repr_html_(self) -> str:
        """Show the checks as a table in a notebook."""
        return f"<p>{repr(self)[1:-1]}</p>{self.to_frame().to_html()}"

    def _html(self, title: str | None) -> str:
        content: dict[str, Any] = json.loads(self.to_json())
        return render_drift(content, title)
