"""An open store and its transactions: after a `writing` block without an error all of it is on disk, else none of it.

Not guaranteed: use of one open store across a fork (open it again in the child).
"""

import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

import sqlalchemy as sa

from sqlcrystal.bank.engines import Engine, PostgresEngine, SqliteEngine, is_postgres
from sqlcrystal.bank.migrations import is_current, migrate
from sqlcrystal.errors import BankError, ConfigError

BUSY_SECONDS = 30.0
Row: TypeAlias = "sa.Row[*tuple[Any, ...]]"
Rows: TypeAlias = Sequence[Row]


class Readers:
    """Connections that only read, kept from one query to the next: opening one takes longer than most queries."""

    def __init__(self, connect: Callable[[], sa.Connection], *, limit: int) -> None:
        """Open connections as they are needed, at most so many."""
        self._connect = connect
        self._idle: deque[sa.Connection] = deque()
        self._room = threading.BoundedSemaphore(limit)

    def rows(self, query: "sa.Executable", values: Mapping[str, object]) -> Rows:
        """Run one query; a connection that has ended since its last query is replaced."""
        with self._room:
            try:
                kept = self._idle.pop()
            except IndexError:
                return self._read(self._open(), query, values)
            try:
                return self._read(kept, query, values)
            except sa.exc.DBAPIError as error:
                if not error.connection_invalidated:
                    raise
                self.close()  # the others have ended with it
                return self._read(self._open(), query, values)

    def close(self) -> None:
        """Close the connections that are not in use at this moment."""
        while self._idle:
            self._idle.pop().close()

    def _open(self) -> sa.Connection:
        connection = self._connect()
        connection.detach()  # a kept connection must not take a place in the pool that writers share
        return connection

    def _read(self, connection: sa.Connection, query: "sa.Executable", values: Mapping[str, object]) -> Rows:
        try:
            rows = connection.execute(query, values).all()
        except BaseException:
            connection.close()
            raise
        self._idle.append(connection)
        return rows


class Backend:
    """One open store; threads may share it, and other processes may have it open too."""

    def __init__(self, engine: Engine) -> None:
        """Bring the store to the newest shape if it is not."""
        self.engine = engine
        self.where = engine.where
        self._turn = threading.RLock()
        self._own = threading.local()
        self._readers = Readers(engine.reader, limit=engine.readers)
        try:
            with self.explained(), engine.sqlalchemy.connect() as connection:
                current = is_current(connection)
            if not current:
                self._migrate()
        except BaseException:
            engine.sqlalchemy.dispose()
            raise

    def _migrate(self) -> None:
        with self.writing() as connection:
            # Another process may have done it while this one waited for its turn.
            if not is_current(connection):
                try:
                    migrate(connection)
                except BankError as error:
                    raise BankError(f"{self.where}: {error}") from error

    @property
    def dialect(self) -> str:
        """Name the engine: sqlite or postgresql."""
        return self.engine.sqlalchemy.dialect.name

    @property
    def in_transaction(self) -> bool:
        """Tell whether this thread has a transaction open."""
        return getattr(self._own, "connection", None) is not None

    @contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        """Open a connection to read with: that of this thread's open transaction, if there is one."""
        own = getattr(self._own, "connection", None)
        if own is not None:
            yield own
            return
        with self.explained(), self.engine.reader() as connection:
            yield connection

    def rows(self, query: "sa.Executable", values: Mapping[str, object] = MappingProxyType({})) -> Rows:
        """Run one query and return its rows: in this thread's open transaction, if there is one."""
        own: sa.Connection | None = getattr(self._own, "connection", None)
        with self.explained():
            return self._readers.rows(query, values) if own is None else own.execute(query, values).all()

    @contextmanager
    def writing(self) -> Iterator[sa.Connection]:
        """Open a transaction, durable when the block ends; inside another of the same thread it is part of that one."""
        own = getattr(self._own, "connection", None)
        if own is not None:
            yield own
            return
        # Waiting for a turn here is fair among threads; waiting for SQLite's lock is not.
        with self._turn, self._transaction(serial=True) as connection:
            yield connection

    @contextmanager
    def appending(self) -> Iterator[sa.Connection]:
        """Open a transaction that only adds rows: it waits for no other writer where the engine can spare that."""
        own = getattr(self._own, "connection", None)
        if own is not None or self.dialect == "sqlite":
            with self.writing() as connection:
                yield connection
            return
        with self._transaction(serial=False) as connection:
            yield connection

    @contextmanager
    def _transaction(self, *, serial: bool) -> Iterator[sa.Connection]:
        with self.explained(), self.engine.sqlalchemy.connect() as plain:
            connection = plain.execution_options(sqlcrystal_writing=True)
            with connection.begin():
                if serial:
                    self.engine.take_lock(connection)
                self._own.connection = connection
                try:
                    yield connection
                finally:
                    self._own.connection = None

    @contextmanager
    def snapshot(self) -> Iterator[sa.Connection]:
        """Show a long reader one moment of the store."""
        with self.explained(), self.engine.snapshot() as connection:
            yield connection

    @contextmanager
    def explained(self) -> Iterator[None]:
        """Turn the driver's errors into one line a user can act on."""
        try:
            yield
        except sa.exc.DBAPIError as error:
            raise self.engine.explained(error.orig) from error
        except self.engine.sqlalchemy.dialect.loaded_dbapi.Error as error:  # of a COPY, which SQLAlchemy does not run
            raise self.engine.explained(error) from error
        except sa.exc.TimeoutError as error:
            raise BankError(f"{self.where}: every connection has been busy for too long") from error
        except UnicodeEncodeError as error:
            raise BankError(f"{self.where}: a text is not valid Unicode ({error.reason})") from error

    def close(self) -> None:
        """Close every connection; acknowledged writes are on disk already."""
        with self._turn:
            self._readers.close()
            self.engine.sqlalchemy.dispose()


def open_backend(location: str | Path, *, create: bool = True, busy_seconds: float = BUSY_SECONDS) -> Backend:
    """Open the store at a path, `sqlite:///path` or `postgresql://…`, and make it unless `create` is off."""
    text = str(location)
    scheme, separator, rest = text.partition("://")
    if not separator or scheme == "sqlite":
        path = Path(rest.removeprefix("/")) if separator else Path(text)
        return Backend(SqliteEngine(path.expanduser(), create=create, busy_seconds=busy_seconds))
    if not is_postgres(text):
        raise ConfigError.unknown("store", scheme, ["FILE", "sqlite:///FILE", "postgresql://HOST/DATABASE"])
    return Backend(PostgresEngine(text, create=create, busy_seconds=busy_seconds))
