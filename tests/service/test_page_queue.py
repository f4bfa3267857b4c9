"""The queue: judging moves on, a proposed repair holds it, and on a phone the list gives way to the answer."""

from collections.abc import Sequence
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from running_service import ASKED, SIBLING, Service, serving
from shop import PROBE, RIGHT, fenced
from sqlcrystal.types import Message, Sampling
from watched_tab import IN_BROWSER, Watched

PRICES = "What is the price of every item?"
SAME = {"Sec-Fetch-Site": "same-origin"}


def three_waiting(service: Service) -> list[str]:
    """The prices asked three times, the sibling twice, the hardware once: in this order the queue shows them."""
    return [
        [service.ask(question)["id"] for _ in range(times)][-1]
        for question, times in ((PRICES, 3), (SIBLING, 2), (ASKED, 1))
    ]


def judge(service: Service, answer: str, deed: str, **form: Any) -> dict[str, list[str]]:
    """Where the queue goes on after a verdict."""
    reply = service.post(f"/a/{answer}/{deed}", data=form, headers=SAME)
    assert reply.status_code == 303, reply.text
    there = urlsplit(reply.headers["location"])
    assert there.path == "/queue"
    return parse_qs(there.query)


def test_a_verdict_moves_on_to_what_stood_behind_it(service: Service) -> None:
    _, second, third = three_waiting(service)
    there = judge(service, second, "confirm", place="2", queue="database=shop&order=&evil=1")
    assert there == {"database": ["shop"], "place": ["2"], "judged": [second]}
    with service.client() as client:
        page = unescape(client.get("/queue", params={key: value[0] for key, value in there.items()}).text)
    assert "Confirmed by owner" in page or "Confirmed by you. Card" in page
    assert f'action="/a/{second}/undo"' in page
    assert f'action="/a/{third}/confirm"' in page


def mending(messages: Sequence[Message], _: Sampling) -> str:
    """Counts everything at first, and hardware once told that this was wrong."""
    if "debugging" in messages[0].content or "Explore first" in messages[0].content:
        return fenced(PROBE)
    return fenced(RIGHT if "correcting" in messages[0].content else "SELECT COUNT(*) FROM item")


def test_a_rejection_with_a_proposal_stays_until_somebody_looked_at_it(tmp_path: Path) -> None:
    with serving(tmp_path, script=mending) as service:
        answer = service.ask(ASKED)["id"]
        there = judge(service, answer, "reject", place="1", queue="database=shop")
        assert there["answer"] == [answer]
        with service.client() as client:
            page = unescape(client.get("/queue", params={key: value[0] for key, value in there.items()}).text)
        assert "Proposed, not in the bank" in page


def test_the_reason_and_the_order_are_in_the_address_and_stay_there(service: Service) -> None:
    first, second, _ = three_waiting(service)
    with service.client() as client:
        page = client.get("/queue", params={"database": "shop", "reason": "often", "order": "oldest"}).text
    assert "Waiting 2" in page
    there = judge(service, first, "confirm", place="1", queue="database=shop&reason=often&order=oldest")
    assert (there["reason"], there["order"]) == (["often"], ["oldest"])
    assert f"answer={second}" in page


def test_a_near_card_that_disagrees_stands_beside_the_answer(service: Service) -> None:
    answer = service.ask(ASKED)["id"]
    service.crystal.correct(answer, "SELECT COUNT(*) FROM item WHERE kind = 'FD'", by="ada")
    service.ask(ASKED)
    with service.client() as client:
        page = unescape(client.get("/queue?database=shop").text)
    assert "a near card disagrees" in page
    assert "is near and gives other rows: WHERE" in page


class TestInTheBrowser:
    pytestmark = IN_BROWSER

    def test_keys_alone_judge_one_after_the_other_and_undo_the_last(self, browser: Any, service: Service) -> None:
        three_waiting(service)
        page = Watched(browser, service, 1280, "light")
        page.log_in()
        page.open("/queue?database=shop")
        page.tab.wait_for_selector("html.js h1")
        page.tab.keyboard.press("c")
        page.says("Confirmed by you. Card")
        heading = page.tab.locator("#answer h1")
        assert heading.inner_text() == SIBLING
        page.tab.wait_for_function("() => document.activeElement?.tagName === 'H1'")
        assert "Confirmed by you" in page.tab.locator("#status").inner_text()
        page.tab.keyboard.press("z")
        page.tab.wait_for_function(f"() => document.querySelector('#answer h1')?.textContent === {PRICES!r}")
        page.tab.keyboard.press("j")
        page.tab.wait_for_function(f"() => document.querySelector('#answer h1')?.textContent === {SIBLING!r}")
        assert page.trouble == []
        page.context.close()

    def test_on_a_phone_a_tap_opens_one_and_a_verdict_opens_the_next(self, browser: Any, service: Service) -> None:
        three_waiting(service)
        page = Watched(browser, service, 390, "light")
        page.log_in()
        page.open("/queue?database=shop")
        assert not page.tab.locator("#verdict").is_visible()  # nothing is judged that is not seen
        page.tab.locator(".entries a").first.click()
        page.tab.wait_for_selector("#verdict", state="visible")
        page.tab.wait_for_selector(".entries", state="hidden")  # by its style, which may come after the element
        page.well()
        page.tab.get_by_role("button", name="Confirm").click()
        page.tab.wait_for_function(f"() => document.querySelector('#answer h1')?.textContent === {SIBLING!r}")
        page.well()
        page.context.close()
