"""How the page behaves in a real browser: nothing jumps, nothing sticks out, every deed has a key, drafts survive."""

import threading
import time
from collections.abc import Sequence
from typing import Any

import pytest

from running_service import ASKED, Service, serving
from shop import RIGHT, WRONG, fenced
from sqlcrystal.errors import ModelUnavailable
from sqlcrystal.types import Message, Sampling
from watched_tab import IN_BROWSER, Watched

LONG = "a text that goes on and on, far beyond what a cell of a table should show at once"
WIDE = "SELECT " + ", ".join(f"'{LONG}' AS a_rather_long_name_{number}" for number in range(12))
PRICES = "SELECT name, price FROM item ORDER BY price"
SHIFTS = """() => { window.shift = 0; new PerformanceObserver(list => list.getEntries().forEach(
    each => { window.shift += each.hadRecentInput ? 0 : each.value; })).observe({ type: "layout-shift" }); }"""
SMALL = """() => [...document.querySelectorAll("button, .button, select, summary, input, nav a, .entries a")]
    .map(each => ({ box: (each.closest("label") || each).getBoundingClientRect(), what: each.outerHTML.slice(0, 90) }))
    .filter(({ box }) => box.width > 0 && (box.height < 43.5 || box.width < 43.5))
    .map(({ box, what }) => `${box.width.toFixed(0)}x${box.height.toFixed(0)} ${what}`)"""
pytestmark = IN_BROWSER
CHECKED = threading.Event()
"""Until it is set, the repair of a first answer goes on."""


def replying(messages: Sequence[Message], _: Sampling) -> str:
    asked = messages[-1].content.rsplit("[Question]", 1)[-1]
    if any("hardware checked" in message.content for message in messages):
        if not any(word in messages[0].content for word in ("debugging", "Explore first", "correcting")):
            return fenced(WRONG)
        CHECKED.wait(60)
        return fenced(RIGHT)
    if "Fail" in asked:
        raise ModelUnavailable("the model at http://127.0.0.1:1 did not answer")
    if "slowly" in asked:
        time.sleep(0.8)  # what moves within half a second of a key counts as asked for
    return fenced(WIDE if "wide" in asked else PRICES if "prices" in asked else RIGHT)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with serving(tmp_path_factory.mktemp("looks"), script=replying) as running:
        running.crystal.confirm(running.crystal.ask("Show wide rows", "shop", by="ada"), by="ada")
        yield running


@pytest.fixture
def page(browser: Any, service: Service, request: pytest.FixtureRequest) -> Any:
    watched = Watched(browser, service, getattr(request, "param", 1280), "light")
    watched.log_in()
    yield watched
    assert watched.trouble == []
    watched.context.close()


@pytest.mark.parametrize("page", [320, 390, 640, 1280], indirect=True)
def test_a_wide_result_scrolls_in_itself_and_never_the_page(page: Watched) -> None:
    page.ask("Show wide rows")
    width = "document.documentElement.scrollWidth"
    assert page.tab.evaluate(width) <= page.width
    column = page.tab.locator("#answer").bounding_box()
    rows = page.tab.locator(".scroll.rows").bounding_box()
    assert column is not None
    assert rows is not None
    assert rows["x"] + rows["width"] <= column["x"] + column["width"] + 1
    page.tab.locator(".scroll.rows").evaluate("box => { box.scrollLeft = 500; box.scrollTop = 0; }")
    first = page.tab.locator("table.result tbody td").first.bounding_box()
    assert first is not None
    assert abs(first["x"] - rows["x"]) <= 2  # the first column stays in sight
    card = page.service.crystal.cards("shop")[0].id
    for path in ("/", "/queue", "/bank", f"/bank/{card}", "/value", "/settings", "/studies", "/login"):
        page.open(path)
        assert page.tab.evaluate(width) <= page.width, path


def test_enter_opens_a_cut_cell_and_shows_its_text_once(page: Watched) -> None:
    page.ask("Show wide rows")
    summary = page.tab.locator("table.result summary").first
    summary.focus()
    page.tab.keyboard.press("Enter")
    cell = page.tab.locator("table.result td").first
    assert LONG in cell.inner_text()
    assert f"{LONG[:40]}…" not in cell.inner_text()


@pytest.mark.parametrize("page", [390, 1280], indirect=True)
def test_nothing_jumps_while_an_answer_comes(page: Watched) -> None:
    page.ask("Show wide rows")
    page.tab.evaluate(SHIFTS)
    page.ask("Show prices, slowly")
    page.tab.wait_for_timeout(300)
    assert page.tab.evaluate("window.shift") < 0.05


@pytest.mark.parametrize("page", [390], indirect=True)
def test_on_a_phone_a_finger_meets_every_control(page: Watched) -> None:
    page.ask("Show prices")
    assert page.tab.evaluate(SMALL) == []
    card = page.service.crystal.cards("shop")[0].id
    for path in ("/", "/queue", "/bank", f"/bank/{card}", "/value", "/settings"):
        page.open(path)
        assert page.tab.evaluate(SMALL) == [], path
    page.tab.get_by_role("button", name="Pages").click()
    assert page.tab.evaluate(SMALL) == []


def test_ask_confirm_and_undo_go_by_keys_alone_and_the_focus_follows(page: Watched) -> None:
    keys, active = page.tab.keyboard, "document.activeElement.textContent"
    page.tab.locator("main").focus()
    keys.press("/")
    keys.type("Show prices")
    keys.press("Enter")
    page.tab.wait_for_selector("#verdict.open")
    assert page.tab.evaluate(active) == "Show prices"
    assert page.tab.input_value("#question") == ""
    keys.press("c")
    page.says("Confirmed by you. Card")
    assert "Confirmed by you" in page.tab.evaluate(active)
    assert "(confirmed)" in page.tab.title()
    keys.press("z")
    page.says("is out of the bank.")
    assert "Undone. Card" in page.tab.evaluate(active)


def test_a_draft_survives_escape_and_reload_and_can_be_dropped(page: Watched) -> None:
    page.ask("Show prices")
    page.tab.keyboard.press("e")
    page.tab.fill("#edited", RIGHT)
    page.tab.wait_for_selector("#edited-rows[data-ran=yes]")
    page.tab.keyboard.press("Escape")
    page.tab.reload()
    page.tab.wait_for_selector("html.js #verdict")
    assert not page.tab.locator("#editor").is_visible()
    page.tab.keyboard.press("e")
    assert page.tab.input_value("#edited") == RIGHT
    assert not page.tab.locator("#verdict").is_visible()  # what is judged now is the SQL in the editor
    page.tab.get_by_role("button", name="Start over").click()
    assert "ORDER BY" in page.tab.input_value("#edited")
    page.tab.get_by_role("link", name="Cancel").click()
    assert page.tab.evaluate("document.activeElement.id") == "correct-sql"


def test_rows_are_copied_as_a_table_and_in_other_formats_and_escape_closes_the_choice(page: Watched) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.ask("Show prices")
    page.tab.keyboard.press("Y")
    page.tab.wait_for_function("() => document.querySelector('#status').textContent === 'Copied'")
    assert page.tab.evaluate("navigator.clipboard.readText()").startswith("name\tprice\n")
    page.tab.locator(".choices summary").click()
    page.tab.locator(".choices").get_by_role("button", name="Markdown").click()
    page.tab.wait_for_function("() => navigator.clipboard.readText().then(text => text.startsWith('| name | price |'))")
    page.tab.keyboard.press("Escape")
    assert page.tab.locator(".choices[open]").count() == 0


def test_a_broken_stream_finds_its_answer_again(page: Watched) -> None:
    def cut(route: Any) -> None:
        whole = route.fetch()
        route.fulfill(status=200, headers=whole.headers, body=whole.text().partition("event: sql")[0])

    page.tab.route("**/api/ask", cut)
    page.ask("Show prices")
    assert page.tab.locator("table.result tbody tr").count() == 3


def test_ask_afresh_asks_the_model_and_replays_nothing(browser: Any, tmp_path: Any) -> None:
    with serving(tmp_path, script=replying, replay=True) as service:
        service.crystal.confirm(service.ask("Show prices")["id"], by="ada")
        page = Watched(browser, service, 1280, "light")
        page.log_in()
        page.ask("Show prices")
        assert page.says("Replayed from card")
        before = len(service.model.prompts)
        page.tab.get_by_role("link", name="Ask afresh").click()
        page.tab.wait_for_selector("#answer[data-state=waiting]:not(:has(.replayed))")
        assert len(service.model.prompts) > before
        page.context.close()


def test_text_of_a_chart_is_readable_in_forced_colours(browser: Any, service: Service) -> None:
    page = Watched(browser, service, 1280, "dark")
    page.log_in()
    page.ask("Show prices")
    page.tab.emulate_media(forced_colors="active")
    page.tab.keyboard.press("t")
    colours = "each => [getComputedStyle(each).fill, getComputedStyle(document.body).color]"
    fill, text = page.tab.locator(".chart svg.at-desk text").first.evaluate(colours)
    assert fill == text
    page.context.close()


def test_first_use_offers_three_questions_and_one_click_asks(page: Watched) -> None:
    page.open("/?database=store")
    assert page.says("0 cards yet. Confirm an answer and it becomes the first.")
    page.tab.locator(".examples a").first.click()
    page.tab.wait_for_selector("#verdict.open")
    assert "/a/" in page.tab.url


def test_an_answer_at_its_address_is_never_asked_again(page: Watched) -> None:
    page.ask(ASKED)
    before = len(page.service.model.prompts)
    page.tab.reload()
    page.tab.wait_for_selector("#verdict.open")
    assert len(page.service.model.prompts) == before


def test_stop_ends_a_question_and_a_model_that_fails_leaves_a_way_to_try_again(page: Watched) -> None:
    page.tab.fill("#question", "Show prices, slowly")
    page.tab.press("#question", "Enter")
    page.tab.wait_for_selector(".stop")
    page.tab.keyboard.press("Escape")
    assert page.says("Stopped. Nothing was banked.")
    page.tab.fill("#question", "Fail, please")
    page.tab.press("#question", "Enter")
    assert page.says("It could not be answered.")
    assert page.tab.evaluate("document.activeElement.textContent") == "No answer"
    assert page.tab.get_by_role("button", name="Try again").is_visible()
    assert page.tab.locator("#side details").first.is_visible()  # the history is there again


def test_the_first_answer_is_shown_while_it_is_looked_at_again(page: Watched) -> None:
    page.tab.fill("#question", "Show the hardware checked")
    page.tab.press("#question", "Enter")
    page.tab.wait_for_selector(".first-answer:not([hidden])")
    shown = page.tab.locator(".first-answer").inner_text()
    page.well()
    CHECKED.set()
    page.tab.wait_for_selector("#verdict.open")
    assert "First answer, looked at again: 1 row." in shown
    assert "0" in shown


def test_the_editor_completes_tables_and_columns_and_ask_lists_them(page: Watched) -> None:
    page.ask("Show prices")
    page.tab.locator("#side .schema summary").click()
    assert "price" in page.tab.locator("#side .schema dd").inner_text()
    page.tab.keyboard.press("e")
    page.tab.fill("#edited", "SELECT pr")
    page.tab.keyboard.press("Control+Space")
    assert page.tab.input_value("#edited") == "SELECT price"
    page.tab.fill("#edited", "SELECT * FROM it")
    page.tab.keyboard.press("Control+Space")
    page.tab.wait_for_selector("#edited-rows[data-ran=yes]")
    assert page.tab.input_value("#edited") == "SELECT * FROM item"
    page.open(f"/bank/{page.service.crystal.cards('shop')[0].id}?edit=1")
    page.tab.wait_for_selector("html.js #card-sql")
    page.tab.fill("#card-sql", "SELECT ki")
    page.tab.keyboard.press("Control+Space")
    assert page.tab.input_value("#card-sql") == "SELECT kind"


@pytest.mark.parametrize("page", [390, 1280], indirect=True)
def test_the_login_page_says_what_it_is_and_whom_to_ask(page: Watched) -> None:
    page.open("/login")
    assert page.tab.locator(".login .brand svg").is_visible()
    assert "Ask the person who runs this server" in page.tab.locator(".login").inner_text()
