"""docs/paper.md and the code name the same labels of the paper at the same functions."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCES = ROOT / "src"
PAGE = (ROOT / "docs" / "paper.md").read_text(encoding="utf-8")
TEX = ROOT.parent / "shared" / "paper" / "tdce.tex"
LABEL = re.compile(r"\b(?:(?:eqn|alg|fig|Thm):[A-Za-z][\w-]*|eq\.elbo)")
PLACE = re.compile(r"`([\w/]+\.py)(?:: ([\w.]+))?`")
SECTIONS = {"labels": "From the paper to the code", "functions": "From the code to the paper"}


def section(name: str) -> str:
    """The text below a heading."""
    return re.split(r"^## ", PAGE.split(f"## {SECTIONS[name]}\n")[1], flags=re.MULTILINE)[0]


def pairs(name: str) -> set[tuple[str, str]]:
    """A label and a place for each of a section's lines that have both."""
    lines = [line for line in section(name).splitlines() if line.startswith("|")]
    return {
        (label, place[0].strip("`"))
        for line in lines
        for label in re.findall(rf"`({LABEL.pattern})`", line)
        for place in re.finditer(PLACE, line)
    }


def path_of(place: str) -> Path:
    """The file of `methods/search.py: name` or of `tdce_reproduction/theory.py`."""
    file = place.split(": ")[0]
    return SOURCES / file if file.startswith("tdce_reproduction/") else SOURCES / "tdce" / file


def source_of(place: str) -> str:
    """The text of a function, method or class; of a file that is named alone, its docstring."""
    text = path_of(place).read_text(encoding="utf-8")
    node: ast.AST = ast.parse(text)
    if ": " not in place:
        return ast.get_docstring(node) or ""
    for name in place.split(": ")[1].split("."):
        named = [each for each in node.body if getattr(each, "name", None) == name]
        assert named, f"docs/paper.md names {place}, which does not exist"
        node = named[0]
    return "\n".join(text.splitlines()[node.lineno - 1 : node.end_lineno])


def tags() -> set[tuple[str, str]]:
    """Every label in the code, with the function or class around it; in a file's docstring, with the file."""
    found = set()
    for path in SOURCES.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        if not LABEL.search(text):
            continue
        tree = ast.parse(text)
        file = path.relative_to(SOURCES).as_posix().removeprefix("tdce/")
        docstring = tree.body[0].end_lineno
        for number, line in enumerate(text.splitlines(), 1):
            around = f"{file}: {name_at(tree, number)}" if number > docstring else file
            found |= {(label, around) for label in LABEL.findall(line)}
    return found


def name_at(tree: ast.Module, line: int) -> str:
    """The qualified name of the innermost function or class of a line."""
    around = [node for node in ast.walk(tree) if hasattr(node, "name") and hasattr(node, "body")]
    around = [node for node in around if node.lineno <= line <= node.end_lineno]
    return ".".join(node.name for node in sorted(around, key=lambda node: node.lineno))


def test_every_label_of_the_page_is_named_at_its_function():
    listed = pairs("labels")
    assert len(listed) > 20
    missing = [f"{label} is not named at {place}" for label, place in sorted(listed) if label not in source_of(place)]
    assert not missing


def test_every_label_in_the_code_is_on_the_page():
    """A file's docstring may name what one of its functions implements."""
    listed = pairs("labels")
    files = {(label, place.split(": ")[0]) for label, place in listed}
    assert sorted(tag for tag in tags() if tag not in listed and tag not in files) == []


def test_the_second_table_is_the_first_the_other_way_round():
    assert pairs("functions") == pairs("labels")


def test_every_place_on_the_page_exists():
    places = {match[0].strip("`") for match in re.finditer(PLACE, section("labels"))}
    assert len(places) > 40
    for place in places:
        assert path_of(place).is_file(), place
        source_of(place)


def test_every_reading_in_the_code_is_on_the_page():
    """PAPER[n] is the number of one of the ambiguous parts."""
    readings = {int(n) for n in re.findall(r"^(\d+)\. \*\*", PAGE, flags=re.MULTILINE)}
    named = {int(n) for path in SOURCES.rglob("*.py") for n in re.findall(r"PAPER\[(\d+)\]", path.read_text("utf-8"))}
    assert len(named) > 8
    assert named <= readings


@pytest.mark.skipif(not TEX.exists(), reason="the paper's source is not here: ../shared/paper/tdce.tex")
def test_every_label_of_the_page_is_one_of_the_paper():
    known = set(re.findall(r"\\label\{([^}]*)\}", TEX.read_text(encoding="utf-8")))
    assert {label for label, _ in pairs("labels")} <= known
