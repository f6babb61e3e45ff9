"""The burden of groups: shares and means with intervals, as a table, a picture and a section of the report."""

import re

import lending
import numpy as np
import pandas as pd
import pytest
from scipy import stats

import tdce
from tdce.report.burden import mean_interval, split_groups, wilson_interval


@pytest.fixture(scope="module")
def answer() -> tdce.Answer:
    explainer = lending.explainer()
    rows = lending.table(40, seed=8).drop(columns="decision")
    return explainer.explain(rows.assign(sex=["<b>f</b>", "m", "m", None] * 10))


@pytest.mark.parametrize(("hits", "count"), [(0, 5), (5, 5), (3, 7), (81, 263)])
def test_the_interval_of_a_share_is_wilsons(hits: int, count: int):
    expected = stats.binomtest(hits, count).proportion_ci(method="wilson")
    assert wilson_interval(hits, count) == pytest.approx((expected.low, expected.high))


def test_the_interval_of_a_mean_is_students():
    values = np.array([1.0, 2.0, 4.0, 9.0])
    expected = stats.t.interval(0.95, 3, values.mean(), stats.sem(values))
    assert mean_interval(values) == pytest.approx(expected)
    assert np.isnan(mean_interval(values[:1])).all()
    assert np.isnan(wilson_interval(0, 0)).all()


def test_the_table_is_what_the_lines_say(answer: tdce.Answer):
    table = answer.burden("sex").to_frame().set_index("group")
    frame = answer.to_frame()
    assert table.index.tolist() == ["m", "<b>f</b>", "not known"]
    for group, line in table.iterrows():
        own = frame[frame["sex"].isna() if group == "not known" else frame["sex"] == group]
        needs, way = own[own["status"] != "already"], own[own["status"] == "valid"]
        assert (line["people"], line["needs"], line["with_way"]) == (len(own), len(needs), len(way))
        assert line["share"] == pytest.approx(len(way) / len(needs))
        assert line["safety"] == pytest.approx(way["safety"].mean())
        changes = answer.changes().groupby("row").size().reindex(way["row"])
        assert line["features"] == pytest.approx(changes.mean())
        assert line["share_low"] <= line["share"] <= line["share_high"]
        assert line["distance_low"] <= line["distance"] <= line["distance_high"]
    distance = answer.explanation.distance[(frame["sex"] == "m") & (frame["status"] == "valid"), 0]
    assert table.loc["m", "distance"] == pytest.approx(distance.mean())


def test_numbers_are_grouped_in_quarters_and_few_values_are_not():
    rows = pd.DataFrame({"age": [*range(20, 60)], "kids": [0, 1] * 20, "id": [f"x{i}" for i in range(40)]})
    assert [name for name, _ in split_groups(rows, "age")] == ["20 – 29", "30 – 39", "40 – 49", "50 – 59"]
    assert [name for name, _ in split_groups(rows, "kids")] == ["0", "1"]
    assert sum(who.sum() for _, who in split_groups(rows, "age")) == 40
    kinds = pd.DataFrame({"home": pd.Categorical(["own", "rent"] * 5, categories=["hotel", "own", "rent"])})
    assert [name for name, _ in split_groups(kinds, "home")] == ["own", "rent"]  # nobody lives in a hotel
    with pytest.raises(tdce.InputError, match="nearly every row is a group of its own"):
        split_groups(rows, "id")
    with pytest.raises(tdce.InputError, match="by is 'agee'; did you mean 'age'"):
        split_groups(rows, "agee")


def test_the_picture_has_a_panel_for_each_measure(answer: tdce.Answer):
    figure = answer.burden("sex").plot()
    assert [axes.get_title(loc="left") for axes in figure.axes] == [
        "with a way", "mean distance", "mean features changed", "mean safety",
    ]  # fmt: skip
    dots = figure.axes[0].collections[1].get_offsets()
    assert dots[:, 0].tolist() == pytest.approx(answer.burden("sex").to_frame()["share"].tolist())


@pytest.mark.parametrize(("language", "heading"), [("en", "Burden by sex"), ("de", "Last nach sex")])
def test_the_report_has_the_burden_if_it_is_asked_for(answer: tdce.Answer, tmp_path, language: str, heading: str):
    answer.to_html(tmp_path / "page.html", burden="sex", language=language)
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    (section,) = re.findall(r'<section id="burden".*?</section>', page, re.DOTALL)
    assert heading in section
    assert "&lt;b&gt;f&lt;/b&gt;" in section
    assert "<b>f</b>" not in page
    assert section.count('<tr><th scope="row">') == 3
    found, burden, people = (page.index(f'<section id="{name}"') for name in ("summary", "burden", "people"))
    assert found < burden < people  # right after the finding
    answer.to_html(tmp_path / "without.html", language=language)
    assert 'id="burden"' not in (tmp_path / "without.html").read_text(encoding="utf-8")


def test_no_applicant_reads_the_burden_of_others(answer: tdce.Answer, tmp_path):
    with pytest.raises(tdce.InputError, match="burden by 'sex' is not for this audience"):
        answer.to_html(tmp_path / "page.html", burden="sex", audience="applicant")


def test_a_notebook_shows_the_groups_with_their_intervals(answer: tdce.Answer):
    burden = answer.burden("sex")
    assert "<b>f</b>" not in burden._repr_html_()
    assert "95 % intervals" in burden._repr_html_()
    assert repr(burden).startswith("<Burden by sex: m ")
