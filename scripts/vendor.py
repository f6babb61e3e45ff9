"""Fetch the third-party files of the studio's pages from the npm registry, at fixed versions, checked by their hashes.

    python scripts/vendor.py    # writes src/tdce/serving/static/vendor/

A package whose hash differs from the one noted here is not written.
"""

from __future__ import annotations

import base64
import hashlib
import io
import subprocess
import tarfile
import tempfile
from pathlib import Path

VENDOR = Path(__file__).resolve().parent.parent / "src/tdce/serving/static/vendor"
PACKAGES = {
    "uplot@1.6.32": (
        "sha512-KIMVnG68zvu5XXUbC4LQEPnhwOxBuLyW1AHtpm6IKTXImkbLgkMy+jabjLgSLMasNuGGzQm/ep3tOkyTxpiQIw==",
        {"dist/uPlot.iife.min.js": "uplot.js", "dist/uPlot.min.css": "uplot.css", "LICENSE": "uplot.LICENSE.txt"},
    ),
}  # by name and version: the registry's own hash of the package, and its files with the names they get here


def main() -> None:
    VENDOR.mkdir(parents=True, exist_ok=True)
    for package, (integrity, files) in PACKAGES.items():
        content = fetch(package)
        digest = "sha512-" + base64.b64encode(hashlib.sha512(content).digest()).decode()
        if digest != integrity:
            raise SystemExit(f"{package} has the hash {digest}, not {integrity}")
        with tarfile.open(fileobj=io.BytesIO(content)) as archive:
            for inside, name in files.items():
                file = archive.extractfile(f"package/{inside}")
                assert file is not None
                (VENDOR / name).write_bytes(file.read())
                print(VENDOR / name)


def fetch(package: str) -> bytes:
    """The package as it is in the registry."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["npm", "pack", "--silent", package], cwd=folder, check=True, capture_output=True)
        return next(Path(folder).glob("*.tgz")).read_bytes()


if __name__ == "__main__":
    main()
