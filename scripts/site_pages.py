"""The pages of the site: their place, their links, and the list of them for language models (llms.txt)."""

import ast
import importlib.util
import os
import re
import tomllib
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
SECTIONS = ("howto", "explanation", "reference")  # pages that list pages
GALLERIES = ("tutorial", "gallery", "pitfalls")  # folders of examples/, each a list of scripts that the build executes
ELSEWHERE = {  # files outside docs/ that are pages of the site as well
    "../README.md": "index.md",
    "../CHANGELOG.md": "changelog.md",
    "../CONTRIBUTING.md": "contributing.md",
    "../SECURITY.md": "security.md",
    "../results/tables.md": "tables.md",
}
FIRST = (  # the order of the gallery; what is not named here comes after
    "first_answers", "scikit_learn_pipeline", "xgboost_categories", "regression_target", "credit_limit_band",
    "several_outputs", "rules_and_roles", "causes", "robust_answers", "segments_and_burden",
    "evidence_and_replay", "a_million_rows", "on_ray", "on_spark",
    "algorithm_1", "your_own_method", "proxies", "leaks", "correlated_columns", "unfaithful_models",
)  # fmt: skip
NEEDS = {
    "gallery/on_ray": "ray",
    "gallery/on_spark": "pyspark",
}  # examples that are executed only where these are installed
VERSIONS = "TDCE_SITE_VERSIONS"  # the address of versions.json, where several versions are published side by side


class Page(NamedTuple):
    """A page, or an example, with what its first lines say."""

    name: str  # without its ending
    title: str
    summary: str


def version() -> str:
    return str(tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"])


def listed(section: str) -> list[str]:
    """The pages that a page of the site lists, in their order."""
    text = (DOCS / f"{section}.md").read_text(encoding="utf-8")
    trees = re.findall(r"^```\{toctree\}\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)
    return [line for tree in trees for line in tree.splitlines() if line and not line.startswith(":")]


def pages() -> dict[str, list[Page]]:
    """All pages and examples by their section, in the order of the site."""
    galleries = {
        name: [_example(path) for path in sorted((ROOT / "examples" / name).glob("*.py"), key=order)]
        for name in GALLERIES
    }
    return galleries | {section: [_page(name) for name in listed(section)] for section in SECTIONS}


def order(path: str | Path) -> tuple[int, str]:
    """The place of an example, by its file."""
    name = Path(path).stem
    return (FIRST.index(name) if name in FIRST else len(FIRST)), name


def executed() -> str:
    """A pattern of the files of the examples that can be executed here."""
    missing = [page.partition("/")[2] for page, module in NEEDS.items() if importlib.util.find_spec(module) is None]
    return rf"^(?!.*/(?:{'|'.join(missing) or '-'})\.py$).*\.py$"


def prepared(page: str, text: str) -> str:
    """A page as the site shows it: links to files that are pages lead to these, and bare names become titles."""
    taken = re.fullmatch(r"<!-- the page is (\S+) -->\n", text)
    if taken:
        path = (DOCS / taken[1]).resolve()
        text = _moved(path.read_text(encoding="utf-8"), path.parent)
    elif page.partition("/")[0] in GALLERIES:
        needed = NEEDS.get(page)
        if needed is None or importlib.util.find_spec(needed) is not None:
            return text
        return (
            f".. warning:: This example was not executed when the site was built: {needed} was not installed.\n\n{text}"
        )
    for path_there, name in ELSEWHERE.items():
        text = re.sub(
            rf"\]\({re.escape(path_there)}(#[^)]*)?\)", lambda found, name=name: f"]({name}{found[1] or ''})", text
        )
    text = re.sub(rf"\]\(\.\./examples/({'|'.join(GALLERIES)})\)", r"](\1/index.rst)", text)
    text = re.sub(rf"\]\(\.\./examples/({'|'.join(GALLERIES)})/(\w+)\.py\)", r"](\1/\2.rst)", text)
    return re.sub(r"\[(?:docs/)?(\w+\.md)\]\(\1\)", r"[](\1)", text)


def write_llms(folder: Path) -> None:
    """Write llms.txt: what tdce is, and each page with its address and its first sentence."""
    (folder / "llms.txt").write_text(llms(), encoding="utf-8")


def llms() -> str:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    parts = [
        f"# tdce {version()}",
        f"> {project['description']}",
        "Python library and command line. "
        "`tdce.Explainer(model=model).fit(table, label=…, favourable=…).explain(rows)` returns an `Answer` with one "
        'line per row and option. `Explainer(method="guided")` is Algorithm 1 of the paper “Tabular Diffusion '
        "Counterfactual Explanations”; the default, `search`, uses its diffusion model, and no gradient.",
    ]
    for section, found in pages().items():
        lines = (f"- [{page.title}]({page.name}.html): {page.summary}" for page in found)
        parts += [f"## {section.capitalize()}", "\n".join(lines)]
    return "\n\n".join(parts) + "\n"


def switcher() -> list[str]:
    return ["version-switcher"] if VERSIONS in os.environ else []


def switcher_options() -> dict[str, Any]:
    if VERSIONS not in os.environ:
        return {}
    return {"switcher": {"json_url": os.environ[VERSIONS], "version_match": version()}, "check_switcher": False}


def _page(name: str) -> Page:
    text = prepared(name, (DOCS / f"{name}.md").read_text(encoding="utf-8"))
    title, _, rest = text.lstrip().removeprefix("# ").partition("\n")
    rest = re.sub(r"```.*?```", "", rest, flags=re.DOTALL)
    rest = re.sub(r"^(?: {4}|#).*$", "", rest, flags=re.MULTILINE)  # neither code nor headings
    blocks = [block.strip() for block in re.split(r"\n\s*\n", rest)]
    prose = [block for block in blocks if re.match(r"[*`\[]{0,3}\w", block)] or [
        block.lstrip("- ") for block in blocks if block
    ]
    return Page(name, title, _first_sentence(prose[0]))


def _example(path: Path) -> Page:
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    title, _, rest = text.partition("\n")  # with a line of = below
    return Page(f"{path.parent.name}/{path.stem}", title, _first_sentence(rest.partition("\n")[2].strip()))


def _first_sentence(text: str) -> str:
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", " ".join(text.split("\n\n")[0].split()))
    return re.split(r"(?<=[a-z0-9)`*>][.?!]) (?=[A-Z`*])", plain)[0]


def _moved(text: str, folder: Path) -> str:
    """Links of a file as they are in docs/: relative ones lead from there."""

    def link(found: re.Match[str]) -> str:
        target = found[1]
        if re.match(r"\w+:|#", target):
            return found[0]
        path, mark, anchor = target.partition("#")
        return f"]({Path(os.path.relpath(folder / path, DOCS)).as_posix()}{mark}{anchor})"

    return re.sub(r"\]\(([^)\s]+)\)", link, text)
