"""The studio as people meet it, in Chromium: a newcomer, a keyboard, a phone, a hostile table, axe."""

import json
import re
from urllib.parse import parse_qs, unquote, urlsplit

import lending
import numpy as np
import pandas as pd
import pytest
import studio

import tdce
from tdce.report.language.catalogue import load_catalogue
from tdce.serving.settings import ServerSettings

expect = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: make test-browser").expect
HOSTILE = "<img src=x onerror=\"document.title='run'\"><script>document.title='run'</script>`'"
TOKEN = "a-token-that-nobody-guesses"


@pytest.fixture(scope="module")
def explainer():
    return lending.explainer()


@pytest.fixture(scope="module")
def address(explainer):
    with studio.connect(explainer) as client:
        yield str(client.base_url)


@pytest.fixture(scope="module")
def hostile():
    """A table whose column and category are a page's worst guests."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({HOSTILE: rng.choice([HOSTILE, "a", "b"], 300), "x": rng.integers(0, 50, 300)})
    frame["y"] = np.where(frame["x"] + 20 * (frame[HOSTILE] == "a") > 30, HOSTILE, "no")
    explainer = tdce.Explainer(hidden=16, steps=30, progress="silent").fit(frame, label="y", favourable=HOSTILE)
    with studio.connect(explainer) as client:
        yield str(client.base_url)


def opened(page, address, number: int = 0):
    """The page of the first refused person (or another one), with options."""
    page.goto(address)
    page.locator("tbody .link").nth(number).click()
    expect(page.locator(".option").first).to_be_visible(timeout=30_000)
    return page


def unfold(page, *names: str) -> None:
    """Open folded parts of the page of a person."""
    for name in names:
        page.locator(f"#{name} > summary").click()


def asked(page, path: str, action) -> dict:
    """What the server answers to what an action asks it."""
    with page.expect_response(lambda response: urlsplit(response.url).path == path) as found:
        action()
    return found.value.json()


def test_a_newcomer_comes_from_the_start_page_to_an_exported_report(page, address, tmp_path):
    page.goto(address)
    expect(page.get_by_role("heading", level=1)).to_have_text("What would have to be different?")
    page.locator("tbody .link").first.click()
    expect(page.locator(".decision-text")).to_have_text("“no”")
    expect(page.locator(".option")).to_have_count(3, timeout=30_000)
    sentence = page.locator(".option .headline").first.inner_text()
    assert sentence.startswith("The decision would be “yes” if ")
    with page.expect_download(timeout=60_000) as downloaded:
        page.locator("#export").click()
    path = tmp_path / downloaded.value.suggested_filename
    downloaded.value.save_as(path)
    assert path.name == "report.html"
    assert "<html" in path.read_text(encoding="utf-8")


def test_the_options_are_those_of_python(page, address, explainer):
    found = asked(page, "/explain", lambda: opened(page, address))["lines"]
    person = page.evaluate("fetch('/people?met=false&count=1').then((response) => response.json())")["people"][0]
    answer = explainer.explain(pd.DataFrame([person["values"]]), n=3)
    assert [line["values"] for line in found] == json.loads(answer.written.to_json(orient="records"))
    assert [line["score_after"] for line in found] == answer.to_frame()["score_after"].tolist()
    assert page.locator(".option .headline").all_inner_texts() == answer.sentences(audience="analyst")


def test_locks_ranges_directions_costs_and_rules_are_asked_for(page, address):
    opened(page, address)
    unfold(page, "constraints")
    for change in (
        lambda: page.get_by_role("button", name="Keep Income as it is").click(),
        lambda: page.get_by_label("Rules, one per line").fill("at most 2 changes"),
    ):
        asked(page, "/explain", change)
    page.get_by_label("Constraint on").select_option(label="Debt")
    page.get_by_label("At least").fill("100")
    page.get_by_label("Cost (default: 1)").fill("2")
    with page.expect_request(lambda request: "was(" in (request.post_data or "")) as sent:  # no earlier change
        page.get_by_label("Direction").select_option(label="only down")
    question = sent.value.post_data_json
    assert question["immutable"] == ["income"]
    assert question["rules"] == ["`debt` >= 100", "`debt` <= was(`debt`)", "at most 2 changes"]
    assert question["costs"] == {"debt": 2}
    assert page.locator("#constraints-set li").count() == 3
    expect(page.locator("#constraints > summary")).to_have_text("Limits for this person 4 set")
    expect(page.locator("#options")).not_to_have_attribute("aria-busy", "true", timeout=30_000)
    assert "Income" not in page.locator(".changes b").all_inner_texts()


def test_the_caret_of_a_wrong_rule_stands_under_its_character(browser, address, explainer):
    context = browser.new_context()  # of its own: a browser counts a refusal among the errors of a page
    page = opened(context.new_page(), address)
    unfold(page, "constraints")
    page.get_by_label("Rules, one per line").fill("income > 5 * + debt")
    with pytest.raises(tdce.InputError) as wrong:
        explainer.explain(lending.refused(explainer, 1), rules=["income > 5 * + debt"])
    first, *place = str(wrong.value).split("\n")
    alert = page.get_by_role("alert")
    expect(alert).to_contain_text("This rule cannot be read at character 14.")
    expect(alert).to_contain_text(first.partition(": ")[2])
    drawn = alert.locator("pre")
    assert drawn.inner_text().split("\n") == place
    style = drawn.evaluate("(each) => [getComputedStyle(each).whiteSpace, getComputedStyle(each).fontFamily]")
    assert style[0] == "pre"
    assert "monospace" in style[1]
    page.get_by_label("Rules, one per line").fill("")
    expect(page.locator(".option").first).to_be_visible(timeout=30_000)
    context.close()


def test_the_trade_off_is_measured_and_drawn(page, address):
    opened(page, address)
    unfold(page, "trade_off")
    page.locator("#measure").click()
    expect(page.locator("#along canvas")).to_be_visible(timeout=60_000)
    page.get_by_text("The numbers").click()
    assert page.locator("#along tbody tr").count() == 5
    found = asked(page, "/explain", lambda: page.get_by_role("slider", name="Closeness").fill("0.3"))
    assert found["lines"]
    expect(page.locator("#along tbody tr")).to_have_count(6)


def test_a_value_changed_by_hand_is_judged_at_once(page, address):
    opened(page, address)
    page.get_by_role("button", name="Keep Age as it is").click()
    page.get_by_role("button", name="Try by hand").first.click()
    expect(page.locator(".decision-text")).to_have_text("“yes”")
    expect(page.get_by_text("No constraint is violated.")).to_be_visible()
    page.locator("#trial-age").fill("20")
    expect(page.locator(".texts.bad")).to_contain_text("age may not change")
    page.get_by_role("button", name="Back to the person").click()
    expect(page.locator(".decision-text")).to_have_text("“no”")


def test_a_value_that_is_typed_in_is_decided_at_once(page, address, explainer):
    opened(page, address)
    found = asked(page, "/predict", lambda: page.locator("#value-income").fill("9000"))
    assert found["decisions"][0]["prediction"] == "yes"
    expect(page.locator(".decision-text")).to_have_text("“yes”")
    expect(page.get_by_role("heading", level=1)).to_have_text("A person you entered")
    expect(page.locator(".option .headline").first).to_have_text("The decision is already “yes”.", timeout=30_000)


def test_undo_and_redo_bring_values_and_settings_back(page, address):
    opened(page, address)
    income = page.locator("#value-income")
    before = income.input_value()
    income.fill("9000")
    page.get_by_role("button", name="Keep Debt as it is").click()
    page.keyboard.press("Control+z")
    expect(page.get_by_role("button", name="Keep Debt as it is")).to_have_attribute("aria-pressed", "false")
    page.keyboard.press("Control+z")
    expect(page.locator("#value-income")).to_have_value(before)
    page.locator("#redo").click()
    expect(page.locator("#value-income")).to_have_value("9000")


def test_a_link_has_the_settings_and_nobodys_values(page, address, browser):
    opened(page, address, 1)
    page.get_by_role("button", name="Keep Age as it is").click()
    unfold(page, "trade_off")
    page.get_by_role("slider", name="Closeness").fill("0.4")
    page.locator("#value-debt").fill("1234.56")  # now somebody of one's own
    page.locator("#value-income").fill("7654")
    link = unquote(page.url)
    assert '"age"' in link
    assert "1234" not in link
    assert "7654" not in link
    settings = parse_qs(urlsplit(page.url).fragment)
    assert settings == {"page": ["person"], "closeness": ["0.4"], "locks": ['["age"]']}
    page.keyboard.press("Control+z")
    page.keyboard.press("Control+z")  # the person of the table again
    assert parse_qs(urlsplit(page.url).fragment)["person"][0].isdigit()
    other = browser.new_context()
    shared = other.new_page()
    shared.goto(page.url)
    expect(shared.locator("#value-income")).to_have_value(page.locator("#value-income").input_value())
    expect(shared.get_by_role("button", name="Keep Age as it is")).to_have_attribute("aria-pressed", "true")
    assert shared.locator("#closeness").input_value() == "0.4"
    other.close()


def test_an_address_that_makes_no_sense_harms_nothing(page, address):
    page.goto(f"{address}/#page=%3Cscript%3E&n=900&locks=%5B3%5D&closeness=x&rules=%7B&person=-4")
    expect(page.locator("tbody .link").first).to_be_visible()


def test_the_walk_is_played_to_its_end(page, address):
    opened(page, address)
    page.get_by_role("button", name="Walk").click()
    expect(page.locator("canvas")).to_be_visible(timeout=30_000)
    page.locator("#step").fill("35")
    page.locator("#play").click()
    expect(page.locator("#where")).to_contain_text("the end of the walk", timeout=15_000)
    expect(page.locator("#play")).to_have_text("Play")


def test_a_file_is_sent_watched_and_fetched(page, address, tmp_path):
    path = tmp_path / "rows.csv"
    lending.table(30, 4).to_csv(path, index=False)
    page.goto(address)
    page.get_by_role("button", name="File").click()
    page.locator("#file").set_input_files(path)
    page.get_by_role("button", name="Explain the file").click()
    expect(page.get_by_role("heading", name="rows.csv")).to_be_visible(timeout=60_000)
    expect(page.get_by_text("30 people are explained")).to_be_visible(timeout=60_000)
    assert sum(map(int, page.locator(".job .tiles b").all_inner_texts())) == 30
    with page.expect_download() as downloaded:
        page.get_by_role("button", name="Answers, CSV").click()
    downloaded.value.save_as(tmp_path / "answer.csv")
    assert len(pd.read_csv(tmp_path / "answer.csv")) == 90
    page.get_by_role("button", name="Delete from the server").click()
    expect(page.locator(".job")).to_have_count(0)
    assert page.evaluate("fetch('/health').then((response) => response.json())")["jobs"] == 0


def test_a_file_can_be_stopped(page, address, tmp_path):
    path = tmp_path / "rows.csv"
    lending.table(3000, 4).to_csv(path, index=False)
    page.goto(address)
    page.get_by_role("button", name="File").click()
    page.locator("#file").set_input_files(path)
    page.get_by_role("button", name="Explain the file").click()
    page.get_by_role("button", name="Stop").click()
    expect(page.get_by_text("Deleted; nothing was kept.")).to_be_visible()
    assert page.evaluate("fetch('/health').then((response) => response.json())")["jobs"] == 0


def test_a_server_with_a_token_asks_for_it(browser, explainer):
    with studio.connect(explainer, ServerSettings(token=TOKEN)) as client:
        context = browser.new_context()
        page = context.new_page()
        page.goto(str(client.base_url))
        page.get_by_label("Token").fill(TOKEN)
        page.get_by_role("button", name="Continue").click()
        expect(page.locator("tbody .link").first).to_be_visible()
        assert TOKEN not in page.url
        context.close()


# keyboard, phone, hostile names, checker


def test_everything_is_reached_by_keyboard_alone(page, address):
    """From the start page to a trial by hand, and back, with Tab, Enter, Space and arrows."""
    page.goto(address)
    expect(page.locator("tbody .link").first).to_be_visible()

    def until(name: str, most: int = 120) -> None:
        for _ in range(most):
            page.keyboard.press("Tab")
            if page.evaluate("document.activeElement.getAttribute('aria-label') || document.activeElement.id "
                             "|| document.activeElement.textContent") == name:  # fmt: skip
                outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
                assert outline == "solid", name
                return
        raise AssertionError(f"{name} is not reached")

    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "skip"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    until("Search by id, number or value")
    until("type-in")
    until(page.locator("tbody .link").first.inner_text())
    page.keyboard.press("Enter")  # the first person
    expect(page.locator(".option").first).to_be_visible(timeout=30_000)
    until("Limits for this person")
    page.keyboard.press("Enter")
    until("rules")
    until("Trade-off 0.75 (default)")
    page.keyboard.press("Enter")
    until("closeness")
    page.keyboard.press("ArrowLeft")
    expect(page.locator("#closeness-value")).to_contain_text("0.70")
    until("Keep Age as it is")
    page.keyboard.press("Space")
    expect(page.get_by_role("button", name="Keep Age as it is")).to_have_attribute("aria-pressed", "true")
    expect(page.locator("#options")).not_to_have_attribute("aria-busy", "true", timeout=30_000)
    until("Try by hand")  # round the whole page
    until("export")
    page.locator(".option button").first.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Why not this?")
    until("trial-income")
    page.keyboard.press("ArrowUp")
    expect(page.locator(".field.moved").first).to_be_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_is_wider_than_a_phone_of_360_pixels(browser, address, scheme, tmp_path):
    context = browser.new_context(viewport={"width": 360, "height": 740}, color_scheme=scheme, has_touch=True)
    page = context.new_page()
    path = tmp_path / "rows.csv"
    lending.table(5, 4).to_csv(path, index=False)

    def fits() -> None:
        assert page.evaluate("document.documentElement.scrollWidth") <= 360, page.url

    opened(page, address)
    fits()
    unfold(page, "constraints", "trade_off")
    page.locator("#measure").click()
    expect(page.locator("#along canvas")).to_be_visible(timeout=60_000)
    fits()
    page.get_by_role("button", name="Try by hand").first.click()
    expect(page.locator(".glance")).to_contain_text("“yes”")
    fits()
    page.get_by_role("button", name="Walk").click()
    expect(page.locator("canvas")).to_be_visible(timeout=30_000)
    fits()
    page.get_by_role("button", name="File").click()
    page.locator("#file").set_input_files(path)
    page.get_by_role("button", name="Explain the file").click()
    expect(page.get_by_role("button", name="Delete from the server")).to_be_visible(timeout=60_000)
    fits()
    page.get_by_role("button", name="Delete from the server").click()
    for name in ("Columns", "Model", "People"):
        page.get_by_role("button", name=name).click()
        expect(page.locator("table")).to_be_visible(timeout=30_000)
        fits()
    context.close()


def test_a_hostile_name_is_text_on_every_page(page, hostile):
    opened(page, hostile)
    assert page.locator("label", has_text="<img src=x").first.is_visible()
    page.get_by_role("button", name="Try by hand").first.click()
    expect(page.locator(".decision-text")).to_contain_text("<img src=x")
    for name in ("Walk", "Columns", "Model", "People"):
        page.get_by_role("button", name=name, exact=True).click()
        expect(page.locator("table.rows")).to_be_visible(timeout=30_000)
        assert "run" not in page.title()
    assert page.locator("main img, main script").count() == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(browser, address, scheme):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    context = browser.new_context(viewport={"width": 1280, "height": 900}, color_scheme=scheme)
    page = context.new_page()

    def sound(name: str) -> None:
        found = [v for v in axe.run(page).response["violations"] if v["impact"] in ("serious", "critical")]
        told = [(v["id"], [node["html"][:120] for node in v["nodes"]][:3]) for v in found]
        assert told == [], (name, told)

    page.goto(address)
    expect(page.locator("tbody .link").first).to_be_visible()
    sound("people")
    opened(page, address)
    unfold(page, "constraints", "trade_off")
    page.locator("#measure").click()
    expect(page.locator("#along canvas")).to_be_visible(timeout=60_000)
    sound("person")
    page.get_by_role("button", name="Try by hand").first.click()
    expect(page.locator(".facts")).to_be_visible()
    expect(page.locator(".curve")).to_have_count(4, timeout=30_000)
    sound("trial")
    page.get_by_role("button", name="Walk").click()
    expect(page.locator("canvas")).to_be_visible(timeout=30_000)
    sound("walk")
    page.get_by_role("button", name="File").click()
    page.locator("#file").set_input_files(
        {"name": "r.csv", "mimeType": "text/csv", "buffer": lending.table(3).to_csv(index=False).encode()}
    )
    page.get_by_role("button", name="Explain the file").click()
    expect(page.locator(".job .tiles")).to_be_visible(timeout=60_000)
    sound("file")
    page.locator(".job .forget").click()
    page.get_by_role("button", name="Columns").click()
    expect(page.locator("#answers .sentence").first).to_be_visible(timeout=30_000)
    sound("columns")
    page.get_by_role("button", name="Model").click()
    expect(page.locator(".tiles")).to_be_visible()
    sound("model")
    page.goto(f"{address}/docs")
    expect(page.locator(".api").first).to_be_visible()
    for part in page.locator(".api summary").all()[:6]:
        part.click()
    sound("docs")
    context.close()


@pytest.fixture
def german(browser):
    """A page of somebody whose browser prefers German; what goes wrong in it fails the test."""
    context = browser.new_context(viewport={"width": 360, "height": 800}, locale="de-DE")
    opened, wrong = context.new_page(), list[str]()
    opened.on("pageerror", lambda error: wrong.append(str(error)))
    yield opened
    context.close()
    assert wrong == []


def english() -> list[str]:
    """What pages say in English and not in German, as far as it has no places and is more than a short word."""
    ours = (
        (key, said) for key, said in load_catalogue("en").messages.items() if key.startswith(("studio_", "status_"))
    )
    german = str(load_catalogue("de").messages)
    return [
        said for _, said in ours if isinstance(said, str) and "{" not in said and len(said) > 7 and said not in german
    ]


def test_german_pages_have_no_english_on_them(german, address):
    page, words = german, english()
    assert len(words) > 80
    opened(page, address)
    assert page.locator("html").get_attribute("lang") == "de"
    for i, heading in enumerate(
        [
            "Was müsste anders sein?",
            "Person",
            "Warum nicht so?",
            "der Weg zurück",
            "Eine ganze Datei",
            "Was jede Spalte ist",
            "Das Modell",
        ]
    ):
        page.locator("#pages button").nth(i).click()
        expect(page.get_by_role("heading", level=1)).to_contain_text(heading)
        expect(page.locator(".loading")).to_have_count(0, timeout=30_000)
        said = page.locator("body").inner_text() + str(
            page.locator("[aria-label], [title]").evaluate_all(
                "(all) => all.map((each) => `${each.ariaLabel} ${each.title}`)"
            )
        )
        assert [each for each in words if re.search(rf"(?<!\w){re.escape(each)}(?!\w)", said)] == [], heading
        assert page.evaluate("document.documentElement.scrollWidth") <= 360, heading
    assert re.search(r"\d,\d\d", opened(page, address).locator("#closeness-value").inner_text())


def test_the_language_is_switched_with_the_person_kept_and_remembered(german, address):
    page = german
    page.goto(f"{address}/?lang=en#page=people")
    page.locator("#type-in").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("A person you entered")
    assert urlsplit(page.url).query == ""
    page.locator("#values summary").click() if page.locator("#values[open]").count() == 0 else None
    page.locator("#value-age").fill("51")
    page.locator("#language").select_option("de")
    expect(page.get_by_role("heading", level=1)).to_have_text("Selbst eingegebene Person")
    expect(page.locator("#value-age")).to_have_value("51")
    expect(page.locator("#language")).to_be_focused()
    assert page.locator("html").get_attribute("lang") == "de"
    page.locator("#language").select_option("en")
    page.reload()
    expect(page.get_by_role("heading", level=1)).to_have_text("What would have to be different?")
    assert [(each["name"], each["value"]) for each in page.context.cookies()] == [("tdce-language", "en")]


def test_the_files_of_the_model_page_come_with_the_token(browser, explainer):
    with studio.connect(explainer, ServerSettings(token=TOKEN)) as client:
        page = browser.new_context().new_page()
        page.goto(f"{client.base_url}/#page=model")
        page.locator("#token").fill(TOKEN)
        page.locator("dialog button").click()
        for i, (name, inside) in enumerate([("openapi.json", '"/explain"'), ("metrics.txt", "tdce_requests_total")]):
            with page.expect_download() as found:
                page.locator("main p a").nth(i + 1).click()
            assert found.value.suggested_filename == name
            assert inside in found.value.path().read_text("utf-8")
        page.context.close()


def test_what_may_not_be_named_is_on_no_page(page, explainer):
    silent = explainer.with_words({"age": {"named": False}})
    with studio.connect(silent) as client:
        sent = []
        page.on(
            "request", lambda request: sent.append(request.post_data_json) if request.url.endswith("/explain") else None
        )
        opened(page, str(client.base_url))
        assert sent[0]["rows"][0].keys() >= {"age"}  # the value is kept
        expect(page.locator("#unseen")).to_have_text("1 value is kept and not shown here.")
        for i in range(6):
            page.locator("#pages button").nth(i).click()
            expect(page.locator(".loading")).to_have_count(0, timeout=30_000)
            assert re.search(r"\bage\b", page.locator("body").inner_text(), re.IGNORECASE) is None
            assert page.locator("[id$=-age]").count() == 0
    with studio.connect(explainer.with_words({"age": {"seen_by": "analyst"}})) as client:
        opened(page, str(client.base_url))
        expect(page.locator("#value-age")).to_be_visible()
