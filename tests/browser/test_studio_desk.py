"""The studio at a desk, in Chromium: the answer first, people by id, curves, files, errors, the token, the API."""

import re

import lending
import pandas as pd
import pytest
import studio

from tdce.serving.settings import ServerSettings

expect = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: make test-browser").expect
TOKEN = "a-token-that-nobody-guesses"
MOST_STOPS = 10  # of the tab key, from a person to the first option


@pytest.fixture(scope="module")
def explainer():
    return lending.explainer()


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    frame = lending.table(60, 5).drop(columns="decision")
    return frame.assign(applicant=[f"K-{900 + i}" for i in range(len(frame))])


@pytest.fixture(scope="module")
def address(explainer, rows):
    with studio.connect(explainer, rows=rows) as client:
        yield str(client.base_url)


def opened(page, address):
    page.goto(address)
    page.locator("tbody .link").first.click()
    expect(page.locator(".option").first).to_be_visible(timeout=30_000)
    return page


def tab_stops(page, wanted: str, most: int = 40) -> int:
    for stops in range(1, most + 1):
        page.keyboard.press("Tab")
        if page.evaluate(f"document.activeElement.closest('{wanted}') !== null"):
            return stops
    raise AssertionError(f"{wanted} is not reached")


# the person


@pytest.mark.parametrize("width", [1280, 390])
def test_the_answer_stands_directly_under_the_verdict(browser, address, width):
    context = browser.new_context(viewport={"width": width, "height": 900})
    page = opened(context.new_page(), address)
    verdict, options = page.locator(".decision").bounding_box(), page.locator("#options").bounding_box()
    assert 0 <= options["y"] - (verdict["y"] + verdict["height"]) < 40
    first = page.locator(".option .headline").first.bounding_box()
    assert first["y"] + first["height"] < 900  # on the first screen
    for name in ("constraints", "trade_off"):
        fold = page.locator(f"#{name}")
        assert fold.get_attribute("open") is None
        assert fold.bounding_box()["y"] > options["y"] + options["height"] - 1
    for name in ("constraints", "trade_off"):
        page.locator(f"#{name} > summary").click()
        expect(page.locator(f"#{name}")).to_have_attribute("open", "")
    page.locator("#n").fill("2")
    expect(page.locator(".option")).to_have_count(2, timeout=30_000)
    page.keyboard.press("Control+z")
    expect(page.locator(".option")).to_have_count(3, timeout=30_000)
    expect(page.locator("#constraints")).to_have_attribute("open", "")  # it stays as it was
    context.close()


def test_the_first_option_is_at_most_ten_tab_stops_from_a_person(page, address):
    page.goto(address)
    expect(page.locator("tbody .link").first).to_be_visible()
    page.locator("tbody .link").first.focus()
    page.keyboard.press("Enter")
    expect(page.locator(".option").first).to_be_visible(timeout=30_000)
    assert tab_stops(page, ".option") <= MOST_STOPS
    page.reload()  # the page anew: past the header by its link
    expect(page.locator(".option").first).to_be_visible(timeout=30_000)
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert 1 + tab_stops(page, ".option") <= MOST_STOPS


def test_a_refusal_at_the_border_does_not_look_like_a_yes(page, address):
    replies = {"decisions": [{"row": 0, "prediction": "no", "probabilities": {"no": 0.5003, "yes": 0.4997}}]}
    page.route("**/predict", lambda route: route.fulfill(json=replies))
    opened(page, address)
    expect(page.locator(".decision")).to_contain_text("Chance of “yes”: 49.97 %")
    page.locator("#language").select_option("de")
    expect(page.locator(".decision")).to_contain_text("49,97 %", timeout=30_000)


# people


def test_people_are_searched_and_sorted_by_id(page, address, rows):
    page.goto(address)
    page.locator("#only").select_option("")
    expect(page.locator("tbody .link").first).to_have_text("K-900")
    page.get_by_role("searchbox").fill("k-917")
    expect(page.locator("tbody .link")).to_have_text(["K-917"])
    page.locator("tbody .link").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("K-917")
    page.get_by_role("button", name="People").click()
    expect(page.get_by_role("searchbox")).to_have_value("k-917")  # as it was left
    page.get_by_role("searchbox").fill("nobody")
    expect(page.get_by_text("Nobody matches.")).to_be_visible()
    page.get_by_role("searchbox").fill("")
    expect(page.locator("tbody .link")).to_have_count(25)
    head = page.get_by_role("columnheader", name="Income")
    head.get_by_role("button").click()
    expect(head).to_have_attribute("aria-sort", "ascending")
    lowest = rows.sort_values("income", kind="stable")["applicant"].iloc[0]
    expect(page.locator("tbody .link").first).to_have_text(lowest)
    expect(head.get_by_role("button")).to_be_focused()
    page.keyboard.press("Enter")
    expect(head).to_have_attribute("aria-sort", "descending")
    expect(page.locator("tbody tr").first).to_contain_text(f"{rows['income'].max():,}")
    page.get_by_role("columnheader", name="Person").get_by_role("button").click()
    expect(page.locator("tbody .link").first).to_have_text("K-900")


def test_a_link_to_a_person_of_the_table_has_the_id_as_its_heading(page, address):
    page.goto(f"{address}/#page=person&person=7")
    expect(page.get_by_role("heading", level=1)).to_have_text("K-907", timeout=30_000)
    assert "K-907" not in page.url


# by hand


def test_beside_each_field_is_its_score_curve(page, address):
    opened(page, address)
    page.get_by_role("button", name="Why not this?").click()
    expect(page.locator(".curve")).to_have_count(4, timeout=30_000)
    field, drawing = page.locator("#trial-income").bounding_box(), page.locator(".field .curve").first.bounding_box()
    assert abs(field["y"] - drawing["y"]) < 10  # beside, not below
    assert drawing["x"] >= field["x"] + field["width"]
    caption = page.locator("#trial-income-curve")
    flip = int(re.fullmatch(r"“yes” from (?:about )?([\d,]+)", caption.inner_text())[1].replace(",", ""))
    page.locator("#trial-income").fill(str(flip))
    expect(page.locator(".decision-text")).to_have_text("“yes”")
    debt = page.locator(".curve polyline").nth(1)
    before = debt.get_attribute("points")
    page.locator("#trial-income").fill("500")
    expect(page.locator(".decision-text")).to_have_text("“no”")
    expect(debt).not_to_have_attribute("points", before, timeout=30_000)  # drawn anew from the values as tried
    assert page.locator("#trial-income").get_attribute("aria-describedby") == "trial-income-was trial-income-curve"
    assert page.locator(".curve .bars span").count() == 3


# the walk


def test_the_walk_says_that_it_is_algorithm_1_and_not_the_search(page, address):
    opened(page, address)
    page.get_by_role("button", name="Walk").click()
    expect(page.locator("#walk-note")).to_contain_text("This page shows Algorithm 1 of the paper, not the search")
    expect(page.get_by_role("heading", level=1)).to_contain_text("Algorithm 1")


# files


def table(count: int, name: str, sep: str = ",") -> dict:
    return {
        "name": name,
        "mimeType": "text/csv",
        "buffer": lending.table(count, 4).to_csv(index=False, sep=sep).encode(),
    }


def test_files_are_listed_kept_over_a_reload_and_deleted(page, address):
    page.goto(f"{address}/#page=file")
    expect(page.get_by_text("There is none.")).to_be_visible()
    for count, name in ((4, "first.csv"), (6, "second.csv")):
        page.locator("#file").set_input_files(table(count, name))
        page.locator("#send").click()
        expect(page.get_by_text(f"{count} people are explained")).to_be_visible(timeout=60_000)
    assert page.locator(".job h3").all_inner_texts() == ["second.csv", "first.csv"]
    page.reload()
    expect(page.locator(".job h3")).to_have_text(["second.csv", "first.csv"], timeout=30_000)
    tiles = page.locator(".job", has_text="first.csv").locator(".tiles b")
    expect(tiles.first).to_be_visible()
    assert sum(map(int, tiles.all_inner_texts())) == 4  # people, not lines
    expect(page.locator(".job").first).to_contain_text("begins with an apostrophe")
    with page.expect_download() as found:
        page.locator(".job", has_text="first.csv").get_by_role("button", name="Answers, CSV").click()
    assert len(pd.read_csv(found.value.path())) == 12
    page.locator(".job", has_text="first.csv").get_by_role("button", name="Delete from the server").click()
    expect(page.locator(".job h3")).to_have_text(["second.csv"])
    page.reload()
    expect(page.locator(".job h3")).to_have_text(["second.csv"])
    page.locator(".job .forget").click()
    expect(page.get_by_text("There is none.")).to_be_visible()
    assert page.evaluate("fetch('/health').then((response) => response.json())")["jobs"] == 0
    assert page.evaluate("localStorage.getItem('tdce-jobs')") == "[]"


def test_a_file_that_the_server_has_deleted_leaves_the_list(browser, address):
    context = browser.new_context()  # of its own: a browser counts a refusal among the errors of a page
    page = context.new_page()
    page.goto(address)
    page.evaluate("localStorage.setItem('tdce-jobs', JSON.stringify(['gone', '../people', 3]))")
    page.goto(f"{address}/#page=file")
    page.reload()
    expect(page.get_by_text("There is none.")).to_be_visible()
    assert page.evaluate("localStorage.getItem('tdce-jobs')") == "[]"
    context.close()


# errors


@pytest.mark.parametrize(
    ("locale", "said"),
    [
        ("en-GB", "seem to be separated by ;. Choose “semicolon” in the menu “Column separator”"),
        ("de-DE", "offenbar durch ; getrennt. Wählen Sie „Semikolon“ im Menü „Trennzeichen der Spalten“"),
    ],
)
def test_errors_speak_the_language_and_the_words_of_the_page(browser, address, locale, said):
    context = browser.new_context(locale=locale)
    page = context.new_page()
    page.goto(f"{address}/#page=file")
    page.locator("#file").set_input_files(table(3, "rows.csv", sep=";"))
    page.locator("#send").click()
    expect(page.get_by_role("alert")).to_contain_text(said)
    assert "--sep" not in page.locator("body").inner_text()
    page.locator("#sep").select_option(";")
    page.locator("#send").click()
    expect(page.locator(".job .tiles")).to_be_visible(timeout=60_000)
    page.locator(".job .forget").click()
    expect(page.locator(".job")).to_have_count(0)
    context.close()


def test_what_the_page_has_no_words_for_is_marked_as_english(browser, address):
    context = browser.new_context(locale="de-DE")
    page = opened(context.new_page(), address)
    page.locator("#constraints > summary").click()
    page.get_by_label("Kosten (Standard: 1)").fill("5000")
    alert = page.get_by_role("alert")
    expect(alert).to_contain_text("Der Server sagt:")
    expect(alert.locator("[lang=en]")).to_contain_text("the cost of 'income'")
    context.close()


# the token


def test_the_address_that_the_command_prints_needs_no_typing_and_keeps_no_token(browser, explainer):
    with studio.connect(explainer, ServerSettings(token=TOKEN)) as client:
        context = browser.new_context()
        page = context.new_page()
        page.goto(f"{client.base_url}/#token={TOKEN}")
        expect(page.locator("tbody .link").first).to_be_visible()
        assert TOKEN not in page.url
        page.reload()
        expect(page.locator("tbody .link").first).to_be_visible()
        page.goto(f"{client.base_url}/docs")
        expect(page.get_by_text("Authorization: Bearer TOKEN")).to_be_visible()
        assert page.locator("dialog").count() == 0
        assert TOKEN not in page.locator("body").inner_text()
        context.close()


# the API


def test_every_example_of_the_api_runs_on_its_page(page, address):
    page.goto(f"{address}/docs")
    sections = page.locator(".api")
    expect(sections.first).to_be_visible()
    names = [sections.nth(i).get_attribute("aria-label") for i in range(sections.count())]
    assert {"POST /explain", "POST /curves", "PUT /jobs/{id}/rows"} <= set(names)
    by_name = dict(zip(names, range(len(names)), strict=True))

    def run(name: str) -> str:
        part = sections.nth(by_name[name])
        part.get_by_role("button", name="Run").click()
        expect(part.get_by_text("Answer: 20")).to_be_visible(timeout=30_000)
        return part.locator("pre").last.inner_text()

    later = [name for name in names if "{id}" in name]
    for name in names:
        if name not in later:
            assert run(name)
    run("PUT /jobs/{id}/rows")
    while '"state": "done"' not in run("GET /jobs/{id}"):
        page.wait_for_timeout(100)
    assert "score_after" in run("GET /jobs/{id}/{name}")
    run("DELETE /jobs/{id}")
    page.locator(".api summary", has_text="Example").first.click()
    expect(page.locator(".api pre").first).to_contain_text("curl -s")
    assert page.evaluate("document.documentElement.scrollWidth") <= 1280
