"""Asking, judging, and what waits for a verdict."""

from collections.abc import AsyncIterator
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, HTTPException, Path, Query, Request
from starlette.responses import Response

from sqlcrystal.bank import AnswerRecord, Scope
from sqlcrystal.interfaces.server.access import Calling
from sqlcrystal.interfaces.server.reach import (
    answer_for,
    database_for,
    proposal_for,
    told_answer,
    told_past,
    told_rejection,
    told_rows,
    told_ruling,
)
from sqlcrystal.interfaces.server.replies import (
    ERRORS,
    Working,
    ended,
    event_line,
    event_stream,
    json_reply,
    wants_events,
    with_pings,
)
from sqlcrystal.interfaces.server.shapes import (
    AnswerShape,
    AskBody,
    CorrectBody,
    NoteBody,
    PastShape,
    RejectBody,
    RejectionShape,
    RowsShape,
    RulingShape,
    RunBody,
    WaitingShape,
)
from sqlcrystal.interfaces.server.work import Asked, Work

router = APIRouter(prefix="/api", tags=["answers"], responses=ERRORS)
Id = Annotated[str, Path(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9_-]+$")]
Which = Annotated[str | None, Query(max_length=200)]
Limit = Annotated[int, Query(ge=1, le=500)]

STREAM: dict[int | str, dict[str, Any]] = {
    200: {
        "content": {"application/json": {}, "text/event-stream": {}},
        "description": "The answer; with Accept: text/event-stream the events begun, place, cards, sql, rows, "
        "repaired and done, or error.",
    }
}


@router.post("/ask", response_model=AnswerShape, responses=STREAM)
async def ask(body: AskBody, request: Request, caller: Calling, work: Working) -> Response:
    """Answer a question over one database."""
    database = await work.peek(lambda: database_for(work.crystal, caller, body.database))
    tell = partial(told_answer, work.crystal)
    streamed = wants_events(request)
    asked = work.ask(
        body.question, database=database, person=caller.person, memory=body.memory, tell=tell, watched=streamed
    )
    if streamed:
        return event_stream(_events(asked))
    await ended(asked)
    if asked.answer is None:
        raise HTTPException(503, "the server is stopping")
    return json_reply(asked.told)


async def _events(asked: Asked) -> AsyncIterator[bytes]:
    async for kind, data in with_pings(asked):
        if kind == "ping":
            yield b": waiting\n\n"
        elif kind == "done" and asked.answer is not None:
            yield event_line("done", asked.told)
        else:
            yield event_line(kind, data)


@router.post("/asks/{ticket}/stop", status_code=204)
async def stop(ticket: Id, caller: Calling, work: Working) -> Response:
    """Stop a question of your own at its next step; the ticket came with the first event."""
    if not work.stop(ticket, caller.person):
        raise HTTPException(404, "no question under way with this ticket, or not yours")
    return Response(status_code=204)


@router.get("/answers", response_model=list[PastShape])
async def history(caller: Calling, work: Working, database: Which = None, limit: Limit = 50) -> Response:
    """The latest answers of a database, newest first."""

    def read() -> list[dict[str, object]]:
        name = database_for(work.crystal, caller, database)
        records = work.crystal.history(name, limit=limit)
        shown = [record for record in records if not record.twin_of]
        return [told_past(record, work.crystal.store.answers.verdict(record.id)) for record in shown]

    return json_reply(await work.call(read))


@router.get("/answers/{answer_id}", response_model=AnswerShape)
async def answer(answer_id: Id, caller: Calling, work: Working) -> Response:
    """One answer as it was given."""
    return json_reply(await work.call(lambda: told_answer(work.crystal, answer_for(work.crystal, caller, answer_id))))


@router.post("/answers/{answer_id}/confirm", response_model=RulingShape)
async def confirm(answer_id: Id, body: NoteBody, caller: Calling, work: Working) -> Response:
    """Vouch for an answer, or for a proposal by its id: it becomes a card."""

    def judge() -> dict[str, object]:
        if answer_id.startswith("p-"):
            meant: AnswerRecord | str = proposal_for(work.crystal, caller, answer_id).id
        else:
            meant = answer_for(work.crystal, caller, answer_id, Scope.JUDGE)
        return told_ruling(work.crystal.confirm(meant, by=caller.person, note=body.note))

    return _counted(work, await work.write(judge))


@router.post("/answers/{answer_id}/correct", response_model=RulingShape)
async def correct(answer_id: Id, body: CorrectBody, caller: Calling, work: Working) -> Response:
    """Give the right SQL: it runs behind the guard and becomes a card in your name."""
    record = await work.call(lambda: answer_for(work.crystal, caller, answer_id, Scope.JUDGE))
    correction = await work.long(
        record.database, lambda: work.crystal.correct(record.id, body.sql, by=caller.person, note=body.note)
    )
    return _counted(work, told_ruling(correction.ruling))


@router.post("/answers/{answer_id}/reject", response_model=RejectionShape)
async def reject(answer_id: Id, body: RejectBody, caller: Calling, work: Working) -> Response:
    """Say that an answer is wrong; a repair is looked for and only proposed."""
    record = await work.call(lambda: answer_for(work.crystal, caller, answer_id, Scope.JUDGE))
    rejection = await work.long(
        record.database,
        lambda: work.crystal.reject(record.id, by=caller.person, note=body.note, repair=body.repair),
    )
    return _counted(work, told_rejection(rejection))


@router.post("/answers/{answer_id}/undo", response_model=RulingShape)
async def undo(answer_id: Id, caller: Calling, work: Working) -> Response:
    """Take a verdict back: its card leaves service, and what it had replaced returns."""

    def judge() -> dict[str, object]:
        record = answer_for(work.crystal, caller, answer_id, Scope.JUDGE)
        return told_ruling(work.crystal.undo(record.id, by=caller.person))

    return _counted(work, await work.write(judge))


@router.post("/run", response_model=RowsShape)
async def run(body: RunBody, caller: Calling, work: Working) -> Response:
    """Run one read-only statement behind the guard."""
    database = await work.peek(lambda: database_for(work.crystal, caller, body.database))
    return json_reply(told_rows(await work.long(database, lambda: work.crystal.run(body.sql, database))))


@router.get("/queue", response_model=list[WaitingShape])
async def queue(caller: Calling, work: Working, database: Which = None, limit: Limit = 100) -> Response:
    """What waits for a verdict, most useful first."""

    def read() -> list[dict[str, object]]:
        name = database_for(work.crystal, caller, database, Scope.JUDGE)
        return [
            {
                "id": waiting.answer.id,
                "database": waiting.answer.database,
                "question": waiting.answer.question,
                "at": waiting.answer.at,
                "asked": waiting.asked,
                "spread": waiting.spread,
                "conflict": waiting.conflict,
            }
            for waiting in work.crystal.queue(name, limit=limit)
        ]

    return json_reply(await work.call(read))


def _counted(work: Work, ruling: dict[str, object]) -> Response:
    if ruling["new"]:
        work.metrics.verdicts.labels(str(ruling["database"]), str(ruling["verdict"])).inc()
    return json_reply(ruling)
