"""The facts that a retriever tells of itself, and the things it may need to be made."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import ClassVar, NamedTuple, Self, TypeAlias

from sqlcrystal.protocols import Bank, Embedder
from sqlcrystal.types import CardId, Question, Retrieved

Excluded: TypeAlias = CardId | frozenset[CardId] | None


class Reach(NamedTuple):
    """The embedder, the schemas and the seed of a study or a service; the embedder is opened only when it is asked."""

    embedder: Callable[[], Embedder]
    schema_of: Callable[[str], str]
    seed: int = 0


class NamedRetriever(ABC):
    """A retriever that a study or a team's settings choose by name."""

    name: ClassVar[str]
    summary: ClassVar[str]
    """The cards it brings in a few words, for reports."""
    seeded: ClassVar[bool] = False
    """True if it draws by the seed of its reach, so that each seed needs one of its own."""
    crosses_databases: ClassVar[bool] = False
    """True if it brings cards of other databases: a control for studies, which no service may use."""

    @classmethod
    @abstractmethod
    def of(cls, reach: Reach) -> Self:
        """Make the retriever with what it needs of the reach."""

    @abstractmethod
    def retrieve(self, question: Question, bank: Bank, *, k: int, exclude: Excluded = None) -> Sequence[Retrieved]:
        """Bring at most k cards, best first; ties break by card id; excluded cards never come."""
