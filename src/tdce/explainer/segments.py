"""Segments: a few actions that help many people, what each costs, and who is left."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf
from typing import Any, Protocol

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from tdce._core import (
    PANDAS,
    AnyFrame,
    Flags,
    Floats,
    FrameKind,
    Name,
    Positions,
    html_card,
    plain,
    round_scores,
    same,
)
from tdce.explainer.answer import Answer
from tdce.explainer.fitted import Fitted
from tdce.methods import LOW_SAFETY, Action, Outcome, Question, Status, Step, Trial, propose_actions
from tdce.models import Usage
from tdce.report import Audience, Burden, Speaker, action_text, measure_burden
from tdce.schema import FeasibleSet, Schema

MOST_PEOPLE = 500  # people for whom actions are chosen
MOST_ASKED = 150  # of them, people whose answers propose actions
ASKED_OPTIONS = 3  # options of each answer
BLOCK = 10_000  # rows decided at a time


class Segmented(Protocol):
    """What segments need of an explainer."""

    @property
    def fitted(self) -> Fitted: ...
    def ask(self, rows: pd.DataFrame, question: Question) -> Answer: ...


@dataclass(frozen=True, eq=False, repr=False)
class Segments:
    """A few actions for many people: one column per action, one row per person.

    An action helps a person if every step of it is within the person's limits, laws and rules, the model then gives the
    wanted decision, and the forecast safety suffices. Each person takes the cheapest action that helps. All frames are
    of the rows' kind.
    """

    rows: pd.DataFrame  # the rows as given, converted to pandas
    schema: Schema
    question: Question
    actions: tuple[Action, ...]  # in the order in which they were chosen
    own: Floats  # (rows, features)
    raw: Floats  # (rows, actions, features) each row after each action
    helps: Flags  # (rows, actions)
    cost: Floats  # (rows, actions) as an answer's distance; NaN where an action is not possible
    safety: Floats  # (rows, actions) NaN where the model does not accept
    score_before: Floats  # (rows,)
    score_after: Floats  # (rows, actions) NaN where an action is not possible
    already: Flags  # (rows,) who has the wanted decision already
    candidates: int  # number of actions that these were chosen from
    usage: Usage  # how often the model was queried
    kind: FrameKind = PANDAS  # the library of the rows, and of the frames returned

    def __len__(self) -> int:
        return len(self.actions)

    def __repr__(self) -> str:
        open_cases = int((~self.already).sum())
        return f"<Segments: {len(self)} actions help {int(self.helped.sum())} of {open_cases} people>"

    def _repr_html_(self) -> str:
        lines = [
            (
                i,
                each.action,
                f"{each.people:,} ({each.share:.0%})",
                f"{each.cost:.2f}",
                f"{each.safety:.0%}",
                f"{each.together:.0%}",
            )
            for i, each in enumerate(self._actions("en").itertuples(), 1)
        ]
        columns = ("", "action", "helps", "cost", "safety", "together")
        return html_card(repr(self).strip("<>"), [f"left: {int(self._left.sum()):,}"], columns, lines, "to_frame()")

    @cached_property
    def helped(self) -> Flags:
        """(rows,) whom some action helps."""
        return np.asarray(self.helps.any(axis=1))

    @cached_property
    def taken(self) -> Positions:
        """(rows,) the cheapest action that helps each person; -1: none."""
        if not len(self.actions):
            return np.full(len(self.rows), -1)
        cost = np.where(self.helps, self.cost, np.inf)
        return np.where(self.helped, cost.argmin(axis=1), -1)

    def to_frame(self, language: str = "en") -> AnyFrame:
        """Get the actions as a frame, one line per action, numbered from 1. The first helps most people; each further
        one helps most of those who are left.

        Parameters
        ----------
        language : str, default "en"
            "en" or "de", or with a region, "de-CH".

        Returns
        -------
        data frame
            action (in words), features (how many it changes), people (how many it helps), share (of those who need
            help), takes (how many take it as the cheapest), cost and safety (means over the people it helps), together
            (share helped by this action and those before it). The numbers are the index or, in frames without one, the
            first column, `number`.
        """
        actions = self._actions(language)
        return self.kind.frame(actions if self.kind.columns is None else actions.reset_index(names="number"))

    def _actions(self, language: str) -> pd.DataFrame:
        needs = int((~self.already).sum())
        together = np.logical_or.accumulate(self.helps, axis=1).sum(axis=0)
        each = range(len(self.actions))
        return pd.DataFrame(
            {
                "action": pd.Series(self.sentences(language), dtype=object),
                "features": np.array([len(action) for action in self.actions], dtype=np.int64),
                "people": self.helps.sum(axis=0),
                "share": self.helps.sum(axis=0) / max(needs, 1),
                "takes": np.array([(self.taken == i).sum() for i in each], dtype=np.int64),
                "cost": np.array([self.cost[self.helps[:, i], i].mean() for i in each], dtype=np.float64),
                "safety": np.array([self.safety[self.helps[:, i], i].mean() for i in each], dtype=np.float64),
                "together": together / max(needs, 1),
            },
        ).set_axis(pd.RangeIndex(1, len(self.actions) + 1), axis=0)

    def sentences(self, language: str = "en", audience: Audience = "analyst") -> list[str]:
        """Put each action into words.

        Parameters
        ----------
        language : str, default "en"
            "en" or "de", or with a region, "de-CH".
        audience : {"analyst", "applicant"}, default "analyst"
            For applicants, the names of features that the schema keeps from them are left out.

        Returns
        -------
        list of str
            The sentences, in the order of `to_frame`.
        """
        speaker = Speaker.of(self.schema, language, audience)
        return [action_text(action, self.schema, speaker) for action in self.actions]

    def steps(self) -> AnyFrame:
        """Get the steps of each action in a form for programs.

        Returns
        -------
        data frame
            One line per step: action (its number), feature, how ("set", "at most", "at least", "by", "times"), value.
            "times" is a share: -0.1 is lower by 10 %. Values are text in polars and pyarrow, where a column has a
            single type.
        """
        lines = [
            (number, self.schema.names[step.column], step.how, _cell(self.schema, step))
            for number, action in enumerate(self.actions, 1)
            for step in action
        ]
        number, feature, how, value = zip(*lines, strict=True) if lines else ((), (), (), ())
        if self.kind.columns is not None:
            feature, value = (tuple(str(plain(cell)) for cell in column) for column in (feature, value))
        steps = pd.DataFrame(
            {
                "action": np.array(number, dtype=np.int64),
                "feature": pd.Series(feature, dtype=object),
                "how": pd.Series(how, dtype=object),
                "value": pd.Series(value, dtype=object),
            }
        )
        return self.kind.frame(steps)

    def people(self) -> AnyFrame:
        """Get the actions that help each person.

        Returns
        -------
        data frame
            One line per row: row (its index label), status ("helped", "left" or "already"), action (the number of the
            cheapest action that helps; missing if none does), actions (the numbers of all that help), cost, safety,
            score_before and score_after.
        """
        return self.kind.frame(self._people())

    def _people(self) -> pd.DataFrame:
        at, which = np.flatnonzero(self.helped), self.taken[self.helped]

        def of_taken(values: Floats) -> Floats:
            found = np.full(len(self.rows), np.nan)
            found[at] = values[at, which]
            return found

        status = np.where(self.already, "already", np.where(self.helped, "helped", "left"))
        number = pd.array(np.where(self.helped, self.taken + 1, 0), dtype="Int64")
        number[~self.helped] = pd.NA
        return pd.DataFrame(
            {
                "row": self.rows.index.to_series(index=pd.RangeIndex(len(self.rows))),
                "status": status.astype(object),
                "action": number,
                "actions": [" ".join(map(str, np.flatnonzero(line) + 1)) for line in self.helps],
                "cost": of_taken(self.cost),
                "safety": of_taken(self.safety),
                "score_before": self.score_before,
                "score_after": of_taken(self.score_after),
            }
        )

    def left(self) -> AnyFrame:
        """Get the rows that no action helps.

        Returns
        -------
        data frame
            The rows as given.
        """
        return self.kind.frame(self.rows[self._left], self.rows, np.flatnonzero(self._left))

    @property
    def _left(self) -> Flags:
        return ~self.already & ~self.helped

    def burden(self, by: Name) -> Burden:
        """Measure how much the actions ask of groups of people.

        Parameters
        ----------
        by : column name
            A column of the rows; numbers are grouped by quartile.

        Returns
        -------
        Burden
            By group: the share with an action, mean distance, features changed and safety, with 95 % intervals.
        """
        raw = self.raw[np.arange(len(self.rows)), self.taken.clip(0)] if len(self.actions) else self.own
        changed = ~same(raw, self.own) & np.array([name not in self.schema.followers for name in self.schema.names])
        best = self._people()
        return measure_burden(
            self.rows, by, ~self.already, self.helped, best["cost"].to_numpy(dtype=np.float64),
            changed.sum(axis=1), best["safety"].to_numpy(dtype=np.float64), kind=self.kind,
        )  # fmt: skip


def find_segments(
    explainer: Segmented,
    rows: pd.DataFrame | Answer,
    question: Question,
    actions: int,
    changes: int,
    max_cost: float | None,
    kind: FrameKind,
) -> Segments:
    """Find at most `actions` actions of at most `changes` steps each: proposed by the answers to some rows, chosen for
    at most `MOST_PEOPLE` of those who need one, and decided for all."""
    fitted, table = explainer.fitted, rows.rows if isinstance(rows, Answer) else rows
    schema, feasible = fitted.encoder.schema, FeasibleSet.of(fitted.encoder, table, question.immutable, question.rules)
    task = fitted.task(feasible.immutable)
    goals = fitted.resolve_goals(question.target, question.threshold, feasible.own, task.oracle)
    first = task.oracle.decide_alone(feasible.own, goals)
    already = first.met.numpy()
    some = _spread(np.flatnonzero(~already), MOST_PEOPLE)
    answer = rows if isinstance(rows, Answer) else _ask_some(explainer, table, question, some)
    usage = answer.usage
    question = replace(question, immutable=feasible.immutable, costs={**schema.costs, **question.costs})
    safety = LOW_SAFETY if question.safety is None else question.safety

    def trial(at: Positions) -> Trial:
        of_these = goals.take(torch.from_numpy(at))
        return Trial(task, feasible.take(at), of_these, question.costs, safety, inf if max_cost is None else max_cost)

    chosen, candidates = trial(some).choose(propose(answer, feasible, changes), actions, changes)
    blocks = [np.arange(start, min(start + BLOCK, len(table))) for start in range(0, len(table), BLOCK)]
    parts = [(trial(at), trial(at).decide(chosen)) for at in blocks]
    columns = [
        Outcome(*map(np.concatenate, zip(*each, strict=True))) for each in zip(*(o for _, o in parts), strict=True)
    ]
    helps = [np.concatenate([tried.helps(part[i]) for tried, part in parts]) for i in range(len(columns))]

    def stack(arrays: Sequence[NDArray[Any]], *more: int) -> NDArray[Any]:
        return np.stack(arrays, axis=1) if arrays else np.zeros((len(table), 0, *more))

    return Segments(
        table.copy(), schema, question, tuple(chosen), feasible.own, stack([each.raw for each in columns], len(schema)),
        stack(helps).astype(bool) & ~already[:, None], stack([each.cost for each in columns]),
        stack([each.safety for each in columns]), round_scores(goals.display_score(first.score)).numpy(),
        stack([each.score for each in columns]), already, candidates,
        Usage(usage.calls + task.oracle.usage.calls, usage.rows + task.oracle.usage.rows), kind,
    )  # fmt: skip


def _ask_some(explainer: Segmented, table: pd.DataFrame, question: Question, some: Positions) -> Answer:
    """Answers with several options for some of these rows."""
    at = _spread(some, MOST_ASKED)
    target = tuple(question.target[i] for i in at) if isinstance(question.target, tuple) else question.target
    return explainer.ask(table.iloc[at], replace(question, target=target, n=ASKED_OPTIONS))


def propose(answer: Answer, feasible: FeasibleSet, changes: int) -> list[Action]:
    """Propose actions from the changes of valid answers."""
    found = answer.explanation
    row, option = np.nonzero(found.status == Status.VALID)
    columns, followers = [each.column for each in feasible.columns], feasible.constraints.followers
    return propose_actions(found.own[row], found.raw[row, option], columns, followers, changes)


def _spread(at: Positions, most: int) -> Positions:
    """At most `most` of these positions, evenly spread."""
    return at[np.linspace(0, len(at) - 1, min(len(at), most)).round().astype(np.int64)] if len(at) else at


def _cell(schema: Schema, step: Step) -> Any:
    """The value of a step as a cell of the table; differences and shares are numbers."""
    if step.how in ("by", "times"):
        return step.value
    return schema[schema.names[step.column]].cells(np.array([step.value]))[0]
