"""The OpenAI-compatible interface: each database is a model, the last user message a question or a verdict."""

import secrets
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Annotated, Any

import msgspec
from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from sqlcrystal.bank import Scope
from sqlcrystal.errors import NotAQuestion, NotFound
from sqlcrystal.interfaces.server.access import Door
from sqlcrystal.interfaces.server.api import ROWS_SHOWN
from sqlcrystal.interfaces.server.conversations import Said, goes_on_from, judge, wish_of
from sqlcrystal.interfaces.server.markdown import in_markdown, plain
from sqlcrystal.interfaces.server.replies import ERRORS, Working, event_stream, json_reply, with_pings
from sqlcrystal.interfaces.server.work import OpenQuestion
from sqlcrystal.serving.answers import ServedAnswer
from sqlcrystal.serving.crystal import Crystal

router = APIRouter(prefix="/v1", tags=["chat"], responses=ERRORS)


class ChatMessage(BaseModel):
    """One turn; parts of text are joined, other parts are refused."""

    model_config = ConfigDict(extra="allow")
    role: Annotated[str, Field(max_length=40)]
    content: str | list[dict[str, Any]] | None = None

    def text(self) -> str:
        """Tell what was said."""
        if isinstance(self.content, list):
            return "\n".join(str(part.get("text", "")) for part in self.content if part.get("type") == "text")
        return self.content or ""


class ChatBody(BaseModel):
    """A request as OpenAI's clients send it; what does not apply to SQL (temperature, …) is ignored."""

    model_config = ConfigDict(extra="allow")
    model: Annotated[str, Field(min_length=1, max_length=200)]
    messages: Annotated[list[ChatMessage], Field(min_length=1, max_length=500)]
    stream: bool = False
    n: Annotated[int, Field(ge=1, le=1)] = 1


@router.get("/models")
async def models(door: Door, work: Working) -> Response:
    """List one model for each database that the token may ask."""
    listed = [_model(name) for name in await work.read(lambda: door.database_names(Scope.ASK))]
    return json_reply({"object": "list", "data": listed})


@router.get("/models/{name}")
async def model(name: str, door: Door, work: Working) -> Response:
    """Describe one database as a model."""
    return json_reply(_model(await work.read(lambda: _database(door, name))))


@router.post("/chat/completions")
async def completions(body: ChatBody, door: Door, work: Working) -> Response:
    """Answer the last user message over the database that `model` names, or take the verdict that it says."""
    database = await work.read(lambda: _database(door, body.model))
    wish = wish_of([Said(turn.role, turn.text()) for turn in body.messages])
    name = f"chatcmpl-{secrets.token_hex(12)}"
    follow = await work.look(lambda: goes_on_from(door, wish, database))
    if follow and wish.is_verdict:
        said = await judge(work, door, wish)
        return event_stream(_told(said, database, name)) if body.stream else _reply(said, {}, database, name)
    asked = work.ask(door, wish.text, database=database, follow=follow)
    if body.stream:
        return event_stream(_chunks(asked, name))
    try:
        answer = _written(await asked.ended())
    except NotAQuestion as said:
        return _reply(plain(said), {}, database, name)
    return _reply(in_markdown(answer), answer, database, name)


def _reply(content: str, answer: Mapping[str, Any], database: str, name: str) -> Response:
    """Reply with a whole completion; beside it the answer's document, where it is one."""
    message = {"role": "assistant", "content": content, "refusal": None}
    return json_reply(
        {
            "id": name,
            "object": "chat.completion",
            "created": int(time.time()),
            "model": database,
            "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}],
            "usage": _usage(answer),
            **({"sqlcrystal": answer} if answer else {}),
        }
    )


class _Chunks:
    """Writes the chunks of one streamed completion."""

    def __init__(self, database: str, name: str) -> None:
        self._same = {"id": name, "object": "chat.completion.chunk", "created": int(time.time()), "model": database}

    def chunk(self, delta: Mapping[str, object], *, finish: str | None = None, **more: object) -> bytes:
        """Write one chunk."""
        choices = [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}]
        return b"data: " + msgspec.json.encode({**self._same, "choices": choices, **more}) + b"\n\n"

    def begin(self) -> bytes:
        """Write the first chunk."""
        return self.chunk({"role": "assistant", "content": ""})

    def rest(self, content: str, **more: object) -> Iterator[bytes]:
        """Write the content line by line, and the end."""
        for part in content.splitlines(keepends=True):
            yield self.chunk({"content": part})
        yield self.chunk({}, finish="stop", **more)
        yield b"data: [DONE]\n\n"


async def _told(content: str, database: str, name: str) -> AsyncIterator[bytes]:
    """Stream what is known already."""
    chunks = _Chunks(database, name)
    yield chunks.begin()
    for part in chunks.rest(content, usage=_usage({})):
        yield part


async def _chunks(asked: OpenQuestion, name: str) -> AsyncIterator[bytes]:
    chunks = _Chunks(asked.database, name)
    yield chunks.begin()
    async for kind, data in with_pings(asked):
        if kind == "ping":
            yield b": waiting\n\n"
        elif kind == "error" and isinstance(asked.error, NotAQuestion):
            for part in chunks.rest(plain(asked.error), usage=_usage({})):
                yield part
            return
        elif kind == "error":
            yield b"data: " + msgspec.json.encode(_error(int(data["status"]), str(data["detail"]))) + b"\n\n"
            return
    answer = _written(asked.given())
    # The SQL is told when it is final: a repair may still replace what the first attempt said.
    for part in chunks.rest(in_markdown(answer), usage=_usage(answer), sqlcrystal=answer):
        yield part


def _written(answer: ServedAnswer) -> dict[str, Any]:
    return answer.limited(ROWS_SHOWN).document()


def _database(door: Crystal, name: str) -> str:
    may_ask = door.database_names(Scope.ASK)
    if name not in may_ask:
        raise NotFound(f"model: no {name!r} here, or not for you; choose from {', '.join(may_ask) or 'none'}")
    return name


def _model(name: str) -> dict[str, object]:
    return {"id": name, "object": "model", "created": 0, "owned_by": "sqlcrystal"}


def _usage(answer: Mapping[str, Any]) -> dict[str, int]:
    prompt, completion = answer.get("prompt_tokens", 0), answer.get("completion_tokens", 0)
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}


def _error(status: int, detail: str) -> dict[str, object]:
    kind = {401: "authentication_error", 429: "rate_limit_error"}.get(status, "invalid_request_error")
    kind = "server_error" if status >= 500 else kind
    return {"error": {"message": detail, "type": kind, "param": None, "code": None}}


def error_reply(status: int, detail: object) -> Response:
    """An error as OpenAI's clients read it."""
    return json_reply(_error(status, detail if isinstance(detail, str) else str(detail)), status=status)
