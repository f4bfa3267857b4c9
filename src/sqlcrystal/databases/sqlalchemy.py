"""PostgreSQL and MySQL/MariaDB through SQLAlchemy, read-only: pooling and reflection are SQLAlchemy's, ours the lock.

What it does NOT guarantee: memory and disk that a statement takes on the server before its time limit ends are the
server's to bound; a MySQL account with the FILE privilege can reach files past the engine lock (the guard alone refuses
LOAD_FILE and INTO OUTFILE), so give it an account that may only SELECT.
"""

import hashlib
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Timer
from time import perf_counter
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, SQLAlchemyError
from sqlalchemy.pool import PoolProxiedConnection
from sqlalchemy.schema import CreateTable

from sqlcrystal.databases import guard
from sqlcrystal.databases.limits import TooLarge, collect
from sqlcrystal.databases.servers import ServerLock, lock_for
from sqlcrystal.errors import ConfigError, DatabaseError
from sqlcrystal.protocols import Database
from sqlcrystal.types import Execution, Failure, FailureKind, Rows

GRACE_SECONDS = 1.0
TOO_LONG = "the statement took too long"


def open_server(url: str, *, dialect: str, name: str | None) -> Database:
    """Open a server's database, and say in one line when the URL is wrong or nobody answers."""
    lock = lock_for(dialect)
    try:
        parsed = sa.make_url(url).set(drivername=lock.driver)
    except ArgumentError:
        raise ConfigError(f"database: {url!r} is not a URL such as {dialect}://user@host/database") from None
    return ServerDatabase(parsed, lock, name=name or parsed.database or dialect)


class ServerDatabase:
    """One database of a server, behind a pool of connections."""

    def __init__(self, url: sa.URL, lock: ServerLock, *, name: str) -> None:
        """Connect once, so that a wrong host or password is known now."""
        self.name = name
        self.dialect = lock.dialect
        self._lock = lock
        options = {"creator": lambda: lock.connect(url)}
        try:
            self._engine = sa.create_engine(url, pool_pre_ping=True, pool_size=8, max_overflow=24, **options)
        except (NoSuchModuleError, ModuleNotFoundError) as error:
            raise ConfigError(f"database: {error}; pip install 'sqlcrystal[{lock.dialect}]'") from None
        with self._connection():
            pass

    def execute(self, sql: str, *, timeout: float = 30.0, max_rows: int = 100_000) -> Execution:
        """Run one guarded statement."""
        return guard.check(sql, self.dialect) or self._run(sql, timeout, max_rows)

    def schema(self) -> str:
        """CREATE TYPE, CREATE TABLE and CREATE VIEW of the default schema, each kind in the order of names."""
        with self._reflecting() as inspector:
            metadata = sa.MetaData()
            metadata.reflect(inspector.engine)
            tables = [_definition(metadata.tables[name], inspector.engine) for name in sorted(metadata.tables)]
            views = [
                f"CREATE VIEW {view} AS {(inspector.get_view_definition(view) or '').strip().rstrip(';')};"
                for view in sorted(inspector.get_view_names())
            ]
            return "\n\n".join([*self._lock.types(inspector), *tables, *views])

    def fingerprint(self) -> str:
        """A digest of the schema's definitions."""
        return hashlib.sha256(self.schema().encode()).hexdigest()

    def close(self) -> None:
        """Close every connection."""
        self._engine.dispose()

    def _run(self, sql: str, timeout: float, max_rows: int) -> Execution:
        """Run a statement behind the engine lock alone."""
        start = perf_counter()
        with self._connection() as connection:
            driver: Any = connection.driver_connection
            hang_up = Timer(timeout + GRACE_SECONDS, _hang_up, [self._lock.fileno(driver)])
            hang_up.daemon = True
            hang_up.start()
            try:
                columns, rows = self._lock.stream(driver, sql, timeout, max_rows)
                result: Execution = Rows(columns, collect(_until(rows, start + timeout), max_rows))
            except (TooLarge, TimeoutError) as error:
                self._lock.abandon(driver)
                connection.invalidate()
                late = isinstance(error, TimeoutError)
                result = Failure(FailureKind.TIMEOUT if late else FailureKind.TOO_LARGE, str(error))
            except self._lock.errors as error:
                kind = self._lock.classify(error)
                if kind is None:
                    connection.invalidate()
                    if perf_counter() - start <= timeout:
                        raise DatabaseError(f"database {self.name}: {_first_line(error)}") from None
                    result = Failure(FailureKind.TIMEOUT, TOO_LONG)
                else:
                    result = Failure(kind, _first_line(error))
            finally:
                hang_up.cancel()
            if connection.is_valid:
                self._lock.finish(driver)
        seconds = perf_counter() - start
        if isinstance(result, Rows):
            return Rows(result.columns, result.rows, seconds)
        return Failure(result.kind, result.message, seconds)

    @contextmanager
    def _connection(self) -> Iterator[PoolProxiedConnection]:
        try:
            connection = self._engine.raw_connection()
        except (SQLAlchemyError, OSError, *self._lock.errors) as error:  # type: ignore[misc]
            raise DatabaseError(f"database {self.name}: cannot connect: {_first_line(error)}") from None
        try:
            yield connection
        finally:
            connection.close()

    @contextmanager
    def _reflecting(self) -> Iterator[Any]:
        try:
            yield sa.inspect(self._engine)
        except SQLAlchemyError as error:
            raise DatabaseError(f"database {self.name}: {_first_line(error)}") from None


def _until(rows: Iterator[Any], deadline: float) -> Iterator[Any]:
    """The rows, as long as the deadline has not passed; for rows that each come in time but never end."""
    for row in rows:
        if perf_counter() > deadline:
            raise TimeoutError(TOO_LONG)
        yield row


def _hang_up(descriptor: int) -> None:
    """End the connection under a statement that the server itself does not stop, such as one endless function call."""
    with suppress(OSError), socket.socket(fileno=os.dup(descriptor)) as line:
        line.shutdown(socket.SHUT_RDWR)


def _definition(table: sa.Table, engine: sa.Engine) -> str:
    """The table's DDL without storage options, some of which (AUTO_INCREMENT) change with the data."""
    table.dialect_options.clear()
    return str(CreateTable(table).compile(engine)).strip().replace("\t", "    ") + ";"


def _first_line(error: Exception) -> str:
    origin = getattr(error, "orig", None) or error
    text = str(origin.args[-1] if getattr(origin, "args", None) else origin).strip()
    return text.splitlines()[0] if text else type(origin).__name__
