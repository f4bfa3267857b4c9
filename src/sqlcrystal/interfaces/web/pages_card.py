"""One card: what it changed, who vouched for it, what it did since, and what may be done to it."""

from typing import Annotated, Any

from fastapi import APIRouter, Form, HTTPException, Request
from starlette.responses import RedirectResponse, Response

from sqlcrystal.bank import Entry, Scope
from sqlcrystal.bank.listing import told_card
from sqlcrystal.interfaces.server.access import Caller, Calling
from sqlcrystal.interfaces.server.api_cards import CardName
from sqlcrystal.interfaces.server.reach import card_for
from sqlcrystal.interfaces.server.replies import Working
from sqlcrystal.interfaces.server.work import Work
from sqlcrystal.interfaces.web.differences import changed_lines, side_by_side
from sqlcrystal.interfaces.web.rendering import databases_of, fragment, page, waiting_in
from sqlcrystal.interfaces.web.text import pretty_sql
from sqlcrystal.types import Card, CardStatus, Failure
from sqlcrystal.writing.diff import diff

router = APIRouter(include_in_schema=False)
ANSWERS_SHOWN = 10


@router.get("/bank/{card_id}")
async def card_page(
    request: Request, card_id: CardName, caller: Calling, work: Working, edit: bool = False
) -> Response:
    """A card: what changed, who vouched, what it did, what the model sees of it."""
    entry = await work.call(lambda: card_for(work.crystal, caller, card_id))
    values = await work.call(lambda: _card_values(work, caller, entry))
    waiting = await work.call(lambda: len(waiting_in(work, caller, entry.card.database)))
    return page(
        request,
        "card.html",
        database=entry.card.database,
        databases=databases_of(work, caller),
        database_action="/bank",
        waiting_count=waiting,
        editing=edit,
        **values,
    )


@router.post("/bank/{card_id}/{action}")
async def change(
    *,
    request: Request,
    card_id: CardName,
    action: str,
    caller: Calling,
    work: Working,
    sql: Annotated[str, Form(max_length=100_000)] = "",
) -> Response:
    """Disable, enable, edit or delete a card."""

    def write() -> Entry | None:
        entry = card_for(work.crystal, caller, card_id, Scope.MANAGE)
        if action == "delete":
            work.crystal.delete(entry.card.id, by=caller.person)
            return None
        if action == "edit":
            _edit(work, caller, entry.card, sql)
        elif action in {"disable", "enable"}:
            (work.crystal.disable if action == "disable" else work.crystal.enable)([entry.card.id], by=caller.person)
        else:
            raise HTTPException(404, "a card can be disabled, enabled, edited or deleted")
        return work.crystal.card(entry.card.id)

    entry = await work.write(write)
    by_script = "x-fragment" in request.headers
    if entry is None:
        return fragment("_gone.html", card_id=card_id) if by_script else RedirectResponse("/bank", status_code=303)
    if not by_script:
        return RedirectResponse(f"/bank/{card_id}", status_code=303)
    return fragment("_card.html", fresh=True, **await work.call(lambda: _card_values(work, caller, entry)))


def _edit(work: Work, caller: Caller, card: Card, sql: str) -> None:
    execution = work.crystal.run(sql, card.database)
    if isinstance(execution, Failure):
        raise HTTPException(422, f"{execution.kind}: {execution.message}; nothing was changed")
    shown = card.sql.strip()
    text = card.text.replace(shown, sql.strip()) if shown and shown in card.text else None
    if text is None:
        raise HTTPException(
            422, "the card's text does not show its SQL as it stands; edit it with `sqlcrystal cards edit`"
        )
    work.crystal.edit(card.id, by=caller.person, sql=sql, text=text)


def _card_values(work: Work, caller: Caller, entry: Entry) -> dict[str, Any]:
    card, episode = entry.card, entry.episode
    database = work.crystal.workspace.open(card.database).database
    first = episode.attempt.sql if episode else None
    changed = bool(first) and first != card.sql
    before, after = pretty_sql(first or "", database.dialect), pretty_sql(card.sql, database.dialect)
    store = work.crystal.store
    effect = next((each for each in store.answers.effects(card.database) if each.card == card.id), None)
    leaning = store.answers.leaning_on([card.id])
    leaned = [
        {"id": past.id, "question": past.question, "state": store.answers.verdict(past.id) or "waiting"}
        for past in reversed(leaning[-ANSWERS_SHOWN:])
    ]
    return {
        "card": {**told_card(card), "text": card.text, "detail": card.admission.detail},
        "card_sql": after,
        "first_attempt": before if changed else "",
        "right_at_once": bool(first) and not changed,
        "lines": changed_lines(before, after) if changed else [],
        "pairs": side_by_side(before, after) if changed else [],
        "clauses": [each.clause for each in diff(first, card.sql, database.dialect)] if changed else [],
        "schema_words": "The schema is unchanged since."
        if card.fingerprint == database.fingerprint()
        else "The schema has changed since; the card is served only once a check has seen it run.",
        "unused_words": _unused_words(entry),
        "may_manage": caller.allows(card.database, Scope.MANAGE),
        "judged": effect.used if effect else 0,
        "right": effect.right if effect else 0,
        "wrong": effect.wrong if effect else 0,
        "leaned": leaned,
        "leaned_count": len(leaning),
        "changes": entry.history,
    }


def _unused_words(entry: Entry) -> str:
    """Why a card is not used, where it is not."""
    if entry.card.status is CardStatus.ACTIVE:
        return ""
    last = next((change for change in reversed(entry.history) if change.action == "status"), None)
    if entry.card.status is CardStatus.QUARANTINED:
        return f"Card {entry.card.id[:8]} no longer runs: {last.reason if last else 'unknown'}. It is not used."
    why = f": {last.reason}" if last and last.reason else ""
    return f"Disabled{f' by {last.by}' if last else ''}{why}. It is not used."
