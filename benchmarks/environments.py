"""Separate environments for the packages that benchmarks compare with: made once, with pinned versions."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

FOLDER = Path("results/envs")


def make_environment(
    folder: Path, requirements: Sequence[str], alone: Sequence[str] = (), python: str = sys.executable
) -> Path:
    """The Python of an environment with these packages, those of `alone` without what they ask for. An environment that
    was made with the same requirements is kept."""
    inside, stamp = folder / "bin" / "python", folder / "made.json"
    wanted = json.dumps({"requirements": [*requirements], "alone": [*alone]})
    if not stamp.exists() or stamp.read_text() != wanted:
        if shutil.which(python) is None or subprocess.run([python, "--version"], check=False).returncode:
            raise SystemExit(f"{folder} needs {python}: install it, or put it on the PATH")
        subprocess.run([python, "-m", "venv", "--clear", folder], check=True)
        subprocess.run([inside, "-m", "pip", "install", "-q", *requirements], check=True)
        if alone:
            subprocess.run([inside, "-m", "pip", "install", "-q", "--no-deps", *alone], check=True)
        stamp.write_text(wanted)
    return inside
