"""Records as the tables keep them: JSON documents, found by their id or its beginning, and written once."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec
import sqlalchemy as sa
from sqlalchemy.dialects import sqlite

from sqlcrystal.bank.backend import Backend
from sqlcrystal.bank.records import Entry
from sqlcrystal.errors import BankError
from sqlcrystal.types import Episode

if TYPE_CHECKING:
    from sqlalchemy.dialects import postgresql

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

    def find(self, backend: Backend, wanted: str) -> bytes:
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
