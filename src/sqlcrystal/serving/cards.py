"""Changes to cards: edits, service, imports and checks, each under the same rules through every interface."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from sqlcrystal.bank import CheckReport, Entry, ImportReport, check_cards, import_entries, question_key
from sqlcrystal.bank.revalidation import runnable
from sqlcrystal.errors import ConfigError, UserError
from sqlcrystal.serving.privacy import kept_edit, kept_entry
from sqlcrystal.serving.reach import existing_store
from sqlcrystal.serving.verdicts import must_run
from sqlcrystal.serving.workspace import Workspace
from sqlcrystal.types import Card, CardStatus, is_personal
from sqlcrystal.writing.card import estimate_tokens

FILTERS = {"signal": "signal", "by": "admitted_by", "writer": "writer"}
"""Filters by the name of their column in the store."""


def edit_card(
    workspace: Workspace, card: Card, *, by: str, text: str | None = None, sql: str | None = None, reason: str = ""
) -> Card:
    """Change a card's text or SQL; new SQL must run, stands in the text too, and is vouched for by its writer."""
    for name, given in (("text", text), ("sql", sql)):
        if given is not None and not given.strip():
            raise UserError(f"{name}: must not be empty")
    if card.definition is not None:
        raise UserError(f"card {card.id}: it is a definition; change its term, words or expression as one")
    if sql is not None:
        if not workspace.knows(card.database):
            raise UserError(f"sql: database {card.database!r}, on which it is run first, is not known").hinting(
                "name it with --db"
            )
        must_run(workspace.open(card.database), runnable(sql))
        text = _text_with(card, sql) if text is None else text
    text, sql, reason = kept_edit(workspace, card, text=text, sql=sql, reason=reason)
    tokens = None if text is None else estimate_tokens(text)
    return workspace.store.bank.edit(card.id, by=by, text=text, sql=sql, tokens=tokens, reason=reason)


def _text_with(card: Card, sql: str) -> str:
    """Write another SQL into the text where the card's own stood."""
    shown = card.sql.strip()
    if not shown or shown not in card.text:
        raise UserError("sql: the card's text does not show its SQL as it stands; give the text too")
    return card.text.replace(shown, sql.strip())


def find_cards(workspace: Workspace, *, database: str | None = None, **filters: str | None) -> list[Card]:
    """List cards in the order they were banked; a value that no card has is answered with those that cards have."""
    bank = existing_store(workspace).bank
    status = filters.pop("status", None)
    if status is not None and status not in list(CardStatus):
        raise ConfigError.unknown("status", status, CardStatus)
    if database is not None and database not in bank.all_databases():
        known = bank.all_databases()
        raise ConfigError.unknown("database", database, known) if known else UserError(f"{bank.where}: has no cards")
    wanted: dict[str, Any] = {column: filters.get(name) for name, column in FILTERS.items()}
    found = bank.find(database=database, status=CardStatus(status) if status else None, **wanted)
    if not found:
        _require_known_values(bank.find(database=database), filters)
    return found


def _require_known_values(cards: Iterable[Card], filters: Mapping[str, str | None]) -> None:
    """Refuse a value that none of the cards has; other databases' values are not named."""
    values = [{"signal": card.admission.signal, "by": card.admission.by, "writer": card.writer} for card in cards]
    for name in FILTERS:
        known, value = {str(held[name]) for held in values}, filters.get(name)
        if value is not None and known and value not in known:
            raise ConfigError.unknown(name, value, known)


def matching_cards(workspace: Workspace, status: CardStatus, filters: Mapping[str, str | None]) -> list[Card]:
    """List the cards of a whole group that can take a status.

    A group is enabled only as far as it was disabled, and only where its question has no active card; quarantine is
    lifted card by card, or by a check.
    """
    before = CardStatus.ACTIVE if status is CardStatus.DISABLED else CardStatus.DISABLED
    found = find_cards(workspace, **{**filters, "status": str(before)})
    return _unanswered(workspace, found) if status is CardStatus.ACTIVE else found


def _unanswered(workspace: Workspace, cards: Iterable[Card]) -> list[Card]:
    """Keep the last card of every question that no active card answers."""
    find = workspace.store.bank.find
    last = {(card.database, question_key(card.question.text)): card for card in cards}
    return [
        card
        for card in last.values()
        if not find(database=card.database, status=CardStatus.ACTIVE, question=card.question.text)
    ]


def set_status(workspace: Workspace, cards: Iterable[Card], status: CardStatus, *, by: str, reason: str) -> list[Card]:
    """Serve cards, or stop serving them; the reason is kept only where values may be."""
    chosen = list(cards)
    kept = kept_reason(workspace, (card.database for card in chosen), reason)
    names = list(dict.fromkeys(card.id for card in chosen))
    return workspace.store.bank.set_statuses(names, status, by=by, reason=kept)


def moment(since: str) -> str:
    """Check a day or time from which on cards are meant."""
    try:
        datetime.fromisoformat(since)
    except ValueError:
        raise ConfigError(f"since: {since!r} is not a day or time such as 2026-03-01 or 2026-03-01T08:00") from None
    return since


def kept_reason(workspace: Workspace, databases: Iterable[str], reason: str) -> str:
    """Leave out a reason, which is anybody's words, where one of the databases keeps no values."""
    return "" if any(map(workspace.keeps_no_values, databases)) else reason


def check_database(
    workspace: Workspace,
    database: str,
    *,
    release: bool = False,
    timeout: float = 30.0,
    on_progress: Callable[[int, int], None] | None = None,
) -> CheckReport:
    """Run every card of a database again, and quarantine those that fail."""
    bank = existing_store(workspace).bank
    if database not in bank.all_databases():
        known = bank.all_databases()
        raise ConfigError.unknown("database", database, known) if known else UserError(f"{bank.where}: has no cards")
    return check_cards(
        bank,
        workspace.open(database).database,
        release=release,
        timeout=timeout,
        quote=not workspace.keeps_no_values(database),
        on_progress=on_progress,
    )


def import_all(workspace: Workspace, entries: Iterable[Entry]) -> ImportReport:
    """Bank cards from elsewhere, all or none; those of a database whose values are never kept lose theirs first."""
    return import_entries(workspace.store.bank, _kept(workspace, entries))


def _kept(workspace: Workspace, entries: Iterable[Entry]) -> Iterator[Entry]:
    for entry in entries:
        if entry.card.definition is not None and not is_personal(entry.card.admission.signal):
            given = entry.card.admission.signal
            raise UserError(f"card {entry.card.id}: only a person's word makes a definition, not {given!r}")
        private = workspace.keeps_no_values(entry.card.database)
        yield kept_entry(workspace, entry) if private else entry
