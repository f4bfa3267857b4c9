"""The queue of what waits for a verdict, one answer of it, and verdicts by plain forms, there or where it stands."""

from typing import Annotated, Any, NamedTuple
from urllib.parse import parse_qsl, urlencode

from fastapi import APIRouter, Depends, Form, Query, Request
from starlette.responses import RedirectResponse, Response

from sqlcrystal.bank import Scope
from sqlcrystal.errors import Contradicted
from sqlcrystal.interfaces.server.access import Door
from sqlcrystal.interfaces.server.api import Id
from sqlcrystal.interfaces.server.replies import Working
from sqlcrystal.interfaces.server.work import Work
from sqlcrystal.interfaces.web.pages_ask import ask_values
from sqlcrystal.interfaces.web.rendering import (
    chosen_database,
    databases_of,
    fragment,
    page,
    proposed_terms,
    waiting_in,
)
from sqlcrystal.interfaces.web.views import answer_view
from sqlcrystal.serving.documents import Ruling, WaitingAnswer

router = APIRouter(include_in_schema=False)
Name = Annotated[str, Query(max_length=200)]
AnswerName = Annotated[str, Query(max_length=64)]
REASONS = {
    "": "every reason",
    "audit": "chosen by chance",
    "often": "asked more than once",
    "conflict": "a near card disagrees",
    "spread": "samples differ",
    "log": "from the query log",
}
ORDERS = {"": "by use", "newest": "newest first", "oldest": "oldest first"}


@router.get("/queue")
async def queue_page(
    *,
    request: Request,
    door: Door,
    work: Working,
    database: Name = "",
    reason: Name = "",
    order: Name = "",
    answer: AnswerName = "",
    place: Annotated[int, Query(ge=0, le=100_000)] = 0,
    judged: AnswerName = "",
) -> Response:
    """Tell what waits for a verdict, beside the answer that is looked at; `judged` is the one before."""
    name = await work.read(lambda: chosen_database(request, door, database))
    address = {key: value for key, value in (("database", name), ("reason", reason), ("order", order)) if value}

    def read() -> dict[str, Any]:
        every = waiting_in(door, name)
        shown = sorted(_ordered([item for item in every if _fits(item, reason)], order), key=_last_of_all)
        looked_at = _looked_at(shown, answer, place)
        return {
            "total": len(every),
            "chosen_by_chance": sum(item.audit for item in every),
            "from_log": sum(item.uses > 0 for item in every),
            "proposed_terms": proposed_terms(door, name),
            **_list(shown, address),
            **looked_at,
            **_links(shown, address, looked_at),
        }

    values = await work.read(read)
    for key, name_of in (("view", values.pop("shown")), ("judged", judged)):
        values[key] = await answer_view(work, door, name_of, scope=Scope.JUDGE) if name_of else None
    return page(
        request,
        "queue.html",
        database=name,
        databases=databases_of(door),
        waiting_count=values["total"],
        in_queue=True,
        chosen=bool(answer or place),
        reason=reason,
        order=order,
        reasons=REASONS.items(),
        orders=ORDERS.items(),
        **values,
    )


def queue_address(known: dict[str, str], **more: str) -> str:
    """The queue with the database, reason and order that were looked at, and no more of what a form said."""
    kept = {key: known[key] for key in ("database", "reason", "order") if known.get(key)}
    return "/queue?" + urlencode({**kept, **more})


def _looked_at(shown: list[WaitingAnswer], answer: str, place: int) -> dict[str, Any]:
    at = next((number for number, item in enumerate(shown) if item.id == answer), None)
    if at is None and answer:  # judged meanwhile: it stays in view, and the queue goes on from its place
        return {"shown": answer, "place": max(1, place), "why": ""}
    if not shown:
        return {"shown": "", "place": 0, "why": ""}
    at = min(max(0, place - 1), len(shown) - 1) if at is None else at
    return {"shown": shown[at].id, "place": at + 1, "why": _why(shown[at])}


def _list(shown: list[WaitingAnswer], address: dict[str, str]) -> dict[str, Any]:
    return {
        "waiting": [
            {
                "id": item.id,
                "question": item.question,
                "asked": item.asked,
                "why": _why(item),
                "failed": _failed(item),
                "cards": item.cards,
                "href": _link(address, item),
            }
            for item in shown
        ],
        "list_link": queue_address(address),
        "queue": urlencode(address),
    }


def _links(shown: list[WaitingAnswer], address: dict[str, str], looked_at: dict[str, Any]) -> dict[str, str]:
    waits = bool(looked_at["why"])
    after = looked_at["place"] if waits else looked_at["place"] - 1
    before = looked_at["place"] - 2 if waits else -1
    return {
        "previous": _link(address, shown[before]) if 0 <= before < len(shown) else "",
        "queue_next": _link(address, shown[after]) if 0 <= after < len(shown) else "",
    }


def _link(address: dict[str, str], item: WaitingAnswer) -> str:
    return queue_address(address, answer=item.id)


def _failed(item: WaitingAnswer) -> bool:
    """Tell whether there is nothing to confirm: these stand apart, at the end."""
    return bool(item.error)


def _last_of_all(item: WaitingAnswer) -> tuple[bool, bool]:
    """Put what chance chose first in any order, and what did not run behind the rest."""
    return _failed(item), not item.audit


def _fits(item: WaitingAnswer, reason: str) -> bool:
    """Tell whether an answer waits for that reason; what chance chose is hidden by none."""
    fits = {
        "audit": False,
        "often": item.asked > 1,
        "conflict": item.conflict > 0,
        "spread": item.spread > 0,
        "log": item.uses > 0,
    }
    return item.audit or fits.get(reason, True)


def _ordered(items: list[WaitingAnswer], order: str) -> list[WaitingAnswer]:
    if order not in ORDERS or not order:
        return items
    return sorted(items, key=lambda item: item.at, reverse=order == "newest")


def _why(item: WaitingAnswer) -> str:
    if item.uses:
        return f"from the query log, ran {item.uses:,} time{'' if item.uses == 1 else 's'}"
    reasons = ["chosen by chance: it must be judged"] if item.audit else []
    reasons.append(f"asked {item.asked} times" if item.asked > 1 else "asked once")
    if item.conflict:
        reasons.append("a near card disagrees")
    if item.spread:
        reasons.append("samples differ")
    return "; ".join(reasons)


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
