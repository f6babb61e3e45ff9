"""Hooks, workflows, templates and the citation: they parse, and agree with the Makefile and pyproject.toml."""

import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.specifiers import SpecifierSet
from packaging.version import Version

ROOT = Path(__file__).parents[1]
WORKFLOWS = ("tests", "release")
FORMS = ("bug", "feature")


def parsed(name: str) -> dict[Any, Any]:
    found = yaml.safe_load((ROOT / name).read_text(encoding="utf-8"))
    assert isinstance(found, dict)
    return found


def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_no_file_has_the_marks_of_a_merge():
    """A page or a docstring with both sides of a conflict would pass every other check."""
    kinds = {".py", ".md", ".toml", ".html", ".css", ".js", ".yml"}
    folders = ("src", "tests", "benchmarks", "scripts", "docs", "examples", ".github")
    paths = [path for folder in folders for path in (ROOT / folder).rglob("*")] + [
        *ROOT.glob("*.md"),
        ROOT / "Makefile",
    ]
    mark = re.compile(r"^(<{7}|>{7}) ", re.MULTILINE)
    texts = {path: path.read_text(encoding="utf-8") for path in paths if path.suffix in kinds}
    assert [path.name for path, text in texts.items() if mark.search(text)] == []


def makefile() -> str:
    return (ROOT / "Makefile").read_text(encoding="utf-8")


def hooks() -> dict[str, dict[str, Any]]:
    (local,) = parsed(".pre-commit-config.yaml")["repos"]
    assert local["repo"] == "local"  # nothing is fetched
    return {hook["id"]: hook for hook in local["hooks"]}


def jobs(workflow: str) -> dict[str, dict[str, Any]]:
    return parsed(f".github/workflows/{workflow}.yml")["jobs"]


def steps(workflow: str) -> list[dict[str, Any]]:
    return [step for job in jobs(workflow).values() for step in job["steps"]]


def made(workflow: str) -> set[str]:
    """The targets of `make` that a workflow names."""
    return {target for step in steps(workflow) for target in re.findall(r"\bmake ([\w-]+)", step.get("run", ""))}


def matrix() -> list[str]:
    return jobs("tests")["test"]["strategy"]["matrix"]["python-version"]


def test_the_hooks_run_what_make_lint_runs():
    (recipe,) = re.findall(r"^lint:.*\n((?:\t.*\n)+)", makefile(), re.MULTILINE)
    linted = [line.strip().replace("$(BIN)", ".venv/bin") for line in recipe.splitlines()]
    whole = [hook for hook in hooks().values() if hook["entry"].startswith(".venv/bin/")]
    assert [hook["entry"] for hook in whole] == linted
    assert all(hook["language"] == "system" and hook["always_run"] and not hook["pass_filenames"] for hook in whole)


@pytest.mark.parametrize(("size", "refused"), [(2_000_000, False), (2_000_001, True)])
def test_a_hook_refuses_files_over_2_mb(size, refused, tmp_path):
    (tmp_path / "small file").write_bytes(b"")
    (tmp_path / "the file").write_bytes(b"\0" * size)
    command = [*shlex.split(hooks()["large-files"]["entry"]), "small file", "the file"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == ((1, "the file\n", "") if refused else (0, "", ""))


@pytest.mark.parametrize(
    ("text", "refused"), [(b"", False), (b"a\n\nb\n", False), (b"a\nb", True), (b"a\n\n", True)], ids=repr
)
def test_a_hook_refuses_text_that_does_not_end_with_one_line_end(text, refused):
    hook = hooks()["end-of-file"]
    assert (hook["language"], hook["args"]) == ("pygrep", ["--multiline"])
    flags = re.MULTILINE | re.DOTALL  # those of pygrep
    assert (re.search(hook["entry"].encode(), text, flags) is not None) == refused


@pytest.mark.parametrize("workflow", WORKFLOWS)
def test_every_target_that_a_workflow_makes_is_there(workflow):
    assert made(workflow) <= set(re.findall(r"^([\w-]+):", makefile(), re.MULTILINE))


def test_the_workflow_runs_all_kinds_of_tests():
    assert made("tests") == {"test", "test-lowest", "test-browser", "test-engines", "test-mlflow", "site"}


def test_the_workflow_tests_every_python_from_the_lowest_that_is_admitted():
    versions = matrix()
    assert "3.11" in versions
    assert all(isinstance(version, str) for version in versions)  # a number would lose the zero of 3.20
    admitted = SpecifierSet(project()["requires-python"])
    assert all(version in admitted for version in versions)
    minors = [Version(version).minor for version in versions]
    assert minors == list(range(minors[0], minors[-1] + 1))
    assert f"3.{minors[0] - 1}" not in admitted


@pytest.mark.parametrize("workflow", WORKFLOWS)
def test_every_job_sets_up_a_python_of_the_matrix(workflow):
    asked = [step["with"]["python-version"] for step in steps(workflow) if "setup-python" in step.get("uses", "")]
    assert asked
    assert set(asked) <= {*matrix(), "${{ matrix.python-version }}"}


@pytest.mark.parametrize("workflow", WORKFLOWS)
def test_workflows_may_only_read_end_in_time_and_name_the_major_version_of_actions(workflow):
    assert parsed(f".github/workflows/{workflow}.yml")["permissions"] == {"contents": "read"}
    assert all(job["timeout-minutes"] <= 90 for job in jobs(workflow).values())
    used = [step["uses"] for step in steps(workflow) if "uses" in step]
    assert [name for name in used if not re.fullmatch(r"[\w-]+/[\w-]+@(release/)?v\d+", name)] == []


def test_only_the_jobs_that_publish_may_write():
    granted = {name: job["permissions"] for name, job in jobs("release").items() if "permissions" in job}
    assert granted == {
        "attest": {"id-token": "write", "attestations": "write"},
        "publish": {"id-token": "write"},
        "site": {"contents": "write"},
        "release": {"contents": "write"},
    }
    assert not any("permissions" in job for job in jobs("tests").values())


@pytest.mark.parametrize(("tag", "code"), [("v{}", 0), ("{}", 1), ("v{}.1", 1), ("v", 1)])
def test_a_tag_that_is_not_the_version_is_not_released(tag, code):
    names = [step.get("name", step.get("run")) for step in jobs("release")["build"]["steps"]]
    assert names.index("The tag is the version") < names.index("make release")
    (script,) = [step["run"] for step in steps("release") if step.get("name") == "The tag is the version"]
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    env = os.environ | {"PATH": path, "GITHUB_REF_NAME": tag.format(project()["version"])}
    done = subprocess.run(["bash", "-e", "-c", script], cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (code, "")
    assert ("::error::" in done.stdout) == bool(code)


def test_the_citation_is_that_of_this_version():
    citation = parsed("CITATION.cff")
    assert citation["cff-version"] == "1.2.0"
    assert (citation["title"], citation["version"]) == (project()["name"], project()["version"])
    assert citation["license"] == project()["license"].split(" AND ")[0]  # that of the code
    assert citation["abstract"] == project()["description"]


def test_the_citation_names_the_paper_as_the_readme_does():
    (paper,) = parsed("CITATION.cff")["references"]
    authors = ", ".join(f"{author['given-names'][0]}. {author['family-names']}" for author in paper["authors"])
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    assert f"*{paper['title']}* ({authors})" in readme


@pytest.mark.parametrize("form", FORMS)
def test_the_forms_of_issues_have_what_github_asks_for(form):
    found = parsed(f".github/ISSUE_TEMPLATE/{form}.yml")
    assert all(isinstance(found[key], str) and found[key] for key in ("name", "description"))
    questions = [part for part in found["body"] if part["type"] != "markdown"]
    assert all(part["attributes"]["label"] for part in questions)
    assert len({part["id"] for part in questions}) == len(questions) > 0


def test_the_chooser_of_issues_parses():
    assert parsed(".github/ISSUE_TEMPLATE/config.yml") == {"blank_issues_enabled": True}


@pytest.mark.parametrize("page", ["SECURITY.md", ".github/pull_request_template.md"])
def test_pages_name_only_files_and_targets_that_are_there(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    named = set(re.findall(r"\b(?:docs/)?\w+\.md\b", text))
    assert named
    assert [name for name in named if not (ROOT / name).is_file()] == []
    assert set(re.findall(r"`make ([\w-]+)`", text)) <= set(re.findall(r"^([\w-]+):", makefile(), re.MULTILINE))


def test_the_list_of_files_to_mutate_is_there_and_matches_files():
    """A slip once renamed the key, and `make mutate` went over everything."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["mutmut"]
    known = {"source_paths", "only_mutate", "pytest_add_cli_args", "pytest_add_cli_args_test_selection"}
    assert set(settings) == known
    for pattern in (*settings["only_mutate"], *settings["pytest_add_cli_args_test_selection"]):
        assert list(ROOT.glob(pattern)), pattern
