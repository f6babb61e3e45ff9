"""The Python blocks of the README run as they stand; the links of all pages lead somewhere."""

import re
from pathlib import Path

import pytest
from fits import small

README = Path(__file__).parent.parent / "README.md"


def test_the_blocks_of_the_readme_run_in_order(tmp_path, monkeypatch, capsys):
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), flags=re.DOTALL)
    assert len(blocks) == 2
    monkeypatch.chdir(tmp_path)
    small(monkeypatch)
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, str(README), "exec"), names)
    assert (tmp_path / "report.html").exists()
    assert (tmp_path / "german.tdce").exists()
    assert len(names["answer"].to_frame()) == 15
    assert names["schema"]["housing"].allowed == ("own", "rent")


PAGES = [README, README.parent / "CONTRIBUTING.md", *sorted((README.parent / "docs").glob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_leads_somewhere(page):
    links = re.findall(r"\]\(([^)#\s]+)\)", page.read_text(encoding="utf-8"))
    for link in links:
        assert link.startswith("https://") or (page.parent / link).exists(), link
