"""What a notebook shows: cards, plots and the studio in a frame."""

import copy
import pickle
import re
import sys
from collections.abc import Iterator

import httpx
import lawful
import lending
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import studio as studios
from matplotlib.figure import Figure

import tdce
from tdce.models import Oracle
from tdce.report.figures import Picture


@pytest.fixture(scope="module")
def explainer() -> tdce.Explainer:
    return lending.explainer()


@pytest.fixture(scope="module")
def answer(explainer: tdce.Explainer) -> tdce.Answer:
    return explainer.explain(lending.refused(explainer, 12), n=2)


# Cards


def test_what_a_notebook_shows_is_a_table_without_colours_of_its_own(explainer: tdce.Explainer, answer: tdce.Answer):
    for shown in (tdce.load("german"), explainer.schema, explainer, answer, explainer.segments(answer)):
        html = shown._repr_html_()
        assert html.count("<table") == html.count("</table>") == 1
        assert len(html) < 30_000
        assert "color:inherit;background:transparent" in html
        assert not re.search(r"#[0-9a-f]{3,6}\b|white|black", html)
        assert "\n" not in repr(shown) or isinstance(shown, tdce.Schema)
    assert "not fitted" in tdce.Explainer()._repr_html_()


def test_a_card_says_what_changes_and_where_the_rest_is(answer: tdce.Answer):
    html, first = answer._repr_html_(), answer.changes().iloc[0]
    assert f"{first['feature']}: {first['before']} → {first['after']}" in html
    assert "… 12 more: to_frame()" in html  # of 24 lines


def test_whatever_stands_in_a_table_is_text():
    name, value = "<img src=x onerror=alert(1)>", "<script>alert(2)</script>"
    frame = lending.table(80).rename(columns={"housing": name})
    frame[name] = frame[name].replace("own", value)
    schema = tdce.Schema.infer(frame, "decision")
    assert "<img" not in schema._repr_html_()
    assert "&lt;script&gt;" in schema._repr_html_()
    assert "<script>" not in schema._repr_html_()


# Plots


def test_a_waterfall_ends_where_the_answer_does_and_asks_the_model_in_between(explainer, answer):
    counts = answer.changes().groupby(["row", "option"]).size()
    label, option = counts.idxmax()
    figure = answer.plot(label, option=option)
    assert isinstance(figure, Figure)
    line = answer.lines[list(answer.rows.index).index(label)][option]
    bars = figure.axes[0].patches
    assert len(bars) == len(line.changes) > 1
    assert bars[0].get_x() == pytest.approx(line.before)
    assert bars[-1].get_x() + bars[-1].get_width() == pytest.approx(line.after)
    row = answer.rows.loc[[label]].copy()  # after the first change alone, by another route
    feature = line.reasons[0][0]
    row[feature] = {name: after for name, _, after in line.changes}[feature]
    score = explainer.predict_proba(row)["yes"].iloc[0]
    assert bars[0].get_x() + bars[0].get_width() == pytest.approx(score)
    names = [text.get_text() for text in figure.axes[0].get_yticklabels()]
    assert names[0] == "now"
    assert names[-1] == "then"
    assert names[1].startswith(f"{feature}: ")


def test_what_follows_a_change_is_part_of_its_bar():
    explainer = studios.lawful_explainer()
    frame = lawful.months(rows=60, seed=3).frame
    answer = explainer.explain(frame[(explainer.predict(frame) == "no").to_numpy()].head(15))
    changes = answer.changes()
    label = changes.loc[changes["feature"] == "total_paid", "row"].iloc[0]
    names = [text.get_text() for text in answer.plot(label).axes[0].get_yticklabels()]
    assert not any(name.startswith("total paid") for name in names)
    bars, line = answer.plot(label).axes[0].patches, answer.lines[list(answer.rows.index).index(label)][0]
    assert bars[-1].get_x() + bars[-1].get_width() == pytest.approx(line.after)


def test_a_copy_in_this_process_can_be_drawn_and_a_pickled_one_says_why_not(answer: tdce.Answer):
    assert isinstance(copy.copy(answer).plot(), Figure)
    with pytest.raises(tdce.InputError, match="the model, which is asked for the scores in between, is not at hand"):
        pickle.loads(pickle.dumps(answer)).plot()
    with pytest.raises(tdce.InputError, match="there is no row 'nobody'"):
        answer.plot("nobody")


def test_everybody_is_drawn_from_now_to_then(answer: tdce.Answer):
    left, right = answer.plot_people().axes
    now, then = left.collections[1].get_offsets(), left.collections[2].get_offsets()
    assert now[:, 0].tolist() == sorted(answer.explanation.score_before.tolist())
    assert len(then) == len(answer.rows)
    assert len(right.collections[0].get_offsets()) == len(answer.rows)


@pytest.mark.parametrize("feature", ["income", "debt"])
def test_a_curve_says_where_the_decision_flips(explainer: tdce.Explainer, answer: tdce.Answer, feature: str):
    row = answer.rows.head(1)
    figure = explainer.plot_score(row, feature)
    title = figure.axes[0].get_title(loc="left")
    flips = [float(number.replace(",", "")) for number in re.findall(r"[\d,.]*\d", title.split(";")[0])]
    assert flips
    column = explainer.schema[feature]
    for flip in flips:
        here, next_to_it = row.copy(), row.copy()
        here[feature], step = flip, column.step
        assert explainer.predict(here.astype(row.dtypes)).iloc[0] == "yes"
        next_to_it[feature] = flip - step if feature == "income" else round(flip + step, 2)
        assert explainer.predict(next_to_it.astype(row.dtypes)).iloc[0] == "no"


def test_categories_are_bars_with_the_models_own_scores(explainer: tdce.Explainer, answer: tdce.Answer):
    row = answer.rows.head(1)
    figure = explainer.plot_score(row, "housing")
    names = [text.get_text() for text in figure.axes[0].get_yticklabels()]
    for name, bar in zip(names, figure.axes[0].patches, strict=True):
        other = row.assign(housing=name.removesuffix(" (now)"))
        assert bar.get_width() == pytest.approx(explainer.predict_proba(other)["yes"].iloc[0])
    assert f"{row['housing'].iloc[0]} (now)" in names
    with pytest.raises(tdce.InputError, match="there is no feature 'hosing'; did you mean 'housing'"):
        explainer.plot_score(row, "hosing")
    with pytest.raises(tdce.InputError, match="a data frame of one row"):
        explainer.plot_score(answer.rows, "housing")


def test_a_curve_shows_what_may_not_be_proposed_and_recomputes_what_follows():
    explainer = studios.lawful_explainer()
    row = lawful.months(rows=5, seed=3).frame.head(1)
    figure = explainer.plot_score(row, "months")
    dotted, line = figure.axes[0].lines[:2]
    assert len(dotted.get_xdata()) == len(line.get_xdata())
    months = dotted.get_xdata()[-1]
    fitted = explainer.fitted
    raw = fitted.encoder.read(row)
    raw[0, explainer.schema.names.index("months")] = months
    constraints = tdce.schema.FeasibleSet.of(fitted.encoder, row).constraints
    whole = constraints.follow(raw, fitted.encoder.read(row))
    assert dotted.get_ydata()[-1] == pytest.approx(float(Oracle(fitted.model).score(whole)[0, 1]), abs=1e-6)
    follower = explainer.plot_score(row, "total_paid")
    assert "dotted: may not be proposed" in follower.axes[0].get_title(loc="left")


def test_figures_show_themselves_and_leave_pyplot_alone(answer: tdce.Answer):
    before = "matplotlib.pyplot" in sys.modules
    figure = answer.plot()
    assert isinstance(figure, Picture)
    assert figure._repr_png_().startswith(b"\x89PNG")
    assert ("matplotlib.pyplot" in sys.modules) == before


def test_a_predicted_number_is_drawn_in_its_own_units():
    frame = lending.table(300).drop(columns="decision")
    model = lambda rows: 2.0 * rows["income"].to_numpy(dtype=np.float64)  # noqa: E731
    explainer = tdce.Explainer(model=model, hidden=8, steps=10, progress="silent")
    explainer.fit(frame, favourable=tdce.Range(low=7000), schema=tdce.Schema.infer(frame))
    rows = frame[2 * frame["income"] < 7000].head(2)
    axes = explainer.explain(rows).plot().axes[0]
    assert axes.get_xlabel() == "what the model predicts"
    assert "It flips at 3,500" in explainer.plot_score(rows.head(1), "income").axes[0].get_title(loc="left")


# The studio


@pytest.fixture
def studio(explainer: tdce.Explainer) -> Iterator[tdce.Studio]:
    opened = explainer.studio(lending.refused(explainer, 4), height=500)
    yield opened
    opened.stop()


def test_a_studio_answers_who_has_its_token_until_it_is_stopped(studio: tdce.Studio):
    assert studio.address.startswith("http://127.0.0.1:")
    with httpx.Client(base_url=studio.address, trust_env=False) as client:
        page = client.get("/")
        assert page.status_code == 200
        assert "frame-ancestors http://localhost:*" in page.headers["content-security-policy"]
        assert "x-frame-options" not in page.headers
        assert client.get("/schema").status_code == 401
        assert client.get("/schema", headers={"Authorization": f"Bearer {studio.token}"}).status_code == 200
    assert f'src="{studio.url}"' in studio._repr_html_()
    assert 'height="500"' in studio._repr_html_()
    assert studio.token not in repr(studio)
    studio.stop()
    studio.stop()
    assert "stopped" in repr(studio)
    assert "<iframe" not in studio._repr_html_()
    with pytest.raises(httpx.ConnectError):
        httpx.get(studio.address, trust_env=False)


def test_a_studio_shows_the_people_of_any_data_frame(explainer: tdce.Explainer):
    rows = lending.refused(explainer, 4).reset_index(drop=True)
    opened = explainer.studio(pa.Table.from_pandas(rows))
    try:
        asked = httpx.get(
            f"{opened.address}people", headers={"Authorization": f"Bearer {opened.token}"}, trust_env=False
        )
        assert asked.json()["total"] == 4
    finally:
        opened.stop()


def test_a_studio_refuses_what_it_cannot_show(explainer: tdce.Explainer):
    with pytest.raises(tdce.InputError, match="height is 5"):
        explainer.studio(height=5)
    with pytest.raises(tdce.InputError, match="rows must be a data frame"):
        explainer.studio([1, 2])
    with pytest.raises(tdce.NotFittedError):
        tdce.Explainer().studio()
    with pytest.raises(tdce.InputError, match="column 'income' is not in the table"):
        explainer.studio(pd.DataFrame({"debt": [1.0]}))
