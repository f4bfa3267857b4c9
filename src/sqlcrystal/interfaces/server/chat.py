"""The OpenAI-compatible interface: each database is a model, the last user message is the question."""

import re
from collections.abc import AsyncIterator, Mapping
from typing import Annotated, Any

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from sqlcrystal.bank import Scope
from sqlcrystal.errors import NotAQuestion, NotFound, UserError
from sqlcrystal.escaping import fenced, visible
from sqlcrystal.interfaces.server.access import Door
from sqlcrystal.interfaces.server.api import ROWS_SHOWN
from sqlcrystal.interfaces.server.openai_documents import (
    DONE,
    PING,
    Replying,
    error_document,
    model_document,
    server_event,
    usage_document,
)
from sqlcrystal.interfaces.server.replies import ERRORS, Working, event_stream, json_reply, with_pings
from sqlcrystal.interfaces.server.work import OpenQuestion
from sqlcrystal.serving.answers import ServedAnswer
from sqlcrystal.serving.crystal import Crystal

router = APIRouter(prefix="/v1", tags=["chat"], responses=ERRORS)
ROWS_IN_CHAT = 50
# What a chat client may turn into a link, an image or HTML, and with it send a value elsewhere.
_LINKABLE = re.compile(r"[^\W\d_][.:@/]|[.:@/][^\W\d_]")
"""Clients link addresses and bare names of hosts, whatever is escaped in them; what is code they leave alone."""
_MARKDOWN = re.compile(r"([\\`*_{}\[\]()<>#+!|~&:@-])")


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
    """Answer the last user message over the database that `model` names."""
    database = await work.read(lambda: _database(door, body.model))
    question = next((turn.text() for turn in reversed(body.messages) if turn.role == "user"), "").strip()
    if not question:
        raise UserError("messages: the last user message is the question, and there is none")
    asked = work.ask(door, question, database=database)
    replying = Replying(database)
    if body.stream:
        return event_stream(_chunks(asked, replying))
    try:
        answer = _written(await asked.ended())
    except NotAQuestion as said:  # to a chat client the sentence is what the assistant says
        return json_reply(replying.whole(plain(str(said)), usage_document(0, 0)))
    return json_reply(replying.whole(in_markdown(answer), _usage(answer), sqlcrystal=answer))


async def _chunks(asked: OpenQuestion, replying: Replying) -> AsyncIterator[bytes]:
    yield replying.chunk({"role": "assistant", "content": ""})
    async for kind, data in with_pings(asked):
        if kind == "ping":
            yield PING
        elif kind == "error" and isinstance(asked.error, NotAQuestion):
            yield replying.chunk({"content": plain(str(asked.error))})
            yield replying.chunk({}, finish="stop")
            yield DONE
            return
        elif kind == "error":
            yield server_event(error_document(int(data["status"]), str(data["detail"])))
            return
    answer = _written(asked.given())
    # The SQL is told when it is final: a repair may still replace what the first attempt said.
    for part in in_markdown(answer).splitlines(keepends=True):
        yield replying.chunk({"content": part})
    yield replying.chunk({}, finish="stop", usage=_usage(answer), sqlcrystal=answer)
    yield DONE


def _written(answer: ServedAnswer) -> dict[str, Any]:
    return answer.limited(ROWS_SHOWN).document()


def in_markdown(answer: Mapping[str, Any]) -> str:
    """An answer as Markdown in which nothing of the database can become a link, an image or HTML."""
    parts = [fenced(visible(answer["sql"])) if answer["sql"] else "The reply held no SQL."]
    if answer["words"]:
        parts.append(plain(answer["words"]) + _unasked(answer["unasked"]))
    if answer["error"]:
        parts.append(f"It did not run: {plain(answer['error'])}")
    elif answer["sql"]:
        rows = answer["rows"] or []
        parts.append(_table(answer["columns"], rows[:ROWS_IN_CHAT]))
        count = answer["row_count"]
        shown = min(len(rows), ROWS_IN_CHAT)
        words = f"{count} row{'' if count == 1 else 's'}"
        parts.append(f"First {shown} of {words}." if count > shown else f"{words}.")
    used = ", ".join(f"`{card['id'][:8]}`" for card in answer["cards"])
    parts.append(f"Answer `{answer['id']}`, {'cards used: ' + used if used else 'no cards used'}. Not judged yet.")
    if answer["audit"]:
        parts.append("Chance chose this answer to be judged, whatever it says: it waits in the queue until it is.")
    return "\n\n".join(parts)


def _unasked(parts: list[str]) -> str:
    """Name the parts of the words that no word of the question asks for."""
    return f" Not asked for: {'; '.join(map(plain, parts))}." if parts else ""


def plain(text: object) -> str:
    """Text that Markdown leaves alone, on one line; as code where a client might make a link of its words."""
    line = " ".join(visible(str(text)).split())
    if _LINKABLE.search(line):
        fence = "`" * (1 + max((len(run) for run in re.findall(r"`+", line)), default=0))
        return f"{fence} {line} {fence}".replace("|", "\\|")
    return _MARKDOWN.sub(r"\\\1", line)


def _table(columns: list[str], rows: list[list[Any]]) -> str:
    head = ["| " + " | ".join(plain(column) or " " for column in columns) + " |", "|" + " --- |" * len(columns)]
    body = ["| " + " | ".join("NULL" if cell is None else plain(cell) for cell in row) + " |" for row in rows]
    return "\n".join([*head, *body])


def _database(door: Crystal, name: str) -> str:
    may_ask = door.database_names(Scope.ASK)
    if name not in may_ask:
        raise NotFound(f"model: no {name!r} here, or not for you; choose from {', '.join(may_ask) or 'none'}")
    return name


def _usage(answer: Mapping[str, Any]) -> dict[str, int]:
    return usage_document(answer["prompt_tokens"], answer["completion_tokens"])
