"""Chromium for tests of pages: without a network, and with every error of a page as a failure of its test.

`make test-browser` installs what is needed and runs them. Fixtures: `browser`, and `page`, a fresh one for each test.
"""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ARGUMENTS = [
    "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--no-first-run",
]  # fmt: skip
PLACES = ("chromium", "chromium-browser", "google-chrome")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker("browser")


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """One Chromium for all tests; the environment variable CHROMIUM names another one."""
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: make test-browser")
    path = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, PLACES)), None)
    if path is None:
        pytest.skip("there is no Chromium: apt-get install chromium, or name one in CHROMIUM")
    with api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield started
        started.close()


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    """A page of 1,280 by 900; what goes wrong in it fails the test."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    opened, wrong = context.new_page(), list[str]()
    opened.on("pageerror", lambda error: wrong.append(str(error)))
    opened.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
    yield opened
    context.close()
    assert wrong == []
