"""The examples of docs/studio.md run as they stand, against a server."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import studio
from fits import SMALL, kept

import tdce
from tdce.datasets.files import Dialect, read_table, write_table
from tdce.serving.settings import ServerSettings

TOKEN = "a-token-that-nobody-guesses"
PAGE = (Path(__file__).parents[1] / "docs" / "studio.md").read_text(encoding="utf-8")


def learned() -> tdce.Explainer:
    data = tdce.load("german")
    made = tdce.Explainer(**SMALL, progress="silent")
    return made.fit(data.frame, label=data.label, favourable=data.favourable, schema=data.schema)


def blocks(kind: str) -> list[str]:
    return re.findall(rf"```{kind}\n(.*?)```", PAGE, flags=re.DOTALL)


@pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl")
def test_the_examples_of_the_page_run(tmp_path):
    explainer = kept("german", learned)
    (question,), (asked, sent) = blocks("json"), blocks("sh")
    (tmp_path / "question.json").write_text(question, encoding="utf-8")
    data = tdce.load("german")
    write_table(tmp_path / "rows.csv", data.part("test").drop(columns=data.label).head(4))
    with studio.connect(explainer, ServerSettings(token=TOKEN)) as client:
        address = str(client.base_url).rstrip("/")

        def run(block: str) -> str:
            script = "set -euo pipefail\n" + block.replace("http://127.0.0.1:8484", address)
            done = subprocess.run(
                ["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=120,
                env=os.environ | {"TDCE_TOKEN": TOKEN},
            )  # fmt: skip
            assert done.returncode == 0, done.stderr
            return done.stdout

        lines = json.loads(run(asked))["lines"]
        run(sent)
    assert len(lines) == 2
    for name in re.findall(r"`(\w+)`", PAGE.partition("`lines` has one entry")[2].partition("`audience` is")[0]):
        assert name in lines[0]
    answer = explainer.explain(read_table(tmp_path / "rows.csv", explainer.schema), n=2).to_frame()
    write_table(tmp_path / "expected.csv", answer, Dialect(excel_safe=True))
    assert (tmp_path / "answer.csv").read_bytes() == (tmp_path / "expected.csv").read_bytes()


def test_the_page_names_every_path_of_the_api_and_nothing_else():
    from tdce.serving.app import make_app

    paths = make_app(kept("german", learned)).app.openapi()["paths"]
    table = PAGE.partition("| request | what it answers |")[2].partition("With `question.json`")[0]
    named = set(re.findall(r"`(?:[A-Z]+ )?(/[^`]*)`", table))
    assert named == set(paths)


def test_the_page_has_the_limits_of_the_code():
    from tdce.serving.settings import ServerLimits

    limits, table = ServerLimits(), PAGE.partition("| limit | default | answer |")[2].partition("`Retry-After`")[0]
    for number in (
        limits.rows,
        limits.file_rows,
        limits.queued_rows,
        limits.active_requests,
        limits.jobs,
        int(limits.burst),
    ):
        assert f"{number:,}" in table
    assert f"{limits.body_bytes // 10**6} MB, {limits.file_bytes // 10**6} MB" in table
    assert f"{int(limits.rate)} per second" in table
    assert f"{limits.body_seconds:g} (a file: {limits.answer_seconds:g})" in table
