"""Writing one card into the tables; the caller holds the transaction."""

import hashlib
import sqlite3
from datetime import UTC, datetime

import msgspec

from sqlcrystal.bank.records import Added, Change, Entry
from sqlcrystal.errors import BankError
from sqlcrystal.types import Card, CardId, Episode


def now() -> str:
    """This moment, as the bank writes it."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def _content(card: Card) -> str:
    """Two cards with the same content are one card, whatever their ids."""
    parts = [card.database, card.writer, card.question.text, card.sql]
    return hashlib.sha256(msgspec.json.encode(parts)).hexdigest()


def _document(card_id: str, record: Card | Episode) -> bytes:
    try:
        return msgspec.json.encode(record)
    except (UnicodeEncodeError, TypeError, ValueError) as error:
        raise BankError(f"card {card_id!r}: cannot be kept as JSON ({error})") from error


def insert(connection: sqlite3.Connection, entry: Entry) -> Added:
    """Write a card with its episode and history, unless it is there already."""
    card = entry.card
    document, content = _document(card.id, card), _content(card)
    known = connection.execute("SELECT id, database FROM cards WHERE id = ? OR content = ?", (card.id, content))
    for name, database in known:
        if database != card.database:
            raise BankError(f"card {card.id!r}: the id is taken by a card of database {database!r}")
        return Added(id=CardId(name), new=False)
    digest = None
    if entry.episode is not None:
        trace = _document(card.id, entry.episode)
        digest = hashlib.sha256(trace).hexdigest()
        connection.execute("INSERT OR IGNORE INTO episodes VALUES (?, ?)", (digest, trace))
    connection.execute(
        "INSERT INTO cards (id, content, database, status, writer, source, signal, admitted_by, valid_for, episode,"
        " document) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            card.id,
            content,
            card.database,
            card.status,
            card.writer,
            card.source,
            card.admission.signal,
            card.admission.by,
            card.fingerprint,
            digest,
            document,
        ),
    )
    for change in entry.history:
        _keep(connection, card.id, change)
    return Added(id=card.id, new=True)


def update(connection: sqlite3.Connection, card: Card) -> None:
    """Write a changed card over the one with its id."""
    document, content = _document(card.id, card), _content(card)
    connection.execute(
        "UPDATE cards SET content = ?, status = ?, signal = ?, admitted_by = ?, document = ? WHERE id = ?",
        (content, card.status, card.admission.signal, card.admission.by, document, card.id),
    )


def note(
    connection: sqlite3.Connection, card_id: str, *, by: str, action: str, before: str, after: str, why: str
) -> None:
    """Remember what was done to a card."""
    change = Change(at=now(), by=by, action=action, before=str(before), after=str(after), reason=why)
    _keep(connection, card_id, change)


def _keep(connection: sqlite3.Connection, card_id: str, change: Change) -> None:
    connection.execute(
        "INSERT INTO changes (card, at, by, action, before, after, reason) VALUES (?, ?, ?, ?, ?, ?, ?)",
        (card_id, *msgspec.structs.astuple(change)),
    )


def history_of(connection: sqlite3.Connection, card_id: str) -> tuple[Change, ...]:
    """What was done to a card, oldest first."""
    rows = connection.execute(
        "SELECT at, by, action, before, after, reason FROM changes WHERE card = ? ORDER BY seq", (card_id,)
    )
    return tuple(
        Change(at=at, by=by, action=action, before=before, after=after, reason=reason)
        for at, by, action, before, after, reason in rows
    )
