"""Revoking a verifier: first which cards and answers it touches, then the deed."""

from typing import Annotated, Any

from fastapi import APIRouter, Form, HTTPException, Query, Request
from starlette.responses import Response

from sqlcrystal.bank import Scope
from sqlcrystal.interfaces.server.access import Caller, Calling
from sqlcrystal.interfaces.server.reach import database_for
from sqlcrystal.interfaces.server.replies import Working
from sqlcrystal.interfaces.server.work import Work
from sqlcrystal.interfaces.web.pages_bank import NOTHING_CHOSEN, listed
from sqlcrystal.interfaces.web.rendering import databases_of, page, waiting_in
from sqlcrystal.types import CardStatus

router = APIRouter(include_in_schema=False)
MOMENT = r"^(\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}(:\d{2})?)?)?$"
Asked = Annotated[str, Query(max_length=200)]
Field = Annotated[str, Form(max_length=200)]
ANSWERS_SHOWN = 50


@router.get("/bank/revoke")
async def preview(
    *,
    request: Request,
    caller: Calling,
    work: Working,
    database: Asked = "",
    by: Asked = "",
    signal: Asked = "",
    since: Annotated[str, Query(max_length=19, pattern=MOMENT)] = "",
) -> Response:
    """Which cards would go, and which answers leaned on them; nothing is changed."""
    which = _which(by, signal, since)
    name = await work.call(lambda: database_for(work.crystal, caller, database or None, Scope.MANAGE))

    def read() -> dict[str, Any]:
        bank = work.crystal.store.bank
        found = bank.find(database=name, signal=signal or None, admitted_by=by or None, since=since or None)
        return {**_common(work, caller, name), **_leaned(work, [card.id for card in found]), "cards": found}

    values = await work.call(read)
    served = sum(card.status is not CardStatus.DISABLED for card in values["cards"])
    return page(request, "revoke.html", which=which, served=served, **values)


@router.post("/bank/revoke")
async def revoke(
    *,
    request: Request,
    caller: Calling,
    work: Working,
    database: Field,
    by: Field = "",
    signal: Field = "",
    since: Annotated[str, Form(max_length=19, pattern=MOMENT)] = "",
) -> Response:
    """Take out what one verifier admitted, and list the answers that had leaned on it."""
    _which(by, signal, since)
    name = await work.call(lambda: database_for(work.crystal, caller, database, Scope.MANAGE))

    def write() -> dict[str, Any]:
        gone = work.crystal.revoke(
            revoked_by=caller.person, database=name, by=by or None, signal=signal or None, since=since or None
        )
        told = {"cards": len(gone.cards), **_told(work, gone.leaned)}
        return {**_common(work, caller, name), **listed(work, name, NOTHING_CHOSEN), "revoked": told}

    return page(request, "bank.html", may_manage=True, **await work.write(write))


def _which(by: str, signal: str, since: str) -> dict[str, str]:
    which = {"by": by, "signal": signal, "since": since}
    if not any(which.values()):
        raise HTTPException(422, "revoke: give one or more of vouched by, signal, since")
    return which


def _common(work: Work, caller: Caller, database: str) -> dict[str, Any]:
    waiting = len(waiting_in(work, caller, database))
    return {"database": database, "databases": databases_of(work, caller), "waiting_count": waiting}


def _leaned(work: Work, ids: list[Any]) -> dict[str, Any]:
    return _told(work, work.crystal.store.answers.leaning_on(ids))


def _told(work: Work, records: Any) -> dict[str, Any]:
    shown = [record for record in records if not record.twin_of]
    verdict = work.crystal.store.answers.verdict
    told = [
        {"id": past.id, "question": past.question, "state": verdict(past.id) or "waiting"}
        for past in reversed(shown[-ANSWERS_SHOWN:])
    ]
    return {"leaned": told, "leaned_count": len(shown)}
