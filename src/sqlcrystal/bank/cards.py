"""The card store: every database's cards, durable and kept apart, in SQLite or PostgreSQL."""

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import islice
from pathlib import Path
from types import TracebackType

import msgspec
import sqlalchemy as sa

from sqlcrystal.bank.backend import BUSY_SECONDS, Backend, open_backend
from sqlcrystal.bank.by_id import ById
from sqlcrystal.bank.card_rows import drop_episode, history_of, insert, note, now, revise, update, yielded
from sqlcrystal.bank.episodes import read_episode
from sqlcrystal.bank.records import REPLACED_BY, Added, Change, Entry
from sqlcrystal.bank.served import MEMORY, Served, caught_up, revision_of
from sqlcrystal.bank.tables import cards, episodes
from sqlcrystal.bank.text import question_key
from sqlcrystal.errors import BankError
from sqlcrystal.types import Admission, Card, CardId, CardStatus, Episode, is_personal

_CARD = msgspec.json.Decoder(Card)
_ACTIVE = cards.c.status == CardStatus.ACTIVE.value
_ANY = sa.select(cards.c.seq).where(cards.c.database == sa.bindparam("database"), _ACTIVE).limit(1)
_AT_A_TIME = 500
_BY_ID = ById(cards, kind="card")


@cache
def _fitting(*columns: str) -> "sa.Select[tuple[bytes]]":
    """The statement for cards that have given values, since a moment for that of admission; made once of each kind."""
    query = sa.select(cards.c.document).order_by(cards.c.seq)
    for column in columns:
        value: sa.BindParameter[str] = sa.bindparam(column)
        query = query.where(cards.c.admitted_at >= value if column == "admitted_at" else cards.c[column] == value)
    return query


class CardStore:
    """A durable bank: what `add` returned from is on disk, and threads, processes and machines may share it."""

    def __init__(
        self,
        place: Path | str | Backend,
        *,
        create: bool = True,
        busy_seconds: float = BUSY_SECONDS,
        memory: int = MEMORY,
    ) -> None:
        """Open the bank at a path or URL, and make it unless `create` is off."""
        if not isinstance(place, Backend):
            place = open_backend(place, create=create, busy_seconds=busy_seconds)
        self.backend = place
        self.where = self.backend.where
        self._served = Served(budget=memory)

    # ── what retrieval sees ──────────────────────────────────────────────────────────────────────────────────────

    def databases(self) -> Sequence[str]:
        """Every database that has an active card, by name."""
        return self._distinct(cards.c.database, _ACTIVE)

    def serves(self, database: str) -> bool:
        """Whether a database has an active card; none is read."""
        return bool(self.backend.rows(_ANY, {"database": database}))

    def cards(self, database: str) -> tuple[Card, ...]:
        """The active cards of one database in the order they were banked; the same tuple until that changes."""
        # What a transaction reads of its own may be rolled back, so it neither uses nor leaves a snapshot.
        apart = self.backend.in_transaction
        revision = revision_of(self.backend, database)
        known = None if apart else self._served.recall(database)
        if known is not None and known.revision == revision:
            return known.cards
        served = caught_up(self.backend, database, revision, known)
        return served.cards if apart else self._served.keep(database, served)

    # ── looking ──────────────────────────────────────────────────────────────────────────────────────────────────

    def all_databases(self) -> Sequence[str]:
        """Every database that has a card of any status, by name."""
        return self._distinct(cards.c.database)

    def values(self, column: str) -> Sequence[str]:
        """What the cards have in a column: writer, source, signal or admitted_by."""
        return self._distinct(cards.c[column])

    def find(
        self,
        *,
        database: str | None = None,
        status: CardStatus | None = None,
        writer: str | None = None,
        source: str | None = None,
        signal: str | None = None,
        admitted_by: str | None = None,
        since: str | None = None,
        question: str | None = None,
    ) -> list[Card]:
        """Every card, of any status, that fits what is given, in the order they were banked.

        `since` is a moment of admission (ISO 8601, UTC); of a `question` layout and case do not count.
        """
        wanted = {"database": database, "status": status, "writer": writer, "source": source}
        wanted |= {"signal": signal, "admitted_by": admitted_by, "admitted_at": since}
        wanted |= {"question_key": None if question is None else question_key(question)}
        given = {column: str(value) for column, value in wanted.items() if value is not None}
        return [_CARD.decode(document) for (document,) in self.backend.rows(_fitting(*given), given)]

    def get(self, card_id: str) -> Card:
        """One card, whatever its status; the start of an id will do where only one card has it."""
        return _CARD.decode(_BY_ID.document(self.backend, card_id))

    def episode(self, card_id: str) -> Episode | None:
        """The episode a card came from, with its attempt, rounds and question; None if it came without one."""
        query = sa.select(episodes.c.document).join(cards, cards.c.episode == episodes.c.digest)
        with self.backend.reading() as connection:
            trace = connection.scalar(query.where(cards.c.id == self.get(card_id).id))
        return None if trace is None else read_episode(trace)

    def history(self, card_id: str) -> tuple[Change, ...]:
        """What was done to a card, oldest first; it outlives the card."""
        with self.backend.reading() as connection:
            return history_of(connection, card_id)

    def entries(self, database: str | None = None) -> Iterator[Entry]:
        """Every card with its episode and history as of now, in the order they were banked."""
        query = sa.select(cards.c.document, episodes.c.document.label("episode")).order_by(cards.c.seq)
        query = query.select_from(cards.outerjoin(episodes, cards.c.episode == episodes.c.digest))
        if database is not None:
            query = query.where(cards.c.database == database)
        with self.backend.snapshot() as connection:
            for rows in connection.execute(query).partitions(_AT_A_TIME):
                for row in rows:
                    card = _CARD.decode(row.document)
                    yield Entry(
                        card=card,
                        episode=None if row.episode is None else read_episode(row.episode),
                        history=history_of(connection, card.id),
                    )

    def stale(self, database: str, fingerprint: str, *, among: Sequence[str] | None = None) -> frozenset[CardId]:
        """The cards, of all or of those named, that were never seen to run under this schema."""
        query = sa.select(cards.c.id).where(cards.c.database == database, cards.c.valid_for != fingerprint)
        if among is not None:
            query = query.where(cards.c.id.in_(among))
        with self.backend.reading() as connection:
            return frozenset(map(CardId, connection.scalars(query)))

    # ── changing ─────────────────────────────────────────────────────────────────────────────────────────────────

    def add(self, card: Card, episode: Episode | None = None) -> CardId:
        """Bank a card and return the id it is kept under: an older one where the same card is there already."""
        return self.add_all([Entry(card=card, episode=episode)])[0].id

    def add_all(self, entries: Iterable[Entry], *, yielding: bool = False) -> list[Added]:
        """Bank many cards in one transaction, all or none.

        With `yielding` a card whose question has an active card comes in disabled: one question has one active card.
        """
        touched: set[str] = set()
        added: list[Added] = []
        with self.backend.writing() as connection:
            for read in _batches(entries):
                batch = yielded(connection, read) if yielding else read
                done = insert(connection, batch)
                touched.update(entry.card.database for entry, outcome in zip(batch, done, strict=True) if outcome.new)
                added += done
            revise(connection, touched)
        return added

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
        with self.backend.writing() as connection:
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
            except sa.exc.IntegrityError as error:
                raise BankError(f"card {card.id!r}: another card already has this question and SQL") from error
            # Whoever keeps cards in memory learns from the notes which of them have changed; a recount of the tokens
            # follows from the text, and is told only where it comes alone.
            reworded = [field for field in ("text", "sql") if getattr(card, field) != getattr(edited, field)]
            for field in reworded or ["tokens"]:
                before, after = getattr(card, field), getattr(edited, field)
                if before != after:
                    note(connection, card.id, by=by, action=f"edited {field}", before=before, after=after, why=reason)
            revise(connection, [card.database])
            return edited

    def readmit(self, card_id: str, admission: Admission) -> Card:
        """Serve a card again on somebody's new word, who vouches for it from now on.

        An active one is left alone, unless a person takes over what a rule had admitted.
        """
        with self.backend.writing() as connection:
            card = self.get(card_id)
            taken_over = is_personal(admission.signal) and not is_personal(card.admission.signal)
            if card.status is CardStatus.ACTIVE and not taken_over:
                return card
            again = msgspec.structs.replace(card, status=CardStatus.ACTIVE, admission=admission)
            update(connection, again)
            if card.status is CardStatus.ACTIVE:
                before, after = (f"{given.signal} by {given.by}" for given in (card.admission, admission))
                change = {"action": "admission", "before": before, "after": after, "why": "a person vouches for it now"}
            else:
                why = f"admitted again by {admission.signal}"
                change = {"action": "status", "before": card.status, "after": again.status, "why": why}
            note(connection, card.id, by=admission.by, **change)
            revise(connection, [card.database])
            return again

    def set_status(self, card_id: str, status: CardStatus, *, by: str, reason: str = "") -> Card:
        """Change whether retrieval may serve a card, and remember who did it and why."""
        return self.set_statuses([card_id], status, by=by, reason=reason)[0]

    def set_statuses(self, ids: Iterable[str], status: CardStatus, *, by: str, reason: str = "") -> list[Card]:
        """Change the status of many cards in one transaction; a card that has it already is left alone.

        One question has one active card: a card that is served again takes the place of another.
        """
        after, touched = [], set()
        with self.backend.writing() as connection:
            for card in map(self.get, ids):
                if status is CardStatus.ACTIVE and card.status is not status:
                    others = self.find(database=card.database, status=status, question=card.question.text)
                    replaced = [other.id for other in others]
                    self.set_statuses(replaced, CardStatus.DISABLED, by=by, reason=f"{REPLACED_BY}{card.id}")
                updated = msgspec.structs.replace(card, status=status)
                if updated.status is not card.status:
                    update(connection, updated)
                    note(connection, card.id, by=by, action="status", before=card.status, after=status, why=reason)
                    touched.add(card.database)
                after.append(updated)
            revise(connection, touched)
        return after

    def mark_valid(self, ids: Iterable[str], fingerprint: str) -> None:
        """Remember under which schema these cards were last seen to run."""
        marked = cards.update().where(cards.c.id == sa.bindparam("card_id")).values(valid_for=fingerprint)
        named = [{"card_id": name} for name in ids]
        if named:
            with self.backend.writing() as connection:
                connection.execute(marked, named)

    def delete(self, card_id: str, *, by: str, reason: str = "") -> None:
        """Take a card out for good, with its episode if no other card came from it; its history stays."""
        with self.backend.writing() as connection:
            card = self.get(card_id)
            digest = connection.scalar(sa.select(cards.c.episode).where(cards.c.id == card.id))
            connection.execute(cards.delete().where(cards.c.id == card.id))
            drop_episode(connection, digest)
            note(connection, card.id, by=by, action="deleted", before=card.status, after="", why=reason)
            revise(connection, [card.database])

    # ── opening and closing ──────────────────────────────────────────────────────────────────────────────────────

    def close(self) -> None:
        """Close the store; what was acknowledged is already on disk."""
        self.backend.close()

    def __enter__(self) -> "CardStore":
        """Use the store in a with statement."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Close it."""
        self.close()

    def _distinct(self, column: "sa.Column[str]", *conditions: "sa.ColumnElement[bool]") -> tuple[str, ...]:
        with self.backend.reading() as connection:
            return tuple(connection.scalars(sa.select(column).where(*conditions).distinct().order_by(column)))


def _batches(entries: Iterable[Entry]) -> Iterator[list[Entry]]:
    remaining = iter(entries)
    while batch := list(islice(remaining, _AT_A_TIME)):
        yield batch
