"""The queue: what waits for a verdict, one answer of it, and on to the next once it is judged."""

from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from sqlcrystal.bank import Scope
from sqlcrystal.interfaces.server.access import Door
from sqlcrystal.interfaces.server.replies import Working
from sqlcrystal.interfaces.web.rendering import chosen_database, databases_of, page, proposed_terms, waiting_in
from sqlcrystal.interfaces.web.views import answer_view
from sqlcrystal.serving.documents import WaitingAnswer

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
