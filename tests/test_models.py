"""The user's own model, of every kind: the verdict is its own, on exactly the values that are returned."""

import json
import pickle
import re

import numpy as np
import pandas as pd
import pytest
import user_models
from fits import small
from typer.testing import CliRunner
from user_models import KINDS, NUMBERS, learned, rows, rule, served, table

import tdce
from tdce import AtLeast, Between, Change, InputError, Not, Range
from tdce.cli import app
from tdce.models.endpoint import Endpoint
from tdce.models.frames import FrameBuilder
from tdce.models.goal_wording import describe_goal
from tdce.models.output_goals import AllGoals, ModelDecides
from tdce.models.outputs import Output
from tdce.models.targets import resolve_goal
from tdce.schema.schema import Schema


@pytest.fixture(scope="module")
def explained():
    """Each kind, made and fitted once."""
    made = {}

    def get(kind):
        if kind not in made:
            make, form = KINDS[kind]
            model, frame = make(), table() if form is None else form(table())
            if kind == "array":
                frame = frame[[*NUMBERS, "decision"]]
            made[kind] = model, frame, learned(model, frame)
        return made[kind]

    return get


def says_yes(kind, model, frame):
    """The model asked directly, without anything of ours in between."""
    if kind == "array":
        return model.predict(frame[NUMBERS].to_numpy()) == "yes"
    if kind == "booster":
        import xgboost

        return model.predict(xgboost.DMatrix(frame, enable_categorical=True)) > 0.5
    if kind == "xgboost":
        return model.predict(frame) == 1
    if kind == "torch":
        return (model(user_models.encoder().encode(frame).float()).argmax(dim=1) == 1).numpy()
    if kind == "function":
        return model(frame) > 0.5
    return np.asarray(model.predict(frame)) == "yes"


@pytest.mark.parametrize("kind", KINDS)
def test_every_answer_is_accepted_by_the_model_itself(kind, explained):
    model, frame, explainer = explained(kind)
    asked = rows(frame)[~says_yes(kind, model, rows(frame))].head(12)
    answer = explainer.explain(asked, immutable=["age"])
    found = answer.to_frame()
    assert set(found["status"]) == {"valid"}
    assert says_yes(kind, model, found[asked.columns]).all()
    assert (found["age"] == asked["age"]).all()
    pd.testing.assert_series_equal(found[asked.columns].dtypes, asked.dtypes)
    assert 0 < answer.model_calls < 70
    assert answer.model_rows >= len(asked)


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_names_the_model_and_takes_no_other(kind, explained, tmp_path):
    model, frame, explainer = explained(kind)
    explainer.save(path := tmp_path / "lending.tdce")
    asked = rows(frame)[~says_yes(kind, model, rows(frame))].head(3)
    again = tdce.Explainer.load(path, model=model, progress="silent")
    pd.testing.assert_frame_equal(
        again.explain(asked).to_frame(), explainer.explain(asked).to_frame(), check_exact=True
    )
    with pytest.raises(InputError, match=r"the file does not contain: pass it with Explainer\.load\(path, model=…\)"):
        tdce.Explainer.load(path).explain(asked)
    if kind == "array":
        other = user_models.GradientBoostingClassifier(n_estimators=1).fit(rows(frame).to_numpy(), frame["decision"])
    elif kind == "function":
        other = lambda frame: np.full(len(frame), 0.3)  # noqa: E731
    else:
        other = user_models.pipeline(user_models.LogisticRegression(C=1e-4))
    with pytest.raises(InputError, match="made for another model"):
        tdce.Explainer.load(path, model=other)


def test_a_file_holds_no_pickle(explained, tmp_path):
    _, _, explainer = explained("forest")
    explainer.save(path := tmp_path / "lending.tdce")
    whole = path.read_bytes()
    assert b"sklearn." not in whole
    header = json.loads(whole[8 : 8 + int.from_bytes(whole[:8], "little")])
    named = json.loads(header["__metadata__"]["tdce"])["model"]["models"][0]
    assert (named["kind"], named["name"]) == ("sklearn", "Pipeline")
    assert set(named["versions"]) == {"sklearn"}
    assert len(named["digest"]) == 64
    with pytest.raises(Exception):  # noqa: B017, PT011
        pickle.loads(whole)


def test_an_onnx_file(tmp_path):
    pytest.importorskip("skl2onnx")
    path = user_models.onnx_file(tmp_path / "model.onnx")
    explainer, model = learned(path), user_models.logistic()
    asked = rows(table())[model.predict(rows(table())) == "no"].head(8)
    found = explainer.explain(asked).to_frame()
    assert (found["status"] == "valid").all()
    assert (model.predict(found[asked.columns]) == "yes").all()
    p = model.predict_proba(found[asked.columns])[:, 1]
    assert found["score_after"].to_numpy() == pytest.approx(p, abs=1e-5)  # ONNX computes in float32
    explainer.save(saved := tmp_path / "lending.tdce")
    again = tdce.Explainer.load(saved, model=path, progress="silent")
    pd.testing.assert_frame_equal(again.explain(asked).to_frame(), explainer.explain(asked).to_frame())
    with open(path, "ab") as file:
        file.write(b"\x00")
    with pytest.raises(InputError, match=r"cannot be read as an ONNX model|made for another model"):
        tdce.Explainer.load(saved, model=path)


def test_an_endpoint_is_asked_in_batches_and_again_if_it_fails(monkeypatch):
    with served(rule, failing=2) as (address, asked):
        endpoint = Endpoint(address, batch=300, pause=0.001)
        scores = endpoint(rows(table()))
    assert scores == pytest.approx(rule(rows(table())))
    assert asked == [300, 300, 300, 300, 200]  # the first two failed


def test_an_endpoint_decides():
    with served(rule) as (address, asked):
        explainer = learned(address)
        refused = rows(table())[rule(rows(table())) < 0.5].head(6)
        answer = explainer.explain(refused)
    assert (rule(answer.to_frame()) > 0.5).all()
    assert max(asked) <= Endpoint(address).batch


def test_an_endpoint_that_fails_is_named():
    with pytest.raises(InputError, match=r"at http://127\.0\.0\.1:9/score cannot be reached: .*refused.*is it running"):
        Endpoint("http://127.0.0.1:9/score", tries=2, pause=0.001)(rows(table()))
    with served(lambda frame: [0.5]) as (address, _), pytest.raises(InputError, match="returned 1 scores for 800 rows"):
        Endpoint(address)(rows(table()))
    with served(rule, failing=9) as (address, asked), pytest.raises(InputError, match="answers 503"):
        Endpoint(address, tries=3, pause=0.001)(rows(table()))
    assert len(asked) == 3


# targets


@pytest.fixture(scope="module")
def priced():
    """A model that predicts a number: 20 % of income, less 5 % of the debt, 100 for owners."""

    def rate(frame):
        return (0.2 * frame["income"] - 0.05 * frame["debt"] + 100 * (frame["housing"] == "own")).to_numpy(dtype=float)

    return rate, learned(rate, favourable=Range(low=700), label=None, frame=rows(table()))


@pytest.mark.parametrize(
    ("target", "holds"),
    [
        (None, lambda before, after: after >= 700),
        (Range(620, 680), lambda before, after: (after >= 620) & (after <= 680)),
        (Range(high=400), lambda before, after: after <= 400),
        (Change(50), lambda before, after: after >= before + 50 - 1e-6),
        (Change(-50), lambda before, after: after <= before - 50 + 1e-6),
        (Change(share=0.1), lambda before, after: after >= 1.1 * before - 1e-6),
        ("at most 400", lambda before, after: after <= 400),
        ("620 to 680", lambda before, after: (after >= 620) & (after <= 680)),
        ("-10 %", lambda before, after: after <= 0.9 * before + 1e-6),
    ],
    ids=lambda each: str(each) if isinstance(each, str | Range | Change) else "",
)
def test_a_predicted_number(target, holds, priced):
    rate, explainer = priced
    asked = rows(table()).iloc[:30]
    before = rate(asked)
    answer = explainer.explain(asked, target=target, immutable=["age"])
    found = answer.to_frame()
    after = rate(found[asked.columns])
    assert set(found["status"]) <= {"valid", "already"}
    assert holds(before, after).all()
    assert found["score_before"].to_numpy() == pytest.approx(before, abs=1e-6)
    assert found["score_after"].to_numpy() == pytest.approx(after, abs=1e-6)
    assert (found["status"] == "already").tolist() == holds(before, before).tolist()
    assert "%" not in " ".join(answer.sentences())


def test_several_outputs_at_once():
    """Approved AND at a rate of at most 8."""

    def rate(frame):
        return (14 - frame["income"] / 500).to_numpy(dtype=float)

    explainer = learned({"approve": rule, "rate": rate}, favourable={"approve": "yes", "rate": Range(high=8)})
    asked = rows(table()).iloc[:40]
    found = explainer.explain(asked).to_frame()
    assert set(found["status"]) == {"valid", "already"}
    assert (rule(found) > 0.5).all()
    assert (rate(found) <= 8).all()
    lower = explainer.explain(asked, target={"rate": Range(high=6)}).to_frame()
    assert (rate(lower) <= 6).all()
    text = explainer.explain(asked, target="rate=at most 6").to_frame()
    pd.testing.assert_frame_equal(lower, text)
    cheaper = {"approve": "yes", "rate": Change(-2)}  # than it would be for this row now
    for target in (cheaper, [cheaper] * 40):
        found = explainer.explain(asked, target=target).to_frame()
        moved = (found["status"] != "best_effort").to_numpy()
        assert (rate(found)[moved] <= rate(asked)[moved] - 2 + 1e-6).all()
        assert moved.sum() > 20
    with pytest.raises(InputError, match="the model has several outputs"):
        explainer.explain(asked, target="yes")
    with pytest.raises(InputError, match="no output 'price'; it has: approve, rate"):
        explainer.explain(asked, target={"price": Range(high=6)})


def test_three_classes_and_every_goal():
    frame = table().assign(
        decision=pd.cut(table()["income"] - table()["debt"], 3, labels=["low", "mid", "high"]).astype(str)
    )
    model = user_models.make_pipeline(
        user_models.make_column_transformer(
            (user_models.StandardScaler(), NUMBERS), (user_models.OneHotEncoder(), ["housing"])
        ),
        user_models.LogisticRegression(),
    ).fit(rows(frame), frame["decision"])
    explainer, asked = learned(model, frame, favourable="high"), rows(frame).iloc[:25]
    high, mid = (list(model.classes_).index(name) for name in ("high", "mid"))
    for target, holds in (
        ("low", lambda p, said: said == "low"),
        (Not("mid"), lambda p, said: said != "mid"),
        ("not mid", lambda p, said: said != "mid"),
        (AtLeast("high", 0.8), lambda p, said: p[:, high] >= 0.8),
        (
            Between("mid", 0.3, 0.6),
            lambda p, said: (p[:, mid] >= 0.3) & (p[:, mid] <= 0.6),
        ),
    ):
        found = explainer.explain(asked, target=target).to_frame()
        assert set(found["status"]) <= {"valid", "already"}
        values = found[asked.columns]
        assert holds(model.predict_proba(values), model.predict(values)).all(), target


def test_goals_about_outputs_agree_with_plain_words():
    """The second route: one row after another."""
    import torch

    number = Output(spread=2.0, edges=(1.0, 2.0, 3.0))
    band = resolve_goal(Range(1.5, 2.5), (number,), now=torch.tensor([0.0]))
    value = torch.tensor([[0.0], [1.5], [2.0], [2.5], [4.5]], dtype=torch.double)
    assert band.met(value).tolist() == [False, True, True, True, False]
    assert band.raw_margin(value).tolist() == [-0.75, 0.0, 0.25, 0.0, -1.0]
    assert band.target_class(value).tolist() == [1, 1, 1, 2, 2]
    assert band.family.met(value).tolist() == [False, False, False, False, True]  # upwards, beyond three quarters
    own = Output(classes=("no", "yes"), decides=True, border=0.3)
    wanted = resolve_goal("yes", (own,))
    assert isinstance(wanted, ModelDecides)
    p = torch.tensor([[0.6, 0.4, 0, 1], [0.8, 0.2, 1, 0], [0.4, 0.6, 1, 0]], dtype=torch.double)
    assert wanted.met(p).tolist() == [True, False, False]
    assert (wanted.raw_margin(p) >= 0).tolist() == [True, False, False]
    assert wanted.raw_margin(p)[0].item() == pytest.approx(np.log(0.4 / 0.6) - np.log(0.3 / 0.7))
    both = resolve_goal(
        {"a": "yes", "b": Range(high=1)}, (Output("a", ("no", "yes")), Output("b", spread=1.0, edges=(0.0,)))
    )
    assert isinstance(both, AllGoals)
    p = torch.tensor([[0.3, 0.7, 0.5], [0.3, 0.7, 2.0], [0.7, 0.3, 0.5]], dtype=torch.double)
    assert both.met(p).tolist() == [True, False, False]
    assert describe_goal(both, ("no", "yes", "b")) == "yes and b at most 1"


# what users of other packages suffered from


def test_a_model_with_a_threshold_of_its_own():
    """It says yes from a probability of 0.8 on; so do we."""
    from sklearn.model_selection import FixedThresholdClassifier

    model = FixedThresholdClassifier(user_models.logistic(), threshold=0.8, pos_label="yes").fit(
        rows(table()), table()["decision"]
    )
    explainer = learned(model)
    between = (model.predict(rows(table())) == "no") & (model.predict_proba(rows(table()))[:, 1] > 0.5)
    asked = rows(table())[between].head(10)
    assert len(asked) == 10
    assert (explainer.predict(asked) == "no").all()
    found = explainer.explain(asked).to_frame()
    assert (found["status"] == "valid").all()
    assert (model.predict(found[asked.columns]) == "yes").all()


@pytest.mark.parametrize("labels", [("no", "yes"), (0, 1), (1, 2), (-1, 1), (False, True), (0.0, 1.0)], ids=str)
def test_labels_of_any_kind(labels):
    frame = table().assign(decision=np.where(table()["decision"] == "yes", labels[1], labels[0]))
    model = user_models.pipeline(user_models.LogisticRegression(), frame)
    explainer = learned(model, frame, favourable=labels[1])
    asked = rows(frame)[model.predict(rows(frame)) == labels[0]].head(4)
    found = explainer.explain(asked).to_frame()
    assert (model.predict(found[asked.columns]) == labels[1]).all()


def test_whole_numbers_that_are_categories_stay_whole_numbers():
    frame = table().assign(housing=table()["housing"].map({"rent": 3, "own": 7, "with parents": 9}))

    def model(frame):
        assert frame["housing"].dtype == np.int64
        return rule(frame.assign(housing=np.where(frame["housing"] == 7, "own", "rent")))

    explainer = learned(model, frame, categorical=["housing"])
    found = explainer.explain(rows(frame).iloc[:20]).to_frame()
    assert set(found["housing"]) <= {3, 7, 9}
    assert found["housing"].dtype == np.int64


def test_a_category_that_only_the_query_has_is_named_with_the_way_out(explained):
    explainer = explained("function")[2]
    strange = rows(table()).iloc[:2].assign(housing="boat")
    with pytest.raises(InputError, match="'housing' has category 'boat' in row 0, not seen in fit; known: own, rent"):
        explainer.explain(strange)
    schema = Schema.infer(table(), "decision").change("housing", categories=("own", "rent", "with parents", "boat"))
    found = learned(rule, schema=schema).explain(strange).to_frame()
    assert (rule(found) > 0.5).all()


@pytest.mark.parametrize("columns", [["income", "debt"], ["housing", "band"]], ids=["numbers", "categories"])
def test_only_numbers_and_only_categories(columns):
    frame = table().assign(band=pd.cut(table()["income"] - table()["debt"], 4, labels=list("abcd")).astype(str))

    def model(frame):
        if "income" in frame:
            return (frame["income"] - frame["debt"] > 1000).to_numpy() * 0.8 + 0.1
        return (frame["band"].isin(["c", "d"]) | (frame["housing"] == "own")).to_numpy() * 0.8 + 0.1

    explainer = learned(model, frame[[*columns, "decision"]])
    asked = frame[columns].iloc[:20]
    assert (model(explainer.explain(asked).to_frame()) > 0.5).all()


def test_values_are_judged_as_they_are_returned():
    """A verdict that rounding would turn: debt has two decimals, and the border lies between two of them."""

    def model(frame):
        cents = np.rint(frame["debt"].to_numpy() * 100)
        assert (np.abs(frame["debt"].to_numpy() * 100 - cents) < 1e-6).all()
        return np.where(frame["debt"].to_numpy() < 1000.005, 0.9, 0.1)

    found = learned(model).explain(rows(table()).iloc[:30]).to_frame()
    assert (model(found) > 0.5).all()


def test_ranges_are_kept_and_nothing_found_is_said(explained):
    explainer = explained("function")[2]
    asked = rows(table())[rule(rows(table())) < 0.01].head(10)
    within = explainer.explain(
        asked, rules=["income <= was(income) + 50", "debt >= was(debt) - 50"], immutable=["housing"]
    )
    found = within.to_frame()
    assert (found["income"] <= asked["income"] + 50).all()
    assert (found["debt"] >= asked["debt"] - 50).all()
    assert set(found["status"]) <= {"best_effort", "infeasible"}
    assert found["note"].str.contains("rule").all()


def test_a_model_is_given_what_it_asks_for():
    """Other columns, another order."""
    model = user_models.make_pipeline(user_models.StandardScaler(), user_models.LogisticRegression())
    model.fit(table()[["age", "debt", "income"]], table()["decision"])
    asked = rows(table())[model.predict(table()[["age", "debt", "income"]]) == "no"].head(5)
    found = learned(model).explain(asked).to_frame()
    assert (model.predict(found[["age", "debt", "income"]]) == "yes").all()
    assert (found["housing"] == asked["housing"]).all()  # which the model does not know
    with pytest.raises(InputError, match="needs debt, which is not among the features"):
        learned(model, table().drop(columns="debt"))
    with pytest.raises(InputError, match="trained on an array of 3 columns, but there are 4 features"):
        learned(user_models.array())


# what cannot be a model


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (3, "model is 3; it must be an object with predict_proba"),
        (user_models.LogisticRegression, "the class LogisticRegression; give a trained object"),
        ("model.pkl", "neither an ONNX file"),
        ("missing.onnx", "there is no model file missing.onnx"),
        ({}, "its keys must be the names of outputs"),
        ({1: rule}, "its keys must be the names of outputs"),
    ],
    ids=["number", "class", "pickle", "missing", "empty", "unnamed"],
)
def test_what_is_no_model_is_refused(model, words):
    explainer = tdce.Explainer(model=model, progress="silent")
    with pytest.raises(InputError, match=words):
        explainer.fit(table(), label="decision")


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (lambda frame: np.zeros((len(frame), 3)), "3 numbers for each row, but there are 2 classes"),
        (lambda frame: np.full((len(frame), 2), 0.7), "not probabilities"),
        (lambda frame: np.full(len(frame), np.nan), "not finite"),
        (lambda frame: [0.5], r"shape \(1,\) for 800 rows"),
        (lambda frame: frame["nothing"], "fails: KeyError: 'nothing'"),
        (lambda frame: np.where(frame["age"] > 90, "yes", "perhaps"), None),
    ],
)
def test_answers_that_make_no_sense_are_named(model, words):
    if words is None:  # a label that the table does not have is a class of the model's own
        with pytest.raises(InputError, match="favourable 'good' is not"):
            learned(model, favourable="good")
        return
    with pytest.raises(InputError, match=words):
        learned(model)


class Counting:
    """Says something else each time."""

    def __init__(self):
        self.times = 0

    def __call__(self, frame):
        self.times += 1
        return (rule(frame) + 0.001 * self.times).clip(0, 1)


@pytest.mark.parametrize(
    ("model", "when"),
    [
        (lambda frame: np.random.default_rng().random(len(frame)), "when it is queried again"),
        (Counting(), "when it is queried again"),
        (lambda frame: rule(frame) * np.linspace(1, 0.9, len(frame)), "when the rows come in another order"),
        (lambda frame: rule(frame) * frame["income"].to_numpy() / frame["income"].max(), "for a part of the rows"),
    ],
    ids=["random", "stateful", "position", "batch"],
)
def test_a_model_that_is_no_function_of_the_row_is_noticed(model, when):
    with pytest.raises(InputError, match=f"not a function of the row alone: .* {when}"):
        learned(model)


def test_the_budget_of_rows_is_kept(explained):
    explainer = explained("function")[2]
    asked = rows(table())[rule(rows(table())) < 0.5].head(20)
    free = explainer.explain(asked)
    for budget in (60, 200, 1000):
        answer = explainer.explain(asked, max_model_rows=budget)
        found = answer.to_frame()
        assert answer.model_rows <= budget
        assert set(found["status"]) <= {"valid", "best_effort"}
        missed = found[found["status"] == "best_effort"]
        assert (
            missed["note"]
            .str.contains(f"budget of {budget:,} model rows (max_model_rows) is used up", regex=False)
            .all()
        )
        assert (rule(found[found["status"] == "valid"]) > 0.5).all()
    pd.testing.assert_frame_equal(
        explainer.explain(asked, max_model_rows=10**6).to_frame()[NUMBERS], free.to_frame()[NUMBERS]
    )
    with pytest.raises(InputError, match="max_model_rows is 59, but 20 rows with n=1 need at least 60"):
        explainer.explain(asked, max_model_rows=59)


def test_an_answer_is_not_on_the_very_edge():
    """A plateau: a yes needs a debt below 1000 and an income of at least 2500. One step nearer is still a yes."""

    def model(frame):
        return np.where((frame["debt"] < 1000) & (frame["income"] >= 2500), 0.9, 0.1)

    asked = rows(table())[model(table()) < 0.5].head(40)
    found = learned(model).explain(asked).to_frame()
    nearer = found.assign(
        debt=found["debt"] + 0.01 * np.sign(asked["debt"] - found["debt"]),
        income=found["income"] + 10 * np.sign(asked["income"] - found["income"]).astype(int),
    )
    assert (model(found) > 0.5).all()
    assert (model(nearer) > 0.5).mean() > 0.9


# what a model gets


@pytest.mark.parametrize(
    "dtype", ["int64", "Int64", "int16", "float32", "float64", "Float32", "int64[pyarrow]", "object"]
)
def test_numbers_come_in_the_dtype_of_the_table(dtype):
    frame = pd.DataFrame({"a": pd.array([1, 2, 3] * 10).astype(dtype)})
    schema = Schema.infer(frame)
    written = FrameBuilder.of(schema.features, frame)(schema["a"].read(frame["a"])[:, None])
    pd.testing.assert_frame_equal(written, frame)
    again = FrameBuilder.from_json(
        schema.features, json.loads(json.dumps(FrameBuilder.of(schema.features, frame).to_json()))
    )
    pd.testing.assert_frame_equal(again(schema["a"].read(frame["a"])[:, None]), frame)


@pytest.mark.parametrize("dtype", ["str", "object", "category", "string", "string[pyarrow]", "string[python]"])
@pytest.mark.parametrize("missing", [False, True])
def test_words_come_in_the_dtype_of_the_table(dtype, missing):
    cells = ["x", "y", None if missing else "z"] * 10
    frame = pd.DataFrame({"a": pd.Series(cells).astype(dtype)})
    schema = Schema.infer(frame)
    raw = schema["a"].read(frame["a"])[:, None]
    written = FrameBuilder.of(schema.features, frame)(raw)
    pd.testing.assert_series_equal(written["a"].isna(), frame["a"].isna())
    assert written["a"].dtype == frame["a"].dtype
    assert written["a"].dropna().tolist() == frame["a"].dropna().tolist()
    again = FrameBuilder.from_json(
        schema.features, json.loads(json.dumps(FrameBuilder.of(schema.features, frame).to_json()))
    )
    assert again(raw)["a"].dtype == frame["a"].dtype


def test_flags_and_codes_come_in_the_dtype_of_the_table():
    frame = pd.DataFrame({"flag": [True, False] * 10, "code": np.array([0, 1] * 10, dtype=np.int8)})
    schema = Schema.infer(frame)
    raw = np.column_stack([schema[name].read(frame[name]) for name in frame])
    pd.testing.assert_frame_equal(FrameBuilder.of(schema.features, frame)(raw), frame)
    raw[0] = np.nan
    assert FrameBuilder.of(schema.features, frame)(raw)["code"].isna().tolist() == [True] + [False] * 19


# together with the rest


def test_an_onnx_file_and_an_endpoint_on_the_command_line(tmp_path, monkeypatch):
    """The same answers as in Python; no label is needed where the model predicts a number."""
    pytest.importorskip("skl2onnx")
    small(monkeypatch)
    path, runner = user_models.onnx_file(tmp_path / "model.onnx"), CliRunner()
    table().to_csv(tmp_path / "table.csv", index=False)
    rows(table()).head(9).to_csv(tmp_path / "rows.csv", index=False)
    saved, out = str(tmp_path / "a.tdce"), str(tmp_path / "out.csv")
    fit = ["fit", str(tmp_path / "table.csv"), "--out", saved]
    made = runner.invoke(app, [*fit, "--label", "decision", "--favourable", "yes", "--model", path])
    assert "The model agrees with the label on" in made.output
    ask = ["explain", saved, str(tmp_path / "rows.csv"), "--out", out]
    found = runner.invoke(app, [*ask, "--model", path, "--verbose", "--max-model-rows", "50000"])
    assert re.search(r"The model was queried \d+ times for [\d,]+ rows", found.output.replace("\n", " "))
    answer = pd.read_csv(out)
    assert set(answer["status"]) <= {"valid", "already"}
    assert (user_models.logistic().predict(answer[rows(table()).columns]) == "yes").all()
    assert "which the file does not contain" in str(runner.invoke(app, ask).exception)
    assert "without one, give a model" in str(runner.invoke(app, fit).exception)
    with served(lambda frame: 100 * rule(frame)) as (address, _):
        made = runner.invoke(app, [*fit, "--label", "decision", "--model", address, "--favourable", "at least 60"])
        found = runner.invoke(app, [*ask, "--model", address, "--target", "70 to 90"])
    assert (made.exit_code, found.exit_code) == (0, 0)
    answer = pd.read_csv(out)
    assert ((100 * rule(answer) >= 70) & (100 * rule(answer) <= 90))[answer["status"] != "best_effort"].all()


def test_methods_without_gradients_serve_any_model(explained):
    model, frame, explainer = explained("forest")
    asked = rows(frame)[model.predict(rows(frame)) == "no"].head(6)
    for method in ("nice", "face", "cchvae"):
        other = tdce.Explainer(method, model=model, progress="silent")
        other.fitted_ = explainer.fitted_
        found = other.explain(asked).to_frame()
        valid = found["status"] == "valid"
        assert (model.predict(found[asked.columns][valid]) == "yes").all()
        assert valid.mean() > 0.5, method
    other = tdce.Explainer("wachter", model=model, progress="silent")
    other.fitted_ = explainer.fitted_
    with pytest.raises(
        InputError, match="needs a model with gradients, but this one has none; use cchvae, face or nice"
    ):
        other.explain(asked)


def test_a_torch_module_leads(explained):
    model, frame, explainer = explained("torch")
    other = tdce.Explainer("wachter", model=model, progress="silent")
    other.fitted_ = explainer.fitted_
    asked = rows(frame)[~says_yes("torch", model, rows(frame))].head(6)
    found = other.explain(asked).to_frame()
    assert (found["status"] == "valid").all()


def test_answers_are_measured_whatever_the_model(explained, priced):
    model, frame, explainer = explained("forest")
    asked = rows(frame)[model.predict(rows(frame)) == "no"].head(10)
    measured = explainer.evaluate(explainer.explain(asked), rows(frame))  # there need be no label
    assert measured["validity"] == 1
    assert measured["violations"] == 0
    _, numbers = priced
    answer = numbers.explain(rows(table()).iloc[:30], target=Range(high=400))
    assert numbers.evaluate(answer, rows(table()))["validity"] == 1


def test_a_predicted_number_is_shown_as_one(priced, tmp_path):
    _, explainer = priced
    answer = explainer.explain(rows(table()).iloc[:8], target=Range(620, 680))
    sentence = next(s for s in answer.sentences() if "would be" in s)
    assert "The prediction would be between 620 and 680 if " in sentence
    answer.to_html(tmp_path / "page.html")
    assert "The prediction would be between 620 and 680, " in (tmp_path / "page.html").read_text()


def test_the_model_is_counted_in_the_report(explained):
    model, frame, _ = explained("logistic")
    explainer = learned(model)
    assert explainer.report["model_calls"] == explainer.report["model_rows"] == 0
    one = explainer.explain(rows(frame).iloc[:5])
    two = explainer.explain(rows(frame).iloc[5:9])
    assert explainer.report["model_calls"] == one.model_calls + two.model_calls
    assert explainer.report["model_rows"] == one.model_rows + two.model_rows


def test_classes_in_another_order_are_noticed():
    swapped = user_models.pipeline(user_models.LogisticRegression())
    explainer = learned(lambda frame: 1 - swapped.predict_proba(frame)[:, 1])
    assert any("are its classes in another order than no, yes?" in hint for hint in explainer.hints)
    assert not any("another order" in hint for hint in learned(swapped).hints)


def test_an_id_that_the_model_asks_for_never_changes():
    frame = table().assign(customer=np.arange(len(table())) + 10_000)
    model = user_models.make_pipeline(user_models.StandardScaler(), user_models.LogisticRegression())
    model.fit(frame[[*NUMBERS, "customer"]], frame["decision"])
    explainer = learned(model, frame)
    assert explainer.schema["customer"].immutable
    asked = rows(frame)[model.predict(frame[[*NUMBERS, "customer"]]) == "no"].head(5)
    found = explainer.explain(asked).to_frame()
    assert (found["customer"] == asked["customer"]).all()
    assert (model.predict(found[[*NUMBERS, "customer"]]) == "yes").all()


def test_a_row_has_the_same_answer_in_any_company(explained):
    for kind in ("histogram", "function", "labels only"):
        model, frame, explainer = explained(kind)
        asked = rows(frame)[~says_yes(kind, model, rows(frame))].head(20)
        together = explainer.explain(asked, n=2).to_frame()
        for i in (0, 7, 19):
            alone = explainer.explain(asked.iloc[[i]], n=2).to_frame()
            pd.testing.assert_frame_equal(alone, together[together["row"] == asked.index[i]], check_exact=True)


TARGETS = {
    "class": {},
    "threshold": {"threshold": 0.7},
    "not": {"target": Not("no")},
    "options": {"n": 3},
}
RULES = {
    "free": {},
    "frozen": {"immutable": ["housing", "age"]},
    "rules": {"rules": ["debt <= was(debt)", "at most 2 changes"]},
    "costs": {"costs": {"income": 5, "debt": 0.5}},
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("rule", RULES)
def test_every_model_with_every_target_under_every_rule(kind, target, rule, explained):
    model, frame, explainer = explained(kind)
    asked = rows(frame)[~says_yes(kind, model, rows(frame))].head(10)
    if kind == "array" and rule == "frozen":
        pytest.skip("it has no housing")
    if kind in ("labels only", "svm") and target == "threshold":
        pytest.skip("it has no probabilities")
    answer = explainer.explain(asked, **TARGETS[target], **RULES[rule])
    found = answer.to_frame()
    valid = found[found["status"] == "valid"]
    assert len(valid) > 0
    assert says_yes(kind, model, valid[asked.columns]).all()
    before = asked.loc[found["row"]].reset_index(drop=True)
    now = found[asked.columns].reset_index(drop=True)
    if rule == "frozen":
        pd.testing.assert_frame_equal(now[["housing", "age"]], before[["housing", "age"]])
    if rule == "rules":
        assert (now["debt"] <= before["debt"]).all()
        assert ((now != before).sum(axis=1) <= 2).all()
    if target == "threshold":
        assert (valid["score_after"] >= 0.7).all()
