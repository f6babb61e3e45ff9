"""Do three methods of principal reasons agree: `way`, and the two of Regulation B's commentary?

    python benchmarks/reasons.py [--data german,adult] [--people 100] [--seed 0]
    python benchmarks/reasons.py --docs          writes the table of docs/evidence.md from the results

Writes results/reasons.csv. Our own model is fitted to the training rows; the people
are the first rows that it refuses, of the test part and then of the training part. They are compared with the
artefact's synthetic rows and with the training rows themselves. For every two methods: the share of people with the
same first reason, the same among reasons that can change, the share with one list inside the other, and the mean
overlap.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import pandas as pd
import torch
from docs_tables import put

import tdce
from tdce.explainer import Answer
from tdce.methods import ReasonMethod, Reasons, reasons_agreement

METHODS: tuple[ReasonMethod, ...] = ("way", "passing", "applicants")
OUT, PAGE = Path("results/reasons.csv"), Path("docs/evidence.md")


def measure(name: str, people: int, seed: int) -> list[dict[str, object]]:
    """The lines of a data set."""
    data = tdce.load(name)
    train, test = data.part("train"), data.part("test")
    explainer = tdce.Explainer(seed=seed, progress="silent")
    explainer.fit(train, label=data.label, favourable=data.favourable, schema=data.schema)
    everybody = pd.concat([test, train])
    refused = everybody[(explainer.predict(everybody) != data.favourable).to_numpy()].head(people)
    answer = explainer.explain(refused, seed=seed)
    immutable = frozenset(explainer.schema.immutable)
    lines: list[dict[str, object]] = []
    for beside, table in (("synthetic rows", None), ("training rows", train)):
        reasons = {method: listed(answer, method, table) for method in METHODS}
        possible = {method: [can_change(each, immutable) for each in some] for method, some in reasons.items()}
        only = {(each.one, each.other): each.first for each in reasons_agreement(possible)}
        for each in reasons_agreement(reasons):
            line = {"data": name, "seed": seed, "beside": beside, **each._asdict()}
            lines.append({**line, "first_that_can_change": only[each.one, each.other]})
    return lines


def listed(answer: Answer, method: ReasonMethod, table: pd.DataFrame | None) -> list[Reasons]:
    """The reasons of each person."""
    frame = answer.reasons(method) if method == "way" else answer.reasons(method, table)
    found: dict[object, Reasons] = {label: [] for label in answer.rows.index}
    for row, feature, loss in frame[["row", "feature", "loss"]].itertuples(index=False, name=None):
        found[row].append((feature, loss))
    return list(found.values())


def can_change(reasons: Reasons, immutable: frozenset[object]) -> Reasons:
    return [(feature, loss) for feature, loss in reasons if feature not in immutable]


def write_docs(results: Path, page: Path) -> None:
    """The table of the page."""
    head = ("data", "compared with", "methods", "people", "same first reason", "… of what can change",
            "one list in the other", "mean overlap")  # fmt: skip
    rows = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for line in pd.read_csv(results).itertuples():
        shares = (line.first, line.first_that_can_change, line.contained, line.overlap)
        cells = " | ".join(f"{100 * share:.0f} %" for share in shares)
        rows.append(f"| {line.data} | {line.beside} | {line.one}, {line.other} | {line.people} | {cells} |")
    put(page, reasons="\n".join(rows))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default="german,adult")
    parser.add_argument("--people", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--docs", action="store_true")
    given = parser.parse_args()
    if given.docs:
        write_docs(OUT, PAGE)
        return
    torch.set_num_threads(1)
    lines: list[dict[str, object]] = []
    for name in given.data.split(","):
        lines += measure(name, given.people, given.seed)
        print(pd.DataFrame(lines).to_string(), flush=True)
    pd.DataFrame(lines).round(4).to_csv(OUT, index=False)
    write_docs(OUT, PAGE)


if __name__ == "__main__":
    main()
