"""The bank over HTTP: look, edit, disable, delete, revoke."""

from typing import Annotated

import msgspec
from fastapi import APIRouter, HTTPException, Path, Query
from starlette.responses import Response

from sqlcrystal.bank import Scope
from sqlcrystal.bank.listing import told_card
from sqlcrystal.interfaces.server.access import Calling
from sqlcrystal.interfaces.server.api_answers import Limit, Which
from sqlcrystal.interfaces.server.reach import card_for, database_for, told_past
from sqlcrystal.interfaces.server.replies import ERRORS, Working, json_reply
from sqlcrystal.interfaces.server.shapes import CardBody, CardShape, RevokeBody, RevokedShape, WholeCardShape
from sqlcrystal.types import CardStatus

router = APIRouter(prefix="/api", tags=["cards"], responses=ERRORS)
CardName = Annotated[str, Path(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9_-]+$")]


@router.get("/cards", response_model=list[CardShape])
async def cards(
    *,
    caller: Calling,
    work: Working,
    database: Which = None,
    status: CardStatus | None = None,
    near: Annotated[str | None, Query(max_length=2000, description="Served cards nearest to this text.")] = None,
    limit: Limit = 100,
    offset: Annotated[int, Query(ge=0, le=10_000_000)] = 0,
) -> Response:
    """Cards in the order they were banked, or those nearest to a text."""

    def read() -> list[dict[str, object]]:
        name = database_for(work.crystal, caller, database)
        if near is not None and near.strip():
            near_cards = [retrieved.card for retrieved in work.crystal.cards_search(near, name, limit=limit)]
            return [told_card(card) for card in near_cards if status in {None, card.status}]
        kept = work.crystal.cards(name, status=status)
        return [told_card(card) for card in kept[offset : offset + limit]]

    return json_reply(await work.call(read))


@router.get("/cards/{card_id}", response_model=WholeCardShape)
async def card(card_id: CardName, caller: Calling, work: Working) -> Response:
    """One card with its text, first attempt and history."""

    def read() -> dict[str, object]:
        entry = card_for(work.crystal, caller, card_id)
        attempt = entry.episode.attempt.sql if entry.episode else None
        history = msgspec.to_builtins(entry.history)
        return {**told_card(entry.card), "text": entry.card.text, "first_attempt": attempt, "history": history}

    return json_reply(await work.call(read))


@router.patch("/cards/{card_id}", response_model=CardShape)
async def change(card_id: CardName, body: CardBody, caller: Calling, work: Working) -> Response:
    """Disable or enable a card, or change its SQL or text; who changes the SQL vouches for it."""

    def write() -> dict[str, object]:
        entry = card_for(work.crystal, caller, card_id, Scope.MANAGE)
        if body.status is CardStatus.QUARANTINED:
            raise HTTPException(422, "status: choose active or disabled; quarantine is what a check does")
        kept = entry.card
        if body.sql is not None or body.text is not None:
            kept = work.crystal.edit(kept.id, by=caller.person, sql=body.sql, text=body.text, reason=body.reason)
        if body.status is not None:
            set_status = work.crystal.enable if body.status is CardStatus.ACTIVE else work.crystal.disable
            kept = set_status([kept.id], by=caller.person, reason=body.reason)[0]
        return told_card(kept)

    return json_reply(await work.write(write))


@router.delete("/cards/{card_id}", status_code=204)
async def delete(card_id: CardName, caller: Calling, work: Working) -> Response:
    """Take a card out for good; its history stays."""

    def write() -> None:
        work.crystal.delete(card_for(work.crystal, caller, card_id, Scope.MANAGE).card.id, by=caller.person)

    await work.write(write)
    return Response(status_code=204)


@router.post("/cards/revoke", response_model=RevokedShape)
async def revoke(body: RevokeBody, caller: Calling, work: Working) -> Response:
    """Undo a verifier on one database: its cards leave service, its verdicts fall."""
    if body.by is None and body.signal is None and body.since is None:
        raise HTTPException(422, "give one or more of by, signal, since")

    def write() -> dict[str, object]:
        name = database_for(work.crystal, caller, body.database, Scope.MANAGE)
        revocation = work.crystal.revoke(
            revoked_by=caller.person,
            database=name,
            by=body.by,
            signal=body.signal,
            since=body.since,
            reason=body.reason,
        )
        leaned = [told_past(past, work.crystal.store.answers.verdict(past.id)) for past in revocation.leaned]
        return {"revoked": [card.id for card in revocation.cards], "leaned": leaned}

    return json_reply(await work.write(write))
