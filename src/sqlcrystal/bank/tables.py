"""Tables of a store, the same on SQLite and PostgreSQL, and the JSON documents in them, found by id, written once."""

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec
import sqlalchemy as sa
from sqlalchemy.dialects import sqlite
from sqlalchemy.types import TypeDecorator, TypeEngine

from sqlcrystal.bank.records import Entry
from sqlcrystal.errors import BankError
from sqlcrystal.types import Episode

if TYPE_CHECKING:
    from sqlalchemy.dialects import postgresql

    from sqlcrystal.bank.backend import Backend

# PostgreSQL's text cannot hold NUL, which JSON and SQLite can: it is spelt with a private code point.
_MARK = "\ue000"
_SPELT = {"\x00": f"{_MARK}0", _MARK: f"{_MARK}1"}
_MEANT = {spelt: meant for meant, spelt in _SPELT.items()}
_TO_SPELL = re.compile(f"[\x00{_MARK}]")
_TO_READ = re.compile(f"{_MARK}[01]")


class AnyText(TypeDecorator[str]):
    """Text compared by its code points: PostgreSQL's own order depends on how the server was set up."""

    impl = sa.Text
    cache_ok = True

    def load_dialect_impl(self, dialect: sa.Dialect) -> TypeEngine[str]:
        """Pin the collation where there is a choice."""
        return dialect.type_descriptor(sa.Text(collation="C") if dialect.name == "postgresql" else sa.Text())

    def process_bind_param(self, value: str | None, dialect: sa.Dialect) -> str | None:
        """Spell what PostgreSQL cannot hold."""
        if value is None or dialect.name != "postgresql":
            return value
        return _TO_SPELL.sub(lambda match: _SPELT[match[0]], value)

    def process_result_value(self, value: str | None, dialect: sa.Dialect) -> str | None:
        """Read it again."""
        if value is None or dialect.name != "postgresql" or _MARK not in value:
            return value
        return _TO_READ.sub(lambda match: _MEANT[match[0]], value)


metadata = sa.MetaData()

Number = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def _text(name: str, *, default: str | None = None) -> "sa.Column[str]":
    return sa.Column(name, AnyText(), nullable=False, server_default=default)


def _number(name: str) -> "sa.Column[int]":
    return sa.Column(name, sa.BigInteger(), nullable=False, server_default="0")


def _measure(name: str) -> "sa.Column[float]":
    return sa.Column(name, sa.Double(), nullable=False, server_default="0")


def _sequence() -> "sa.Column[int]":
    return sa.Column("seq", Number, primary_key=True, autoincrement=True)


# ── cards ────────────────────────────────────────────────────────────────────────────────────────────────────────────

episodes = sa.Table(
    "episodes",
    metadata,
    sa.Column("digest", AnyText(), primary_key=True),
    sa.Column("document", sa.LargeBinary(), nullable=False),
)

cards = sa.Table(
    "cards",
    metadata,
    _sequence(),
    sa.Column("id", AnyText(), nullable=False, unique=True),
    sa.Column("content", AnyText(), nullable=False, unique=True),
    _text("database"),
    sa.Column("status", AnyText(), nullable=False),
    _text("writer"),
    _text("source"),
    _text("signal"),
    _text("admitted_by"),
    _text("valid_for"),
    sa.Column("episode", AnyText(), sa.ForeignKey("episodes.digest"), nullable=True),
    sa.Column("document", sa.LargeBinary(), nullable=False),
    _text("admitted_at", default=""),
    _text("question_key", default=""),
    _text("kind", default="question"),
    sa.CheckConstraint("status IN ('active', 'disabled', 'quarantined')", name="cards_status"),
    sa.Index("cards_by_database", "database", "status"),
    sa.Index("cards_by_episode", "episode"),
    sa.Index("cards_by_question", "database", "question_key"),
    sa.Index("cards_by_admission", "signal", "admitted_by", "admitted_at"),
    sqlite_autoincrement=True,
)

changes = sa.Table(
    "changes",
    metadata,
    _sequence(),
    _text("card"),
    _text("at"),
    _text("by"),
    _text("action"),
    _text("before"),
    _text("after"),
    _text("reason"),
    _text("cause", default=""),
    sa.Index("changes_by_card", "card"),
    sqlite_autoincrement=True,
)

# One number per database tells every process in one indexed read whether its snapshot of the cards is still good.
revisions = sa.Table(
    "revisions",
    metadata,
    sa.Column("database", AnyText(), primary_key=True),
    sa.Column("revision", Number, nullable=False),
)

# ── answers, and the verdicts on them ────────────────────────────────────────────────────────────────────────────────

answers = sa.Table(
    "answers",
    metadata,
    _sequence(),
    sa.Column("id", AnyText(), nullable=False, unique=True),
    _text("database"),
    _text("question_key"),
    _text("at"),
    _text("asked_by"),
    sa.Column("memory", sa.Boolean(), nullable=False),
    sa.Column("replayed", sa.Boolean(), nullable=False),
    _text("twin_of"),
    _text("repair_of"),
    _text("follows", default=""),
    _text("result_digest"),
    _number("calls"),
    _number("prompt_tokens"),
    _number("completion_tokens"),
    _measure("seconds"),
    _measure("spread"),
    _measure("conflict"),
    _measure("share"),
    _measure("doubt"),
    _text("error"),
    sa.Column("audit", sa.Boolean(), nullable=False, server_default=sa.false()),
    sa.Column("trouble", sa.Boolean(), nullable=True),
    # Empty for a person's question; of one that a query log led to, and that no account may count.
    _text("origin", default=""),
    # The verdict that stands, derived from `decisions` and written in the same transaction.
    _text("verdict", default=""),
    sa.Column("document", sa.LargeBinary(), nullable=False),
    sa.Column("trace", sa.LargeBinary(), nullable=True),
    sa.Index("answers_by_question", "database", "question_key"),
    sa.Index("answers_by_verdict", "database", "verdict"),
    sa.Index("answers_by_time", "database", "at"),
    sa.Index("answers_by_twin", "twin_of"),
    sa.Index("answers_by_turn", "follows"),
    # Few answers are drawn, and every look into the queue asks for those first.
    sa.Index("answers_by_audit", "database", sqlite_where=sa.text("audit = 1"), postgresql_where=sa.text("audit")),
    sqlite_autoincrement=True,
)

answer_cards = sa.Table(
    "answer_cards",
    metadata,
    sa.Column("answer", AnyText(), primary_key=True),
    sa.Column("place", sa.Integer(), primary_key=True),
    _text("card"),
    _measure("score"),
    sa.Index("answer_cards_by_card", "card"),
)

decisions = sa.Table(
    "decisions",
    metadata,
    _sequence(),
    sa.Column("id", AnyText(), nullable=False, unique=True),
    _text("database"),
    _text("at"),
    _text("by"),
    _text("signal"),
    _text("verdict"),
    _text("answer"),
    _text("proposal"),
    _text("card"),
    _text("replaced"),
    _text("sql"),
    _text("note"),
    sa.Index("decisions_by_answer", "answer"),
    sa.Index("decisions_by_card", "card"),
    sa.Index("decisions_by_verifier", "signal", "by", "at"),
    sqlite_autoincrement=True,
)

proposals = sa.Table(
    "proposals",
    metadata,
    _sequence(),
    sa.Column("id", AnyText(), nullable=False, unique=True),
    _text("database"),
    _text("answer"),
    _text("at"),
    _text("sql"),
    _text("note"),
    _text("question", default=""),
    sa.Column("episode", sa.LargeBinary(), nullable=True),
    sa.Index("proposals_by_answer", "answer"),
    sqlite_autoincrement=True,
)

# The outcome of each shape of a query log, so that learning goes on where it was ended; no statement stands here.
learned = sa.Table(
    "learned",
    metadata,
    sa.Column("database", AnyText(), primary_key=True),
    sa.Column("shape", AnyText(), primary_key=True),
    _text("at"),
    _text("outcome"),
    _text("answer"),
)

# Definitions that wait for a person, and those that were decided on, which are not proposed again.
proposed_definitions = sa.Table(
    "proposed_definitions",
    metadata,
    _sequence(),
    sa.Column("id", AnyText(), nullable=False, unique=True),
    _text("database"),
    _text("at"),
    # Empty while it waits; else what a person said of it, and who.
    _text("verdict", default=""),
    _text("by", default=""),
    sa.Column("document", sa.LargeBinary(), nullable=False),
    sa.Index("proposed_definitions_by_database", "database", "verdict"),
    sqlite_autoincrement=True,
)

# The URL, without a password, of a database that no settings name, so that a verdict on its answers finds it again.
locations = sa.Table(
    "locations",
    metadata,
    sa.Column("database", AnyText(), primary_key=True),
    _text("url"),
    _text("model"),
    _text("at"),
)

# How questions are divided to compare memory with none, where a person chose it and not the settings.
experiments = sa.Table(
    "experiments",
    metadata,
    sa.Column("database", AnyText(), primary_key=True),
    _measure("hold_out"),
    sa.Column("both_arms", sa.Boolean(), nullable=False),
    _text("by"),
    _text("at"),
)

# How sure answers are, where a team's own verdicts have refitted the model: one document per database.
confidences = sa.Table(
    "confidences",
    metadata,
    sa.Column("database", AnyText(), primary_key=True),
    _number("verdicts"),
    _text("at"),
    sa.Column("document", sa.LargeBinary(), nullable=False),
)

# ── access ───────────────────────────────────────────────────────────────────────────────────────────────────────────

tokens = sa.Table(
    "tokens",
    metadata,
    sa.Column("id", AnyText(), primary_key=True),
    sa.Column("digest", AnyText(), nullable=False, unique=True),
    _text("person"),
    _text("made_at"),
    _text("made_by"),
    _text("ends_at"),
    _text("revoked_at"),
    _text("revoked_by"),
)

token_scopes = sa.Table(
    "token_scopes",
    metadata,
    sa.Column("token", AnyText(), sa.ForeignKey("tokens.id"), primary_key=True),
    sa.Column("database", AnyText(), primary_key=True),
    sa.Column("scope", AnyText(), primary_key=True),
)


_LAST_CHARACTER = "\U0010ffff"
"""Sorts after every character an id may go on with."""
_EPISODE = msgspec.json.Decoder(Episode)
_ENTRY = msgspec.json.Decoder(Entry)
DAMAGED = "a record of the bank is damaged; restore it from an export"
_Kept = TypeVar("_Kept", Episode, Entry)

_Record = TypeVar("_Record", bound=msgspec.Struct)


class StoredRecords(Generic[_Record]):
    """Reads one kind of record as the tables keep it; one that cannot be read is the file's damage."""

    def __init__(self, kind: type[_Record]) -> None:
        """Read records of this kind."""
        self._decoder = msgspec.json.Decoder(kind)

    def decode(self, document: bytes) -> _Record:
        """Read a record, or raise the error of a damaged bank."""
        try:
            return self._decoder.decode(document)
        except (msgspec.MsgspecError, UnicodeDecodeError, TypeError) as error:
            raise BankError(f"{DAMAGED} ({error})") from None


# ── writing ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def encode(name: str, record: msgspec.Struct) -> bytes:
    """Write a record as JSON, or raise an error that names the record that cannot be kept."""
    try:
        return msgspec.json.encode(record)
    except (UnicodeEncodeError, TypeError, ValueError) as error:
        raise BankError(f"{name}: cannot be kept as JSON ({error})") from error


def upsert(connection: sa.Connection, table: sa.Table) -> "sqlite.Insert | postgresql.Insert":
    """Begin an insert that can say what becomes of a row with the same key."""
    if connection.dialect.name == "sqlite":
        return sqlite.insert(table)
    from sqlalchemy.dialects import postgresql  # slow to import, and few need it

    return postgresql.insert(table)


def insert_once(connection: sa.Connection, table: sa.Table, row: Mapping[str, object]) -> bool:
    """Insert a row by its id; False when one of this id is there already, which stays as it is."""
    statement = upsert(connection, table).on_conflict_do_nothing().returning(table.c.id)
    return connection.execute(statement, row).first() is not None


# ── reading ──────────────────────────────────────────────────────────────────────────────────────────────────────────


class DocumentLookup:
    """Finds documents of one table by their id, or by as much of it as tells it from the others."""

    def __init__(self, table: sa.Table, *, kind: str) -> None:
        """Prepare the queries; `kind` is what errors call a record."""
        name, document = table.c.id, table.c.document
        self._kind = kind
        self._exact = sa.select(name, document).where(name == sa.bindparam("wanted"))
        starting = (name > sa.bindparam("wanted")) & (name < sa.bindparam("end"))
        self._starting = sa.select(name, document).where(starting).order_by(name).limit(3)

    def find(self, backend: "Backend", wanted: str) -> bytes:
        """Return the document, or raise an error where none or several fit."""
        rows = backend.rows(self._exact, {"wanted": wanted})
        rows = rows or backend.rows(self._starting, {"wanted": wanted, "end": wanted + _LAST_CHARACTER})
        if not wanted or not rows:
            raise BankError(f"{self._kind} {wanted!r}: not in {backend.where}")
        if len(rows) > 1:
            raise BankError(f"{self._kind} {wanted!r}: several ids start so ({', '.join(name for name, _ in rows)})")
        document: bytes = rows[0][1]
        return document


def read_episode(document: str | bytes) -> Episode:
    """Read an episode as a store keeps it, those of earlier versions included."""
    try:
        return _read(document, _EPISODE)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise BankError(f"{DAMAGED} ({error})") from None


def read_entry(document: str | bytes) -> Entry:
    """Read a card with its episode and history as an export keeps it, those of earlier versions included."""
    return _read(document, _ENTRY)


def _read(document: str | bytes, decoder: "msgspec.json.Decoder[_Kept]") -> _Kept:
    try:
        return decoder.decode(document)
    except msgspec.ValidationError:
        decoded = msgspec.json.decode(document)
        if not _upgrade(decoded):
            raise
        kept: _Kept = msgspec.convert(decoded, decoder.type)
        return kept


def _upgrade(decoded: Any) -> bool:
    """Rewrite a document of the first versions, which kept one call of an attempt; False if it is not one of them."""
    episode = decoded.get("episode", decoded) if isinstance(decoded, dict) else None
    attempt = episode.get("attempt") if isinstance(episode, dict) else None
    if not isinstance(attempt, dict) or "call" not in attempt:
        return False
    attempt["calls"] = [attempt.pop("call")]
    return True
