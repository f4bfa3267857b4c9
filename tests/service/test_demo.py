"""The demo: a month of use to begin with, a story to walk through, and nothing but recorded replies."""

from collections.abc import Iterator

import httpx
import pytest

from pictures import FOLDER, MOST_BYTES, PICTURES, SCHEMES, Demo, running_demo, take
from sqlcrystal.errors import ModelRejected
from sqlcrystal.serving.demo import (
    OTHER_DATABASE,
    STORY,
    STORY_DATABASE,
    WITH_OTHER_CARDS,
    WITHOUT_CARDS,
    WITHOUT_PROFILE,
    DemoCrystal,
    demo_crystal,
    demo_token,
)
from watched_tab import IN_BROWSER, Watched


@pytest.fixture(scope="module")
def crystal() -> Iterator[DemoCrystal]:
    with demo_crystal() as opened:
        yield opened


@pytest.fixture
def begun(crystal: DemoCrystal) -> DemoCrystal:
    crystal.reset()
    return crystal


def test_a_question_outside_the_recording_says_how_to_get_a_model(begun: DemoCrystal) -> None:
    with pytest.raises(
        ModelRejected, match=r"Not in the recording.*says how to connect a model that answers any question"
    ):
        begun.ask("What is the meaning of life?", "hangar", memory=True)


def test_questions_that_read_like_a_recorded_one_are_offered(begun: DemoCrystal) -> None:
    offered = begun.near_questions("how many employees per job title have an open-ended contract?", STORY_DATABASE)
    assert begun.texts[STORY.opening] in offered
    assert begun.near_questions("zzz", STORY_DATABASE) == []


def test_it_opens_on_a_question_that_only_memory_gets_right(begun: DemoCrystal) -> None:
    opening = begun.opening()
    assert opening is not None
    without, with_memory = (begun.store.answers.get(name) for name in opening)
    assert without.question == with_memory.question == begun.texts[STORY.opening]
    verdicts = [begun.store.answers.verdict(name) for name in opening]
    assert verdicts == ["rejected", "confirmed"]
    assert not without.cards
    assert with_memory.cards


def test_the_month_shows_a_lift_with_its_interval_and_its_cost(begun: DemoCrystal) -> None:
    (value,) = begun.value(STORY_DATABASE)
    assert value.enough
    assert value.lift_ci_pp is not None
    assert value.lift_ci_pp[0] > 0
    assert value.tokens_per_right_answer is not None


def test_every_answer_of_the_month_was_recorded_with_its_very_cards(begun: DemoCrystal) -> None:
    calls = [
        call.completion.finish_reason
        for answer in begun.past.answers
        if answer.trace and answer.record.memory
        for call in answer.trace.attempt.calls
    ]
    assert calls
    assert not set(calls) & {WITH_OTHER_CARDS, WITHOUT_CARDS, WITHOUT_PROFILE}


def test_a_confirmed_card_changes_the_prompt_and_the_answer_says_so(begun: DemoCrystal) -> None:
    begun.confirm(begun.ask(begun.texts[STORY.opening], STORY_DATABASE, memory=True), by="you")
    sibling = begun.ask(begun.texts[STORY.sibling], STORY_DATABASE, memory=True)
    assert sibling.trace is not None
    assert sibling.trace.attempt.call.completion.finish_reason == WITH_OTHER_CARDS
    assert sibling.rows == ((2,),)


def test_a_rejection_finds_a_repair_and_a_reset_brings_the_beginning_back(begun: DemoCrystal) -> None:
    cards, waiting = {card.id for card in begun.cards()}, begun.waiting_story()
    rejection = begun.reject(waiting, by="you")
    assert rejection.proposal is not None
    begun.confirm(rejection.proposal.id, by="you")
    assert {card.id for card in begun.cards()} > cards
    begun.reset()
    assert {card.id for card in begun.cards()} == cards
    assert begun.waiting_story() == waiting
    assert begun.opening() is not None


# ── in a browser ─────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def demo() -> Iterator[Demo]:
    with running_demo() as running:
        yield running


class Visitor(Watched):
    """A tab of somebody who opened the demo's link."""

    def __init__(self, demo: Demo, width: int, scheme: str) -> None:
        super().__init__(demo.browser, demo, width, scheme)  # type: ignore[arg-type]
        self.tab.goto(f"{demo.url}/login#{demo_token(demo.crystal)}")
        self.tab.wait_for_selector("html.js .story-steps")

    def step(self, name: str) -> None:
        """Follow one link of the story from its page."""
        self.open("/demo")
        self.tab.locator(".story-steps").get_by_role("link", name=name, exact=True).click()

    def press_ask(self) -> None:
        """Send the question that stands in the box."""
        self.tab.wait_for_selector("html.js form.ask")
        self.tab.press("#question", "Enter")
        self.tab.wait_for_selector("#verdict.open")


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.xdist_group("browser")
@IN_BROWSER[0]
def test_a_newcomer_walks_through_the_story(demo: Demo, width: int, scheme: str) -> None:
    demo.crystal.reset()
    visitor = Visitor(demo, width, scheme)
    tab = visitor.tab
    assert tab.locator(".rejected-side .state").inner_text() == "wrong"
    assert tab.locator(".confirmed-side .state").inner_text() == "right"
    assert "'2999-12-31'" in tab.locator(".diff .add").all_inner_texts()[0]
    card = tab.locator(".story .diff").bounding_box()
    assert width < 1280 or card["y"] + card["height"] <= PICTURES[0].height  # README's picture ends there
    visitor.well()
    visitor.step(f"Ask {STORY_DATABASE}")
    visitor.press_ask()
    assert tab.locator(".used-cards li").count() == 5
    visitor.well()
    tab.get_by_role("button", name="Confirm").click()
    visitor.says("Confirmed by you. Card")
    visitor.step("Ask another")
    visitor.press_ask()
    assert tab.locator(".tile").inner_text() == "2"
    visitor.step("Open the queue")
    tab.wait_for_selector("html.js #verdict.open")
    assert tab.locator("h1[data-first]").inner_text() == demo.crystal.texts[STORY.rejected]
    tab.get_by_role("button", name="Reject").click()
    tab.wait_for_selector("text=Proposed, not in the bank")
    visitor.well()
    tab.get_by_role("button", name="Confirm the repair").click()
    visitor.says("Corrected by you. Card")
    assert [card.admission.by for card in demo.crystal.cards(OTHER_DATABASE)][-1] == "you"
    visitor.step("Value")
    assert "points" in tab.locator(".tile").first.inner_text()
    visitor.well()
    visitor.step("Studies")
    tab.frame_locator("iframe.report").get_by_text("37.2%").first.wait_for()
    tab.get_by_role("link", name="Open the report of quarry").click()
    tab.frame_locator("iframe.report").get_by_text("37.2%").first.wait_for()
    visitor.open("/demo")
    assert tab.locator(".story-steps .state.confirmed").count() == 3
    assert visitor.trouble == []
    visitor.context.close()


BESIDE = (
    "/login",
    "/demo/questions",
    "/a/{wrong}?edit=1",
    "/bank/{card}?edit=1",
    f"/bank/revoke?database={STORY_DATABASE}&by=benchmark",
    f"/bank/definitions?database={STORY_DATABASE}",
    f"/queue/definitions?database={STORY_DATABASE}",
    f"/queue/log?database={STORY_DATABASE}",
    "/settings",
    "/studies",
    "/studies/quarry",
    "/nowhere",
)
"""Pages that the story does not visit."""


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.xdist_group("browser")
@IN_BROWSER[0]
def test_the_pages_beside_the_story_are_well_in_every_look(demo: Demo, width: int, scheme: str) -> None:
    demo.crystal.reset()
    opening, card = demo.crystal.opening(), demo.crystal.cards(STORY_DATABASE)[0].id
    assert opening is not None
    visitor = Visitor(demo, width, scheme)
    for path in BESIDE:
        visitor.open(path.format(wrong=opening[0], card=card))
        visitor.well()
    assert [each for each in visitor.trouble if "status of 404" not in each] == []
    visitor.context.close()


@pytest.mark.xdist_group("browser")
@IN_BROWSER[0]
def test_a_question_that_was_not_recorded_offers_some_that_were(demo: Demo) -> None:
    demo.crystal.reset()
    visitor = Visitor(demo, 1280, "light")
    visitor.open(f"/?database={STORY_DATABASE}")
    visitor.tab.fill("#question", "How many people are on leave now?")
    visitor.tab.press("#question", "Enter")
    visitor.tab.wait_for_selector(".near a")
    visitor.tab.locator(".near a", has_text="How many employees are on leave?").click()
    visitor.tab.wait_for_selector("#verdict.open")
    visitor.context.close()


@pytest.mark.xdist_group("browser")
@IN_BROWSER[0]
def test_the_demos_link_works_in_a_tab_that_is_open_already(demo: Demo) -> None:
    visitor = Visitor(demo, 1280, "light")
    visitor.context.clear_cookies()
    visitor.open("/login")
    visitor.tab.wait_for_selector("html.js #token")
    visitor.tab.evaluate("token => { location.hash = token; }", demo_token(demo.crystal))
    visitor.tab.wait_for_selector(".story-steps")
    visitor.context.close()


@pytest.mark.xdist_group("browser")
@IN_BROWSER[0]
def test_the_pictures_of_the_documents_are_those_of_the_demo_and_small(demo: Demo) -> None:
    """Fonts differ between machines, so a picture is compared by its size and place, not by its dots."""
    from PIL import Image

    demo.crystal.reset()
    kept = {path.name for path in FOLDER.glob("*.png")}
    assert kept == {f"{picture.name}-{scheme}.png" for picture in PICTURES for scheme in SCHEMES}
    for picture in PICTURES:
        for scheme in SCHEMES:
            path = FOLDER / f"{picture.name}-{scheme}.png"
            assert path.stat().st_size <= MOST_BYTES
            with Image.open(path) as opened:
                assert opened.size == (picture.width, picture.height)
    assert len(take(demo, PICTURES[0], "light")) <= MOST_BYTES


def test_only_the_demo_can_be_set_back(shared_service: object) -> None:
    with shared_service.client() as client:  # type: ignore[attr-defined]
        reply: httpx.Response = client.post("/demo/reset")
    assert reply.status_code == 404
