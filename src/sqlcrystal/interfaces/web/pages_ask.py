"""Ask; one answer at its own address; its rows as files; and what the editor's SQL returns as it is written."""

import csv
import io
from collections.abc import Callable, Sequence
from typing import Annotated, Any
from urllib.parse import quote

import msgspec
from fastapi import APIRouter, Form, Query, Request
from starlette.responses import RedirectResponse, Response

from sqlcrystal.bank import Scope
from sqlcrystal.errors import NotFound, UserError
from sqlcrystal.escaping import csv_cell
from sqlcrystal.interfaces.server.access import Door
from sqlcrystal.interfaces.server.api import Id
from sqlcrystal.interfaces.server.conversations import plain
from sqlcrystal.interfaces.server.replies import Working
from sqlcrystal.interfaces.server.work import Work
from sqlcrystal.interfaces.web.rendering import (
    DATABASE_COOKIE,
    chosen_database,
    databases_of,
    fragment,
    page,
    waiting_in,
)
from sqlcrystal.interfaces.web.tables import first_rows
from sqlcrystal.interfaces.web.views import answer_view
from sqlcrystal.serving.documents import Result
from sqlcrystal.types import CardStatus

router = APIRouter(include_in_schema=False)
Name = Annotated[str | None, Query(max_length=200)]
HISTORY = 12
MOST_TABLES = 60


@router.get("/")
async def ask_page(
    request: Request,
    door: Door,
    work: Working,
    database: Name = None,
    question: Annotated[str, Query(max_length=4000)] = "",
) -> Response:
    """A question box, some questions to begin with, and what was asked before."""
    if not door.caller.may_anywhere(Scope.ASK) and door.caller.may_anywhere(Scope.JUDGE):
        return RedirectResponse("/queue", status_code=303)
    name = await work.read(lambda: chosen_database(request, door, database, Scope.ASK))
    values = await work.read(lambda: ask_values(door, work, name))
    reply = page(request, "ask.html", **values, view=None, asked=question)
    # A header holds ASCII; a database may be called anything.
    reply.set_cookie(DATABASE_COOKIE, quote(values["database"], safe=""), samesite="strict", httponly=True)
    return reply


@router.post("/ask")
async def ask_plainly(
    door: Door,
    work: Working,
    question: Annotated[str, Form(max_length=4000)],
    database: Annotated[str, Form(max_length=200)],
    follow: Annotated[str, Form(max_length=64)] = "",
) -> Response:
    """Ask without the script: wait, then look at the answer."""
    name = await work.look(lambda: door.database(database))
    answer = await work.ask(door, question, database=name, follow=follow, watched=False).ended()
    return RedirectResponse(f"/a/{answer.id}", status_code=303)


@router.get("/a/{answer_id}")
async def answer_page(
    *,
    request: Request,
    answer_id: Id,
    door: Door,
    work: Working,
    page_number: Annotated[int, Query(alias="page", ge=1, le=10_000)] = 1,
    part: str = "",
    edit: bool = False,
    old: Annotated[str, Query(max_length=1000)] = "",
    new: Annotated[str, Query(max_length=1000)] = "",
) -> Response:
    """One answer at its own address; it is read, never asked again."""
    view = await answer_view(work, door, answer_id, page=page_number)
    if part == "side":
        history = await work.read(lambda: _history(door, view.database))
        tables = await work.read(lambda: _tables(door, view.database))
        return fragment("_side.html", view=view, history=history, tables=tables)
    if "x-fragment" in request.headers:
        reply = fragment("_answer.html", view=view)
        reply.headers["X-Waiting"] = str(await work.read(lambda: len(waiting_in(door, view.database))))
        return reply
    if edit and old:
        view.put(old, new)
    values = await work.read(lambda: ask_values(door, work, view.database))
    return page(request, "ask.html", **{**values, "database_action": "/"}, view=view, asked="", editing=edit)


# ── what the Ask page shows around an answer ─────────────────────────────────────────────────────────────────────────


def ask_values(door: Door, work: Work, database: str) -> dict[str, Any]:
    """Gather what stands around an answer."""
    cards = door.cards(database, status=CardStatus.ACTIVE)
    examples, source = _examples(door, database, [card.question.text for card in cards])
    return {
        "database": database,
        "databases": databases_of(door, Scope.ASK),
        "card_count": len(cards),
        "examples": examples,
        "examples_from": source,
        "tables": _tables(door, database),
        "history": _history(door, database),
        "limit": f"{work.settings.answer_seconds:g}",
        "waiting_count": len(waiting_in(door, database)),
    }


def _history(door: Door, database: str) -> list[dict[str, str]]:
    return [
        {"id": past.id, "question": past.question, "at": past.at, "state": past.verdict or "waiting"}
        for past in door.history(database, limit=HISTORY)
    ]


def _tables(door: Door, database: str) -> list[tuple[str, str]]:
    """List each table with its columns, for those who wonder what can be asked."""
    tables = door.tables(database)[:MOST_TABLES]
    return [(table.name, ", ".join(column.name for column in table.columns)) for table in tables]


def _examples(door: Door, database: str, vouched: Sequence[str]) -> tuple[list[str], str]:
    examples: Any = getattr(door, "recorded_questions", None)
    if examples is not None:
        return list(examples(database))[:4], "Questions in the recording, for instance:"
    if vouched:
        return list(dict.fromkeys(reversed(vouched)))[:3], "Questions somebody vouched for:"
    return [f"How many rows does {table.name} have?" for table in door.tables(database)[:3]], "For instance:"


Sql = Annotated[str, Form(max_length=100_000)]


@router.post("/run")
async def run(
    door: Door,
    work: Working,
    sql: Sql,
    database: Annotated[str, Form(max_length=200)],
    into: Annotated[str, Form(max_length=40, pattern=r"^[a-z-]+$")] = "edited-rows",
) -> Response:
    """Tell what the editor's SQL returns now."""
    name = await work.look(lambda: door.database(database))
    result = await work.run(name, lambda: door.run(sql, name))
    return fragment("_run.html", into=into, error=result.error, words=result.words, view=first_rows(result))


@router.get("/a/{answer_id}/rows.{kind}")
async def rows_file(answer_id: Id, kind: str, door: Door, work: Working) -> Response:
    """All rows of an answer, read again, as csv, tsv, md or json."""
    if kind not in FORMATS:
        raise NotFound(f"rows: no {kind!r}; choose from {', '.join(FORMATS)}")
    database = await work.look(lambda: door.database_of(answer_id, Scope.ASK))
    result = await work.run(database, lambda: door.answer_again(answer_id))
    if result.error:
        raise UserError(f"the SQL no longer runs: {result.error}")
    media, written = FORMATS[kind]
    headers = {"Content-Disposition": f'attachment; filename="answer-{answer_id[:8]}.{kind}"'}
    return Response(written(result), media_type=media, headers=headers)


def _separated(rows: Result, delimiter: str) -> str:
    out = io.StringIO()
    writer = csv.writer(out, delimiter=delimiter, lineterminator="\n")
    writer.writerow([csv_cell(column) for column in rows.columns])
    writer.writerows([["" if cell is None else csv_cell(str(cell)) for cell in row] for row in rows.rows])
    return out.getvalue()


def _markdown(rows: Result) -> str:
    lines = [rows.columns, ["---"] * len(rows.columns), *rows.rows]
    return "".join(
        "| " + " | ".join("NULL" if cell is None else plain(cell) for cell in line) + " |\n" for line in lines
    )


FORMATS: dict[str, tuple[str, Callable[[Result], str | bytes]]] = {
    "csv": ("text/csv; charset=utf-8", lambda rows: _separated(rows, ",")),
    "tsv": ("text/plain; charset=utf-8", lambda rows: _separated(rows, "\t")),
    "md": ("text/plain; charset=utf-8", _markdown),
    "json": (
        "application/json",
        lambda rows: msgspec.json.encode({"columns": rows.columns, "rows": rows.rows}),
    ),
}
