"""What a user holds: answers that keep the promises, and artefacts that come back the same."""

import copy
import pickle
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import lending
import numpy as np
import pandas as pd
import pytest
import torch

import tdce
from tdce import InputError
from tdce.methods import driver as explaining
from tdce.methods.algorithm1 import Guided
from tdce.schema.feasible import FeasibleSet


@pytest.fixture(scope="module")
def explainer() -> tdce.Explainer:
    return lending.explainer()


@pytest.fixture(scope="module")
def people(explainer) -> pd.DataFrame:
    return lending.refused(explainer, 150)


@pytest.fixture(scope="module")
def saved(explainer, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("artefact") / "lending.tdce"
    explainer.save(path)
    return path


def test_the_classifier_learns_the_rule_and_says_how_well(explainer):
    report = explainer.report
    assert report["accuracy"] > 0.85 > report["commonest_class"]
    assert report["calibration_error"] < 0.15
    fresh = lending.table(2000, seed=7)
    assert (explainer.predict(fresh) == fresh["decision"]).mean() > 0.85


def test_most_refused_people_get_a_valid_answer(explainer, people):
    answer = explainer.explain(people)
    assert answer.counts()["valid"] > 0.9 * len(people)
    frame = answer.to_frame()
    assert (explainer.predict(frame)[frame["status"] == "valid"] == "yes").all()
    assert (explainer.predict(frame)[frame["status"] == "best_effort"] == "no").all()


def test_the_score_is_the_models_on_exactly_the_returned_values(explainer, people):
    frame = explainer.explain(people, n=2).to_frame()
    np.testing.assert_allclose(explainer.predict_proba(frame)["yes"], frame["score_after"], rtol=1e-5, atol=1e-9)
    before = explainer.predict_proba(people)["yes"].to_numpy().repeat(2)
    np.testing.assert_allclose(before, frame["score_before"], rtol=1e-5, atol=1e-9)


def test_a_best_effort_is_never_worse_than_the_row_itself(explainer, people):
    weak = tdce.Explainer(Guided(start=0.3, guidance=0.5), progress="silent")
    weak.fitted_ = explainer.fitted_
    frame = weak.explain(people).to_frame()
    tried = frame[frame["status"] == "best_effort"]
    assert len(tried) > 20
    assert (tried["score_after"] >= tried["score_before"]).all()


def test_options_are_lines_with_the_valid_ones_first(explainer, people):
    answer = explainer.explain(people.head(40), n=3)
    frame = answer.to_frame()
    assert len(frame) == 120
    assert frame["row"].tolist() == people.index[:40].repeat(3).tolist()
    assert frame["option"].tolist() == [0, 1, 2] * 40
    valid = (frame["status"] == "valid").to_numpy().reshape(40, 3)
    assert (valid[:, :-1] >= valid[:, 1:]).all()


@pytest.mark.parametrize(
    ("count", "asked"),
    [
        pytest.param(1030, {}, marks=pytest.mark.slow),
        (190, {}),
        (150, {"closeness": 0.0}),
        (100, {"n": 2, "immutable": ["housing"]}),
    ],
)
def test_the_same_row_gets_the_same_answer_alone_in_a_crowd_and_shuffled(explainer, count, asked, monkeypatch):
    people = lending.refused(explainer, count)
    assert len(people) == count
    whole = explainer.explain(people, seed=3, **asked).to_frame()
    order = np.random.default_rng(0).permutation(len(people))
    monkeypatch.setattr(explaining, "QUERY_ROWS", 64)  # and in however many blocks
    shuffled = explainer.explain(people.iloc[order], seed=3, **asked).to_frame()
    pd.testing.assert_frame_equal(shuffled.loc[people.index], whole, check_exact=True)
    for i in (0, count // 2, count - 1):
        alone = explainer.explain(people.iloc[[i]], seed=3, **asked).to_frame()
        pd.testing.assert_frame_equal(alone, whole.loc[[people.index[i]]], check_exact=True)
    for part in (people.iloc[:63], people.iloc[::3]):
        some = explainer.explain(part, seed=3, **asked).to_frame()
        pd.testing.assert_frame_equal(some, whole.loc[part.index], check_exact=True)


@pytest.mark.parametrize("closeness", [pytest.param(None, marks=pytest.mark.slow), 0.0])  # tests/test_company.py: 0.2
def test_one_and_two_threads_give_the_same_answer(explainer, people, closeness):
    frames, threads = [], torch.get_num_threads()
    try:
        for count in (1, 2):
            torch.set_num_threads(count)
            frames.append(explainer.explain(people, closeness=closeness).to_frame())
    finally:
        torch.set_num_threads(threads)
    pd.testing.assert_frame_equal(*frames, check_exact=True)


@pytest.mark.slow  # tests/test_selftest.py asks the same of processes with other instruction sets
def test_another_process_gives_the_same_answer(explainer, people, saved, tmp_path):
    people.to_pickle(tmp_path / "people.pkl")
    code = f"""
import pandas as pd, tdce
people = pd.read_pickle({str(tmp_path / "people.pkl")!r})
answer = tdce.Explainer.load({str(saved)!r}).explain(people.iloc[50:60], seed=1)
answer.to_frame().to_pickle({str(tmp_path / "answer.pkl")!r})
"""
    subprocess.run([sys.executable, "-c", code], check=True)
    here = explainer.explain(people, seed=1).to_frame().iloc[50:60]
    pd.testing.assert_frame_equal(pd.read_pickle(tmp_path / "answer.pkl"), here, check_exact=True)


def test_rows_are_encoded_a_block_at_a_time(explainer, monkeypatch):
    """Or memory would grow by an encoded row for every row."""
    monkeypatch.setattr(explaining, "QUERY_ROWS", 64)
    monkeypatch.setattr(explaining, "SNAPPED_AT_A_TIME", 512)
    encoded, encode = [], FeasibleSet.x.func
    monkeypatch.setattr(FeasibleSet, "x", property(lambda self: encoded.append(len(self.own)) or encode(self)))
    explainer.explain(lending.refused(explainer, 107))
    assert max(encoded) == 64
    assert 107 not in encoded


def test_another_seed_gives_another_answer(explainer, people):
    assert not explainer.explain(people, seed=0).to_frame().equals(explainer.explain(people, seed=1).to_frame())


def test_fitting_twice_with_one_seed_learns_the_same():
    one, two = (tdce.Explainer(hidden=16, steps=30, progress="silent", seed=5) for _ in range(2))
    for made in (one, two):
        made.fit(lending.table(60), label="decision")
    first, second = (made.fitted_.diffusion.state_dict() for made in (one, two))
    assert all(torch.equal(first[k], second[k]) for k in first)


def test_nobodys_global_random_state_is_touched(explainer, people):
    torch_state, numpy_state = torch.get_rng_state(), np.random.get_state()[1].copy()
    tdce.Explainer(hidden=16, steps=5, progress="silent").fit(lending.table(100), label="decision")
    explainer.explain(people.head(3))
    assert torch.equal(torch.get_rng_state(), torch_state)
    assert (np.random.get_state()[1] == numpy_state).all()


def test_immutable_by_schema_and_by_question(explainer, people):
    frame = explainer.explain(people, immutable=["age", "housing"]).to_frame()
    assert (frame["age"].to_numpy() == people["age"].to_numpy()).all()
    assert (frame["housing"].to_numpy() == people["housing"].to_numpy()).all()
    assert (frame["income"].to_numpy() != people["income"].to_numpy()).any()


def test_a_person_already_accepted_comes_back_unchanged(explainer):
    rows = pd.DataFrame({"income": [9000], "debt": [10.0], "housing": ["own"], "age": [40]}, index=["Ada"])
    frame = explainer.explain(rows).to_frame()
    assert frame.loc["Ada", "status"] == "already"
    pd.testing.assert_frame_equal(frame[list(rows)], rows)
    assert frame.loc["Ada", "score_before"] == frame.loc["Ada", "score_after"] > 0.5


def test_a_threshold_asks_for_more_certainty(explainer, people):
    sure = explainer.explain(people, threshold=0.9).to_frame()
    valid = sure["status"] == "valid"
    assert valid.any()
    assert (sure.loc[valid, "score_after"] >= 0.9).all()
    assert (sure.loc[sure["status"] == "best_effort", "score_after"] < 0.9).all()


def test_closeness_brings_the_answer_nearer(explainer, people):
    encoder = explainer.fitted_.encoder
    x = encoder.encode(people)
    far, near = (
        (encoder.encode(explainer.explain(people, closeness=c).to_frame()) - x).square().sum(dim=1).mean().item()
        for c in (0.1, 0.85)
    )
    assert near < far


def test_without_a_favourable_class_the_target_is_the_other_one(explainer):
    made = copy.copy(explainer)
    made.fitted_ = replace(explainer.fitted_, favourable=None)
    rows = lending.table(60, seed=3).drop(columns="decision")
    answer = made.explain(rows)
    assert (answer.target != made.predict(rows).to_numpy()).all()
    assert "already" not in answer.counts()


def test_the_words_say_what_the_frame_says(explainer, people):
    rows = people.head(3).assign(age=pd.array([pd.NA, 30, 40], dtype="Int64"))
    answer = explainer.explain(rows)
    changes = answer.changes()
    sentences, speaker = answer.sentences(), answer.speaker()
    assert len(sentences) == 3
    for label, text in zip(rows.index, sentences, strict=True):
        own = changes[changes["row"] == label]
        assert len(own) > 0
        for _, _, feature, before, after in own.itertuples(index=False):
            change = f"{feature} were {speaker.value(feature, after)} instead of {speaker.value(feature, before)}"
            assert change in text.replace("“", "").replace("”", "")


def test_the_page_shows_the_notes(explainer, people, tmp_path):
    explainer.explain(people.head(1).assign(age=150)).to_html(tmp_path / "page.html")
    assert '"note":{"texts":["age 150 is outside the range learned' in (tmp_path / "page.html").read_text(
        encoding="utf-8"
    )


def test_the_page_stands_alone_and_escapes_what_it_shows(explainer, people, tmp_path):
    rows = people.head(2).set_axis(["<b>Zoë</b>", "R&D"])
    explainer.explain(rows, n=2).to_html(tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert '"label":["Person \\u003cb>Zoë\\u003c/b>","Person R&D"]' in text
    assert "<b>Zoë" not in text
    assert not any(word in text for word in ("https:", " src=", "@import", "url("))


# ---- wrong questions


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (lambda f: f.drop(columns="decision"), "no label column 'decision'"),
        (lambda f: f.assign(decision="yes"), "only the value yes"),
        (lambda f: f.assign(decision=np.arange(len(f)) / 3), "different values"),
        (lambda f: f.assign(decision=f["decision"].where(f.index > 3)), "missing in 4 rows"),
        (lambda f: f[["decision"]], "no feature column"),
        (lambda f: f.head(0), "no rows"),
        (lambda f: f.to_numpy(), "must be a data frame, not ndarray"),
        (
            lambda f: f.assign(decision=pd.Timestamp("2026-01-01") + pd.to_timedelta(f.index % 2, "D")),
            "holds Timestamp",
        ),
    ],
)
def test_a_table_that_cannot_be_learned_is_named(change, word):
    with pytest.raises(InputError, match=word):
        tdce.Explainer(hidden=8, steps=5, progress="silent").fit(change(lending.table(60)), label="decision")


def test_a_favourable_value_that_is_no_label_is_named():
    with pytest.raises(InputError, match="favourable 'maybe' is not a value of the label; known: no, yes"):
        tdce.Explainer(progress="silent").fit(lending.table(60), label="decision", favourable="maybe")


def test_an_explainer_that_learned_nothing_says_so(people):
    with pytest.raises(InputError, match="not fitted: call fit"):
        tdce.Explainer().explain(people)


@pytest.mark.parametrize(
    "again", [copy.copy, copy.deepcopy, lambda a: pickle.loads(pickle.dumps(a))], ids=["copy", "deepcopy", "pickle"]
)
def test_an_answer_can_be_copied_and_pickled_and_says_the_same(explainer, people, again):
    answer = explainer.explain(people.head(20), n=2)
    back = again(answer)
    pd.testing.assert_frame_equal(back.to_frame(), answer.to_frame(), check_exact=True)
    pd.testing.assert_frame_equal(back.changes(), answer.changes(), check_exact=True)
    assert back.sentences() == answer.sentences()
    assert explainer.evaluate(back) == explainer.evaluate(answer)


def test_an_answer_of_another_explainer_is_not_measured(explainer, people):
    rows = people.head(5).assign(lucky=7)
    table = lending.table(200).assign(lucky=7)
    other = tdce.Explainer(hidden=8, steps=5, progress="silent").fit(table, label="decision", favourable="yes")
    with pytest.raises(InputError, match=r"about other columns \(income, debt, housing, age, lucky\) than"):
        explainer.evaluate(other.explain(rows))


def test_a_pickled_answer_holds_none_of_the_rows_that_were_learned(explainer, people):
    assert len(pickle.dumps(explainer.explain(people.head(1)))) < explainer.fitted_.raw.nbytes / 2


def test_an_unknown_method_is_named_at_once():
    with pytest.raises(InputError, match="method is 'magic'; it must be one of search, guided"):
        tdce.Explainer("magic").fit(lending.table(60), label="decision")
