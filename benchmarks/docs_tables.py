"""Tables of docs/ that are made from results/: each is between two markers that name it."""

from pathlib import Path


def put(page: Path, **tables: str) -> None:
    """Write each table between its markers, `<!-- name -->` and `<!-- /name -->`."""
    text = page.read_text(encoding="utf-8")
    for name, table in tables.items():
        head, rest = text.split(f"<!-- {name} -->")
        text = f"{head}<!-- {name} -->\n{table}\n<!-- /{name} -->{rest.split(f'<!-- /{name} -->')[1]}"
    page.write_text(text, encoding="utf-8")
