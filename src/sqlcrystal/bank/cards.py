"""The card store: every database's cards, durable and kept apart, in SQLite or PostgreSQL."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import islice
from pathlib import Path
from types import TracebackType

import msgspec
import sqlalchemy as sa

from sqlcrystal.bank.backend import BUSY_SECONDS, Backend, Rows, open_backend
from sqlcrystal.bank.records import Added, Change, Entry, question_key
from sqlcrystal.bank.snapshots import MEMORY, SnapshotCache, refresh, revision_of
from sqlcrystal.bank.tables import (
    DocumentLookup,
    StoredRecords,
    cards,
    changes,
    encode,
    episodes,
    read_episode,
    revisions,
    upsert,
)
from sqlcrystal.errors import BankError
from sqlcrystal.timestamps import as_timestamp, timestamp
from sqlcrystal.types import Admission, Card, CardId, CardKind, CardStatus, Definition, Episode, Question, is_personal

_CARD = StoredRecords(Card)
_BATCH = 500
_LOOKUP = DocumentLookup(cards, kind="card")
_ACTIVE = cards.c.status == CardStatus.ACTIVE.value
_SERVED = sa.and_(_ACTIVE, cards.c.kind == CardKind.QUESTION.value)
_ANY = sa.select(cards.c.seq).where(cards.c.database == sa.bindparam("database"), _SERVED).limit(1)
_CHANGES = (
    sa.select(*(changes.c[field] for field in Change.__struct_fields__))
    .where(changes.c.card == sa.bindparam("card_id"))
    .order_by(changes.c.seq)
)
_SAME = sa.select(cards.c.id, cards.c.content, cards.c.database).where(
    sa.or_(
        cards.c.id.in_(sa.bindparam("ids", expanding=True)),
        cards.c.content.in_(sa.bindparam("contents", expanding=True)),
    )
)
_ANSWERING = sa.select(cards.c.id, cards.c.database, cards.c.kind, cards.c.question_key).where(
    _ACTIVE,
    cards.c.database.in_(sa.bindparam("databases", expanding=True)),
    cards.c.question_key.in_(sa.bindparam("keys", expanding=True)),
)


class CardStore:
    """A durable bank: a card that `add` returned for is on disk, and threads, processes and machines may share it."""

    def __init__(
        self,
        location: Path | str | Backend,
        *,
        create: bool = True,
        busy_seconds: float = BUSY_SECONDS,
        memory: int = MEMORY,
    ) -> None:
        """Open the bank at a path or URL, and make it unless `create` is off."""
        if not isinstance(location, Backend):
            location = open_backend(location, create=create, busy_seconds=busy_seconds)
        self.backend = location
        self.where = self.backend.where
        self._snapshots = SnapshotCache(budget=memory)

    # ── retrieval ────────────────────────────────────────────────────────────────────────────────────────────────

    def databases(self) -> Sequence[str]:
        """Name every database that has an active card."""
        return self._distinct(cards.c.database, _SERVED)

    def serves(self, database: str) -> bool:
        """Tell whether a database has an active card; none is read."""
        return bool(self.backend.rows(_ANY, {"database": database}))

    def cards(self, database: str) -> tuple[Card, ...]:
        """Return the active cards of a database's questions as they were banked; the same tuple until that changes."""
        # A transaction may be rolled back after it read its own writes, so it neither uses nor leaves a snapshot.
        in_transaction = self.backend.in_transaction
        revision = revision_of(self.backend, database)
        known = None if in_transaction else self._snapshots.get(database)
        if known is not None and known.revision == revision:
            return known.cards
        snapshot = refresh(self.backend, database, revision, known)
        return snapshot.cards if in_transaction else self._snapshots.put(database, snapshot)

    def revision(self, database: str) -> int:
        """Read the number that every change of a database's cards moves on."""
        return revision_of(self.backend, database)

    # ── looking ──────────────────────────────────────────────────────────────────────────────────────────────────

    def all_databases(self) -> Sequence[str]:
        """Name every database that has a card of any status."""
        return self._distinct(cards.c.database)

    def values(self, column: str) -> Sequence[str]:
        """List the values that cards have in a column: writer, source, signal or admitted_by."""
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
        kind: CardKind | None = CardKind.QUESTION,
    ) -> list[Card]:
        """Find every card, of any status, that fits what is given, in the order they were banked.

        `since` is a moment of admission (ISO 8601, UTC); of a `question` layout and case do not count. Definitions are
        found by their `kind` alone, or with all cards where it is None.
        """
        wanted = {"database": database, "status": status, "writer": writer, "source": source}
        wanted |= {"signal": signal, "admitted_by": admitted_by}
        wanted |= {"admitted_at": None if since is None else as_timestamp(since)}
        wanted |= {"question_key": None if question is None else question_key(question), "kind": kind}
        given = {column: str(value) for column, value in wanted.items() if value is not None}
        return [_CARD.decode(document) for (document,) in self.backend.rows(_matching(*given), given)]

    def get(self, card_id: str) -> Card:
        """Return one card, whatever its status; the start of an id will do where only one card has it."""
        return _CARD.decode(_LOOKUP.find(self.backend, card_id))

    def episode(self, card_id: str) -> Episode | None:
        """Return the episode a card came from, with its attempt, rounds and question; None if it came without one."""
        query = sa.select(episodes.c.document).join(cards, cards.c.episode == episodes.c.digest)
        rows = self.backend.rows(query.where(cards.c.id == self.get(card_id).id))
        return read_episode(rows[0][0]) if rows else None

    def history(self, card_id: str) -> tuple[Change, ...]:
        """List the changes of a card, oldest first; they outlive the card."""
        return _history(self.backend.rows(_CHANGES, {"card_id": card_id}))

    def entries(self, database: str | None = None) -> Iterator[Entry]:
        """Yield every card with its episode and history as of now, in the order they were banked."""
        query = sa.select(cards.c.document, episodes.c.document.label("episode")).order_by(cards.c.seq)
        query = query.select_from(cards.outerjoin(episodes, cards.c.episode == episodes.c.digest))
        if database is not None:
            query = query.where(cards.c.database == database)
        with self.backend.snapshot() as connection:
            for rows in connection.execute(query).partitions(_BATCH):
                for row in rows:
                    card = _CARD.decode(row.document)
                    yield Entry(
                        card=card,
                        episode=None if row.episode is None else read_episode(row.episode),
                        history=_history(connection.execute(_CHANGES, {"card_id": card.id}).all()),
                    )

    def stale(self, database: str, fingerprint: str, *, among: Sequence[str] | None = None) -> frozenset[CardId]:
        """Name the cards, of all or of those given, that were never seen to run under this schema."""
        query = sa.select(cards.c.id).where(cards.c.database == database, cards.c.valid_for != fingerprint)
        if among is not None:
            query = query.where(cards.c.id.in_(among))
        return frozenset(CardId(name) for (name,) in self.backend.rows(query))

    # ── changing ─────────────────────────────────────────────────────────────────────────────────────────────────

    def add(self, card: Card, episode: Episode | None = None) -> CardId:
        """Bank a card and return the id it is kept under: an older one where the same card is there already."""
        return self.add_all([Entry(card=card, episode=episode)])[0].id

    def add_all(self, entries: Iterable[Entry], *, one_per_question: bool = False) -> list[Added]:
        """Bank many cards in one transaction, all or none.

        With `one_per_question` a card whose question has an active card already comes in disabled.
        """
        touched: set[str] = set()
        added: list[Added] = []
        with self.backend.writing() as connection:
            for read in _batches(entries):
                batch = _disable_second_cards(connection, read) if one_per_question else read
                done = _insert(connection, batch)
                touched.update(entry.card.database for entry, outcome in zip(batch, done, strict=True) if outcome.new)
                added += done
            _bump_revisions(connection, touched)
        return added

    def edit(
        self,
        card_id: str,
        *,
        by: str,
        text: str | None = None,
        sql: str | None = None,
        tokens: int | None = None,
        definition: Definition | None = None,
        reason: str = "",
    ) -> Card:
        """Change a card's text or SQL under the same id; a person who changes the SQL vouches for it from then on."""
        with self.backend.writing() as connection:
            card = self.get(card_id)
            edited = msgspec.structs.replace(
                card,
                text=card.text if text is None else text,
                sql=card.sql if sql is None else sql,
                tokens=card.tokens if tokens is None else tokens,
                defined=card.defined if definition is None else definition,
                question=card.question if definition is None else _as_question(card, definition),
            )
            if edited.sql != card.sql:
                vouched = f"was {card.admission.signal} by {card.admission.by} at {card.admission.at}"
                admission = Admission(signal="edited", by=by, at=timestamp(), detail=vouched)
                edited = msgspec.structs.replace(edited, admission=admission)
            try:
                _update(connection, edited)
            except sa.exc.IntegrityError as error:
                raise BankError(f"card {card.id!r}: another card already has this question and SQL") from error
            for field, before, after in _edits(card, edited):
                _record(connection, card.id, by=by, action=f"edited {field}", before=before, after=after, reason=reason)
            _bump_revisions(connection, [card.database])
            return edited

    def readmit(self, card_id: str, admission: Admission) -> Card:
        """Serve a card again under a new admission.

        An active one is left alone, unless a person takes over a card that a rule had admitted.
        """
        with self.backend.writing() as connection:
            card = self.get(card_id)
            taken_over = is_personal(admission.signal) and not is_personal(card.admission.signal)
            if card.status is CardStatus.ACTIVE and not taken_over:
                return card
            again = msgspec.structs.replace(card, status=CardStatus.ACTIVE, admission=admission)
            _update(connection, again)
            if card.status is CardStatus.ACTIVE:
                before, after = (f"{given.signal} by {given.by}" for given in (card.admission, admission))
                change = {"action": "admission", "before": before, "after": after}
                change["reason"] = "a person vouches for it now"
            else:
                change = {"action": "status", "before": str(card.status), "after": str(again.status)}
                change["reason"] = f"admitted again by {admission.signal}"
            _record(connection, card.id, by=admission.by, **change)
            _bump_revisions(connection, [card.database])
            return again

    def set_status(self, card_id: str, status: CardStatus, *, by: str, reason: str = "", cause: str = "") -> Card:
        """Change whether retrieval may serve a card, and remember by whom, why, and the id that caused it."""
        return self.set_statuses([card_id], status, by=by, reason=reason, cause=cause)[0]

    def set_statuses(
        self, ids: Iterable[str], status: CardStatus, *, by: str, reason: str = "", cause: str = ""
    ) -> list[Card]:
        """Change the status of many cards in one transaction; a card that has it already is left alone.

        One question has one active card: a card that is served again takes the place of another.
        """
        after, touched = [], set()
        with self.backend.writing() as connection:
            for card in map(self.get, ids):
                if status is CardStatus.ACTIVE and card.status is not status:
                    self._make_room_for(card, by=by)
                updated = msgspec.structs.replace(card, status=status)
                if updated.status is not card.status:
                    _update(connection, updated)
                    change = {"action": "status", "before": str(card.status), "after": str(status)}
                    _record(connection, card.id, by=by, **change, reason=reason, cause=cause)
                    touched.add(card.database)
                after.append(updated)
            _bump_revisions(connection, touched)
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
            if digest is not None:
                used = sa.exists().where(cards.c.episode == digest)
                connection.execute(episodes.delete().where(episodes.c.digest == digest, ~used))
            _record(connection, card.id, by=by, action="deleted", before=str(card.status), reason=reason)
            _bump_revisions(connection, [card.database])

    # ── opening and closing ──────────────────────────────────────────────────────────────────────────────────────

    def close(self) -> None:
        """Close the store; acknowledged changes are on disk already."""
        self.backend.close()

    def __enter__(self) -> "CardStore":
        """Use the store in a with statement."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Close it."""
        self.close()

    def _make_room_for(self, card: Card, *, by: str) -> None:
        others = self.find(
            database=card.database, status=CardStatus.ACTIVE, question=card.question.text, kind=card.kind
        )
        reason = f"replaced by card {card.id}"
        self.set_statuses([other.id for other in others], CardStatus.DISABLED, by=by, reason=reason, cause=card.id)

    def _distinct(self, column: "sa.Column[str]", *conditions: "sa.ColumnElement[bool]") -> tuple[str, ...]:
        query = sa.select(column).where(*conditions).distinct().order_by(column)
        return tuple(value for (value,) in self.backend.rows(query))


# ── rows; the caller holds the transaction ───────────────────────────────────────────────────────────────────────────


@cache
def _matching(*columns: str) -> "sa.Select[tuple[bytes]]":
    """Select cards by the values of columns, and by a least moment of admission."""
    query = sa.select(cards.c.document).order_by(cards.c.seq)
    for column in columns:
        value: sa.BindParameter[str] = sa.bindparam(column)
        query = query.where(cards.c.admitted_at >= value if column == "admitted_at" else cards.c[column] == value)
    return query


def _insert(connection: sa.Connection, entries: Sequence[Entry]) -> list[Added]:
    """Write cards with their episodes and histories, leaving out those that are there already."""
    rows = [_row(entry.card) for entry in entries]
    known = _known(connection, rows)
    added, new, episode_rows, change_rows = [], [], {}, []
    for entry, row in zip(entries, rows, strict=True):
        card = entry.card
        same = known.get(str(row["id"])) or known.get(str(row["content"]))
        if same is not None:
            name, database = same
            if database != card.database:
                raise BankError(f"card {card.id!r}: the id is taken by a card of database {database!r}")
            added.append(Added(id=CardId(name), new=False))
            continue
        digest = None
        if entry.episode is not None:
            trace = encode(f"card {card.id!r}", entry.episode)
            digest = hashlib.sha256(trace).hexdigest()
            episode_rows[digest] = trace
        new.append({**row, "episode": digest, "valid_for": card.fingerprint})
        change_rows += [_change_row(card.id, change) for change in entry.history]
        known[str(row["id"])] = known[str(row["content"])] = (card.id, card.database)
        added.append(Added(id=card.id, new=True))
    if episode_rows:
        traces = [{"digest": digest, "document": trace} for digest, trace in episode_rows.items()]
        connection.execute(upsert(connection, episodes).on_conflict_do_nothing(), traces)
    if new:
        connection.execute(cards.insert(), new)
    if change_rows:
        connection.execute(changes.insert(), change_rows)
    return added


def _known(connection: sa.Connection, rows: Sequence[Mapping[str, object]]) -> dict[str, tuple[str, str]]:
    """Find the cards that have one of these ids or contents; by either, their id and database."""
    ids, contents = ([row[column] for row in rows] for column in ("id", "content"))
    known = {}
    for name, content, database in connection.execute(_SAME, {"ids": ids, "contents": contents}):
        known[name] = known[content] = (name, database)
    return known


def _disable_second_cards(connection: sa.Connection, entries: Sequence[Entry]) -> list[Entry]:
    """Disable the entries whose question has an active card in the bank or earlier among them."""
    keys = [(entry.card.database, entry.card.kind, question_key(entry.card.question.text)) for entry in entries]
    named = {"databases": [database for database, _, _ in keys], "keys": [key for _, _, key in keys]}
    first = {(row.database, row.kind, row.question_key): row.id for row in connection.execute(_ANSWERING, named)}
    kept = []
    for entry, key in zip(entries, keys, strict=True):
        card = entry.card
        if card.status is not CardStatus.ACTIVE or first.setdefault(key, card.id) == card.id:
            kept.append(entry)
            continue
        change = Change(
            at=timestamp(),
            by="import",
            action="status",
            before=str(card.status),
            after=str(CardStatus.DISABLED),
            reason=f"its {'term' if card.definition else 'question'} has card {first[key]}",
        )
        disabled = msgspec.structs.replace(card, status=CardStatus.DISABLED)
        kept.append(msgspec.structs.replace(entry, card=disabled, history=(*entry.history, change)))
    return kept


def _as_question(card: Card, definition: Definition) -> Question:
    return msgspec.structs.replace(card.question, text=definition.term)


def _edits(card: Card, edited: Card) -> Iterator[tuple[str, str, str]]:
    """Tell each edited part with its words before and after; of a definition its own parts, which the rest follow.

    Snapshots learn from the changes which cards to read again; a recount of the tokens follows from the text, and is a
    change of its own only where it comes alone.
    """
    old, new = card.definition, edited.definition
    if old is not None and new is not None:
        parts = [(field, getattr(old, field), getattr(new, field)) for field in Definition.__struct_fields__]
        told = [(field, _in_words(before), _in_words(after)) for field, before, after in parts]
    else:
        told = [(field, str(getattr(card, field)), str(getattr(edited, field))) for field in ("text", "sql")]
    reworded = [part for part in told if part[1] != part[2]]
    recounted = ("tokens", str(card.tokens), str(edited.tokens))
    yield from reworded or ([recounted] if recounted[1] != recounted[2] else [])


def _in_words(part: str | tuple[str, ...]) -> str:
    return part if isinstance(part, str) else "; ".join(part)


def _update(connection: sa.Connection, card: Card) -> None:
    connection.execute(cards.update().where(cards.c.id == card.id).values(**_row(card)))


def _bump_revisions(connection: sa.Connection, databases: Iterable[str]) -> None:
    """Let every process know that these databases' cards have changed."""
    changed = sorted(set(databases))
    if not changed:
        return
    bump = upsert(connection, revisions).on_conflict_do_update(
        index_elements=[revisions.c.database], set_={"revision": revisions.c.revision + 1}
    )
    connection.execute(bump, [{"database": database, "revision": 1} for database in changed])


def _record(connection: sa.Connection, card_id: str, *, by: str, action: str, **details: str) -> None:
    change = Change(at=timestamp(), by=by, action=action, **details)
    connection.execute(changes.insert(), _change_row(card_id, change))


def _history(rows: Rows) -> tuple[Change, ...]:
    return tuple(Change(**row._mapping) for row in rows)


def _row(card: Card) -> dict[str, str | bytes]:
    # Two cards with the same content are one card, whatever their ids.
    parts = [card.database, card.writer, card.question.text, card.sql]
    encoded = encode(f"card {card.id!r}", card)
    return {
        "id": card.id,
        "content": hashlib.sha256(msgspec.json.encode(parts)).hexdigest(),
        "database": card.database,
        "status": str(card.status),
        "writer": card.writer,
        "source": card.source,
        "signal": card.admission.signal,
        "admitted_by": card.admission.by,
        "admitted_at": as_timestamp(card.admission.at),
        "question_key": question_key(card.question.text),
        "kind": str(card.kind),
        "document": encoded,
    }


def _change_row(card_id: str, change: Change) -> dict[str, str]:
    return {"card": card_id, **msgspec.structs.asdict(change)}


def _batches(entries: Iterable[Entry]) -> Iterator[list[Entry]]:
    remaining = iter(entries)
    while batch := list(islice(remaining, _BATCH)):
        yield batch
