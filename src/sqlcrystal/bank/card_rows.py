"""Writing one card into the tables; the caller holds the transaction."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import msgspec
import sqlalchemy as sa
from sqlalchemy.dialects import sqlite

from sqlcrystal.bank.records import Added, Change, Entry
from sqlcrystal.bank.tables import cards, changes, episodes, revisions
from sqlcrystal.bank.text import question_key
from sqlcrystal.errors import BankError
from sqlcrystal.types import Card, CardId, CardStatus

if TYPE_CHECKING:
    from sqlalchemy.dialects import postgresql


def now() -> str:
    """This moment, as the store writes it."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def upsert(connection: sa.Connection, table: sa.Table) -> "sqlite.Insert | postgresql.Insert":
    """An insert that can say what becomes of a row with the same key."""
    if connection.dialect.name == "sqlite":
        return sqlite.insert(table)
    from sqlalchemy.dialects import postgresql  # slow to import, and few need it

    return postgresql.insert(table)


def is_new(connection: sa.Connection, table: sa.Table, row: Mapping[str, object]) -> bool:
    """Insert a row by its id; False when one of this id is there already, which stays as it is."""
    statement = upsert(connection, table).on_conflict_do_nothing().returning(table.c.id)
    return connection.execute(statement, row).first() is not None


_SAME = sa.select(cards.c.id, cards.c.content, cards.c.database).where(
    sa.or_(
        cards.c.id.in_(sa.bindparam("ids", expanding=True)),
        cards.c.content.in_(sa.bindparam("contents", expanding=True)),
    )
)


_ACTIVE = sa.select(cards.c.id, cards.c.database, cards.c.question_key).where(
    cards.c.status == CardStatus.ACTIVE.value,
    cards.c.database.in_(sa.bindparam("databases", expanding=True)),
    cards.c.question_key.in_(sa.bindparam("keys", expanding=True)),
)


def document(name: str, record: msgspec.Struct) -> bytes:
    """A record as JSON, or one line that names what cannot be kept."""
    try:
        return msgspec.json.encode(record)
    except (UnicodeEncodeError, TypeError, ValueError) as error:
        raise BankError(f"{name}: cannot be kept as JSON ({error})") from error


def insert(connection: sa.Connection, entries: Sequence[Entry]) -> list[Added]:
    """Write cards with their episodes and histories, leaving out those that are there already; a few hundred a call."""
    rows = [_row(entry.card) for entry in entries]
    kept = _kept(connection, rows)
    added, new, episode_rows, change_rows = [], [], {}, []
    for entry, row in zip(entries, rows, strict=True):
        card = entry.card
        known = kept.get(str(row["id"])) or kept.get(str(row["content"]))
        if known is not None:
            if known[1] != card.database:
                raise BankError(f"card {card.id!r}: the id is taken by a card of database {known[1]!r}")
            added.append(Added(id=CardId(known[0]), new=False))
            continue
        digest = None
        if entry.episode is not None:
            trace = document(f"card {card.id!r}", entry.episode)
            digest = hashlib.sha256(trace).hexdigest()
            episode_rows[digest] = trace
        new.append({**row, "episode": digest, "valid_for": card.fingerprint})
        change_rows += [_change_row(card.id, change) for change in entry.history]
        kept[str(row["id"])] = kept[str(row["content"])] = (card.id, card.database)
        added.append(Added(id=card.id, new=True))
    if episode_rows:
        traces = [{"digest": digest, "document": trace} for digest, trace in episode_rows.items()]
        connection.execute(upsert(connection, episodes).on_conflict_do_nothing(), traces)
    if new:
        connection.execute(cards.insert(), new)
    if change_rows:
        connection.execute(changes.insert(), change_rows)
    return added


def yielded(connection: sa.Connection, entries: Sequence[Entry]) -> list[Entry]:
    """The entries, disabled where their question has an active card in the bank or earlier among them."""
    keys = [(entry.card.database, question_key(entry.card.question.text)) for entry in entries]
    named = {"databases": [database for database, _ in keys], "keys": [key for _, key in keys]}
    taken = {(row.database, row.question_key): row.id for row in connection.execute(_ACTIVE, named)}
    given = []
    for entry, key in zip(entries, keys, strict=True):
        card = entry.card
        if card.status is not CardStatus.ACTIVE or taken.setdefault(key, card.id) == card.id:
            given.append(entry)
            continue
        change = Change(
            at=now(),
            by="import",
            action="status",
            before=str(card.status),
            after=str(CardStatus.DISABLED),
            reason=f"its question has card {taken[key]}",
        )
        disabled = msgspec.structs.replace(card, status=CardStatus.DISABLED)
        given.append(msgspec.structs.replace(entry, card=disabled, history=(*entry.history, change)))
    return given


def _kept(connection: sa.Connection, rows: Sequence[Mapping[str, object]]) -> dict[str, tuple[str, str]]:
    """The id and database of each card that has one of these ids or contents, by either."""
    ids, contents = ([row[column] for row in rows] for column in ("id", "content"))
    kept = {}
    for name, content, database in connection.execute(_SAME, {"ids": ids, "contents": contents}):
        kept[name] = kept[content] = (name, database)
    return kept


def update(connection: sa.Connection, card: Card) -> None:
    """Write a changed card over the one with its id; callers `revise` its database."""
    connection.execute(cards.update().where(cards.c.id == card.id).values(**_row(card)))


def revise(connection: sa.Connection, databases: Iterable[str]) -> None:
    """Let every process know that these databases' cards have changed."""
    bump = upsert(connection, revisions).on_conflict_do_update(
        index_elements=[revisions.c.database], set_={"revision": revisions.c.revision + 1}
    )
    for database in sorted(set(databases)):
        connection.execute(bump, {"database": database, "revision": 1})


def note(connection: sa.Connection, card_id: str, *, by: str, action: str, before: str, after: str, why: str) -> None:
    """Remember what was done to a card."""
    change = Change(at=now(), by=by, action=action, before=str(before), after=str(after), reason=why)
    connection.execute(changes.insert(), _change_row(card_id, change))


def drop_episode(connection: sa.Connection, digest: str | None) -> None:
    """Forget an episode that no card came from any more."""
    if digest is not None:
        used = sa.exists().where(cards.c.episode == digest)
        connection.execute(episodes.delete().where(episodes.c.digest == digest, ~used))


def history_of(connection: sa.Connection, card_id: str) -> tuple[Change, ...]:
    """What was done to a card, oldest first."""
    told = (changes.c.at, changes.c.by, changes.c.action, changes.c.before, changes.c.after, changes.c.reason)
    rows = connection.execute(sa.select(*told).where(changes.c.card == card_id).order_by(changes.c.seq))
    return tuple(Change(**row._mapping) for row in rows)


def _row(card: Card) -> dict[str, str | bytes]:
    # Two cards with the same content are one card, whatever their ids.
    parts = [card.database, card.writer, card.question.text, card.sql]
    encoded = document(f"card {card.id!r}", card)
    return {
        "id": card.id,
        "content": hashlib.sha256(msgspec.json.encode(parts)).hexdigest(),
        "database": card.database,
        "status": str(card.status),
        "writer": card.writer,
        "source": card.source,
        "signal": card.admission.signal,
        "admitted_by": card.admission.by,
        "admitted_at": card.admission.at,
        "question_key": question_key(card.question.text),
        "document": encoded,
    }


def _change_row(card_id: str, change: Change) -> dict[str, str]:
    return {"card": card_id, **msgspec.structs.asdict(change)}
