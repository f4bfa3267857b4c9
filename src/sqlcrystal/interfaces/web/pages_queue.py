"""The queue: what waits for a verdict, and one answer of it."""

from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from sqlcrystal.bank import Waiting
from sqlcrystal.interfaces.server.access import Calling
from sqlcrystal.interfaces.server.replies import Working
from sqlcrystal.interfaces.web.rendering import chosen_database, databases_of, page, waiting_in
from sqlcrystal.interfaces.web.views import AnswerView

router = APIRouter(include_in_schema=False)


@router.get("/queue")
async def queue_page(
    request: Request,
    caller: Calling,
    work: Working,
    database: Annotated[str, Query(max_length=200)] = "",
    answer: Annotated[str, Query(max_length=64)] = "",
) -> Response:
    """What waits for a verdict, beside the answer that is looked at."""
    name = chosen_database(request, work, caller, database)
    waiting = await work.call(lambda: waiting_in(work, caller, name))
    common: dict[str, Any] = {"database": name, "databases": databases_of(work, caller), "waiting_count": len(waiting)}
    if not waiting:
        return page(request, "queue.html", **common, waiting=[], place=0)
    at = next((place for place, item in enumerate(waiting) if item.answer.id == answer), 0)
    view = await work.call(lambda: AnswerView(work.crystal, caller, waiting[at].answer))

    def link(place: int) -> str:
        there = 0 <= place < len(waiting)
        return "/queue?" + urlencode({"database": name, "answer": waiting[place].answer.id}) if there else ""

    listed = [
        {
            "id": item.answer.id,
            "question": item.answer.question,
            "database": item.answer.database,
            "asked": item.asked,
            "why": _why(item),
        }
        for item in waiting
    ]
    return page(
        request,
        "queue.html",
        **common,
        waiting=listed,
        view=view,
        place=at + 1,
        why=_why(waiting[at]),
        previous=link(at - 1),
        queue_next=link(at + 1),
    )


def _why(item: Waiting) -> str:
    reasons = [f"asked {item.asked} times" if item.asked > 1 else "asked once"]
    if item.conflict:
        reasons.append("a near card disagrees")
    if item.spread:
        reasons.append("samples differ")
    return "; ".join(reasons)
