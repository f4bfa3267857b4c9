"""One card: what it changed, who vouched for it, what it did since, and what may be done to it."""

from collections.abc import Callable
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Form, Request
from starlette.responses import RedirectResponse, Response

from sqlcrystal.bank import Scope
from sqlcrystal.errors import NotFound
from sqlcrystal.interfaces.server.access import Door
from sqlcrystal.interfaces.server.api import Id
from sqlcrystal.interfaces.server.replies import Working
from sqlcrystal.interfaces.web.differences import changed_lines, side_by_side
from sqlcrystal.interfaces.web.rendering import databases_of, fragment, page, waiting_in
from sqlcrystal.interfaces.web.text import pretty_sql, schema_names
from sqlcrystal.serving.documents import CardDocument, document
from sqlcrystal.serving.stories import CardStory
from sqlcrystal.types import CardStatus
from sqlcrystal.writing.diff import diff

router = APIRouter(include_in_schema=False)
ANSWERS_SHOWN = 10


@router.get("/bank/{card_id}")
async def card_page(request: Request, card_id: Id, door: Door, work: Working, edit: bool = False) -> Response:
    """A card: what changed, who vouched, what it did, what the model sees of it."""
    story = await work.read(lambda: door.card_story(card_id))
    database = story.entry.card.database
    if story.entry.card.definition is not None:
        there = urlencode({"database": database})
        return RedirectResponse(f"/bank/definitions?{there}#{card_id}", status_code=303)
    waiting = await work.read(lambda: len(waiting_in(door, database)))
    return page(
        request,
        "card.html",
        database=database,
        databases=databases_of(door, Scope.ASK),
        database_action="/bank",
        waiting_count=waiting,
        editing=edit,
        **_card_values(story),
    )


@router.post("/bank/{card_id}/{action}")
async def change(
    *,
    request: Request,
    card_id: Id,
    action: str,
    door: Door,
    work: Working,
    sql: Annotated[str, Form(max_length=100_000)] = "",
) -> Response:
    """Disable, enable, edit or delete a card."""
    deeds: dict[str, Callable[[], object]] = {
        "disable": lambda: door.disable([card_id]),
        "enable": lambda: door.enable([card_id]),
        "delete": lambda: door.delete(card_id),
    }
    if action == "edit":
        database = (await work.look(lambda: door.card(card_id))).card.database
        await work.run(database, lambda: door.edit(card_id, sql=sql))
    elif action in deeds:
        await work.write(deeds[action])
    else:
        raise NotFound("a card can be disabled, enabled, edited or deleted")
    by_script = "x-fragment" in request.headers
    if action == "delete":
        return fragment("_gone.html", card_id=card_id) if by_script else RedirectResponse("/bank", status_code=303)
    if not by_script:
        return RedirectResponse(f"/bank/{card_id}", status_code=303)
    return fragment("_card.html", fresh=True, **_card_values(await work.read(lambda: door.card_story(card_id))))


def _card_values(story: CardStory) -> dict[str, Any]:
    card, episode, dialect = story.entry.card, story.entry.episode, story.dialect
    first = episode.attempt.sql if episode else None
    changed = bool(first) and first != card.sql
    before, after = pretty_sql(first or "", dialect), pretty_sql(card.sql, dialect)
    leaned = [
        {"id": past.id, "question": past.question, "state": past.verdict or "waiting"}
        for past in reversed(story.leaned[-ANSWERS_SHOWN:])
    ]
    return {
        "card": {**document(CardDocument.of(card)), "text": card.text, "detail": card.admission.detail},
        "card_sql": after,
        "names": schema_names(story.tables),
        "first_attempt": before if changed else "",
        "right_at_once": bool(first) and not changed,
        "lines": changed_lines(before, after) if changed else [],
        "pairs": side_by_side(before, after) if changed else [],
        "clauses": [each.clause for each in diff(first, card.sql, dialect)] if changed else [],
        "schema_words": "The schema is unchanged since."
        if story.same_schema
        else "The schema has changed since; the card is served only once a check has seen it run.",
        "unused_words": _unused_words(story),
        "may_manage": story.may_manage,
        "judged": story.effect.used if story.effect else 0,
        "right": story.effect.right if story.effect else 0,
        "wrong": story.effect.wrong if story.effect else 0,
        "leaned": leaned,
        "leaned_count": len(story.leaned),
        "changes": story.entry.history,
    }


def _unused_words(story: CardStory) -> str:
    """Say why a card is not used, where it is not."""
    entry = story.entry
    if entry.card.status is CardStatus.ACTIVE:
        return ""
    last = next((change for change in reversed(entry.history) if change.action == "status"), None)
    if entry.card.status is CardStatus.QUARANTINED:
        return f"Card {entry.card.id[:8]} no longer runs: {last.reason if last else 'unknown'}. It is not used."
    why = f": {last.reason}" if last and last.reason else ""
    return f"Disabled{f' by {last.by}' if last else ''}{why}. It is not used."
