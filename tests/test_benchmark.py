"""The benchmark: reproducible, resumable, and tables that say what the rows say."""

import shutil
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import lending
import numpy as np
import pandas as pd
import pytest

import tdce
from tdce import InputError
from tdce._core.progress import Progress
from tdce.explainer.evaluation import PAPER, MetricReference
from tdce.explainer.explainer import Explainer
from tdce.methods.algorithm1 import Guided
from tdce.methods.baselines.wachter import Wachter
from tdce.methods.guided import GuidedSearch
from tdce.methods.refine import Refined
from tdce.methods.registry import METHODS
from tdce.methods.search import DiffusionSearch
from tdce.metrics import MEANING
from tdce.models.oracle import Oracle
from tdce_reproduction.benchmark.cell import Bench, Cell, Measurement
from tdce_reproduction.benchmark.contests import ORDER, Contest, Figure, contests
from tdce_reproduction.benchmark.fingerprint import cell_fingerprint
from tdce_reproduction.benchmark.price import PRICE, verdicts
from tdce_reproduction.benchmark.run import BenchmarkSettings, run, tables
from tdce_reproduction.benchmark.settings import (
    ANY_YES_VARIANTS,
    AS_PUBLISHED,
    BASELINES,
    DATA,
    PAPER_DATA,
    POSITIONS,
    PRESETS,
    REFINED_METHODS,
    SEARCH_VARIANTS,
    TUNED_SETTINGS,
    tuned_method,
    wanted_safety,
)
from tdce_reproduction.benchmark.summary import markdown, paper_figures


def tidy(*rows: tuple[str, str, str, int, str, float]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["data", "method", "masked", "seed", "metric", "value"])


OF_HELD_OUT_ROWS = ("held_out_distance", "coherence", "two_sample", "lof_outliers", "low_density")
RUNNING = import_module("tdce_reproduction.benchmark.run")  # the package has its function under this name


def small(bench: Bench) -> Explainer:
    """In place of the default one, whose training takes a minute."""
    return Explainer(hidden=16, steps=20, seed=bench.seed, keep_rows=True, progress="silent")


def in_this_process(work, jobs, workers) -> Iterator[Measurement]:
    """In place of processes, which would import everything again (tests/test_cli.py has them)."""
    for job in jobs:
        yield from work(*job)


def measured(out: Path) -> pd.DataFrame:
    """The whole benchmark of one method on a few rows, with the small explainer."""
    settings = BenchmarkSettings(("german",), ("guided",), ("no", "yes"), seeds=1, rows=20, out=out, workers=1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Bench, "explainer", property(small))
        patch.setattr(RUNNING, "stream", in_this_process)
        patch.setattr(RUNNING, "TIMED_ROWS", 16)
        return run(settings, Progress("silent"))


@pytest.fixture(scope="module")
def results(tmp_path_factory) -> tuple[Path, pd.DataFrame]:
    out = tmp_path_factory.mktemp("results")
    return out, measured(out)


def test_every_metric_of_every_cell_is_there(results):
    out, rows = results
    found = rows[(rows["masked"] == "no") & (rows["method"] == "guided")].set_index("metric")["value"]
    assert set(PAPER) <= set(found.index)
    assert {"l2_common", "seconds_per_100", "sparsity", "realism", "copies", "gower", "coherence"} <= set(found.index)
    assert np.isfinite(rows["value"]).all()
    assert found["violations"] == 0
    assert 0 <= found["validity"] <= 1
    pd.testing.assert_frame_equal(pd.read_csv(out / "benchmark.csv"), rows)
    assert "| German | guided |" in (out / "tables.md").read_text(encoding="utf-8")
    assert '"commit"' in (out / "environment.json").read_text(encoding="utf-8")


def test_a_cell_run_again_from_nothing_gives_the_same_values(results, tmp_path, monkeypatch):
    _, rows = results
    monkeypatch.setattr(Bench, "explainer", property(small))
    again = Bench("german", 0, 20, tmp_path).measure(Cell("german", "guided", "yes", 0)).metrics
    first = rows[(rows["masked"] == "yes")].set_index("metric")["value"]
    assert {k: v for k, v in again.items() if k != "seconds"} == {k: first[k] for k in again if k != "seconds"}
    assert {*PAPER, "sparsity", "realism", "rows"} <= set(again)


def test_a_fitted_explainer_that_cannot_be_loaded_is_made_anew(tmp_path, monkeypatch):
    tiny = property(lambda bench: Explainer(hidden=8, steps=5, seed=bench.seed, keep_rows=True, progress="silent"))
    monkeypatch.setattr(Bench, "explainer", tiny)
    fitted = Bench("german", 0, 20, tmp_path).fitted
    (path,) = tmp_path.glob("*.tdce")
    good = path.read_bytes()
    path.write_bytes(good[:-1])
    again = Bench("german", 0, 20, tmp_path).fitted
    assert "seconds" in again.report  # it was fitted, not loaded
    assert np.array_equal(again.raw, fitted.raw, equal_nan=True)
    assert path.read_bytes() == good
    assert "seconds" not in Bench("german", 0, 20, tmp_path).fitted.report


def test_what_is_done_is_not_run_again_and_what_is_missing_is(results, tmp_path):
    """One cell is marked, of the other the validity is lost: the first stays as it is, the second is made again."""
    out, rows = results
    copied = tmp_path / "results"
    shutil.copytree(out, copied)
    kept, lost = rows["masked"] == "no", rows["masked"] == "yes"
    marked = rows.assign(value=rows["value"].where(~kept, rows["value"] + 100))
    gone = lost & (rows["metric"] == "validity")
    marked[~gone].to_csv(copied / "benchmark.csv", index=False)
    again = measured(copied).set_index(list(rows.columns[:-1]))["value"]
    before = marked.set_index(list(rows.columns[:-1]))["value"]
    others = before.index.get_level_values("metric").isin(["seconds", "l2_common", "common_rows"])  # of several cells
    pd.testing.assert_series_equal(again[before.index][~others], before[~others], check_exact=True)
    assert set(again.index) == set(before.index)
    new = again.xs("seconds", level="metric").xs("yes", level="masked")
    assert (new != before.xs("seconds", level="metric").xs("yes", level="masked")).all()  # measured, not kept


def test_wrong_names_show_before_any_work(tmp_path):
    for data, method, word in [("mars", "search", "mars"), ("german", "magic", "no method 'magic'")]:
        with pytest.raises(InputError, match=word):
            run(BenchmarkSettings((data,), (method,), out=tmp_path / "none"), Progress("silent"))
    assert not (tmp_path / "none").exists()


# ---- what was measured otherwise does not count


def quick(monkeypatch) -> list[Cell]:
    """Cells whose validity is the number of rows asked for, made in no time; returns the cells as they are measured."""
    made: list[Cell] = []

    def at_once(work, jobs, workers):
        for _, _, rows, cells, _ in jobs:
            for cell in cells:
                made.append(cell)
                yield Measurement(cell, {"validity": float(rows), "l2": 1.0}, np.ones(rows), np.ones(rows))

    monkeypatch.setattr(RUNNING, "stream", at_once)
    monkeypatch.setattr(Bench, "seconds", lambda self, method, rows: made.append("time") or float(self.rows))
    monkeypatch.setattr(RUNNING, "matrix_product_seconds", lambda bench, rows: 1.0)
    return made


def settings(out: Path, **others) -> BenchmarkSettings:
    return BenchmarkSettings(**{"data": ("german",), "methods": ("wachter",), "masked": ("no",), "seeds": 1, "rows": 20,
                      "out": out, "workers": 1} | others)  # fmt: skip


@pytest.mark.parametrize("what", ["rows", "settings", "edition", "explainer", "fit", "metrics", "preset", "nothing"])
def test_a_cell_is_measured_again_where_anything_that_it_depends_on_has_changed(what, tmp_path, monkeypatch, capsys):
    made = quick(monkeypatch)
    run(settings(tmp_path), Progress("silent"))
    assert made == [Cell("german", "wachter", "no", 0), "time"]
    made.clear()
    if what == "settings":
        monkeypatch.setitem(TUNED_SETTINGS["wachter"], "german", {"steps": 7})
    elif what == "edition":
        monkeypatch.setattr(Wachter, "edition", 2)
    elif what == "explainer":
        monkeypatch.setattr(Bench, "explainer", property(lambda self: tdce.Explainer(steps=7, seed=self.seed)))
    elif what == "fit":
        monkeypatch.setattr("tdce.explainer.fitting.EDITION", 99)
    elif what == "metrics":
        monkeypatch.setattr("tdce.explainer.evaluation.EDITION", 99)
    elif what == "preset":
        monkeypatch.setitem(PRESETS, "german", "paper")
        monkeypatch.setattr(Bench, "data", None)
    rows = run(settings(tmp_path, rows=30 if what == "rows" else 20), Progress("lines"))
    said = capsys.readouterr().err.splitlines()[0]
    if what == "nothing":
        assert made == []
        assert "again" not in said
    else:
        assert made == [Cell("german", "wachter", "no", 0), "time"]
        assert said == ("1 of 1 cells are measured again: rows, settings or editions differ in 1 and are "
                        "unknown in 0")  # fmt: skip
    found = rows[rows["method"] == "wachter"].set_index("metric")["value"]
    assert found["validity"] == (30 if what == "rows" else 20)
    assert list(pd.read_csv(tmp_path / "benchmark.csv")) == ["data", "method", "masked", "seed", "metric", "value"]


def test_cells_of_which_nothing_is_known_are_measured_again_and_others_are_named_and_left(
    tmp_path, monkeypatch, capsys
):
    made = quick(monkeypatch)
    old = [("german", m, "no", 0, metric, 0.5) for m in ("wachter", "face") for metric in ("validity", "im1", "l2")]
    tidy(*old).to_csv(tmp_path / "benchmark.csv", index=False)
    rows = run(settings(tmp_path), Progress("lines"))
    assert made == [Cell("german", "wachter", "no", 0), "time"]
    said = capsys.readouterr().err
    tally = "rows, settings or editions differ in 0 and are unknown in 1"
    assert said.splitlines()[:2] == [
        f"1 of 2 cells are measured again: {tally}",
        f"1 of 2 cells are stale and left unchanged: {tally}",
    ]
    left, new = (rows[rows["method"] == m].set_index("metric")["value"].to_dict() for m in ("face", "wachter"))
    assert left == {"im1": 0.5, "l2": 0.5, "validity": 0.5}  # other rows are not compared: no l2_common
    assert {k: new[k] for k in ("validity", "l2", "l2_common", "common_rows")} == {
        "validity": 20, "l2": 1, "l2_common": 1, "common_rows": 20,
    }  # fmt: skip
    assert "im1" not in new  # of the old cell not even a metric stays that the new one does not have


def test_a_fitted_explainer_of_other_settings_is_not_used_again(tmp_path, monkeypatch):
    fitted = []

    def fit(explainer, *_, **__):
        fitted.append(explainer.steps)
        explainer.fitted_ = None
        return explainer

    monkeypatch.setattr(tdce.Explainer, "fit", fit)
    monkeypatch.setattr(tdce.Explainer, "save", lambda self, path: path.touch())
    monkeypatch.setattr(tdce.Explainer, "load", lambda path, progress: tdce.Explainer().fit())
    small = property(lambda self: tdce.Explainer(steps=7, seed=self.seed))
    _ = Bench("german", 0, 20, tmp_path).fitted
    with monkeypatch.context() as patch:
        patch.setattr(Bench, "explainer", small)
        _ = Bench("german", 0, 20, tmp_path).fitted
    monkeypatch.setattr("tdce.explainer.fitting.EDITION", 99)
    _ = Bench("german", 0, 20, tmp_path).fitted
    assert fitted == [1600, 7, 1600]
    assert len(list(tmp_path.iterdir())) == 3


HEAD = "data,method,masked,seed,metric,value\n"


@pytest.mark.parametrize(
    ("name", "content", "word"),
    [
        ("benchmark.csv", "data,method,seed\ngerman,face,0\n", "has the columns data, method, seed, not data, method"),
        ("benchmark.csv", HEAD + "german,face,no,0,l2,much\n", "much"),
        ("benchmark.csv", HEAD + "german,face,no,zero,l2,1\n", "zero"),
        ("benchmark.csv", HEAD + "german,face,no,0,l2,1\ngerman,fa", "line 3 has 2 cells, but the header has 6"),
        ("benchmark.csv", HEAD + "german,face,no,0,l2,0.1", "the last line is cut off"),
        ("benchmark.csv", b"\x00\xff\xfe\x89PNG", "cannot be read as csv"),
        ("benchmark.csv", "", "benchmark.csv"),
        ("cells.csv", "what,ever\n1,2\n", "has the columns what, ever"),
    ],
)
def test_a_damaged_file_is_named_with_the_way_out_and_never_overwritten(tmp_path, monkeypatch, name, content, word):
    made, path = quick(monkeypatch), tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    before = path.read_bytes()
    with pytest.raises(InputError, match=word) as error:
        run(settings(tmp_path), Progress("silent"))
    assert str(path) in str(error.value)
    assert str(error.value).endswith("it was not touched: correct it, move it away, or name another folder")
    assert made == []
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("wrong", "word"),
    [
        ({"data": ()}, "name at least one data set; known: .*adult"),
        ({"methods": ()}, "name at least one method; known: search"),
        ({"data": ("mars",)}, "there is no data set 'mars'; known: .*adult"),
        ({"methods": ("magic",)}, "there is no method 'magic'; known: search"),
        ({"masked": ("maybe",)}, "there is no mask 'maybe'; known: no, yes"),
        ({"seeds": 0}, "seeds is 0; it must be a whole number, at least 1"),
        ({"rows": -1}, "rows is -1; it must be"),
        ({"workers": 1.5}, r"workers is 1\.5; it must be"),
    ],
)
def test_a_setting_that_makes_no_sense_is_named(wrong, word):
    with pytest.raises(InputError, match=word):
        BenchmarkSettings(**wrong)


def test_the_letter_of_algorithm_1_is_a_cell_like_any_other(results, tmp_path, monkeypatch):
    """By its own settings, beside the paper's figures, and with a fingerprint of its own."""
    monkeypatch.setattr(Bench, "explainer", property(small))
    monkeypatch.setitem(TUNED_SETTINGS, "guided_literal", {"german": {"steps": 20}})
    bench = Bench("german", 0, 20, results[0] / "fitted")
    found = bench.measure(Cell("german", "guided_literal", "no", 0)).metrics
    assert set(PAPER) <= set(found)
    text = markdown(tidy(*[("lcd", "guided_literal", "no", 0, metric, value) for metric, value in found.items()]))
    assert "| LCD | guided_literal |" in text
    assert "<small>0.59</small>" in text  # the paper's L2 of its own method
    literal, guided = (cell_fingerprint("german", name, 20, bench.explainer) for name in ("guided_literal", "guided"))
    assert literal != guided


def test_every_method_of_the_registry_has_an_edition():
    for kind in METHODS.values():
        assert kind.edition >= 1


def test_chosen_settings_are_accepted_by_their_methods():
    for method, by_data in TUNED_SETTINGS.items():
        for data in by_data:
            tuned_method(method, data)


def test_baselines_have_the_settings_that_their_tuning_chose():
    printed = (Path(__file__).parents[1] / "results" / "printed" / "tune.txt").read_text(encoding="utf-8")
    chosen = [line.split(" | ") for line in printed.splitlines() if line.endswith("| chosen |")]
    assert len(chosen) == len(PAPER_DATA) * 6
    for data, method, setting, *_ in chosen:
        known = TUNED_SETTINGS[method].get(data.removeprefix("| "), {})
        assert setting == (", ".join(f"{name}={value}" for name, value in known.items()) or "defaults")


def test_the_tables_mark_the_best_and_the_second_and_count_what_is_lost():
    rows = tidy(
        *[("lcd", m, "no", s, "l2", v + d) for m, v in (("wachter", 1.0), ("face", 3.0), ("search", 2.0))
          for s, d in ((0, -0.1), (1, 0.1))],
        *[("lcd", m, "no", s, "validity", v) for s in (0, 1)
          for m, v in (("wachter", 0.95), ("face", 0.97), ("search", 1.0))],
    )  # fmt: skip
    text = markdown(rows)
    assert "**1.00** ± 0.14 <small>0.34</small>" in text  # the paper's Wachter has 0.34 on LCD
    assert "<u>2.00</u> ± 0.14 <small>0.59</small>" in text
    assert "3.00 ± 0.14" in text
    assert (
        "`search` is first in 1 of the paper's 2 cells, within one standard deviation of the first in 0 more, and last "
        "in 0.\n"
    ) in text
    assert "- LCD: lost l2 to wachter (2.0 against 1.0)." in text
    (contest,) = contests(rows, "lcd", "no", ["validity"])
    assert contest.ranking() == ["search", "face", "wachter"]


@pytest.mark.parametrize(
    ("metric", "own", "best", "standing"),
    [
        ("l2", (1.0, 0.0), (1.5, 0.1), "first"),
        ("l2", (1.5, 0.0), (1.5, 0.0), "first"),  # shared
        ("l2", (1.5, 0.1), (1.0, 0.5), "within"),  # by the first's deviation
        ("l2", (1.5, 0.5), (1.0, 0.1), "within"),  # or by its own
        ("l2", (1.5, 0.4), (1.0, 0.4), "lost"),
        ("diversity", (1.0, 0.4), (1.5, 0.4), "lost"),
        ("diversity", (1.5, 0.0), (1.0, 0.0), "first"),
    ],
)
def test_a_column_is_first_within_one_deviation_of_the_first_or_lost(metric, own, best, standing):
    assert Contest(metric, {"search": Figure(*own), "face": Figure(*best)}).standing("search") == standing


def test_the_deviation_is_that_of_a_sample_and_nothing_with_one_seed():
    rows = tidy(*[("lcd", "face", "no", s, "l2", v) for s, v in enumerate((1.0, 2.0, 6.0))],
                ("lcd", "clue", "no", 0, "l2", 4.0))  # fmt: skip
    (contest,) = contests(rows, "lcd", "no", ["l2"])
    assert contest.figures["face"].mean == pytest.approx(3)
    assert contest.figures["face"].deviation == pytest.approx(np.sqrt((4 + 1 + 9) / 2))  # n - 1 = 2
    assert contest.figures["clue"] == Figure(4.0, 0.0)


def test_who_makes_few_rows_valid_has_no_rank_in_what_that_makes_small():
    values = {"wachter": (0.94, 1.0), "face": (0.95, 3.0), "search": (1.0, 2.0)}
    rows = tidy(*[("lcd", m, "no", 0, metric, v) for m, (validity, other) in values.items()
                  for metric, v in (("validity", validity), ("l2", other), ("im1", other), ("sparsity", other),
                                    ("gower", other), ("instability", other))])  # fmt: skip
    near, far = ["l2", "sparsity", "gower", "instability"], ["im1"]
    for contest in contests(rows, "lcd", "no", near):
        assert contest.ranking() == ["search", "face", "wachter"]
        assert [contest.standing(m) for m in contest.ranking()] == ["first", "lost", "lost"]
    (contest,) = contests(rows, "lcd", "no", far)
    assert contest.ranking() == ["wachter", "search", "face"]
    text = markdown(rows)
    lines = [line for line in text.splitlines() if line.startswith("| LCD | wachter |")]
    assert "| 1.00† ± 0.00 <small>0.34</small> |" in lines[0]
    assert "**1.00** ± 0.00 <small>1.33</small>" in lines[0]  # im1
    assert lines[1].count("1.000† ± 0.000") == 2  # sparsity and gower
    assert "† A method whose validity is below 0.95 is not ranked in gower, instability, l2, sparsity" in text


def test_the_best_two_sample_test_is_at_a_half():
    contest = Contest("two_sample", {"a": Figure(0.4, 0), "b": Figure(0.55, 0), "c": Figure(0.7, 0)})
    assert contest.ranking() == ["b", "a", "c"]


# ---- price for price


def scored(data: str, method: str, masked: str = "no", **others: float) -> list[tuple[str, str, str, int, str, float]]:
    """Two seeds of every metric: all 1, or as said; the deviation of a metric is the square root of 2 times a tenth."""
    values = dict.fromkeys(PRICE, 1.0) | others
    return [(data, method, masked, s, m, v + d) for m, v in values.items() for s, d in ((0, -0.1), (1, 0.1))]


def only(rows: pd.DataFrame) -> tuple[tuple[str, ...], tuple[str, ...]]:
    (found,) = verdicts(rows)
    return found.positions, found.losses


def test_every_position_at_which_ours_is_no_worse_in_any_of_the_four_is_found():
    rows = tidy(
        *scored("lcd", "wachter"), *scored("lcd", "search@0", gower=2), *scored("lcd", "search@0.5"),
        *scored("lcd", "search@0.75", sparsity=0.5), *scored("lcd", "search@1", validity=0.5),
        *scored("lcd", "search"), *scored("lcd", "unchanged"),
    )  # fmt: skip
    assert [each.method for each in verdicts(rows)] == ["wachter"]
    assert only(rows) == (("search@0.5", "search@0.75"), ())
    text = markdown(rows)
    assert "| The paper's baselines as published | **1 of 1** |" in text
    assert "| wachter | **0.5** (2) |" in text
    assert text.index("## Price for price") < text.index("## Without a mask")


def test_where_no_position_is_as_good_that_with_the_fewest_losses_is_named():
    """Position 0 loses two of the four, position 1 only one."""
    rows = tidy(*scored("lcd", "nice"), *scored("lcd", "search@0", gower=2, sparsity=2),
                *scored("lcd", "search@1", held_out_distance=2))  # fmt: skip
    assert only(rows) == (("search@1",), ("held_out_distance",))
    assert "| NICE | **0 of 1** |" in markdown(rows)
    assert "| nice | 1: held_out_distance |" in markdown(rows)


@pytest.mark.parametrize(
    ("metric", "value", "lost"),
    [("gower", 1.14, False), ("gower", 1.15, True), ("validity", 0.86, False), ("validity", 0.85, True)],
)
def test_a_loss_is_more_than_the_baselines_own_deviation(metric, value, lost):
    """Two seeds at 0.9 and 1.1: mean 1, deviation 0.1 times the square root of 2, 0.141."""
    rows = tidy(*scored("lcd", "face"), *scored("lcd", "search@0.3", **{metric: value}))
    assert only(rows) == (("search@0.3",), (metric,) if lost else ())


def test_ours_loses_where_it_was_not_measured_and_a_baseline_where_it_made_no_row_valid():
    ours, theirs = tidy(*scored("gmc", "search@1")), tidy(*scored("gmc", "clue", validity=0))
    without = pd.concat([ours[ours["metric"] != "gower"], theirs])
    assert only(without) == (("search@1",), ("gower",))
    nothing = pd.concat([ours, theirs[theirs["metric"] == "validity"]])
    assert only(nothing) == (("search@1",), ())
    assert verdicts(theirs) == []
    assert "## Price for price" not in markdown(theirs)


def test_positions_without_a_wanted_safety_stand_beside_methods_that_take_any_yes_alone():
    """The default loses gower to both; `any yes` loses nothing, and counts only beside the one that is not refined."""
    ours = (*scored("lcd", "search@0.5", gower=2), *scored("lcd", "search@0.5@0"))
    assert only(tidy(*ours, *scored("lcd", "revise"))) == (("search@0.5@0",), ())
    assert only(tidy(*ours, *scored("lcd", "revise+"))) == (("search@0.5",), ("gower",))
    assert "| revise | **0.5 any yes** (1) |" in markdown(tidy(*ours, *scored("lcd", "revise")))


def test_published_and_refined_methods_and_readings_are_counted_apart():
    rows = tidy(
        *[line for d in DATA for k in ("no", "yes") for m in (*BASELINES, "search@0.5") for line in scored(d, m, k)],
        *scored("lcd", "face+", gower=0.5), *scored("german", "clue+"), *scored("law", "nice"),
        *scored("law", "guided"),
    )  # fmt: skip
    text = markdown(rows)
    for line in (
        f"| The paper's baselines as published | **{12 * len(DATA)} of {12 * len(DATA)}** |",
        "| The same, refined | **1 of 2** |",
        "| NICE | **1 of 1** |",
        "| Readings of Algorithm 1 | **1 of 1** |",
        f"| **together** | **{12 * len(DATA) + 3} of {12 * len(DATA) + 4}** |",
        "| face+ | 0.5: gower |",
    ):
        assert line in text
    assert "### Without a mask: baselines with refinement" in text
    first = text[text.index("## Without a mask") :].split("###")[0]
    assert "search@" not in first  # the paper's tables have one line for each method
    assert "face+" not in first


@pytest.mark.parametrize(("variants", "safety"), [(SEARCH_VARIANTS, None), (ANY_YES_VARIANTS, 0.0)])
def test_all_positions_are_measured_by_one_search(variants, safety, results, monkeypatch):
    monkeypatch.setattr(Bench, "explainer", property(small))
    searches, asked = [], Bench.explanation
    monkeypatch.setattr(Bench, "explanation", lambda *each: searches.append(each[4:]) or asked(*each))
    bench = Bench("german", 0, 20, results[0] / "fitted")
    cells = [Cell("german", name, "no", 0) for name in variants]
    found = {each.cell: each.metrics for each in bench.measure_positions(cells)}
    assert searches == [(POSITIONS, safety)] * 2  # of the queries and of their neighbours
    assert list(found) == cells
    assert all({*PRICE, "instability", "rows"} <= set(metrics) for metrics in found.values())
    assert found[cells[0]]["gower"] > found[cells[-1]]["gower"]  # from plausible to near


def test_stale_cells_are_left_out_beside_fresh_ones_and_marked_where_there_are_no_others(results, tmp_path):
    out, rows = results
    copied = tmp_path / "results"
    shutil.copytree(out, copied)
    old = rows[(rows["method"] == "guided") & (rows["masked"] == "no")]
    more = pd.concat([rows, old.assign(seed=1, value=99.0), old.assign(method="face", value=77.0)])
    more.to_csv(copied / "benchmark.csv", index=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Bench, "explainer", property(small))
        text = tables(copied, 20)
    assert "99.00" not in text
    assert "| German | face ° | " in text
    assert "77.00" in text
    assert "| German | guided | " in text
    assert "\n\n° Measured with other rows" in text
    assert "°" not in (out / "tables.md").read_text(encoding="utf-8")


# ---- names of methods


def test_a_name_may_say_the_position_of_the_dial_or_ask_for_the_way_back():
    assert tuned_method("search@0.25", "lcd").closeness == 0.25
    assert tuned_method("search", "lcd") == METHODS["search"]()  # one setting, whatever the data
    for variants, safety in ((SEARCH_VARIANTS, None), (ANY_YES_VARIANTS, 0.0)):
        assert [tuned_method(name, "law").closeness for name in variants] == [k / 20 for k in range(21)]
        assert {wanted_safety(name) for name in variants} == {safety}
    assert tuned_method("wachter+", "lcd") == Refined(tuned_method("wachter", "lcd"))
    for wrong, word in (("search@close", "must be a number, as in search@0.25"), ("search@2", "closeness is 2"),
                        ("face@0.5", "has no closeness"),
                        ("search@0.5@none", "must be one number"), ("search@0.5@1", "below 1"),
                        ("magic@0.5", "no method 'magic@0.5'"), ("magic+", "no method 'magic'")):  # fmt: skip
        with pytest.raises(InputError, match=word):
            tuned_method(wrong, "lcd")


def test_all_five_data_sets_and_all_positions_are_run_and_timed_once(tmp_path, monkeypatch):
    assert set(BenchmarkSettings().data) == {"german", "adult", "adult_9_2", "law_7502", *PAPER_DATA}
    assert BenchmarkSettings().methods == (*AS_PUBLISHED, *SEARCH_VARIANTS, *ANY_YES_VARIANTS, *REFINED_METHODS)
    assert set(REFINED_METHODS) == {f"{method}+" for method in (*BASELINES, "guided")}
    assert set(METHODS) < set(AS_PUBLISHED) <= set(ORDER)
    made = quick(monkeypatch)
    run(settings(tmp_path, methods=("search", "search@0.25", "wachter+")), Progress("silent"))
    assert made == [*(Cell("german", method, "no", 0) for method in ("search", "search@0.25", "wachter+")), "time"]


@pytest.mark.parametrize("method", ["search@0.25", "wachter+"])
def test_other_positions_and_forms_are_measured_again_where_the_method_has_changed(method, tmp_path, monkeypatch):
    made, asked = quick(monkeypatch), settings(tmp_path, methods=(method,))
    run(asked, Progress("silent"))
    run(asked, Progress("silent"))
    assert made == [Cell("german", method, "no", 0)]
    monkeypatch.setattr(Refined if "+" in method else DiffusionSearch, "edition", 99)
    run(asked, Progress("silent"))
    assert len(made) == 2


def test_held_out_rows_are_neither_learned_nor_asked_about():
    for part, size in (("test", 20), ("validation", 10)):
        bench = Bench("german", 0, size, part=part)
        asked = bench.data.part(part).head(size)
        bench.__dict__["queries"] = asked
        held = set(bench.held_out.index)
        unseen = {*bench.data.splits.validation, *(bench.data.splits.test if part == "test" else ())}
        assert held == unseen - set(asked.index)
        assert not held & set(bench.data.splits.train)


def test_the_papers_figures_are_those_that_it_prints():
    known = paper_figures()
    assert len(known) == 7 * 4 * 7 + 7 * 4 * 6 + 7 * 4
    assert known["lcd", "no", "im1", "guided"] == 0.63
    assert known["law", "yes", "validity", "wachter"] == 0.39
    assert known["adult", "no", "seconds_per_100", "face"] == 1.6


# ---- the reference


@pytest.fixture(scope="module")
def explainer():
    return lending.explainer()


def test_an_answer_can_be_measured(explainer):
    people = lending.refused(explainer, 80)
    answer = explainer.explain(people)
    found = explainer.evaluate(answer)
    others = ("option_spread", "retrained", *OF_HELD_OUT_ROWS)  # need more than this
    assert list(found) == [name for name in MEANING if name not in others]
    valid = answer.explanation.status[:, 0] == "valid"
    assert found["validity"] == pytest.approx(valid.mean())
    assert found["violations"] == 0
    changed = answer.changes()["row"].isin(people.index[valid]).sum() / valid.sum()
    assert found["sparsity"] == pytest.approx(changed)
    assert found["im1"] < 1.5
    assert found == explainer.evaluate(explainer.explain(people))


def test_rows_already_accepted_are_not_measured(explainer):
    accepted = lending.table(50, seed=5)
    accepted = accepted[(explainer.predict(accepted) == "yes").to_numpy()]
    assert explainer.evaluate(explainer.explain(accepted)) == {}


def test_the_neighbour_is_the_nearest_other_row_of_the_same_verdict(explainer):
    fitted = explainer.fitted_
    reference = MetricReference(fitted.encoder, fitted.raw, (fitted.y == 1).numpy(), *([None] * 3))
    said = fitted.classifier(fitted.encoder.embed(fitted.raw).float()).argmax(dim=1).numpy()
    queries = fitted.raw[:5]  # training rows: each is its own nearest row, which does not count
    found = reference.neighbours(queries, Oracle(fitted.model))
    points = reference.whole(fitted.raw).numpy()
    for i in range(5):
        distance = np.linalg.norm(points - points[i], axis=1)
        distance[(said != said[i]) | (distance == 0)] = np.inf
        np.testing.assert_array_equal(found[i], fitted.raw[distance.argmin()])


def test_standardised_numbers_have_mean_0_and_deviation_1_on_the_training_rows(explainer):
    fitted = explainer.fitted_
    reference = MetricReference(fitted.encoder, fitted.raw, (fitted.y == 1).numpy(), *([None] * 3))
    numbers = reference.standardised(fitted.raw).numpy()
    np.testing.assert_allclose(numbers.mean(axis=0), 0, atol=1e-9)
    np.testing.assert_allclose(numbers.std(axis=0), 1)


# ---- the rows as they are, and Adult with the paper's columns


def test_unchanged_rows_are_measured_although_none_is_valid_and_have_no_rank(results, monkeypatch):
    monkeypatch.setattr(Bench, "explainer", property(small))
    bench = Bench("german", 0, 20, results[0] / "fitted")
    found = bench.measure(Cell("german", "unchanged", "no", 0))
    assert found.metrics["validity"] == found.metrics["l2"] == found.metrics["sparsity"] == found.metrics["gower"] == 0
    assert set(PAPER) <= set(found.metrics)
    near, own = (bench.reference.standardised(bench.fitted.encoder.read(f)) for f in (bench.neighbours, bench.queries))
    apart = (own - near).norm(dim=1)  # the answers are as far apart as the rows
    assert found.metrics["instability"] == pytest.approx((apart / (1 + apart)).mean().item())
    lines = [("lcd", m, "no", 0, metric, v) for m, v in (("unchanged", 0.0), ("search", 1.0), ("face", 2.0))
             for metric in ("l2", "im1", "validity")]  # fmt: skip
    for contest in contests(tidy(*lines), "lcd", "no", ["l2", "im1"]):
        assert contest.ranking()[-1] == "unchanged"
    text = markdown(tidy(*lines))
    assert "| LCD | unchanged | 0.00 ± 0.00 |" in text
    assert "| LCD | search | **1.00** ± 0.00" in text


def test_adult_has_two_presets_beside_the_same_figures_of_the_paper():
    full, paper = (Bench(name, 0, 20) for name in ("adult", "adult_9_2"))
    assert [len(bench.data.schema) for bench in (full, paper)] == [14, 11]
    assert cell_fingerprint("adult", "face", 20, full.explainer) != cell_fingerprint(
        "adult_9_2", "face", 20, full.explainer
    )
    assert tuned_method("face", "adult_9_2") == tuned_method("face", "adult") != tuned_method("face", "law")
    lines = [
        (d, "wachter", "no", 0, metric, 1.0) for d in ("adult", "adult_9_2") for metric in ("l2", "l2_per_feature")
    ]
    text = markdown(tidy(*lines))
    for title in ("Adult 6 + 8", "Adult 9 + 2"):
        (line,) = (line for line in text.splitlines() if line.startswith(f"| {title} | wachter | **1.00**"))
        assert line.count("<small>0.27</small>") == 2  # the paper's L2, beside both readings


def test_a_plain_name_is_the_method_as_published_and_guided_plus_is_what_users_get():
    assert type(tuned_method("guided", "lcd")) is Guided
    assert tuned_method("guided", "lcd") == Guided()
    assert tuned_method("guided+", "lcd") == METHODS["guided"]() == GuidedSearch()
    assert type(tuned_method("guided_tuned", "lcd")) is Guided
