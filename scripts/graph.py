"""Draw which room of the package imports which, and count their lines, into CONTRIBUTING.md.

    python scripts/graph.py                  # write both between their marks
    python scripts/graph.py --lines COMMIT   # print the lines of code of a commit beside today's

A room is a module or a package directly in `tdce`. Imports inside functions and for type checkers count like others.
"""

from __future__ import annotations

import argparse
import ast
import subprocess
from collections import Counter
from collections.abc import Iterable, Iterator
from graphlib import TopologicalSorter
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
SOURCE = "src/tdce"
PAGE = ROOT / "CONTRIBUTING.md"
COMMANDS = ("__main__.py", "cli.py", "cli", "demo.py")  # `cli.py` before it was a package
PAPER = ("paper", "benchmark", "figures", "theory.py", "fidelity.py")  # of the paper, inside `paper` or before it was


class Import(NamedTuple):
    importer: str  # a module
    imported: str
    lazy: bool  # inside a function: not before it is called


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lines", metavar="COMMIT", help="print the lines of code of a commit beside today's")
    commit = parser.parse_args().lines
    if commit:
        print(counted(lines_of(committed(commit)), lines_of(present())))
    else:
        PAGE.write_text(renewed(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


def renewed(page: str) -> str:
    """The page with today's drawing and today's counts between their marks."""
    parts = {"graph": f"```mermaid\n{drawing(imports())}\n```", "lines": rounded(lines_of(present()))}
    for name, content in parts.items():
        begin, end = f"<!-- {name}: made by scripts/graph.py -->\n", f"\n<!-- end of {name} -->"
        before, rest = page.split(begin)
        page = before + begin + content + end + rest.split(end)[1]
    return page


def imports(source: Path = ROOT / SOURCE) -> list[Import]:
    """Every import of a module of the package by another one."""
    files = {_module(path.relative_to(source.parent)): path for path in sorted(source.rglob("*.py"))}
    return [
        Import(name, found, lazy)
        for name, path in files.items()
        for found, lazy in _imported(ast.parse(path.read_text(encoding="utf-8")), files)
        if found != name
    ]


def order(edges: Iterable[tuple[str, str]]) -> list[str]:
    """Importers after what they import; a `graphlib.CycleError` names a cycle."""
    sorter: TopologicalSorter[str] = TopologicalSorter()
    for importer, imported in sorted(edges):
        sorter.add(importer, imported)
    return list(sorter.static_order())


def room(module: str) -> str:
    return module.split(".")[1] if "." in module else module


def rooms(found: Iterable[Import]) -> dict[tuple[str, str], bool]:
    """Which room imports which, and whether only inside functions."""
    edges: dict[tuple[str, str], bool] = {}
    for importer, imported, lazy in found:
        edge = room(importer), room(imported)
        if edge[0] != edge[1]:
            edges[edge] = edges.get(edge, True) and lazy
    return edges


def drawing(found: Iterable[Import]) -> str:
    """A Mermaid diagram, from the commands down; an arrow is left out where a longer way says the same."""
    edges = rooms(found)
    down: dict[str, set[str]] = {}  # all that a room needs, directly or not
    for name in order(edges):
        direct = {imported for importer, imported in edges if importer == name}
        down[name] = direct.union(*(down[other] for other in direct))
    lines = ["flowchart TD"]
    for name in reversed(down):
        near = sorted(imported for importer, imported in edges if importer == name)
        needed = [a for a in near if not any(a in down[b] for b in near)]
        lines += [f"    {name} {'-.->' if edges[name, other] else '-->'} {other}" for other in needed]
    return "\n".join(lines)


def present() -> dict[str, str]:
    """The text of every module as it is now, by its path in the package."""
    paths = sorted((ROOT / SOURCE).rglob("*.py"))
    return {str(path.relative_to(ROOT / SOURCE)): path.read_text(encoding="utf-8") for path in paths}


def committed(commit: str) -> dict[str, str]:
    def git(*words: str) -> str:
        return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True).stdout

    paths = git("ls-tree", "-r", "--name-only", commit, SOURCE).splitlines()
    return {path[len(SOURCE) + 1 :]: git("show", f"{commit}:{path}") for path in paths if path.endswith(".py")}


def lines_of(files: dict[str, str]) -> Counter[str]:
    """Lines that are not empty, by package; the modules of `tdce` itself are one, the commands another."""
    counts: Counter[str] = Counter()
    for path, text in files.items():
        top = path.split("/")[0]
        alone = "commands" if top in COMMANDS else "modules of `tdce` itself"
        package = "`paper`" if top in PAPER else f"`{top}`" if "/" in path and top not in COMMANDS else alone
        counts[package] += sum(bool(line.strip()) for line in text.splitlines())
    return counts


def counted(before: Counter[str], after: Counter[str]) -> str:
    names = sorted({*before, *after})
    rows = [f"| {name} | {before[name]:,} | {after[name]:,} |" for name in names]
    core = [f"| all but `paper` | {before.total() - before['`paper`']:,} | {after.total() - after['`paper`']:,} |"]
    return "\n".join(["| package | before | after |", "|---|---|---|", *rows, *core])


def rounded(counts: Counter[str]) -> str:
    """To hundreds, so that not every edit changes the page."""
    rows = [f"| {name} | {max(round(counts[name], -2), 100):,} |" for name in sorted(counts)]
    return "\n".join(["| package | lines, about |", "|---|---|", *rows])


def _module(path: Path) -> str:
    parts = path.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imported(tree: ast.AST, known: Iterable[str], lazy: bool = False) -> Iterator[tuple[str, bool]]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            yield from ((name.name, lazy) for name in node.names if name.name in known)
        elif isinstance(node, ast.ImportFrom) and node.module and node.module in known:
            for name in node.names:
                whole = f"{node.module}.{name.name}"
                yield whole if whole in known else node.module, lazy
        else:
            yield from _imported(node, known, lazy or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


if __name__ == "__main__":
    main()
