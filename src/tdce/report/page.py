"""An answer as one self-contained HTML page: nothing is fetched, and the people in it are data, never markup."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np

from tdce._core import InputError, Name, check_choice, check_number
from tdce._core import show as shown_value
from tdce.methods import Line
from tdce.metrics import MEANING
from tdce.models import Class, Not
from tdce.report import overview, plots
from tdce.report.cards import STATUSES, person_cards
from tdce.report.context import OWN
from tdce.report.language.formats import write_number
from tdce.report.language.speaker import Speaker
from tdce.report.view import View

if TYPE_CHECKING:
    from markupsafe import Markup

CLASSES = 4  # that a drawing tells apart
FREE, EACH = 1 << 19, 900  # bytes of the people's data: more than half a megabyte and so many per person are packed
SORTS = ("row", "before", "after", "few", "many", "effort", "typical")
SPOKEN = (  # by the script, of the messages
    "one", "count", "printed", "row", "option", "threshold", "band", "highest", "plausibility", "below", "alike",
    "shares", "unnamed", "note", "caption", "percent", "now", "then", "to", "of",
)  # fmt: skip


def render_page(
    view: View,
    lines: Sequence[Sequence[Line]],
    speaker: Speaker,
    title: str | None = None,
    metrics: Mapping[str, float] | None = None,
) -> str:
    """The whole page: a summary, the people, what changes over all of them, groups and metrics."""
    from jinja2 import Environment, StrictUndefined  # only here: only a page needs it
    from markupsafe import Markup

    metrics = checked_metrics(metrics)
    shown, figures = person_cards(view, lines, speaker), Figures(speaker)
    classes = _classes(view)
    for (i, _), feature in zip(view.shown, shown["features"], strict=True):
        feature["changed"] = bool(view.changed[:, :, i].any())
        if "share" in feature:
            feature["share"] = [feature["share"][k] for k in classes[:2]]
    population = view.population
    shown["classes"] = [] if population is None else [speaker.outcome(population.classes[k]) for k in classes[:2]]
    messages = speaker.messages.messages  # whose places the script fills
    words = {name: messages[f"report_{name}"] for name in SPOKEN}
    predicted = any(line.number for options in lines for line in options)
    words["score"] = messages["report_score_number" if predicted else "report_score"]
    words["loss"] = messages["report_loss_number" if predicted else "report_loss"]
    words["feature"] = speaker.text("report_feature_name")
    words["statuses"] = {status: speaker.status(status) for status in STATUSES}
    data, kind = _block({"people": shown, "words": words}, len(view.rows))

    def drawing(name: Name) -> Markup:
        assert population is not None
        return Markup(plots.spread(population[name], classes))

    script, style = _file("page.js"), _file("page.css")
    changes, totals = overview.feature_changes(view, speaker), overview.totals(view)
    names, together = overview.pairs(view, speaker)
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    return environment.from_string(_file("page.html")).render(
        title=title or speaker.text("report_title"),
        language=speaker.language,
        t=speaker.text,
        people=figures.count(int(view.changed[:, 0].any(axis=1).sum())),
        version=version("tdce"),
        style=Markup(style),
        script=Markup(script),
        script_hash=f"sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}",
        data=Markup(data),
        data_type=kind,
        tiles=_tiles(totals, speaker, figures),
        facts=_facts(view, lines, speaker, figures),
        statuses=[(i, speaker.status(status)) for i, status in enumerate(STATUSES)],
        sorts=[(key, speaker.text(f"report_sort_{key}")) for key in SORTS],
        population=population and _legend(view, classes, speaker, figures),
        plots=[
            (place, drawing(column.name))
            for place, (_, column) in enumerate(view.shown)
            if "at" in shown["features"][place]
        ],
        changes=changes,
        pairs=(names, together),
        pairs_most=max((n for row in together for n in row), default=1),
        percent=figures.percent,
        count=figures.count,
        groups=[
            {**group, "lines": [{**line, "cells": _cells(line, figures)} for line in group["lines"]]}
            for group in overview.by_group(view, speaker)
        ],
        group_columns=[
            speaker.text(f"report_group_{name}")
            for name in ("people", "already", "valid", "best_effort", "infeasible", "changes", "effort", "plausibility")
        ],
        metrics=[(name, figures.precise(value), *_read(name, speaker)) for name, value in metrics.items()],
        **_plane(view, speaker, figures),
    )


def checked_metrics(metrics: Any) -> dict[str, float]:
    """Those that are known, as `tdce.evaluate` returns them."""
    found = {} if metrics is None else metrics
    if not isinstance(found, Mapping):
        raise InputError(f"metrics is {shown_value(found)}; it must be what tdce.evaluate returned")
    for name, value in found.items():
        check_number(f"the metric {check_choice('metric', name, MEANING)}", value, -math.inf, math.inf)
    return dict(found)


def _read(metric: str, speaker: Speaker) -> tuple[str, str]:
    """What is good of a metric, and how to read it."""
    good = MEANING[metric][0]
    return speaker.text(f"good_{good if good in ('low', 'high') else 'middle'}"), speaker.text(f"metric_{metric}")


@dataclass(frozen=True)
class Figures:
    """Numbers of a report, as its language writes them."""

    speaker: Speaker

    def count(self, number: int) -> str:
        return write_number(self.speaker.messages, number)

    def percent(self, share: float) -> str:
        return self.speaker.score(share, False)

    def decimal(self, number: float) -> str:
        return write_number(self.speaker.messages, round(number, 2), "#,##0.00")

    def precise(self, number: float) -> str:
        return write_number(self.speaker.messages, number, digits=3)


def _block(content: dict[str, Any], rows: int) -> tuple[str, str]:
    """The data as JSON that no browser can take for markup; packed where it would be heavy."""
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    if len(text.encode()) <= FREE + EACH * rows:
        safe = text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
        return safe, "application/json"
    return base64.b64encode(gzip.compress(text.encode(), 9, mtime=0)).decode(), "application/gzip+base64"


def _classes(view: View) -> list[int]:
    """The classes that are drawn: first the wanted one, if it is the same for all; then the largest."""
    if view.population is None:
        return []
    size = view.population.sizes
    order = sorted(range(len(size)), key=lambda k: -size[k])
    wanted = {goal.of for goal in view.question.goals.kinds if isinstance(goal, Class) and not isinstance(goal, Not)}
    if len(wanted) == 1 and len(view.question.goals.kinds) == 1:
        first = int(wanted.pop())
        order = [first, *(k for k in order if k != first)]
    return order[:CLASSES]


def _legend(view: View, classes: list[int], speaker: Speaker, figures: Figures) -> dict[str, Any]:
    assert view.population is not None
    names = [speaker.text("report_said", name=speaker.outcome(view.population.classes[k])) for k in classes]
    key = "report_real" if view.population.real else "report_synthetic"
    return {"legend": names, "said": speaker.text(key, people=figures.count(view.population.people))}


def _tiles(totals: dict[str, Any], speaker: Speaker, figures: Figures) -> list[dict[str, str]]:
    shown = [(figures.count(totals["people"]), speaker.text("report_tile_people"))]
    if totals["validity"] is not None:
        asked = figures.count(totals["asked"])
        shown.append((figures.percent(totals["validity"]), speaker.text("report_tile_valid", asked=asked)))
    for key in ("changes", "effort"):
        if totals[key] is not None:
            shown.append((figures.decimal(totals[key]), speaker.text(f"report_tile_{key}")))
    if totals["plausibility"] is not None:
        shown.append((figures.percent(totals["plausibility"]), speaker.text("report_tile_plausibility")))
    return [{"value": value, "text": text} for value, text in shown]


def _facts(
    view: View, lines: Sequence[Sequence[Line]], speaker: Speaker, figures: Figures
) -> list[tuple[str, str, str]]:
    """Name, value and kind of each fact that is known."""
    context, question = view.context, view.question
    fit = {} if context is None else context.fit
    found: list[tuple[str, str, str]] = []

    def fact(name: str, value: str, kind: str = "") -> None:
        if value:
            found.append((speaker.text(f"report_fact_{name}"), value, kind))

    if context is not None:
        fact("model", speaker.text("report_own_model") if context.model == OWN else context.model)
        fact("label", context.label)
    if fit.get("accuracy") is not None:
        shares = {"share": figures.percent(fit["accuracy"]), "commonest": figures.percent(fit["commonest_class"])}
        fact("accuracy", speaker.text("report_accuracy", rows=figures.count(fit["test_rows"]), **shares))
    if fit:
        fact("learned", speaker.text("report_learned", rows=figures.count(fit["rows"]), seed=fit["seed"]))
    size = {"rows": figures.count(len(view.rows)), "columns": view.rows.shape[1], "options": question.options}
    fact("rows", speaker.text("report_rows", **size))
    fact("wanted", ", ".join(dict.fromkeys(speaker.target(options[0]) for options in lines)))
    counts = {status: int((view.explanation.status == status).sum()) for status in STATUSES}
    fact("status", ", ".join(f"{figures.count(n)} {speaker.status(s)}" for s, n in counts.items() if n))
    settings = {} if context is None else dict(context.settings)
    closeness = settings.pop("closeness", None) if question.closeness is None else question.closeness
    if context is not None:
        fact("method", ", ".join([context.method, *(f"{key} {value}" for key, value in settings.items())]))
    fact(
        "settings",
        speaker.text("report_settings", seed=question.seed, closeness="–" if closeness is None else closeness),
    )
    names = [speaker.title(name) for name in view.immutable if name not in view.barred]
    fact("immutable", ", ".join(names))
    fact("rules", "; ".join(rule for rule in (*view.schema.rules, *question.rules) if view.silent(rule)))
    costs = [f"{speaker.title(name)} {cost:g}" for name, cost in question.costs.items() if name not in view.barred]
    fact("costs", ", ".join(costs))
    fact(
        "calls",
        speaker.text("report_calls", calls=figures.count(view.asked_model[0]), rows=figures.count(view.asked_model[1])),
    )
    fact("fitted", fit.get("fitted", ""))
    if context is not None and context.origin is not None:
        fact("file", context.origin.name)
        fact("written", context.origin.written)
        fact("sha", context.origin.sha256, "code")
    table = view.rows[[name for name in view.rows.columns if name not in view.barred]]
    fact("rows_sha", hashlib.sha256(table.to_csv().encode()).hexdigest(), "code")
    fact("versions", ", ".join(f"{name} {number}" for name, number in fit.get("versions", {}).items()))
    return found


def _cells(line: dict[str, Any], figures: Figures) -> list[str]:
    ways = {
        "people": figures.count, "already": figures.count, "validity": figures.percent, "best_effort": figures.count,
        "infeasible": figures.count, "changes": figures.decimal, "effort": figures.decimal,
        "plausibility": figures.percent,
    }  # fmt: skip
    return ["–" if line[key] is None else way(line[key]) for key, way in ways.items()]


def _plane(view: View, speaker: Speaker, figures: Figures) -> dict[str, Any]:
    """The map, and the same in figures."""
    from markupsafe import Markup

    effort, plausible = view.effort[view.valid, 0], view.explanation.plausibility[view.valid, 0]
    if not len(effort) or np.isnan(plausible).any():
        return {"plane": "", "plane_table": {}}
    across, upwards = speaker.text("report_across"), speaker.text("report_upwards")
    shares = (0.25, 0.5, 0.75)
    cells = [
        (name, [way(float(np.quantile(of, q))) for q in shares] + [way(float(of.mean()))])
        for name, of, way in ((across, effort, figures.decimal), (upwards, plausible, figures.percent))
    ]
    columns = [speaker.text("report_quartile", share=figures.percent(q)) for q in shares]
    table = {"columns": [*columns, speaker.text("report_mean")], "lines": cells}
    return {"plane": Markup(plots.plane(effort, plausible, across, upwards)), "plane_table": table}


def _file(name: str) -> str:
    return files("tdce.report").joinpath(name).read_text(encoding="utf-8")
