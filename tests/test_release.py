"""Releases: the same bytes twice, and a container that is linted and takes its token from a secret."""

import json
import os
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
import release

import tdce

ROOT = Path(__file__).parents[1]
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")


def test_two_builds_that_differ_are_named(tmp_path, capsys):
    for name, content in (("one", b"a"), ("two", b"a")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "x.whl").write_bytes(content)
    release.compare(tmp_path / "one", tmp_path / "two")
    assert capsys.readouterr().out == "x.whl: the same bytes twice\n"
    (tmp_path / "two" / "x.whl").write_bytes(b"b")
    with pytest.raises(SystemExit, match=r"differ in x\.whl"):
        release.compare(tmp_path / "one", tmp_path / "two")
    (tmp_path / "two" / "y.whl").write_bytes(b"a")
    with pytest.raises(SystemExit, match="different files"):
        release.compare(tmp_path / "one", tmp_path / "two")


@pytest.mark.slow
def test_a_commit_is_built_twice_with_the_same_bytes(tmp_path):
    pytest.importorskip("build")
    first, second = (release.build(release.export("HEAD", tmp_path / name)) for name in ("one", "a longer name"))
    release.compare(first, second)


def test_the_changelog_has_this_version_below_nothing_but_what_is_not_released():
    page = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    first, *_ = [title for title in re.findall(r"^## (.*)$", page, re.MULTILINE) if title != "Unreleased"]
    assert first == tdce.__version__


def test_the_image_runs_as_another_user_is_checked_and_holds_no_secret():
    stages = re.split(r"^FROM ", DOCKERFILE, flags=re.MULTILINE)
    last = stages[-1]
    assert re.search(r"^USER 10001:10001$", last, flags=re.MULTILINE)
    assert last.index("useradd") < last.index("USER 10001") < last.index("ENTRYPOINT")
    assert re.search(r"^HEALTHCHECK .*/health", last.replace("\\\n", ""), flags=re.MULTILINE)
    assert "TDCE_TOKEN=" not in DOCKERFILE
    command = json.loads(re.findall(r"^CMD (\[.*\])$", last.replace("\\\n", ""), flags=re.MULTILINE)[-1])
    options = list(pairwise(command))
    assert ("--token-file", "/run/secrets/tdce_token") in options
    assert (
        "--name",
        "127.0.0.1",
    ) in options  # by which the health check asks; the server refuses names it does not know


def test_the_image_gets_nothing_but_the_wheel_and_the_versions():
    lines = [line for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines() if line[0] != "#"]
    assert lines == ["*", "!dist/*.whl", "!constraints.txt"]


def serve(*words: object, **env: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tdce", "serve", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, env=os.environ | env, timeout=60, check=False)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (None, "the token's file FILE cannot be read: No such file or directory; mount the secret there"),
        (b"\xff\xfe", "the token's file FILE cannot be read: it is not text"),
        (b"short\n", "the token must have at least 16 ASCII characters"),
    ],
)
def test_a_token_that_cannot_be_read_ends_the_server(text, words, tmp_path):
    file = tmp_path / "token"
    if text is not None:
        file.write_bytes(text)
    done = serve("none.tdce", "--token-file", file)
    assert done.returncode == 2
    assert words.replace("FILE", str(file)) in done.stderr


def test_two_tokens_are_one_too_many(tmp_path):
    done = serve("none.tdce", TDCE_TOKEN="a-token-that-nobody-guesses", TDCE_TOKEN_FILE=str(tmp_path / "token"))
    assert done.returncode == 2
    assert "there are two tokens" in done.stderr


def test_a_token_from_a_file_is_without_its_line_end(tmp_path):
    from tdce.cli.serve import _token

    (tmp_path / "token").write_text("a-token-that-nobody-guesses\n", encoding="utf-8")
    assert _token(None, tmp_path / "token") == "a-token-that-nobody-guesses"
    assert _token("given-on-the-command-line", None) == "given-on-the-command-line"
    assert _token(None, None) is None
    with pytest.raises(tdce.InputError, match="two tokens"):
        _token("given-on-the-command-line", tmp_path / "token")
