"""The bank: search, one card with its provenance and effect, and what may be done to it."""

from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Form, HTTPException, Query, Request
from starlette.responses import RedirectResponse, Response

from sqlcrystal.bank import Entry, Scope
from sqlcrystal.bank.listing import told_card
from sqlcrystal.interfaces.server.access import Caller, Calling
from sqlcrystal.interfaces.server.api_cards import CardName
from sqlcrystal.interfaces.server.reach import card_for, database_for
from sqlcrystal.interfaces.server.replies import Working
from sqlcrystal.interfaces.server.work import Work
from sqlcrystal.interfaces.web.rendering import chosen_database, databases_of, fragment, page, waiting_in
from sqlcrystal.interfaces.web.text import changed_lines, pretty_sql
from sqlcrystal.types import Card, CardStatus, Failure
from sqlcrystal.writing.diff import diff

router = APIRouter(include_in_schema=False)
PAGE_CARDS = 50
Short = Annotated[str, Query(max_length=200)]
Field = Annotated[str, Form(max_length=200)]
SORTS = {"newest": "newest first", "harm": "most wrong first", "used": "most used first"}


@router.get("/bank")
async def bank_page(
    *,
    request: Request,
    caller: Calling,
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
    name = chosen_database(request, work, caller, database)
    chosen = {"search": search, "status": status, "signal": signal, "by": by, "sort": sort}
    values = await work.call(lambda: _listed(work, name, chosen, number))
    waiting = await work.call(lambda: len(waiting_in(work, caller, name)))
    return page(
        request,
        "bank.html",
        database=name,
        databases=databases_of(work, caller),
        may_manage=caller.allows(name, Scope.MANAGE),
        leaned=[],
        waiting_count=waiting,
        **values,
    )


def _listed(work: Work, database: str, chosen: dict[str, str], number: int) -> dict[str, Any]:
    kept = work.crystal.cards(database)
    effects = {effect.card: effect for effect in work.crystal.store.answers.effects(database)}
    fitting = [card for card in kept if _fits(card, chosen)]
    rows = [_row(card, effects.get(card.id)) for card in reversed(fitting)]
    order = {"harm": lambda row: (-row["wrong"], -row["used"]), "used": lambda row: -row["used"]}
    if chosen["sort"] in order:
        rows.sort(key=order[chosen["sort"]])
    pages = max(1, -(-len(rows) // PAGE_CARDS))
    number = min(number, pages)
    return {
        "total": len(rows),
        "cards": rows[(number - 1) * PAGE_CARDS : number * PAGE_CARDS],
        "search": chosen["search"],
        "filtered": any(chosen[key] for key in ("status", "signal", "by")),
        "filters": _filters(kept, chosen),
        "sorted_words": SORTS.get(chosen["sort"], SORTS["newest"]),
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
    return {**told_card(card), **counts}


def _filters(cards: list[Card], chosen: dict[str, str]) -> list[dict[str, Any]]:
    def some(values: set[str]) -> list[tuple[str, str]]:
        return [("", "any"), *((value, value) for value in sorted(values))]

    return [
        {"name": "status", "label": "Status", "chosen": chosen["status"], "choices": some(set(map(str, CardStatus)))},
        {
            "name": "signal",
            "label": "Signal",
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
    caller: Calling,
    work: Working,
    action: Field,
    database: Field,
    card: Annotated[list[str] | None, Form(max_length=1000)] = None,
) -> Response:
    """Disable or enable the chosen cards."""

    def write() -> None:
        ids = [card_for(work.crystal, caller, name, Scope.MANAGE).card.id for name in card or []]
        change = work.crystal.enable if action == "enable" else work.crystal.disable
        change(ids, by=caller.person)

    if action not in {"enable", "disable"}:
        raise HTTPException(422, "action: choose from disable, enable")
    await work.write(write)
    return RedirectResponse("/bank?" + urlencode({"database": database}), status_code=303)


@router.post("/bank/revoke")
async def revoke(
    *,
    request: Request,
    caller: Calling,
    work: Working,
    database: Field,
    by: Field = "",
    signal: Field = "",
    since: Annotated[str, Form(max_length=19, pattern=r"^(\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}(:\d{2})?)?)?$")] = "",
) -> Response:
    """Take out what one verifier admitted, and list the answers that had leaned on it."""
    if not (by or signal or since):
        raise HTTPException(422, "revoke: give one or more of vouched by, signal, since")
    name = await work.call(lambda: database_for(work.crystal, caller, database, Scope.MANAGE))
    revocation = await work.call(
        lambda: work.crystal.revoke(
            revoked_by=caller.person, database=name, by=by or None, signal=signal or None, since=since or None
        )
    )
    chosen = {"search": "", "status": "", "signal": "", "by": "", "sort": "newest"}
    values = await work.call(lambda: _listed(work, name, chosen, 1))
    seen = databases_of(work, caller)
    return page(
        request, "bank.html", database=name, databases=seen, may_manage=True, leaned=revocation.leaned, **values
    )


@router.get("/bank/export")
async def export(caller: Calling, work: Working, database: Short = "") -> Response:
    """Every card of a database with its provenance, as JSON lines."""
    import io

    from sqlcrystal.bank import export_jsonl

    name = await work.call(lambda: database_for(work.crystal, caller, database or None, Scope.MANAGE))

    def write() -> bytes:
        out = io.BytesIO()
        export_jsonl(work.crystal.store.bank, out, database=name)
        return out.getvalue()

    headers = {"Content-Disposition": 'attachment; filename="cards.jsonl"'}
    return Response(await work.call(write), media_type="application/x-ndjson", headers=headers)


# ── one card ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@router.get("/bank/{card_id}")
async def card_page(request: Request, card_id: CardName, caller: Calling, work: Working) -> Response:
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
    database = work.crystal.desk.site(card.database).database
    first = episode.attempt.sql if episode else None
    changed = bool(first) and first != card.sql
    before, after = pretty_sql(first or "", database.dialect), pretty_sql(card.sql, database.dialect)
    store = work.crystal.store
    effect = next((each for each in store.answers.effects(card.database) if each.card == card.id), None)
    leaned = [
        {"id": past.id, "question": past.question, "state": store.answers.verdict(past.id) or "waiting"}
        for past in store.answers.leaning_on([card.id])[-10:]
    ]
    return {
        "card": {**told_card(card), "text": card.text, "detail": card.admission.detail},
        "card_sql": after,
        "first_attempt": before if changed else "",
        "first_error": "",
        "right_at_once": bool(first) and not changed,
        "lines": changed_lines(before, after) if changed else [],
        "clauses": [each.clause for each in diff(first, card.sql, database.dialect)] if changed else [],
        "schema_words": "The schema is unchanged since."
        if card.fingerprint == database.fingerprint()
        else "The schema has changed since; the card is served only once a check has seen it run.",
        "may_manage": caller.allows(card.database, Scope.MANAGE),
        "used": effect.used if effect else 0,
        "right": effect.right if effect else 0,
        "wrong": effect.wrong if effect else 0,
        "leaned": leaned,
        "changes": entry.history,
    }
