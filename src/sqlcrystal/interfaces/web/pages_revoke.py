"""Revoking a verifier: first which cards and answers it touches, then the deed."""

from typing import Annotated, Any

from fastapi import APIRouter, Form, Query, Request
from starlette.responses import Response

from sqlcrystal.bank import Scope
from sqlcrystal.interfaces.server.access import Door
from sqlcrystal.interfaces.server.replies import Working
from sqlcrystal.interfaces.web.pages_bank import NOTHING_CHOSEN, listed
from sqlcrystal.interfaces.web.rendering import databases_of, page, waiting_in
from sqlcrystal.serving.documents import Revoked
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
    door: Door,
    work: Working,
    database: Asked = "",
    by: Asked = "",
    signal: Asked = "",
    since: Annotated[str, Query(max_length=19, pattern=MOMENT)] = "",
) -> Response:
    """Say which cards would go, and which answers leaned on them; nothing is changed."""
    which = {"by": by, "signal": signal, "since": since}

    def read() -> dict[str, Any]:
        name = door.database(database or None, Scope.MANAGE)
        found = door.revoke(database=name, preview=True, **_given(which))
        cards = [card for card in (*door.cards(name), *door.definitions(name)) if card.id in set(found.revoked)]
        return {**_common(door, name), **_leaned(found), "cards": cards}

    values = await work.read(read)
    served = sum(card.status is not CardStatus.DISABLED for card in values["cards"])
    return page(request, "revoke.html", which=which, served=served, **values)


@router.post("/bank/revoke")
async def revoke(
    *,
    request: Request,
    door: Door,
    work: Working,
    database: Field,
    by: Field = "",
    signal: Field = "",
    since: Annotated[str, Form(max_length=19, pattern=MOMENT)] = "",
) -> Response:
    """Take out what one verifier admitted, and list the answers that had leaned on it."""
    which = {"by": by, "signal": signal, "since": since}

    def write() -> dict[str, Any]:
        gone = door.revoke(database=database, **_given(which))
        told = {"cards": len(gone.revoked), **_leaned(gone)}
        return {**_common(door, database), **listed(door, database, NOTHING_CHOSEN), "revoked": told}

    return page(request, "bank.html", may_manage=True, **await work.write(write))


def _given(which: dict[str, str]) -> dict[str, Any]:
    """Leave out the fields of the form that were left empty."""
    return {name: value for name, value in which.items() if value}


def _common(door: Door, database: str) -> dict[str, Any]:
    waiting = len(waiting_in(door, database))
    return {"database": database, "databases": databases_of(door, Scope.ASK), "waiting_count": waiting}


def _leaned(found: Revoked) -> dict[str, Any]:
    told = [
        {"id": past.id, "question": past.question, "state": past.verdict or "waiting"}
        for past in reversed(found.leaned[-ANSWERS_SHOWN:])
    ]
    return {"leaned": told, "leaned_count": len(found.leaned)}
