"""A tab of real headless Chromium that notices what goes wrong in it."""

from typing import Any

import pytest

from browser import needs_browser
from running_service import Service

IN_BROWSER = [needs_browser, pytest.mark.xdist_group("browser")]


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

        self.tab.wait_for_load_state("load")  # after a click; before its style has come, a page is as wide as it likes
        assert self.tab.evaluate("document.documentElement.scrollWidth") <= self.width, self.tab.url
        # The tool's script is put in by the driver, which the page's own policy rightly refuses to a page.
        found = Axe().run(self.tab).response["violations"]
        serious = [each for each in found if each["impact"] in {"serious", "critical"}]
        assert not serious, [(self.tab.url, each["id"], [node["html"] for node in each["nodes"]]) for each in serious]
