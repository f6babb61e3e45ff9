"""The example notebook, executed by a kernel of its own and looked at in Chromium; and the studio inside one."""

import http.server
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import lending
import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "notebook.ipynb"


@pytest.fixture(scope="module")
def executed() -> Any:
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    notebook = nbformat.read(EXAMPLE, as_version=4)
    return nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3").execute()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("notebook")


@pytest.fixture
def served(folder: Path) -> Iterator[str]:
    """The folder over HTTP, as a notebook server has it: a frame knows its parent by its address."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: Any) -> None: ...

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def export(notebook: Any, theme: str) -> str:
    """The notebook as a page that loads nothing."""
    nbconvert = pytest.importorskip("nbconvert")
    exporter = nbconvert.HTMLExporter(theme=theme, require_js_url="", mathjax_url="", jquery_url="", mermaid_js_url="")
    page: str = exporter.from_notebook_node(notebook)[0]
    return page


def outputs(notebook: Any) -> list[Any]:
    return [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]


def test_every_cell_of_the_example_runs_and_shows_what_it_promises(executed: Any) -> None:
    kinds = [set(output.get("data", {})) for output in outputs(executed)]
    assert not [output for output in outputs(executed) if output.output_type in ("error", "stream")]
    assert sum("text/html" in kind for kind in kinds) == 8  # cards, and the studio before and after
    assert sum("image/png" in kind for kind in kinds) == 5
    assert all("text/plain" in kind for kind in kinds)  # for whoever reads no HTML


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_cards_and_plots_of_the_example_can_be_read(executed: Any, folder: Path, page: Any, theme: str) -> None:
    (folder / f"{theme}.html").write_text(export(executed, theme), encoding="utf-8")
    page.route("**/*", lambda route: route.continue_() if route.request.url.startswith("file:") else route.fulfill())
    page.emulate_media(color_scheme=theme)
    page.goto((folder / f"{theme}.html").as_uri())
    cards, pictures = page.locator("div.tdce"), page.locator("img")
    assert cards.count() == 6
    assert pictures.count() == 5
    for i in range(pictures.count()):
        assert pictures.nth(i).evaluate("image => image.naturalWidth") > 400
    first = cards.first
    ink, paper = first.evaluate("e => [getComputedStyle(e).color, getComputedStyle(document.body).backgroundColor]")
    assert contrast(ink, paper) > 4.5
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.screenshot(path=folder / f"{theme}.png", full_page=True)  # to look at


def test_the_studio_answers_inside_a_notebook(folder: Path, served: str, page: Any) -> None:
    explainer = lending.explainer()
    studio = explainer.studio(lending.refused(explainer, 4))
    try:
        html = f"<!doctype html><title>notebook</title><link rel=icon href=data:,><body>{studio._repr_html_()}</body>"
        (folder / "studio.html").write_text(html, encoding="utf-8")
        page.goto(f"{served}/studio.html")
        frame = page.frame_locator("iframe")
        frame.locator("nav#pages a, nav#pages button").first.wait_for(timeout=20_000)
        frame.locator("main h1, main h2").first.wait_for()
        assert frame.locator("dialog").count() == 0  # nobody is asked for the token
        assert studio.token not in page.frames[1].url
        page.screenshot(path=folder / "studio.png")
    finally:
        studio.stop()


def contrast(*colours: str) -> float:
    """Of two colours, as in WCAG."""
    lights = []
    for colour in colours:
        parts = [float(part) / 255 for part in colour.split("(")[1].rstrip(")").split(",")[:3]]
        linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        lights.append(0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2] + 0.05)
    return max(lights) / min(lights)


def test_the_example_is_kept_without_outputs() -> None:
    import json

    cells = json.loads(EXAMPLE.read_text(encoding="utf-8"))["cells"]
    assert all(
        cell["outputs"] == [] and cell["execution_count"] is None for cell in cells if cell["cell_type"] == "code"
    )
