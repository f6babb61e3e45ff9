"""Take the screenshots of docs/studio.md from a running studio, in Chromium.

    python scripts/pictures_studio.py [NAME.tdce]   # without it, an explainer is fitted on german first

Writes docs/pictures/studio.png, studio-walk.png, studio-phone.png and studio-german.png.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from pictures import PICTURES, browser_path, save
from playwright.sync_api import sync_playwright

import tdce

WAIT = 120_000  # milliseconds


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        artefact = Path(sys.argv[1]) if len(sys.argv) > 1 else fitted(Path(folder) / "german.tdce")
        command = [sys.executable, "-m", "tdce", "serve", str(artefact), "--port", "0", "--no-token"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
            assert server.stdout is not None
            try:
                take(server.stdout.readline().split(" at ")[1].split()[0])
            finally:
                server.terminate()


def fitted(path: Path) -> Path:
    data = tdce.load("german")
    explainer = tdce.Explainer(progress="lines")
    explainer.fit(data.frame, label=data.label, favourable=data.favourable, schema=data.schema).save(path)
    return path


def take(address: str) -> None:
    PICTURES.mkdir(exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=browser_path(), args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": 1280, "height": 1000}, color_scheme="light")
        open_person(page, address)
        save("studio.png", page.screenshot())
        page.get_by_role("button", name="Walk").click()
        page.locator("#step").fill("24", timeout=WAIT)
        page.wait_for_timeout(300)
        save("studio-walk.png", page.screenshot())
        phone = browser.new_page(viewport={"width": 360, "height": 740}, color_scheme="dark", device_scale_factor=2)
        open_person(phone, address)
        save("studio-phone.png", phone.screenshot())
        german = browser.new_page(viewport={"width": 1280, "height": 1000}, color_scheme="light", locale="de-DE")
        open_person(german, address)
        save("studio-german.png", german.screenshot())
        browser.close()


def refused(address: str) -> int:
    """The first person whom the model refuses."""
    with urlopen(f"{address}people") as answer:
        return next(person["number"] for person in json.load(answer)["people"] if not person["met"])


def open_person(page: Any, address: str) -> None:
    """Open the page of a refused person."""
    page.goto(address)
    page.locator("tbody .link").nth(refused(address)).click()
    page.locator(".option").first.wait_for(timeout=WAIT)
    page.wait_for_timeout(300)
    page.evaluate("scrollTo(0, 0)")


if __name__ == "__main__":
    main()
