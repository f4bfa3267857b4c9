"""Ask, and one answer at its own address."""

from collections.abc import Sequence
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Form, HTTPException, Query, Request
from starlette.responses import RedirectResponse, Response

from sqlcrystal.interfaces.server.access import Caller, Calling
from sqlcrystal.interfaces.server.api_answers import Id
from sqlcrystal.interfaces.server.reach import answer_for, database_for
from sqlcrystal.interfaces.server.replies import Working, ended
from sqlcrystal.interfaces.server.work import Work
from sqlcrystal.interfaces.web.rendering import (
    DATABASE_COOKIE,
    chosen_database,
    databases_of,
    fragment,
    page,
    waiting_in,
)
from sqlcrystal.interfaces.web.views import AnswerView
from sqlcrystal.protocols import Described
from sqlcrystal.types import CardStatus

router = APIRouter(include_in_schema=False)
Name = Annotated[str | None, Query(max_length=200)]
HISTORY = 12
MOST_TABLES = 60


@router.get("/")
async def ask_page(
    request: Request,
    caller: Calling,
    work: Working,
    database: Name = None,
    question: Annotated[str, Query(max_length=4000)] = "",
) -> Response:
    """A question box, some questions to begin with, and what was asked before."""
    values = await work.call(lambda: _ask_values(caller, work, chosen_database(request, work, caller, database)))
    reply = page(request, "ask.html", **values, view=None, asked=question)
    # A header holds ASCII; a database may be called anything.
    reply.set_cookie(DATABASE_COOKIE, quote(values["database"], safe=""), samesite="strict", httponly=True)
    return reply


@router.post("/ask")
async def ask_plainly(
    caller: Calling,
    work: Working,
    question: Annotated[str, Form(max_length=4000)],
    database: Annotated[str, Form(max_length=200)],
) -> Response:
    """Ask without the script: wait, then look at the answer."""
    name = await work.call(lambda: database_for(work.crystal, caller, database))
    asked = work.ask(question, database=name, person=caller.person)
    await ended(asked)
    return RedirectResponse(f"/a/{asked.answer.id if asked.answer else ''}", status_code=303)


@router.get("/a/{answer_id}")
async def answer_page(
    *,
    request: Request,
    answer_id: Id,
    caller: Calling,
    work: Working,
    page_number: Annotated[int, Query(alias="page", ge=1, le=10_000)] = 1,
    part: str = "",
    edit: bool = False,
) -> Response:
    """One answer at its own address; it is read, never asked again."""
    record = await work.call(lambda: answer_for(work.crystal, caller, answer_id))
    view = await work.call(lambda: AnswerView(work.crystal, caller, record, page=page_number))
    if part == "side":
        history = await work.call(lambda: _history(work, record.database))
        tables = await work.call(lambda: _tables(work, record.database))
        return fragment("_side.html", view=view, history=history, tables=tables)
    if "x-fragment" in request.headers:
        reply = fragment("_answer.html", view=view)
        reply.headers["X-Waiting"] = str(await work.call(lambda: len(waiting_in(work, caller, record.database))))
        return reply
    values = await work.call(lambda: _ask_values(caller, work, record.database))
    return page(request, "ask.html", **{**values, "database_action": "/"}, view=view, asked="", editing=edit)


# ── what the Ask page shows around an answer ─────────────────────────────────────────────────────────────────────────


def _ask_values(caller: Caller, work: Work, database: str) -> dict[str, Any]:
    if not database:
        raise HTTPException(404, "no database here, or none for you")
    cards = work.crystal.cards(database, status=CardStatus.ACTIVE)
    examples, source = _examples(work, database, [card.question.text for card in cards])
    return {
        "database": database,
        "databases": databases_of(work, caller),
        "card_count": len(cards),
        "examples": examples,
        "examples_from": source,
        "tables": _tables(work, database),
        "history": _history(work, database),
        "limit": f"{work.settings.answer_seconds:g}",
        "waiting_count": len(waiting_in(work, caller, database)),
    }


def _history(work: Work, database: str) -> list[dict[str, str]]:
    answers = work.crystal.store.answers
    return [
        {
            "id": record.id,
            "question": record.question,
            "at": record.at,
            "state": answers.verdict(record.id) or "waiting",
        }
        for record in work.crystal.history(database, limit=HISTORY)
        if not record.twin_of
    ]


def _tables(work: Work, database: str) -> list[tuple[str, str]]:
    """Each table with its columns, for who wonders what can be asked."""
    place = work.crystal.desk.site(database).database
    tables = place.tables() if isinstance(place, Described) else ()
    return [(table.name, ", ".join(column.name for column in table.columns)) for table in tables[:MOST_TABLES]]


def _examples(work: Work, database: str, vouched: Sequence[str]) -> tuple[list[str], str]:
    examples: Any = getattr(work.crystal, "recorded_questions", None)
    if examples is not None:
        return list(examples(database))[:4], "Questions in the recording, for instance:"
    if vouched:
        return list(dict.fromkeys(reversed(vouched)))[:3], "Questions somebody vouched for:"
    place = work.crystal.desk.site(database).database
    tables = place.tables() if isinstance(place, Described) else ()
    return [f"How many rows does {table.name} have?" for table in tables[:3]], "For instance:"
