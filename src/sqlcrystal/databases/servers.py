"""PostgreSQL and MySQL/MariaDB through SQLAlchemy, read-only: pooling and reflection are SQLAlchemy's, ours the lock.

Each engine's module brings the lock that stands here as a protocol. What it does NOT guarantee: memory and disk that a
statement takes on the server before its time limit ends are the server's to bound; a MySQL account with the FILE
privilege can reach files past the engine lock (the guard alone refuses LOAD_FILE and INTO OUTFILE), so give it an
account that may only SELECT.
"""

import hashlib
import os
import socket
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from queue import Empty, SimpleQueue
from threading import Thread, Timer
from time import perf_counter
from typing import Any, Protocol

import msgspec
import sqlalchemy as sa
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, SQLAlchemyError
from sqlalchemy.pool import PoolProxiedConnection
from sqlalchemy.schema import CreateTable

from sqlcrystal.databases import guard
from sqlcrystal.databases.description import with_views
from sqlcrystal.databases.engines import Opening
from sqlcrystal.databases.functions import Catalogue, Functions
from sqlcrystal.databases.results import TooLarge, collect, first_line
from sqlcrystal.errors import ConfigError, DatabaseError
from sqlcrystal.protocols import Database
from sqlcrystal.types import Column, Execution, Failure, FailureKind, Rows, Table

CONNECT_SECONDS = 10
GRACE_SECONDS = 0.25
TELLING_SECONDS = 0.3
"""So long is a server awaited that has been told to end a session; it is told so even if it takes longer."""
TOO_LONG = "the statement took too long"
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
        """Name what the account may do beyond reading, and the statement for a proper reader; None if nothing."""
        ...

    def functions(self, connection: Any) -> Catalogue:
        """Ask the database about its functions; nothing where the engine does not say."""
        ...

    def fileno(self, connection: Any) -> int:
        """The connection's socket."""
        ...

    def stream(self, connection: Any, statement: guard.Statement, timeout: float, max_rows: int, /) -> Stream:
        """The columns, and the rows as they come, of one statement in a read-only transaction."""
        ...

    def finish(self, connection: Any) -> None:
        """End the transaction and leave nothing behind in the session."""
        ...

    def abandon(self, connection: Any) -> int:
        """Hang up on a statement, and give the number of its session."""
        ...

    def session_named(self, number: int) -> str:
        """Name a session as the server's administrators do."""
        ...

    def end(self, session: int, url: sa.URL) -> bool:
        """End a session from another one, and tell whether its statement runs on."""
        ...

    def classify(self, error: Exception) -> FailureKind | None:
        """Tell what the error says of the statement; None when it says something of the server instead."""
        ...

    def types(self, inspector: Any, /) -> list[str]:
        """The CREATE TYPE statements the tables need."""
        ...


def open_server(opening: Opening, lock: ServerLock) -> Database:
    """Open a server's database, and say in one line when the URL is wrong or nobody answers."""
    try:
        parsed = sa.make_url(opening.url).set(drivername=lock.driver)
    except (ArgumentError, ValueError):  # a port that is no number is not an ArgumentError
        raise ConfigError(f"database: not a URL such as {lock.dialect}://user@host/database") from None
    return ServerDatabase(
        parsed,
        lock,
        name=opening.name or parsed.database or lock.dialect,
        inspect=opening.inspect,
        functions=opening.functions,
        allow_privileged=opening.allow_privileged,
    )


class ServerDatabase:
    """One database of a server, behind a pool of connections."""

    def __init__(
        self,
        url: sa.URL,
        lock: ServerLock,
        *,
        name: str,
        inspect: bool = True,
        functions: Sequence[str] = (),
        allow_privileged: bool = False,
    ) -> None:
        """Connect once, so that a wrong host or password, or an account that may do too much, is known now."""
        self.name = name
        self.dialect = lock.dialect
        self._lock = lock
        self._url = url
        options = {"creator": lambda: lock.connect(url)}
        try:
            self._engine = sa.create_engine(url, pool_pre_ping=True, pool_size=8, max_overflow=24, **options)
        except (NoSuchModuleError, ModuleNotFoundError) as error:
            raise ConfigError(f"database: {error}; pip install 'sqlcrystal[{lock.dialect}]'") from None
        with self._connection() as connection:
            driver = connection.driver_connection
            powers = None if allow_privileged else lock.privileges(driver)
            live = lock.functions(driver)
        if powers:
            self._engine.dispose()
            raise ConfigError(f"database {name}: {powers}").hinting("or say --allow-privileged")
        known = Functions(lock.dialect, catalogue=lambda: live, allowed=functions)
        self._rules = guard.DatabaseRules(known, inspect, url.database or "")

    def execute(self, sql: str, *, timeout: float = 30.0, max_rows: int = 100_000) -> Execution:
        """Run one guarded statement."""
        statement = guard.read(sql, self.dialect, self._rules)
        return statement if isinstance(statement, Failure) else self._run_statement(statement, timeout, max_rows)

    def schema(self) -> str:
        """CREATE TYPE, CREATE TABLE and CREATE VIEW of the default schema, each kind in the order of names."""
        with self._reflecting() as inspector:
            metadata = sa.MetaData()
            metadata.reflect(inspector.engine)
            tables = [_definition(metadata.tables[name], inspector.engine) for name in sorted(metadata.tables)]
            views = [_view(inspector, view) for view in sorted(inspector.get_view_names())]
            return "\n\n".join([*self._lock.types(inspector), *tables, *views])

    def tables(self) -> tuple[Table, ...]:
        """Every type, table and view with its comments."""
        with self._reflecting() as inspector:
            return _tables(inspector, self._lock.types(inspector))

    def fingerprint(self) -> str:
        """A digest of the schema's definitions."""
        return hashlib.sha256(self.schema().encode()).hexdigest()

    def close(self) -> None:
        """Close every connection."""
        self._engine.dispose()

    def _run(self, sql: str, timeout: float, max_rows: int) -> Execution:
        """Run a statement behind the engine lock alone."""
        return self._run_statement(guard.Statement(sql.rstrip("; \n")), timeout, max_rows)

    def _run_statement(self, statement: guard.Statement, timeout: float, max_rows: int) -> Execution:
        start = perf_counter()
        with self._connection() as connection:
            driver: Any = connection.driver_connection
            hang_up = Timer(timeout + GRACE_SECONDS, _hang_up, [self._lock.fileno(driver)])
            hang_up.daemon = True
            hang_up.start()
            try:
                columns, rows = self._lock.stream(driver, statement, timeout, max_rows)
                result: Execution = Rows(columns, collect(_until(rows, start + timeout), max_rows))
            except (TooLarge, TimeoutError) as error:
                late = isinstance(error, TimeoutError)
                result = self._ended(connection, FailureKind.TIMEOUT if late else FailureKind.TOO_LARGE, str(error))
            except self._lock.errors as error:
                result = self._failed(connection, error, late=perf_counter() - start > timeout)
            except (DatabaseError, KeyboardInterrupt):
                connection.invalidate()
                raise
            except Exception as error:  # a value that the driver cannot read
                result = self._ended(
                    connection, FailureKind.ENGINE, first_line(f"the driver cannot read the result: {error}")
                )
            finally:
                hang_up.cancel()
            if connection.is_valid:
                self._finish(connection, driver, drop=statement.stateful)
        return msgspec.structs.replace(result, seconds=perf_counter() - start)

    def _failed(self, connection: PoolProxiedConnection, error: Exception, *, late: bool) -> Failure:
        """Tell what the driver's error says of the statement, unless it says something of the server."""
        kind = self._lock.classify(error)
        if kind is not None:
            return Failure(kind, _first_line(error))
        if late:
            return self._ended(connection, FailureKind.TIMEOUT, TOO_LONG)
        connection.invalidate()
        raise DatabaseError(f"database {self.name}: {_first_line(error)}") from None

    def _ended(self, connection: PoolProxiedConnection, kind: FailureKind, message: str) -> Failure:
        """Give the connection up, and name a statement that runs on even so, or may: a busy server is not awaited."""
        session = self._lock.abandon(connection.driver_connection)
        told: SimpleQueue[bool] = SimpleQueue()
        Thread(target=lambda: told.put(self._lock.end(session, self._url)), daemon=True).start()
        connection.invalidate()
        try:
            runs = "still runs" if told.get(timeout=TELLING_SECONDS) else ""
        except Empty:
            runs = "may still run"
        name = self._lock.session_named(session)
        return Failure(kind, f"{message}; the server {runs} it ({name})" if runs else message)

    def _finish(self, connection: PoolProxiedConnection, driver: Any, *, drop: bool) -> None:
        try:
            self._lock.finish(driver)
        except self._lock.errors:
            drop = True
        if drop:
            connection.invalidate()

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


def _view(inspector: Any, name: str) -> str:
    """The view's definition, or its columns where the account may not see more."""
    try:
        definition = (inspector.get_view_definition(name) or "").strip().rstrip(";")
    except SQLAlchemyError:
        definition = ""
    if definition:
        return f"CREATE VIEW {name} AS {definition};"
    return f"CREATE VIEW {name} ({', '.join(column['name'] for column in inspector.get_columns(name))});"


def _tables(inspector: Any, types: Iterable[str]) -> tuple[Table, ...]:
    """Describe the database by SQLAlchemy's reflection."""
    metadata = sa.MetaData()
    metadata.reflect(inspector.engine)
    made = [Table(name=text.split()[2], kind="type", definition=text) for text in types]
    for name in sorted(metadata.tables):
        table = metadata.tables[name]
        made.append(
            Table(
                name=name,
                columns=tuple(
                    Column(name=column.name, type=str(column.type), comment=column.comment or "")
                    for column in table.columns
                ),
                comment=table.comment or "",
                references=tuple(sorted({key.column.table.name for key in table.foreign_keys})),
                definition=_definition(table, inspector.engine),
            )
        )
    made += [_described_view(inspector, name) for name in sorted(inspector.get_view_names())]
    return with_views(made)


def _described_view(inspector: Any, name: str) -> Table:
    comment = str(inspector.get_table_comment(name)["text"] or "")
    return Table(
        name=name,
        kind="view",
        columns=tuple(
            Column(name=column["name"], type=str(column["type"]), comment=column.get("comment") or "")
            for column in inspector.get_columns(name)
        ),
        comment="" if comment == "VIEW" else comment,  # what MySQL says of a view that has none
        definition=_view(inspector, name),
    )


def _first_line(error: Exception) -> str:
    origin = getattr(error, "orig", None) or error
    text = str(origin.args[-1] if getattr(origin, "args", None) else origin)
    return first_line(text) or type(origin).__name__
