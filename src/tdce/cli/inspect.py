"""`tdce inspect`."""

from __future__ import annotations

from typing import Any

import tdce
from tdce.cli.shared import ArtefactPath, JsonFlag, print_table, say

ROWS = {"unseen": "unseen rows", "learned": "rows that it learned", "given": "rows, which the model may have learned"}
"""What the accuracy was measured on."""


def inspect(artefact: ArtefactPath, json: JsonFlag = False) -> None:
    """Show what is in a fitted explainer.

    Rows learned, columns and their roles, laws, the model and its accuracy, versions, size and digest. Loading it runs
    no code from it.
    """
    content = tdce.Explainer.load(artefact).inspect()
    if json:
        from json import dumps

        print(dumps(content, indent=2, ensure_ascii=False))
        return
    _print_facts(content)
    _print_columns(content["columns"])
    if content["laws"]:
        print("\nLaws:")
    for law in content["laws"]:
        exceptions = f", but for {law['exceptions']:,}" if law["exceptions"] else ""
        say(f"  {law['law']} ({law['rows']:,} rows{exceptions}{'' if law['on'] else '; switched off'})", indent="    ")
    for name in ("rules", "causes"):
        if content[name]:
            print(f"\n{name.capitalize()}:")
        for each in content[name]:
            say(f"  {each if name == 'rules' else _cause(each)}", indent="    ")


def _cause(entry: dict[str, Any]) -> str:
    return f"{entry['name']} is caused by {', '.join(map(str, entry['causes']))}"


def _print_facts(content: dict[str, Any]) -> None:
    from rich.table import Table
    from rich.text import Text

    accuracy, holds, file = content["accuracy"], content["holds"], content["file"]
    measured = "not known"
    if accuracy["accuracy"] is not None:
        rows = f"{accuracy['test_rows']:,} {ROWS[accuracy['accuracy_rows']]}"
        commonest = f"{100 * accuracy['commonest_class']:.1f} %"
        measured = f"{100 * accuracy['accuracy']:.1f} % of {rows} (the most common class: {commonest})"
    kept = f"{holds['training_rows']:,} training rows" if holds["training_rows"] else "nobody's record"
    facts = {
        "file": f"{file['name']}, {file['bytes']:,} bytes, written {file['written']}",
        "sha256": content["digest"],
        "format": str(content["format"]),
        "rows learned": f"{content['rows']:,}",
        "label": "none" if content["label"] is None else str(content["label"]),
        "favourable": "not said" if content["favourable"] is None else str(content["favourable"]),
        "says": "; ".join(_output(output) for output in content["outputs"]),
        "model": "; ".join(_model(model) for model in content["models"]),
        "accuracy": measured,
        "method": content["method"]["name"],
        "holds": f"{kept}, {holds['synthetic_rows']:,} synthetic rows, {holds['precedents']:,} precedents",
        "made by": ", ".join(f"{name} {version}" for name, version in content["versions"].items()),
    }
    table = Table(box=None, pad_edge=False, show_header=False)
    for name, fact in facts.items():
        table.add_row(Text(name, style="bold"), Text(fact))
    print_table(table)


def _output(output: dict[str, Any]) -> str:
    said = ", ".join(map(str, output["classes"])) if output["classes"] else "a number"
    return f"{output['name']}: {said}" if output["name"] else said


def _model(model: dict[str, Any]) -> str:
    versions = "".join(f", {name} {version}" for name, version in model["versions"].items())
    return f"{model['name']} ({model['kind']}{versions}), {model['digest'][:12]}"


def _print_columns(columns: list[dict[str, Any]]) -> None:
    from rich.table import Table
    from rich.text import Text

    print()
    table = Table("column", "kind", "values", "role", box=None, pad_edge=False)
    for column in columns:
        table.add_row(*(Text(str(column[name])) for name in ("name", "kind", "values", "role")))
    print_table(table)
