"""The card store: every database's cards in one SQLite file.

Not guaranteed: use over a network file system (SQLite's locks and shared memory do not hold there), and use of one
CardStore object across a fork (open the file again in the child).
"""

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from threading import RLock
from types import TracebackType
from typing import Any

import msgspec

from sqlcrystal.bank.connection import BUSY_SECONDS, connect, explained
from sqlcrystal.bank.records import Added, Change, Entry
from sqlcrystal.bank.rows import history_of, insert, note, now, update
from sqlcrystal.errors import BankError
from sqlcrystal.types import Admission, Card, CardId, CardStatus, Episode

_CARD = msgspec.json.Decoder(Card)
_EPISODE = msgspec.json.Decoder(Episode)


class CardStore:
    """A durable bank: what `add` returned from is on disk, and two processes may share the file."""

    def __init__(self, path: Path | str, *, create: bool = True, busy_seconds: float = BUSY_SECONDS) -> None:
        """Open the bank at this path, and make it unless `create` is off."""
        self.path = Path(path)
        self._connection = connect(self.path, create=create, busy_seconds=busy_seconds)
        self._lock = RLock()
        self._served: dict[str, tuple[int, tuple[Card, ...]]] = {}

    # ── what retrieval sees ──────────────────────────────────────────────────────────────────────────────────────

    def databases(self) -> Sequence[str]:
        """Every database that has an active card, by name."""
        rows = self._rows("SELECT DISTINCT database FROM cards WHERE status = 'active' ORDER BY database")
        return tuple(name for (name,) in rows)

    def cards(self, database: str) -> tuple[Card, ...]:
        """The active cards of one database in the order they were banked; the same tuple until that changes."""
        with self._lock:
            # The revision is read before the cards: a write in between costs one reload, never a stale answer.
            found = self._rows("SELECT revision FROM revisions WHERE database = ?", database)
            revision = found[0][0] if found else 0
            known = self._served.get(database)
            if known is None or known[0] != revision:
                documents = self._rows(
                    "SELECT document FROM cards WHERE database = ? AND status = 'active' ORDER BY seq", database
                )
                known = (revision, tuple(_CARD.decode(document) for (document,) in documents))
                self._served[database] = known
            return known[1]

    # ── looking ──────────────────────────────────────────────────────────────────────────────────────────────────

    def find(
        self,
        *,
        database: str | None = None,
        status: CardStatus | None = None,
        writer: str | None = None,
        source: str | None = None,
        signal: str | None = None,
        admitted_by: str | None = None,
    ) -> list[Card]:
        """Every card, of any status, that fits what is given, in the order they were banked."""
        wanted = {"database": database, "status": status, "writer": writer, "source": source}
        wanted |= {"signal": signal, "admitted_by": admitted_by}
        given = {column: str(value) for column, value in wanted.items() if value is not None}
        condition = " AND ".join(f"{column} = ?" for column in given) or "1"
        rows = self._rows(f"SELECT document FROM cards WHERE {condition} ORDER BY seq", *given.values())
        return [_CARD.decode(document) for (document,) in rows]

    def get(self, card_id: str) -> Card:
        """One card, whatever its status; the start of an id will do where only one card has it."""
        rows = self._rows("SELECT id, document FROM cards WHERE id = ?", card_id) or self._rows(
            "SELECT id, document FROM cards WHERE ? < id AND id < ? ORDER BY id LIMIT 3",
            card_id,
            card_id + "\U0010ffff",
        )
        if not card_id or not rows:
            raise BankError(f"card {card_id!r}: not in {self.path}")
        if len(rows) > 1:
            raise BankError(f"card {card_id!r}: several ids start so ({', '.join(name for name, _ in rows)})")
        return _CARD.decode(rows[0][1])

    def episode(self, card_id: str) -> Episode | None:
        """The episode a card came from, with its attempt, rounds and question; None if it came without one."""
        rows = self._rows(
            "SELECT e.document FROM cards c JOIN episodes e ON e.digest = c.episode WHERE c.id = ?",
            self.get(card_id).id,
        )
        return _EPISODE.decode(rows[0][0]) if rows else None

    def history(self, card_id: str) -> tuple[Change, ...]:
        """What was done to a card, oldest first; it outlives the card."""
        with self._lock, explained(self.path):
            return history_of(self._connection, card_id)

    def entries(self, database: str | None = None) -> Iterator[Entry]:
        """Every card with its episode and history as of now, in the order they were banked."""
        # A connection of its own sees one moment of the file, however long the reader takes.
        with (
            explained(self.path),
            closing(connect(self.path, create=False, busy_seconds=BUSY_SECONDS)) as connection,
        ):
            connection.execute("BEGIN")
            rows = connection.execute(
                "SELECT c.document, e.document FROM cards c LEFT JOIN episodes e ON e.digest = c.episode"
                " WHERE ?1 IS NULL OR c.database = ?1 ORDER BY c.seq",
                (database,),
            )
            for document, episode in rows:
                card = _CARD.decode(document)
                yield Entry(
                    card=card,
                    episode=None if episode is None else _EPISODE.decode(episode),
                    history=history_of(connection, card.id),
                )

    def stale(self, database: str, fingerprint: str) -> frozenset[CardId]:
        """The cards that were never seen to run under this schema."""
        rows = self._rows("SELECT id FROM cards WHERE database = ? AND valid_for <> ?", database, fingerprint)
        return frozenset(CardId(name) for (name,) in rows)

    # ── changing ─────────────────────────────────────────────────────────────────────────────────────────────────

    def add(self, card: Card, episode: Episode | None = None) -> CardId:
        """Bank a card and return the id it is kept under: an older one where the same card is there already."""
        return self.add_all([Entry(card=card, episode=episode)])[0].id

    def add_all(self, entries: Iterable[Entry]) -> list[Added]:
        """Bank many cards in one transaction, all or none."""
        with self._transaction() as connection:
            return [insert(connection, entry) for entry in entries]

    def edit(
        self,
        card_id: str,
        *,
        by: str,
        text: str | None = None,
        sql: str | None = None,
        tokens: int | None = None,
        reason: str = "",
    ) -> Card:
        """Change a card's text or SQL under the same id; whoever changes the SQL becomes the one who vouches for it."""
        with self._transaction() as connection:
            card = self.get(card_id)
            edited = msgspec.structs.replace(
                card,
                text=card.text if text is None else text,
                sql=card.sql if sql is None else sql,
                tokens=card.tokens if tokens is None else tokens,
            )
            if edited.sql != card.sql:
                vouched = f"was {card.admission.signal} by {card.admission.by} at {card.admission.at}"
                admission = Admission(signal="edited", by=by, at=now(), detail=vouched)
                edited = msgspec.structs.replace(edited, admission=admission)
            try:
                update(connection, edited)
            except sqlite3.IntegrityError as error:
                raise BankError(f"card {card.id!r}: another card already has this question and SQL") from error
            for field in ("text", "sql"):
                before, after = getattr(card, field), getattr(edited, field)
                if before != after:
                    note(connection, card.id, by=by, action=f"edited {field}", before=before, after=after, why=reason)
            return edited

    def set_status(self, card_id: str, status: CardStatus, *, by: str, reason: str = "") -> Card:
        """Change whether retrieval may serve a card, and remember who did it and why."""
        return self.set_statuses([card_id], status, by=by, reason=reason)[0]

    def set_statuses(self, ids: Iterable[str], status: CardStatus, *, by: str, reason: str = "") -> list[Card]:
        """Change the status of many cards in one transaction; a card that has it already is left alone."""
        changed = []
        with self._transaction() as connection:
            for card in map(self.get, ids):
                updated = msgspec.structs.replace(card, status=status)
                if updated.status is not card.status:
                    update(connection, updated)
                    note(connection, card.id, by=by, action="status", before=card.status, after=status, why=reason)
                changed.append(updated)
        return changed

    def mark_valid(self, ids: Iterable[str], fingerprint: str) -> None:
        """Remember under which schema these cards were last seen to run."""
        with self._transaction() as connection:
            connection.executemany("UPDATE cards SET valid_for = ? WHERE id = ?", [(fingerprint, name) for name in ids])

    def delete(self, card_id: str, *, by: str, reason: str = "") -> None:
        """Take a card out for good, with its episode if no other card came from it; its history stays."""
        with self._transaction() as connection:
            card = self.get(card_id)
            connection.execute("DELETE FROM cards WHERE id = ?", (card.id,))
            connection.execute(
                "DELETE FROM episodes WHERE digest NOT IN (SELECT episode FROM cards WHERE episode > '')"
            )
            note(connection, card.id, by=by, action="deleted", before=card.status, after="", why=reason)

    # ── the file ─────────────────────────────────────────────────────────────────────────────────────────────────

    def close(self) -> None:
        """Close the file; what was acknowledged is already on disk."""
        with self._lock, explained(self.path):
            self._connection.close()

    def __enter__(self) -> "CardStore":
        """Use the store in a with statement."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Close the file."""
        self.close()

    def _rows(self, sql: str, *values: str) -> list[Any]:
        with self._lock, explained(self.path):
            return self._connection.execute(sql, values).fetchall()

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._lock, explained(self.path):
            # IMMEDIATE takes the write lock first, so that what is read inside is what is written over.
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise
