"""The section of a report about the burden of groups: one picture and one table."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.resources import files
from typing import TYPE_CHECKING, Any, cast

from tdce.report.burden import MEANS, Burden, written
from tdce.report.language.formats import write_number
from tdce.report.language.speaker import Speaker, spoken_name
from tdce.report.plots import draw_burden

if TYPE_CHECKING:
    from markupsafe import Markup

MEASURES = ("share", *MEANS)


def burden_section(burden: Burden | None, speaker: Speaker) -> Markup:
    """The section as HTML; empty without a burden."""
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    if burden is None:
        return Markup("")
    known = burden.column in speaker.words
    names = {measure: speaker.text(f"burden_{measure}") for measure in MEASURES}
    lines = [
        (line.group, [write_number(speaker.messages, count) for count in (line.people, line.needs)]
         + [written(line, measure, speaker.messages) for measure in MEASURES])
        for line in cast(Iterable[Any], burden.table.itertuples())
    ]  # fmt: skip
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    template = files("tdce.report").joinpath("burden.html").read_text(encoding="utf-8")
    return Markup(
        environment.from_string(template).render(
            t=speaker.text,
            column=speaker.title(burden.column) if known else spoken_name(burden.column),
            picture=Markup(draw_burden(burden.table, names)),
            names=[speaker.text("burden_people"), speaker.text("burden_needs"), *names.values()],
            lines=lines,
        )
    )
