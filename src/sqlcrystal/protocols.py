"""The ports and the stages on one page, each with its promise to the next."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol, TypeAlias, runtime_checkable

from sqlcrystal.types import (
    Admitted,
    Attempt,
    Card,
    CardId,
    Completion,
    Effort,
    Episode,
    Execution,
    Message,
    Question,
    Rejected,
    Retrieved,
    Sampling,
    Table,
    Written,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Check: TypeAlias = Callable[[str], bool]
"""The one bit a source may see: is this SQL right? It never carries gold."""


class Database(Protocol):
    """Port: one database, read-only."""

    name: str
    dialect: str

    def schema(self) -> str:
        """Give faithful CREATE TABLE DDL with declared foreign keys and no sampled values."""
        ...

    def fingerprint(self) -> str:
        """Give a digest that changes exactly when the schema changes."""
        ...

    def execute(self, sql: str, *, timeout: float = 30.0, max_rows: int = 100_000) -> Execution:
        """Run one guarded, read-only statement; bad SQL comes back as a Failure."""
        ...

    def close(self) -> None:
        """Release every connection."""
        ...


@runtime_checkable
class Described(Protocol):
    """Port: a database that tells its tables one by one, with their owners' comments."""

    def tables(self) -> Sequence[Table]:
        """Give every type, table and view, in the order `schema()` shows them."""
        ...


class LanguageModel(Protocol):
    """Port: a chat model; `digest` names weights and endpoint so that recordings never mix models."""

    name: str
    digest: str
    slots: int
    """The number of calls it serves at once; more of them wait."""

    def chat(self, messages: Sequence[Message], *, sampling: Sampling) -> Completion:
        """Give one reply, or a ModelError; a model that says nothing has answered, with an empty text."""
        ...

    def close(self) -> None:
        """Release weights, workers and connections, by the opener of the model."""
        ...


class Embedder(Protocol):
    """Port: texts to vectors."""

    name: str

    @property
    def digest(self) -> str:
        """Name the weights."""
        ...

    def embed(self, texts: Sequence[str]) -> "NDArray[np.float32]":
        """Embed each text as one L2-normalised row."""
        ...

    def close(self) -> None:
        """Release weights, files and connections, by the opener of the embedder."""
        ...


class Solver(Protocol):
    """Stage: answers a question in one shot."""

    def shown(self, question: Question) -> Database:
        """Give the database as prompts show it, for this question and for the repair of its answer."""
        ...

    def solve(self, question: Question, cards: Sequence[Card] = ()) -> Attempt:
        """Make one attempt, with the cards in its prompt."""
        ...


class Source(Protocol):
    """Stage: acquisition."""

    @property
    def name(self) -> str:
        """Give the arm's spelling: T1 … T4, T3-look, success, union."""
        ...

    def acquire(self, attempt: Attempt, *, right: bool, accept: Check) -> Effort:
        """Make what it can of an attempt that is right or wrong; an episode only for a candidate that is accepted."""
        ...

    def calls_in(self, rounds: float) -> float:
        """Estimate the model calls of so many rounds, for plans."""
        ...


class Verifier(Protocol):
    """Stage: admission."""

    def verify(self, episode: Episode) -> Admitted | Rejected:
        """Let the episode through, or say why not."""
        ...


class Writer(Protocol):
    """Stage: writing; sees the episode, never gold."""

    def write(self, admitted: Admitted) -> Written:
        """Turn an admitted episode into a card."""
        ...


class Bank(Protocol):
    """The cards of every database, kept apart."""

    def databases(self) -> Sequence[str]:
        """Give every database that has a card."""
        ...

    def cards(self, database: str) -> Sequence[Card]:
        """Give the active cards of one database, in the order they were banked."""
        ...


class Retriever(Protocol):
    """Stage: consumption."""

    def retrieve(
        self, question: Question, bank: Bank, *, k: int, exclude: CardId | frozenset[CardId] | None = None
    ) -> Sequence[Retrieved]:
        """Bring at most k cards, best first; ties break by card id; excluded cards never come."""
        ...


class Reporter:
    """Is told how far the run of a study is; this one passes nothing on."""

    def start(self, total: int) -> None:
        """Say how many units lie ahead."""

    def step(self, label: str) -> None:
        """Say that one more unit of the named batch is done."""

    def note(self, text: str) -> None:
        """Say something that is worth a line."""
