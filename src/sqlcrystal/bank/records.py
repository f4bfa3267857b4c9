"""The records that the store keeps beside cards: changes, answers, verdicts, tokens and locations of databases."""

import unicodedata
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from msgspec import Struct

from sqlcrystal.errors import ConfigError
from sqlcrystal.timestamps import timestamp
from sqlcrystal.types import Card, CardId, Definition, Episode, Row

# ── cards ────────────────────────────────────────────────────────────────────────────────────────────────────────────


class Change(Struct, frozen=True, kw_only=True):
    """One thing done to a card: by whom, when, and why."""

    at: str
    by: str
    action: str
    before: str = ""
    after: str = ""
    reason: str = ""
    """For people to read; no rule looks at it."""
    cause: str = ""
    """The id of the card that took this one's place, of the rejected answer, or of the verdict that was undone."""


class Entry(Struct, frozen=True, kw_only=True):
    """A card with everything the bank knows of it; one line of an export."""

    card: Card
    episode: Episode | None = None
    history: tuple[Change, ...] = ()


class Added(Struct, frozen=True):
    """The id a card is kept under, and whether it was new to the bank."""

    id: CardId
    new: bool


FORGOTTEN = "(forgotten)"
"""Stands where words were taken out of a record."""

# ── answers ──────────────────────────────────────────────────────────────────────────────────────────────────────────


class CardUse(Struct, frozen=True):
    """A card that stood in an answer's prompt, with the score that brought it up."""

    card: CardId
    score: float


class TermUse(Struct, frozen=True):
    """A definition that stood beside an answer's question, and the name that the question called it by."""

    card: CardId
    name: str


LEARNED = "log"
"""The origin of an answer whose question nobody asked."""


class LearnedFrom(Struct, frozen=True, kw_only=True):
    """The query of a log behind an answer that nobody asked for, and how its question was found."""

    uses: int
    """Runs of all queries of this shape."""
    places: tuple[str, ...] = ()
    """The first places in the log where it stood."""
    tries: int = 1
    """The wordings it took until the question led back to the query's rows."""
    model: str = ""


class AnswerRecord(Struct, frozen=True, kw_only=True):
    """One answer as it was given; `rows` is None where values are not to be kept."""

    id: str
    database: str
    question: str
    at: str
    asked_by: str
    evidence: str = ""
    sql: str | None = None
    fingerprint: str = ""
    """Of the schema the answer was given over."""
    columns: tuple[str, ...] = ()
    rows: tuple[Row, ...] | None = None
    row_count: int = 0
    result_digest: str = ""
    """Tells whether two answers gave the same rows, also where the rows are not kept."""
    cards: tuple[CardUse, ...] = ()
    definitions: tuple[TermUse, ...] = ()
    memory: bool = True
    """False in the hold-out share."""
    share: float = 0.0
    """The chance with which it was to be answered without memory; 0 where nothing was drawn."""
    audit: bool = False
    """Whether chance chose it to be judged: the first answer to a question that was drawn for the day."""
    trouble: bool | None = None
    """Whether it showed a sign of trouble when it was given; None where that was not kept."""
    replayed: bool = False
    twin_of: str = ""
    """The answer that was shown instead of this one, where both arms answered."""
    repair_of: str = ""
    """The rejected answer that this one repairs."""
    follows: str = ""
    """The answer before it in its conversation; `question` then stands alone."""
    asked: str = ""
    """The words of a question that follows another."""
    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    seconds: float = 0.0
    spread: float = 0.0
    """How much samples of this question disagreed, from 0 to 1."""
    conflict: float = 0.0
    """The score of the nearest card whose result disagrees with this answer's; 0 when none does."""
    confidence: float | None = None
    """The probability of being right that it was given with; None where nothing was worked out, as for a replay."""
    traits: tuple[float, ...] = ()
    """The facts its confidence rests on (`measurement.confidence.TRAITS`), for a team's own verdicts to refit it."""
    other: str = ""
    """The proposal that holds its second reading, where it was given as two."""
    error: str = ""
    learned: LearnedFrom | None = None

    @property
    def origin(self) -> str:
        """Tell where its question comes from: nothing for a person's."""
        return LEARNED if self.learned is not None else ""

    @property
    def doubt(self) -> float:
        """Turn the confidence round, for the queue; nothing is doubted that has none."""
        return 0.0 if self.confidence is None else 1 - self.confidence


class Verdict(StrEnum):
    """A person's, rule's or check's word on an answer; the last one stands."""

    CONFIRMED = "confirmed"
    REJECTED = "rejected"
    CORRECTED = "corrected"
    UNDONE = "undone"
    REVOKED = "revoked"


JUDGED = {Verdict.CONFIRMED: True, Verdict.REJECTED: False, Verdict.CORRECTED: False}
"""The verdicts that say whether an answer was right; the others take a verdict back."""


class Decision(Struct, frozen=True, kw_only=True):
    """One verdict, kept for good: by whom, when, by which signal, and which decision it replaced."""

    id: str
    database: str
    at: str
    by: str
    signal: str
    verdict: Verdict
    answer: str = ""
    proposal: str = ""
    card: str = ""
    """The card it made, or took out of service."""
    replaced: str = ""
    sql: str = ""
    note: str = ""

    @property
    def made_card(self) -> bool:
        """Tell whether its card was made by it, and not taken out."""
        return self.verdict in (Verdict.CONFIRMED, Verdict.CORRECTED)


class Decided(Struct, frozen=True):
    """The decision that stands, whether it was new (the same verdict again changes nothing), and what stood before."""

    decision: Decision
    new: bool
    before: Decision | None = None


class Proposal(Struct, frozen=True, kw_only=True):
    """SQL that a repair came to, for a person to confirm; no card yet."""

    id: str
    database: str
    answer: str
    at: str
    sql: str
    note: str = ""
    question: str = ""
    """The question that it answers, where a note made it another than the answer's."""
    episode: Episode | None = None


class ProposedDefinition(Struct, frozen=True, kw_only=True):
    """A definition that nobody vouched for yet, and where it comes from; no card."""

    id: str
    database: str
    at: str
    definition: Definition
    """Its term is a suggestion, or empty where nothing suggests one."""
    origin: str
    """`filter` where verified queries share it, else `dbt` or `comment`."""
    place: str = ""
    """The file or column that it was read from."""
    cards: tuple[CardUse, ...] = ()
    """The cards whose queries share it."""


# ── aggregates over many answers ─────────────────────────────────────────────────────────────────────────────────────


class LearnedShape(Struct, frozen=True, kw_only=True):
    """The outcome of one shape of a log's queries; it holds no value of theirs."""

    shape: str
    database: str
    at: str
    outcome: str
    answer: str = ""


class Waiting(Struct, frozen=True, kw_only=True):
    """A question without a verdict: its latest answer, how often it was asked, and how useful a verdict would be."""

    answer: AnswerRecord
    asked: int
    spread: float
    conflict: float


class Drawn(Struct, frozen=True, kw_only=True):
    """Questions that chance gave to one arm on one day each, counted: all of a kind, and those with a verdict."""

    share: float
    """The held-out share."""
    memory: bool
    both: bool
    """Whether the other arm answered as well."""
    settled: bool
    """Whether the other arm then gave the same rows."""
    trouble: bool | None
    asked: int
    judged: int


class Judged(Struct, frozen=True, kw_only=True):
    """One answer with a verdict that stands: the raw material of live measurement."""

    answer: str
    database: str
    question_key: str
    at: str
    memory: bool
    share: float
    """The chance of being answered without memory; 0 where the arm was not drawn."""
    replayed: bool
    right: bool
    audit: bool = False
    """Whether chance chose it to be judged."""
    settled: bool | None = None
    """Whether the other arm's answer, not shown, gave the same rows; None where it was not asked."""


class Traffic(Struct, frozen=True, kw_only=True):
    """One arm of one database in service: how much was asked, judged and spent."""

    database: str
    memory: bool
    answers: int
    judged: int
    right: int
    replayed: int
    calls: int
    prompt_tokens: int
    completion_tokens: int
    seconds: float


class CardEffect(Struct, frozen=True, kw_only=True):
    """The fate of the answers that a card stood in."""

    card: CardId
    used: int
    right: int
    wrong: int


# ── tokens ───────────────────────────────────────────────────────────────────────────────────────────────────────────

EVERY_DATABASE = "*"
MOST_DAYS = 3650
"""How long a token may stand that ends at all."""


class Scope(StrEnum):
    """The kinds of action that a token can allow."""

    ASK = "ask"
    JUDGE = "judge"
    MANAGE = "manage"


class Grant(Struct, frozen=True, kw_only=True):
    """A token's holder and rights: pairs of a database, or * for every one, and a scope."""

    id: str
    person: str
    scopes: frozenset[tuple[str, Scope]]
    made_at: str
    made_by: str
    ends_at: str = ""
    revoked_at: str = ""

    @property
    def state(self) -> str:
        """Tell whether it stands now, was revoked, or its time is over."""
        if self.revoked_at:
            return "revoked"
        return "ended" if self.ends_at and self.ends_at <= timestamp() else "stands"

    def allows(self, database: str, scope: Scope) -> bool:
        """Tell whether the holder may do this to that database."""
        return (database, scope) in self.scopes or (EVERY_DATABASE, scope) in self.scopes


def end_after(days: float | None) -> str:
    """Name the moment a token ends that stands for so many days from now; nothing for one that does not end."""
    if days is None:
        return ""
    if not 0 < days <= MOST_DAYS:
        raise ConfigError(f"days: more than 0 and at most {MOST_DAYS}, not {days:g}")
    return timestamp(datetime.now(UTC) + timedelta(days=days))


# ── databases and questions ──────────────────────────────────────────────────────────────────────────────────────────


class DatabaseLocation(Struct, frozen=True, kw_only=True):
    """A database by its name in the store, its URL without a password, and the model it was last asked with."""

    database: str
    url: str
    model: str = ""


class Experiment(Struct, frozen=True, kw_only=True):
    """The division of a database's questions to compare memory with none; `by` is empty where the settings say so."""

    database: str
    hold_out: float = 0.0
    both_arms: bool = False
    by: str = ""
    at: str = ""


def question_key(text: str) -> str:
    """Reduce a question to the words that tell it from others: case, layout, Unicode form and the final mark go."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return " ".join(folded.split()).rstrip(" ?.!;:")
