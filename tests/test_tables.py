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
    ("guided_settings", "guided_settings", "paper"),
    ("monitor", "monitor", "monitor"),
    ("optimum", "optimum", "models"),
    ("reachable", "reachable", "method"),
    ("readings", "readings", "paper"),
    ("reasons", "reasons", "evidence"),
    ("recourse_bench", "recourse_bench", "models"),
    ("safety", "safety", "safety"),
    ("segments", "segments", "segments"),
    ("slow_models", "slow_models", "models"),
    ("speed", "speed", "speed"),
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


def test_the_settings_of_algorithm_1_are_those_of_the_rule(monkeypatch):
    """One for all data sets, the default of `Guided`, and one for each."""
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    settings = importlib.import_module("guided_settings")
    chosen = settings.chosen(settings.Measurements(ROOT / "results" / "guided_settings.csv", 0, ROOT))
    benchmark = importlib.import_module("tdce_reproduction.benchmark.settings")
    assert chosen["all"].method() == importlib.import_module("tdce.methods").Guided()
    for data in benchmark.PAPER_DATA:
        assert chosen[data].method() == benchmark.tuned_method("guided_tuned", data)


def test_the_penalty_of_a_setting_is_zero_where_every_goal_is_met(monkeypatch):
    """By hand on LCD: the paper has JS 0.01, IM2 0.05, diversity 0.73, instability 0.05 and L2 0.59."""
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    penalty = importlib.import_module("guided_settings").penalty
    met = {"validity": 0.95, "js": 0.02, "im2": 0.1, "diversity": 0.365, "instability": 0.05, "l2_per_feature": 0.59}
    assert penalty(met, "lcd") == pytest.approx(0)
    for name, value, cost in (("validity", 0.9, 1), ("js", 0.04, 1), ("im2", 0.4, 2), ("diversity", 0.73 / 8, 2),
                              ("instability", 0.1, 0.1), ("l2_per_feature", 0.295, -0.1), ("js", 0.001, 0),
                              ("validity", 1.0, 0)):  # fmt: skip
        assert penalty(met | {name: value}, "lcd") == pytest.approx(cost)
    assert penalty(met | {"validity": 0}, "lcd") > 100
