"""Replies heard while they are written: whole at the end, begun anew after a break, and never needed."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from model_endpoints import END, Answer, Handler, completion, piece, serving, stream
from sqlcrystal.errors import BadReply, ModelUnavailable
from sqlcrystal.models.local import _StreamedReply
from sqlcrystal.models.openai import OpenAIModel, OpenAISettings, RetryPolicy
from sqlcrystal.models.recorded import Recorded
from sqlcrystal.models.recording import Recording
from sqlcrystal.types import Completion, Message, Sampling
from sqlcrystal.waiting import Patience, overheard

ASK = (Message("user", "how many?"),)
WORDS = ("```sql\nSELECT ", "COUNT(*) ", "FROM item\n```")
WHOLE = "".join(WORDS)
QUICK = RetryPolicy(attempts=3, first_wait=0.001, longest_wait=0.01)


def heard(answer: Answer, *, times: int = 1) -> tuple[list[str], list[Completion], Any]:
    """Ask an endpoint, and tell what was heard meanwhile, what was replied, and what it was sent."""
    said: list[str] = []
    with serving(answer) as server:
        model = OpenAIModel(OpenAISettings(name="m", base_url=server.base_url, retry=QUICK))
        try:
            with overheard(said.append):
                replies = [model.chat(ASK) for _ in range(times)]
        finally:
            model.close()
        return said, replies, server.bodies


def in_pieces(handler: Handler, body: dict[str, Any], attempt: int) -> None:
    stream(handler, *(piece(word) for word in WORDS), END)


def test_each_piece_is_heard_and_the_whole_is_the_reply() -> None:
    said, [reply], [body] = heard(in_pieces)
    assert said[-1] == WHOLE
    assert all(WHOLE.startswith(text) for text in said)
    assert (reply.text, reply.finish_reason) == (WHOLE, "stop")
    assert (reply.prompt_tokens, reply.completion_tokens) == (7, 3)
    assert (body["stream"], body["stream_options"]) == (True, {"include_usage": True})


def test_a_piece_is_heard_before_the_next_is_written() -> None:
    first = threading.Event()

    def waits(handler: Handler, body: dict[str, Any], attempt: int) -> None:
        handler.send_response(200)
        handler.send_header("content-type", "text/event-stream")
        handler.send_header("connection", "close")
        handler.end_headers()
        handler.wfile.write(piece(WORDS[0]))
        handler.wfile.flush()
        assert first.wait(30)
        handler.wfile.write(piece(WORDS[1] + WORDS[2]) + END)
        handler.close_connection = True

    with serving(waits) as server:
        model = OpenAIModel(OpenAISettings(name="m", base_url=server.base_url, retry=QUICK))
        with overheard(lambda _: first.set()):
            assert model.chat(ASK).text == WHOLE
        model.close()


def test_pieces_that_drip_byte_by_byte_are_put_together() -> None:
    whole = b"".join(piece(word) for word in WORDS) + END

    def drips(handler: Handler, body: dict[str, Any], attempt: int) -> None:
        stream(handler, *(whole[place : place + 1] for place in range(len(whole))))

    said, [reply], _ = heard(drips)
    assert (reply.text, said[-1]) == (WHOLE, WHOLE)


def test_a_stream_that_breaks_half_way_is_begun_anew() -> None:
    def breaks_once(handler: Handler, body: dict[str, Any], attempt: int) -> None:
        if attempt == 1:
            stream(handler, piece(WORDS[0]))
        else:
            in_pieces(handler, body, attempt)

    said, [reply], bodies = heard(breaks_once)
    assert reply.text == WHOLE
    assert len(bodies) == 2
    assert (said[0], said[-1]) == (WORDS[0], WHOLE)


@pytest.mark.parametrize(
    ("break_off", "error"),
    [
        (lambda handler: stream(handler, piece(WORDS[0])), BadReply),
        (lambda handler: stream(handler, piece(WORDS[0]), b'data: {"error": {"message": "no memory"}}\n\n'), BadReply),
        (lambda handler: stream(handler, piece(WORDS[0]), b"data: {not json\n\n"), BadReply),
        (lambda handler: handler.reset(), ModelUnavailable),
    ],
)
def test_a_stream_that_never_ends_well_is_an_error_after_the_attempts_of_the_policy(
    break_off: Callable[[Handler], object], error: Any
) -> None:
    sent: list[int] = []

    def fails(handler: Handler, body: dict[str, Any], attempt: int) -> None:
        sent.append(attempt)
        break_off(handler)

    with pytest.raises(error):
        heard(fails)
    assert len(sent) == QUICK.attempts


def test_an_endpoint_that_answers_whole_is_read_as_it_is() -> None:
    said, [reply], _ = heard(lambda handler, *_: handler.reply(200, completion(WHOLE)))
    assert (reply.text, said) == (WHOLE, [])


def test_an_endpoint_that_refuses_to_stream_is_asked_for_the_whole_from_then_on() -> None:
    def refuses(handler: Handler, body: dict[str, Any], attempt: int) -> None:
        if "stream" in body:
            handler.reply(400, b'{"error": "stream_options: unknown"}')
        else:
            handler.reply(200, completion(WHOLE))

    _, replies, bodies = heard(refuses, times=2)
    assert [reply.text for reply in replies] == [WHOLE, WHOLE]
    assert ["stream" in body for body in bodies] == [True, False, False]


def test_an_endpoint_that_counts_no_tokens_of_a_stream_is_asked_for_the_whole_next_time() -> None:
    def counts_not(handler: Handler, body: dict[str, Any], attempt: int) -> None:
        if "stream" in body:
            stream(handler, *(piece(word) for word in WORDS), *END.splitlines(keepends=True)[:2], b"data: [DONE]\n\n")
        else:
            handler.reply(200, completion(WHOLE))

    _, replies, _ = heard(counts_not, times=2)
    assert [(reply.text, reply.prompt_tokens) for reply in replies] == [(WHOLE, 0), (WHOLE, 7)]


def test_nobody_who_listens_is_nobody_streamed_to() -> None:
    with serving(lambda handler, *_: handler.reply(200, completion(WHOLE))) as server:
        model = OpenAIModel(OpenAISettings(name="m", base_url=server.base_url, retry=QUICK))
        model.chat(ASK)
        model.close()
        assert "stream" not in server.bodies[0]


class Enough(Exception):
    """Somebody has heard enough."""


def test_a_listener_ends_a_reply_by_its_own_error() -> None:
    def enough(_: str) -> None:
        raise Enough

    with serving(in_pieces) as server:
        model = OpenAIModel(OpenAISettings(name="m", base_url=server.base_url, retry=QUICK))
        with overheard(enough), pytest.raises(Enough):
            model.chat(ASK)
        model.close()
        assert len(server.bodies) == 1


def test_the_embedded_models_pieces_are_heard_and_a_listeners_error_does_not_pass_through_its_engine() -> None:
    said: list[str] = []
    pieces: list[dict[str, Any]] = [
        {"choices": [{"delta": {"content": word}, "finish_reason": None}]} for word in WORDS
    ]
    with overheard(said.append):
        reply = _StreamedReply(Patience(60))
    assert [reply.receive(each) for each in pieces] == [False] * 3
    reply.receive({"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 3}})
    assert said[:3] == [WORDS[0], WORDS[0] + WORDS[1], WHOLE]
    assert reply.completion("m").text == WHOLE

    def enough(_: str) -> None:
        raise Enough

    with overheard(enough):
        ended = _StreamedReply(Patience(60))
    assert ended.receive(pieces[0])
    with pytest.raises(Enough):
        ended.completion("m")


def test_what_is_recorded_of_a_streamed_reply_is_the_whole_of_it(tmp_path: Path) -> None:
    said: list[str] = []
    with serving(in_pieces) as server, Recording(tmp_path / "recording.sqlite") as recording:
        model = OpenAIModel(OpenAISettings(name="m", base_url=server.base_url, retry=QUICK))
        recorded = Recorded(model, recording, "fill")
        with overheard(said.append):
            recorded.chat(ASK, sampling=Sampling())
        again = recorded.chat(ASK, sampling=Sampling())
        model.close()
        assert len(server.bodies) == 1
    assert (said[-1], again.text) == (WHOLE, WHOLE)
