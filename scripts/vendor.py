"""Fetch what the studio's pages borrow from the npm registry, at one version each, checked by its hash.

    python scripts/vendor.py    # writes src/tdce/studio/static/vendor/

A package with another hash than the one noted here is not written.
"""

from __future__ import annotations

import base64
import hashlib
import io
import subprocess
import tarfile
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent / "src/tdce/studio/static/vendor"
PACKAGES = {
    "uplot@1.6.32": (
        "sha512-KIMVnG68zvu5XXUbC4LQEPnhwOxBuLyW1AHtpm6IKTXImkbLgkMy+jabjLgSLMasNuGGzQm/ep3tOkyTxpiQIw==",
        {"dist/uPlot.iife.min.js": "uplot.js", "dist/uPlot.min.css": "uplot.css", "LICENSE": "uplot.LICENSE.txt"},
    ),
}  # by name and version: the registry's own hash of the package, and which files of it are kept under which names


def main() -> None:
    HERE.mkdir(parents=True, exist_ok=True)
    for package, (integrity, files) in PACKAGES.items():
        content = fetched(package)
        found = "sha512-" + base64.b64encode(hashlib.sha512(content).digest()).decode()
        if found != integrity:
            raise SystemExit(f"{package} has the hash {found}, not {integrity}")
        with tarfile.open(fileobj=io.BytesIO(content)) as archive:
            for inside, name in files.items():
                file = archive.extractfile(f"package/{inside}")
                assert file is not None
                (HERE / name).write_bytes(file.read())
                print(HERE / name)


def fetched(package: str) -> bytes:
    """The package as the registry has it."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["npm", "pack", "--silent", package], cwd=folder, check=True, capture_output=True)
        return next(Path(folder).glob("*.tgz")).read_bytes()


if __name__ == "__main__":
    main()
