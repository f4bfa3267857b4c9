"""What commands on the store share: opening it, naming its databases, reading and writing its files."""

import getpass
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO

import typer

from sqlcrystal.errors import BankError, ConfigError, DataError, UserError
from sqlcrystal.types import CardStatus, Failure

if TYPE_CHECKING:
    from sqlcrystal.bank import CardStore, Store

Where = Annotated[
    str | None,
    typer.Option(
        "--store",
        "--bank",
        envvar=["SQLCRYSTAL_STORE", "SQLCRYSTAL_BANK"],
        help="The store: a file, or postgresql://…; by default the one sqlcrystal.toml names, else sqlcrystal.db here.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]


@contextmanager
def opened_store(place: str | None, *, create: bool = False) -> "Iterator[Store]":
    """The store; whatever it cannot do is the user's to mend, in one line."""
    from sqlcrystal.bank import Store
    from sqlcrystal.config import default_store

    try:
        with Store(place or default_store(), create=create) as store:
            yield store
    except BankError as error:
        raise UserError(str(error)) from error


def database_name(db: str | None) -> str | None:
    """The name a database goes by on its cards."""
    if db is None or ("://" not in db and not Path(db).is_file()):
        return db
    from sqlcrystal.databases import open_database

    database = open_database(db)
    database.close()
    return database.name


def must_have_cards(bank: "CardStore", name: str) -> None:
    """Refuse a database that no card belongs to."""
    known = bank.all_databases()
    if name not in known:
        raise ConfigError.unknown("--db", name, known) if known else UserError(f"{bank.where}: the bank has no cards")


def checked_filters(
    bank: "CardStore",
    *,
    db: str | None = None,
    status: str | None = None,
    signal: str | None = None,
    by: str | None = None,
    writer: str | None = None,
) -> dict[str, str | None]:
    """Filters for `CardStore.find`; a value that no card has is answered with those that cards have."""
    database = database_name(db)
    if status is not None and status not in list(CardStatus):
        raise ConfigError.unknown("--status", status, CardStatus)
    if database is not None:
        must_have_cards(bank, database)
    for option, column, value in (
        ("--signal", "signal", signal),
        ("--by", "admitted_by", by),
        ("--writer", "writer", writer),
    ):
        known = () if value is None else bank.values(column)
        if value is not None and known and value not in known:
            raise ConfigError.unknown(option, value, known)
    return {"database": database, "status": status, "signal": signal, "admitted_by": by, "writer": writer}


def must_run(sql: str, db: str) -> None:
    """Refuse SQL that fails on the live database."""
    from sqlcrystal.databases import open_database

    database = open_database(db)
    try:
        execution = database.execute(sql)
    finally:
        database.close()
    if isinstance(execution, Failure):
        raise ConfigError(f"--sql: does not run on {database.name} ({execution.kind}: {execution.message})")


def current_user() -> str:
    """Who is at the keyboard."""
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):
        return "unknown user"


@contextmanager
def writing(file: str) -> Iterator[BinaryIO]:
    """A file or standard output, for bytes."""
    if file == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    try:
        with Path(file).open("wb") as out:
            yield out
    except OSError as error:
        raise DataError(f"{file}: cannot be written ({error.strerror})") from error


@contextmanager
def reading(file: str) -> Iterator[BinaryIO]:
    """A file or standard input, for bytes."""
    if file == "-":
        yield sys.stdin.buffer
        return
    try:
        with Path(file).open("rb") as lines:
            yield lines
    except OSError as error:
        raise DataError(f"{file}: cannot be read ({error.strerror})") from error
