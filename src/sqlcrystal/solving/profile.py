"""The profile of a database: one line a column of what it holds, for prompts that may show values."""

import re
import time
from collections.abc import Iterator, Sequence
from typing import ClassVar
from weakref import WeakKeyDictionary

from msgspec import Struct
from sqlglot import exp

from sqlcrystal.databases.layout import keys_of, spelled_layout
from sqlcrystal.databases.parsing import grammar
from sqlcrystal.protocols import Database
from sqlcrystal.solving.fallback import Fallback
from sqlcrystal.solving.presentation import Excerpt
from sqlcrystal.solving.solver import SingleShot
from sqlcrystal.types import Cell, Question, Row, Rows

FEW = 10
"""A column with at most so many different values shows all of them."""
FREQUENT = 3
"""So many of the most frequent values stand for a text column with more."""
LONGEST_VALUE = 40
ROOM = 6_000
"""Characters of profile that a prompt may carry, about 2,000 tokens; beyond it, lines that the question may need."""
SECONDS_A_LOOK = 2.0
SECONDS_IN_ALL = 20.0
SAMPLED_ROWS = 10_000
"""A table that is too large to be counted in time is judged by so many of its rows."""
HEADING = "-- What the columns hold:"
DATE = re.compile(r"\d{4}-\d{2}-\d{2}(?:[ T].*)?")
WORD = re.compile(r"[^\W_]+")


class ColumnProfile(Struct, frozen=True):
    """The content of one column, as a prompt tells it."""

    table: str
    column: str
    values: str

    @property
    def line(self) -> str:
        """Write the line of a prompt, an SQL comment like an owner's own."""
        return f"-- {self.table}.{self.column}: {self.values}"


_PROFILES: WeakKeyDictionary[Database, tuple[ColumnProfile, ...]] = WeakKeyDictionary()


class Profiled(SingleShot):
    """Shows what the columns hold after the schema; never to be used where values may not leave the database."""

    name: ClassVar[str] = "profiled"
    summary: ClassVar[str] = "sees what the columns hold"

    def shown(self, question: Question) -> Database:
        """Add the profile to the schema; a study's databases do not change, so each is read once."""
        if self.database not in _PROFILES:
            _PROFILES[self.database] = read_profile(self.database)
        return Excerpt(self.database, with_profile(self.database.schema(), _PROFILES[self.database], question))


class ProfiledFallback(Fallback):
    """Chooses between two answers that both see what the columns hold."""

    name: ClassVar[str] = "profiled-fallback"
    summary: ClassVar[str] = "sees what the columns hold, and answers without cards where only that shows no sign"
    chooses_between: ClassVar[type[SingleShot]] = Profiled


def read_profile(database: Database) -> tuple[ColumnProfile, ...]:
    """Look at every column that is no key, through the guard and within limits of time."""
    schema, dialect = database.schema(), database.dialect
    keys, deadline = keys_of(schema, dialect).columns, time.monotonic() + SECONDS_IN_ALL
    profile = []
    for table, columns in spelled_layout(schema, dialect).items():
        for column in columns:
            if (table.lower(), column.lower()) in keys or time.monotonic() > deadline:
                continue
            if values := _values(database, table, column):
                profile.append(ColumnProfile(table, column, values))
    return tuple(profile)


def with_profile(schema: str, profile: Sequence[ColumnProfile], question: Question) -> str:
    """Add to a schema what its columns hold."""
    return "\n\n".join(filter(None, [schema.rstrip(), render_profile(profile, question)]))


def render_profile(profile: Sequence[ColumnProfile], question: Question, *, room: int = ROOM) -> str:
    """Write the lines in the order of the schema; without room for all, those that share words with the question.

    While all fit, the text is the same for every question of a database, so that a prefix cache reads it once.
    """
    lines = [column.line for column in profile]
    if sum(len(line) + 1 for line in lines) > room:
        asked = _words(f"{question.text} {question.evidence}")
        ranked = sorted(range(len(lines)), key=lambda place: (-len(asked & _words(lines[place])), place))
        lines = [lines[place] for place in sorted(_that_fit(ranked, lines, room))]
    return "\n".join([HEADING, *lines]) if lines else ""


def _that_fit(ranked: Sequence[int], lines: Sequence[str], room: int) -> Iterator[int]:
    for place in ranked:
        room -= len(lines[place]) + 1
        if room < 0:
            return
        yield place


def _words(text: str) -> set[str]:
    """Split a text into words in lower case, without a plural's s."""
    return {word.lower().removesuffix("s") for word in WORD.findall(text)}


def _values(database: Database, table: str, column: str) -> str:
    """Tell what a column holds: every value, a range, or frequent ones; and whether NULL is among them."""
    source = exp.to_identifier(table, quoted=True)
    name = exp.to_identifier(column, quoted=True)
    every_row = exp.select(exp.column(name).as_("value")).from_(source)
    for rows in (every_row, every_row.limit(SAMPLED_ROWS)):
        counted = _look(database, _most_frequent(rows), max_rows=FEW + 2)
        if counted is not None:
            break
    else:
        return ""
    held = [row[0] for row in counted if row[0] is not None]
    if not held:
        return "only NULL" if counted else ""
    if len(counted) <= FEW + 1 and len(held) <= FEW:
        shown = ", ".join(map(_literal, held))
        return f"{shown} or NULL" if len(held) < len(counted) else shown
    [extremes] = _look(database, _extremes(rows), max_rows=1) or [(None, None, 0)]
    shown = _range(extremes) or ", ".join(["such as " + _literal(held[0]), *map(_literal, held[1:FREQUENT]), "..."])
    return f"{shown} or NULL" if extremes[2] else shown


def _most_frequent(rows: exp.Select) -> exp.Select:
    counted = exp.select("value", exp.Count(this=exp.Star()).as_("n")).from_(rows.subquery("held"))
    return counted.group_by("value").order_by("n DESC", "value").limit(FEW + 2)


def _extremes(rows: exp.Select) -> exp.Select:
    missing = "COUNT(*) - COUNT(value)"
    return exp.select("MIN(value)", "MAX(value)", missing).from_(rows.subquery("held"))


def _look(database: Database, query: exp.Select, *, max_rows: int) -> tuple[Row, ...] | None:
    sql = query.sql(grammar(database.dialect))
    result = database.execute(sql, timeout=SECONDS_A_LOOK, max_rows=max_rows)
    return result.rows if isinstance(result, Rows) else None


def _range(extremes: Row) -> str:
    """Write the smallest and largest of numbers or of dates; nothing for other texts, whose order says nothing."""
    least, most = extremes[:2]
    numbers = all(isinstance(value, int | float) for value in (least, most))
    dates = all(isinstance(value, str) and DATE.fullmatch(value) for value in (least, most))
    return f"from {_literal(least)} to {_literal(most)}" if numbers or dates else ""


def _literal(cell: Cell) -> str:
    """Write a value as SQL does, on one line and not too long."""
    if not isinstance(cell, str):
        return str(cell)
    text = " ".join(cell.split())
    short = text if len(text) <= LONGEST_VALUE else text[: LONGEST_VALUE - 1] + "…"
    return "'" + short.replace("'", "''") + "'"
