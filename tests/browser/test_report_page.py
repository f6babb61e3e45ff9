"""A report as people meet it, in Chromium: by keyboard, on a phone, on paper, in the dark, with ten thousand people."""

import re
import zlib

import lending
import pandas as pd
import pytest
from test_report import pool, written

import tdce

expect = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: make test-browser").expect
HOSTILE = "<script>document.title='run'</script><img src=x onerror=\"document.title='run'\">"


@pytest.fixture(scope="module")
def lent():
    return lending.explainer()


@pytest.fixture(scope="module")
def report(lent, tmp_path_factory):
    """Thirty-five people with three options each, groups and metrics."""
    path = tmp_path_factory.mktemp("report") / "report.html"
    rows = lending.refused(lent, 35).assign(branch=["north", "south"] * 17 + ["north"])
    answer = lent.explain(rows, n=3)
    answer.to_html(path, metrics=lent.evaluate(answer), population=lent.population(lending.table()))
    return path.as_uri()


@pytest.fixture(scope="module")
def crowded(lent, tmp_path_factory):
    path = tmp_path_factory.mktemp("crowded") / "report.html"
    pool(lent, 10_000).to_html(path)
    return path.as_uri()


def titles(page):
    return page.locator("#cards h3").all_inner_texts()


def focused(page):
    return page.evaluate("document.activeElement.id || document.activeElement.textContent")


# ---- found, sorted, turned


def test_people_are_found_filtered_sorted_and_turned_over(page, report):
    page.goto(report)
    assert page.locator("#count").inner_text() == "35 of 35 people"
    assert len(titles(page)) == 10
    page.locator("#next").click()
    assert page.locator("#page").input_value() == "2"
    page.locator("#page").fill("4")
    page.locator("#page").press("Enter")
    assert len(titles(page)) == 5
    assert page.locator("#next").is_disabled()
    page.locator("#size").select_option("50")
    assert len(titles(page)) == 35
    page.locator("#feature").select_option(label="housing")
    shown = len(titles(page))
    assert 0 < shown < 35
    assert page.locator("#cards .card", has=page.locator(".change b", has_text="housing")).count() == shown
    page.locator("#status").select_option(label="already accepted")
    assert page.locator("#count").inner_text() == "0 of 35 people"
    assert titles(page) == []


def test_the_first_screen_holds_the_finding_and_names_who_is_left_without(page, tmp_path):
    written().to_html(tmp_path / "page.html")
    page.goto((tmp_path / "page.html").as_uri())
    assert page.locator("h2").first.inner_text() == "1 of 3 people have a way to “good”."
    for part in (".steps li", ".without li"):
        box = page.locator(part).first.bounding_box()
        assert box["y"] + box["height"] < 900
    page.get_by_role("link", name="Person Dan").click()
    expect(page.locator("#cards h3")).to_have_text(["Person Dan"])


def test_a_card_is_led_by_the_person_and_one_sentence(page, report):
    page.goto(report)
    for card in page.locator(".card").all():
        name, sentence = card.locator("h3").bounding_box(), card.locator(".sentence").first.bounding_box()
        chart = card.locator(".change").first.bounding_box()
        assert name["y"] < sentence["y"] < chart["y"]
        text = card.locator(".sentence").first.inner_text()
        assert text.startswith("The decision would be “yes”, ")
        assert text.endswith(".")
        assert text.count(". ") == 0


def test_every_change_has_one_chart_with_people_out_of_ten(page, report):
    page.goto(report)
    page.locator("#size").select_option("50")
    changes = page.locator(".change")
    assert changes.count() > 35
    for change in changes.all()[:60]:
        tallies, plots = change.locator(".tally").count(), change.locator(".plot").count()
        assert (tallies > 0) != (plots > 0)  # of a category, or of a number
        said = change.locator(".tally, .beside").all_inner_texts()
        assert all(any(word in each for word in ("in 10", "in 100", "Nearly all", "nearly all")) for each in said)
        assert all("“yes”" in each or "“no”" in each for each in said)
        if plots:
            assert change.locator(".plot").get_attribute("aria-label")
    dots = page.locator(".tally").first
    number = dots.locator(".has").count()
    assert dots.locator("i").count() == 10
    assert dots.inner_text().startswith((f"{number} in 10", "nearly all", "fewer")) or "in 100" in dots.inner_text()
    assert page.locator("#cards").get_by_text("log odds").count() == 0


def test_the_appendix_says_what_each_change_is_worth_of_the_people_shown(page, report):
    page.goto(report)
    assert page.locator("#worth-rows tr").count() == 10
    assert page.locator("#worth thead th").all_inner_texts() == ["Person", "the way", "just passing", "all applicants"]
    assert page.locator("#worth-rows th").all_inner_texts() == titles(page)
    page.locator("#next").click()
    assert page.locator("#worth-rows th").all_inner_texts() == titles(page)
    assert page.locator("table.agreement tbody tr").count() == 3


def test_an_applicants_page_has_one_card_no_controls_and_no_sideways_scrolling(browser, lent, tmp_path):
    rows = lending.refused(lent, 3).assign(customer=["A 1", "B 2", "C 3"])
    lent.explain(rows, n=2).to_html(tmp_path / "pages", id="customer", audience="applicant", language="de")
    for width, script in ((1280, True), (390, True), (390, False)):
        context = browser.new_context(viewport={"width": width, "height": 844}, java_script_enabled=script)
        opened, wrong = context.new_page(), list[str]()
        opened.on("pageerror", lambda error, wrong=wrong: wrong.append(str(error)))
        opened.goto(next((tmp_path / "pages").glob("B-2-*.html")).as_uri())
        assert opened.locator("h1").inner_text() == "Was die Entscheidung ändern würde"
        assert opened.locator(".card").count() == script
        assert opened.locator("input, select, button").count() == 0
        assert opened.evaluate("document.documentElement.scrollWidth") <= width
        sentence = opened.locator(".sentence" if script else ".unscripted p").first
        assert sentence.inner_text().startswith("Die Entscheidung wäre „yes“")
        assert sentence.is_visible()
        if script:
            assert titles(opened) == ["B 2"]
            assert opened.locator(".change").count() > 0
        context.close()
        assert wrong == []


def test_sorting_puts_the_lowest_score_first(page, report):
    page.goto(report)
    page.locator("#size").select_option("50")
    page.locator("#sort").select_option("before")
    now = [
        text.split(" %")[0] for text in page.locator(".option:first-child .scale:first-child .values").all_inner_texts()
    ]
    assert len(now) == 35
    assert [int(each) for each in now] == sorted(int(each) for each in now)


def test_a_search_for_a_label_and_for_a_value(page, tmp_path):
    written().to_html(tmp_path / "page.html")
    page.goto((tmp_path / "page.html").as_uri())
    assert titles(page) == ["Person Ada", "Person Bo & Co", "Person Cyd", "Person Dan"]
    page.locator("#search").fill("bo &")
    expect(page.locator("#count")).to_have_text("1 of 4 people")
    assert titles(page) == ["Person Bo & Co"]
    page.locator("#search").fill("5,000")
    expect(page.locator("#cards h3")).to_have_text(["Person Cyd"])


def test_ten_thousand_people_are_searched_and_sorted_without_a_long_task(page, crowded):
    page.goto(crowded)
    assert page.locator("#count").inner_text() == "10,000 of 10,000 people"
    assert page.locator(".card").count() == 10  # never more than a page of them
    page.evaluate(
        "new PerformanceObserver(list => (window.longest = Math.max(window.longest || 0, ...list.getEntries()"
        ".map(each => each.duration)))).observe({entryTypes: ['longtask']})"
    )
    page.locator("#search").fill("person 09876")
    expect(page.locator("#count")).to_have_text("1 of 10,000 people")
    assert titles(page) == ["Person person 09876"]
    page.locator("#search").fill("")
    expect(page.locator("#count")).to_have_text("10,000 of 10,000 people")
    for key in ("effort", "typical", "few", "after"):
        page.locator("#sort").select_option(key)
        assert page.locator(".card").count() == 10
    page.locator("#page").fill("1000")
    page.locator("#page").press("Enter")
    assert page.locator(".card").count() == 10
    assert page.locator("#next").is_disabled()
    assert page.evaluate("window.longest || 0") < 2_000  # milliseconds; some fifty, unless the machine is very busy


def test_a_packed_report_opens_too(page, lent, tmp_path, monkeypatch):
    monkeypatch.setattr("tdce.report.page.PLAIN_BYTES", 0)
    monkeypatch.setattr("tdce.report.page.PLAIN_BYTES_PER_ROW", 10)
    pool(lent, 60).to_html(tmp_path / "page.html")
    page.goto((tmp_path / "page.html").as_uri())
    page.wait_for_selector(".card")
    assert page.locator("#count").inner_text() == "60 of 60 people"


def test_groups_are_chosen_by_column(page, report):
    page.goto(report)
    page.locator("#group").select_option(label="branch")
    shown = page.locator(".group:visible")
    assert shown.count() == 1
    assert shown.locator("tbody th").all_inner_texts() == ["north (few people)", "south (few people)"]


# ---- for everybody


def test_everything_is_reached_and_done_by_keyboard(page, report):
    page.goto(report)
    page.keyboard.press("Tab")
    assert focused(page) == "Skip to the people"
    page.keyboard.press("Enter")
    reached = []
    for _ in range(9):
        page.keyboard.press("Tab")
        reached.append(focused(page))
    assert reached[:7] == ["search", "status", "feature", "sort", "size", "values", "print"]
    page.locator("#values").focus()
    page.keyboard.press("Enter")
    assert page.locator("#cards table:visible").count() == 10
    page.locator("#next").focus()
    page.keyboard.press("Enter")
    assert focused(page) == titles(page)[0]  # the first card of the new page
    outline = page.evaluate(
        "(document.getElementById('search').focus(), getComputedStyle(document.getElementById('search')).outlineWidth)"
    )
    assert outline == "3px"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(browser, report, scheme):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    context = browser.new_context(color_scheme=scheme)
    page = context.new_page()
    page.goto(report)
    page.locator("#values").click()
    found = axe.run(page).response["violations"]
    context.close()
    assert [
        (each["id"], each["nodes"][0]["html"][:200]) for each in found if each["impact"] in ("serious", "critical")
    ] == []


def test_a_phone_of_360_pixels_needs_no_sideways_scrolling(page, report):
    page.set_viewport_size({"width": 360, "height": 740})
    page.goto(report)
    page.locator("#values").click()
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    outside = page.evaluate(
        "[...document.querySelectorAll('main *')].filter(e => !e.closest('.scroll, .map, .sr') && "
        "e.getBoundingClientRect().right > 361).map(e => e.outerHTML.slice(0, 120))"
    )
    assert outside == []


def test_without_javascript_all_but_the_cards_can_be_read(browser, report):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(report)
    assert page.get_by_text("JavaScript is off").is_visible()
    assert page.locator("#find").is_hidden()
    assert page.locator("table.changes").is_visible()
    assert page.locator("table.metrics").is_visible()
    assert page.locator(".group:visible").count() > 1  # all of them, as there is no choice
    context.close()


# ---- hostile, offline, on paper


def test_a_hostile_name_is_shown_and_not_run(page, tmp_path):
    table = pd.DataFrame(
        {
            f"n{HOSTILE}": [i * 7 % 13 for i in range(40)],
            f"w{HOSTILE}": [f"u{HOSTILE}", "v"] * 20,
            f"y{HOSTILE}": [f"no{HOSTILE}", "yes"] * 20,
        }
    )
    made = tdce.Explainer(hidden=8, steps=5, progress="silent").fit(table, label=f"y{HOSTILE}", favourable="yes")
    made.save(tmp_path / "m.tdce")
    rows = table.drop(columns=f"y{HOSTILE}").head(6).set_axis([f"row{HOSTILE}{i}" for i in range(6)])
    rows = rows.assign(**{f"branch{HOSTILE}": [f"b{HOSTILE}", "c"] * 3})
    answer = made.explain(rows, n=2)
    answer.to_html(tmp_path / "page.html", title=f"title {HOSTILE}")
    page.goto((tmp_path / "page.html").as_uri())
    page.wait_for_selector(".card")
    page.locator("#values").click()
    page.locator("#group").select_option(label=f"branch{HOSTILE}")
    page.locator("#search").fill("<script>")
    page.wait_for_timeout(300)
    assert page.title() == f"title {HOSTILE}"  # as written, not as a script would have set it
    assert page.locator("main script, main img, h1 img").count() == 0
    assert titles(page)[0] == f"Person row{HOSTILE}0"
    assert page.get_by_text(f"u{HOSTILE}").first.is_visible()


def test_nothing_is_fetched(page, report):
    asked = list[str]()
    page.on("request", lambda request: asked.append(request.url))
    page.goto(report)
    page.wait_for_selector(".card")
    assert asked == [report]


def test_paper_has_every_card_whole_and_no_controls(page, report):
    page.goto(report)
    page.emulate_media(media="print")
    for gone in ("#find", "#pages", "nav.top", ".buttons"):
        assert page.locator(gone).first.is_hidden()
    assert page.evaluate("getComputedStyle(document.querySelector('.card')).breakInside") == "avoid"
    colours = page.evaluate(
        "[...new Set([...document.querySelectorAll('main *')].map(e => getComputedStyle(e).color))]"
    )
    assert all(len(set(colour.strip("rgb()").split(", "))) == 1 for colour in colours), colours  # grey or black


def test_a_person_takes_a_page_or_less_and_no_page_is_nearly_blank(browser, report):
    context = browser.new_context(viewport={"width": 695, "height": 1010})  # A4 within its margins
    page = context.new_page()
    page.goto(report)
    page.evaluate("window.print = () => {}")
    page.locator("#print").click()
    page.emulate_media(media="print")
    heights = [card.bounding_box()["height"] for card in page.locator(".card").all()]
    assert len(heights) == 35
    assert max(heights) < 1010
    drawn = glyphs(page.pdf(format="A4"))
    context.close()
    assert len(drawn) < 35  # less than a page each
    assert min(drawn[:-1]) > 0.25 * max(drawn), drawn  # the last one ends where it ends


def glyphs(pdf: bytes) -> list[int]:
    """How many strings each page of a PDF of Chromium shows."""
    objects = {int(number): body for number, body in re.findall(rb"(\d+) 0 obj\n(.*?)\nendobj", pdf, flags=re.DOTALL)}
    pages = [body for body in objects.values() if re.search(rb"/Type ?/Page\b(?!s)", body)]
    shown = []
    for each in pages:
        content = objects[int(re.search(rb"/Contents (\d+) 0 R", each)[1])]
        stream = content.split(b"stream\n", 1)[1].rsplit(b"\nendstream", 1)[0]
        shown.append(len(re.findall(rb"T[jJ]\b", zlib.decompress(stream) if b"FlateDecode" in content else stream)))
    return shown


def test_showing_all_for_printing_draws_all_that_were_found(page, report):
    page.goto(report)
    page.evaluate("window.print = () => { window.printed = document.querySelectorAll('.card').length }")
    page.locator("#print").click()
    assert page.evaluate("window.printed") == 35
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.locator(".card").count() == 10


def test_the_markers_stand_where_the_values_are(page, report):
    page.goto(report)
    plot = page.locator(".plot").first
    box = plot.bounding_box()
    places = page.evaluate(
        "[...document.querySelector('.plot').querySelectorAll('.dot')].map(e => parseFloat(e.style.left))"
    )
    for dot, at in zip(plot.locator(".dot").all(), places, strict=True):
        middle = dot.bounding_box()["x"] + dot.bounding_box()["width"] / 2
        assert abs(middle - (box["x"] + at / 100 * box["width"])) < 1.5
    assert plot.locator("svg use").count() == 1
    assert page.evaluate("document.querySelector('.plot use').getBBox().width") > 100  # the drawing is there
