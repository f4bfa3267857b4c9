"""The OpenAI-compatible interface: each database is a model, the last user message a question or a verdict."""

from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Annotated, Any

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from sqlcrystal.bank import Scope
from sqlcrystal.errors import NotAQuestion, NotFound
from sqlcrystal.escaping import visible
from sqlcrystal.interfaces.server.access import Door
from sqlcrystal.interfaces.server.api import ROWS_SHOWN
from sqlcrystal.interfaces.server.conversations import Said, goes_on_from, in_markdown, judge, plain, wish_of
from sqlcrystal.interfaces.server.replies import (
    DONE,
    ERRORS,
    PING,
    Replying,
    Working,
    error_document,
    event_stream,
    json_reply,
    model_document,
    server_event,
    usage_document,
    with_pings,
)
from sqlcrystal.interfaces.server.work import OpenQuestion
from sqlcrystal.serving.answers import ServedAnswer
from sqlcrystal.serving.crystal import Crystal

router = APIRouter(prefix="/v1", tags=["chat"], responses=ERRORS)
FENCE, FENCE_END = "```sql\n", "\n```"
REPLACED = "Looked at again:"
NOTHING = usage_document(0, 0)
"""The tokens of a reply that no model was asked for."""


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
    listed = [model_document(name) for name in await work.read(lambda: door.database_names(Scope.ASK))]
    return json_reply({"object": "list", "data": listed})


@router.get("/models/{name}")
async def model(name: str, door: Door, work: Working) -> Response:
    """Describe one database as a model."""
    return json_reply(model_document(await work.read(lambda: _database(door, name))))


@router.post("/chat/completions")
async def completions(body: ChatBody, door: Door, work: Working) -> Response:
    """Answer the last user message over the database that `model` names, or take the verdict that it says."""
    database = await work.read(lambda: _database(door, body.model))
    wish = wish_of([Said(turn.role, turn.text()) for turn in body.messages])
    replying = Replying(database)
    follow = await work.look(lambda: goes_on_from(door, wish, database))
    if follow and wish.is_verdict:
        said = await judge(work, door, wish)
        return event_stream(_told(said, replying)) if body.stream else json_reply(replying.whole(said, NOTHING))
    asked = work.ask(door, wish.text, database=database, follow=follow)
    if body.stream:
        return event_stream(_chunks(asked, replying))
    try:
        answer = _written(await asked.ended())
    except NotAQuestion as said:  # to a chat client the sentence is what the assistant says
        return json_reply(replying.whole(plain(said), NOTHING))
    return json_reply(replying.whole(in_markdown(answer), _usage(answer), sqlcrystal=answer))


async def _told(text: str, replying: Replying) -> AsyncIterator[bytes]:
    """Stream what is known already."""
    yield replying.chunk({"role": "assistant", "content": ""})
    for piece in _pieces(replying, text, usage=NOTHING):
        yield piece


def _pieces(replying: Replying, text: str, **more: object) -> Iterator[bytes]:
    """Write a text line by line, and the end."""
    for line in text.splitlines(keepends=True):
        yield replying.chunk({"content": line})
    yield replying.chunk({}, finish="stop", **more)
    yield DONE


async def _chunks(asked: OpenQuestion, replying: Replying) -> AsyncIterator[bytes]:
    yield replying.chunk({"role": "assistant", "content": ""})
    told = ""
    async for kind, data in with_pings(asked):
        if kind == "ping":
            yield PING
        elif kind in ("read", "writing"):
            more = _begun(kind, data, told)
            told += more
            if more:
                yield replying.chunk({"content": more})
        elif kind == "error" and isinstance(asked.error, NotAQuestion):
            for piece in _pieces(replying, plain(asked.error), usage=NOTHING):
                yield piece
            return
        elif kind == "error":
            yield server_event(error_document(int(data["status"]), str(data["detail"])))
            return
    answer = _written(asked.given())
    whole = in_markdown(answer)
    # Another view or a repair may have replaced what was written first; then all of it is told after that.
    end = FENCE_END if FENCE in told else ""
    rest = whole[len(told) :] if whole.startswith(told) else f"{end}\n\n{REPLACED}\n\n{whole}"
    for piece in _pieces(replying, rest, usage=_usage(answer), sqlcrystal=answer):
        yield piece


def _begun(kind: str, data: Mapping[str, Any], told: str) -> str:
    """Give what more of a reply is known: how a question is read, then its SQL as it is written."""
    if kind == "read":
        return f"Read as: {plain(data['question'])}\n\n" if data["follows"] else ""
    _, fence, written = told.partition(FENCE)
    sql = visible(data["sql"])
    if "`" in sql or (fence and not sql.startswith(written)):
        return ""  # a text that was begun anew, or that needs another fence: it is told when it is whole
    return sql[len(written) :] if fence else FENCE + sql


def _written(answer: ServedAnswer) -> dict[str, Any]:
    return answer.limited(ROWS_SHOWN).document()


def _database(door: Crystal, name: str) -> str:
    may_ask = door.database_names(Scope.ASK)
    if name not in may_ask:
        raise NotFound(f"model: no {name!r} here, or not for you; choose from {', '.join(may_ask) or 'none'}")
    return name


def _usage(answer: Mapping[str, Any]) -> dict[str, int]:
    return usage_document(answer["prompt_tokens"], answer["completion_tokens"])
