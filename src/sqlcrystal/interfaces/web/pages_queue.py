"""The queue: what waits for a verdict, one answer of it, and on to the next once it is judged."""

from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from sqlcrystal.bank import Scope, Waiting
from sqlcrystal.interfaces.server.access import Caller, Calling
from sqlcrystal.interfaces.server.reach import answer_for
from sqlcrystal.interfaces.server.replies import Working
from sqlcrystal.interfaces.server.work import Work
from sqlcrystal.interfaces.web.rendering import chosen_database, databases_of, page, waiting_in
from sqlcrystal.interfaces.web.views import AnswerView

router = APIRouter(include_in_schema=False)
Name = Annotated[str, Query(max_length=200)]
AnswerName = Annotated[str, Query(max_length=64)]
REASONS = {
    "": "every reason",
    "often": "asked more than once",
    "conflict": "a near card disagrees",
    "spread": "samples differ",
}
ORDERS = {"": "by use", "newest": "newest first", "oldest": "oldest first"}


@router.get("/queue")
async def queue_page(
    *,
    request: Request,
    caller: Calling,
    work: Working,
    database: Name = "",
    reason: Name = "",
    order: Name = "",
    answer: AnswerName = "",
    place: Annotated[int, Query(ge=0, le=100_000)] = 0,
    judged: AnswerName = "",
) -> Response:
    """What waits for a verdict, beside the answer that is looked at; `judged` is the one before."""
    name = chosen_database(request, work, caller, database)
    address = {key: value for key, value in (("database", name), ("reason", reason), ("order", order)) if value}

    def read() -> dict[str, Any]:
        every = waiting_in(work, caller, name)
        shown = sorted(_ordered([item for item in every if _fits(item, reason)], order), key=_failed)
        looked_at = _looked_at(work, caller, shown, answer, place)
        last = _view(work, caller, judged) if judged else None
        return {
            "total": len(every),
            "judged": last,
            **_list(shown, address),
            **looked_at,
            **_links(shown, address, looked_at),
        }

    values = await work.call(read)
    return page(
        request,
        "queue.html",
        database=name,
        databases=databases_of(work, caller),
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


def _looked_at(work: Work, caller: Caller, shown: list[Waiting], answer: str, place: int) -> dict[str, Any]:
    at = next((number for number, item in enumerate(shown) if item.answer.id == answer), None)
    if at is None and answer:  # judged meanwhile: it stays in view, and the queue goes on from its place
        return {"view": _view(work, caller, answer), "place": max(1, place), "why": ""}
    if not shown:
        return {"view": None, "place": 0, "why": ""}
    at = min(max(0, place - 1), len(shown) - 1) if at is None else at
    view = AnswerView(work.crystal, caller, shown[at].answer)
    return {"view": view, "place": at + 1, "why": _why(shown[at])}


def _view(work: Work, caller: Caller, answer: str) -> AnswerView:
    return AnswerView(work.crystal, caller, answer_for(work.crystal, caller, answer, Scope.JUDGE))


def _list(shown: list[Waiting], address: dict[str, str]) -> dict[str, Any]:
    return {
        "waiting": [
            {
                "id": item.answer.id,
                "question": item.answer.question,
                "asked": item.asked,
                "why": _why(item),
                "failed": _failed(item),
                "cards": len(item.answer.cards),
                "href": _link(address, item),
            }
            for item in shown
        ],
        "list_link": queue_address(address),
        "queue": urlencode(address),
    }


def _links(shown: list[Waiting], address: dict[str, str], looked_at: dict[str, Any]) -> dict[str, str]:
    waits = bool(looked_at["why"])
    after = looked_at["place"] if waits else looked_at["place"] - 1
    before = looked_at["place"] - 2 if waits else -1
    return {
        "previous": _link(address, shown[before]) if 0 <= before < len(shown) else "",
        "queue_next": _link(address, shown[after]) if 0 <= after < len(shown) else "",
    }


def _link(address: dict[str, str], item: Waiting) -> str:
    return queue_address(address, answer=item.answer.id)


def _failed(item: Waiting) -> bool:
    """Whether there is nothing to confirm: these stand apart, at the end."""
    return bool(item.answer.error)


def _fits(item: Waiting, reason: str) -> bool:
    return {"often": item.asked > 1, "conflict": item.conflict > 0, "spread": item.spread > 0}.get(reason, True)


def _ordered(items: list[Waiting], order: str) -> list[Waiting]:
    if order not in ORDERS or not order:
        return items
    return sorted(items, key=lambda item: item.answer.at, reverse=order == "newest")


def _why(item: Waiting) -> str:
    reasons = [f"asked {item.asked} times" if item.asked > 1 else "asked once"]
    if item.conflict:
        reasons.append("a near card disagrees")
    if item.spread:
        reasons.append("samples differ")
    return "; ".join(reasons)
