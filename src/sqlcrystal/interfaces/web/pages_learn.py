"""Proposals of a query log, many at a time: a page of sentences, of which those that are left chosen are confirmed."""

from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Form, Query, Request, UploadFile
from starlette.responses import RedirectResponse, Response

from sqlcrystal.bank import Scope
from sqlcrystal.errors import UserError
from sqlcrystal.interfaces.server.access import Door
from sqlcrystal.interfaces.server.replies import Working
from sqlcrystal.interfaces.web.rendering import chosen_database, databases_of, page, waiting_in
from sqlcrystal.serving.learning import LearnReport, Upload

router = APIRouter(include_in_schema=False)
ON_A_PAGE = 20
"""Sentences that one key confirms: more than fit on a screen would not be read."""
TRIED_AT_ONCE = 10
"""Queries of an upload that are tried while the browser waits; the same upload goes on with the rest."""
Name = Annotated[str, Query(max_length=200)]
Chosen = Annotated[list[str] | None, Form(max_length=ON_A_PAGE)]


@router.get("/queue/log")
async def log_page(
    *,
    request: Request,
    door: Door,
    work: Working,
    database: Name = "",
    passed: Annotated[int, Query(ge=0, le=100_000)] = 0,
    confirmed: Annotated[int, Query(ge=0, le=100_000)] = 0,
    doubtful: Annotated[int, Query(ge=0, le=ON_A_PAGE)] = 0,
) -> Response:
    """List what waits of the log, the most used first; `passed` were left out on the pages before."""
    name = await work.read(lambda: chosen_database(request, door, database))
    return await _shown(request, door, work, name, passed=passed, confirmed=confirmed, doubtful=doubtful)


@router.post("/queue/log")
async def confirm_chosen(
    *,
    door: Door,
    work: Working,
    database: Annotated[str, Form(max_length=200)],
    answer: Chosen = None,
    listed: Annotated[int, Form(ge=0, le=ON_A_PAGE)] = 0,
    passed: Annotated[int, Form(ge=0, le=100_000)] = 0,
) -> Response:
    """Vouch for the sentences that are chosen, and go on behind those that were left out or that a card contradicts."""
    chosen = answer or []
    rulings = await work.write(lambda: door.confirm_all(chosen, leave_doubtful=True)) if chosen else []
    for ruling in rulings:
        work.count_verdict(ruling)
    there = {"database": database, "passed": passed + max(0, listed - len(rulings)), "confirmed": len(rulings)}
    if len(rulings) < len(chosen):
        there["doubtful"] = len(chosen) - len(rulings)
    return RedirectResponse("/queue/log?" + urlencode(there), status_code=303)


@router.post("/queue/learn")
async def learn(
    *, request: Request, door: Door, work: Working, database: Annotated[str, Form(max_length=200)], file: UploadFile
) -> Response:
    """Learn from an upload: so many queries now, and the rest when the same file is sent again."""
    name = await work.read(lambda: door.database(database, Scope.MANAGE))
    upload = Upload.of(file.filename or "", await file.read())
    if not upload.text.strip():
        raise UserError("file: choose a file that holds queries")
    report = await work.run(name, lambda: door.learn(upload, name, most=TRIED_AT_ONCE))
    return await _shown(request, door, work, name, report=report)


async def _shown(
    request: Request,
    door: Door,
    work: Working,
    name: str,
    *,
    passed: int = 0,
    confirmed: int = 0,
    doubtful: int = 0,
    report: LearnReport | None = None,
) -> Response:
    def read() -> dict[str, Any]:
        waiting = waiting_in(door, name)
        learned = [item for item in waiting if item.uses]
        return {
            "waiting_count": len(waiting),
            "total": len(learned),
            "passed": passed,
            "items": learned[passed : passed + ON_A_PAGE],
        }

    return page(
        request,
        "learn.html",
        database=name,
        databases=databases_of(door),
        may_learn=door.caller.allows(name, Scope.MANAGE),
        confirmed=confirmed,
        doubtful=doubtful,
        report=report,
        **await work.read(read),
    )
