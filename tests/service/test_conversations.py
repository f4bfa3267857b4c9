"""Follow-ups through the doors of a service: HTTP, MCP, a chat of OpenAI's client, and a thread on the page."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openai
import pytest

from conversing import DEAR, FIRST, FOOD, ONLY_DEAR, OTHER_TOPIC, READ, READ_DEAR, THEN, conversing
from mcp_talk import talk
from running_service import Service, serving
from shop import RIGHT
from sqlcrystal.interfaces.server.settings import ServerSettings
from watched_tab import IN_BROWSER, Watched


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    settings = ServerSettings(requests_per_minute=1_000_000, allow_write=True)
    with serving(tmp_path, settings=settings, script=conversing) as running:
        yield running


class Chat:
    """A conversation in a chat client, which sends all messages each time."""

    def __init__(self, service: Service, kind: str = "judge") -> None:
        self.client = openai.OpenAI(base_url=f"{service.url}/v1", api_key=service.tokens[kind], max_retries=0)
        self.messages: list[Any] = [{"role": "system", "content": "You are a helpful assistant."}]

    def say(self, text: str, *, stream: bool = False, model: str = "shop") -> str:
        self.messages.append({"role": "user", "content": text})
        reply: Any = self.client.chat.completions.create(model=model, messages=self.messages, stream=stream)
        if stream:
            content = "".join(choice.delta.content or "" for chunk in reply for choice in chunk.choices)
        else:
            content = reply.choices[0].message.content
        self.messages.append({"role": "assistant", "content": content})
        return str(content)


@pytest.fixture
def chat(service: Service) -> Iterator[Chat]:
    opened = Chat(service)
    with opened.client:
        yield opened


@pytest.mark.parametrize("stream", [False, True])
def test_a_chat_goes_on_from_its_last_answer(chat: Chat, service: Service, stream: bool) -> None:
    assert "Read as" not in chat.say(FIRST, stream=stream)
    then = chat.say(THEN, stream=stream)
    assert then.startswith(f"Read as: {READ}\n\n```sql\n{FOOD}\n```")
    assert "Read as" not in chat.say(OTHER_TOPIC, stream=stream)
    assert [past.follows is not None for past in service.crystal.history("shop")] == [False, True, False]


@pytest.mark.parametrize("stream", [False, True])
def test_right_and_wrong_are_verdicts_in_a_chat(chat: Chat, service: Service, stream: bool) -> None:
    chat.say(FIRST)
    assert chat.say("Right!", stream=stream).startswith("Banked as card `")
    chat.say(FIRST)
    proposed = chat.say(f"wrong: {ONLY_DEAR}", stream=stream)
    assert proposed.startswith(f"Read as: {READ_DEAR}\n\n```sql\n{DEAR}\n```")
    assert f"of the question {READ_DEAR}" in chat.say("right", stream=stream)
    chat.say(FIRST)
    chat.say(f"wrong: {ONLY_DEAR}", stream=stream)
    other = DEAR.replace("COUNT(*)", "COUNT(*) AS dear")
    assert f"of the question {READ_DEAR}" in chat.say(f"wrong: {other}", stream=stream)
    chat.say(FIRST)
    chat.say(THEN)
    assert "corrected" in chat.say("wrong: SELECT 1 AS one")
    served = service.crystal.cards("shop", status="active")
    cards = {card.question.text: (card.sql, card.admission.by) for card in served}
    assert cards == {FIRST: (RIGHT, "judge"), READ_DEAR: (other, "judge"), READ: ("SELECT 1 AS one", "judge")}


def test_a_chat_that_changes_its_database_or_lacks_a_scope_follows_and_judges_nothing(service: Service) -> None:
    owner, asks = Chat(service, "owner"), Chat(service, "ask")
    owner.say(FIRST)
    assert "Read as" not in owner.say(THEN, model="store")
    asks.say(FIRST)
    with pytest.raises(openai.PermissionDeniedError, match="lacks the scope 'judge'"):
        asks.say("right")
    assert service.crystal.cards() == []
    for chat in (owner, asks):
        chat.client.close()


def test_a_clients_own_task_is_no_question(chat: Chat, service: Service) -> None:
    with pytest.raises(openai.UnprocessableEntityError, match="a title, tags or the like, not for data"):
        chat.say("### Task:\nGenerate a concise title with an emoji for the chat history.")
    assert service.model.prompts == []


def test_http_and_mcp_follow_an_answer_of_ones_own_databases_only(service: Service) -> None:
    first = service.ask(FIRST)
    with service.client("judge") as client:
        then = client.post("/api/ask", json={"question": THEN, "follow": first["id"]}).json()
        assert (then["question"], then["follows"]) == (READ, {"id": first["id"], "asked": THEN})
        assert client.get(f"/api/answers/{then['id']}").json()["follows"] == then["follows"]
        with client.stream(
            "POST", "/api/ask", json={"question": THEN, "follow": first["id"]}, headers={"Accept": "text/event-stream"}
        ) as events:
            assert f'event: read\ndata: {{"question":"{READ}","follows":true}}' in events.read().decode()
    with service.client("other") as client:
        assert client.post("/api/ask", json={"question": THEN, "follow": first["id"]}).status_code == 404
    _, (reply,) = talk(service, "judge", ("ask", {"question": THEN, "follow": first["id"]}))
    assert reply.structured_content["question"] == READ


@IN_BROWSER[0]
def test_the_page_shows_a_thread_in_which_each_turn_has_its_verdict(browser: Any, service: Service) -> None:
    page = Watched(browser, service, 1200, "light")
    page.log_in("judge")
    tab = page.tab
    page.ask(FIRST)
    tab.get_by_role("button", name="Confirm").click()
    assert page.says("Confirmed by you")
    tab.get_by_label("go on from this answer").check()
    tab.fill("#question", THEN)
    tab.press("#question", "Enter")
    assert page.says(f"Asked as “{THEN}”")
    assert READ in tab.inner_text("h1")
    turns = [" ".join(text.split()) for text in tab.locator("ol.thread li").all_inner_texts()]
    assert turns == [f"{FIRST} confirmed", f"{THEN} not checked"]
    tab.get_by_role("button", name="Confirm").click()
    assert page.says("Confirmed by you")
    assert {card.question.text for card in service.crystal.cards("shop")} == {FIRST, READ}
    assert page.trouble == []
    page.context.close()


def test_a_plain_form_goes_on_from_an_answer_too(service: Service) -> None:
    first = service.ask(FIRST)
    form = {"question": THEN, "database": "shop", "follow": first["id"]}
    reply = service.post("/ask", kind="judge", data=form, follow_redirects=True)
    assert f'Asked as “<span dir="auto">{THEN}</span>”' in reply.text


@IN_BROWSER[0]
def test_the_page_asks_first_where_a_near_card_says_otherwise(browser: Any, service: Service) -> None:
    near = "How many hardware items are there in all"
    service.crystal.correct(service.crystal.ask(near, "shop"), RIGHT)
    other = service.crystal.ask(f"{near} now", "shop", memory=False)
    page = Watched(browser, service, 1200, "light")
    page.log_in("judge")
    page.open(f"/a/{other.id}")
    page.tab.get_by_role("button", name="Confirm").click()
    assert page.says("confirm anyway if both are right")
    page.tab.get_by_role("button", name="Confirm").click()
    assert page.says("Confirmed by you")
    assert page.trouble == []
    page.context.close()
