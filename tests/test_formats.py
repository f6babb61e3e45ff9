"""Artefacts of older formats: a newer tdce reads what the last minor version wrote, or says how to convert it."""

import re
from pathlib import Path

import mutants
import pandas as pd
import pytest
from safetensors.torch import save

import tdce
from tdce.explainer.formats import UPGRADES, upgraded
from tdce.explainer.sealed_file import BLANK, DIGEST, FORMAT, OLDEST, _digest

ROOT = Path(__file__).parents[1]
KEPT = ROOT / "tests" / "golden" / "artefacts"
FORMATS = sorted(int(path.stem.removeprefix("format-")) for path in KEPT.glob("*.tdce"))


@pytest.mark.parametrize("form", FORMATS)
def test_a_kept_artefact_says_what_it_said_when_it_was_written(form):
    explainer = tdce.Explainer.load(KEPT / f"format-{form}.tdce", progress="silent")
    rows = pd.read_csv(KEPT / f"format-{form}.csv")
    pd.testing.assert_series_equal(explainer.predict_proba(rows)["yes"], rows["yes"], atol=1e-6, rtol=0)
    refused = rows[rows["yes"] < 0.5].drop(columns="yes")
    answer = explainer.explain(refused).to_frame()
    assert (answer["status"] == "valid").all()
    assert (answer["age"] == refused["age"]).all()


@pytest.mark.parametrize("form", FORMATS)
def test_a_kept_artefact_is_saved_in_todays_format(form, tmp_path):
    explainer = tdce.Explainer.load(KEPT / f"format-{form}.tdce", progress="silent")
    explainer.save(tmp_path / "now.tdce")
    whole = (tmp_path / "now.tdce").read_bytes()
    assert upgraded(whole) is whole
    again = tdce.Explainer.load(tmp_path / "now.tdce", progress="silent")
    rows = pd.read_csv(KEPT / f"format-{form}.csv")
    assert again.predict_proba(rows).equals(explainer.predict_proba(rows))


def test_every_format_that_is_read_is_kept_and_has_a_way_to_the_next():
    """Who raises FORMAT runs scripts/keep_artefact.py, and writes an upgrade or raises OLDEST with docs/formats.md."""
    assert list(range(OLDEST, FORMAT + 1)) == FORMATS
    assert sorted(UPGRADES) == list(range(OLDEST, FORMAT))


def test_an_older_file_is_no_less_checked(tmp_path):
    whole = (KEPT / f"format-{OLDEST}.tdce").read_bytes()
    for at in (DIGEST.start, DIGEST.stop + 200, len(whole) // 2, len(whole) - 1):
        (tmp_path / "a.tdce").write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        with pytest.raises(tdce.InputError, match="cannot be loaded"):
            tdce.Explainer.load(tmp_path / "a.tdce")


def test_an_older_file_that_was_forged_is_refused(tmp_path):
    """With an unbroken seal, but without the tensor that tells how many columns there are."""
    whole = (KEPT / f"format-{OLDEST}.tdce").read_bytes()
    forged = whole.replace(b'"rows.raw"', b'"rows.rax"')
    assert forged != whole
    forged = (
        forged[: DIGEST.start]
        + _digest(forged[: DIGEST.start] + BLANK.encode() + forged[DIGEST.stop :])
        + forged[DIGEST.stop :]
    )
    (tmp_path / "a.tdce").write_bytes(forged)
    with pytest.raises(tdce.InputError, match=r"rows\.ra"):
        tdce.Explainer.load(tmp_path / "a.tdce")


def test_a_format_that_is_too_old_names_the_page_with_the_way_out(tmp_path):
    _, tensors = mutants.opened((KEPT / f"format-{FORMAT}.tdce").read_bytes())
    text = '{"sha256":"' + BLANK + '","format":1}'
    (tmp_path / "a.tdce").write_bytes(save(tensors, {"tdce": text}))
    with pytest.raises(tdce.InputError, match=rf"format 1, this tdce reads {OLDEST} to {FORMAT} .*docs/formats\.md"):
        tdce.Explainer.load(tmp_path / "a.tdce")


def test_the_page_says_which_formats_are_read():
    page = (ROOT / "docs" / "formats.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| (\d+) \|.*\| read \|$", page, flags=re.MULTILINE) == [
        str(form) for form in reversed(FORMATS)
    ]
    (version,) = re.findall(
        r'^version = "(\d+\.\d+)', (ROOT / "pyproject.toml").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert re.search(rf"^\| {FORMAT} \| {version} \|", page, flags=re.MULTILINE)
