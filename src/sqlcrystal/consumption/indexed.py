"""Dense retrieval for banks of any size: exact in memory, and by PostgreSQL's index where a database outgrows that."""

from collections.abc import Sequence
from threading import Lock

from sqlcrystal.bank import CardStore
from sqlcrystal.bank.neighbours import INDEXED_FROM, Neighbours
from sqlcrystal.consumption.dense import Dense, Vectors
from sqlcrystal.consumption.retriever import Excluded, checked_width, excluded_ids
from sqlcrystal.protocols import Bank, Embedder
from sqlcrystal.types import Question, Retrieved


class Indexed:
    """Same database, nearest questions first; approximate only beyond `indexed_from` cards of one database."""

    def __init__(self, embedder: Embedder, *, indexed_from: int = INDEXED_FROM) -> None:
        """Share one memory of vectors between both ways."""
        self._vectors = Vectors.of(embedder)
        self._dense = Dense(self._vectors)
        self._indexed_from = indexed_from
        self._neighbours: tuple[CardStore, Neighbours] | None = None
        self._lock = Lock()

    def retrieve(self, question: Question, bank: Bank, *, k: int, exclude: Excluded = None) -> Sequence[Retrieved]:
        """Bring at most k cards of the question's database, nearest first."""
        if not checked_width(k) or not isinstance(bank, CardStore):
            return self._dense.retrieve(question, bank, k=k, exclude=exclude)
        if not bank.serves(question.database):
            return []
        # Before all cards are read, so that trouble with the embedder is told at once.
        query = self._vectors.embed([question.text])[0]
        neighbours = self._neighbours_of(bank)
        if not neighbours.covers(question.database):
            return self._dense.retrieve(question, bank, k=k, exclude=exclude)
        return neighbours.nearest(question.database, query, k=k, exclude=excluded_ids(exclude))

    def _neighbours_of(self, bank: CardStore) -> Neighbours:
        with self._lock:
            if self._neighbours is None or self._neighbours[0] is not bank:
                self._neighbours = (bank, Neighbours(bank, self._vectors, indexed_from=self._indexed_from))
            return self._neighbours[1]
