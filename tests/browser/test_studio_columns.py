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
def insured():
    """Of a table with laws of several kinds."""
    return studio.insured_explainer()


@pytest.fixture(scope="module")
def lawful(insured):
    with studio.connect(insured) as client:
        yield str(client.base_url)


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


def test_every_law_has_a_switch_and_answers_change_with_it(page, lawful, insured, tmp_path):
    opened(page, lawful)
    items = page.locator(".switches li")
    words = [str(law) for law in insured.schema.laws]
    assert [text[:1].lower() + text[1:] for text in items.locator("label").all_inner_texts()] == words
    expect(items.nth(0).locator("p")).to_have_text("800 rows · no exceptions · kept in every answer")
    expect(items.nth(1).locator("p")).to_have_text("800 rows · 4 exceptions · breaking it costs")
    first = page.locator("#answers .sentence").all_inner_texts()
    ranges = [i for i, law in enumerate(insured.schema.laws) if law.kind == "within"]
    for number in ranges[:-1]:
        page.get_by_label(words[number], exact=False).click()
    reply = after(page, page.get_by_label(words[ranges[-1]], exact=False).click)
    expect(items.nth(ranges[0]).locator("p")).to_contain_text("switched off")
    expect(page.locator(".switches .moved")).to_have_count(len(ranges))
    now = page.locator("#answers .sentence").all_inner_texts()
    assert [text.partition(" Note: ")[0] for text in now] == [line["sentence"] for line in reply["lines"]]
    assert page.locator("#answers .moved").count() >= sum(a != b for a, b in zip(first, now, strict=True)) > 0
    with page.expect_download() as downloaded:
        page.get_by_role("button", name="Save the schema").click()
    saved = tdce.Schema.from_json(downloaded.value.path().read_text("utf-8"))
    assert saved == insured.schema.without_laws(*ranges)
    page.keyboard.press("Control+z")
    expect(page.locator(f"#law-{ranges[-1]}")).to_be_checked(timeout=30_000)
    expect(page.locator(f"#law-{ranges[0]}")).not_to_be_checked()
    page.get_by_role("button", name="Reset").click()
    expect(page.locator("#answers-changed")).to_have_text("0 of 5 answers changed", timeout=30_000)
    assert page.locator(".switches input:checked").count() == len(words)


def test_a_law_is_switched_by_keyboard_and_is_in_the_link(page, lawful, browser):
    opened(page, lawful)
    page.locator("#law-2").focus()
    after(page, lambda: page.keyboard.press("Space"))
    expect(page.locator("#law-2")).to_be_focused()
    expect(page.get_by_role("switch", checked=False)).to_have_count(1)
    other = browser.new_context(locale="de-DE", viewport={"width": 390, "height": 800})
    shared = opened(other.new_page(), lawful, page.url.partition("#page=columns")[2])
    expect(shared.locator("#law-2")).not_to_be_checked()
    expect(shared.locator("#law-2-facts")).to_have_text("351 Zeilen · keine Ausnahmen · ausgeschaltet")
    expect(shared.locator("#law-1-facts")).to_have_text("800 Zeilen · 4 Ausnahmen · sie zu verletzen kostet")
    assert shared.evaluate("document.documentElement.scrollWidth") <= 390
    other.close()


def test_a_switch_and_what_a_column_follows_agree(page, address):
    opened(page, address)
    follows, law = page.get_by_label("Follows: Total paid"), page.get_by_role("switch")
    expect(page.locator("#law-0-facts")).to_contain_text("explains 99.7 %")
    after(page, law.click)
    expect(follows).to_have_value("[]")
    follows.select_option(index=1)
    expect(law).to_be_checked(timeout=30_000)
    assert "laws=" not in page.url
    after(page, lambda: follows.select_option("[]"))
    expect(law).not_to_be_checked()
    after(page, law.click)
    expect(follows).not_to_have_value("[]")
    after(page, lambda: page.get_by_label("Follows: Price").select_option(index=1))
    expect(page.locator(".switches label")).to_have_text("Price = about total_paid / months")
    after(page, law.click)
    expect(page.get_by_label("Follows: Price")).to_have_value("[]")
    page.get_by_label("Follows: Price").select_option(index=1)  # as it was before: the answers are known
    expect(law).to_be_checked(timeout=30_000)


def test_a_reply_that_is_out_of_date_sets_no_switch_back_and_is_not_saved(page, lawful):
    opened(page, lawful)
    law, save = page.locator("#law-3"), page.get_by_role("button", name="Save the schema")
    page.route("**/columns", lambda route: None)  # the server takes its time
    with page.expect_request("**/columns", timeout=30_000):
        assert law.evaluate("(box) => { box.click(); return document.querySelector('#download-schema').disabled; }")
    with page.expect_event("requestfailed", timeout=30_000):  # given up by the page
        law.click()
    expect(law).to_be_checked()
    expect(save).to_be_enabled(timeout=30_000)
    expect(page.locator("#answers-changed")).to_have_text("0 of 5 answers changed")


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
    page.goto("about:blank")
    page.goto(f"{address}/#page=columns&laws=%5B%7B%22number%22%3A99%2C%22on%22%3Afalse%7D%5D")
    expect(page.get_by_role("alert")).to_have_text(
        "there is no law 99; the schema has 1, counted from 0", timeout=30_000
    )
    context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious_in_the_switches(browser, lawful, scheme):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    context = browser.new_context(viewport={"width": 1280, "height": 900}, color_scheme=scheme)
    page = opened(context.new_page(), lawful, "&laws=%5B%7B%22number%22%3A1%2C%22on%22%3Afalse%7D%5D")
    expect(page.get_by_role("switch", checked=False)).to_have_count(1)
    found = [v for v in axe.run(page).response["violations"] if v["impact"] in ("serious", "critical")]
    assert [(v["id"], [node["html"][:120] for node in v["nodes"]][:3]) for v in found] == []
    context.close()
