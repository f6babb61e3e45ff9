"""The demonstration: five people who were refused credit, and what would have changed the answer."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from tdce.data import load
from tdce.evaluation import evaluate
from tdce.explainer import Explainer
from tdce.progress import Mode
from tdce.tables import check_writable, make_folder, write_table

PEOPLE = 5


def run(out: Path, console: Console, progress: Mode) -> None:
    """Fit to the German credit data, explain the first five refused test applicants, write rows and a page."""
    rows, page, model = out / "counterfactuals.csv", out / "report.html", out / "german.tdce"
    make_folder(out)
    for path in (rows, page, model):
        check_writable(path, endings=None)

    def say(text: str, style: str = "") -> None:
        console.print(text, style=style, highlight=False, markup=False, soft_wrap=True)

    data = load("german")
    say(f"German credit data: {len(data.frame):,} applicants, {len(data.schema)} features each.")
    explainer = Explainer(progress=progress)
    explainer.fit(data.part("train"), label=data.label, favourable=data.favourable, schema=data.schema)
    report = explainer.report
    say(f"Learned from {report['rows']} of them in {report['seconds']:.0f} s. The classifier is right on "
        f"{100 * report['accuracy']:.0f} % of {report['test_rows']} unseen ones "
        f"(always giving the most common answer: {100 * report['commonest_class']:.0f} %).")  # fmt: skip

    people = data.part("test")
    refused = people[explainer.predict(people) != data.favourable]
    measured = evaluate(explainer, explainer.explain(refused))
    refused = refused.head(PEOPLE)
    answer = explainer.explain(refused)
    say(f"\nFive applicants whom the model refuses. What would have to be different for a “{data.favourable}”?")
    speaker = answer.speaker()
    never = [speaker.title(name) for name in explainer.schema.immutable if speaker.may_name(name)]
    say(f"Never changed: {', '.join(never)}.")
    for label, (line,) in zip(refused.index, answer.lines, strict=True):
        say(f"\nApplicant {label}: {speaker.headline(line)}", style="bold")
        for change in speaker.changes(line):
            say(f"  - {speaker.bullet(*change)}")
        say(f"  {speaker.sentence(line)}")

    say(
        f"\nOver all refused test applicants: {100 * measured['validity']:.0f} % would be accepted, after "
        f"{measured['sparsity']:.1f} changes on average; {100 * measured['violations']:.0f} % break a rule. "
        "`tdce evaluate` shows all metrics."
    )
    write_table(rows, answer.to_frame())
    answer.to_html(page, title="Five refused applicants: what would change the answer")
    explainer.save(model)
    say(f"\nWritten: {page} (open it in a browser), {rows}, {model}")
