"""SQLite through the standard library, read-only, in two lanes.

A statement first runs in this process, for a quarter of a second, with small values: there nothing can run on within
a single step. What needs more time, memory or larger values, calls a function that may run on, or may take long to
prepare, goes to a child process that can be ended. What it does NOT guarantee: virtual tables that prepare writes when
opened (rtree) are refused; on Windows and macOS only SQLite's own heap limit bounds the child.
"""

import hashlib
import re
import sqlite3
from collections.abc import Callable, Mapping
from pathlib import Path
from threading import Lock
from time import perf_counter
from typing import NamedTuple
from urllib.parse import quote

import msgspec
from msgspec.structs import replace

from sqlcrystal.databases.child import GRACE_SECONDS, OUTSIDE, Children, Gone, Late, Request, decode
from sqlcrystal.databases.description import with_views
from sqlcrystal.databases.engines import Opening
from sqlcrystal.databases.plain import is_plain
from sqlcrystal.databases.results import OVER_THE_CAP
from sqlcrystal.databases.sqlite_connection import FAST, Connection
from sqlcrystal.errors import DatabaseError, DataError
from sqlcrystal.types import Column, Execution, Failure, FailureKind, Row, Table

FAST_SECONDS = 0.25
LEAST_SECONDS = 0.1
MAX_IDLE = 4
MAX_FAST_WEIGHT = 300_000
"""SQLite copies an expression to wherever its column is named: beyond so many copies a child prepares the statement."""
MAX_FAST_CHARACTERS = 4000
"""Longer statements may take long to plan (400 windows: seconds, 1,900: minutes), which no clock interrupts."""
SHORT = {0: 1000, 1: 1000, 2: 300}
"""So short, one query or one inside another makes 125,000 copies at most, however its names are spread."""
_TOLD = "type IN ('table', 'view') AND sql IS NOT NULL AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
_MULTIPLYING = """
SELECT name, sql FROM sqlite_master
WHERE type = 'view' OR sql LIKE 'CREATE VIRTUAL TABLE%' OR (type = 'table' AND sql LIKE '% AS %(%')
"""
_GENERATED = re.compile(r"\bAS\s*\(", re.IGNORECASE)
_TABLE = re.compile(r"CREATE\s+TABLE", re.IGNORECASE)
_VIRTUAL = re.compile(r"CREATE\s+VIRTUAL", re.IGNORECASE)
_DETOUR = frozenset({FailureKind.TIMEOUT, FailureKind.TOO_LARGE, FailureKind.REFUSED})


class SqliteDatabase:
    """One SQLite file; threads check out a connection each, and slow statements a child process."""

    dialect = "sqlite"

    def __init__(self, path: Path, *, name: str | None = None, inspect: bool = True, terse: bool = False) -> None:
        """Open the file read-only, and say in one line when it is missing or no database."""
        self.path = path
        self.name = name or path.stem
        self._inspect = inspect
        self._terse = terse
        if not path.is_file():
            raise DataError(f"database {self.name}: no such file: {path}")
        self._lock = Lock()
        self._idle: list[Connection] = []
        self._uri = f"file:{quote(str(path.resolve()))}?mode=ro"
        self._closed = False
        self._known: _Definitions | None = None
        self._give_back(self._first_connection())
        self._multiplying, self._always_slow = self._look_at_the_schema()

    def execute(self, sql: str, *, timeout: float = 30.0, max_rows: int = 100_000) -> Execution:
        """Run one guarded statement; where nobody reads why one fails, a plain one needs no syntax tree."""
        if self._terse and is_plain(sql):
            return self._run(sql.rstrip("; \t\r\n"), timeout, max_rows)
        from sqlcrystal.databases import guard  # whose parser takes as long to load as a file of predictions to score

        statement = guard.read(sql, self.dialect, guard.DatabaseRules(inspect=self._inspect))
        return statement if isinstance(statement, Failure) else self._run(statement.text, timeout, max_rows)

    def schema(self) -> str:
        """The stored CREATE TABLE and CREATE VIEW texts, in the order they were made."""
        return "\n\n".join(f"{statement};" for _, statement in self._definitions().told)

    def tables(self) -> tuple[Table, ...]:
        """Every table and view, in the order they were made; SQLite keeps comments in the definition."""
        named = self._rows(f"SELECT type, name FROM sqlite_master WHERE {_TOLD} ORDER BY rowid")
        return with_views(
            Table(
                name=str(name),
                kind=str(kind),
                columns=tuple(
                    Column(name=str(column), type=str(declared))
                    for column, declared in self._described("name, type", "table_info", str(name))
                ),
                definition=f"{definition};",
                references=tuple(
                    dict.fromkeys(str(other) for (other,) in self._described('"table"', "foreign_key_list", str(name)))
                ),
            )
            for (kind, name), (_, definition) in zip(named, self._definitions().told, strict=True)
        )

    def _described(self, columns: str, pragma: str, table: str) -> tuple[Row, ...]:
        """Ask SQLite about a table; nothing where it cannot say, such as of a view over a table that is gone."""
        quoted = "'" + table.replace("'", "''") + "'"
        weight = self._multiplying.get(table.lower(), Weight(1))
        result = self._run(f"SELECT {columns} FROM pragma_{pragma}({quoted})", 5.0, 100_000, weight=weight)
        return () if isinstance(result, Failure) else result.rows

    def fingerprint(self) -> str:
        """A digest of the stored definitions of tables and views, blind to layout and to data."""
        return self._definitions().digest

    def close(self) -> None:
        """Close every idle connection; one in use closes when its statement ends."""
        with self._lock:
            idle, self._idle, self._closed = self._idle, [], True
        for connection in idle:
            connection.close()

    def _run(self, sql: str, timeout: float, max_rows: int, *, weight: "Weight | None" = None) -> Execution:
        """Run a statement behind the engine lock alone."""
        start = perf_counter()
        if self._closed:
            raise DatabaseError(f"database {self.name} is closed")
        if not self._always_slow and len(sql) <= MAX_FAST_CHARACTERS and self._is_light(sql, weight):
            connection = self._take()
            try:
                result = connection.run(sql, min(timeout, FAST_SECONDS), max_rows)
            finally:
                self._give_back(connection)
            if not _may_do_better(result, timeout):
                return result
        result = _run_slowly(Request(sql, timeout, max_rows, location=self._uri), start)
        if isinstance(result, Failure) and result.message.startswith(OUTSIDE):
            raise DatabaseError(f"database {self.name}: {result.message.removeprefix(OUTSIDE)}")
        return replace(result, seconds=perf_counter() - start)

    def _is_light(self, sql: str, weight: "Weight | None") -> bool:
        """Tell whether the statement is prepared at once, by a guess that never errs on the side of lightness."""
        if weight is None and not self._multiplying and len(sql) <= SHORT.get(sql.lower().count("select"), 0):
            return True
        return (weight or weigh(sql, self._multiplying.get)).size <= MAX_FAST_WEIGHT

    def _look_at_the_schema(self) -> tuple[Mapping[str, "Weight"], bool]:
        """Weigh the views and generated columns; tell whether a virtual table's step may take as long as it likes."""
        connection = self._take()
        try:
            result = connection.run(_MULTIPLYING, 30.0, 1_000_000)
        finally:
            self._give_back(connection)
        if isinstance(result, Failure):
            return {}, True
        made = {str(name).lower(): str(definition) for name, definition in result.rows}
        return _weights(made), any(_VIRTUAL.match(definition) for definition in made.values())

    def _rows(self, sql: str) -> tuple[Row, ...]:
        """Give the rows of a query of our own."""
        result = self._run(sql, 30.0, 1_000_000)
        if isinstance(result, Failure):
            raise DatabaseError(f"database {self.name}: {result.message}")
        return result.rows

    def _definitions(self) -> "_Definitions":
        rows = self._rows(f"SELECT type, sql FROM sqlite_master WHERE {_TOLD} ORDER BY rowid")
        known = self._known
        if known is None or known.stored != rows:
            known = self._known = _Definitions.of(rows)
        return known

    def _first_connection(self) -> Connection:
        """A connection that has read the schema once; a read-only folder needs the file declared immutable."""
        try:
            return Connection(self._uri, FAST)
        except (sqlite3.Error, UnicodeDecodeError):
            try:
                immutable = f"{self._uri}&immutable=1"
                connection = Connection(immutable, FAST)
            except (sqlite3.Error, UnicodeDecodeError) as error:
                raise DataError(f"database {self.name}: {self.path} cannot be read as SQLite: {error}") from None
            self._uri = immutable
            return connection

    def _take(self) -> Connection:
        with self._lock:
            if self._closed:
                raise DatabaseError(f"database {self.name} is closed")
            if self._idle:
                return self._idle.pop()
        try:
            return Connection(self._uri, FAST)
        except sqlite3.Error as error:
            raise DatabaseError(f"database {self.name}: {error}") from None

    def _give_back(self, connection: Connection) -> None:
        with self._lock:
            if not self._closed:
                self._idle.append(connection)
                return
        connection.close()


class _Definitions(NamedTuple):
    """The definitions of a schema as SQLite stores them, told in order, and as a digest; each question asks for it."""

    stored: tuple[Row, ...]
    told: tuple[tuple[str, str], ...]
    digest: str

    @classmethod
    def of(cls, stored: tuple[Row, ...]) -> "_Definitions":
        """Read them."""
        told = tuple((str(kind), _tidy(str(statement))) for kind, statement in stored)
        digest = hashlib.sha256()
        for kind, statement in sorted(told):
            digest.update(f"{kind}\0{_canonical(statement)}\0".encode())
        return cls(stored, told, digest.hexdigest())


_slow_lane = Children("sqlcrystal.databases.sqlite_connection", max_idle=MAX_IDLE)


def _run_slowly(request: Request, start: float) -> Execution:
    """Run a statement in a child for what is left of its time; the child is ended when it is late."""
    child = _slow_lane.take()
    left = max(LEAST_SECONDS, request.timeout - (perf_counter() - start))
    try:
        return decode(child.ask(msgspec.msgpack.encode(replace(request, timeout=left)), left + GRACE_SECONDS))
    except Late:
        return Failure(FailureKind.TIMEOUT, "interrupted")
    except Gone:
        return Failure(FailureKind.TOO_LARGE, "the statement needed more memory than it may have")
    finally:
        _slow_lane.give_back(child)


def _may_do_better(result: Execution, timeout: float) -> bool:
    """Tell whether the slow lane, which has more time, larger values and more functions, may have another answer."""
    if not isinstance(result, Failure) or result.kind not in _DETOUR or result.message.startswith(OVER_THE_CAP):
        return False
    return result.kind is not FailureKind.TIMEOUT or timeout > FAST_SECONDS


def _tidy(statement: str) -> str:
    """The stored text without trailing blanks and blank lines."""
    lines = [line.rstrip() for line in statement.strip().splitlines()]
    return "\n".join(line for line in lines if line)


def _canonical(statement: str) -> str:
    """The statement with its layout folded, so that reformatting does not count as a change."""
    return " ".join(statement.split())


# How a statement is weighed: by what stands in it, and by what stands behind each of its names.
HEAVIEST = 10**9
_PIECE = re.compile(
    r"--[^\n]*|/\*.*?(?:\*/|\Z)|(?P<quoted>'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|`(?:[^`]|``)*`|\[[^\]]*\])"
    r"|(?P<word>[A-Za-z_\x80-\U0010ffff][\w$]*)|(?P<mark>[()])|(?P<other>[0-9.]+|[^\s,;])",
    re.DOTALL,
)
_GRAMMAR = """
all as asc between by case cast collate cross desc distinct else end escape except exists from full group having in
inner intersect is join left like limit materialized natural not null on or and order outer over partition recursive
right select then union using values when where window with
"""
_KEYWORDS = frozenset(_GRAMMAR.split())
_QUERIES = frozenset({"select", "with", "values"})
_BEFORE_A_CTE = frozenset({"as", "materialized"})
_COMPOUNDS = frozenset({"union", "except", "intersect"})
_BEHIND_THE_COLUMNS = frozenset({"where", "group", "having", "order", "window", "over"})


class Weight(NamedTuple):
    """The number of expressions that a query may become, and of queries that it may be the union of."""

    size: int
    arms: int = 1


class _Level:
    """One pair of parentheses: what stands in it, and the weight of the queries that it reads from."""

    def __init__(self, name: str = "", behind: bool = False) -> None:
        self.name = name
        """Under which a WITH knows it."""
        self.is_query = False
        self.pieces = self.names = self.sources = 0
        self.arms = self.copies = 1
        self.behind = behind
        """Whether the columns are over: what is named now may be a column, by its alias or number, once more."""
        self.last_name = self.last_word = ""

    def read_from(self, weight: Weight) -> None:
        """Add a query that this one reads from; reading from a union, it becomes one."""
        self.sources += weight.size
        self.copies = min(HEAVIEST, self.copies * weight.arms)

    def take_keyword(self, word: str) -> None:
        """Note what a keyword says of the query."""
        self.is_query = self.is_query or word in _QUERIES
        self.behind = (self.behind or word in _BEHIND_THE_COLUMNS) and word != "select"
        self.arms += word in _COMPOUNDS
        self.last_word = word

    @property
    def weight(self) -> Weight:
        size = (self.pieces + self.names * self.sources) * self.copies
        return Weight(min(HEAVIEST, max(1, size)), min(HEAVIEST, self.arms * self.copies))


def weigh(sql: str, known: Callable[[str], Weight | None]) -> Weight:
    """Bound how many expressions SQLite makes of a statement: each name may stand for all that its source holds.

    `known` gives the weight of a view or of a table with generated columns.
    """
    levels = [_Level()]
    named: dict[str, Weight] = {}
    again = 1
    for piece in _PIECE.finditer(sql):
        level = levels[-1]
        word = (piece["word"] or "").lower()
        if piece["mark"] == "(":
            levels.append(_Level(level.last_name if level.last_word in _BEFORE_A_CTE else "", level.behind))
        elif piece["mark"]:
            if len(levels) > 1:
                _close(levels.pop(), levels[-1], named)
        elif piece.lastgroup:
            level.pieces += 1
            again += level.behind
            if word in _KEYWORDS:
                level.take_keyword(word)
            elif name := word or (piece["quoted"] or "")[1:-1].lower() or ("*" if piece["other"] == "*" else ""):
                level.names += 1
                level.last_name, level.last_word = name, ""
                if weight := named.get(name) or known(name):
                    level.read_from(weight)
    while len(levels) > 1:
        _close(levels.pop(), levels[-1], named)
    size, arms = levels[0].weight
    return Weight(min(HEAVIEST, size * again), arms)


def _close(inner: _Level, outer: _Level, named: dict[str, Weight]) -> None:
    """Add what a pair of parentheses holds to what is around it; a named query counts where it is named."""
    if inner.is_query and inner.name:
        named[inner.name] = inner.weight
    elif inner.is_query:
        outer.read_from(inner.weight)
    else:
        outer.pieces += inner.pieces
        outer.names += inner.names
        outer.sources += inner.sources
        outer.copies = min(HEAVIEST, outer.copies * inner.copies)
    outer.last_word = ""


def _weights(made: Mapping[str, str]) -> dict[str, Weight]:
    """Weigh views, which may name one another, and tables whose columns may be computed from one another."""
    weights: dict[str, Weight | None] = {}

    def of(name: str) -> Weight | None:
        if name in made and name not in weights:
            weights[name] = Weight(HEAVIEST)  # a view that names itself cannot be read
            definition = made[name]
            if not _TABLE.match(definition):
                weights[name] = weigh(definition, of)
            elif not _GENERATED.search(definition):
                weights[name] = None
        return weights.get(name)

    for name in made:
        of(name)
    return {name: weight for name, weight in weights.items() if weight}


def open_sqlite(opening: Opening) -> SqliteDatabase:
    """Open a SQLite file."""
    return SqliteDatabase(opening.path, name=opening.name, inspect=opening.inspect, terse=opening.terse)
