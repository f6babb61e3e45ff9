"""Figure 6: one person's trajectory through the reverse steps of Algorithm 1."""

from __future__ import annotations

from textwrap import fill
from typing import Any

import pandas as pd
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tdce._core import Noise, pad_rows
from tdce.datasets import load
from tdce.explainer import Explainer, Fitted
from tdce.methods import Guided, GuidedLiteral
from tdce.report import spoken_name
from tdce.schema import FeasibleSet, Numeric
from tdce_reproduction.figures.style import BLACK, BLUE, GREEN, ORANGE, PURPLE, SKY, VERMILION, new
from tdce_reproduction.figures.workspace import Workspace

METHODS = {
    "guided": "Algorithm 1, our reading (guided)",
    "guided_literal": "Algorithm 1, as printed, in 50 strides (guided_literal)",
}
KINDS = {"guided": Guided(), "guided_literal": GuidedLiteral(steps=50)}
RETURNED = -1  # the time of the answer, after the last step
COLOURS = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY)
STYLES = ("-", "--", "-.", ":")
PANELS = {
    "probability": "the model's probability of a yes",
    "number": "numbers: change (standard deviations)",
    "category": "categories: weight of all but the own",
}


def measure(workspace: Workspace) -> pd.DataFrame:
    """One line per method, step and feature, for the first refused test applicant of the German credit data.

    A step shows the estimate of the clean row, and the last one the answer: each number's distance from the person's
    own value, the weight of all categories but the person's own, and the model's probability of the target.
    """
    data = load("german")
    explainer = Explainer(progress="silent").fit(
        data.part("train"), label=data.label, favourable=data.favourable, schema=data.schema
    )
    test = data.part("test")
    person = test[explainer.predict(test) != data.favourable].head(1)
    return pd.concat([trajectory(explainer.fitted_, person, name) for name in METHODS], ignore_index=True)


def trajectory(fitted: Fitted, person: pd.DataFrame, name: str) -> pd.DataFrame:
    """The steps of a method's walk to the answer for one row, and the answer."""
    method = KINDS[name]
    explainer = Explainer(method, progress="silent")
    explainer.fitted_ = fitted
    answer = explainer.explain(person)
    changed = {feature: f"{before} → {after}" for feature, before, after in answer.lines[0][0].changes}
    x = fitted.encoder.encode(person).float()
    whole = pad_rows(torch.zeros(1, dtype=torch.long))  # rows come in blocks, as when they are explained
    rows, goals = FeasibleSet.of(fitted.encoder, person).x[whole], answer.goals.take(whole)
    noise = Noise(rows, answer.question.seed, length=method.noise_length)
    walk = method.fit(fitted.task(answer.immutable)).walk(rows, goals, noise, method.start)
    seen = [(t, x_0[:1]) for t, _, x_0 in walk]
    seen.append((RETURNED, fitted.encoder.encode(answer.to_frame()).float()))
    target = fitted.classes.index(answer.lines[0][0].target)
    lines: list[dict[str, Any]] = []
    for step, (t, x_0) in enumerate(seen):
        key = {"method": name, "step": step, "t": t}
        with torch.no_grad():
            assert fitted.classifier is not None
            p = fitted.classifier(x_0).softmax(dim=1)[0, target].item()
        lines.append(key | {"kind": "probability", "feature": "", "value": p, "change": ""})
        for feature in fitted.encoder.schema:
            columns = list(fitted.encoder.space.places[feature.name])
            if isinstance(feature, Numeric):
                kind, value = "number", (x_0 - x)[0, columns[0]].item()
            else:
                kind, value = "category", 1 - (x_0 * x)[0, columns].sum().item()
            if not feature.immutable:
                change = changed.get(feature.name, "")
                lines.append(key | {"kind": kind, "feature": feature.name, "value": value, "change": change})
    return pd.DataFrame(lines)


def draw(table: pd.DataFrame) -> Figure:
    """One row of panels per method; features changed by its answer are coloured and named, the others are grey."""
    figure = new(17, 14)
    table = table.fillna({"feature": "", "change": ""})
    halves = figure.subfigures(len(METHODS), 1, hspace=0.04, squeeze=False)[:, 0]
    for half, (method, title) in zip(halves, METHODS.items(), strict=True):
        half.suptitle(title, x=0.01, ha="left", fontsize=17)
        part = table[table["method"] == method]
        part = part.assign(walk=(part["t"].diff() > 0).cumsum().where(part["t"] != RETURNED, RETURNED))
        gap = part["step"].max() / 8  # between two walks, and before the answer
        walks = part.loc[part["t"] != RETURNED, "walk"].max()
        part["x"] = part["step"] + gap * part["walk"].replace(RETURNED, walks + 1)
        for axes, (kind, label) in zip(half.subplots(1, 3), PANELS.items(), strict=True):
            _draw_lines(axes, part[part["kind"] == kind])
            axes.set_title(label, loc="left")
            _draw_time_axis(axes, part.drop_duplicates("step"))
            if kind == "probability":
                axes.axhline(0.5, color="0.7", linewidth=1, zorder=0)
            if kind != "number":
                axes.set_ylim(-0.03, 1.03)
    return figure


def _draw_lines(axes: Axes, part: pd.DataFrame) -> None:
    """Draw one line per feature through each walk, and a point at the answer."""
    looks = iter([(colour, style) for style in STYLES for colour in COLOURS])
    for feature, own in part.groupby("feature", sort=False):
        change = str(own["change"].iloc[0])
        named = bool(change) or not feature
        colour, style = (next(looks) if feature else (BLACK, "-")) if named else ("0.8", "-")
        label = fill(f"{spoken_name(feature)}: {change}", 52, subsequent_indent="   ") if change else None
        for walk, steps in own.groupby("walk"):
            mark = "o" if walk == RETURNED else None
            axes.plot(steps["x"], steps["value"], color=colour, linestyle=style, marker=mark, markersize=9,
                      label=label if walk == 0 else None, zorder=2 + named)  # fmt: skip
    if (part["change"] != "").any():
        axes.legend(loc="upper left", bbox_to_anchor=(-0.05, -0.16), fontsize=13)


def _draw_time_axis(axes: Axes, steps: pd.DataFrame) -> None:
    """Put ticks where a walk begins, halfway, where it ends, and at the answer."""
    ticks = {}
    for walk, part in steps.groupby("walk"):
        for i in (0, len(part) // 2, len(part) - 1):
            ticks[part["x"].iloc[i]] = "answer" if walk == RETURNED else str(part["t"].iloc[i])
    axes.set_xticks(list(ticks), list(ticks.values()))
    axes.set_xlabel("time t (of 1,000)")
