"""Snapshots of the active cards in memory, one per database; the longest unused are let go."""

from threading import Lock

import msgspec
import sqlalchemy as sa

from sqlcrystal.bank.backend import Backend
from sqlcrystal.bank.tables import StoredRecords, cards, changes, revisions
from sqlcrystal.types import Card, CardKind, CardStatus

MEMORY = 512 * 2**20
"""Bytes of card documents kept decoded; a decoded card takes about as much again."""

_CARD = StoredRecords(Card)
_DATABASE: "sa.BindParameter[str]" = sa.bindparam("database")
_CARD_SEEN: "sa.BindParameter[int]" = sa.bindparam("card")
_CHANGE_SEEN: "sa.BindParameter[int]" = sa.bindparam("change")
_REVISION = sa.select(revisions.c.revision).where(revisions.c.database == _DATABASE)
_LAST_CHANGE = sa.select(sa.func.coalesce(sa.func.max(changes.c.seq), 0))
_TOUCHED = (
    sa.select(sa.func.count())
    .select_from(changes.outerjoin(cards, cards.c.id == changes.c.card))
    .where(changes.c.seq > _CHANGE_SEEN, sa.or_(cards.c.id.is_(None), cards.c.database == _DATABASE))
)
_LATER = (
    sa.select(cards.c.seq, cards.c.document)
    .where(
        cards.c.database == _DATABASE,
        cards.c.status == CardStatus.ACTIVE.value,
        cards.c.kind == CardKind.QUESTION.value,
        cards.c.seq > _CARD_SEEN,
    )
    .order_by(cards.c.seq)
)


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """The active cards of one database's questions as of a revision, and how far cards and changes had come."""

    revision: int = -1
    cards: tuple[Card, ...] = ()
    size: int = 0
    last_card: int = 0
    last_change: int = 0


def revision_of(backend: Backend, database: str) -> int:
    """Read the number that every change of a database's cards moves on."""
    return next((int(revision) for (revision,) in backend.rows(_REVISION, {"database": database})), 0)


def refresh(backend: Backend, database: str, revision: int, known: Snapshot | None) -> Snapshot:
    """Read the cards that were added since a known snapshot, or all where a card of it has changed.

    The revision was read before, and changes are read before cards: a later write is read again next time.
    Writers take turns, so that a later number was committed later.
    """
    ((last_change,),) = backend.rows(_LAST_CHANGE, {})
    if known is not None and last_change > known.last_change:
        ((touched,),) = backend.rows(_TOUCHED, {"change": known.last_change, "database": database})
        known = None if touched else known
    before = known or Snapshot()
    rows = backend.rows(_LATER, {"database": database, "card": before.last_card})
    return Snapshot(
        revision=revision,
        cards=(*before.cards, *(_CARD.decode(document) for _, document in rows)) if rows else before.cards,
        size=before.size + sum(len(document) for _, document in rows),
        last_card=rows[-1][0] if rows else before.last_card,
        last_change=last_change,
    )


class SnapshotCache:
    """The last snapshot of each database, together within a budget of document bytes."""

    def __init__(self, *, budget: int = MEMORY) -> None:
        """Keep at most so many bytes, and always the snapshot used last."""
        self._budget = budget
        self._held = 0
        self._known: dict[str, Snapshot] = {}
        self._lock = Lock()

    def get(self, database: str) -> Snapshot | None:
        """Return the last snapshot of a database, if it is still here."""
        with self._lock:
            known = self._known.pop(database, None)
            if known is not None:
                self._known[database] = known  # used last
            return known

    def put(self, database: str, snapshot: Snapshot) -> tuple[Card, ...]:
        """Remember a snapshot; of two threads that loaded the same revision, both get the first one's tuple."""
        with self._lock:
            known = self._known.pop(database, None)
            if known is not None:
                self._held -= known.size
                if known.revision == snapshot.revision:
                    snapshot = known
            self._known[database] = snapshot
            self._held += snapshot.size
            for longest_unused in list(self._known)[:-1]:
                if self._held <= self._budget:
                    break
                self._held -= self._known.pop(longest_unused).size
            return snapshot.cards
