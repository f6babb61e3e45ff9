"""An answer as one self-contained HTML page, which loads nothing; table contents are data, never markup."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np

from tdce._core import InputError, Name, check_choice, check_number, show
from tdce.methods import Line
from tdce.metrics import MEANING
from tdce.models import Class, Not
from tdce.report import overview, plots
from tdce.report.accuracy import accuracy_rows
from tdce.report.burden import Burden
from tdce.report.burden_section import burden_section
from tdce.report.cards import STATUSES, person_cards
from tdce.report.context import OWN_MODEL
from tdce.report.histograms import Population
from tdce.report.language.formats import write_number
from tdce.report.language.speaker import Speaker
from tdce.report.view import View

if TYPE_CHECKING:
    from jinja2 import Template

MAX_CLASSES = 4  # distinguishable in a drawing
PLAIN_BYTES = 1 << 19  # of card data, plus the next per row; more than that is compressed
PLAIN_BYTES_PER_ROW = 900
MAX_COMPARED_PEOPLE = 1_000  # whose reasons are compared by default, since that queries the model
SORT_KEYS = ("row", "before", "after", "few", "many", "effort", "typical")
SCRIPT_MESSAGES = (  # of the report, with placeholders that its script fills in
    "one", "count", "printed", "option", "threshold", "band", "highest", "unnamed", "note", "caption", "now", "then",
    "to", "of", "in_ten", "in_hundred", "hardly", "nearly_all", "with_outcome", "less", "less_too", "chart_number",
    "worth_change",
)  # fmt: skip


def render_page(
    view: View,
    lines: Sequence[Sequence[Line]],
    speaker: Speaker,
    title: str | None = None,
    metrics: Mapping[str, float] | None = None,
    burden: Burden | None = None,
) -> str:
    """The page as HTML: the finding, a card per person, the changes over all people, groups, an appendix."""
    metrics = check_metrics(metrics)
    numbers, population, classes = NumberFormat(speaker), view.population, _drawn_classes(view)
    predicted = any(line.number for options in lines for line in options)
    changes = overview.feature_changes(view, speaker)
    names, together = overview.paired_changes(view, speaker)
    return _template("page.html").render(
        **_common(view, lines, speaker, classes, Drawings()),
        title=title or speaker.text("report_title"),
        people=numbers.count(int(view.changed[:, 0].any(axis=1).sum())),
        version=version("tdce"),
        finding=overview.finding(view, lines, speaker),
        facts=_facts(view, lines, speaker, numbers),
        statuses=[(i, speaker.status(status)) for i, status in enumerate(STATUSES)],
        sorts=[(key, speaker.text(f"report_sort_{key}")) for key in SORT_KEYS],
        population=population and _legend(view, speaker, numbers),
        changes=changes,
        pairs=(names, together),
        pairs_most=max((n for row in together for n in row), default=1),
        percent=numbers.percent,
        count=numbers.count,
        groups=[
            {**group, "lines": [{**line, "cells": _cells(line, numbers)} for line in group["lines"]]}
            for group in overview.group_measures(view, speaker)
        ],
        group_columns=[
            speaker.text(f"report_group_{name}")
            for name in ("people", "already", "valid", "best_effort", "infeasible", "changes", "effort", "plausibility")
        ],
        burden=burden_section(burden, speaker),
        agreement=_agreement(view, speaker, numbers),
        no_reasons=speaker.text("report_no_reasons", most=numbers.count(MAX_COMPARED_PEOPLE)),
        worth_note=speaker.text("report_worth_number" if predicted else "report_worth_log"),
        metrics=[(name, numbers.precise(value), *_metric_guide(name, speaker)) for name, value in metrics.items()],
        **_effort_map(view, speaker, numbers),
    )


def render_applicant(
    view: View, lines: Sequence[Sequence[Line]], speaker: Speaker, drawings: Drawings, title: str | None = None
) -> str:
    """The page of one applicant: only their card, without other people's data, settings, hashes or versions."""
    classes = _drawn_classes(view)
    return _template("applicant.html").render(
        **_common(view, lines, speaker, classes, drawings),
        title=title or speaker.text("report_applicant_title"),
        sentences=list(dict.fromkeys(speaker.summary(line) for line in lines[0])),
        population=view.population and _legend(view, speaker, NumberFormat(speaker)),
    )


class Drawings:
    """The histograms of a population, each drawn once."""

    def __init__(self) -> None:
        self._drawn: dict[tuple[Name, tuple[int, ...]], str] = {}

    def __call__(self, population: Population, name: Name, classes: Sequence[int]) -> str:
        key = name, tuple(classes)
        if key not in self._drawn:
            self._drawn[key] = plots.draw_histogram(population[name], classes)
        return self._drawn[key]


def _common(
    view: View, lines: Sequence[Sequence[Line]], speaker: Speaker, classes: list[int], drawings: Drawings
) -> dict[str, Any]:
    """The common parts of a page: its language, style and script, and the data of its cards with drawings."""
    from markupsafe import Markup

    cards, population = _cards(view, lines, speaker, classes), view.population
    data, data_type = _data_block({"people": cards, "words": _script_words(speaker)}, len(view.rows))
    script = _read_file("page.js")
    return {
        "language": speaker.language,
        "t": speaker.text,
        "style": Markup(_read_file("page.css")),
        "script": Markup(script),
        "script_hash": f"sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}",
        "data": Markup(data),
        "data_type": data_type,
        "plots": [
            (place, Markup(drawings(population, column.name, classes)))
            for place, (_, column) in enumerate(view.visible)
            if population is not None and "at" in cards["features"][place]
        ],
    }


@cache
def _template(name: str) -> Template:
    from jinja2 import Environment, StrictUndefined  # slow to import, and only a page needs it

    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    return environment.from_string(_read_file(name))


def check_metrics(metrics: Any) -> dict[str, float]:
    """Check metrics as returned by `Explainer.evaluate`; raise an error for an unknown one."""
    given = {} if metrics is None else metrics
    if not isinstance(given, Mapping):
        raise InputError(f"metrics is {show(given)}; it must be what tdce.evaluate returned")
    for name, value in given.items():
        check_number(f"the metric {check_choice('metric', name, MEANING)}", value, -math.inf, math.inf)
    return dict(given)


def _cards(view: View, lines: Sequence[Sequence[Line]], speaker: Speaker, classes: list[int]) -> dict[str, Any]:
    """The data of the cards, with the shares of the first two classes drawn."""
    cards, population = person_cards(view, lines, speaker), view.population
    for (i, _), feature in zip(view.visible, cards["features"], strict=True):
        feature["changed"] = bool(view.changed[:, :, i].any())
        if "share" in feature:
            feature["share"] = [feature["share"][k] for k in classes[:2]]
    cards["classes"] = [] if population is None else [speaker.outcome(population.classes[k]) for k in classes[:2]]
    predicted = any(line.number for options in lines for line in options)
    cards["score"] = speaker.messages.messages["report_score_number" if predicted else "report_score"]
    return cards


def _script_words(speaker: Speaker) -> dict[str, Any]:
    """The messages for the page's script."""
    messages = speaker.messages.messages
    words: dict[str, Any] = {name: messages[f"report_{name}"] for name in SCRIPT_MESSAGES}
    words["feature"] = speaker.text("report_feature_name")
    words["statuses"] = {status: speaker.status(status) for status in STATUSES}
    return words


def _agreement(view: View, speaker: Speaker, numbers: NumberFormat) -> list[tuple[str, list[str]]]:
    """The agreement of methods of principal reasons: a name and the cells for each pair."""
    return [
        (
            speaker.text(
                "report_reasons_pair",
                one=speaker.text(f"report_method_{each.one}"),
                other=speaker.text(f"report_method_{each.other}"),
            ),
            [
                numbers.count(each.people),
                *("–" if np.isnan(share) else numbers.percent(share) for share in each[3:]),
            ],
        )
        for each in view.agreement
    ]


def _metric_guide(metric: str, speaker: Speaker) -> tuple[str, str]:
    """Which values of a metric are good, and how to read it."""
    good = MEANING[metric][0]
    return speaker.text(f"good_{good if good in ('low', 'high') else 'middle'}"), speaker.text(f"metric_{metric}")


@dataclass(frozen=True)
class NumberFormat:
    """Format the numbers of a report in its language."""

    speaker: Speaker

    def count(self, number: int) -> str:
        return write_number(self.speaker.messages, number)

    def percent(self, share: float) -> str:
        return self.speaker.share(share)

    def decimal(self, number: float) -> str:
        return write_number(self.speaker.messages, round(number, 2), "#,##0.00")

    def precise(self, number: float) -> str:
        return write_number(self.speaker.messages, number, digits=3)


def _data_block(content: dict[str, Any], rows: int) -> tuple[str, str]:
    """The data of a page and its type: JSON that cannot be mistaken for markup, compressed if large."""
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    if len(text.encode()) <= PLAIN_BYTES + PLAIN_BYTES_PER_ROW * rows:
        safe = text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
        return safe, "application/json"
    return base64.b64encode(gzip.compress(text.encode(), 9, mtime=0)).decode(), "application/gzip+base64"


def _drawn_classes(view: View) -> list[int]:
    """The classes to draw: first the target class, if all rows share it, then the largest classes."""
    if view.population is None:
        return []
    sizes = view.population.class_sizes
    order = sorted(range(len(sizes)), key=lambda k: -sizes[k])
    targets = {goal.of for goal in view.goals.kinds if isinstance(goal, Class) and not isinstance(goal, Not)}
    if len(targets) == 1 and len(view.goals.kinds) == 1:
        first = int(targets.pop())
        order = [first, *(k for k in order if k != first)]
    return order[:MAX_CLASSES]


def _legend(view: View, speaker: Speaker, numbers: NumberFormat) -> dict[str, str]:
    assert view.population is not None
    key = "report_real" if view.population.real else "report_synthetic"
    return {"source": speaker.text(key, people=numbers.count(view.population.rows))}


def _facts(
    view: View, lines: Sequence[Sequence[Line]], speaker: Speaker, numbers: NumberFormat
) -> list[tuple[str, str, str]]:
    """The name, value and CSS class of each fact that is known."""
    context, question = view.context, view.question
    fit = {} if context is None else context.fit
    facts: list[tuple[str, str, str]] = []

    def fact(name: str, value: str, css_class: str = "") -> None:
        if value:
            facts.append((speaker.text(f"report_fact_{name}"), value, css_class))

    if context is not None:
        fact("model", speaker.text("report_own_model") if context.model == OWN_MODEL else context.model)
        fact("label", context.label)
    if fit.get("accuracy") is not None:
        shares = {"share": numbers.percent(fit["accuracy"]), "commonest": numbers.percent(fit["commonest_class"])}
        rows = accuracy_rows(fit)
        said = speaker.text(f"report_accuracy_{rows}", rows=numbers.count(fit["test_rows"]), **shares)
        fact("agreement" if rows == "given" else "accuracy", said)
    if fit:
        fact("learned", speaker.text("report_learned", rows=numbers.count(fit["rows"]), seed=fit["seed"]))
    size = {"rows": numbers.count(len(view.rows)), "columns": view.rows.shape[1], "options": question.n}
    fact("rows", speaker.text("report_rows", **size))
    fact("wanted", ", ".join(dict.fromkeys(speaker.target(options[0]) for options in lines)))
    counts = {status: int((view.explanation.status == status).sum()) for status in STATUSES}
    fact("status", ", ".join(f"{numbers.count(n)} {speaker.status(s)}" for s, n in counts.items() if n))
    settings = {} if context is None else dict(context.settings)
    closeness = settings.pop("closeness", None) if question.closeness is None else question.closeness
    if context is not None:
        fact("method", ", ".join([context.method, *(f"{key} {value}" for key, value in settings.items())]))
    written = "–" if closeness is None else write_number(speaker.messages, closeness)
    fact("settings", speaker.text("report_settings", seed=question.seed, closeness=written))
    names = [speaker.title(name) for name in view.question.immutable if name not in view.hidden]
    fact("immutable", ", ".join(names))
    fact("rules", "; ".join(rule for rule in (*view.schema.rules, *question.rules) if view.may_quote(rule)))
    costs = [f"{speaker.title(name)} {cost:g}" for name, cost in question.costs.items() if name not in view.hidden]
    fact("costs", ", ".join(costs))
    queries = {"calls": numbers.count(view.model_calls), "rows": numbers.count(view.model_rows)}
    fact("calls", speaker.text("report_calls", **queries))
    fact("fitted", fit.get("fitted", ""))
    if context is not None and context.origin is not None:
        fact("file", context.origin.name)
        fact("written", context.origin.written)
        fact("sha", context.origin.sha256, "code")
    table = view.rows[[name for name in view.rows.columns if name not in view.hidden]]
    fact("rows_sha", hashlib.sha256(table.to_csv().encode()).hexdigest(), "code")
    fact("versions", ", ".join(f"{name} {number}" for name, number in fit.get("versions", {}).items()))
    return facts


def _cells(line: dict[str, Any], numbers: NumberFormat) -> list[str]:
    """The measures of a group as text."""
    formats = {
        "people": numbers.count, "already": numbers.count, "validity": numbers.percent, "best_effort": numbers.count,
        "infeasible": numbers.count, "changes": numbers.decimal, "effort": numbers.decimal,
        "plausibility": numbers.percent,
    }  # fmt: skip
    return ["–" if line[key] is None else write(line[key]) for key, write in formats.items()]


def _effort_map(view: View, speaker: Speaker, numbers: NumberFormat) -> dict[str, Any]:
    """The map of effort against plausibility, and its quartiles as a table; empty if there is nobody to show."""
    from markupsafe import Markup

    effort, plausible = view.effort[view.valid, 0], view.explanation.plausibility[view.valid, 0]
    if not len(effort) or np.isnan(plausible).any():
        return {"effort_map": "", "effort_table": {}}
    x_label, y_label = speaker.text("report_effort_axis"), speaker.text("report_plausibility_axis")
    shares = (0.25, 0.5, 0.75)
    lines = [
        (name, [write(float(np.quantile(values, q))) for q in shares] + [write(float(values.mean()))])
        for name, values, write in ((x_label, effort, numbers.decimal), (y_label, plausible, numbers.percent))
    ]
    columns = [speaker.text("report_quartile", share=numbers.percent(q)) for q in shares]
    table = {"columns": [*columns, speaker.text("report_mean")], "lines": lines}
    return {"effort_map": Markup(plots.draw_effort_map(effort, plausible, x_label, y_label)), "effort_table": table}


def _read_file(name: str) -> str:
    return files("tdce.report").joinpath(name).read_text(encoding="utf-8")
