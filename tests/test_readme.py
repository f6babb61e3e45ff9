"""The Python of the README and of some pages runs as they stand; the links of all pages lead somewhere."""

import re
from pathlib import Path

import pytest
from fits import small

import tdce

README = Path(__file__).parent.parent / "README.md"


def run(page: Path, blocks: int, folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    """The names that a page's Python blocks leave, one after another, with small networks."""
    found = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    assert len(found) == blocks
    monkeypatch.chdir(folder)
    small(monkeypatch)
    names: dict[str, object] = {}
    for block in found:
        exec(compile(block, str(page), "exec"), names)
    return names


def test_the_blocks_of_the_readme_run_in_order(tmp_path, monkeypatch, capsys):
    names = run(README, 1, tmp_path, monkeypatch)
    assert (tmp_path / "report.html").exists()
    assert (tmp_path / "german.tdce").exists()
    assert (names["answer"].to_frame()["status"] == "valid").all()


def test_the_example_of_what_may_change_runs(tmp_path, monkeypatch):
    names = run(README.parent / "docs" / "what_may_change.md", 1, tmp_path, monkeypatch)
    assert names["schema"]["housing"].allowed == ("own", "rent")


def test_the_examples_of_the_rules_run(tmp_path, monkeypatch, capsys):
    names = run(README.parent / "docs" / "rules.md", 6, tmp_path, monkeypatch)
    assert capsys.readouterr().out.startswith("Education determines education_num (48,842 rows)\n")
    frame, before = names["answer"].to_frame(), names["refused"]
    touched = (frame[["credit_amount", "duration_months"]] != before[["credit_amount", "duration_months"]]).any(axis=1)
    assert (~touched | (frame["credit_amount"] <= 400 * frame["duration_months"])).all()


def test_the_examples_of_the_words_run(tmp_path, monkeypatch, capsys):
    names = run(README.parent / "docs" / "language.md", 2, tmp_path, monkeypatch)
    german = names["answer"].sentences("de")
    assert all(text.startswith("Die Entscheidung ") for text in german)
    assert 'lang="de"' in (tmp_path / "bericht.html").read_text(encoding="utf-8")


def test_the_examples_of_the_models_run(tmp_path, monkeypatch, capsys):
    pytest.importorskip("sklearn")
    names = run(README.parent / "docs" / "models.md", 2, tmp_path, monkeypatch)
    assert "calls" in capsys.readouterr().out
    assert names["both"].fitted.outputs[1].name == "score"


def test_the_example_of_robust_answers_runs(tmp_path, monkeypatch, capsys):
    names = run(README.parent / "docs" / "robustness.md", 1, tmp_path, monkeypatch)
    assert names["answer"].to_frame()["note"].str.contains("of 10 retrained models accept it as well").any()
    assert 0 <= names["held"] <= 1


def test_the_example_of_other_frames_runs(tmp_path, monkeypatch):
    names = run(README.parent / "docs" / "dataframes.md", 1, tmp_path, monkeypatch)
    assert names["answer"].counts() == {"valid": 3}


def test_the_example_of_monitoring_runs(tmp_path, monkeypatch, capsys):
    run(README.parent / "docs" / "monitor.md", 1, tmp_path, monkeypatch)
    assert "age (middle): around" in capsys.readouterr().out
    assert (tmp_path / "monitor.html").exists()


def test_every_rule_that_is_shown_can_be_given():
    page = (README.parent / "docs" / "rules.md").read_text(encoding="utf-8")
    shown = re.findall(r"^\| `([^`]+)` \|", page.partition("## Rules, given")[2], flags=re.MULTILINE)
    assert len(shown) == 10
    tdce.load("german").schema.with_rules(*shown)


PAGES = [README, README.parent / "CONTRIBUTING.md", *sorted((README.parent / "docs").glob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_leads_somewhere(page):
    links = re.findall(r"\]\(([^)#\s]+)\)", page.read_text(encoding="utf-8"))
    for link in links:
        assert link.startswith("https://") or (page.parent / link).exists(), link
