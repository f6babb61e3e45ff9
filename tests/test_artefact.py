"""Artefacts: they come back the same, every change of a byte is noticed, and nothing in them is believed unchecked."""

import dataclasses
import json
import time
from pathlib import Path

import mutants
import numpy as np
import pandas as pd
import pytest
import torch
from safetensors.torch import save as to_bytes

import tdce
from tdce import InputError
from tdce.explainer.sealed_file import FORMAT, OLDEST, seal
from tdce.methods.algorithm1 import Guided, GuidedLiteral
from tdce.methods.baselines.wachter import Wachter
from tdce.methods.guided import GuidedSearch
from tdce.methods.registry import METHODS
from tdce.methods.search import DiffusionSearch


@pytest.fixture(scope="module")
def explainer() -> tdce.Explainer:
    return mutants.explainer(seed=5, tau=(0.6, 0.3), keep_rows=True)


@pytest.fixture(scope="module")
def people(explainer) -> pd.DataFrame:
    frame = mutants.table(300, seed=1).drop(columns="decision")
    return frame[(explainer.predict(frame) == "no").to_numpy()].head(60)


@pytest.fixture(scope="module")
def whole(explainer, tmp_path_factory) -> bytes:
    path = tmp_path_factory.mktemp("artefact") / "small.tdce"
    explainer.save(path)
    return path.read_bytes()


def loaded(content: bytes, folder: Path) -> tdce.Explainer:
    (folder / "a.tdce").write_bytes(content)
    return tdce.Explainer.load(folder / "a.tdce", progress="silent")


def refusal(content: bytes, folder: Path) -> str:
    with pytest.raises(InputError) as error:
        loaded(content, folder)
    assert str(error.value).startswith(f"{folder / 'a.tdce'} cannot be loaded: ")
    assert str(error.value).endswith("; fit and save it again")
    return str(error.value)


# ---- it comes back


def test_an_explainer_comes_back_with_its_settings_and_its_answers(explainer, people, whole, tmp_path):
    back = loaded(whole, tmp_path)
    assert (back.hidden, back.tau, back.steps, back.seed, back.keep_rows) == (16, (0.6, 0.3), 20, 5, True)
    assert back.method == explainer.method
    assert back.schema == explainer.schema
    here, there = (made.explain(people, n=2) for made in (explainer, back))
    pd.testing.assert_frame_equal(here.to_frame(), there.to_frame(), check_exact=True)
    assert explainer.evaluate(here) == back.evaluate(there)  # by autoencoders of the explainer's seed


def test_two_fits_of_the_same_table_give_the_same_bytes(whole, tmp_path):
    mutants.explainer(seed=5, tau=(0.6, 0.3), keep_rows=True).save(tmp_path / "again.tdce")
    assert (tmp_path / "again.tdce").read_bytes() == whole
    loaded(whole, tmp_path).save(tmp_path / "copy.tdce")
    assert (tmp_path / "copy.tdce").read_bytes() == whole


def test_the_report_keeps_all_but_the_clock(explainer, whole, tmp_path):
    assert explainer.report["seconds"] > 0
    assert explainer.report["fitted"].endswith(" UTC")
    kept = {k: v for k, v in explainer.fitted.report.items() if k not in ("seconds", "fitted")}
    assert loaded(whole, tmp_path).fitted.report == kept


@pytest.mark.parametrize(
    "method", [*METHODS, Wachter(distance="l2", steps=7), GuidedSearch(tau=(0.3, 0.1), steps=None)]
)
def test_every_method_comes_back_with_all_its_settings(explainer, method, tmp_path):
    made = tdce.Explainer(method, progress="silent")
    made.fitted_ = explainer.fitted_
    made.save(tmp_path / "m.tdce")
    assert tdce.Explainer.load(tmp_path / "m.tdce").method == (METHODS[method]() if method in METHODS else method)
    content = mutants.opened((tmp_path / "m.tdce").read_bytes())[0]
    assert content["method"]["settings"]  # so that an artefact does not change its answers when a default does


def test_what_could_not_be_loaded_is_not_saved(explainer, tmp_path):
    fitted = explainer.fitted_
    wrong = {
        "label": ("de", "cision"),
        "decides": dataclasses.replace(fitted.decides, classes=(pd.Timestamp("2026-01-01"), "yes")),
        "report": fitted.report | {"held_out_loss": {"classifier": np.inf, "diffusion": 1.0}},
        "favourable": "maybe",
    }
    for key, value in wrong.items():
        made = tdce.Explainer(progress="silent")
        made.fitted_ = dataclasses.replace(fitted, **{key: value})
        with pytest.raises(InputError, match="this explainer cannot be saved"):
            made.save(tmp_path / "no.tdce")
    assert not list(tmp_path.iterdir())


# ---- every byte counts


def test_any_changed_byte_is_noticed(whole, tmp_path):
    header = 8 + int.from_bytes(whole[:8], "little")
    for at in {*range(0, header, 37), *range(header, len(whole), 211), 7, header - 1, len(whole) - 1}:
        for bit in (1, 32):  # 32: the case of a letter, a space for a zero byte
            refusal(whole[:at] + bytes([whole[at] ^ bit]) + whole[at + 1 :], tmp_path)


def test_swapped_class_names_are_noticed(whole, tmp_path):
    swapped = whole.replace(b'[\\"no\\",\\"yes\\"]', b'[\\"yes\\",\\"no\\"]')
    assert swapped != whole
    assert "its bytes do not match its checksum" in refusal(swapped, tmp_path)


def test_a_byte_more_or_less_is_noticed(whole, tmp_path):
    for changed in (whole + b"\0", whole[:-1], whole[:-8], b"", whole[:100]):
        refusal(changed, tmp_path)


def test_foreign_older_and_newer_files_are_named(whole, tmp_path):
    content, tensors = mutants.opened(whole)
    old = to_bytes(tensors, {"tdce": json.dumps({"format": 1, "checksum": "0", **content})})
    new = to_bytes(tensors, {"tdce": json.dumps({"format": FORMAT + 1, "checksum": "0", **content})})
    assert f"format 1, this tdce reads {OLDEST} to {FORMAT} (an older tdce wrote it" in refusal(old, tmp_path)
    newer = f"format {FORMAT + 1}, this tdce reads {OLDEST} to {FORMAT} (a newer tdce wrote it, update this one)"
    assert newer in refusal(new, tmp_path)
    assert "not one that tdce wrote" in refusal(to_bytes(tensors, {}), tmp_path)
    assert "damaged or not a tdce artefact" in refusal(b"PK\x03\x04 not this", tmp_path)
    with pytest.raises(InputError, match="there is no file"):
        tdce.Explainer.load(tmp_path / "none.tdce")


# ---- nothing is believed, though the checksum was redone

FORGED = [
    ("diffusion times", 10**30, "diffusion times is"),
    ("diffusion hidden", 2**31, "diffusion hidden is 2147483648"),
    ("classifier hidden", 2**14, "'classifier.network.inputs.weight' is F32 [16, 10], not F32 [16384, 10]"),
    ("diffusion blocks", 10**9, "diffusion blocks is"),
    ("diffusion blocks", 64, "has no 'diffusion.network.blocks.4.first.weight'"),
    ("classifier width", 8, "does not fit its schema and its classes"),
    ("diffusion tau", [0.5], "diffusion tau is [0.5], not two numbers"),
    ("diffusion tau", [0.0, 0.5], "two numbers from 0.01 to 100"),
    ("outputs 0 classes", ["no"], "output classes is ['no'], not a list of 2 to 50"),
    ("outputs 0 classes", ["no", "no"], "not a list of 2 to 50 different"),
    ("outputs 0 classes", ["no", None], "words, numbers or true/false"),
    ("outputs 0 classes", ["no", "yes", "maybe"], "does not fit its schema and its classes"),
    ("outputs 0 classes", list(range(51)), "not a list of 2 to 50"),
    ("outputs 0 classes", [], "its output has both classes and groups of numbers, or neither"),
    ("outputs 0 edges", [1.0, 0.5], "output edges is [1.0, 0.5], not a list of numbers in order"),
    ("outputs 0 spread", 0, "output spread is 0, not a number above 0"),
    ("outputs 0 decides", True, "its classifier does not fit its outputs"),
    ("outputs", [], "its list of outputs is empty"),
    ("model", {"models": []}, "it has a classifier as well as a model, or neither"),
    ("classifier", None, "it has a classifier as well as a model, or neither"),
    ("favourable", "maybe", "favourable 'maybe' is not a value of the label; known: no, yes"),
    ("favourable", [1], "favourable is [1], not a class, a range or null"),
    ("favourable", {"range": [1, 2]}, "favourable is Range(1, 2)"),
    ("label", "income", "label 'income' is also a feature"),
    ("label", None, "it has a classifier and no label"),
    ("label", 1.5, "label is 1.5, not text or a whole number"),
    ("method name", "magic", "method name is 'magic', not one of search"),
    ("method settings", {}, "method search has no 'closeness'"),
    ("method settings closeness", 2, "closeness is 2; it must be a number from 0 to 1"),
    ("method settings closeness", "far", "closeness is 'far'; it must be a number"),
    ("method settings task_", None, "method search has 'task_', which is not known"),
    ("settings seed", 2**64, "settings seed is 18446744073709551616"),
    ("settings steps", 1.5, "settings steps is 1.5"),
    ("settings keep_rows", 1, "settings keep_rows is 1, not true or false"),
    ("settings keep_rows", False, "does not keep its training rows, but has some"),
    ("diffusion classes", 3, "its diffusion model does not fit its classes"),
    ("diffusion classes", 51, "diffusion classes is 51, not a whole number from 0 to 50"),
    ("report", [], "report is [], not an object"),
    ("report rows", 5, "training rows, more than the 5 of its table"),
    ("report seconds", 1.0, "has 'seconds', which is not known"),
    ("report accuracy", True, "report accuracy is True, not a number from 0 to 1"),
    ("seal", "wax", "content has 'seal', which is not known"),
    ("schema", [], "schema is [], not an object"),
    ("schema tdce_schema", 2, "schema must be a JSON object"),
    ("schema features", [], "there is no feature column"),
    ("schema extra", 1, "the schema has an unknown part 'extra'"),
]


@pytest.mark.parametrize(("where", "value", "words"), FORGED)
def test_forged_content_is_named_at_once(whole, tmp_path, where, value, words):
    content, tensors = mutants.opened(whole)
    holder, names = content, where.split()
    for name in names[:-1]:
        holder = holder[int(name) if isinstance(holder, list) else name]
    holder[names[-1]] = value
    began = time.process_time()
    assert words in refusal(seal(content, tensors), tmp_path)
    assert time.process_time() - began < 2


def test_content_without_a_name_is_named(whole, tmp_path):
    content, tensors = mutants.opened(whole)
    for name in content:
        rest = {k: v for k, v in content.items() if k != name}
        assert f"has no {name!r}" in refusal(seal(rest, tensors), tmp_path)


@pytest.mark.parametrize(
    "json_text",
    ["NaN", "-Infinity", "1e999", "1" * 5000, "[" * 100_000, '"\\ud800"', '"no","label":"no"', '"no"}', '"\x01"'],
)
def test_json_that_is_no_json_of_ours_is_refused(whole, tmp_path, json_text):
    content, entries, body = mutants.parts(whole)
    text = mutants.text_of(content).replace('"label":"decision"', f'"label":{json_text}')
    header = json.dumps({"__metadata__": {"tdce": text}, **entries}, separators=(",", ":"))
    assert "not one that tdce wrote" in refusal(mutants.resealed(mutants.framed(header, body)), tmp_path)


def first(tensor: torch.Tensor, value: float) -> torch.Tensor:
    out = tensor.clone()
    out.view(-1)[0] = value
    return out


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("classifier.network.inputs.weight", lambda t: first(t, torch.nan), "not a number, or is too large"),
        ("diffusion.network.outputs.bias", lambda t: first(t, torch.inf), "not a number, or is too large"),
        ("diffusion.network.norm.weight", lambda t: first(t, 1e30), "not a number, or is too large"),
        ("diffusion.low", lambda t: t + 100, "low end is above its high end"),
        ("classifier.temperature", lambda t: t * 0, "the temperature 0"),
        ("scale.0.raw", lambda t: t.flip(0), "scale of 'income' does not increase"),
        ("scale.1.score", lambda t: t * 0, "scale of 'debt' does not increase"),
        ("scale.1.raw", lambda t: t[:-1].clone(), "'scale.1.score' is F64"),
        ("average.2", lambda t: t * 2, "shares of the categories of 'housing' do not add up to 1"),
        ("average.2", lambda t: t.float(), "is F32 [3], not F64 [3]"),
        ("rows.y", lambda t: first(t, 2), "class that is not in its list"),
        ("rows.y", lambda t: t[1:].clone(), "'rows.y' is I64"),
        ("rows.raw", lambda t: first(t, 1e9), "a value of 'income' that was never learned"),
        ("rows.raw", lambda t: first(t.flip(1), 5.0).flip(1), "a value of 'phone' that was never learned"),
        ("synthetic.raw", lambda t: first(t, 1e9), "synthetic rows have a value of 'income' that was never learned"),
        ("synthetic.raw", lambda t: t[:0].clone(), "it has no synthetic rows"),
        ("synthetic.raw", lambda t: t[:, 1:].clone(), "'synthetic.raw' is F64"),
        ("energy_quantiles", lambda t: t.flip(1), "'energy_quantiles' does not increase"),
        (
            "energy_quantiles",
            lambda t: first(t, torch.nan),
            "'energy_quantiles' does not increase, or has a value that is not a number",
        ),
        (
            "energy_quantiles",
            lambda t: first(t, -torch.inf),
            "'energy_quantiles' does not increase, or has a value that is not a number",
        ),
        ("energy_quantiles", lambda t: t[1:].clone(), "'energy_quantiles' is F64 [1, 129], not F64 [2, 129]"),
    ],
)
def test_forged_tensors_are_named(whole, tmp_path, name, change, words):
    content, tensors = mutants.opened(whole)
    assert words in refusal(seal(content, tensors | {name: change(tensors[name]).contiguous()}), tmp_path)


def test_a_tensor_more_or_less_is_named(whole, tmp_path):
    content, tensors = mutants.opened(whole)
    assert "has 'x', which is not known" in refusal(seal(content, tensors | {"x": torch.zeros(1)}), tmp_path)
    del tensors["rows.y"]
    assert "has no 'rows.y'" in refusal(seal(content, tensors), tmp_path)


# ---- without the training rows


@pytest.fixture(scope="module")
def without(explainer, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("artefact") / "without.tdce"
    made = tdce.Explainer(explainer.method, hidden=16, steps=20, seed=5, tau=(0.6, 0.3), progress="silent")
    made.fitted_ = explainer.fitted_
    made.save(path)
    return path


def test_by_default_the_file_holds_nobodys_record(explainer, whole, without):
    content, tensors = mutants.opened(without.read_bytes())
    assert tensors["rows.raw"].numel() == tensors["rows.y"].numel() == 0
    with_rows, of_rows = mutants.opened(whole)
    assert not content["settings"].pop("keep_rows")
    assert with_rows["settings"].pop("keep_rows")
    assert content == with_rows
    for name in tensors.keys() - {"rows.raw", "rows.y"}:
        torch.testing.assert_close(tensors[name], of_rows[name], rtol=0, atol=0, equal_nan=True)
    assert len(explainer.fitted_.raw) > 0  # the explainer in hand keeps its own


def test_what_a_file_says_of_its_rows_is_so(whole, without, tmp_path):
    (kept, rows), (left_out, _) = mutants.opened(whole), mutants.opened(without.read_bytes())
    none = {"rows.raw": rows["rows.raw"][:0].clone(), "rows.y": rows["rows.y"][:0].clone()}
    assert "says that it keeps its training rows, but has none" in refusal(seal(kept, rows | none), tmp_path)
    assert "does not keep its training rows, but has some" in refusal(seal(left_out, rows), tmp_path)
    made = tdce.Explainer.load(without, progress="silent")
    made.keep_rows = True
    with pytest.raises(InputError, match="cannot be saved: it says that it keeps its training rows, but has none"):
        made.save(tmp_path / "b.tdce")


def test_the_default_method_answers_without_rows_as_with_them(explainer, without, people):
    here, there = (made.explain(people) for made in (explainer, tdce.Explainer.load(without, progress="silent")))
    pd.testing.assert_frame_equal(here.to_frame(), there.to_frame(), check_exact=True)


@pytest.mark.parametrize(
    "method",
    [
        DiffusionSearch(),
        DiffusionSearch(closeness=0.0),
        Guided(steps=20),
        GuidedLiteral(steps=20),
        Wachter(distance="l2"),
    ],
)
def test_without_rows_one_can_still_explain(without, people, method):
    made = tdce.Explainer.load(without, progress="silent")
    made.method = method
    frame = made.explain(people, n=2, immutable=["phone"]).to_frame()
    assert len(frame) == 2 * len(people)
    assert (frame["phone"].to_numpy() == people["phone"].to_numpy().repeat(2)).all()
    assert (frame["status"] == "valid").mean() > (0.6 if isinstance(method, DiffusionSearch) else 0.2)
    assert ((made.predict(frame) == "yes") == (frame["status"] == "valid")).all()


@pytest.mark.parametrize("method", ["face", "counternet", "cchvae", "revise", "clue", "wachter", "nice"])
def test_without_rows_a_method_that_needs_them_says_so(without, people, method):
    made = tdce.Explainer.load(without, progress="silent")
    made.method = method
    with pytest.raises(InputError, match=r"this artefact holds none; fit it again with Explainer\(keep_rows=True\)"):
        made.explain(people)


def test_without_rows_the_metrics_compare_with_the_synthetic_people(without, people):
    made = tdce.Explainer.load(without, progress="silent")
    answer = made.explain(people)
    fitted = made.fitted_
    frame = fitted.encoder.write(fitted.synthetic, pd.DataFrame(index=range(len(fitted.synthetic))))
    table = frame.assign(decision=made.predict(frame))
    by_hand = made.evaluate(answer, table)
    of_held_out = ("held_out_distance", "coherence", "two_sample", "lof_outliers", "low_density")  # another length: all
    assert made.evaluate(answer) == {k: v for k, v in by_hand.items() if k not in of_held_out}


def test_with_rows_of_one_class_only_the_metrics_say_so(whole, people, tmp_path):
    content, tensors = mutants.opened(whole)
    made = loaded(seal(content, tensors | {"rows.y": torch.zeros_like(tensors["rows.y"])}), tmp_path)
    with pytest.raises(InputError, match="none of the 64 rows are of the target class"):
        made.evaluate(made.explain(people))


def test_a_very_large_table_can_be_saved(whole, tmp_path):
    content, tensors = mutants.opened(whole)
    content["report"]["rows"] = 5_000_000_000
    (tmp_path / "a.tdce").write_bytes(seal(content, tensors))
    assert tdce.Explainer.load(tmp_path / "a.tdce").report["rows"] == 5_000_000_000


def test_classes_of_several_types_come_back(tmp_path):
    frame = pd.DataFrame({"x": range(30), "y": [1, "1", True] * 10})
    made = tdce.Explainer(hidden=8, steps=5, progress="silent").fit(frame, label="y")
    made.save(tmp_path / "a.tdce")
    back = tdce.Explainer.load(tmp_path / "a.tdce").fitted_.classes
    assert [(type(c), c) for c in back] == [(type(c), c) for c in made.fitted_.classes]
    assert len(back) == 3
