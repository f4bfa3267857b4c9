"""Verdicts by plain forms: an answer is judged where it stands, or in the queue, which then goes on."""

from typing import Annotated, NamedTuple
from urllib.parse import parse_qsl

from fastapi import APIRouter, Depends, Form, Request
from starlette.responses import RedirectResponse, Response

from sqlcrystal.bank import AnswerRecord, Scope
from sqlcrystal.interfaces.server.access import Caller, Calling
from sqlcrystal.interfaces.server.api_answers import Id
from sqlcrystal.interfaces.server.reach import answer_for, proposal_for
from sqlcrystal.interfaces.server.replies import Working
from sqlcrystal.interfaces.server.work import Work
from sqlcrystal.interfaces.web.pages_queue import queue_address
from sqlcrystal.interfaces.web.rendering import fragment, waiting_in
from sqlcrystal.interfaces.web.views import AnswerView

router = APIRouter(include_in_schema=False)
Sql = Annotated[str, Form(max_length=100_000)]


class QueuePlace(NamedTuple):
    """Where in the queue an answer was judged; 0 where it was judged on its own page."""

    place: int
    address: dict[str, str]


def queue_place(
    place: Annotated[int, Form(ge=0, le=100_000)] = 0, queue: Annotated[str, Form(max_length=2000)] = ""
) -> QueuePlace:
    """From the fields that the queue's forms carry."""
    return QueuePlace(place, dict(parse_qsl(queue)))


InQueue = Annotated[QueuePlace, Depends(queue_place)]


@router.post("/a/{answer_id}/confirm")
async def confirm(
    *,
    request: Request,
    answer_id: Id,
    caller: Calling,
    work: Working,
    queue: InQueue,
    proposal: Annotated[str, Form(max_length=64)] = "",
) -> Response:
    """Vouch for an answer, or for what was proposed in its place."""

    def judge() -> AnswerRecord:
        record = answer_for(work.crystal, caller, answer_id, Scope.JUDGE)
        name = proposal_for(work.crystal, caller, proposal).id if proposal else record.id
        ruling = work.crystal.confirm(name, by=caller.person)
        return _counted(work, record, str(ruling.verdict), new=ruling.new)

    return await _after(request, caller, work, queue, await work.write(judge))


@router.post("/a/{answer_id}/reject")
async def reject(
    *,
    request: Request,
    answer_id: Id,
    caller: Calling,
    work: Working,
    queue: InQueue,
    note: Annotated[str, Form(max_length=2000)] = "",
) -> Response:
    """Reject an answer; a repair is looked for, and where the model fails the rejection stands without one."""
    record = await work.call(lambda: answer_for(work.crystal, caller, answer_id, Scope.JUDGE))
    new, proposed = await work.long(record.database, lambda: _reject(work, record, caller, note))
    _counted(work, record, "rejected", new=new)
    return await _after(request, caller, work, queue, record, stay=proposed)


@router.post("/a/{answer_id}/correct")
async def correct(
    *, request: Request, answer_id: Id, caller: Calling, work: Working, queue: InQueue, sql: Sql
) -> Response:
    """Bank a person's own SQL."""
    record = await work.call(lambda: answer_for(work.crystal, caller, answer_id, Scope.JUDGE))
    given = await work.long(record.database, lambda: work.crystal.correct(record.id, sql, by=caller.person))
    _counted(work, record, str(given.ruling.verdict), new=given.ruling.new)
    return await _after(request, caller, work, queue, record)


@router.post("/a/{answer_id}/undo")
async def undo(*, request: Request, answer_id: Id, caller: Calling, work: Working, queue: InQueue) -> Response:
    """Take a verdict back."""

    def judge() -> tuple[AnswerRecord, str]:
        record = answer_for(work.crystal, caller, answer_id, Scope.JUDGE)
        card = work.crystal.undo(record.id, by=caller.person).card
        said = f"Undone. Card {card[:8]} is out of the bank." if card else "Undone."
        return _counted(work, record, "undone", new=True), said

    record, said = await work.write(judge)
    return await _after(request, caller, work, queue, record, stay=True, undone=said)


def _reject(work: Work, record: AnswerRecord, caller: Caller, note: str) -> tuple[bool, bool]:
    """Whether the rejection was new, and whether a repair came of it."""
    from sqlcrystal.errors import ModelError, RecordingMiss

    try:
        given = work.crystal.reject(record.id, by=caller.person, note=note)
    except (ModelError, RecordingMiss):
        given = work.crystal.reject(record.id, by=caller.person, note=note, repair=False)
    return given.ruling.new, given.proposal is not None


def _counted(work: Work, record: AnswerRecord, verdict: str, *, new: bool) -> AnswerRecord:
    if new:
        work.metrics.verdicts.labels(record.database, verdict).inc()
    return record


async def _after(
    request: Request,
    caller: Caller,
    work: Work,
    queue: QueuePlace,
    record: AnswerRecord,
    *,
    stay: bool = False,
    undone: str = "",
) -> Response:
    if queue.place:
        shown = {"answer": record.id} if stay else {"judged": record.id}
        return RedirectResponse(queue_address(queue.address, place=str(queue.place), **shown), status_code=303)
    if "x-fragment" not in request.headers:
        return RedirectResponse(f"/a/{record.id}", status_code=303)
    view = await work.call(lambda: AnswerView(work.crystal, caller, record))
    reply = fragment("_answer.html", view=view, fresh=True, undone=undone)
    reply.headers["X-Waiting"] = str(await work.call(lambda: len(waiting_in(work, caller, record.database))))
    return reply
