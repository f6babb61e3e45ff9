"""The Python blocks of the README run as they stand."""

import re
from pathlib import Path

import pytest

README = Path(__file__).parent.parent / "README.md"


def test_the_blocks_of_the_readme_run_in_order(tmp_path, monkeypatch, capsys):
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), flags=re.DOTALL)
    assert len(blocks) == 2
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, str(README), "exec"), names)
    assert (tmp_path / "report.html").exists()
    assert (tmp_path / "german.tdce").exists()
    assert len(names["answer"].to_frame()) == 15
    assert names["schema"]["housing"].allowed == ("own", "rent")


@pytest.mark.parametrize("link", sorted(set(re.findall(r"\]\(([^)#]+)\)", README.read_text(encoding="utf-8")))))
def test_the_links_of_the_readme_lead_somewhere(link):
    assert (README.parent / link).exists()
