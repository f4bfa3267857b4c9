"""The bank: its cards searched, filtered, sorted and changed; one card with its story; and revoking a verifier."""

import io
from collections.abc import Callable
from typing import Annotated, Any
from urllib.parse import parse_qsl, urlencode

from fastapi import APIRouter, Form, Query, Request
from starlette.responses import RedirectResponse, Response

from sqlcrystal.bank import Scope
from sqlcrystal.errors import ConfigError, NotFound
from sqlcrystal.interfaces.server.access import Door
from sqlcrystal.interfaces.server.api import Id
from sqlcrystal.interfaces.server.replies import Working
from sqlcrystal.interfaces.web.beside import changed_lines, side_by_side
from sqlcrystal.interfaces.web.rendering import SIGNALS, chosen_database, databases_of, fragment, page, waiting_in
from sqlcrystal.interfaces.web.text import pretty_sql, schema_names
from sqlcrystal.serving.documents import CardDocument, Revoked, document
from sqlcrystal.serving.stories import CardStory
from sqlcrystal.types import Card, CardStatus
from sqlcrystal.writing.diff import diff

router = APIRouter(include_in_schema=False)
PAGE_CARDS = 50
Short = Annotated[str, Query(max_length=200)]
Field = Annotated[str, Form(max_length=200)]
NOTHING_CHOSEN = {"search": "", "status": "", "signal": "", "by": "", "sort": "newest"}
SORTS = {
    "newest": "newest first",
    "harm": "most wrong first",
    "right": "most right first",
    "used": "most used first",
    "question": "by question",
    "how": "by how they were checked",
    "status": "by status",
}
ORDERS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "harm": lambda row: (-row["wrong"], -row["used"]),
    "right": lambda row: (-row["right"], -row["used"]),
    "used": lambda row: -row["used"],
    "question": lambda row: row["question"].casefold(),
    "how": lambda row: SIGNALS.get(row["signal"], row["signal"]),
    "status": lambda row: row["status"],
}
"""Sorting keeps the newest first among equals."""


@router.get("/bank")
async def bank_page(
    *,
    request: Request,
    door: Door,
    work: Working,
    database: Short = "",
    search: Annotated[str, Query(max_length=500)] = "",
    status: Short = "",
    signal: Short = "",
    by: Short = "",
    sort: Short = "newest",
    number: Annotated[int, Query(alias="page", ge=1, le=100_000)] = 1,
) -> Response:
    """Cards of one database, searched, filtered and sorted by what is in the address."""
    name = await work.read(lambda: chosen_database(request, door, database, Scope.ASK))
    chosen = {"search": search, "status": status, "signal": signal, "by": by, "sort": sort}
    values = await work.read(lambda: listed(door, name, chosen, number))
    waiting = await work.read(lambda: len(waiting_in(door, name)))
    return page(
        request,
        "bank.html",
        database=name,
        databases=databases_of(door, Scope.ASK),
        may_manage=door.caller.allows(name, Scope.MANAGE),
        revoked=None,
        waiting_count=waiting,
        **values,
    )


def listed(door: Door, database: str, chosen: dict[str, str], number: int = 1) -> dict[str, Any]:
    """Gather what the list shows of a database's cards."""
    kept = door.cards(database)
    effects = {effect.card: effect for effect in door.card_effects(database)}
    fitting = [card for card in kept if _fits(card, chosen)]
    rows = [_row(card, effects.get(card.id)) for card in reversed(fitting)]
    if chosen["sort"] in ORDERS:
        rows.sort(key=ORDERS[chosen["sort"]])
    pages = max(1, -(-len(rows) // PAGE_CARDS))
    number = min(number, pages)
    return {
        "total": len(rows),
        "defined": len(door.definitions(database, status=CardStatus.ACTIVE)),
        "cards": rows[(number - 1) * PAGE_CARDS : number * PAGE_CARDS],
        "search": chosen["search"],
        "filtered": any(chosen[key] for key in ("status", "signal", "by")),
        "filters": _filters(kept, chosen),
        "sorted_by": chosen["sort"] if chosen["sort"] in SORTS else "newest",
        "sorted_words": SORTS.get(chosen["sort"], SORTS["newest"]),
        "sort_link": lambda by: "/bank?" + urlencode({**chosen, "database": database, "sort": by}),
        "address": urlencode({**{key: value for key, value in chosen.items() if value}, "page": number}),
        "page": number,
        "pages": pages,
        "page_link": lambda at: "/bank?" + urlencode({**chosen, "database": database, "page": at}),
    }


def _fits(card: Card, chosen: dict[str, str]) -> bool:
    words = chosen["search"].casefold().split()
    text = f"{card.id} {card.question.text} {card.sql}".casefold()
    return (
        all(word in text for word in words)
        and chosen["status"] in {"", card.status}
        and chosen["signal"] in {"", card.admission.signal}
        and chosen["by"] in {"", card.admission.by}
    )


def _row(card: Card, effect: Any) -> dict[str, Any]:
    counts = {field: getattr(effect, field) if effect else 0 for field in ("used", "right", "wrong")}
    return {**document(CardDocument.of(card)), **counts}


def _filters(cards: list[Card], chosen: dict[str, str]) -> list[dict[str, Any]]:
    def some(values: set[str]) -> list[tuple[str, str]]:
        return [("", "any"), *((value, SIGNALS.get(value, value)) for value in sorted(values))]

    return [
        {"name": "status", "label": "Status", "chosen": chosen["status"], "choices": some(set(map(str, CardStatus)))},
        {
            "name": "signal",
            "label": "How",
            "chosen": chosen["signal"],
            "choices": some({card.admission.signal for card in cards}),
        },
        {
            "name": "by",
            "label": "Vouched by",
            "chosen": chosen["by"],
            "choices": some({card.admission.by for card in cards}),
        },
        {"name": "sort", "label": "Sort", "chosen": chosen["sort"], "choices": list(SORTS.items())},
    ]


@router.post("/bank")
async def change_many(
    *,
    door: Door,
    work: Working,
    action: Field,
    database: Field,
    card: Annotated[list[str] | None, Form(max_length=1000)] = None,
    back: Annotated[str, Form(max_length=2000)] = "",
) -> Response:
    """Disable or enable the chosen cards, and come back to the same list."""
    deeds = {"disable": door.disable, "enable": door.enable}
    if action not in deeds:
        raise ConfigError.unknown("action", action, deeds)
    await work.write(lambda: deeds[action](card or []))
    known = {key: value for key, value in parse_qsl(back) if key in {*NOTHING_CHOSEN, "page"}}
    return RedirectResponse("/bank?" + urlencode({**known, "database": database}), status_code=303)


@router.get("/bank/export")
async def export(door: Door, work: Working, database: Short = "") -> Response:
    """Give every card of a database with its provenance, as JSON lines."""

    def write() -> bytes:
        out = io.BytesIO()
        door.export_cards(out, database or None)
        return out.getvalue()

    headers = {"Content-Disposition": 'attachment; filename="cards.jsonl"'}
    return Response(await work.read(write), media_type="application/x-ndjson", headers=headers)


MOMENT = r"^(\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}(:\d{2})?)?)?$"
TOUCHED_SHOWN = 50


@router.get("/bank/revoke")
async def preview(
    *,
    request: Request,
    door: Door,
    work: Working,
    database: Short = "",
    by: Short = "",
    signal: Short = "",
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
        for past in reversed(found.leaned[-TOUCHED_SHOWN:])
    ]
    return {"leaned": told, "leaned_count": len(found.leaned)}


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
