"""The way of a route to the work it calls, and its answers: JSON, events, OpenAI's documents, a line for an error."""

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Mapping
from typing import Annotated, Any

import msgspec
from fastapi import Depends, Request
from pydantic import BaseModel
from starlette.responses import Response, StreamingResponse

from sqlcrystal.interfaces.server.work import OpenQuestion, Work

PING_SECONDS = 15.0


class ErrorLine(BaseModel):
    """One line that says what was wrong."""

    detail: Any


ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"model": ErrorLine, "description": words}
    for status, words in {
        400: "not a request",
        401: "no token, or one that does not stand",
        403: "the token lacks a scope",
        404: "not here, or not for you",
        409: "a near card says something else; confirm anyway, or not",
        413: "the body is too large",
        422: "a mistake in the request",
        429: "too many requests",
        502: "the model or a database failed",
        503: "busy or stopping",
        504: "took too long",
    }.items()
}


async def work_of(request: Request) -> Work:
    """The work of this process."""
    work: Work = request.app.state.work
    return work


Working = Annotated[Work, Depends(work_of)]


def json_reply(document: object, *, status: int = 200) -> Response:
    """A document as JSON; a number that JSON cannot hold is null."""
    return Response(msgspec.json.encode(document), status_code=status, media_type="application/json")


def wants_events(request: Request) -> bool:
    """Tell whether the caller asked for a stream."""
    return "text/event-stream" in request.headers.get("accept", "")


def event_line(kind: str, data: object) -> bytes:
    """One server-sent event."""
    return b"event: " + kind.encode() + b"\ndata: " + msgspec.json.encode(data) + b"\n\n"


def event_stream(steps: AsyncIterator[bytes]) -> StreamingResponse:
    """A stream of events that proxies pass on at once."""
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(steps, media_type="text/event-stream", headers=headers)


async def with_pings(asked: OpenQuestion) -> AsyncIterator[tuple[str, dict[str, Any]]]:
    """The steps of an answer; an empty one now and then, so that nobody on the way takes silence for the end."""
    events = asked.events()
    coming: asyncio.Future[tuple[str, dict[str, Any]]] | None = None
    try:
        while True:
            coming = coming or asyncio.ensure_future(anext(events))
            done, _ = await asyncio.wait([coming], timeout=PING_SECONDS)
            if not done:
                yield "ping", {}
                continue
            try:
                step = coming.result()
            except StopAsyncIteration:
                return
            finally:
                coming = None
            yield step
    finally:
        if coming is not None:
            coming.cancel()


DONE = b"data: [DONE]\n\n"
"""The end of a stream."""
PING = b": waiting\n\n"
"""A comment that clients pass over, so that no proxy on the way takes silence for the end."""


class Replying:
    """One reply under way: its id and model stand in the whole of it and in each of its pieces."""

    def __init__(self, model: str) -> None:
        """Give the reply an id of its own."""
        self._id = f"chatcmpl-{secrets.token_hex(12)}"
        self._model = model

    def whole(self, text: str, usage: Mapping[str, int], *, finish: str = "stop", **more: object) -> dict[str, object]:
        """Write the reply as one document."""
        message = {"role": "assistant", "content": text, "refusal": None}
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": finish}
        return {**self._head("chat.completion"), "choices": [choice], "usage": usage, **more}

    def chunk(self, delta: Mapping[str, object], *, finish: str | None = None, **more: object) -> bytes:
        """Write one piece as an event of a stream."""
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return server_event({**self._head("chat.completion.chunk"), "choices": [choice], **more})

    def count(self, usage: Mapping[str, int]) -> bytes:
        """Write the event that holds no text but the tokens, for clients that ask for it."""
        return server_event({**self._head("chat.completion.chunk"), "choices": [], "usage": usage})

    def _head(self, kind: str) -> dict[str, object]:
        return {"id": self._id, "object": kind, "created": int(time.time()), "model": self._model}


def server_event(document: object) -> bytes:
    """Write a document as an event without a name."""
    return b"data: " + msgspec.json.encode(document) + b"\n\n"


def model_document(name: str) -> dict[str, object]:
    """Describe a model by its name."""
    return {"id": name, "object": "model", "created": 0, "owned_by": "sqlcrystal"}


def usage_document(prompt: int, completion: int) -> dict[str, int]:
    """Tell the tokens of one request."""
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}


def error_document(status: int, detail: str) -> dict[str, object]:
    """Tell an error."""
    kind = {401: "authentication_error", 429: "rate_limit_error"}.get(status, "invalid_request_error")
    kind = "server_error" if status >= 500 else kind
    return {"error": {"message": detail, "type": kind, "param": None, "code": None}}


def error_reply(status: int, detail: object) -> Response:
    """Answer with an error."""
    return json_reply(error_document(status, detail if isinstance(detail, str) else str(detail)), status=status)
