"""A real headless Chromium for the tests of pages."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = Path("/usr/bin/chromium")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]

needs_browser = pytest.mark.skipif(
    not CHROMIUM.exists(), reason=f"NO BROWSER: {CHROMIUM} is missing, the page was not looked at"
)


@contextmanager
def opened_browser() -> Iterator[Any]:
    """Chromium, until the tests are done with it."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=str(CHROMIUM), args=FLAGS)
        yield browser
        browser.close()
