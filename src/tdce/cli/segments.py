"""`tdce segments`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import tdce
from tdce._core import InputError
from tdce.cli.question import QuestionFlags, with_question
from tdce.cli.shared import (
    ArtefactPath,
    Decimal,
    Headers,
    JsonFlag,
    Language,
    ModelSource,
    RowsPath,
    Sep,
    column_of,
    model_of,
    print_table,
    progress_mode,
    say,
)
from tdce.cli.streams import input_file

if TYPE_CHECKING:
    from rich.table import Table

    from tdce.explainer import Segments
    from tdce.report import Burden

ASKED = ("target", "immutable", "rules", "costs", "seed", "closeness", "threshold", "safety")


@with_question
def segments(
    artefact: ArtefactPath,
    rows: RowsPath,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Output of who is helped by what: .csv, .parquet or .jsonl")
    ] = None,
    *,
    flags: QuestionFlags,
    actions: Annotated[int, typer.Option(min=1, max=100, metavar="N", help="Maximum number of actions")] = 5,
    changes: Annotated[
        int, typer.Option(min=1, max=10, metavar="N", help="Maximum number of features that an action is about")
    ] = 3,
    max_cost: Annotated[
        float | None, typer.Option(metavar="D", help="The most that an action may cost a person, as a distance")
    ] = None,
    burden: Annotated[
        str, typer.Option(metavar="COLUMN", help="Show what the actions ask of the groups of this column")
    ] = "",
    language: Language = "en",
    model: ModelSource = None,
    header: Headers = None,
    sep: Sep = ",",
    decimal: Decimal = ".",
    json: JsonFlag = False,
) -> None:
    """Find few actions that help many people.

    The same few changes for everybody: each action is tried on all rows within their limits, laws and rules, and
    decided by the model. Prints the actions, whom each helps and what it costs.
    """
    from tdce.datasets import Dialect, check_writable, read_table, write_table
    from tdce.report import load_catalogue

    if flags.n != 1 or flags.max_model_rows is not None:
        raise InputError("segments takes neither -n nor --max-model-rows; leave them out")
    if out is not None:
        check_writable(out)
    load_catalogue(language)
    dialect = Dialect(sep, decimal)
    explainer = tdce.Explainer.load(artefact, progress=progress_mode(), model=model_of(model, header))
    question = flags.question(explainer)
    with input_file(rows) as source:
        frame = read_table(source, explainer.schema, dialect)
    by = column_of("--burden", burden, frame.columns)
    given = {name: getattr(question, name) for name in ASKED}
    found = explainer.segments(frame, actions=actions, changes=changes, max_cost=max_cost, **given)
    groups = None if by is None else found.burden(by)
    if out is not None:
        write_table(out, found.people(), dialect)
    if json:
        print(_as_json(found, groups, language))
        return
    if len(found):
        print_table(_actions_table(found, language))
    if groups is not None:
        print_table(_burden_table(groups))
    needs, helped = int((~found.already).sum()), int(found.helped.sum())
    written = "" if out is None else f" Written: {out}"
    say(
        f"{needs:,} of {len(frame):,} people need help; {len(found)} action{'s' * (len(found) != 1)} "
        f"help{'s' * (len(found) == 1)} {helped:,} of them, {needs - helped:,} are left.{written}"
    )


def _as_json(found: Segments, groups: Burden | None, language: str) -> str:
    from json import dumps, loads

    parts = {"actions": found.to_frame(language), "steps": found.steps(), "people": found.people()}
    parts |= {} if groups is None else {"burden": groups.to_frame()}
    lines = {name: loads(part.to_json(orient="records", date_format="iso")) for name, part in parts.items()}
    return dumps(lines, indent=2, ensure_ascii=False)


def _actions_table(found: Segments, language: str) -> Table:
    from rich.table import Table

    shown = Table("", "action", "helps", "share", "cost", "safety", "together", box=None, pad_edge=False)
    for number, each in found.to_frame(language).iterrows():
        shares = (f"{each[name]:.0%}" for name in ("share", "safety", "together"))
        share, safety, together = shares
        shown.add_row(
            str(number), each["action"], f"{each['people']:,}", share, f"{each['cost']:.2f}", safety, together
        )
    return shown


def _burden_table(groups: Burden) -> Table:
    from rich.table import Table

    shown = Table(*groups.columns, box=None, pad_edge=False)
    for line in groups.lines():
        shown.add_row(*line)
    return shown
