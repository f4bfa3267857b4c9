"""What commands on the bank share: opening it, naming its databases, reading and writing its files."""

import getpass
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from sqlcrystal.errors import BankError, ConfigError, DataError, UserError
from sqlcrystal.types import Failure

if TYPE_CHECKING:
    from sqlcrystal.bank import CardStore


@contextmanager
def opened_bank(path: Path | None, *, create: bool = False) -> "Iterator[CardStore]":
    """The bank; whatever it cannot do is the user's to mend, in one line."""
    from sqlcrystal.bank import CardStore, default_bank_path

    try:
        with CardStore((path or default_bank_path()).expanduser(), create=create) as store:
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


def must_have_cards(store: "CardStore", name: str) -> None:
    """Refuse a database that no card belongs to."""
    known = {card.database for card in store.find()}
    if name not in known:
        raise ConfigError.unknown("--db", name, known) if known else UserError(f"{store.path}: the bank has no cards")


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
