"""The way of a route to the work it calls, and its answers: JSON, a stream of events, one line for an error."""

import asyncio
from collections.abc import AsyncIterator
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
