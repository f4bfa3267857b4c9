"""The official OpenAI client against the chat door, whole and streamed."""

from collections.abc import Iterator

import openai
import pytest

from running_service import ASKED, Service


@pytest.fixture
def client(service: Service) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{service.url}/v1", api_key=service.tokens["ask"], max_retries=0) as opened:
        yield opened


def test_every_database_the_token_may_ask_is_a_model(client: openai.OpenAI) -> None:
    assert [model.id for model in client.models.list()] == ["shop"]


def test_a_whole_answer_shows_sql_and_rows_and_counts_tokens(client: openai.OpenAI) -> None:
    reply = client.chat.completions.create(model="shop", messages=[{"role": "user", "content": ASKED}])
    text = reply.choices[0].message.content or ""
    assert "```sql\nSELECT COUNT(*) FROM item WHERE kind = 'HW'\n```" in text
    assert "\n| 2 |" in text
    assert reply.usage is not None
    assert reply.usage.total_tokens > 0


def test_a_streamed_answer_adds_up_to_the_whole_one(client: openai.OpenAI) -> None:
    question = {"model": "shop", "messages": [{"role": "user", "content": "What is the price of every item?"}]}
    whole = client.chat.completions.create(**question).choices[0].message.content  # type: ignore[call-overload]
    chunks = list(client.chat.completions.create(**question, stream=True))  # type: ignore[call-overload]
    streamed = "".join(choice.delta.content or "" for chunk in chunks for choice in chunk.choices)
    assert streamed.partition("Answer")[0] == whole.partition("Answer")[0]
    assert chunks[-1].choices[0].finish_reason == "stop"


def test_a_database_of_somebody_else_is_no_model(client: openai.OpenAI) -> None:
    with pytest.raises(openai.NotFoundError, match="no 'store' here, or not for you; choose from shop"):
        client.chat.completions.create(model="store", messages=[{"role": "user", "content": ASKED}])


def test_a_wrong_key_is_an_authentication_error(service: Service) -> None:
    wrong = openai.OpenAI(base_url=f"{service.url}/v1", api_key=service.tokens["revoked"], max_retries=0)
    with wrong, pytest.raises(openai.AuthenticationError):
        wrong.models.list()
