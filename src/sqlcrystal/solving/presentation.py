"""A database as prompts show it: its schema, its owner's comments and hints, narrowed where it is too large."""

from collections.abc import Callable, Sequence
from threading import Lock
from time import monotonic
from typing import TYPE_CHECKING

from sqlcrystal.protocols import Database, Described, Embedder
from sqlcrystal.types import Execution, Question, Table

if TYPE_CHECKING:
    from sqlcrystal.solving.narrowing import Narrowing
    from sqlcrystal.solving.profile import ColumnProfile

ROOM = 24_000
"""Characters of schema a prompt may carry whole: about 6,000 tokens, which leaves an 8,192-token context its answer."""

WIDTH = 10
"""Tables that a prompt shows of a schema that has no room."""

PROFILE_SECONDS = 3600.0
"""How long the profile of a database is kept while its schema stays the same."""


class Presenter:
    """Gives every stage the same excerpt of a database for one question."""

    def __init__(
        self,
        database: Database,
        *,
        embedder: Callable[[], Embedder],
        hints: str = "",
        room: int = ROOM,
        width: int = WIDTH,
    ) -> None:
        """Read nothing yet; the embedder is only made for a schema that does not fit."""
        self._database = database
        self._embedder = embedder
        self._hints = hints
        self._room = room
        self._width = width
        self._known: tuple[str, Sequence[Table], Narrowing | None] | None = None
        self._profile: tuple[str, float, tuple[ColumnProfile, ...]] | None = None
        self._lock = Lock()

    def present(self, question: Question, *, profiled: bool = False) -> Database:
        """Show the database as this question's prompts do; SQL still runs on the whole database."""
        tables, narrowing = self._tables()
        chosen = tables if narrowing is None else narrowing.choose(question, width=self._width)
        schema = described_schema(chosen, hints=self._hints)
        if not profiled:
            return Excerpt(self._database, schema)
        from sqlcrystal.solving.profile import with_profile  # whose parser is slow to load

        shown = {table.name for table in chosen}
        columns = [column for column in self._columns() if column.table in shown or narrowing is None]
        return Excerpt(self._database, with_profile(schema, columns, question))

    def tables(self) -> Sequence[Table]:
        """List every table of the database, read when the schema is new."""
        return self._tables()[0]

    def _columns(self) -> "tuple[ColumnProfile, ...]":
        """Read the profile when the schema is new, and again after a while, since rows change."""
        from sqlcrystal.solving.profile import read_profile

        fingerprint, now = self._database.fingerprint(), monotonic()
        with self._lock:
            if self._profile is None or self._profile[0] != fingerprint or now > self._profile[1] + PROFILE_SECONDS:
                self._profile = (fingerprint, now, read_profile(self._database))
            return self._profile[2]

    def _tables(self) -> "tuple[Sequence[Table], Narrowing | None]":
        fingerprint = self._database.fingerprint()
        with self._lock:
            if self._known is None or self._known[0] != fingerprint:
                tables = tables_of(self._database)
                large = len(described_schema(tables, hints=self._hints)) > self._room
                self._known = (fingerprint, tables, self._narrowing(tables) if large else None)
            return self._known[1:]

    def _narrowing(self, tables: Sequence[Table]) -> "Narrowing":
        from sqlcrystal.solving.narrowing import Narrowing  # whose vectors most schemas do not need

        return Narrowing(tables, self._embedder())


class Excerpt:
    """A database whose schema is what a prompt has room for."""

    def __init__(self, database: Database, schema: str) -> None:
        """Show this schema; everything else is the database's."""
        self.name = database.name
        self.dialect = database.dialect
        self._database = database
        self._schema = schema

    def schema(self) -> str:
        """Show the excerpt."""
        return self._schema

    def fingerprint(self) -> str:
        """Fingerprint the whole schema."""
        return self._database.fingerprint()

    def execute(self, sql: str, *, timeout: float = 30.0, max_rows: int = 100_000) -> Execution:
        """Run on the whole database."""
        return self._database.execute(sql, timeout=timeout, max_rows=max_rows)

    def close(self) -> None:
        """Leave the database open: it is others' too."""


def tables_of(database: Database) -> Sequence[Table]:
    """List the database's tables, or its schema as one where it does not tell them apart."""
    if isinstance(database, Described):
        return database.tables()
    return (Table(name=database.name, definition=database.schema()),)


def described_schema(tables: Sequence[Table], *, hints: str = "") -> str:
    """Write the definitions with comments and hints as SQL comments; without either, just as `schema()` does."""
    sections = ["\n".join([table.definition, *_remarks(table)]) for table in tables]
    if hints.strip():
        lines = [f"-- {line.strip()}" for line in hints.strip().splitlines() if line.strip()]
        sections.append("\n".join(["-- Hints from the owner of this database:", *lines]))
    return "\n\n".join(sections)


def _remarks(table: Table) -> list[str]:
    """List comments that the definition does not show already, one line each."""
    comments = [
        (table.name, table.comment),
        *((f"{table.name}.{column.name}", column.comment) for column in table.columns),
    ]
    hidden = [(name, comment) for name, comment in comments if comment and comment not in table.definition]
    return [f"-- {name}: {' '.join(comment.split())}" for name, comment in hidden]
