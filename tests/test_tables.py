"""The tables of docs/ are those of results/: what a benchmark would write there is there."""

import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TABLES = [
    ("ablation", "ablation", "method"),
    ("bands", "bands", "models"),
    ("closeness", "closeness", "method"),
    ("contradictions", "contradictions", "rules"),
    ("enumeration", "enumeration", "method"),
    ("reasons", "reasons", "evidence"),
    ("safety", "safety", "safety"),
    ("segments", "segments", "segments"),
    ("threads", "threads", "speed"),
]


@pytest.mark.parametrize(("benchmark", "results", "page"), TABLES)
def test_a_page_shows_what_was_measured(benchmark, results, page, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
    written = tmp_path / "page.md"
    written.write_text(text, encoding="utf-8")
    importlib.import_module(benchmark).write_docs(ROOT / "results" / f"{results}.csv", written)
    assert written.read_text(encoding="utf-8") == text


def test_every_benchmark_that_writes_a_table_is_held_to_it():
    writers = {path.stem for path in (ROOT / "benchmarks").glob("*.py") if "def write_docs" in path.read_text("utf-8")}
    assert writers == {benchmark for benchmark, _, _ in TABLES}


def test_the_default_position_is_that_of_the_rule(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    pd, closeness = (importlib.import_module(name) for name in ("pandas", "closeness"))
    measured = pd.read_csv(ROOT / "results" / "closeness.csv", dtype={"asked": str})
    assert closeness.choose(measured) == importlib.import_module("tdce.methods").DiffusionSearch().closeness
