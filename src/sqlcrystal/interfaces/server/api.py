"""The HTTP interface: each route reads its request, calls one action of the door, and writes its document."""

from collections.abc import AsyncIterator
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from sqlcrystal.bank import Scope
from sqlcrystal.bank.records import MOST_DAYS
from sqlcrystal.errors import NotFound, UserError
from sqlcrystal.interfaces.server.access import Door
from sqlcrystal.interfaces.server.replies import (
    ERRORS,
    Working,
    event_line,
    event_stream,
    json_reply,
    wants_events,
    with_pings,
)
from sqlcrystal.interfaces.server.schemas import listed, model_of
from sqlcrystal.interfaces.server.work import OpenQuestion
from sqlcrystal.measurement.live import MATTERS_PP
from sqlcrystal.serving.answers import ServedAnswer
from sqlcrystal.serving.documents import (
    CardDocument,
    Correction,
    DatabaseState,
    IssuedToken,
    PastAnswer,
    Rejection,
    Result,
    Revoked,
    Ruling,
    SchemaDocument,
    TokenDocument,
    WaitingAnswer,
    WholeCard,
)
from sqlcrystal.serving.learning import LearnReport, Upload
from sqlcrystal.serving.lift import SMALLEST_EFFECT_PP
from sqlcrystal.serving.value import Value
from sqlcrystal.types import CardStatus

DATE = r"^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}(:\d{2})?)?$"
ROWS_SHOWN = 1000
"""Rows in one reply; `row_count` and `truncated` say how many were left out."""
answers = APIRouter(prefix="/api", tags=["answers"], responses=ERRORS)
cards = APIRouter(prefix="/api", tags=["cards"], responses=ERRORS)
management = APIRouter(tags=["management"], responses=ERRORS)
ROUTERS = (answers, cards, management)

Id = Annotated[str, Path(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9_-]+$")]
TokenId = Annotated[str, Path(min_length=1, max_length=64, pattern=r"^[a-f0-9]+$")]
DatabaseName = Annotated[str, Path(min_length=1, max_length=200)]
Which = Annotated[str | None, Query(max_length=200)]
Limit = Annotated[int, Query(ge=1, le=500)]
AnswerId = Annotated[str, Field(max_length=64, pattern=r"^[A-Za-z0-9_-]+$")]
Effect = Annotated[float, Query(ge=SMALLEST_EFFECT_PP, le=50, description="The lift, in points, that matters to you.")]
Since = Annotated[str | None, Query(pattern=DATE, description="Only answers given since then.")]
Text = Annotated[str, Field(max_length=10_000)]
Sql = Annotated[str, Field(min_length=1, max_length=100_000)]
Name = Annotated[str, Field(min_length=1, max_length=200)]
STREAM: dict[int | str, dict[str, Any]] = {
    200: {
        "content": {"application/json": {}, "text/event-stream": {}},
        "description": "The answer; with Accept: text/event-stream the events begun, place, read, cards, writing, sql, "
        "rows, repaired and done, or error.",
    }
}

# ── bodies ───────────────────────────────────────────────────────────────────────────────────────────────────────────


class RequestBody(BaseModel):
    """A request body: an unknown key is a mistake, not a wish."""

    model_config = ConfigDict(extra="forbid")


class AskBody(RequestBody):
    """A question; the database may be left out where the token sees only one."""

    question: Annotated[str, Field(min_length=1, max_length=10_000)]
    database: Name | None = None
    follow: AnswerId | None = None
    """The answer that the question goes on from."""
    memory: bool | None = None


class NoteBody(RequestBody):
    """A verdict's note."""

    note: Text = ""


class ConfirmBody(NoteBody):
    """A confirmation; `anyway` also where a near card says otherwise (409)."""

    anyway: bool = False


class PickBody(ConfirmBody):
    """The reading that was meant: 1 is the answer itself."""

    reading: Annotated[int, Field(ge=1, le=2)]


class RejectBody(NoteBody):
    """A rejection; `repair` looks for another answer, which is only proposed."""

    repair: bool = True


class ManyBody(NoteBody):
    """Several answers that are judged alike."""

    answers: Annotated[list[Annotated[str, Field(min_length=1, max_length=64)]], Field(min_length=1, max_length=500)]


class LearnBody(RequestBody):
    """A query log: the text of a .sql, .csv, .tsv or .json file, with its name; `limit` bounds what is tried now."""

    name: Name
    text: Annotated[str, Field(min_length=1, max_length=200_000)]
    database: Name | None = None
    limit: Annotated[int, Field(ge=1, le=100)] = 10
    again: bool = False


class CorrectBody(NoteBody):
    """The right SQL."""

    sql: Sql


class RunBody(RequestBody):
    """One read-only statement."""

    sql: Sql
    database: Name | None = None


class CardBody(RequestBody):
    """The changes to a card."""

    status: Literal[CardStatus.ACTIVE, CardStatus.DISABLED] | None = None
    """Quarantine is lifted and set by checks."""
    sql: Sql | None = None
    text: Text | None = None
    reason: Text = ""


class RevokeBody(RequestBody):
    """The verifier whose cards are taken out: at least one of by, signal, since."""

    database: Name | None = None
    by: Name | None = None
    signal: Name | None = None
    since: Annotated[str, Field(pattern=DATE)] | None = None
    reason: Text = ""


class TokenBody(RequestBody):
    """A new token: its holder, and scopes on databases."""

    person: Annotated[str, Field(min_length=1, max_length=100)]
    databases: Annotated[list[Name], Field(min_length=1, max_length=100)]
    scopes: Annotated[list[Scope], Field(min_length=1, max_length=3)]
    days: Annotated[float | None, Field(gt=0, le=MOST_DAYS)] = None
    """How long it stands; without end where nothing is given."""


class State(BaseModel):
    """The server's ability to work."""

    status: Literal["ok", "stopping", "store unreachable"]


# ── asking and judging ───────────────────────────────────────────────────────────────────────────────────────────────


@answers.post("/ask", response_model=model_of(ServedAnswer), responses=STREAM)
async def ask(body: AskBody, request: Request, door: Door, work: Working) -> Response:
    """Answer a question over one database."""
    database = await work.look(lambda: door.database_asked(body.database, body.follow or ""))
    streamed = wants_events(request)
    asked = work.ask(
        door, body.question, database=database, follow=body.follow or "", memory=body.memory, watched=streamed
    )
    return event_stream(_events(asked)) if streamed else json_reply(_written(await asked.ended()))


def _written(answer: ServedAnswer) -> dict[str, Any]:
    return answer.limited(ROWS_SHOWN).document()


async def _events(asked: OpenQuestion) -> AsyncIterator[bytes]:
    async for kind, data in with_pings(asked):
        if kind == "ping":
            yield b": waiting\n\n"
        elif kind == "done" and asked.answer is not None:
            yield event_line("done", _written(asked.answer))
        else:
            yield event_line(kind, data)


@answers.post("/asks/{ticket}/stop", status_code=204)
async def stop(ticket: Id, door: Door, work: Working) -> Response:
    """Stop a question of your own at its next step; the ticket came with the first event."""
    if not work.stop(ticket, door.caller.person):
        raise NotFound("no question under way with this ticket, or not yours")
    return Response(status_code=204)


@answers.get("/answers", response_model=listed(PastAnswer))
async def history(door: Door, work: Working, database: Which = None, limit: Limit = 50) -> Response:
    """List the latest answers of a database, newest first."""
    return json_reply(await work.read(lambda: door.history(door.database(database), limit=limit)))


@answers.get("/answers/{answer_id}", response_model=model_of(ServedAnswer))
async def answer(answer_id: Id, door: Door, work: Working) -> Response:
    """Give one answer as it was given."""
    return json_reply(_written(await work.read(lambda: door.answer(answer_id))))


@answers.post("/answers/{answer_id}/confirm", response_model=model_of(Ruling))
async def confirm(answer_id: Id, door: Door, work: Working, body: ConfirmBody | None = None) -> Response:
    """Vouch for an answer, or for a proposal by its id: it becomes a card."""
    wish = body or ConfirmBody()
    ruling = await work.write(lambda: door.confirm(answer_id, note=wish.note, anyway=wish.anyway))
    work.count_verdict(ruling)
    return json_reply(ruling)


@answers.post("/answers/{answer_id}/pick", response_model=model_of(Ruling))
async def pick(answer_id: Id, body: PickBody, door: Door, work: Working) -> Response:
    """Say which of an answer's two readings was meant: it becomes a card."""
    ruling = await work.write(lambda: door.pick(answer_id, body.reading, note=body.note, anyway=body.anyway))
    work.count_verdict(ruling)
    return json_reply(ruling)


@answers.post("/confirm", response_model=listed(Ruling))
async def confirm_many(body: ManyBody, door: Door, work: Working) -> Response:
    """Vouch for several answers, all or none: each becomes a card."""
    rulings = await work.write(lambda: door.confirm_all(body.answers, note=body.note))
    for ruling in rulings:
        work.count_verdict(ruling)
    return json_reply(rulings)


@answers.post("/answers/{answer_id}/correct", response_model=model_of(Correction))
async def correct(answer_id: Id, body: CorrectBody, door: Door, work: Working) -> Response:
    """Give the right SQL: it runs behind the guard and becomes a card in your name."""
    database = await work.look(lambda: door.database_of(answer_id))
    given = await work.run(database, lambda: door.correct(answer_id, body.sql, note=body.note))
    work.count_verdict(given)
    return json_reply(given.limited(ROWS_SHOWN))


@answers.post("/answers/{answer_id}/reject", response_model=model_of(Rejection))
async def reject(answer_id: Id, door: Door, work: Working, body: RejectBody | None = None) -> Response:
    """Say that an answer is wrong; a repair is looked for and only proposed."""
    wish = body or RejectBody()
    database = await work.look(lambda: door.database_of(answer_id))
    given = await work.run(database, lambda: door.reject(answer_id, note=wish.note, repair=wish.repair))
    work.count_verdict(given)
    return json_reply(given.limited(ROWS_SHOWN))


@answers.post("/answers/{answer_id}/undo", response_model=model_of(Ruling))
async def undo(answer_id: Id, door: Door, work: Working) -> Response:
    """Take a verdict back: its card leaves service, and the card that it had replaced returns."""
    ruling = await work.write(lambda: door.undo(answer_id))
    work.count_verdict(ruling)
    return json_reply(ruling)


@answers.post("/run", response_model=model_of(Result))
async def run(body: RunBody, door: Door, work: Working) -> Response:
    """Run one read-only statement behind the guard."""
    database = await work.look(lambda: door.database(body.database))
    result = await work.run(database, lambda: door.run(body.sql, database))
    return json_reply(result.limited(ROWS_SHOWN))


@answers.post("/learn", response_model=model_of(LearnReport))
async def learn(body: LearnBody, door: Door, work: Working) -> Response:
    """Propose what a query log teaches, some queries at a time: the same request again goes on with the rest."""
    database = await work.look(lambda: door.database(body.database, Scope.MANAGE))
    upload = Upload(body.name, body.text)
    return json_reply(await work.run(database, lambda: door.learn(upload, database, most=body.limit, again=body.again)))


@answers.get("/queue", response_model=listed(WaitingAnswer))
async def queue(door: Door, work: Working, database: Which = None, limit: Limit = 100) -> Response:
    """List what waits for a verdict, most useful first."""
    return json_reply(await work.read(lambda: door.queue(database, limit=limit)))


# ── cards ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@cards.get("/cards", response_model=listed(CardDocument))
async def list_cards(
    *,
    door: Door,
    work: Working,
    database: Which = None,
    status: CardStatus | None = None,
    near: Annotated[str | None, Query(max_length=2000, description="Served cards nearest to this text.")] = None,
    limit: Limit = 100,
    offset: Annotated[int, Query(ge=0, le=10_000_000)] = 0,
) -> Response:
    """List cards in the order they were banked, or those nearest to a text."""

    def read() -> list[CardDocument]:
        if near is not None and near.strip():
            found = [retrieved.card for retrieved in door.cards_search(near, database, limit=limit)]
            chosen = [card for card in found if status in {None, card.status}]
        else:
            chosen = door.cards(database, status=status)[offset : offset + limit]
        return list(map(CardDocument.of, chosen))

    return json_reply(await work.read(read))


@cards.get("/cards/{card_id}", response_model=model_of(WholeCard))
async def card(card_id: Id, door: Door, work: Working) -> Response:
    """Give one card with its text, first attempt and history."""
    return json_reply(await work.read(lambda: WholeCard.of_entry(door.card(card_id))))


@cards.patch("/cards/{card_id}", response_model=model_of(CardDocument))
async def change(card_id: Id, body: CardBody, door: Door, work: Working) -> Response:
    """Disable or enable a card, or change its SQL or text; new SQL is run first, and you vouch for it."""

    def write() -> CardDocument:
        kept = door.change(card_id, status=body.status, sql=body.sql, text=body.text, reason=body.reason)
        return CardDocument.of(kept)

    if body.sql is None:
        return json_reply(await work.write(write))
    database = (await work.look(lambda: door.card(card_id))).card.database
    return json_reply(await work.run(database, write))


@cards.delete("/cards/{card_id}", status_code=204)
async def delete(card_id: Id, door: Door, work: Working) -> Response:
    """Take a card out for good; its history stays."""
    await work.write(lambda: door.delete(card_id))
    return Response(status_code=204)


@cards.post("/cards/revoke", response_model=model_of(Revoked))
async def revoke(body: RevokeBody, door: Door, work: Working) -> Response:
    """Undo a verifier on one database: its cards leave service, its verdicts fall."""

    def write() -> Revoked:
        return door.revoke(by=body.by, signal=body.signal, since=body.since, database=body.database, reason=body.reason)

    return json_reply(await work.write(write))


# ── databases, tokens, health ────────────────────────────────────────────────────────────────────────────────────────


@management.get("/health", response_model=State)
async def health() -> Response:
    """Tell whether the process runs."""
    return json_reply({"status": "ok"})


@management.get("/ready", response_model=State)
async def ready(work: Working) -> Response:
    """Tell whether it can work: not stopping, and the store answers."""
    if work.stopping:
        return json_reply({"status": "stopping"}, status=503)
    if not await work.read(work.crystal.is_ready):
        return json_reply({"status": "store unreachable"}, status=503)
    return json_reply({"status": "ok"})


@management.get("/metrics")
async def metrics(door: Door, work: Working) -> Response:
    """Give measures of this process for Prometheus; needs `manage` on every database."""
    door.caller.require_owner()
    if work.metrics is None:
        raise UserError("metrics: this process measures nothing")
    work.measure()
    return Response(work.metrics.exposition(), media_type=work.metrics.content_type)


@management.get("/api/databases", response_model=listed(DatabaseState))
async def databases(door: Door, work: Working) -> Response:
    """List the databases that the token sees, and what it may do there."""
    return json_reply(await work.read(door.databases))


@management.get("/api/databases/{name}/schema", response_model=model_of(SchemaDocument))
async def schema(name: DatabaseName, door: Door, work: Working) -> Response:
    """Write a database's tables as prompts show them."""
    return json_reply(await work.read(lambda: SchemaDocument(database=name, ddl=door.schema(name))))


@management.get("/api/value", response_model=listed(Value))
async def value(
    door: Door, work: Working, database: Which = None, effect: Effect = MATTERS_PP, since: Since = None
) -> Response:
    """Say what memory is worth in service: the lift with its bounds and audit, its cost, and which cards earn it."""
    return json_reply(await work.read(lambda: door.value(database, effect_pp=effect, since=since or "")))


@management.get("/api/tokens", response_model=listed(TokenDocument))
async def tokens(door: Door, work: Working) -> Response:
    """List the tokens that reach no further than you manage; never the tokens themselves."""
    return json_reply(await work.read(lambda: list(map(TokenDocument.of, door.tokens()))))


@management.post("/api/tokens", response_model=model_of(IssuedToken), status_code=201)
async def issue(body: TokenBody, door: Door, work: Working) -> Response:
    """Make a token for databases you manage; it is shown this once."""
    others = work.settings.issue_for_others
    issued = await work.write(
        lambda: door.issue_token(body.person, body.databases, body.scopes, days=body.days, for_others=others)
    )
    return json_reply(issued, status=201)


@management.delete("/api/tokens/{token_id}", status_code=204)
async def end_token(token_id: TokenId, door: Door, work: Working) -> Response:
    """End a token."""
    await work.write(lambda: door.end_token(token_id))
    return Response(status_code=204)
