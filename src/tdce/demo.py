"""The demonstration: five people who were refused credit, and what would have changed the answer."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from rich.console import Console

from tdce._core import Mode
from tdce.datasets import check_writable, load, make_folder, write_table
from tdce.explainer import Explainer

PEOPLE = 5
OPTIONS = 3  # per person, in the report


def run(out: Path, console: Console, progress: Mode) -> None:
    """Fit to the German credit data, explain refused test applicants, write five of them and a report on all."""
    rows, page, model = out / "counterfactuals.csv", out / "report.html", out / "german.tdce"
    make_folder(out)
    for path in (rows, page, model):
        check_writable(path, endings=None)

    def say(text: str, style: str = "") -> None:
        console.print(text, style=style, highlight=False, markup=False, soft_wrap=not console.is_terminal)

    data = load("german")
    say(f"German credit data: {len(data.frame):,} applicants, {len(data.schema)} features each.")
    explainer = Explainer(progress=progress)
    explainer.fit(data.part("train"), label=data.label, favourable=data.favourable, schema=data.schema)
    explainer.save(model)
    report = explainer.report
    learned = report["rows"] - report["test_rows"]
    say(f"Learned from {learned} of them in {report['seconds']:.0f} s. The classifier is right on "
        f"{100 * report['accuracy']:.0f} % of {report['test_rows']} unseen ones "
        f"(always giving the most common answer: {100 * report['commonest_class']:.0f} %).")  # fmt: skip

    people = data.part("test")
    refused = people[explainer.predict(people) != data.favourable]
    everybody = explainer.explain(refused, n=OPTIONS)
    measured = explainer.evaluate(everybody)
    refused = refused.head(PEOPLE)
    answer = explainer.explain(refused)
    say(f"\nFive applicants whom the model refuses. What would have to be different for a “{data.favourable}”?")
    speaker = answer.speaker()
    never = [speaker.title(name) for name in explainer.schema.immutable if speaker.may_name(name)]
    say(f"Never changed: {', '.join(never)}.")
    for label, (line,) in zip(refused.index, answer.lines, strict=True):
        say(f"\n{speaker.text('report_row', label=label)}: {speaker.headline(line)}", style="bold")
        for change in speaker.changes(line):
            say(f"  - {speaker.bullet(*change)}")

    first = answer.lines[0][0]
    say(f"\nTo person {refused.index[0]}: {speaker.sentence(first)}")
    say(f"In German: {answer.speaker('de').sentence(first)}")
    say(speaker.text("promise"))

    say(
        f"\nOver all refused test applicants: {100 * measured['validity']:.0f} % would be accepted, after "
        f"{measured['sparsity']:.1f} changes on average; {100 * measured['violations']:.0f} % break a rule. "
        "`tdce evaluate` shows all metrics."
    )
    write_table(rows, answer.to_frame())
    everybody.to_html(
        page,
        title=f"{len(everybody.rows)} refused people: what would change the answer",
        metrics=measured,
        population=explainer.population(data.part("train")),
    )
    say(f"\nWritten: {rows}, {model} and the report, {page}: open it in a browser.")
    say(f"To try values yourself, start the studio: {command()} serve {model}")


def command() -> str:
    """`tdce` as the reader can type it: with its folder unless it is on the path, as after `make demo`."""
    script = Path(sys.executable).with_name("tdce")
    if shutil.which("tdce") or not script.exists():
        return "tdce"
    return str(script.relative_to(Path.cwd()) if script.is_relative_to(Path.cwd()) else script)
