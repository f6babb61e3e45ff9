"""The demonstration: five people who were refused credit, and what would have changed the answer."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from tdce.data import load
from tdce.errors import InputError
from tdce.explainer import Explainer
from tdce.progress import Mode
from tdce.tables import write_table

PEOPLE = 5


def run(out: Path, console: Console, progress: Mode) -> None:
    """Fit to the German credit data, explain the first five refused test applicants, write rows and a page."""
    if out.exists() and not out.is_dir():
        raise InputError(f"{out} is a file; name a folder for the demo's output")
    out.mkdir(parents=True, exist_ok=True)
    data = load("german")
    console.print(f"German credit data: {len(data.frame):,} applicants, {len(data.schema)} features.", highlight=False)
    explainer = Explainer(progress=progress)
    explainer.fit(data.part("train"), label=data.label, favourable=data.favourable, schema=data.schema)
    report = explainer.report
    console.print(
        f"Learned in {report['seconds']:.0f} s. The classifier is right on {100 * report['accuracy']:.0f} % of "
        f"{report['test_rows']} unseen applicants (the commonest class alone: {100 * report['commonest_class']:.0f} %).",
        highlight=False,
    )

    people = data.part("test")
    refused = people[explainer.predict(people) != data.favourable].head(PEOPLE)
    answer = explainer.explain(refused, seed=0)
    kept = ", ".join(str(name).replace("_", " ") for name in explainer.schema.immutable)
    console.print(f"\nFive applicants who were refused, and what would have made it “{data.favourable}”")
    console.print(f"(never changed: {kept}):\n", highlight=False)
    for label, text in zip(refused.index, answer.sentences(), strict=True):
        console.print(f"[bold]Applicant {label}[/bold]  {text}\n", highlight=False)

    rows, page, model = out / "counterfactuals.csv", out / "report.html", out / "german.tdce"
    write_table(rows, answer.to_frame())
    answer.to_html(page, title="Five refused applicants: what would change the answer")
    explainer.save(model)
    console.print(f"Written: {page} (open it in a browser), {rows}, {model}", highlight=False, soft_wrap=True)
