"""The two controls that cross databases, and say so by their names; no other retriever does."""

from collections.abc import Callable, Sequence

from sqlcrystal.consumption.dense import Dense
from sqlcrystal.consumption.selection import Excluded, checked_width
from sqlcrystal.consumption.vectors import Vectors
from sqlcrystal.protocols import Bank, Embedder
from sqlcrystal.types import Question, Retrieved


class Foreign:
    """Every database but the question's own, pooled and ranked by the cosine of question to question."""

    def __init__(self, embedder: Embedder) -> None:
        """Search each database by its own index, and merge."""
        self._dense = Dense(embedder)

    def retrieve(self, question: Question, bank: Bank, *, k: int, exclude: Excluded = None) -> Sequence[Retrieved]:
        """At most k cards of the other databases, nearest first."""
        neighbours: list[Retrieved] = []
        for database in bank.databases():
            if database != question.database:
                neighbours += self._dense.retrieve_from(database, question, bank, k=k, exclude=exclude)
        neighbours.sort(key=lambda retrieved: (-retrieved.score, retrieved.card.id))
        return neighbours[: checked_width(k)]


class SchemaSimilar:
    """The one other database whose schema is nearest by the cosine of its DDL, ranked by question to question."""

    def __init__(self, embedder: Embedder, schema_of: Callable[[str], str]) -> None:
        """`schema_of` gives the DDL of a database by its name."""
        self._vectors = Vectors.of(embedder)
        self._dense = Dense(self._vectors)
        self._schema_of = schema_of

    def neighbour(self, database: str, bank: Bank) -> tuple[str, float] | None:
        """The nearest other database that has cards, and the cosine; ties go to the first name."""
        others = sorted(name for name in bank.databases() if name != database)
        if not others:
            return None
        own, *rest = self._vectors.embed([self._schema_of(name) for name in (database, *others)]).astype(float)
        cosines = [round(float(row @ own), 6) for row in rest]
        best = max(range(len(others)), key=lambda place: (cosines[place], -place))
        return others[best], cosines[best]

    def retrieve(self, question: Question, bank: Bank, *, k: int, exclude: Excluded = None) -> Sequence[Retrieved]:
        """At most k cards of the nearest other database, nearest question first."""
        nearest = self.neighbour(question.database, bank)
        if not checked_width(k) or nearest is None:
            return []
        return self._dense.retrieve_from(nearest[0], question, bank, k=k, exclude=exclude)
