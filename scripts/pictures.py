"""Take the screenshots of README.md in Chromium.

    python scripts/pictures.py   # `make pictures` installs what it needs

Writes docs/pictures/report.png: the report of `tdce demo`, which it runs if demo/report.html does not exist.
"""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
from pathlib import Path

from PIL import Image  # comes with matplotlib
from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parent.parent
PICTURES = ROOT / "docs" / "pictures"
MAX_BYTES = 300_000
COLOURS = 96  # a third of the bytes, with no visible difference
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def main() -> None:
    report = ROOT / "demo" / "report.html"
    if not report.exists():
        subprocess.run([sys.executable, "-m", "tdce", "demo", "--out", report.parent], check=True)
    PICTURES.mkdir(exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=browser_path(), args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": 1180, "height": 1000}, color_scheme="light", reduced_motion="reduce")
        page.goto(report.as_uri())
        page.wait_for_selector(".card")
        page.evaluate("document.getElementById('find').scrollIntoView()")
        save("report.png", page.screenshot())
        browser.close()


def browser_path() -> str:
    return os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, BROWSERS)))


def save(name: str, shot: bytes) -> None:
    picture = Image.open(io.BytesIO(shot)).convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
    picture.save(PICTURES / name, optimize=True)
    size = (PICTURES / name).stat().st_size
    assert size <= MAX_BYTES, f"{name} has {size:,} bytes"
    print(f"{PICTURES / name}: {size:,} bytes")


if __name__ == "__main__":
    main()
