"""The command line, run as a person runs it: whole processes, files in, files out."""

import gzip
import io
import json
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, NoReturn

import numpy as np
import pandas as pd
import pytest
from fits import SHORT, small
from test_report import data_of
from typer.testing import CliRunner

import tdce
from tdce import InputError, cli
from tdce.cli import app
from tdce.datasets import read_table
from tdce.demo import command


def run(*words: object, cwd: Path, stdout=None, first=None, **env: str):
    """A command in a process of its own: a fork of this one, which need not import torch again, or a new one where
    standard output is special."""
    words, env = tuple(map(str, words)), os.environ | {"COLUMNS": "100"} | env
    if stdout is not None:
        command = [sys.executable, "-m", "tdce", *words]
        return subprocess.run(
            command, stdout=stdout, stderr=subprocess.PIPE, cwd=cwd, env=env, text=True, check=False
        )  # fmt: skip
    with tempfile.TemporaryFile("w+", encoding="utf-8") as out, tempfile.TemporaryFile("w+", encoding="utf-8") as err:
        child = os.fork()
        if not child:
            _become(words, cwd, env, out, err, first)
        _, ended = os.waitpid(child, 0)
        for file in (out, err):
            file.seek(0)
        return subprocess.CompletedProcess(words, os.waitstatus_to_exitcode(ended), out.read(), err.read())


def _become(
    words: tuple[str, ...],
    cwd: Path,
    env: dict[str, str],
    out: IO[str],
    err: IO[str],
    first: Callable[[], object] | None = None,
) -> NoReturn:
    """The command itself, in the forked process, after what is to be done there first."""
    code: Any = 70
    try:
        if first is not None:
            first()
        os.chdir(cwd)
        os.environ.update(env)
        sys.argv, sys.stdout, sys.stderr = ["tdce", *words], out, err
        cli.main()
    except SystemExit as end:
        code = end.code or 0
    except BaseException:
        traceback.print_exc(file=err)
    finally:
        out.flush()
        err.flush()
        os._exit(code)


def members(rows: int, seed: int) -> pd.DataFrame:
    """A table with spaces and umlauts, whole numbers, decimals, codes and empty cells."""
    rng = np.random.default_rng(seed)
    fee = rng.integers(10, 90, rows)
    visits = rng.poisson(6, rows)
    frame = pd.DataFrame(
        {
            "Straße": rng.choice(["Am Bühl", "Große Gasse", "Überm Fluß, links"], rows),
            "Beitrag (€)": fee + rng.choice([0, 0.25, 0.5], rows),
            "Besuche": pd.array(visits, dtype="Int64"),
            "PLZ": rng.choice(["01067", "80331"], rows),
        }
    )
    frame.loc[rng.random(rows) < 0.1, "Besuche"] = pd.NA
    frame.loc[rng.random(rows) < 0.1, "Straße"] = None
    stays = visits * 8 > fee + rng.normal(0, 6, rows)
    return frame.assign(**{"bleibt?": np.where(stays, "ja", "nein")})


@pytest.fixture(scope="module", autouse=True)
def small_networks() -> Iterator[None]:
    """The commands that run in forks train small networks; `tdce bench` starts processes of its own."""
    with pytest.MonkeyPatch.context() as patch:
        small(patch)
        yield


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A folder with a fitted artefact of a table nobody has seen, and rows to explain."""
    path = tmp_path_factory.mktemp("cli")
    members(500, 0).to_csv(path / "Mitglieder.csv", index=False)
    rows = members(40, 1).assign(Notiz="bleibt – vielleicht")
    rows[["Notiz", "PLZ", "Besuche", "Beitrag (€)", "Straße"]].to_csv(path / "rows.csv", index=False)
    done = run("fit", "Mitglieder.csv", "--label", "bleibt?", "--favourable", "ja", "--immutable", "PLZ",
               "--keep-rows", "--out", "m.tdce", cwd=path)  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "Fitted to 500 rows" in done.stdout
    assert "diffusion model: done" in done.stderr
    ready = CliRunner().invoke(
        app, ["explain", str(path / "m.tdce"), str(path / "rows.csv"), "--out", str(path / "0.csv")]
    )
    assert ready.exit_code == 0, ready.output  # here, so that the forks find everything imported
    rows.head(1)[["PLZ", "Besuche", "Beitrag (€)", "Straße"]].to_csv(path / "one_row.csv", index=False)
    return path


@pytest.fixture(scope="module")
def answers(folder) -> pd.DataFrame:
    """What the command says of all rows, without any option."""
    return explained(folder, out="answers.csv")


def explained(folder: Path, *words: object, out: str = "out.csv") -> pd.DataFrame:
    done = run("explain", "m.tdce", "rows.csv", *words, "--out", out, cwd=folder)
    assert done.returncode == 0, done.stderr
    return pd.read_csv(folder / out, dtype=str, keep_default_na=False)


def test_every_promise_on_an_unseen_table(folder):
    rows = pd.read_csv(folder / "rows.csv", dtype=str, keep_default_na=False)
    out = explained(folder, "-n", 2)
    added = ["row", "option", "status", "score_before", "score_after", "plausibility", "safety", "note"]
    assert list(out) == [*rows, *added]
    assert len(out) == 80
    own = rows.loc[rows.index.repeat(2)].reset_index(drop=True)
    assert (out["Notiz"] == own["Notiz"]).all()  # extra columns survive
    assert (out["PLZ"] == own["PLZ"]).all()  # immutable since fit, leading zeros and all
    known = set(members(500, 0)["Straße"].dropna())
    kept = out["Straße"] == own["Straße"]
    assert set(out.loc[~kept, "Straße"]) <= known  # never proposes missing
    assert out["Besuche"].str.fullmatch(r"\d*").all()  # whole numbers stay whole beside empty cells
    assert (out.loc[own["Besuche"] != "", "Besuche"] != "").all()
    fee = out["Beitrag (€)"].astype(float)
    assert ((fee * 4) % 1 == 0).all()  # quarters stay quarters
    assert fee.between(10, 89.5).all()
    assert set(out["status"]) <= {"valid", "best_effort", "already"}
    assert (out["status"] == "valid").sum() > 10
    unchanged = out["status"] == "already"
    assert unchanged.any()
    assert (out.loc[unchanged, list(rows)] == own.loc[unchanged]).all(axis=None)


def test_the_order_of_rows_and_the_company_they_keep_do_not_matter(folder, answers):
    rows = pd.read_csv(folder / "rows.csv", dtype=str, keep_default_na=False)
    rows.iloc[[7]].to_csv(folder / "one.csv", index=False)
    done = run("explain", "m.tdce", "one.csv", "--out", "one_out.csv", cwd=folder)
    assert done.returncode == 0, done.stderr
    alone = pd.read_csv(folder / "one_out.csv", dtype=str, keep_default_na=False)
    assert alone.drop(columns="row").iloc[0].tolist() == answers.drop(columns="row").iloc[7].tolist()


@pytest.mark.parametrize("ending", ["csv.gz", "parquet", "jsonl"])
def test_every_format_says_the_same(folder, answers, ending):
    readers = {"csv.gz": pd.read_csv, "parquet": pd.read_parquet, "jsonl": lambda p: pd.read_json(p, lines=True)}
    run("explain", "m.tdce", "rows.csv", "--out", f"same.{ending}", cwd=folder)
    one, other = pd.read_csv(folder / "answers.csv"), readers[ending](folder / f"same.{ending}")
    assert one["status"].tolist() == other["status"].tolist()
    np.testing.assert_allclose(one["score_after"], other["score_after"])
    assert one["Straße"].fillna("").tolist() == other["Straße"].fillna("").tolist()


def test_parquet_goes_in_too(folder):
    frame = tdce.Explainer.load(folder / "m.tdce").explain(members(6, 2)).to_frame()
    members(6, 2).to_parquet(folder / "rows.parquet")
    done = run("explain", "m.tdce", "rows.parquet", "--out", "p.parquet", cwd=folder)
    assert done.returncode == 0, done.stderr
    np.testing.assert_array_equal(pd.read_parquet(folder / "p.parquet")["score_after"], frame["score_after"])


def piped(content: bytes) -> Callable[[], None]:
    """Standard input with this content, for a forked command."""
    return lambda: setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))


@pytest.mark.parametrize("kind", ["csv", "csv.gz", "parquet"])
def test_rows_come_from_standard_input_and_answers_go_to_standard_output(folder, answers, kind):
    content = (folder / "rows.csv").read_bytes()
    if kind == "csv.gz":
        content = gzip.compress(content)
    elif kind == "parquet":
        content = read_table(folder / "rows.csv", tdce.Explainer.load(folder / "m.tdce").schema).to_parquet(index=False)
    before = sorted(folder.iterdir())
    done = run("explain", "m.tdce", "-", "--out", "-", cwd=folder, first=piped(content))
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines()[-1].startswith("40 rows, 40 lines: ")
    out = pd.read_csv(io.StringIO(done.stdout), dtype=str, keep_default_na=False)
    pd.testing.assert_frame_equal(out, answers)
    assert sorted(folder.iterdir()) == before


def test_every_command_that_reads_a_table_takes_standard_input(folder, tmp_path):
    table, rows = ((folder / name).read_bytes() for name in ("Mitglieder.csv", "rows.csv"))
    shown = run("schema", "-", "--label", "bleibt?", cwd=folder, first=piped(table))
    assert shown.stdout == run("schema", "Mitglieder.csv", "--label", "bleibt?", cwd=folder).stdout != ""
    schema = run("schema", "-", "--label", "bleibt?", "--out", "-", cwd=folder, first=piped(table)).stdout
    assert schema == run("schema", "Mitglieder.csv", "--label", "bleibt?", "--json", cwd=folder).stdout != ""
    fitted = run("fit", "-", "--label", "bleibt?", "--out", tmp_path / "s.tdce", cwd=folder, first=piped(table))
    assert "Fitted to 500 rows" in fitted.stdout
    words = "evaluate", "m.tdce", "rows.csv", "--json"
    measured = run(*words[:2], "-", "--json", cwd=folder, first=piped(rows))
    assert measured.stdout == run(*words, cwd=folder).stdout != ""
    page = run("report", "m.tdce", "-", "--out", "-", "--no-metrics", cwd=folder, first=piped(rows))
    assert page.stdout.startswith("<!doctype html>")
    assert page.stderr.splitlines()[-1].startswith("40 rows, 40 lines: ")


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", "standard input is empty; pipe a table into the command, or name a file"),
        (b"a,b\n1,2,3\n", "standard input cannot be read as csv: line 2 has 3 cells, but the header has 2"),
        (b"PAR1 and no more", "standard input cannot be read as parquet: "),
    ],
)
def test_standard_input_that_is_no_table_is_named(folder, content, expected):
    done = run("schema", "-", cwd=folder, first=piped(content))
    assert done.returncode == 2
    assert done.stderr.startswith(f"tdce: {expected}")
    assert len(done.stderr.splitlines()) == 1


def test_nobody_waits_for_a_table_to_be_typed(folder):
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    done = run("schema", "-", cwd=folder, first=lambda: setattr(sys, "stdin", Terminal()))
    assert done.returncode == 2
    assert done.stderr.startswith("tdce: - reads standard input, which is a terminal")


def test_without_a_file_the_answers_are_shown(folder, answers):
    before = sorted(folder.iterdir())
    done = run("explain", "m.tdce", "rows.csv", cwd=folder)
    assert done.returncode == 0, done.stderr
    header, *lines, total = done.stdout.splitlines()
    assert header.split() == ["row", "status", "score", "plausibility", "safety", "changes"]
    assert total.startswith("40 rows, 40 lines: ")
    shown = [line.split(maxsplit=7) for line in lines if not line.startswith(" ")]  # a second change has its own line
    assert [words[1] for words in shown] == answers["status"].tolist()
    for place, name in ((4, "score_after"), (5, "plausibility"), (6, "safety")):
        assert [words[place] for words in shown] == [f"{float(number):.2f}" for number in answers[name]]
    rows = pd.read_csv(folder / "rows.csv", dtype=str, keep_default_na=False)
    moved = (rows["Besuche"] != answers["Besuche"]) & (rows["Besuche"] != "")
    assert moved.any()
    for before_after in zip(rows.loc[moved, "Besuche"], answers.loc[moved, "Besuche"], strict=True):
        assert f"Besuche: {' -> '.join(before_after)}" in done.stdout
    assert "\x1b" not in done.stdout
    assert sorted(folder.iterdir()) == before


def test_only_the_first_answers_are_shown_and_the_rest_is_counted(folder):
    def few() -> None:
        sys.modules["tdce.cli.explain"].MAX_SHOWN_LINES = 6

    done = run("explain", "m.tdce", "rows.csv", "-n", "2", cwd=folder, first=few)
    header, *lines, total = done.stdout.splitlines()
    assert header.split()[:2] == ["row", "option"]
    assert [line.split()[:2] for line in lines if not line.startswith(" ")] == [[r, o] for r in "012" for o in "01"]
    assert total.startswith("3 rows, 6 lines: ")
    assert total.endswith(" 37 more rows are not shown; --out FILE explains all 40.")


def test_answers_are_coloured_on_a_terminal(folder):
    reader, writer = os.openpty()
    with os.fdopen(writer, "w") as screen:
        done = run("explain", "m.tdce", "one_row.csv", cwd=folder, stdout=screen, TERM="xterm-256color")
        shown = os.read(reader, 10_000).decode()
    os.close(reader)
    assert done.returncode == 0, done.stderr
    assert "\x1b[" in shown
    assert "1 row, 1 line: " in shown


def test_a_page_is_written_by_its_ending(folder, answers):
    done = run("explain", "m.tdce", "rows.csv", "--out", "page.html", cwd=folder)
    assert done.returncode == 0, done.stderr
    page = (folder / "page.html").read_text(encoding="utf-8")
    people = data_of(page)["people"]
    assert len(people["status"]) == len(answers) == 40
    assert people["status"].count("0") == (answers["status"] == "valid").sum() > 0
    assert "Überm Fluß, links" in page


def test_a_report_is_written_with_metrics_or_without(folder):
    done = run(
        "report", "m.tdce", "rows.csv", "--out", "r.html", "--title", "Wer bleibt?", "--language", "de", cwd=folder
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("Written: r.html (open it in a browser)\n")
    assert re.search(r"First principal reason the same by two methods: way and passing \d+ %, way and app", done.stdout)
    page = (folder / "r.html").read_text(encoding="utf-8")
    assert "<h1>Wer bleibt?</h1>" in page
    assert '<table class="metrics">' in page
    assert "vom erklärten Modell eingeordnet" in page
    words = ("report", "m.tdce", "rows.csv", "--no-metrics", "--table", "Mitglieder.csv", "-n", "2", "--out", "s.html")
    done = run(*words, cwd=folder)
    assert done.returncode == 0, done.stderr
    page = (folder / "s.html").read_text(encoding="utf-8")
    assert '<table class="metrics">' not in page
    assert "real people, classified by the explained model" in page
    assert data_of(page)["people"]["options"] == 2


def test_a_report_for_applicants_is_a_page_for_each_named_by_the_id(folder):
    rows = pd.read_csv(folder / "rows.csv", dtype=str, keep_default_na=False)
    rows.assign(Nummer=[f"M-{i}" for i in range(len(rows))]).head(3).to_csv(folder / "three.csv", index=False)
    words = ("report", "m.tdce", "three.csv", "--id", "Nummer", "--audience", "applicant", "--out")
    for out in ("pages", "pages.zip"):
        done = run(*words, out, cwd=folder)
        assert done.returncode == 0, done.stderr
        assert done.stdout.endswith(f"Written: {out}\n")
    assert sorted(path.name for path in (folder / "pages").iterdir()) == ["M-0.html", "M-1.html", "M-2.html"]
    for out, expected in (
        ("one.html", "would be the page of one applicant, but there are 3"),
        ("pages", "pages exists already"),
        ("-", "--audience applicant writes a page for each person; name a folder or FILE.zip"),
    ):
        done = run(*words, out, cwd=folder)
        assert done.returncode == 2
        assert expected in done.stderr
    done = run("report", "m.tdce", "three.csv", "--id", "Numer", "--out", "x.html", cwd=folder)
    assert done.returncode == 2
    assert "id is 'Numer', but the rows have no such column; did you mean 'Nummer'" in done.stderr


def test_a_page_speaks_the_language_that_is_asked_for(folder):
    done = run("explain", "m.tdce", "rows.csv", "--out", "seite.html", "--language", "de", cwd=folder)
    assert done.returncode == 0, done.stderr
    page = (folder / "seite.html").read_text(encoding="utf-8")
    assert '<html lang="de">' in page
    assert "weder ein Angebot noch eine Zusage" in page
    assert "Feature" not in page


def test_a_schema_can_be_printed_edited_and_given_back(folder):
    assert "quarters" not in run("schema", "Mitglieder.csv", "--label", "bleibt?", cwd=folder).stdout
    shown = run("schema", "Mitglieder.csv", "--label", "bleibt?", cwd=folder).stdout
    assert "steps of 0.25" in shown
    assert "Überm Fluß, links" in shown
    schema = json.loads(run("schema", "Mitglieder.csv", "--label", "bleibt?", "--json", cwd=folder).stdout)
    for feature in schema["features"]:
        if feature["name"] == "Beitrag (€)":
            feature |= {"low": 20, "high": 60, "direction": "decrease"}
    schema["features"] = [f for f in schema["features"] if f["name"] != "PLZ"]
    (folder / "edited.json").write_text(json.dumps(schema), encoding="utf-8")
    done = run("fit", "Mitglieder.csv", "--label", "bleibt?", "--favourable", "ja", "--schema", "edited.json",
               "--out", "edited.tdce", cwd=folder)  # fmt: skip
    assert done.returncode == 0, done.stderr
    run("explain", "edited.tdce", "rows.csv", "--out", "edited.csv", cwd=folder)
    own, out = (pd.read_csv(folder / name)["Beitrag (€)"] for name in ("rows.csv", "edited.csv"))
    changed = own != out
    assert changed.any()
    assert out[changed].between(20, 60).all()
    assert (out[changed] < own[changed]).all()


def test_a_users_own_table_can_be_evaluated(folder, answers):
    shown = run("evaluate", "m.tdce", "rows.csv", cwd=folder)
    assert shown.returncode == 0, shown.stderr
    assert "share of rows that the model then puts in the target class" in shown.stdout
    found = json.loads(run("evaluate", "m.tdce", "rows.csv", "--json", cwd=folder).stdout)
    asked = answers["status"] != "already"
    assert found["validity"] == pytest.approx((answers.loc[asked, "status"] == "valid").mean())
    assert found["violations"] == 0
    assert "option_spread" not in found
    several = json.loads(
        run("evaluate", "m.tdce", "rows.csv", "-n", "2", "--closeness", "1", "--json", cwd=folder).stdout
    )
    assert 0 <= several["option_spread"] <= 1
    assert "coherence" not in found
    held_out = json.loads(
        run("evaluate", "m.tdce", "rows.csv", "--table", "Mitglieder.csv", "--json", cwd=folder).stdout
    )
    assert {k: held_out[k] for k in found} == found
    assert {"held_out_distance", "coherence"} <= set(held_out)


def test_the_machine_is_checked(folder):
    done = run("check", "m.tdce", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "float32  padded" in done.stdout
    assert "a row has the same bits at every position" in done.stdout
    assert run("check", "rows.csv", cwd=folder).returncode == 2


class Small(tdce.Explainer):
    """With networks that are trained in no time."""

    def __init__(self, *words: Any, **settings: Any) -> None:
        super().__init__(*words, **{"hidden": 8, "steps": 5, "plans": SHORT} | settings)


def test_an_artefact_without_rows_explains_and_says_what_it_is_measured_against(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tdce, "Explainer", Small)
    members(60, 0).to_csv("few.csv", index=False)
    members(12, 1).to_csv("rows.csv", index=False)
    fit = ["fit", "few.csv", "--label", "bleibt?", "--out", "m.tdce"]
    for words in (fit, ["explain", "m.tdce", "rows.csv", "--out", "out.csv"]):
        assert CliRunner().invoke(cli.app, words).exit_code == 0
    assert len(tdce.Explainer.load("m.tdce").fitted_.raw) == 0
    assert len(pd.read_csv("out.csv")) == 12
    line = "m.tdce holds no training rows: measured against its 512 synthetic rows; --table FILE measures against real"
    shown = CliRunner().invoke(cli.app, ["evaluate", "m.tdce", "rows.csv"])
    assert line in shown.stdout
    measured = CliRunner().invoke(cli.app, ["evaluate", "m.tdce", "rows.csv", "--json"])
    assert line in measured.stderr
    assert 0 <= json.loads(measured.stdout)["plausibility"] <= 1
    measured = CliRunner().invoke(cli.app, ["evaluate", "m.tdce", "rows.csv", "--table", "few.csv", "--json"])
    assert measured.exit_code == 0, measured.exception
    assert 0 <= json.loads(measured.stdout)["validity"] <= 1
    assert "synthetic" not in measured.stderr
    assert CliRunner().invoke(cli.app, [*fit, "--keep-rows"]).exit_code == 0
    assert len(tdce.Explainer.load("m.tdce").fitted_.raw) == 48
    assert "synthetic" not in CliRunner().invoke(cli.app, ["evaluate", "m.tdce", "rows.csv"]).output


LIBRARIES = {"numpy", "pandas", "pyarrow", "scipy", "torch", "rich", "matplotlib", "sklearn"}
LOADED = f"""
import atexit, sys
atexit.register(lambda: print("loaded:", *sorted(sys.modules.keys() & {LIBRARIES})))
from tdce.cli import main
main()
"""


@pytest.mark.parametrize(
    ("words", "env", "expected"),
    [
        (["--help"], {}, "Commands:"),
        (["--version"], {}, f"tdce {tdce.__version__}"),
        (["explain", "-h"], {}, "-n, --options K"),
        (["explain", "--immutabel"], {}, ""),
        ([], {"_TDCE_COMPLETE": "complete_bash", "COMP_WORDS": "tdce explain --clo", "COMP_CWORD": "2"}, "--closeness"),
        ([], {"_TDCE_COMPLETE": "complete_bash", "COMP_WORDS": "tdce e", "COMP_CWORD": "1"}, "explain\nevaluate"),
    ],
)
def test_help_and_completion_wait_for_no_library(words, env, expected):
    code = f"import sys; sys.argv = ['tdce', *{words!r}]{LOADED}"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=os.environ | env, check=False
    )
    assert expected in done.stdout
    assert done.stdout.splitlines()[-1].split() == ["loaded:"]


@pytest.mark.parametrize("name", [None, *(command.__name__ for command in cli.COMMANDS)])
def test_every_command_has_help_in_lines_of_80_letters(name):
    words = [] if name is None else [name]
    short, long = (CliRunner().invoke(app, [*words, flag], prog_name="tdce") for flag in ("-h", "--help"))
    assert (short.exit_code, short.output) == (0, long.output)
    assert max(map(len, short.output.splitlines())) <= 80
    assert "..." not in short.output.replace("COMMAND [ARGS]...", "")  # no summary is cut


def test_the_shell_learns_to_complete():
    shown = CliRunner().invoke(app, [], prog_name="tdce", env={"_TDCE_COMPLETE": "source_bash"})
    assert "complete -o default -F _tdce_completion tdce" in shown.output


def test_without_a_command_there_is_help_and_exit_code_2(tmp_path):
    done = run(cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("Usage: ")
    assert "  explain " in done.stderr


def test_the_data_sets_are_listed(tmp_path):
    done = run("data", cwd=tmp_path, TDCE_DATA="")
    assert done.returncode == 0
    for word in ("adult", "german", "lcd", "gmc", "law", "inside the package", "missing: set TDCE_DATA"):
        assert word in " ".join(done.stdout.split())


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["fit", "none.csv", "--label", "x", "--out", "a.tdce"], "there is no file none.csv"),
        (["fit", "Mitglieder.csv", "--label", "nix", "--out", "a.tdce"], "there is no label column 'nix'"),
        (["fit", "Mitglieder.csv", "--label", "bleibt?", "--favourable", "no", "--out", "a.tdce"], "known: ja, nein"),
        (["fit", "Mitglieder.csv", "--label", "bleibt?", "--immutable", "x", "--out", "a.tdce"], "no feature 'x'"),
        (["fit", "Mitglieder.csv", "--label", "bleibt?", "--out", "no/a.tdce"], "there is no folder no"),
        (["fit", "m.tdce", "--label", "bleibt?", "--out", "a.tdce"], "the ending must be one of"),
        (["fit", "Mitglieder.csv", "--label", "bleibt?", "--schema", "rows.csv", "--out", "a.tdce"], "not valid JSON"),
        (["explain", "none.tdce", "rows.csv", "--out", "a.csv"], "there is no file none.tdce"),
        (["explain", "rows.csv", "rows.csv", "--out", "a.csv"], "not a tdce artefact"),
        (["explain", "m.tdce", "rows.csv", "--out", "a.html", "--language", "xx"], "is 'xx'; known: de, en"),
        (["explain", "m.tdce", "rows.csv", "--out", "a.xlsx"], "one of .csv, .csv.gz, .parquet, .jsonl, .html"),
        (["explain", "m.tdce", "rows.csv", "--target", "x", "--out", "a.csv"], "target 'x' is not a value"),
        (["explain", "m.tdce", "bad.csv", "--out", "a.csv"], "'Straße' has category 'Weg' in row 0"),
        (["explain", "m.tdce", "short.csv", "--out", "a.csv"], "column 'Straße' is not in the table"),
        (
            ["explain", "m.tdce", "rows.csv", "--closeness", "2", "--out", "a.csv"],
            "closeness is 2.0; it must be a number from 0 to 1",
        ),
        (
            ["explain", "m.tdce", "rows.csv", "--safety", "1", "--out", "a.csv"],
            "safety is 1.0; it must be a number from 0 to 0.99",
        ),
        (["explain", "m.tdce", "rows.csv", "--robust", "3", "--out", "a.csv"], "--robust retrains models"),
        (["explain", "m.tdce", "rows.csv", "--table", "rows.csv", "--out", "a.csv"], "say how many: --robust 10"),
        (["evaluate", "m.tdce", "rows.csv", "--retrain", "3"], "--retrain retrains models"),
        (["report", "m.tdce", "rows.csv", "--out", "a.csv"], "the ending must be one of .html"),
        (["report", "m.tdce", "rows.csv", "--language", "xx", "--out", "a.html"], "language is 'xx'; known: de, en"),
        (["schema", "Mitglieder.csv", "--label", "nix"], "there is no label column 'nix'"),
        (["bench", "--data", "german", "--methods", "magic", "--out", "b"], "there is no method 'magic'"),
        (["bench", "--data", "mars", "--out", "b"], "mars"),
        (["bench", "--masked", "maybe", "--out", "b"], "--masked is 'maybe'; it must be yes, no or both"),
        (["fit", "Mitglieder.csv", "--label", "Bleibt", "--out", "a.tdce"], "did you mean 'bleibt?'? the table has: "),
        (["schema", "Mitglieder.csv", "--label", "bleibt"], "did you mean 'bleibt?'? the table has: "),
        (["explain", "m.tdce", "rows.csv", "--immutable", "plz"], "no feature 'plz'; did you mean 'PLZ'? known: "),
        (["explain", "m.tdce", "rows.csv", "--costs", "Besuch=3"], "no feature 'Besuch'; did you mean 'Besuche'? "),
        (["explain", "m.tdce", "rows.csv", "--target", "Ja"], "not a value of the label; did you mean 'ja'? known: "),
        (["explain", "m.tdce", "renamed.csv"], "column 'PLZ' is not in the table; if 'plz' is meant, rename it; it "),
        (["bench", "--data", "germn", "--out", "b"], "there is no data set 'germn'; did you mean 'german'? known: "),
        (["bench", "--data", "german", "--methods", "serch", "--out", "b"], "'serch'; did you mean 'search'? known: "),
        (["explian"], "no such command 'explian'; did you mean 'explain'? See `"),
        (["explain", "--immutabel", "x"], "no such option: --immutabel; did you mean --immutable? See `"),
        (["explain", "m.tdce"], "missing argument 'ROWS'; see `"),
        (["explain", "m.tdce", "rows.csv", "-n", "two"], "invalid value for '-n' / '--options'"),
        (["explain", "m.tdce", "rows.csv", "--evidence", "e.jsonl"], "--evidence needs a file for the answers: --out"),
        (["explain", "m.tdce", "rows.csv", "--workers", "2"], "--workers needs a file for the answers: --out FILE"),
        (["explain", "m.tdce", "rows.csv", "--out", "-", "--part-rows", "9"], "--part-rows writes a folder; name it"),
        (["explain", "m.tdce", "rows.csv", "--out", "a.csv", "--evidence", "-"], "--evidence cannot be -"),
        (["fit", "Mitglieder.csv", "--label", "bleibt?", "--out", "-"], "--out cannot be -; name a file"),
    ],
    ids=lambda v: " ".join(v[:2]) if isinstance(v, list) else "",
)
def test_a_wrong_input_ends_with_one_line_and_exit_code_2(folder, words, expected):
    pd.read_csv(folder / "rows.csv", dtype=str).assign(Straße="Weg").to_csv(folder / "bad.csv", index=False)
    pd.read_csv(folder / "rows.csv", dtype=str)[["PLZ"]].to_csv(folder / "short.csv", index=False)
    pd.read_csv(folder / "rows.csv", dtype=str).rename(columns={"PLZ": "plz"}).to_csv(folder / "renamed.csv")
    before = sorted(folder.iterdir())
    done = run(*words, cwd=folder)
    assert done.returncode == 2
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr
    assert expected in done.stderr
    assert sorted(folder.iterdir()) == before  # nothing was written


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["fit", "Mitglieder.csv", "--label", "bleibt?", "--out", "."], ". is a folder; name a file"),
        (["fit", "Mitglieder.csv", "--label", "bleibt?", "--out", "/proc/a.tdce"], "/proc/a.tdce cannot be written"),
        (["explain", "m.tdce", "rows.csv", "--out", "taken.csv"], "taken.csv is a folder; name a file"),
        (["explain", "m.tdce", "rows.csv", "--out", "/proc/a.html"], "/proc/a.html cannot be written"),
        (["explain", "m.tdce", "rows.csv", "--out", "rows.csv/a.html"], "there is no folder rows.csv"),
        (["schema", "none.csv", "--out", "no/schema.json"], "there is no folder no"),
        (["schema", "none.csv", "--out", "/proc/schema.json"], "/proc/schema.json cannot be written"),
        (["demo", "--out", "/proc"], "/proc cannot be written"),
        (["demo", "--out", "taken"], "report.html is a folder; name a file"),
        (["bench", "--data", "german", "--out", "/proc"], "/proc cannot be written"),
        (["bench", "--data", "german", "--out", "taken"], "tables.md is a folder; name a file"),
        (["figures", "--only", "kl", "--out", "/proc"], "/proc cannot be written"),
        (["figures", "--only", "kl", "--out", "taken"], "kl.svg is a folder; name a file"),
    ],
    ids=lambda v: " ".join([v[0], v[-1]]) if isinstance(v, list) else "",
)
def test_what_cannot_be_written_is_said_before_the_work(folder, words, expected, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    for name in ("taken.csv", "taken/report.html", "taken/tables.md", "taken/kl.svg"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    with pytest.raises(InputError, match=re.escape(expected)):
        app(words, standalone_mode=False)
    assert capsys.readouterr() == ("", "")  # no line of progress either


def test_a_disk_that_fills_up_ends_with_one_line_and_exit_code_2(folder):
    def small() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))  # no file may grow beyond

    done = run("explain", "m.tdce", "rows.csv", "--out", "full.csv", cwd=folder, first=small)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith("tdce: full.csv cannot be written: File too large")
    assert "Traceback" not in done.stderr
    assert not list(folder.glob("*full*")) + list(folder.glob(".tdce-*"))


SHOWN = (["schema", "Mitglieder.csv", "--json"], ["schema", "Mitglieder.csv"])


@pytest.mark.parametrize("words", [SHOWN[0], pytest.param(SHOWN[1], marks=pytest.mark.slow)])
def test_output_that_nobody_reads_ends_quietly(folder, words):
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as nobody:
        done = run(*words, cwd=folder, stdout=nobody)
    assert (done.returncode, done.stderr) == (1, "")


@pytest.mark.parametrize("words", [pytest.param(SHOWN[0], marks=pytest.mark.slow), SHOWN[1]])
def test_a_full_disk_behind_standard_output_is_named(folder, words):
    with open("/dev/full", "w") as full:
        done = run(*words, cwd=folder, stdout=full)
    assert done.returncode == 2
    assert done.stderr == "tdce: standard output: No space left on device\n"


def test_the_demo_names_the_studio_by_a_command_that_can_be_typed(tmp_path, monkeypatch):
    script = tmp_path / ".venv" / "bin" / "tdce"
    script.parent.mkdir(parents=True)
    script.touch(0o755)
    monkeypatch.setattr(sys, "executable", str(script.with_name("python")))
    monkeypatch.setenv("PATH", "")
    monkeypatch.chdir(tmp_path)
    assert command() == ".venv/bin/tdce"  # as after `make demo`
    monkeypatch.chdir(script.parent)
    monkeypatch.setenv("PATH", str(script.parent))
    assert command() == "tdce"


def test_the_demo_tells_the_whole_story(tmp_path):
    done = run("demo", "--out", "demo", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\nPerson ") == 5
    assert " instead of " in done.stdout
    rows = pd.read_csv(tmp_path / "demo" / "counterfactuals.csv")
    assert len(rows) == 5
    assert (rows["status"] == "valid").sum() >= 4
    assert len(data_of((tmp_path / "demo" / "report.html").read_text(encoding="utf-8"))["people"]["label"]) > 5
    assert done.stdout.splitlines()[-2].endswith("demo/report.html: open it in a browser.")
    assert done.stdout.splitlines()[-1].endswith("tdce serve demo/german.tdce")
    people = tdce.load("german").part("test").loc[rows["row"]]
    assert (people["age"].to_numpy() == rows["age"].to_numpy()).all()
    assert tdce.Explainer.load(tmp_path / "demo" / "german.tdce").schema.roles["age"] == "passes with time"


@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_command_that_is_stopped_says_so_and_leaves_nothing_half_written(tmp_path, sent, code):
    reader, writer = os.pipe()
    with os.fdopen(reader) as said, tempfile.TemporaryFile("w+", encoding="utf-8") as err:
        child = os.fork()
        if not child:
            out = os.fdopen(writer, "w", buffering=1)
            handler = signal.default_int_handler  # as in a process that a terminal starts
            _become(("demo", "--out", "story"), tmp_path, {}, out, err, lambda: signal.signal(signal.SIGINT, handler))
        os.close(writer)
        assert "German credit data" in said.readline()  # now it learns, for some seconds
        os.kill(child, sent)
        _, ended = os.waitpid(child, 0)
        err.seek(0)
        lines = err.read().splitlines()
    assert os.waitstatus_to_exitcode(ended) == code
    assert lines[-1] == "tdce: stopped; nothing is half-written"
    assert not any("Traceback" in line for line in lines)
    assert list((tmp_path / "story").iterdir()) == []


def test_workers_end_with_the_command_that_started_them(tmp_path):
    """By Ctrl-C, which goes to all of them; tests/test_parallel.py has the other ends."""
    process = start("bench", "--data", "german", "--methods", "wachter", "--seeds", 2, "--out", "b", cwd=tmp_path)
    workers = waited_for(lambda: children(process.pid), 2)
    waited_for(lambda: [w for w in workers if busy(w)], 2)  # they learn, for some seconds
    os.killpg(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert said.splitlines() == ["tdce: stopped; nothing is half-written"]
    waited_for(lambda: [w for w in workers if not Path(f"/proc/{w}").exists()], 2)
    assert [p.name for p in (tmp_path / "b").rglob("*") if p.is_file()] == []


def start(*words: object, cwd: Path) -> subprocess.Popen[str]:
    """A command in a process group of its own, as a terminal would start it."""
    return subprocess.Popen(
        [sys.executable, "-m", "tdce", *map(str, words)],
        cwd=cwd, env=os.environ | {"PYTHONUNBUFFERED": "1"}, text=True, start_new_session=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # in the background it is ignored
    )  # fmt: skip


def children(pid: int) -> list[int]:
    """The workers of a process."""
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(child) for child in found if "spawn_main" in Path(f"/proc/{child}/cmdline").read_text()]


def busy(pid: int) -> bool:
    """Whether a process has worked for so long that its libraries must be there."""
    return sum(map(int, Path(f"/proc/{pid}/stat").read_text().rsplit(")")[-1].split()[11:13])) > 250


def waited_for(found, count: int, seconds: float = 120):
    """What was found, once there are so many."""
    until = time.monotonic() + seconds
    while len(found()) < count:
        assert time.monotonic() < until
        time.sleep(0.05)
    return found()
