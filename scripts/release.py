"""Build what is released, and try it: `make release`.

The commit is exported into two folders and built in each; the bytes must be the same. Then wheel and sdist are checked
by twine, the wheel is installed into an empty environment, the README's Python runs there, and a bill of materials
(CycloneDX) lists what was installed. Nothing is published.
"""

import hashlib
import os
import re
import subprocess
import sys
import tarfile
import venv
from io import BytesIO
from pathlib import Path
from shutil import copy, rmtree
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[1]
DIST, SBOM = ROOT / "dist", ROOT / "sbom"


def main() -> int:
    if subprocess.run(["git", "status", "--porcelain"], cwd=ROOT, capture_output=True, check=True).stdout:
        print("There are changes that are not committed: they are not part of this release.", file=sys.stderr)
    with TemporaryDirectory() as scratch:
        first, second = (build(export("HEAD", Path(scratch) / name)) for name in ("one", "a longer name"))
        compare(first, second)
        for folder in (DIST, SBOM):
            rmtree(folder, ignore_errors=True)
            folder.mkdir()
        for path in first.iterdir():
            copy(path, DIST)
        run("twine", "check", "--strict", *DIST.iterdir())
        (wheel,) = DIST.glob("*.whl")
        python = install(wheel, Path(scratch) / "empty")
        try_readme(python, Path(scratch) / "elsewhere")
        bill_of_materials(python, SBOM / f"{wheel.name.split('-py3')[0]}.cdx.json")
    for path in sorted([*DIST.iterdir(), *SBOM.iterdir()]):
        print(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.relative_to(ROOT)}")
    return 0


def export(commit: str, folder: Path) -> Path:
    """The files of a commit, as anybody would check them out."""
    archive = subprocess.run(["git", "archive", commit], cwd=ROOT, capture_output=True, check=True).stdout
    with tarfile.open(fileobj=BytesIO(archive)) as files:
        files.extractall(folder, filter="data")
    return folder


def build(source: Path) -> Path:
    """Build the sdist, and the wheel from it, with the build backend that constraints.txt pins."""
    run("build", "--no-isolation", "--outdir", source / "dist", source, env={"SOURCE_DATE_EPOCH": commit_time()})
    return source / "dist"


def commit_time() -> str:
    """The time in all archives: that of the commit, so that the clock makes no difference."""
    found = subprocess.run(["git", "log", "-1", "--format=%ct"], cwd=ROOT, capture_output=True, check=True, text=True)
    return found.stdout.strip()


def compare(first: Path, second: Path) -> None:
    """Fail if two builds differ in any byte, or in their files."""
    names = sorted(path.name for path in first.iterdir())
    if names != sorted(path.name for path in second.iterdir()):
        raise SystemExit("release: two builds of the same commit have different files")
    for name in names:
        if (first / name).read_bytes() != (second / name).read_bytes():
            raise SystemExit(f"release: two builds of the same commit differ in {name}")
        print(f"{name}: the same bytes twice")


def install(wheel: Path, folder: Path) -> Path:
    """The Python of a new environment with the wheel and what it needs, and nothing else."""
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    constraints = ROOT / "constraints.txt"
    command = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-c", constraints, wheel]
    subprocess.run(command, check=True)
    return python


def try_readme(python: Path, folder: Path) -> None:
    """Run the README's Python where nothing of the repository can be imported by accident."""
    (block,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), flags=re.DOTALL)
    folder.mkdir()
    shown = 'print(*answer.sentences(), sep="\\n")\nassert set(answer.counts()) == {"valid"}, answer.counts()\n'
    subprocess.run([python, "-I", "-c", block + shown], cwd=folder, check=True)
    assert {path.name for path in folder.iterdir()} == {"report.html", "german.tdce"}


def bill_of_materials(python: Path, path: Path) -> None:
    """Write what the environment holds, as CycloneDX, without time and serial number: the same each time."""
    options = ["--pyproject", ROOT / "pyproject.toml", "--mc-type", "library", "--output-reproducible", "--of", "JSON"]
    run("cyclonedx_py", "environment", *options, "-o", path, python)


def run(module: str, *words: object, env: dict[str, str] | None = None) -> None:
    subprocess.run([sys.executable, "-m", module, *map(str, words)], check=True, env=os.environ | (env or {}))


if __name__ == "__main__":
    raise SystemExit(main())
