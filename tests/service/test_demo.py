"""The demo: from its link to a confirmed card and a replayed answer, with nothing but recorded replies."""

import pytest

from browser import needs_browser, opened_browser
from running_service import listening
from sqlcrystal.errors import ModelRejected
from sqlcrystal.interfaces.server.app import make_app
from sqlcrystal.interfaces.server.demo import demo_crystal, demo_token
from sqlcrystal.interfaces.server.settings import ServerSettings


def test_a_question_outside_the_recording_says_how_to_get_a_model() -> None:
    with demo_crystal() as crystal, pytest.raises(ModelRejected, match=r"Not in the recording.*sqlcrystal model pull"):
        crystal.ask("What is the meaning of life?", "hangar", memory=True)


@pytest.mark.xdist_group("browser")
@needs_browser
def test_a_newcomer_clicks_through() -> None:
    with (
        demo_crystal() as crystal,
        listening(make_app(crystal, ServerSettings(demo=True))) as url,
        opened_browser() as browser,
    ):
        tab = browser.new_page()
        tab.goto(f"{url}/login#{demo_token(crystal)}")
        tab.wait_for_selector("html.js .examples a")
        tab.locator(".examples a").first.click()
        tab.wait_for_selector("html.js #verdict")
        tab.keyboard.press("r")
        tab.wait_for_selector("text=Rejected by you")
        tab.goto(f"{url}/demo")
        questions = tab.locator("main ul a").all_text_contents()
        assert len(questions) > 20
        for question in questions:
            tab.goto(url)
            tab.fill("#question", question)
            tab.press("#question", "Enter")
            tab.wait_for_selector("html.js #verdict")
            if tab.locator("#verdict button.primary:not([disabled])").count():
                break
        tab.keyboard.press("c")
        tab.wait_for_selector("text=Confirmed by you")
        tab.goto(f"{url}/value")
        tab.wait_for_selector(".tile")
