"""The tables of docs/ are those of results/: what a benchmark would write there is there."""

import importlib
import re
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TABLES = [
    ("ablation", "ablation", "method"),
    ("bands", "bands", "models"),
    ("claims", "claims", "claims"),
    ("closeness", "closeness", "method"),
    ("contradictions", "contradictions", "rules"),
    ("enumeration", "enumeration", "method"),
    ("guided_settings", "guided_settings", "paper"),
    ("monitor", "monitor", "monitor"),
    ("optimum", "optimum", "models"),
    ("peers", "peers", "models"),
    ("pooling", "pooling", "privacy"),
    ("reachable", "reachable", "method"),
    ("readings", "readings", "paper"),
    ("reasons", "reasons", "evidence"),
    ("recourse_bench", "recourse_bench", "models"),
    ("robustness", "robustness", "robustness"),
    ("safety", "safety", "safety"),
    ("scale", "scale", "scale"),
    ("segments", "segments", "segments"),
    ("slow_models", "slow_models", "models"),
    ("speed", "speed", "speed"),
    ("threads", "threads", "speed"),
    ("width", "width", "speed"),
]


@pytest.mark.parametrize(("benchmark", "results", "page"), TABLES)
def test_a_page_shows_what_was_measured(benchmark, results, page, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
    written = tmp_path / "page.md"
    written.write_text(text, encoding="utf-8")
    try:
        importlib.import_module(benchmark).write_docs(ROOT / "results" / f"{results}.csv", written)
    except importlib.import_module("tdce").InputError as missing:  # a table outside the package
        pytest.skip(str(missing))
    assert written.read_text(encoding="utf-8") == text


def test_a_page_says_with_which_editions_its_tables_were_measured(tmp_path, monkeypatch):
    """And nowhere else, so that a new edition or a new measurement cannot leave a note behind."""
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    results = importlib.import_module("results")
    log, noted = results.Log(ROOT / "results" / "steps.csv"), set()
    for page in results.PAGES:
        text, written = page.read_text(encoding="utf-8"), tmp_path / page.name
        written.write_text(text, encoding="utf-8")
        results.write_notes(log, written)
        results.write_printed(ROOT / "results" / "printed", written)
        assert written.read_text(encoding="utf-8") == text, f"{page.name}: python benchmarks/results.py --docs"
        plain = re.sub(r"(?s)<!-- measured: (\w+) -->.*?<!-- /measured: \1 -->", "", text)
        assert not re.search(r"(?i)edition \d+ of|of an earlier method|not measured again", plain), page.name
        noted |= set(re.findall(r"<!-- measured: (\w+) -->", text))
    assert {benchmark for benchmark, _, _ in TABLES} - {"claims"} <= noted  # claims.md has notes on each of its sources


def test_shares_on_the_simplex_are_those_of_figure_2():
    """In the text of two pages: at the corners A, B, C without guidance, and at C with guidance."""
    pd = importlib.import_module("pandas")
    end = pd.read_csv(ROOT / "results" / "figures" / "simplex.csv").query("t == 0")
    corner = end[["a", "b", "c"]].to_numpy().argmax(axis=1)
    free, guided = (
        [f"{100 * float((corner[end['guided'] == g] == k).mean()):.4g}" for k in range(3)]
        for g in sorted(end["guided"].unique())
    )
    figures, claims = ((ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8") for page in ("figures", "claims"))
    assert f"({', '.join(free)} %, within what 200 points allow)" in figures
    assert f"at C with {guided[2]} %" in figures
    assert f"in {guided[2]} % of the points, the unguided one in {free[2]} %" in claims


@pytest.mark.parametrize("page", ["claims", "figures", "robustness"])
def test_no_figure_of_a_measurement_stands_in_running_text(page):
    """Where it would outlive the measurement: of these pages, only settings and the theory's numbers are left."""
    text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8").split("## Data and baselines")[-1]
    text = re.sub(r"(?s)<!-- (\w[\w: ]*) -->.*?<!-- /\1 -->|`[^`]*`", "", text)
    settings = {"figures": {"0.1", "0.5", "0.9", "50.5", "21.5"}, "claims": {"2.27"}, "robustness": {"0.61", "0.90"}}
    assert set(re.findall(r"\b\d+\.\d+\b(?!\.)", text)) <= settings[page]


def test_a_note_names_what_has_changed_since(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    results = importlib.import_module("results")
    log = results.Log(tmp_path / "steps.csv")
    step = next(each for each in results.STEPS if each.name == "enumeration")
    full, half = results.Size(), results.Size(scale=0.5)
    log.add(step, full, 60.0)
    again = results.Log(tmp_path / "steps.csv")
    assert again.has(step, full)
    assert again.has(step, results.Size(seeds=1))  # it has no seeds
    assert not again.has(step, half)
    assert again.note("enumeration") == ""
    monkeypatch.setitem(results.EDITIONS, "search", results.EDITIONS["search"] + 1)
    assert not again.has(step, full)
    now = results.EDITIONS["search"]
    assert again.note("enumeration") == f"Measured with edition {now - 1} of the search; today's is {now}."
    again.add(step, half, 30.0)
    assert again.note("enumeration") == "The rows are 50% of those of a full run."
    minimal = next(each for each in results.STEPS if each.name == "minimal")
    again.add(minimal, results.Size(seeds=2), 30.0)
    assert again.note("minimal") == "Measured with 2 of the 3 seeds of a full run."
    assert again.has(minimal, results.Size(seeds=2))
    assert not again.has(minimal, full)


COUNTING = """
import sys, time, pathlib
file = pathlib.Path(sys.argv[1])
file.write_text((file.read_text() if file.exists() else "") + "x")
time.sleep(float(sys.argv[2]))
"""  # a benchmark that adds a letter each time it is started


def test_a_run_that_is_stopped_keeps_the_earlier_results_and_goes_on_where_it_was(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    results = importlib.import_module("results")
    file = tmp_path / "slow.csv"
    file.write_text("earlier", encoding="utf-8")

    def run(seconds: float | str, budget: float) -> tuple[object, list[str]]:
        words = ("-c", COUNTING, str(file), str(seconds))
        steps = [results.Step("slow", ("search",), ("slow.csv",), command=words),
                 results.Step("prints", (), command=("-c", "print(1)"))]  # fmt: skip
        monkeypatch.setattr(results, "STEPS", tuple(steps))
        run = results.Run(tmp_path, results.Size(), 2, time.time() + budget)
        return run, run.everything(steps)

    stopped, failed = run(seconds=60, budget=2)
    assert (file.read_text(encoding="utf-8"), failed) == ("earlier", [])
    assert set(stopped.done.lines) == {"prints"}
    assert (tmp_path / "printed" / "prints.txt").read_text(encoding="utf-8") == "1\n"
    finished, failed = run(seconds=0, budget=60)
    assert (file.read_text(encoding="utf-8"), failed) == ("xx", [])  # it went on from what it had
    assert float(finished.done.lines["slow"]["seconds"]) >= 2  # of both times
    run(seconds=0, budget=60)
    assert file.read_text(encoding="utf-8") == "xx"  # nothing to do
    monkeypatch.setitem(results.EDITIONS, "search", 99)
    run(seconds=0, budget=60)
    assert file.read_text(encoding="utf-8") == "x"  # of another edition: from nothing
    monkeypatch.setitem(results.EDITIONS, "search", 100)
    assert run(seconds="no number", budget=60)[1] == ["slow"]
    assert file.read_text(encoding="utf-8") == "x"  # what failed replaces nothing


def test_every_step_of_a_full_run_is_a_script_with_these_options(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    results = importlib.import_module("results")
    for step in results.STEPS:
        path = ROOT / step.line(results.Size(), 2)[1]
        if path.suffix == ".py":
            text = path.read_text(encoding="utf-8")
            for option, _ in step.sizes:
                assert f'"{option}"' in text, f"{step.name}: {option}"
    assert {benchmark for benchmark, _, _ in TABLES} <= {step.name for step in results.STEPS}
    assert results.STEPS[0].line(results.Size(0.1, seeds=3), 2)[1:] == [
        "-m", "tdce", "bench", "--workers", "2", "--seeds", "3", "--rows", "100",
    ]  # fmt: skip


def test_every_benchmark_that_writes_a_table_is_held_to_it():
    texts = {path.stem: path.read_text("utf-8") for path in (ROOT / "benchmarks").glob("*.py")}
    writers = {name for name, text in texts.items() if "def write_docs" in text}
    assert writers == {benchmark for benchmark, _, _ in TABLES}
    assert {name for name, text in texts.items() if '"--docs"' in text} == {*writers, "results"}  # so all are renewed


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
