"""Verdicts by plain forms: an answer is judged where it stands, or in the queue, which then goes on."""

from typing import Annotated, NamedTuple
from urllib.parse import parse_qsl

from fastapi import APIRouter, Depends, Form, Request
from starlette.responses import RedirectResponse, Response

from sqlcrystal.bank import Scope
from sqlcrystal.errors import Contradicted
from sqlcrystal.interfaces.server.access import Door
from sqlcrystal.interfaces.server.api import Id
from sqlcrystal.interfaces.server.replies import Working
from sqlcrystal.interfaces.server.work import Work
from sqlcrystal.interfaces.web.pages_ask import ask_values
from sqlcrystal.interfaces.web.pages_queue import queue_address
from sqlcrystal.interfaces.web.rendering import fragment, page, waiting_in
from sqlcrystal.interfaces.web.views import answer_view
from sqlcrystal.serving.documents import Ruling

router = APIRouter(include_in_schema=False)
Sql = Annotated[str, Form(max_length=100_000)]


class QueuePlace(NamedTuple):
    """The place in the queue where an answer was judged; 0 where it was judged on its own page."""

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
    door: Door,
    work: Working,
    queue: InQueue,
    proposal: Annotated[str, Form(max_length=64)] = "",
    reading: Annotated[int, Form(ge=0, le=2)] = 0,
    anyway: bool = Form(default=False),
) -> Response:
    """Vouch for an answer, for what was proposed in its place, or for one of its two readings.

    Where a near card says otherwise, ask first.
    """

    def vouch() -> Ruling:
        if reading:
            return door.pick(answer_id, reading, anyway=anyway)
        return door.confirm(proposal or answer_id, anyway=anyway)

    try:
        ruling = await work.write(vouch)
    except Contradicted as doubt:
        said = str(doubt)
        view = await answer_view(work, door, answer_id, scope=Scope.JUDGE, contradicted=said)
        if "x-fragment" in request.headers:
            return fragment("_answer.html", view=view, fresh=True)
        values = await work.read(lambda: ask_values(door, work, view.database))
        return page(request, "ask.html", **{**values, "database_action": "/"}, view=view, asked="")
    return await _after(request, door, work, queue, ruling)


@router.post("/a/{answer_id}/reject")
async def reject(
    *,
    request: Request,
    answer_id: Id,
    door: Door,
    work: Working,
    queue: InQueue,
    note: Annotated[str, Form(max_length=2000)] = "",
) -> Response:
    """Reject an answer; a repair is looked for, and where the model fails the rejection stands without one."""
    database = await work.look(lambda: door.database_of(answer_id))
    given = await work.run(database, lambda: door.reject(answer_id, note=note))
    return await _after(request, door, work, queue, given, stay=given.proposal is not None, trouble=given.trouble)


@router.post("/a/{answer_id}/correct")
async def correct(*, request: Request, answer_id: Id, door: Door, work: Working, queue: InQueue, sql: Sql) -> Response:
    """Bank a person's own SQL."""
    database = await work.look(lambda: door.database_of(answer_id))
    given = await work.run(database, lambda: door.correct(answer_id, sql))
    return await _after(request, door, work, queue, given)


@router.post("/a/{answer_id}/undo")
async def undo(*, request: Request, answer_id: Id, door: Door, work: Working, queue: InQueue) -> Response:
    """Take a verdict back."""
    ruling = await work.write(lambda: door.undo(answer_id))
    said = f"Undone. Card {ruling.card[:8]} is out of the bank." if ruling.card else "Undone."
    return await _after(request, door, work, queue, ruling, stay=True, undone=said)


async def _after(
    request: Request,
    door: Door,
    work: Work,
    queue: QueuePlace,
    ruling: Ruling,
    *,
    stay: bool = False,
    undone: str = "",
    trouble: str = "",
) -> Response:
    """Count a verdict, and show the answer as it stands now, or the queue where it was judged there."""
    work.count_verdict(ruling)
    if queue.place:
        shown = {"answer": ruling.id} if stay else {"judged": ruling.id}
        return RedirectResponse(queue_address(queue.address, place=str(queue.place), **shown), status_code=303)
    if "x-fragment" not in request.headers:
        return RedirectResponse(f"/a/{ruling.id}", status_code=303)
    view = await answer_view(work, door, ruling.id, scope=Scope.JUDGE, trouble=trouble)
    reply = fragment("_answer.html", view=view, fresh=True, undone=undone)
    reply.headers["X-Waiting"] = str(await work.read(lambda: len(waiting_in(door, ruling.database))))
    return reply
