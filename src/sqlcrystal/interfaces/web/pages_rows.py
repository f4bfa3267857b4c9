"""Rows as files, and what the editor's SQL returns as it is written."""

import csv
import io
from collections.abc import Callable
from typing import Annotated

import msgspec
from fastapi import APIRouter, Form
from starlette.responses import Response

from sqlcrystal.bank import Scope
from sqlcrystal.errors import NotFound, UserError
from sqlcrystal.escaping import csv_cell
from sqlcrystal.interfaces.server.access import Door
from sqlcrystal.interfaces.server.api import Id
from sqlcrystal.interfaces.server.markdown import plain
from sqlcrystal.interfaces.server.replies import Working
from sqlcrystal.interfaces.web.rendering import fragment
from sqlcrystal.interfaces.web.tables import first_rows
from sqlcrystal.serving.documents import Result

router = APIRouter(include_in_schema=False)
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
