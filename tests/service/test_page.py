"""The page in real headless Chromium: a day's work by keys and clicks, at workspace and phone width, light and dark."""

from typing import Any

import pytest

from running_service import ASKED, SIBLING, Service
from watched_tab import IN_BROWSER, Watched

WIDTHS = [(1280, "light"), (1280, "dark"), (390, "light"), (390, "dark")]
RIGHT = "SELECT COUNT(*) FROM item WHERE kind = 'HW' AND price > 119"

pytestmark = IN_BROWSER


@pytest.mark.parametrize(("width", "scheme"), WIDTHS)
def test_a_days_work(browser: Any, service: Service, width: int, scheme: str) -> None:
    page = Watched(browser, service, width, scheme)
    tab = page.tab
    page.open("/")
    tab.fill("#token", service.tokens["invented"])
    tab.press("#token", "Enter")
    assert page.says("This token is not known")
    assert any("401" in trouble for trouble in page.trouble)  # the browser's own line about the refusal
    page.trouble.clear()
    page.well()
    page.log_in()
    page.well()

    page.ask(ASKED)
    page.well()
    tab.keyboard.press("c")
    assert page.says("Confirmed by you. Card")
    page.well()
    tab.get_by_role("link", name="Open card").click()
    assert page.says("What changed: WHERE")
    page.well()
    card = tab.url.rpartition("/")[2]

    page.open("/")
    page.ask(SIBLING)
    assert tab.locator("#side .cards code").all_text_contents() == [card[:8]]
    page.open(f"/bank/{card}")
    tab.get_by_role("button", name="Disable", exact=True).click()
    tab.wait_for_selector(".state.disabled")
    page.open("/")
    page.ask(SIBLING)
    assert tab.locator("#side .cards code").count() == 0

    tab.keyboard.press("r")
    assert page.says("Rejected by you")
    tab.keyboard.press("e")
    tab.fill("#edited", RIGHT)
    tab.wait_for_selector("#edited-rows[data-ran=yes]")
    tab.wait_for_selector("[data-bank]:not([disabled])")
    page.well()
    tab.press("#edited", "Control+Enter")
    assert page.says("Corrected by you. Card")
    page.open("/value")
    assert page.says("What memory is worth")
    before = tab.locator("main").inner_text()
    page.open("/")
    page.ask("What is the price of every item?")
    tab.keyboard.press("t")
    assert tab.locator(".chart svg").filter(visible=True).count() == 1
    tab.keyboard.press("c")
    page.says("Confirmed by you")
    tab.keyboard.press("z")
    tab.wait_for_selector("text=Is this right?" if width > 760 else "#verdict.open")
    tab.keyboard.press("c")
    page.says("Confirmed by you")
    page.open("/value")
    assert tab.locator("main").inner_text() != before
    for path in ("/queue", "/bank", "/value", "/settings", "/studies"):
        page.open(path)
        page.well()
    assert page.trouble == []
    page.context.close()


def test_hostile_content_shows_as_text(browser: Any, service: Service) -> None:
    script = "document.title='owned'"
    mark = f'<img src=x onerror="{script}"> \u202egnp \x1b[31m <script>{script}</script> hostile'
    page = Watched(browser, service, 1280, "light")
    page.log_in()
    page.tab.fill("#question", mark)
    page.tab.press("#question", "Enter")
    page.tab.get_by_role("button", name="Confirm").click()
    page.says("Confirmed by you")
    assert "<img src=x onerror" in page.tab.locator("table.result").inner_text()
    assert "<script>alert(2)</script>" in page.tab.locator("table.result").inner_text()
    page.tab.get_by_role("link", name="Open card").click()
    page.says("What the model sees")
    for path in ("/bank", "/queue", "/", "/value"):
        page.open(path)
        assert "owned" not in page.tab.title()
        assert page.tab.locator("img[src=x]").count() == 0
    assert page.trouble == []
    page.context.close()


def test_without_the_script_plain_forms_ask_judge_and_correct(browser: Any, service: Service) -> None:
    context = browser.new_context(java_script_enabled=False)
    tab = context.new_page()
    tab.goto(f"{service.url}/login")
    tab.fill("#token", service.tokens["judge"])
    tab.press("#token", "Enter")
    tab.fill("#question", ASKED)
    tab.get_by_role("button", name="Ask").click()
    tab.get_by_role("button", name="Confirm").click()
    assert "Confirmed by you" in tab.inner_text("#verdict")
    tab.goto(f"{service.url}/?database=shop")
    tab.fill("#question", SIBLING)
    tab.get_by_role("button", name="Ask").click()
    tab.get_by_role("link", name="Correct the SQL").click()
    tab.fill("#edited", RIGHT)
    tab.get_by_role("button", name="Bank my SQL").click()
    assert "Corrected by you" in tab.inner_text("#verdict")
    context.close()


def test_a_token_that_may_only_ask_is_told_which_scope_it_lacks(browser: Any, service: Service) -> None:
    page = Watched(browser, service, 390, "light")
    page.log_in("ask")
    page.ask(ASKED)
    assert page.says("lacks the scope “judge”")
    assert page.tab.get_by_role("button", name="Confirm").count() == 0
    page.context.close()
