"""The page “Columns”: settings by mouse and keyboard, and five people's answers that change with them."""

from urllib.parse import urlsplit

import pytest
import studio

import tdce

expect = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: make test-browser").expect


@pytest.fixture(scope="module")
def explainer():
    return studio.lawful_explainer()


@pytest.fixture(scope="module")
def address(explainer):
    with studio.connect(explainer) as client:
        yield str(client.base_url)


def opened(page, address, settings: str = ""):
    page.goto(f"{address}/#page=columns{settings}")
    expect(page.locator("#answers .sentence")).to_have_count(5, timeout=30_000)
    return page


def after(page, action) -> dict:
    """What the server answers to an action, once the page shows it."""
    with page.expect_response(lambda found: urlsplit(found.url).path == "/columns", timeout=30_000) as found:
        action()
    expect(page.locator("#answers:not([aria-busy])")).to_be_visible(timeout=30_000)
    return found.value.json()


def test_an_expert_sets_columns_sees_the_answers_change_and_saves_the_schema(page, address, explainer, tmp_path):
    opened(page, address)
    expect(page.locator("#answers-changed")).to_have_text("0 of 5 answers changed")
    first = page.locator("#answers .sentence").all_inner_texts()
    after(page, lambda: page.get_by_label("Follows: Price").select_option(label="Total paid, Months"))
    expect(page.get_by_label("Follows: Total paid")).to_have_value("[]")
    expect(page.get_by_label("Role: Price").locator("option:checked")).to_have_text("follows others")
    after(page, lambda: page.get_by_label("Role: Complaints").select_option(label="has happened"))
    expect(page.get_by_label("Cost: Complaints")).to_be_disabled()
    after(page, lambda: page.get_by_label("Direction: Months").select_option(label="only down"))
    after(page, lambda: page.get_by_label("Step: Rating").fill("2"))
    reply = after(page, lambda: page.get_by_label("Cost: Contract").fill("9"))
    now = page.locator("#answers .sentence").all_inner_texts()
    assert [text.partition(" Note: ")[0] for text in now] == [line["sentence"] for line in reply["lines"]]
    assert not any("complaints" in text.partition(" Note: ")[0] for text in now)
    changed = sum(old != new for old, new in zip(first, now, strict=True))
    assert changed > 0
    assert page.locator("#answers .moved").count() >= changed
    with page.expect_download() as downloaded:
        page.get_by_role("button", name="Save the schema").click()
    path = tmp_path / downloaded.value.suggested_filename
    downloaded.value.save_as(path)
    schema = explainer.schema.change("price", follows=["total_paid", "months"]).change("complaints", role="history")
    schema = schema.change("months", direction="decrease").change("rating", step=2, levels=None)
    assert (path.name, tdce.Schema.from_json(path.read_text("utf-8"))) == (
        "schema.json", schema.with_rules(costs={"contract": 9.0}),
    )  # fmt: skip
    page.get_by_role("button", name="Reset").click()
    expect(page.locator("#answers-changed")).to_have_text("0 of 5 answers changed")
    assert page.locator("#answers .sentence").all_inner_texts() == first
    expect(page.get_by_label("Cost: Contract")).to_have_value("")


def test_a_law_turned_round_can_be_turned_back_and_undone(page, address):
    opened(page, address)
    after(page, lambda: page.get_by_label("Follows: Months").select_option(index=1))
    page.get_by_label("Follows: Total paid").select_option(index=1)  # as fitted
    expect(page.get_by_label("Follows: Months")).to_have_value("[]", timeout=30_000)
    assert "columns=" not in page.url.partition("#page=columns")[2]
    page.keyboard.press("Control+z")
    expect(page.get_by_label("Follows: Total paid")).to_have_value("[]", timeout=30_000)
    expect(page.locator("tr.moved th")).to_contain_text("Months")


def test_settings_are_made_by_keyboard_and_are_in_the_link(page, address, browser):
    opened(page, address)
    page.get_by_label("Role: Rating").focus()
    after(page, lambda: page.keyboard.press("ArrowDown"))
    expect(page.get_by_label("Role: Rating")).to_be_focused()
    expect(page.get_by_label("Role: Rating")).to_have_value("immutable")
    other = browser.new_context()
    shared = opened(other.new_page(), address, page.url.partition("#page=columns")[2])
    expect(shared.get_by_label("Role: Rating")).to_have_value("immutable")
    expect(shared.locator("tr.moved")).to_have_count(1)
    other.close()


def test_what_is_wrong_is_said_in_the_words_of_python(browser, address, explainer):
    context = browser.new_context()  # of its own: a browser counts a refusal among the errors of a page
    page = opened(context.new_page(), address)
    page.get_by_label("Step: Price").fill("0")
    with pytest.raises(tdce.InputError) as wrong:
        explainer.schema.change("price", step=0)
    expect(page.get_by_role("alert")).to_have_text(str(wrong.value), timeout=30_000)
    expect(page.get_by_role("button", name="Save the schema")).to_be_disabled()
    page.get_by_label("Step: Price").fill("")
    expect(page.locator("#answers .sentence")).to_have_count(5, timeout=30_000)
    broken = "&columns=%5B%7B%22name%22%3A%22nobody%22%7D%5D"  # a link that somebody wrote
    page.goto("about:blank")
    page.goto(f"{address}/#page=columns{broken}")
    expect(page.get_by_role("alert")).to_contain_text("there is no feature 'nobody'", timeout=30_000)
    page.get_by_role("button", name="Reset").click()
    expect(page.locator("#answers .sentence")).to_have_count(5, timeout=30_000)
    context.close()
