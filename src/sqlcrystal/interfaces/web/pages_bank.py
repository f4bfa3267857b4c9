"""The bank: its cards searched, filtered and sorted, and many of them changed at once."""

import io
from collections.abc import Callable
from typing import Annotated, Any
from urllib.parse import parse_qsl, urlencode

from fastapi import APIRouter, Form, Query, Request
from starlette.responses import RedirectResponse, Response

from sqlcrystal.bank import Scope
from sqlcrystal.errors import ConfigError
from sqlcrystal.interfaces.server.access import Door
from sqlcrystal.interfaces.server.replies import Working
from sqlcrystal.interfaces.web.rendering import SIGNALS, chosen_database, databases_of, page, waiting_in
from sqlcrystal.serving.documents import CardDocument, document
from sqlcrystal.types import Card, CardStatus

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
