"""The artefact in the field: what is in it, and whether a table is still the one that was learned."""

import json
from dataclasses import replace
from functools import partial
from pathlib import Path

import lending
import numpy as np
import pandas as pd
import polars as pl
import pytest
from fits import SHORT
from scipy import stats
from test_cli import run as run_in

import tdce
from tdce import InputError
from tdce.explainer import Finding, monitoring

run = partial(run_in, cwd=Path.cwd())


@pytest.fixture(scope="module")
def explainer():
    return lending.explainer()


@pytest.fixture(scope="module")
def saved(explainer, tmp_path_factory):
    path = tmp_path_factory.mktemp("field") / "lending.tdce"
    explainer.keep_rows = False
    explainer.save(path)
    return path


@pytest.fixture(scope="module")
def fresh():
    """People whom nobody learned, of the same world."""
    return lending.table(600, seed=11)


def changes(drift) -> set[tuple[str, str]]:
    return {(finding.check, finding.subject) for finding in drift.changes}


# ---- monitor


@pytest.mark.parametrize("rows", [40, 150, 600])
def test_fresh_people_of_the_same_world_are_no_change(explainer, rows):
    alarms = [explainer.monitor(lending.table(rows, seed=seed)).changed for seed in range(20, 30)]
    assert not any(alarms)


def test_every_part_is_checked(explainer, fresh):
    drift = explainer.monitor(fresh)
    assert {finding.check for finding in drift.findings} == {
        "missing", "range", "middle", "spread", "shares", "plausibility", "accuracy",
    }  # fmt: skip
    assert (drift.rows, drift.learned_rows, drift.notes, drift.extra) == (600, 1200, (), ())
    assert "accuracy" not in {each.check for each in explainer.monitor(fresh.drop(columns="decision")).findings}


SPOILT = {
    "middle": (lambda f: f.assign(income=f["income"] + 400), ("middle", "income")),
    "spread": (lambda f: f.assign(age=(48 + 0.5 * (f["age"] - 48)).round().astype(int)), ("spread", "age")),
    "range": (lambda f: f.assign(age=f["age"].where(f.index % 20 > 0, 300)), ("range", "age")),
    "shares": (lambda f: f.assign(housing=f["housing"].where(f.index % 4 > 0, "own")), ("shares", "housing")),
    "category": (lambda f: f.assign(housing=f["housing"].where(f.index % 9 > 0, "boat")), ("category", "housing")),
    "missing": (lambda f: f.assign(income=f["income"].where(f.index % 9 > 0)), ("missing", "income")),
    "column": (lambda f: f.drop(columns="debt"), ("column", "debt")),
    "text": (lambda f: f.assign(debt="much"), ("column", "debt")),
    "labels": (lambda f: f.assign(decision=f["decision"].iloc[::-1].to_numpy()), ("accuracy", "accuracy")),
    "rows": (lambda f: f.assign(decision=np.where(f["decision"] == "yes", "no", "yes")), ("plausibility",) * 2),
}


@pytest.mark.parametrize("name", SPOILT)
def test_a_change_is_found_and_named(explainer, fresh, name):
    spoil, expected = SPOILT[name]
    drift = explainer.monitor(spoil(fresh))
    assert drift.changed
    assert expected in changes(drift)


def test_a_law_that_no_longer_holds_is_found(tmp_path):
    rng = np.random.default_rng(0)
    net = rng.integers(10, 90, 400) * 100
    table = pd.DataFrame({"net": net, "tax": net // 5, "gross": net + net // 5, "age": rng.integers(20, 70, 400)})
    table["y"] = np.where(net + 500 * rng.normal(size=400) > 5000, "yes", "no")
    explainer = tdce.Explainer(hidden=8, steps=20, progress="silent").fit(table, label="y", favourable="yes")
    laws = [str(law) for law in explainer.schema.laws]
    assert laws
    assert not explainer.monitor(table.sample(200, random_state=1)).changed
    drift = explainer.monitor(table.assign(gross=table["gross"].where(table.index % 10 > 0, table["gross"] + 1000)))
    assert {subject for check, subject in changes(drift) if check == "law"} & set(laws)
    slip = explainer.monitor(
        table.assign(gross=table["gross"].where(table.index != 7, 9900)).sample(60, random_state=2)
    )
    assert not [each for each in slip.changes if each.check == "law"]  # one slip is no other world


def test_rates_are_compared_by_fishers_exact_test():
    finding = monitoring._rate("range", "age", "", "", 7, 90, 5, 300)
    assert finding.p == pytest.approx(stats.fisher_exact([[7, 83], [5, 295]], alternative="greater").pvalue)
    assert finding.effect == pytest.approx(7 / 90 - 5 / 300)


def test_shares_are_compared_by_a_test_of_two_samples(explainer, fresh):
    found = next(each for each in explainer.monitor(fresh).findings if each.check == "shares")
    learned = lending.table()["housing"].value_counts().sort_index()
    now = fresh["housing"].value_counts().sort_index()
    assert found.p == pytest.approx(stats.chi2_contingency([now, learned], correction=False).pvalue)
    assert found.effect == pytest.approx(float((now / 600 - learned / 1200).abs().sum() / 2))


def test_numbers_are_compared_on_the_scale_on_which_they_were_learned(explainer):
    """The learned table itself has mean 0 and deviation 1, so it has not changed at all."""
    same = {(each.check, each.subject): each.effect for each in explainer.monitor(lending.table()).findings}
    for name in ("income", "debt", "age"):
        assert same["middle", name] == pytest.approx(0, abs=1e-9)
        assert same["spread", name] == pytest.approx(0, abs=1e-9)


def test_plausibility_is_compared_with_an_even_distribution(explainer, fresh):
    found = next(each for each in explainer.monitor(fresh).findings if each.check == "plausibility")
    rated = [
        explainer.plausibility(part, target=label).to_numpy() for label, part in fresh.groupby("decision", sort=True)
    ]
    assert found.effect == pytest.approx(stats.kstest(np.concatenate(rated), "uniform").statistic)


def test_a_change_is_beyond_chance_and_large_enough_to_matter(explainer, fresh):
    trifle = Finding("middle", "income", "", "", effect=0.05, p=1e-9, least=0.1)
    assert [replace(trifle, **each).judge(1e-4).changed for each in ({}, {"effect": 0.1}, {"p": 1e-3})] == [
        False,
        True,
        False,
    ]
    drift = explainer.monitor(fresh)
    assert all(
        finding.changed == finding.judge(drift.level / len(drift.findings)).changed for finding in drift.findings
    )


def test_a_table_of_another_kind_of_frame_is_monitored_alike(explainer, fresh):
    assert explainer.monitor(pl.from_pandas(fresh)) == explainer.monitor(fresh)


def test_without_the_model_the_rest_is_checked(fresh, tmp_path):
    def model(frame):
        return 1 / (1 + np.exp((1000 - frame["income"] + frame["debt"]).to_numpy(dtype=float) / 300))

    explainer = tdce.Explainer(model=model, hidden=8, steps=10, plans=replace(SHORT, precedents=0), progress="silent")
    explainer.fit(lending.table(600), label="decision", favourable="yes").save(tmp_path / "m.tdce")
    drift = tdce.Explainer.load(tmp_path / "m.tdce").monitor(fresh)
    assert drift.notes == ("the model is not at hand: plausibility and accuracy were not checked",)
    assert {"plausibility", "accuracy"} <= {each.check for each in explainer.monitor(fresh).findings}


def test_wrong_tables_and_labels_are_named(explainer, fresh):
    with pytest.raises(InputError, match="the table has no rows"):
        explainer.monitor(fresh.head(0))
    with pytest.raises(InputError, match="there is no label column 'decisoin'; did you mean 'decision'"):
        explainer.monitor(fresh, label="decisoin")
    with pytest.raises(InputError, match="'maybe'"):
        explainer.monitor(fresh.assign(decision="maybe"))
    assert explainer.monitor(fresh.rename(columns={"decision": "truth"}), label="truth").findings


def test_few_rows_and_further_columns_are_said(explainer, fresh):
    drift = explainer.monitor(fresh.head(5).assign(branch="north"))
    assert drift.extra == ("branch",)
    assert "5 rows are few" in drift.notes[0]
    assert not drift.changed


def test_a_drift_is_a_frame_json_and_a_page(explainer, fresh, tmp_path):
    drift = explainer.monitor(fresh.assign(housing="<b>boat</b>"))
    assert drift.to_frame()["changed"].sum() == len(drift.changes) > 0
    content = json.loads(drift.to_json())
    assert content["changed"] is True
    assert content["findings"][0]["changed"] is True
    drift.to_html(tmp_path / "page.html", title="A & B")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "A &amp; B" in page
    assert "&lt;b&gt;boat&lt;/b&gt;" in page
    assert "<b>boat" not in page
    assert "it has changed" in page
    assert drift._repr_html_().startswith(f"<p>{repr(drift)[1:-1]}</p><table")


# ---- inspect


def test_inspect_says_what_is_in_it(saved):
    loaded = tdce.Explainer.load(saved)
    content = loaded.inspect()
    assert json.loads(json.dumps(content)) == content
    assert content["rows"] == 1200
    assert [column["name"] for column in content["columns"]] == ["income", "debt", "housing", "age"]
    assert {column["name"]: column["role"] for column in content["columns"]} == loaded.schema.roles
    assert content["file"]["bytes"] == saved.stat().st_size
    assert content["digest"] == loaded.provenance.artefact
    assert content["models"][0]["kind"] == "tdce"
    assert content["accuracy"]["accuracy"] == loaded.report["accuracy"]
    assert content["holds"]["training_rows"] == 0
    assert content["versions"]["tdce"] == tdce.__version__
    assert [law["law"] for law in content["laws"]] == [str(law) for law in loaded.schema.laws]


def test_an_explainer_that_was_never_saved_has_no_file():
    explainer = tdce.Explainer(hidden=8, steps=5, progress="silent").fit(lending.table(60), label="decision")
    content = explainer.inspect()
    assert content["file"] is None
    assert len(content["digest"]) == 64


# ---- the commands


def test_tdce_inspect_is_for_people_and_for_scripts(saved):
    done = run("inspect", saved)
    assert done.returncode == 0, done.stderr
    for word in (
        "rows learned  1,200",
        "nobody's record",
        "income",
        "yes, no" if "yes, no" in done.stdout else "no, yes",
    ):
        assert word in done.stdout
    content = json.loads(run("inspect", saved, "--json").stdout)
    assert content == tdce.Explainer.load(saved).inspect()
    missing = run("inspect", saved.with_name("no.tdce"))
    assert (missing.returncode, missing.stdout) == (2, "")


def test_tdce_monitor_exits_with_0_1_or_2(saved, fresh, tmp_path):
    same, other, page = tmp_path / "same.csv", tmp_path / "other.csv", tmp_path / "page.html"
    fresh.to_csv(same, index=False)
    fresh.assign(income=fresh["income"] + 800).to_csv(other, index=False)
    done = run("monitor", saved, same)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "the table is like the one that was learned" in done.stdout
    done = run("monitor", saved, other, "--out", page)
    assert done.returncode == 1, done.stderr
    assert "the table has changed" in done.stdout
    assert "income" in page.read_text(encoding="utf-8")
    done = run("monitor", saved, other, "--json")
    assert (done.returncode, json.loads(done.stdout)["changed"]) == (1, True)
    done = run("monitor", saved, other, "--label", "risk")
    assert done.returncode == 2
    assert "there is no label column 'risk'" in done.stderr
    assert run("monitor", saved, tmp_path / "none.csv").returncode == 2
