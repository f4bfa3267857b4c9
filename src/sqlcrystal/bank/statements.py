"""Statements that every request runs: compiled once for each engine, and then run by the driver alone.

SQLAlchemy adds 40 to 60 microseconds of processor time to each run of a statement that SQLite answers in three, and a
question with its verdict runs some twenty of them.
"""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from threading import BoundedSemaphore
from typing import Any, NamedTuple, Protocol

import sqlalchemy as sa
from sqlalchemy.dialects import sqlite

Values = Mapping[str, object]
Rows = list[tuple[Any, ...]]
Processor = Callable[[Any], Any]
_NAMED: sa.Dialect = sqlite.dialect(paramstyle="named")


class Driver(Protocol):
    """What connections of sqlite3 and psycopg have in common."""

    def execute(self, statement: Any, values: Any, /) -> Any:
        """Run a statement and return its cursor."""
        ...

    def cursor(self) -> Any:
        """A cursor, for many rows at once."""
        ...

    def close(self) -> None:
        """Close the connection."""
        ...


class Direct(NamedTuple):
    """A connection of the driver's own."""

    driver: Driver
    dialect: sa.Dialect


def direct(connection: sa.Connection) -> Direct:
    """The driver's connection under SQLAlchemy's, in the same transaction."""
    driver: Any = connection.connection.driver_connection
    return Direct(driver, connection.dialect)


class StoreStatement:
    """One statement, written once for both engines; always given values of the same names, and never a list of them."""

    def __init__(self, statement: "sa.Executable | Callable[[str], sa.Executable]") -> None:
        """Of a statement, or of how to make it for a dialect's name."""
        self._statement = statement
        self._compiled: dict[str, _Compiled] = {}

    def rows(self, connection: Direct, values: Values) -> Rows:
        """Run it, and return what it found, if it looks for anything."""
        compiled = self._for(connection.dialect, values)
        cursor = connection.driver.execute(compiled.text, compiled.bound(values))
        return [] if cursor.description is None else compiled.read(cursor.fetchall())

    def each(self, connection: Direct, many: Sequence[Values]) -> None:
        """Run it for each of the values."""
        compiled = self._for(connection.dialect, many[0])
        connection.driver.cursor().executemany(compiled.text, [compiled.bound(values) for values in many])

    def _for(self, dialect: sa.Dialect, values: Values) -> "_Compiled":
        if dialect.name not in self._compiled:
            statement = self._statement(dialect.name) if callable(self._statement) else self._statement
            self._compiled[dialect.name] = _Compiled(statement, dialect, list(values))
        return self._compiled[dialect.name]


class _Compiled:
    """A statement as a driver takes it, and how values go in and come out."""

    def __init__(self, statement: Any, dialect: sa.Dialect, names: list[str]) -> None:
        # Named values, whatever the driver's own style is: both drivers can take a dictionary.
        dialect = _NAMED if dialect.name == "sqlite" else dialect
        compiled = statement.compile(dialect=dialect, column_keys=names)
        self.text = str(compiled)
        self._fixed: Values = compiled.params
        kinds = {name: bound.type.dialect_impl(dialect) for bound, name in compiled.bind_names.items()}
        self._going_in = _known({name: kind.bind_processor(dialect) for name, kind in kinds.items()})
        columns = enumerate(getattr(statement, "selected_columns", ()))
        self._coming_out = _known(
            {place: column.type.dialect_impl(dialect).result_processor(dialect, None) for place, column in columns}
        )

    def bound(self, values: Values) -> dict[str, object]:
        """Values as the driver takes them."""
        given = {**self._fixed, **values}
        for name, processor in self._going_in.items():
            given[name] = processor(given[name])
        return given

    def read(self, rows: Rows) -> Rows:
        """Rows as the caller takes them."""
        return [tuple(self._cells(row)) for row in rows] if self._coming_out else rows

    def _cells(self, row: tuple[Any, ...]) -> list[Any]:
        cells = list(row)
        for place, processor in self._coming_out.items():
            cells[place] = processor(cells[place])
        return cells


def _known(processors: "dict[Any, Processor | None]") -> "dict[Any, Processor]":
    return {key: processor for key, processor in processors.items() if processor is not None}


class Readers:
    """A few open connections that only look, each at its own moment."""

    def __init__(self, opened: Callable[[], Direct], *, most: int, errors: type[Exception]) -> None:
        """Open one when it is first needed, at most so many; `errors` are the driver's."""
        self._open = opened
        self._errors = errors
        self._idle: deque[Direct] = deque()
        self._room = BoundedSemaphore(most)

    def rows(self, statement: StoreStatement, values: Values) -> Rows:
        """What a statement finds; a connection that has died since its last look is replaced."""
        with self._room:
            try:
                connection = self._idle.pop()
            except IndexError:
                return self._look(self._open(), statement, values)
            try:
                return self._look(connection, statement, values)
            except self._errors:
                self.close()  # the others have died with it
                return self._look(self._open(), statement, values)

    def _look(self, connection: Direct, statement: StoreStatement, values: Values) -> Rows:
        try:
            rows = statement.rows(connection, values)
        except BaseException:
            connection.driver.close()
            raise
        self._idle.append(connection)
        return rows

    def close(self) -> None:
        """Close those that nobody uses at this moment."""
        while self._idle:
            self._idle.pop().driver.close()
