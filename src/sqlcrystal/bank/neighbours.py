"""The nearest cards of a very large bank, found inside PostgreSQL by pgvector's HNSW index.

Approximate: `benchmarks/vector_recall.py` measures how often the five nearest are the exact five. Databases with fewer
cards are searched exactly, in memory.
"""

import hashlib
from collections.abc import Collection, Iterable, Iterator
from itertools import islice
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray

from sqlcrystal.bank.cards import CardStore
from sqlcrystal.bank.snapshots import revision_of
from sqlcrystal.bank.tables import StoredRecords, cards
from sqlcrystal.errors import BankError
from sqlcrystal.protocols import Embedder
from sqlcrystal.types import Card, CardId, CardKind, CardStatus, Retrieved

INDEXED_FROM = 100_000
"""Active cards of one database beyond which the index pays off."""
_BATCH = 2_000
_TIES = 20
_CARD = StoredRecords(Card)

_TABLE = """
CREATE TABLE IF NOT EXISTS card_vectors (
    embedder text COLLATE "C" NOT NULL,
    card text COLLATE "C" NOT NULL REFERENCES cards (id) ON DELETE CASCADE,
    database text COLLATE "C" NOT NULL,
    vector vector NOT NULL,
    PRIMARY KEY (embedder, card)
)"""
_vectors = sa.table("card_vectors", sa.column("embedder"), sa.column("card"), sa.column("database"))
_LAST_CARD = sa.select(sa.func.coalesce(sa.func.max(cards.c.seq), 0))


class _Ready(NamedTuple):
    """As of which revision a database was looked at, and whether it is searched here."""

    revision: int
    large: bool


_NEVER = _Ready(-1, large=False)


class Neighbours:
    """The vectors of a store's cards by one embedder, kept beside the cards and deleted with them."""

    def __init__(self, bank: CardStore, embedder: Embedder, *, indexed_from: int = INDEXED_FROM) -> None:
        """Make no vectors yet: they are made when a database is first asked for."""
        self._bank = bank
        self._backend = bank.backend
        self._embedder = embedder
        self._indexed_from = indexed_from
        self._ready: dict[str, _Ready] = {}
        self._lock = Lock()

    def covers(self, database: str) -> bool:
        """Tell whether to search this database here: it lies in PostgreSQL, and has more cards than the limit."""
        if self._backend.dialect != "postgresql" or not self._store_is_large():
            return False
        revision = revision_of(self._backend, database)
        if self._ready.get(database, _NEVER).revision < revision:
            self._look_again(database, revision)
        return self._ready[database].large

    def _store_is_large(self) -> bool:
        """Tell whether any database can be: cards are numbered, so that a question does not wait for a count."""
        ((last,),) = self._backend.rows(_LAST_CARD)
        return int(last) > self._indexed_from

    def _look_again(self, database: str, revision: int) -> None:
        """Count the cards of a database that has changed, and give those of a large one their vectors."""
        with self._lock:
            if self._ready.get(database, _NEVER).revision >= revision:  # another thread did while this one waited
                return
            large = self._count(database) > self._indexed_from
            if large:
                self._catch_up(database)
            self._ready[database] = _Ready(revision, large)

    def nearest(
        self, database: str, query: NDArray[np.float32], *, k: int, exclude: Collection[CardId] = ()
    ) -> list[Retrieved]:
        """Find the k nearest active cards of one database by cosine, best first."""
        size = len(query)
        # Embedder and database stand in the statement as they stand in the index, or the planner cannot match them.
        mine = " AND ".join(f"v.{column} = {self._literal(value)}" for column, value in self._key(database))
        distance = f"(v.vector::vector({size})) <#> CAST(:query AS vector({size}))"
        text = (
            f"SELECT c.document, {distance} AS distance FROM card_vectors v JOIN cards c ON c.id = v.card "
            f"WHERE {mine} AND c.status = '{CardStatus.ACTIVE.value}' AND NOT (c.id = ANY(:excluded)) "
            f"ORDER BY {distance} LIMIT :k"
        )
        with self._backend.reading() as connection:
            # A few more than asked for, so that cards as near as the last are told apart by their ids.
            values = {"query": _spelt(query), "excluded": list(exclude), "k": k + _TIES}
            rows = connection.execute(sa.text(text), values).all()
        neighbours = [Retrieved(_CARD.decode(row.document), round(-row.distance, 6) + 0.0) for row in rows]
        return sorted(neighbours, key=lambda neighbour: (-neighbour.score, neighbour.card.id))[:k]

    # ── keeping up with the cards ────────────────────────────────────────────────────────────────────────────────

    def _catch_up(self, database: str) -> None:
        """Give every active card its vector, and the database its index."""
        self._prepare()
        for batch in self._missing(database):
            rows = self._embedder.embed([card.question.text for card in batch])
            with self._backend.writing() as connection:
                driver: Any = connection.connection.driver_connection
                # Into a table without keys first: another process may give the same cards their vectors.
                connection.execute(sa.text("CREATE TEMP TABLE fresh (card text, vector vector) ON COMMIT DROP"))
                with driver.cursor() as cursor, cursor.copy("COPY fresh FROM STDIN") as copy:
                    for card, row in zip(batch, rows, strict=True):
                        copy.write_row((card.id, _spelt(row)))
                connection.execute(
                    sa.text(
                        "INSERT INTO card_vectors SELECT :embedder, f.card, :database, f.vector FROM fresh f "
                        "JOIN cards c ON c.id = f.card ON CONFLICT DO NOTHING"
                    ),
                    dict(self._key(database)),
                )
        self._build_index(database)

    def _prepare(self) -> None:
        try:
            with self._backend.writing() as connection:
                connection.execute(sa.text("CREATE EXTENSION IF NOT EXISTS vector WITH SCHEMA public"))
                connection.execute(sa.text(_TABLE))
        except BankError as error:
            raise BankError(f"{error}; a bank of this size needs the pgvector extension") from error

    def _build_index(self, database: str) -> None:
        key = dict(self._key(database))
        name = "card_vectors_" + hashlib.sha256(repr(sorted(key.items())).encode()).hexdigest()[:16]
        size = self._embedder.embed(["size"]).shape[1]
        mine = " AND ".join(f"{column} = {self._literal(value)}" for column, value in key.items())
        with self._backend.writing() as connection:
            connection.execute(sa.text("SET LOCAL maintenance_work_mem = '512MB'"))
            connection.execute(sa.text("SET LOCAL client_min_messages = error"))
            connection.execute(
                sa.text(
                    f"CREATE INDEX IF NOT EXISTS {name} ON card_vectors "
                    f"USING hnsw ((vector::vector({size})) vector_ip_ops) WHERE {mine}"
                )
            )

    def _missing(self, database: str) -> Iterator[list[Card]]:
        """Yield the active cards without a vector, some thousand at a time."""
        has = sa.exists().where(_vectors.c.embedder == self._embedder.digest, _vectors.c.card == cards.c.id)
        query = sa.select(cards.c.document).where(_served(database), ~has)
        with self._backend.snapshot() as connection:
            documents = iter(connection.scalars(query))
            while batch := [_CARD.decode(document) for document in islice(documents, _BATCH)]:
                yield batch

    def _count(self, database: str) -> int:
        ((count,),) = self._backend.rows(sa.select(sa.func.count()).select_from(cards).where(_served(database)))
        return int(count)

    def _key(self, database: str) -> Iterable[tuple[str, str]]:
        return (("embedder", self._embedder.digest), ("database", database))

    def _literal(self, value: str) -> str:
        quoted = sa.literal(value).compile(
            dialect=self._backend.engine.sqlalchemy.dialect, compile_kwargs={"literal_binds": True}
        )
        return str(quoted).replace(":", "\\:")


def _served(database: str) -> "sa.ColumnElement[bool]":
    """Choose the cards that are searched: a database's active ones, of questions."""
    active = cards.c.status == CardStatus.ACTIVE.value
    return sa.and_(cards.c.database == database, active, cards.c.kind == CardKind.QUESTION.value)


def _spelt(vector: NDArray[np.float32]) -> str:
    """Write a vector as pgvector reads it."""
    return "[" + ",".join(f"{number:.9g}" for number in vector.tolist()) + "]"
