"""Records as they look outside: declared once here, and used by --json, HTTP, MCP, the chat interface and the page."""

from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from sqlcrystal.bank import AnswerRecord, Change, Entry, Grant, ProposedDefinition, Scope, Verdict, Waiting
from sqlcrystal.bank.records import EVERY_DATABASE as EVERY_DATABASE  # noqa: PLC0414  (documents of tokens hold it)
from sqlcrystal.types import Card, CardId, CardStatus, Execution, Failure, Row, Rows

if TYPE_CHECKING:
    from sqlcrystal.telling.query import Told

DOES_NOT_RUN = "does not run"
"""All that is said of an error that may cite a value."""


def document(record: Struct) -> dict[str, Any]:
    """Write a record as JSON would hold it."""
    written: dict[str, Any] = msgspec.to_builtins(record)
    return written


# ── answers ──────────────────────────────────────────────────────────────────────────────────────────────────────────


class UsedCard(Struct, frozen=True, kw_only=True):
    """A card that stood in the prompt, the score that brought it up, and its verifier."""

    id: CardId
    score: float
    signal: str
    by: str
    question: str

    @classmethod
    def of(cls, card: Card, score: float) -> "UsedCard":
        """Describe a card as an answer shows it."""
        return cls(
            id=card.id, score=score, signal=card.admission.signal, by=card.admission.by, question=card.question.text
        )


class UsedDefinition(Struct, frozen=True, kw_only=True):
    """A definition that stood beside a question, under the name that the question called it by."""

    id: CardId
    name: str
    term: str
    sql: str
    by: str

    @classmethod
    def of(cls, card: Card, name: str) -> "UsedDefinition":
        """Describe a definition as an answer shows it."""
        given = card.definition
        sql = given.sql if given is not None else card.sql
        return cls(id=card.id, name=name, term=card.question.text, sql=sql, by=card.admission.by)


class Offer(Struct, frozen=True, kw_only=True):
    """A stored query with its literals exchanged for the question's, to be looked at and confirmed by its id."""

    id: str
    card: CardId
    sql: str
    exchanged: tuple[tuple[str, str], ...]
    words: str = ""
    """The work of the SQL, in one sentence."""


class PossibleReading(Struct, frozen=True, kw_only=True):
    """One of two readings of a question: SQL that ran without a sign of trouble, in words, with its rows."""

    number: int
    """The number it is picked by: 1 for the answer itself, 2 for the other."""
    sql: str
    words: str = ""
    columns: tuple[str, ...] = ()
    rows: tuple[Row, ...] = ()
    row_count: int = 0

    def limited(self, most: int) -> "PossibleReading":
        """Leave out the rows beyond so many; `row_count` tells that there are more."""
        return replace(self, rows=self.rows[:most])

    def withheld(self) -> "PossibleReading":
        """Leave out every cell."""
        return replace(self, columns=(), rows=(), row_count=min(self.row_count, 1))


class Followed(Struct, frozen=True, kw_only=True):
    """The answer before this one in its conversation, and the words that were asked; `question` is how they read."""

    id: str
    asked: str

    @classmethod
    def of(cls, record: AnswerRecord) -> "Followed | None":
        """Tell which answer a question follows; None for the first of a conversation."""
        return cls(id=record.follows, asked=record.asked) if record.follows else None


class PastAnswer(Struct, frozen=True, kw_only=True):
    """An answer as history lists it."""

    id: str
    database: str
    question: str
    at: str
    asked_by: str
    verdict: str
    """Empty while it waits for one."""
    follows: Followed | None = None

    @classmethod
    def of(cls, record: AnswerRecord, verdict: str) -> "PastAnswer":
        """Describe an answer that was kept."""
        return cls(
            id=record.id,
            database=record.database,
            question=record.question,
            at=record.at,
            asked_by=record.asked_by,
            verdict=verdict,
            follows=Followed.of(record),
        )


class WaitingAnswer(Struct, frozen=True, kw_only=True):
    """A question that waits for a verdict, with the reasons that make one useful."""

    id: str
    database: str
    question: str
    sql: str | None
    at: str
    asked: int
    spread: float
    conflict: float
    error: str
    audit: bool
    """Whether chance chose it to be judged: it waits until somebody does."""
    cards: int = 0
    """How many cards it used."""
    proposals: tuple[str, ...] = ()
    """Ids of the repairs that were proposed for it."""
    words: str = ""
    """The work of the SQL, in one sentence."""
    unasked: tuple[str, ...] = ()
    """Parts of the words that no word of the question asks for."""
    uses: int = 0
    """Runs of its query in the log that it was learned from; 0 for a person's question."""

    @classmethod
    def of(cls, waiting: Waiting, proposals: tuple[str, ...], told: "Told") -> "WaitingAnswer":
        """Describe an entry of the queue, with its SQL in words."""
        answer = waiting.answer
        return cls(
            id=answer.id,
            database=answer.database,
            question=answer.question,
            sql=answer.sql,
            at=answer.at,
            asked=waiting.asked,
            spread=waiting.spread,
            conflict=waiting.conflict,
            error=answer.error,
            audit=answer.audit,
            cards=len(answer.cards),
            proposals=proposals,
            words=told.words,
            unasked=told.unasked,
            uses=answer.learned.uses if answer.learned is not None else 0,
        )


# ── rows ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


class Result(Struct, frozen=True, kw_only=True):
    """The rows of a statement; `error` where it did not run."""

    columns: tuple[str, ...] = ()
    rows: tuple[Row, ...] = ()
    row_count: int = 0
    truncated: bool = False
    seconds: float = 0.0
    error: str = ""
    words: str = ""
    """The work of the statement, in one sentence; empty where no rule speaks of something in it."""

    @classmethod
    def of(cls, execution: Execution, words: str = "") -> "Result":
        """Describe an execution, failed or not."""
        if isinstance(execution, Failure):
            return cls(seconds=execution.seconds, error=f"{execution.kind}: {execution.message}", words=words)
        return cls(
            columns=execution.columns,
            rows=execution.rows,
            row_count=len(execution.rows),
            seconds=execution.seconds,
            words=words,
        )

    def limited(self, most: int) -> "Result":
        """Leave out the rows beyond so many; `row_count` and `truncated` tell that there are more."""
        return replace(self, rows=self.rows[:most], truncated=True) if len(self.rows) > most else self

    def withheld(self) -> "Result":
        """Leave out every cell, and the figures that a statement can make spell out a cell."""
        return Result(row_count=min(self.row_count, 1), error=DOES_NOT_RUN if self.error else "")


# ── verdicts ─────────────────────────────────────────────────────────────────────────────────────────────────────────


class Ruling(Struct, frozen=True, kw_only=True):
    """A verdict as it stands: on which answer, the card it made, and the cards it took out of service."""

    id: str
    database: str
    verdict: Verdict
    by: str
    signal: str
    card: CardId
    replaced: tuple[CardId, ...] = ()
    memory: bool = True
    """Whether the answer was given with memory: told only now, so that it could not sway the verdict."""
    new: bool = True
    """False when the same had been said before."""
    question: str = ""
    """The card's question, where a note made it another than the answer's."""


class Correction(Ruling, frozen=True, kw_only=True):
    """A person's own SQL, banked as theirs, with its rows."""

    sql: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    row_count: int
    words: str = ""
    """The work of the SQL, in one sentence."""
    unasked: tuple[str, ...] = ()
    """Parts of the words that no word of the question asks for."""

    @classmethod
    def of(cls, ruling: Ruling, sql: str, rows: Rows, told: "Told") -> "Correction":
        """Add to a ruling the SQL that a person gave, its words and its rows."""
        said = {name: getattr(ruling, name) for name in Ruling.__struct_fields__}
        return cls(
            **said,
            sql=sql,
            columns=rows.columns,
            rows=rows.rows,
            row_count=len(rows.rows),
            words=told.words,
            unasked=told.unasked,
        )

    def limited(self, most: int) -> "Correction":
        """Leave out the rows beyond so many."""
        return replace(self, rows=self.rows[:most])


class Proposed(Result, frozen=True, kw_only=True):
    """SQL that a repair came to, with its rows; no card until it is confirmed by its id."""

    id: str
    sql: str
    question: str = ""
    """The question that it answers, where the note made it another than the answer's."""

    @classmethod
    def returning(cls, result: Result, *, id: str, sql: str, question: str = "") -> "Proposed":
        """Describe a proposal with the rows it gives."""
        same = {name: getattr(result, name) for name in Result.__struct_fields__}
        return cls(id=id, sql=sql, question=question, **same)


class Rejection(Ruling, frozen=True, kw_only=True):
    """A rejection, and the other answer that a repair proposed, if it found one."""

    proposal: Proposed | None = None
    trouble: str = ""
    """Why the model could propose nothing."""

    @classmethod
    def of(cls, ruling: Ruling, proposal: Proposed | None = None, *, trouble: str = "") -> "Rejection":
        """Add to a ruling the answer that a repair proposed."""
        said = {name: getattr(ruling, name) for name in Ruling.__struct_fields__}
        return cls(**said, proposal=proposal, trouble=trouble)

    def withheld(self, sql: str, words: str, question: str) -> "Rejection":
        """Leave out every cell of the proposal, and give its SQL, its words and its question as they are kept."""
        if self.proposal is None:
            return self
        result = replace(self.proposal.withheld(), words=words)
        return replace(self, proposal=Proposed.returning(result, id=self.proposal.id, sql=sql, question=question))

    def limited(self, most: int) -> "Rejection":
        """Leave out the rows beyond so many."""
        if self.proposal is None or len(self.proposal.rows) <= most:
            return self
        return replace(self, proposal=replace(self.proposal, rows=self.proposal.rows[:most], truncated=True))


# ── cards ────────────────────────────────────────────────────────────────────────────────────────────────────────────


class CardDocument(Struct, frozen=True, kw_only=True):
    """A card as lists show it."""

    id: CardId
    database: str
    question: str
    sql: str
    status: CardStatus
    signal: str
    by: str
    at: str
    writer: str
    source: str
    tokens: int

    @classmethod
    def of(cls, card: Card) -> "CardDocument":
        """Describe a card."""
        return cls(**_listed(card))


class WholeCard(CardDocument, frozen=True, kw_only=True):
    """A card with its text, the first attempt it came from, and its history."""

    text: str
    first_attempt: str | None
    history: tuple[Change, ...]

    @classmethod
    def of_entry(cls, entry: Entry) -> "WholeCard":
        """Describe a card with everything the bank knows of it."""
        attempt = entry.episode.attempt.sql if entry.episode else None
        return cls(**_listed(entry.card), text=entry.card.text, first_attempt=attempt, history=entry.history)


def _listed(card: Card) -> dict[str, Any]:
    given = card.admission
    same = {name: getattr(card, name) for name in ("id", "database", "sql", "status", "writer", "source", "tokens")}
    return {**same, "question": card.question.text, "signal": given.signal, "by": given.by, "at": given.at}


class DefinitionDocument(Struct, frozen=True, kw_only=True):
    """A definition as lists show it."""

    id: CardId
    database: str
    term: str
    synonyms: tuple[str, ...]
    meaning: str
    sql: str
    """The expression."""
    tables: tuple[str, ...]
    status: CardStatus
    signal: str
    by: str
    at: str
    source: str

    @classmethod
    def of(cls, card: Card) -> "DefinitionDocument":
        """Describe a definition."""
        return cls(**_defined(card))


class WholeDefinition(DefinitionDocument, frozen=True, kw_only=True):
    """A definition with the line that prompts show, and its history."""

    text: str
    history: tuple[Change, ...]

    @classmethod
    def of_entry(cls, entry: Entry) -> "WholeDefinition":
        """Describe a definition with everything the bank knows of it."""
        return cls(**_defined(entry.card), text=entry.card.text, history=entry.history)


def _defined(card: Card) -> dict[str, Any]:
    given, definition = card.admission, card.definition
    if definition is None:
        raise TypeError(f"card {card.id} is no definition")
    same = {name: getattr(definition, name) for name in ("term", "synonyms", "meaning", "sql", "tables")}
    own = {name: getattr(card, name) for name in ("id", "database", "status", "source")}
    return {**own, **same, "signal": given.signal, "by": given.by, "at": given.at}


class DefinitionProposal(Struct, frozen=True, kw_only=True):
    """A definition that waits for a person, with its evidence; its term may be empty, for the person to name."""

    id: str
    database: str
    term: str
    synonyms: tuple[str, ...]
    meaning: str
    sql: str
    tables: tuple[str, ...]
    origin: str
    """`filter` where verified queries share it, else `dbt` or `comment`."""
    place: str
    at: str
    cards: tuple[CardId, ...]
    """The cards whose queries share it."""
    questions: tuple[str, ...]
    """The questions of those cards, none of which spells it out."""

    @classmethod
    def of(cls, proposed: ProposedDefinition, questions: tuple[str, ...]) -> "DefinitionProposal":
        """Describe a proposal with the questions behind it."""
        same = {name: getattr(proposed, name) for name in ("id", "database", "origin", "place", "at")}
        said = {name: getattr(proposed.definition, name) for name in ("term", "synonyms", "meaning", "sql", "tables")}
        return cls(**same, **said, cards=tuple(use.card for use in proposed.cards), questions=questions)


class DefinitionsImported(Struct, frozen=True, kw_only=True):
    """The count of definitions that came in, that replaced an earlier version, and that were the same already."""

    added: int
    changed: int
    unchanged: int
    elsewhere: int
    """Rows of the file that name another database, which were left out."""


class Revoked(Struct, frozen=True, kw_only=True):
    """The cards that a revocation took out, and the answers that had leaned on them."""

    revoked: tuple[CardId, ...]
    leaned: tuple[PastAnswer, ...]


# ── databases and tokens ─────────────────────────────────────────────────────────────────────────────────────────────


class DatabaseState(Struct, frozen=True, kw_only=True):
    """One database that can be asked: its engine and cards, how it is served, or why it cannot be reached."""

    name: str
    dialect: str = ""
    cards: int = 0
    error: str = ""
    scopes: tuple[Scope, ...] = ()
    """The caller's own."""
    values: str = "allowed"
    replay: bool = False
    hold_out: float = 0.0
    place: str = ""
    """Told to those who manage it, without a password."""


class TokenDocument(Struct, frozen=True, kw_only=True):
    """A token without the token."""

    id: str
    person: str
    scopes: tuple[tuple[str, Scope], ...]
    made_at: str
    made_by: str
    ends_at: str
    revoked_at: str
    state: str

    @classmethod
    def of(cls, grant: Grant) -> "TokenDocument":
        """Describe a token."""
        return cls(**_granted(grant))


class IssuedToken(TokenDocument, frozen=True, kw_only=True):
    """A new token, shown this once."""

    token: str

    @classmethod
    def issued(cls, token: str, grant: Grant) -> "IssuedToken":
        """Describe a token with the token."""
        return cls(**_granted(grant), token=token)


def _granted(grant: Grant) -> dict[str, Any]:
    same = ("id", "person", "made_at", "made_by", "ends_at", "revoked_at", "state")
    return {**{name: getattr(grant, name) for name in same}, "scopes": tuple(sorted(grant.scopes))}


class SchemaDocument(Struct, frozen=True, kw_only=True, rename={"ddl": "schema"}):
    """A database's tables as prompts show them."""

    database: str
    ddl: str
