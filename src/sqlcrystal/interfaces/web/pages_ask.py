"""Ask, one answer, its verdicts, its rows as files, and the editor."""

import csv
import io
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Form, HTTPException, Query, Request
from starlette.responses import RedirectResponse, Response

from sqlcrystal.bank import AnswerRecord, Scope
from sqlcrystal.interfaces.server.access import Caller, Calling
from sqlcrystal.interfaces.server.api_answers import Id
from sqlcrystal.interfaces.server.chat import plain
from sqlcrystal.interfaces.server.reach import answer_for, database_for, proposal_for
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
from sqlcrystal.interfaces.web.views import AnswerView, TableView, run_again
from sqlcrystal.outgoing import csv_cell
from sqlcrystal.protocols import Described
from sqlcrystal.types import CardStatus, Failure, Rows

router = APIRouter(include_in_schema=False)
Sql = Annotated[str, Form(max_length=100_000)]
Name = Annotated[str | None, Query(max_length=200)]
HISTORY = 12


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
    reply.set_cookie(DATABASE_COOKIE, values["database"], samesite="strict", httponly=True)
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
) -> Response:
    """One answer at its own address; it is read, never asked again."""
    record = await work.call(lambda: answer_for(work.crystal, caller, answer_id))
    view = await work.call(lambda: AnswerView(work.crystal, caller, record, page=page_number))
    if part == "side":
        history = await work.call(lambda: _history(work, record.database))
        return fragment("_side.html", view=view, history=history)
    if "x-fragment" in request.headers:
        return fragment("_answer.html", view=view)
    values = await work.call(lambda: _ask_values(caller, work, record.database))
    return page(request, "ask.html", **{**values, "database_action": "/"}, view=view, asked="")


# ── verdicts ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@router.post("/a/{answer_id}/confirm")
async def confirm(
    request: Request,
    answer_id: Id,
    caller: Calling,
    work: Working,
    proposal: Annotated[str, Form(max_length=64)] = "",
) -> Response:
    """Vouch for an answer, or for what was proposed in its place."""

    def judge() -> AnswerRecord:
        record = answer_for(work.crystal, caller, answer_id, Scope.JUDGE)
        name = proposal_for(work.crystal, caller, proposal).id if proposal else record.id
        ruling = work.crystal.confirm(name, by=caller.person)
        return _counted(work, record, str(ruling.verdict), new=ruling.new)

    return await _after(request, caller, work, await work.write(judge))


@router.post("/a/{answer_id}/reject")
async def reject(
    request: Request, answer_id: Id, caller: Calling, work: Working, note: Annotated[str, Form(max_length=2000)] = ""
) -> Response:
    """Reject an answer; a repair is looked for, and where the model fails the rejection stands without one."""
    record = await work.call(lambda: answer_for(work.crystal, caller, answer_id, Scope.JUDGE))
    rejection = await work.long(record.database, lambda: _reject(work, record, caller, note))
    _counted(work, record, "rejected", new=rejection)
    return await _after(request, caller, work, record)


@router.post("/a/{answer_id}/correct")
async def correct(request: Request, answer_id: Id, caller: Calling, work: Working, sql: Sql) -> Response:
    """Bank a person's own SQL."""
    record = await work.call(lambda: answer_for(work.crystal, caller, answer_id, Scope.JUDGE))
    given = await work.long(record.database, lambda: work.crystal.correct(record.id, sql, by=caller.person))
    _counted(work, record, str(given.ruling.verdict), new=given.ruling.new)
    return await _after(request, caller, work, record)


@router.post("/a/{answer_id}/undo")
async def undo(request: Request, answer_id: Id, caller: Calling, work: Working) -> Response:
    """Take a verdict back."""

    def judge() -> AnswerRecord:
        record = answer_for(work.crystal, caller, answer_id, Scope.JUDGE)
        work.crystal.undo(record.id, by=caller.person)
        return _counted(work, record, "undone", new=True)

    return await _after(request, caller, work, await work.write(judge))


def _reject(work: Work, record: AnswerRecord, caller: Caller, note: str) -> bool:
    from sqlcrystal.errors import ModelError, RecordingMiss

    try:
        return work.crystal.reject(record.id, by=caller.person, note=note).ruling.new
    except (ModelError, RecordingMiss):
        return work.crystal.reject(record.id, by=caller.person, note=note, repair=False).ruling.new


def _counted(work: Work, record: AnswerRecord, verdict: str, *, new: bool) -> AnswerRecord:
    if new:
        work.metrics.verdicts.labels(record.database, verdict).inc()
    return record


async def _after(request: Request, caller: Caller, work: Work, record: AnswerRecord) -> Response:
    if "x-fragment" not in request.headers:
        return RedirectResponse(f"/a/{record.id}", status_code=303)
    view = await work.call(lambda: AnswerView(work.crystal, caller, record))
    return fragment("_answer.html", view=view, fresh=True)


# ── the editor, and rows as files ────────────────────────────────────────────────────────────────────────────────────


@router.post("/run")
async def run(
    caller: Calling,
    work: Working,
    sql: Sql,
    database: Annotated[str, Form(max_length=200)],
    into: Annotated[str, Form(max_length=40, pattern=r"^[a-z-]+$")] = "edited-rows",
) -> Response:
    """What the editor's SQL returns now."""
    name = await work.call(lambda: database_for(work.crystal, caller, database))
    execution = await work.long(name, lambda: work.crystal.run(sql, name))
    if isinstance(execution, Failure):
        return fragment("_run.html", into=into, error=f"{execution.kind}: {execution.message}", view=None)
    view = TableView(columns=execution.columns, rows=execution.rows[:100], row_count=len(execution.rows))
    return fragment("_run.html", into=into, error="", view=view)


@router.get("/a/{answer_id}/rows.{kind}")
async def rows_file(answer_id: Id, kind: str, caller: Calling, work: Working) -> Response:
    """All rows of an answer, read again, as csv, tsv, md or json."""
    if kind not in FORMATS:
        raise HTTPException(404, f"rows: no {kind!r}; choose from {', '.join(FORMATS)}")
    record = await work.call(lambda: answer_for(work.crystal, caller, answer_id))
    execution = await work.long(record.database, lambda: run_again(work.crystal, record))
    if isinstance(execution, Failure):
        raise HTTPException(422, f"the SQL no longer runs: {execution.message}")
    media, written = FORMATS[kind]
    headers = {"Content-Disposition": f'attachment; filename="answer-{record.id[:8]}.{kind}"'}
    return Response(written(execution), media_type=media, headers=headers)


def _separated(rows: Rows, delimiter: str) -> str:
    out = io.StringIO()
    writer = csv.writer(out, delimiter=delimiter, lineterminator="\n")
    writer.writerow([csv_cell(column) for column in rows.columns])
    writer.writerows([["" if cell is None else csv_cell(str(cell)) for cell in row] for row in rows.rows])
    return out.getvalue()


def _markdown(rows: Rows) -> str:
    lines = [rows.columns, ["---"] * len(rows.columns), *rows.rows]
    return "".join(
        "| " + " | ".join("NULL" if cell is None else plain(cell) for cell in line) + " |\n" for line in lines
    )


FORMATS: dict[str, tuple[str, Callable[[Rows], str | bytes]]] = {
    "csv": ("text/csv; charset=utf-8", lambda rows: _separated(rows, ",")),
    "tsv": ("text/plain; charset=utf-8", lambda rows: _separated(rows, "\t")),
    "md": ("text/plain; charset=utf-8", _markdown),
    "json": (
        "application/json",
        lambda rows: msgspec.json.encode({"columns": rows.columns, "rows": rows.rows}),
    ),
}


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


def _examples(work: Work, database: str, vouched: Sequence[str]) -> tuple[list[str], str]:
    examples: Any = getattr(work.crystal, "recorded_questions", None)
    if examples is not None:
        return list(examples(database))[:4], "Questions in the recording, for instance:"
    if vouched:
        return list(dict.fromkeys(reversed(vouched)))[:3], "Questions somebody vouched for:"
    place = work.crystal.desk.site(database).database
    tables = place.tables() if isinstance(place, Described) else ()
    return [f"How many rows does {table.name} have?" for table in tables[:3]], "For instance:"
