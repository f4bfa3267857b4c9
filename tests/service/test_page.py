"""The page in real headless Chromium: a day's work by keys and clicks, at desk and phone width, light and dark."""

from collections.abc import Iterator
from typing import Any

import pytest

from browser import needs_browser, opened_browser
from running_service import ASKED, SIBLING, Service

WIDTHS = [(1280, "light"), (1280, "dark"), (390, "light"), (390, "dark")]
RIGHT = "SELECT COUNT(*) FROM item WHERE kind = 'HW' AND price > 119"

pytestmark = [needs_browser, pytest.mark.xdist_group("browser")]


class Watched:
    """A tab that remembers what went wrong in it and what left this machine."""

    def __init__(self, browser: Any, service: Service, width: int, scheme: str) -> None:
        self.context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        self.tab = self.context.new_page()
        self.width, self.service = width, service
        self.trouble: list[str] = []
        self.tab.on("console", lambda message: self.trouble.append(message.text))
        self.tab.on("pageerror", lambda error: self.trouble.append(str(error)))
        self.tab.on("request", self._left)

    def _left(self, request: Any) -> None:
        if not request.url.startswith((self.service.url, "data:")):
            self.trouble.append(f"left this origin: {request.url}")

    def open(self, path: str) -> None:
        self.tab.goto(self.service.url + path)

    def log_in(self, kind: str = "owner") -> None:
        self.open("/login")
        self.tab.fill("#token", self.service.tokens[kind])
        self.tab.press("#token", "Enter")
        self.tab.wait_for_selector("html.js form.ask")  # before the script runs, Enter is a new line

    def ask(self, question: str) -> None:
        self.tab.fill("#question", question)
        self.tab.press("#question", "Enter")
        shown = "words => document.querySelector('#answer[data-title]')?.dataset.title === words"
        self.tab.wait_for_function(shown, arg=question)
        self.tab.wait_for_selector("#side h2")

    def says(self, words: str) -> bool:
        self.tab.wait_for_selector(f"text={words}", timeout=60_000)
        return True

    def well(self) -> None:
        """No sideways scroll, and nothing serious that axe-core finds."""
        from axe_playwright_python.sync_playwright import Axe

        assert self.tab.evaluate("document.documentElement.scrollWidth") <= self.width, self.tab.url
        # The tool's script is put in by the driver, which the page's own policy rightly refuses to a page.
        violations = Axe().run(self.tab).response["violations"]
        serious = [violation for violation in violations if violation["impact"] in {"serious", "critical"}]
        assert not serious, [
            (self.tab.url, violation["id"], [node["html"] for node in violation["nodes"]]) for violation in serious
        ]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with opened_browser() as opened:
        yield opened


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
    assert tab.locator("#chart svg").is_visible()
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


def test_without_the_script_plain_forms_ask_and_judge(browser: Any, service: Service) -> None:
    context = browser.new_context(java_script_enabled=False)
    tab = context.new_page()
    tab.goto(f"{service.url}/login")
    tab.fill("#token", service.tokens["judge"])
    tab.press("#token", "Enter")
    tab.fill("#question", ASKED)
    tab.get_by_role("button", name="Ask").click()
    tab.get_by_role("button", name="Confirm").click()
    assert "Confirmed by you" in tab.inner_text("#verdict")
    context.close()


def test_a_token_that_may_only_ask_is_told_which_scope_it_lacks(browser: Any, service: Service) -> None:
    page = Watched(browser, service, 390, "light")
    page.log_in("ask")
    page.ask(ASKED)
    assert page.says("lacks the scope “judge”")
    assert page.tab.get_by_role("button", name="Confirm").count() == 0
    page.context.close()
