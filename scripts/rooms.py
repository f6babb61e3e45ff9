"""Write the table of rooms in CONTRIBUTING.md, from each room's own docstring.

python scripts/rooms.py
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "CONTRIBUTING.md"
ORDER = (
    "cli", "tdce_reproduction", "serving", "batch", "audit", "explainer", "report", "methods", "models", "diffusion",
    "datasets", "schema", "_core",
)  # fmt: skip


def main() -> None:
    PAGE.write_text(renewed(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


def renewed(page: str) -> str:
    """The page with the table of the code as it is now."""
    marks = r"(<!-- rooms: made by scripts/rooms.py -->\n).*?(<!-- end of rooms -->)"
    return re.sub(marks, lambda found: f"{found[1]}{table()}\n{found[2]}", page, flags=re.DOTALL)


def table() -> str:
    rows = [f"| `{name}` | {purpose(name)} | {lines(name):,} |" for name in ORDER]
    return "\n".join(["| room | what it is for | lines, about |", "|---|---|---|", *rows])


def purpose(room: str) -> str:
    """The first paragraph of a room's docstring, on one line."""
    text = ast.get_docstring(ast.parse((folder(room) / "__init__.py").read_text(encoding="utf-8"))) or ""
    return " ".join(text.split("\n\n")[0].split())


def lines(room: str) -> int:
    """Lines of Python that are not empty, to hundreds, so that not every edit changes the page."""
    files = (path.read_text(encoding="utf-8") for path in folder(room).rglob("*.py"))
    return max(100, round(sum(bool(line.strip()) for text in files for line in text.splitlines()), -2))


def folder(room: str) -> Path:
    return ROOT / "src" / (room if room.startswith("tdce_") else f"tdce/{room}")


if __name__ == "__main__":
    main()
