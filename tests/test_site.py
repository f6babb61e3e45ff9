"""The site: every page has its place, links lead somewhere, examples are whole; `make site` builds and executes it."""

import ast
import json
import re
from pathlib import Path

import publish_site
import pytest
import site_links
import site_pages

from tdce.cli import COMMANDS

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(path.stem for path in DOCS.glob("*.md"))
EXAMPLES = sorted((ROOT / "examples").glob("*/*.py"))


def test_every_page_has_one_place():
    """A new page is named in docs/howto.md, docs/explanation.md or docs/reference.md."""
    listed = [name for section in site_pages.SECTIONS for name in site_pages.listed(section)]
    assert sorted(listed) == sorted(set(PAGES) - {"index", *site_pages.SECTIONS})
    top = site_pages.listed("index")
    assert top == [*(f"{name}/index" for name in site_pages.GALLERIES), *site_pages.SECTIONS]


@pytest.mark.parametrize("page", PAGES)
def test_links_of_a_page_as_the_site_has_it_lead_somewhere(page):
    text = site_pages.prepared(page, (DOCS / f"{page}.md").read_text(encoding="utf-8"))
    text = re.sub(r"```.*?```|`[^`\n]*`", "", text, flags=re.DOTALL)
    assert re.match(r"# \S", text)
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        path, _, anchor = link.partition("#")
        if re.match(r"https?://", link) or not path:
            continue
        if path.partition("/")[0] in site_pages.GALLERIES:  # made when the site is built
            path = f"../examples/{path.removesuffix('/index.rst').replace('.rst', '.py')}"
        assert (DOCS / path).resolve().exists(), link
        if anchor and path.endswith(".md"):
            other = site_pages.prepared(Path(path).stem, (DOCS / path).read_text(encoding="utf-8"))
            assert anchor in [_slug(title) for title in re.findall(r"^#+ (.*)$", other, flags=re.MULTILINE)], link


def _slug(title: str) -> str:
    """The anchor of a heading, as GitHub and MyST make it."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def test_bare_names_become_titles_and_files_elsewhere_become_pages():
    text = "[docs/rules.md](rules.md), [the log](../CHANGELOG.md), [a](../results/tables.md#b)"
    assert site_pages.prepared("x", text) == "[](rules.md), [the log](changelog.md), [a](tables.md#b)"
    text = "[all](../examples/gallery), [one](../examples/gallery/causes.py), [none](../examples/notebook.ipynb)"
    assert site_pages.prepared("x", text) == (
        "[all](gallery/index.rst), [one](gallery/causes.rst), [none](../examples/notebook.ipynb)"
    )


def test_links_of_a_file_elsewhere_lead_from_docs():
    text = site_pages.prepared("changelog", "<!-- the page is ../CHANGELOG.md -->\n")
    assert text.startswith("# Changelog\n")
    assert "](docs/" not in text


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_has_a_title_a_sentence_and_valid_python(path):
    text = path.read_text(encoding="utf-8")
    title, line, blank, first = (ast.get_docstring(ast.parse(text)) or "").split("\n")[:4]
    assert line == "=" * len(title)
    assert blank == ""
    assert len(first) > 40
    for name in re.findall(r":doc:`(?:[^`<]*<)?/([\w/]+)>?`", text):
        assert name in PAGES or name.removesuffix("/index") in site_pages.GALLERIES, name


def test_the_order_of_the_gallery_names_every_example_but_the_tutorial():
    assert sorted(site_pages.FIRST) == sorted(path.stem for path in EXAMPLES if path.parent.name != "tutorial")
    assert all((ROOT / "examples" / f"{name}.py").is_file() for name in site_pages.NEEDS)


def test_examples_that_need_an_engine_are_executed_only_where_it_is(monkeypatch):
    monkeypatch.setattr(site_pages, "NEEDS", {"gallery/on_ray": "no_such_engine", "gallery/on_spark": "json"})
    pattern = re.compile(site_pages.executed())
    chosen = [path.stem for path in EXAMPLES if pattern.search(str(path))]
    assert "on_spark" in chosen
    assert {path.stem for path in EXAMPLES} - set(chosen) == {"on_ray"}
    assert site_pages.prepared("gallery/on_ray", "text").startswith(".. warning:: This example was not executed")
    assert site_pages.prepared("gallery/on_spark", "text") == "text"


def test_llms_txt_lists_every_page_with_a_sentence():
    text = site_pages.llms()
    names = re.findall(r"^- \[[^\]]+\]\(([\w/]+)\.html\): \S.{10,}$", text, flags=re.MULTILINE)
    examples = [f"{path.parent.name}/{path.stem}" for path in EXAMPLES]
    assert sorted(names) == sorted([*examples, *(set(PAGES) - {"index", *site_pages.SECTIONS})])


def test_readme_and_the_first_page_say_the_same():
    readme, index = ((path).read_text(encoding="utf-8") for path in (ROOT / "README.md", DOCS / "index.md"))
    for text in (readme, index):
        said = " ".join(text.split())
        assert "it does not take the classifier's gradient" in said
        assert '`Explainer(method="guided")`' in said
    assert len(readme.splitlines()) <= 60


def test_a_link_that_leads_nowhere_is_found(tmp_path):
    (tmp_path / "a.html").write_text(
        '<h1 id="top">A</h1><a href="b.html#x">b</a><a href="#top">a</a>', encoding="utf-8"
    )
    (tmp_path / "b.html").write_text(
        '<a href="c.html">c</a><script src="https://e.org/a.js"></script>', encoding="utf-8"
    )
    assert site_links.problems(tmp_path.resolve()) == [
        "a.html: b.html#x: there is no such anchor",
        "b.html: c.html: there is no such file",
        "b.html: https://e.org/a.js: it is fetched from another place",
    ]


def test_a_folder_of_the_machine_that_built_the_site_is_found(tmp_path):
    """As in a warning that an example printed."""
    (tmp_path / "a.html").write_text(f"<pre>{site_links.ROOT}/.venv/lib/x.py:7: Warning</pre>", encoding="utf-8")
    assert site_links.problems(tmp_path.resolve()) == [
        f"a.html: {site_links.ROOT}: a folder of this machine is named in the text"
    ]


def test_versions_stand_side_by_side_and_the_newest_is_first(tmp_path):
    site, pages = tmp_path / "site", tmp_path / "pages"
    (site / ".doctrees").mkdir(parents=True)
    (site / "index.html").write_text("a page", encoding="utf-8")
    pages.mkdir()
    for name in ("0.9.0", "0.10.0", "0.2.0"):
        publish_site.put(site, pages, name)
    listed = json.loads((pages / "versions.json").read_text(encoding="utf-8"))
    assert [entry["version"] for entry in listed] == ["0.10.0", "0.9.0", "0.2.0"]
    assert [entry["preferred"] for entry in listed] == [True, False, False]
    assert "url=0.10.0/" in (pages / "index.html").read_text(encoding="utf-8")
    assert not (pages / "0.2.0" / ".doctrees").exists()


def test_the_page_of_the_command_line_has_every_command():
    page = (DOCS / "command_line.md").read_text(encoding="utf-8")
    shown = {line.split()[1] for line in page.splitlines() if line.startswith("tdce ")}
    assert shown == {command.__name__ for command in COMMANDS}
