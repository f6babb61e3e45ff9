"""An answer as one self-contained HTML page: nothing is fetched, and the people in it are data, never markup."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np

from tdce.explanation import Line, Status
from tdce.goal import Class, Not
from tdce.metrics import MEANING
from tdce.report import overview, plots
from tdce.report.people import STATUSES, people
from tdce.report.view import View

if TYPE_CHECKING:
    from markupsafe import Markup

CLASSES = 4  # that a drawing tells apart
FREE, EACH = 1 << 20, 900  # bytes: a page with more than a megabyte and so many per person is packed
SORTS = ("row", "before", "after", "few", "many", "effort", "typical")
SPOKEN = (  # by the script, of the messages
    "one", "count", "printed", "row", "option", "threshold", "plausibility", "below", "alike", "shares", "unnamed", "note", "caption",
    "percent", "now", "then", "to", "of",
)  # fmt: skip


def page(
    view: View,
    lines: Sequence[Sequence[Line]],
    speaker: Any,
    title: str,
    calls: tuple[int, int],
    metrics: Mapping[str, float] | None = None,
) -> str:
    """The whole page: a summary, the people, what changes over all of them, groups and metrics."""
    from jinja2 import Environment, StrictUndefined  # only here: only a page needs it
    from markupsafe import Markup

    shown = people(view, lines, speaker)
    classes = _classes(view)
    for (i, _), feature in zip(view.shown, shown["features"], strict=True):
        feature["changed"] = bool(view.changed[:, :, i].any())
        if "share" in feature:
            feature["share"] = [feature["share"][k] for k in classes[:2]]
    population = view.population
    shown["classes"] = [] if population is None else [population.classes[k] for k in classes[:2]]
    words = {name: speaker.text(f"report_{name}") for name in SPOKEN}
    number = any(line.number for options in lines for line in options)
    words["score"] = speaker.text("report_score_number" if number else "report_score")
    words["feature"] = speaker.text("report_feature_name")
    words["statuses"] = {status: speaker.status(status) for status in STATUSES}
    data, kind = _block({"people": shown, "words": words}, len(view.rows))

    def drawing(i: int) -> Markup:
        assert population is not None
        return Markup(plots.spread(population.spreads[i], classes))

    script, style = _file("page.js"), _file("page.css")
    changes, totals = overview.feature_changes(view, speaker), overview.totals(view)
    names, together = overview.pairs(view, speaker)
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    return environment.from_string(_file("page.html")).render(
        title=title,
        language=speaker.language,
        t=_spoken(speaker, people=f"{int(view.changed[:, 0].any(axis=1).sum()):,}", version=version("tdce")),
        style=Markup(style),
        script=Markup(script),
        script_hash=f"sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}",
        data=Markup(data),
        data_type=kind,
        tiles=_tiles(totals, speaker),
        facts=_facts(view, speaker, calls),
        statuses=[(i, speaker.status(status)) for i, status in enumerate(STATUSES)],
        sorts=[(key, speaker.text(f"report_sort_{key}")) for key in SORTS],
        population=population and _legend(view, classes, speaker),
        plots=[(place, drawing(i)) for place, (i, _) in enumerate(view.shown) if "at" in shown["features"][place]],
        changes=changes,
        pairs=(names, together),
        pairs_most=max((n for row in together for n in row), default=1),
        percent=speaker.percent,
        count=speaker.count,
        groups=[
            {**group, "lines": [{**line, "cells": _cells(line, speaker)} for line in group["lines"]]}
            for group in overview.by_group(view, speaker)
        ],
        group_columns=[
            speaker.text(f"report_group_{name}")
            for name in ("people", "already", "valid", "changes", "effort", "plausibility")
        ],
        metrics=[
            (name, speaker.decimal(value), MEANING[name][0], MEANING[name][1]) for name, value in (metrics or {}).items()
        ],
        **_plane(view, speaker),
    )


def _spoken(speaker: Any, **values: str) -> Any:
    def text(key: str) -> str:
        said = speaker.text(key)
        for name, value in values.items():
            said = said.replace(f"{{{name}}}", value)
        return str(said)

    return text


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


def _legend(view: View, classes: list[int], speaker: Any) -> dict[str, Any]:
    assert view.population is not None
    names = [speaker.text("report_said", name=view.population.classes[k]) for k in classes]
    key = "report_real" if view.population.real else "report_synthetic"
    return {"legend": names, "said": speaker.text(key, people=speaker.count(view.population.people))}


def _tiles(totals: dict[str, Any], speaker: Any) -> list[dict[str, str]]:
    shown = [(speaker.count(totals["people"]), speaker.text("report_tile_people"))]
    if totals["validity"] is not None:
        asked = speaker.count(totals["asked"])
        shown.append((speaker.percent(totals["validity"]), speaker.text("report_tile_valid", asked=asked)))
    for key in ("changes", "effort"):
        if totals[key] is not None:
            shown.append((speaker.decimal(totals[key]), speaker.text(f"report_tile_{key}")))
    if totals["plausibility"] is not None:
        shown.append((speaker.percent(totals["plausibility"]), speaker.text("report_tile_plausibility")))
    return [{"value": value, "text": text} for value, text in shown]


def _facts(view: View, speaker: Any, calls: tuple[int, int]) -> list[tuple[str, str, str]]:
    """Name, value and kind of each fact that is known."""
    context, question = view.context, view.question
    fit = {} if context is None else context.fit
    found: list[tuple[str, str, str]] = []

    def fact(name: str, value: str, kind: str = "") -> None:
        if value:
            found.append((speaker.text(f"report_fact_{name}"), value, kind))

    if context is not None:
        fact("model", context.model)
        fact("label", context.label)
    if fit.get("accuracy") is not None:
        shares = {"share": speaker.percent(fit["accuracy"]), "commonest": speaker.percent(fit["commonest_class"])}
        fact("accuracy", speaker.text("report_accuracy", rows=speaker.count(fit["test_rows"]), **shares))
    if fit:
        fact("learned", speaker.text("report_learned", rows=speaker.count(fit["rows"]), seed=fit["seed"]))
    size = {"rows": speaker.count(len(view.rows)), "columns": view.rows.shape[1], "options": question.options}
    fact("rows", speaker.text("report_rows", **size))
    fact("wanted", ", ".join(dict.fromkeys(map(str, view.wanted.tolist()))))
    counts = {status: int((view.found.status == status).sum()) for status in STATUSES}
    fact("status", ", ".join(f"{speaker.count(n)} {speaker.status(s)}" for s, n in counts.items() if n))
    settings = {} if context is None else dict(context.settings)
    closeness = settings.pop("closeness", None) if question.closeness is None else question.closeness
    if context is not None:
        fact("method", ", ".join([context.method, *(f"{key} {value}" for key, value in settings.items())]))
    fact("settings", speaker.text("report_settings", seed=question.seed, closeness="–" if closeness is None else closeness))
    names = [speaker.label(name) for name in view.immutable if name not in view.barred]
    fact("immutable", ", ".join(names))
    fact("rules", "; ".join(rule for rule in (*view.schema.rules, *question.rules) if view.silent(rule)))
    costs = [f"{speaker.label(name)} {cost:g}" for name, cost in question.costs.items() if name not in view.barred]
    fact("costs", ", ".join(costs))
    fact("calls", speaker.text("report_calls", calls=speaker.count(calls[0]), rows=speaker.count(calls[1])))
    fact("fitted", fit.get("fitted", ""))
    if context is not None and context.origin is not None:
        fact("file", context.origin.name)
        fact("written", context.origin.written)
        fact("sha", context.origin.sha256, "code")
    table = view.rows[[name for name in view.rows.columns if name not in view.barred]]
    fact("rows_sha", hashlib.sha256(table.to_csv().encode()).hexdigest(), "code")
    fact("versions", ", ".join(f"{name} {number}" for name, number in fit.get("versions", {}).items()))
    return found


def _cells(line: dict[str, Any], speaker: Any) -> list[str]:
    ways = {
        "people": speaker.count, "already": speaker.count, "validity": speaker.percent, "changes": speaker.decimal,
        "effort": speaker.decimal, "plausibility": speaker.percent,
    }  # fmt: skip
    return ["–" if line[key] is None else way(line[key]) for key, way in ways.items()]


def _plane(view: View, speaker: Any) -> dict[str, Any]:
    """The map, and the same in figures."""
    from markupsafe import Markup

    effort, plausible = view.effort[view.valid, 0], view.found.plausibility[view.valid, 0]
    if not len(effort) or np.isnan(plausible).any():
        return {"plane": "", "plane_table": {}}
    across, upwards = speaker.text("report_across"), speaker.text("report_upwards")
    shares = (0.25, 0.5, 0.75)
    cells = [
        (name, [way(float(np.quantile(of, q))) for q in shares] + [way(float(of.mean()))])
        for name, of, way in ((across, effort, speaker.decimal), (upwards, plausible, speaker.percent))
    ]
    columns = [speaker.text("report_quartile", share=speaker.percent(q)) for q in shares]
    table = {"columns": [*columns, speaker.text("report_mean")], "lines": cells}
    return {"plane": Markup(plots.plane(effort, plausible, across, upwards)), "plane_table": table}


def _file(name: str) -> str:
    return files("tdce.report").joinpath(name).read_text(encoding="utf-8")


class Plain:
    language = "en"

    def __init__(self):
        import tomllib

        self.messages = tomllib.loads(_file("en.toml"))

    def text(self, key, **values):
        out = self.messages[key]
        for k, v in values.items():
            out = out.replace("{" + k + "}", str(v))
        return out

    def label(self, name):
        from tdce.report.words import spoken

        return spoken(name)

    def value(self, name, cell):
        from tdce.report.words import value

        return value(cell)

    amount = value

    def headline(self, line):
        from tdce.report.words import headline

        return headline(line)

    def typical(self, p):
        from tdce.report.words import typical

        return typical(p)

    def score(self, v, number):
        from tdce.report.words import score

        return score(v, number)

    def status(self, status):
        return {
            Status.VALID: "would be accepted",
            Status.BEST_EFFORT: "not reached",
            Status.ALREADY: "already accepted",
            Status.INFEASIBLE: "nothing may change",
        }[Status(status)]

    def percent(self, share):
        return f"{100 * share:.0f} %"

    def count(self, n):
        return f"{n:,}"

    def decimal(self, x):
        return f"{x:.3g}"
