"""The flags of a question, shared by all commands that ask one."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from tdce.cli.shared import Immutable, SeedOption, costs_of, names_of

if TYPE_CHECKING:
    from tdce.explainer import Explainer
    from tdce.methods import Question


@dataclass(frozen=True)
class QuestionFlags:
    """The flags as typed; `question` turns them into a `Question` for an explainer."""

    target: Annotated[
        str | None,
        typer.Option(
            metavar="LABEL", help="The wanted label (default: the favourable one), or 'at least 620', '+500', 'not bad'"
        ),
    ] = None
    n: Annotated[int, typer.Option("-n", "--options", min=1, metavar="K", help="Counterfactuals per row")] = 1
    immutable: Immutable = ""
    rule: Annotated[
        list[str] | None,
        typer.Option("--rule", metavar="RULE", help="A constraint, as 'loan <= 5 * income'; may be repeated"),
    ] = None
    costs: Annotated[
        str, typer.Option(metavar="COSTS", help="Costs of changing columns, as age=5,phone=0 (default: 1 each)")
    ] = ""
    seed: SeedOption = 0
    closeness: Annotated[
        float | None,
        typer.Option(metavar="C", help="Trade-off between 0 (most plausible) and 1 (nearest to the row)"),
    ] = None
    threshold: Annotated[float | None, typer.Option(metavar="P", help="Minimum probability to count as the target")] = (
        None
    )
    safety: Annotated[
        float | None,
        typer.Option(
            metavar="S", help="How likely a model trained again should accept an answer (default: 0.9; 0: any)"
        ),
    ] = None
    max_model_rows: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Query budget: maximum number of rows the model is queried for"),
    ] = None

    def question(self, explainer: Explainer, robust: int = 0) -> Question:
        """The question, checked against the explainer; `robust`: number of retrained models that should accept."""
        from tdce.methods import Question
        from tdce.models import Retraining

        names = explainer.schema.names
        question = Question(
            self.target, self.n, tuple(names_of(self.immutable, names)), tuple(self.rule or ()),
            costs_of(self.costs, names), self.seed, self.closeness, self.threshold, self.safety,
            self.max_model_rows,
            Retraining(robust) if robust else None,
        )  # fmt: skip
        explainer.check(question)
        return question


def with_question(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the flags of a question in place of its parameter `flags`, which receives them all."""
    flags = inspect.signature(QuestionFlags).parameters
    types = get_type_hints(QuestionFlags, include_extras=True)
    own, own_types = inspect.signature(command).parameters, get_type_hints(command, include_extras=True)
    parameters: list[inspect.Parameter] = []
    for name, parameter in own.items():
        if name == "flags":
            parameters += [flag.replace(annotation=types[flag.name]) for flag in flags.values()]
        else:
            parameters.append(parameter.replace(annotation=own_types[name]))
    required = [p for p in parameters if p.default is inspect.Parameter.empty]
    optional = [p for p in parameters if p.default is not inspect.Parameter.empty]

    @functools.wraps(command)
    def wrapped(**given: Any) -> None:
        typed = QuestionFlags(**{name: given.pop(name) for name in flags})
        command(**given, flags=typed)

    wrapped.__signature__ = inspect.Signature(required + optional)  # type: ignore[attr-defined]
    wrapped.__annotations__ = {p.name: p.annotation for p in required + optional}
    del wrapped.__wrapped__
    return wrapped
