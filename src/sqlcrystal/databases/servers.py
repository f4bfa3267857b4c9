"""What a server's engine must offer to be opened read-only; one module for each engine does."""

from collections.abc import Iterator
from typing import Any, Protocol

import sqlalchemy as sa

from sqlcrystal.databases.functions import Purity
from sqlcrystal.databases.guard import Statement
from sqlcrystal.types import FailureKind

CONNECT_SECONDS = 10
Stream = tuple[tuple[str, ...], Iterator[Any]]


class ServerLock(Protocol):
    """The engine lock of one kind of server."""

    dialect: str
    driver: str
    errors: tuple[type[Exception], ...]

    def connect(self, url: sa.URL) -> Any:
        """A driver connection whose session reads SQL as the guard does, which is checked."""
        ...

    def privileges(self, connection: Any) -> str | None:
        """What the account may do beyond reading, and the statement that makes a proper reader; None if nothing."""
        ...

    def functions(self, connection: Any) -> Purity:
        """The functions of the database by purity; empty where the engine does not say."""
        ...

    def fileno(self, connection: Any) -> int:
        """The connection's socket."""
        ...

    def stream(self, connection: Any, statement: Statement, timeout: float, max_rows: int, /) -> Stream:
        """The columns, and the rows as they come, of one statement in a read-only transaction."""
        ...

    def finish(self, connection: Any) -> None:
        """End the transaction and leave nothing behind in the session."""
        ...

    def end(self, connection: Any, url: sa.URL) -> str | None:
        """Hang up and end the statement on the server; the name under which it runs on, if it does."""
        ...

    def classify(self, error: Exception) -> FailureKind | None:
        """What the error says of the statement; None when it says something of the server instead."""
        ...

    def types(self, inspector: Any, /) -> list[str]:
        """The CREATE TYPE statements the tables need."""
        ...


def lock_for(dialect: str) -> ServerLock:
    """The lock of a dialect; its driver is imported now."""
    if dialect == "postgres":
        from sqlcrystal.databases.postgres import PostgresLock

        return PostgresLock()
    from sqlcrystal.databases.mysql import MysqlLock

    return MysqlLock()
