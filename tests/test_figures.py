"""The figures: measured as they say, drawn from their files, readable."""

import math
from collections.abc import Iterator
from itertools import combinations, pairwise
from pathlib import Path

import lending
import numpy as np
import pandas as pd
import pytest
import torch
from matplotlib.axis import Axis, Tick
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.transforms import Bbox
from typer.testing import CliRunner

import tdce
from tdce import InputError, metrics
from tdce.cli import app
from tdce.methods.search import DiffusionSearch
from tdce_reproduction import theory
from tdce_reproduction.benchmark.cell import Bench
from tdce_reproduction.figures import FIGURES, correlations, kl, make_figures, person, simplex, tau
from tdce_reproduction.figures.style import styled
from tdce_reproduction.figures.workspace import Workspace

KEPT = Path(__file__).parents[1] / "results" / "figures"


@pytest.fixture(scope="module")
def results(tmp_path_factory) -> Path:
    """The folder of a benchmark with a small explainer of the German data."""
    folder = tmp_path_factory.mktemp("results")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Bench, "explainer", property(small))
        _ = Bench("german", 0, 20, folder / "fitted").fitted
    return folder


def small(bench: Bench) -> tdce.Explainer:
    return tdce.Explainer(hidden=16, steps=20, seed=bench.seed, keep_rows=True, progress="silent")


def in_this_process(work, jobs, workers) -> Iterator:
    for job in jobs:
        yield from work(*job)


# The pictures


@pytest.mark.parametrize("name", FIGURES)
def test_a_picture_is_drawn_from_its_file_and_no_two_texts_overlap(name):
    table = pd.read_csv(KEPT / f"{name}.csv") if FIGURES[name].measure else pd.DataFrame()
    with styled():
        for part in FIGURES[name].parts(name, table).values():
            check_texts(FIGURES[name].draw(part))


def check_texts(figure: Figure) -> None:
    boxes = texts(figure)
    assert len(boxes) > 5
    for (one, a), (other, b) in combinations(boxes, 2):
        across = min(a.x1, b.x1) - max(a.x0, b.x0)
        down = min(a.y1, b.y1) - max(a.y0, b.y0)
        assert across < 2 or down < 2, f"{one!r} and {other!r} overlap"
    width, height = figure.canvas.get_width_height()
    for text, box in boxes:
        assert box.x0 >= -1, text
        assert box.y0 >= -1, text
        assert box.x1 <= width + 1, text
        assert box.y1 <= height + 1, text
        assert box.height >= 0.09 * figure.dpi, f"{text!r} is too small"


def texts(figure: Figure) -> list[tuple[str, Bbox]]:
    """What is written in a figure, and where, in pixels."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    axes = figure.get_axes()
    ticks = {label for a in axes for axis in (a.xaxis, a.yaxis) for tick in all_ticks(axis) for label in labels(tick)}
    shown = [label for a in axes for axis in (a.xaxis, a.yaxis) for label in visible(axis)]
    found = [t for t in figure.findobj(Text) if t not in ticks] + shown
    boxes = [(t.get_text(), t.get_window_extent(canvas.get_renderer())) for t in found if t.get_visible()]
    return [(text, box) for text, box in boxes if text.strip() and box.width > 0]


def all_ticks(axis: Axis) -> list[Tick]:
    return [*axis.majorTicks, *axis.minorTicks]


def labels(tick: Tick) -> list[Text]:
    return [tick.label1, tick.label2]


def visible(axis: Axis) -> list[Text]:
    """The labels of the ticks within the limits."""
    low, high = sorted(axis.get_view_interval())
    ticks = [t for t in axis.get_major_ticks() if low - 1e-9 <= t.get_loc() <= high + 1e-9]
    return [label for tick in ticks for label in labels(tick)] if axis.axes.axison else []


def test_the_same_data_give_the_same_files(tmp_path):
    one, two = ([p.read_bytes() for p in make_figures(["pipeline"], Workspace(tmp_path / name))] for name in "ab")
    assert one == two
    assert one[0].startswith(b"\x89PNG")
    assert b"<svg" in one[1]


def test_unknown_figures_and_wrong_folders_are_named(tmp_path, monkeypatch):
    with pytest.raises(InputError, match="no figure 'foo'; known: pipeline, simplex"):
        make_figures(["kl", "foo"], Workspace(tmp_path))
    monkeypatch.delenv("TDCE_DATA", raising=False)
    with pytest.raises(InputError, match=r"lcd.*--only pipeline,simplex,kl,person,frontier needs no data"):
        make_figures(["pipeline", "tau"], Workspace(tmp_path / "out", results=tmp_path))
    with pytest.raises(InputError, match=r"lcd.*--only pipeline,simplex,kl,person,frontier needs no data"):
        make_figures(["tau"], Workspace(tmp_path / "out", results=KEPT.parent, fresh=True))
    (tmp_path / "tau.csv").write_text("a,b\n1,2\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"tau.csv was not written by `tdce figures` .*move it away"):
        tau.measure(Workspace(tmp_path, "german"))
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(InputError, match="is a file or lies inside one; name a folder"):
        make_figures(["pipeline"], Workspace(tmp_path / "file"))
    assert not (tmp_path / "out").exists()


def test_what_was_measured_before_is_drawn_again_without_data(tmp_path, monkeypatch):
    monkeypatch.delenv("TDCE_DATA", raising=False)
    for name in ("correlations", "tau"):  # the pictures themselves are drawn above
        monkeypatch.setitem(FIGURES, name, FIGURES[name]._replace(draw=lambda table: Figure((1, 1))))
    for name in ("correlations", "tau"):
        kept = pd.read_csv(KEPT / f"{name}.csv")
        size = {"seeds": kept["seed"].nunique(), "rows": int(kept["rows"].iloc[0])}
        written = make_figures([name], Workspace(tmp_path / "out", results=KEPT.parent, **size))
        assert [path.name for path in written] == [f"{name}.{kind}" for kind in ("csv", "png", "svg")]
        assert written[0].read_bytes() == (KEPT / f"{name}.csv").read_bytes()


def test_the_command_makes_what_it_is_asked_for(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["figures", "--only", "pipeline", "--out", "pictures"])
    assert done.exit_code == 0, done.output
    assert "Written: pictures/pipeline.png, pictures/pipeline.svg" in done.stdout
    assert sorted(p.name for p in (tmp_path / "pictures").iterdir()) == ["pipeline.png", "pipeline.svg"]


# What is measured


def test_the_lines_of_kl_are_those_of_the_theory(tmp_path, monkeypatch):
    monkeypatch.setattr(kl, "TAUS", (0.3, 2.0))
    monkeypatch.setattr(kl, "DRAWS", 5_000)
    written = make_figures(["kl"], Workspace(tmp_path))
    assert [p.name for p in written] == ["kl.csv", "kl.png", "kl.svg"]
    line = pd.read_csv(written[0]).iloc[0]
    pi = np.array(kl.PI)
    assert line["kl"] == pytest.approx(theory.divergence(pi, 0.3, 5_000).value, rel=1e-5)
    assert (line["tight_lower"], line["tight_upper"]) == pytest.approx(theory.tight_bounds(pi, 0.3), rel=1e-5)
    assert line["printed_upper"] < 0 < line["supplement_upper"]


def test_the_kept_kl_is_u_shaped_and_within_its_bounds():
    table = pd.read_csv(KEPT / "kl.csv")
    lowest = table["kl"].idxmin()
    assert 0.9 < table["tau"][lowest] < 1.5
    assert (table["kl"].diff()[1 : lowest + 1] < 0).all()
    assert (table["kl"].diff()[lowest + 1 :] > 0).all()
    for name in ("supplement", "corrected", "free", "tight"):
        assert (table[f"{name}_lower"] - 4 * table["error"] <= table["kl"]).all()
        assert (table["kl"] <= table[f"{name}_upper"] + 4 * table["error"]).all()
    assert (table["printed_upper"] < table["kl"])[table["tau"] < 3].all()


def test_a_figure_is_measured_on_one_thread_whatever_the_machine_has(tmp_path, monkeypatch):
    counts = []
    monkeypatch.setattr(kl, "DRAWS", 100)
    recipe = FIGURES["kl"]._replace(
        measure=lambda workspace: counts.append(torch.get_num_threads()) or kl.measure(workspace)
    )
    monkeypatch.setitem(FIGURES, "kl", recipe)
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        make_figures(["kl"], Workspace(tmp_path))
    finally:
        torch.set_num_threads(before)
    assert counts == [1]


def test_the_walks_on_the_simplex_begin_alike_and_end_at_the_datas_shares_or_at_the_target(tmp_path):
    table = simplex.measure(Workspace(tmp_path))
    shares = table[["a", "b", "c"]].to_numpy()
    assert shares.sum(axis=1) == pytest.approx(1, abs=1e-3)
    assert set(simplex.SHOWN) <= set(table["t"])
    begin, end = table[table["t"] == 1000], table[table["t"] == 0]
    free, guided = (begin[begin["guided"] == g][["a", "b", "c"]].to_numpy() for g in (0, 1))
    assert (free == guided).all()
    free, guided = (end[end["guided"] == g][["a", "b", "c"]].to_numpy().argmax(axis=1) for g in (0, 1))
    error = 3 * math.sqrt(0.25 / simplex.POINTS)
    assert np.bincount(free, minlength=3) / simplex.POINTS == pytest.approx(np.array(simplex.SHARES), abs=error)
    assert np.mean(guided == 2) > 0.8  # where the classifier says yes
    path = simplex.animate(table[table["t"].isin(simplex.SHOWN)], tmp_path)
    assert path.read_bytes().startswith(b"GIF89a")


def test_more_categories_than_colours_are_said_to_be_some(tmp_path):
    table = pd.read_csv(KEPT / "correlations.csv")
    shares = table[table["kind"] == "share"]
    more = [shares.assign(b=f"{k} months", value=shares["value"] / 20) for k in range(9)]
    with styled():
        figure = correlations.draw(pd.concat([table[table["kind"] != "share"], *more]))
    written = [text.get_text() for text in figure.findobj(Text)]
    assert any("(the 7 most common)" in text for text in written)
    assert sum(text.endswith(" months") for text in written) == 7


def test_correlations_are_pearsons_and_a_constant_has_none():
    rows = np.random.default_rng(0).normal(size=(50, 3)) @ np.array([[1, 1, 0], [0, 1, 2], [0, 0, 1.0]])
    assert correlations.correlation(rows) == pytest.approx(np.corrcoef(rows.T))
    rows[:, 1] = 7.0
    found = correlations.correlation(rows)
    assert found[1].tolist() == [0, 1, 0]
    rows[0, 0] = np.nan
    assert np.isfinite(correlations.correlation(rows)).all()


def test_the_correlations_of_the_target_class_differ_from_themselves_by_nothing(results, tmp_path, monkeypatch):
    monkeypatch.setattr(Bench, "explainer", property(small))
    monkeypatch.setattr(correlations, "SHOWN", ("wachter", "search"))
    monkeypatch.setattr(correlations, "stream", in_this_process)
    workspace = Workspace(tmp_path, "german", seeds=1, rows=20, results=results)
    table = correlations.measure(workspace)
    assert set(table["method"]) == {"wachter", "search", "guided_tuned", "real rows", "refused rows", "target class"}
    gaps, shares = (table[table["kind"] == kind] for kind in ("correlation", "share"))
    assert (gaps.loc[gaps["method"] == "target class", "value"] == 0).all()
    assert (gaps.loc[gaps["method"] == "wachter", "value"] > 0).any()
    assert set(shares["a"]) == {"checking_account"}  # the mask of german is a number: the first category is shown
    assert shares.groupby(["masked", "method"])["value"].sum().to_numpy() == pytest.approx(1)
    bench = workspace.bench(0)
    found, _ = bench.explanation(DiffusionSearch().fit(bench.task("no")), "no", bench.queries)
    names = list(bench.fitted.encoder.schema.names)
    own = found.raw[:, 0][:, names.index("checking_account")]
    ours = shares[(shares["method"] == "search") & (shares["masked"] == "no")]
    assert ours["value"].tolist() == [float(np.mean(own == k)) for k in range(len(ours))]
    assert correlations.measure(workspace).equals(
        workspace.earlier("correlations", correlations.COLUMNS)
    )  # nothing is measured again


def test_the_metrics_at_a_temperature_are_those_of_a_model_trained_at_it(results, tmp_path, monkeypatch):
    monkeypatch.setattr(Bench, "explainer", property(small))
    monkeypatch.setattr(tau, "TAUS", (0.3, 2.0))
    monkeypatch.setattr(tau, "METHODS", {"guided_soft": "the slowest is left out"})
    monkeypatch.setattr(tau, "stream", in_this_process)
    monkeypatch.setattr(
        metrics, "MIN_TWO_SAMPLE_ROWS", 1000
    )  # the figure does not show the slowest metric, the two-sample test
    workspace = Workspace(tmp_path, "german", seeds=1, rows=20, results=results)
    table = tau.measure(workspace)
    assert len(table) == 2 * len(tau.METHODS) * len(tau.METRICS)
    assert np.isfinite(table["value"]).all()
    model = workspace.bench(0).diffusion(2.0)
    assert model.temperature(1000) == model.temperature(0) == 2.0
    marked = workspace.earlier("tau", tau.COLUMNS).assign(value=lambda t: t["value"].where(t["tau"] != 0.3, 123.0))
    workspace.save("tau", marked[marked["tau"] == 0.3])
    again = tau.measure(workspace)
    assert (again["value"] == 123.0).sum() == len(tau.METHODS) * len(tau.METRICS)  # kept as it stood
    first, second = (t[t["tau"] == 2.0]["value"].to_numpy() for t in (table, again))
    assert second == pytest.approx(first, rel=1e-5)


def test_one_experiment_never_takes_or_loses_the_lines_of_another(tmp_path):
    line = {"seed": 0, "tau": 0.3, "method": "search", "metric": "im1", "value": 1.0}
    ours, theirs, more = (Workspace(tmp_path, "german", rows=rows, results=tmp_path) for rows in (20, 30, 20))
    for workspace in (ours, theirs, more):
        assert len(workspace.earlier("tau", tau.COLUMNS)) == (workspace is more)
        workspace.save("tau", workspace.append(pd.DataFrame(columns=tau.COLUMNS), [line | {"value": workspace.rows}]))
    assert ours.earlier("tau", tau.COLUMNS)["value"].tolist() == [20]
    assert theirs.earlier("tau", tau.COLUMNS)["value"].tolist() == [30]
    two = Workspace(tmp_path, "german", seeds=2, rows=20, results=tmp_path)
    two.save("tau", two.append(two.earlier("tau", tau.COLUMNS), [line | {"seed": 1}]))
    one = Workspace(tmp_path, "german", seeds=1, rows=20, results=tmp_path)
    one.save("tau", one.earlier("tau", tau.COLUMNS))
    assert two.earlier("tau", tau.COLUMNS)["seed"].tolist() == [0, 1]


def test_a_persons_way_ends_at_the_answer():
    explainer = lending.explainer()
    row = lending.refused(explainer, 1)
    for name in person.METHODS:
        table = person.trajectory(explainer.fitted_, row, name)
        chance = table[table["kind"] == "probability"]
        asked = tdce.Explainer(person.KINDS[name], progress="silent")
        asked.fitted_ = explainer.fitted_
        answer = asked.explain(row)
        assert chance["value"].iloc[-1] == pytest.approx(answer.to_frame()["score_after"].iloc[0], abs=1e-6)
        assert chance["t"].iloc[-1] == person.RETURNED
        named = set(table.loc[table["change"] != "", "feature"])
        assert named == set(answer.changes()["feature"])
        assert chance["t"].iloc[-2] == 0
        moved = table[(table["t"] == person.RETURNED) & (table["feature"] != "") & (table["value"].abs() > 1e-9)]
        assert set(moved["feature"]) == named
        falls = [b < a for a, b in pairwise(chance["t"])]
        assert all(falls)
