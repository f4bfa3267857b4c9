"""The records of the system, in the order they are made; each names or holds its predecessor.

Question → Attempt → Episode → Admitted | Rejected → Card; measuring adds Score → Estimate.
All are frozen msgspec structs, so they are hashable where their fields are, and round-trip through JSON exactly.
Those a bank holds by the hundred thousand are kept out of the garbage collector (gc=False): they cannot form cycles.
"""

from enum import StrEnum
from typing import NewType, TypeAlias

from msgspec import UNSET, Struct, UnsetType

CardId = NewType("CardId", str)

Cell: TypeAlias = bool | int | float | str | None
"""A value of a result; adapters turn BLOBs into x'…' text, decimals into numbers, dates into ISO text."""
Row: TypeAlias = tuple[Cell, ...]


class Question(Struct, frozen=True, kw_only=True, gc=False):
    """A question of a person to one database; holds no gold."""

    id: str
    database: str
    text: str
    evidence: str = ""
    difficulty: str = ""

    @property
    def key(self) -> tuple[str, str]:
        """Tell it from every other question of its benchmark."""
        return self.database, self.id


# ── executing SQL ────────────────────────────────────────────────────────────────────────────────────────────────────


class FailureKind(StrEnum):
    """The reason that a statement gave no rows."""

    REFUSED = "refused"
    SYNTAX = "syntax"
    MISSING = "missing object"
    TIMEOUT = "timeout"
    TOO_LARGE = "too large"
    ENGINE = "engine"


class Rows(Struct, frozen=True, tag="rows"):
    """The result of a statement."""

    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    seconds: float = 0.0


class Failure(Struct, frozen=True, tag="failure"):
    """The failure of a statement that returned nothing: a finding, not an exception."""

    kind: FailureKind
    message: str
    seconds: float = 0.0


Execution: TypeAlias = Rows | Failure


# ── what a database holds ────────────────────────────────────────────────────────────────────────────────────────────


class Column(Struct, frozen=True, kw_only=True, gc=False):
    """A column as its database declares it; the comment is its owner's."""

    name: str
    type: str = ""
    comment: str = ""


class Table(Struct, frozen=True, kw_only=True):
    """A table, a view, or a type that tables use; `definition` is its DDL as `schema()` shows it."""

    name: str
    kind: str = "table"
    columns: tuple[Column, ...] = ()
    definition: str = ""
    comment: str = ""
    references: tuple[str, ...] = ()
    """The tables that its foreign keys, or a view's query, name."""


# ── talking to a model ───────────────────────────────────────────────────────────────────────────────────────────────


class Message(Struct, frozen=True):
    """One turn of a chat."""

    role: str
    content: str


class Sampling(Struct, frozen=True, kw_only=True):
    """The way a reply is drawn; `index` tells apart several samples of one prompt."""

    temperature: float = 0.0
    max_tokens: int = 2048
    index: int = 0


class Completion(Struct, frozen=True, kw_only=True):
    """A model's reply, and its cost."""

    text: str
    finish_reason: str = "stop"
    prompt_tokens: int = 0
    completion_tokens: int = 0
    seconds: float = 0.0
    runtime: str = ""
    """The program that ran the weights, its version and its number format; empty where the endpoint does not say."""


class Call(Struct, frozen=True, kw_only=True):
    """One request with its reply; `purpose` is read, solve, probe, revise, sample, explore, word or capsule."""

    purpose: str
    messages: tuple[Message, ...]
    sampling: Sampling
    completion: Completion


# ── from attempt to card ─────────────────────────────────────────────────────────────────────────────────────────────


class View(Struct, frozen=True, kw_only=True):
    """One of several answers to a question: its SQL, whether no sign of trouble shows, and the number of its result."""

    sql: str | None
    sound: bool
    result: int
    """Views with the same number returned the same rows; a view that failed has a number of its own."""


class Attempt(Struct, frozen=True, kw_only=True):
    """The solver's first answer with every call it took; `sql` is None when the reply held no SQL."""

    question: Question
    calls: tuple[Call, ...]
    sql: str | None
    cards: tuple[CardId, ...] = ()
    views: tuple[View, ...] = ()
    """All answers that it was chosen from, in the order they were asked for; empty where only one was."""

    @property
    def call(self) -> Call:
        """Give the call that was answered with the SQL."""
        return self.calls[-1]


class Probe(Struct, frozen=True):
    """One read-only look at the database, with its result."""

    sql: str
    execution: Execution


class Round(Struct, frozen=True, kw_only=True):
    """One unit of the repair budget: its calls, probes and candidate, and whether the check accepted that."""

    calls: tuple[Call, ...]
    sql: str | None
    execution: Execution | None = None
    probes: tuple[Probe, ...] = ()
    accepted: bool = False


class Episode(Struct, frozen=True, kw_only=True):
    """A question, its first attempt, the accepted candidate and the trace: e = (q, ŷ, y⁺, τ)."""

    attempt: Attempt
    source: str
    sql: str
    rounds: tuple[Round, ...] = ()

    @property
    def question(self) -> Question:
        """Give the question this episode is about."""
        return self.attempt.question


class Effort(Struct, frozen=True, kw_only=True):
    """All that a source made of an attempt: every round it spent, and the episode if a candidate was accepted."""

    attempt: Attempt
    source: str
    right_at_once: bool = False
    rounds: tuple[Round, ...] = ()
    episode: Episode | None = None

    @property
    def last_candidate(self) -> Episode | None:
        """Give the episode; or else the end of a spent budget, for a verifier to turn away or its noise to let in."""
        last = next((spent.sql for spent in reversed(self.rounds) if spent.sql is not None), None)
        if self.episode is not None or last is None:
            return self.episode
        return Episode(attempt=self.attempt, source=self.source, sql=last, rounds=self.rounds)


_PERSONAL_SIGNALS = frozenset({"user", "edited"})


def is_personal(signal: str) -> bool:
    """Tell whether a person gave this signal, which no rule, service or engine overrules."""
    return signal in _PERSONAL_SIGNALS


class Admission(Struct, frozen=True, kw_only=True, gc=False):
    """The signal that admitted an episode, its giver, and the time (ISO 8601, UTC)."""

    signal: str
    by: str
    at: str
    detail: str = ""


ADMISSION_SEAL = object()
"""The stamp of `admission` on an Admitted; no other module may touch it (tests/test_architecture.py looks)."""


class Admitted(Struct, frozen=True, kw_only=True):
    """An episode a verification signal let through; the only thing a writer accepts."""

    episode: Episode
    admission: Admission
    seal: object

    def __post_init__(self) -> None:
        """Refuse to exist without the seal that only admission holds."""
        if self.seal is not ADMISSION_SEAL:
            raise TypeError("only admission can make an Admitted")


class Rejected(Struct, frozen=True, kw_only=True):
    """An episode the signal turned away, and why; no writer accepts it."""

    episode: Episode
    signal: str
    reason: str


class CardStatus(StrEnum):
    """The state of a card: whether retrieval may serve it."""

    ACTIVE = "active"
    DISABLED = "disabled"
    QUARANTINED = "quarantined"


class Definition(Struct, frozen=True, kw_only=True, gc=False):
    """A term of those who ask a database: what it means in words, and the SQL expression that says the same."""

    term: str
    sql: str
    """An expression over the tables, such as `status = 'A' AND closed IS NULL`; no whole query."""
    tables: tuple[str, ...]
    synonyms: tuple[str, ...] = ()
    meaning: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """Give every name that a question may call it by."""
        return (self.term, *self.synonyms)


class CardKind(StrEnum):
    """The two kinds of card: a solved question, and a definition of a term."""

    QUESTION = "question"
    DEFINITION = "definition"


class Card(Struct, frozen=True, kw_only=True, gc=False):
    """An episode as later questions see it: `text`, rendered by one writer, with its provenance.

    A definition is a card of another kind: its question is the term, and its SQL asks for the expression.
    """

    id: CardId
    database: str
    question: Question
    sql: str
    text: str
    writer: str
    source: str
    admission: Admission
    fingerprint: str
    tokens: int
    status: CardStatus = CardStatus.ACTIVE
    defined: Definition | UnsetType = UNSET
    """Left out of the document of a question's card, which is then the one that earlier versions wrote."""

    @property
    def definition(self) -> Definition | None:
        """Give the definition that this card is; None for a question's."""
        return None if self.defined is UNSET else self.defined

    @property
    def kind(self) -> CardKind:
        """Tell which kind of card it is."""
        return CardKind.QUESTION if self.definition is None else CardKind.DEFINITION


class Written(Struct, frozen=True):
    """A card, and the model calls it took to write it."""

    card: Card
    calls: tuple[Call, ...] = ()


class Retrieved(Struct, frozen=True):
    """A card with the score that brought it up."""

    card: Card
    score: float
