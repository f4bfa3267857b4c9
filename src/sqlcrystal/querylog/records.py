"""A query as a log holds it, and one that is refused."""

from enum import StrEnum
from typing import TypeAlias

from msgspec import Struct

LONGEST_PLACE = 200


class Reason(StrEnum):
    """The reason that a statement of a log is not learned from; the same few for every log, to be counted."""

    TOO_LONG = "too long"
    UNREADABLE = "not SQL of this database"
    LETTERS = "letters that are not UTF-8"
    CELLS = "a row with more cells than columns: its SQL must stand in quotes"
    TOO_MUCH = "too much for the parser"
    WRITES = "no query: it writes, defines or sets something"
    SECRET = "holds what looks like a secret"
    TEMPLATE = "a template beyond ref, source and config"
    NO_SQL = "no SQL in it"
    HIDDEN = "its text is hidden from this account"
    NO_TABLE = "asks no table of the database"
    PARAMETER = "a parameter that nothing gives a value"
    GUARDED = "the guard refuses it"
    FAILS = "does not run today"
    LATE = "takes too long"
    EMPTY = "returns nothing that could be compared"


class LoggedQuery(Struct, frozen=True):
    """One statement, with its uses and its place."""

    sql: str
    uses: int = 1
    place: str = ""


class Refused(Struct, frozen=True):
    """A statement that is not learned from."""

    reason: Reason
    place: str = ""
    uses: int = 1


Found: TypeAlias = LoggedQuery | Refused
"""All that a reader can make of one entry of a log."""
