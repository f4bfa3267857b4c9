"""Rows as files, and what the editor's SQL returns as it is written."""

import csv
import io
from collections.abc import Callable
from typing import Annotated

import msgspec
from fastapi import APIRouter, Form, HTTPException
from starlette.responses import Response

from sqlcrystal.interfaces.server.access import Calling
from sqlcrystal.interfaces.server.api_answers import Id
from sqlcrystal.interfaces.server.chat import plain
from sqlcrystal.interfaces.server.reach import answer_for, database_for
from sqlcrystal.interfaces.server.replies import Working
from sqlcrystal.interfaces.web.rendering import fragment
from sqlcrystal.interfaces.web.tables import PAGE_ROWS, TableView, as_it_stands, run_again
from sqlcrystal.outgoing import csv_cell
from sqlcrystal.types import Failure, Rows

router = APIRouter(include_in_schema=False)
Sql = Annotated[str, Form(max_length=100_000)]


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
    view = TableView(columns=execution.columns, rows=execution.rows[:PAGE_ROWS], row_count=len(execution.rows))
    return fragment("_run.html", into=into, error="", view=view)


@router.get("/a/{answer_id}/rows.{kind}")
async def rows_file(answer_id: Id, kind: str, caller: Calling, work: Working) -> Response:
    """All rows of an answer, read again, as csv, tsv, md or json."""
    if kind not in FORMATS:
        raise HTTPException(404, f"rows: no {kind!r}; choose from {', '.join(FORMATS)}")
    record = await work.call(lambda: as_it_stands(work.crystal, answer_for(work.crystal, caller, answer_id)))
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
