"""Values that a column holds and that read like one it does not: what a question most likely meant."""

from difflib import SequenceMatcher

from msgspec import Struct
from sqlglot import exp

from sqlcrystal.databases.parsing import Unparsable, grammar, parse, written
from sqlcrystal.databases.symptoms import values_never_held
from sqlcrystal.protocols import Database
from sqlcrystal.types import Failure

SECONDS_TO_LOOK = 1.0
MOST_VALUES, MOST_NEAR, FEW_VALUES, MOST_LITERALS = 5_000, 3, 8, 3
LEAST_ALIKE = 0.6


class NotHeld(Struct, frozen=True, kw_only=True):
    """A value that a query looks for and its column never holds, with those of the column that may be meant."""

    table: str
    column: str
    value: str
    near: tuple[str, ...] = ()
    holds: tuple[str, ...] = ()
    """All that the column holds, where that is little and nothing of it reads like the value."""


def near_values(sql: str, database: Database) -> tuple[NotHeld, ...]:
    """Look up each text that the query compares a column with and that the column never holds."""
    found: list[NotHeld] = []
    for table, column, literal in values_never_held(sql, database):
        if literal.is_string and len(found) < MOST_LITERALS:
            held = _texts_of(database, table, column)
            near = tuple(_alike(literal.name, held))
            few = tuple(held) if not near and len(held) <= FEW_VALUES else ()
            found.append(NotHeld(table=table, column=column.name, value=literal.name, near=near, holds=few))
    return tuple(each for each in found if each.near or each.holds)


def with_value(sql: str, dialect: str, old: str, new: str) -> str:
    """Write a query with one text in the place of another; one that cannot be read stays as it is."""
    try:
        query = parse(sql, dialect)
    except Unparsable:
        return sql
    for literal in list(query.find_all(exp.Literal)):
        if literal.is_string and literal.name == old:
            literal.replace(exp.Literal.string(new))
    return written(query, dialect, pretty=True)


def _texts_of(database: Database, table: str, column: exp.Column) -> list[str]:
    """List the different texts of a column; none where there are too many to choose from, or the look takes long."""
    name = exp.column(column.this.copy())
    look = exp.select(name).distinct().from_(exp.to_identifier(table)).where(name.copy().is_(exp.null()).not_())
    text = look.limit(MOST_VALUES).sql(grammar(database.dialect))
    answer = database.execute(text, timeout=SECONDS_TO_LOOK, max_rows=MOST_VALUES)
    if isinstance(answer, Failure) or len(answer.rows) >= MOST_VALUES:
        return []
    return sorted(row[0] for row in answer.rows if isinstance(row[0], str) and row[0])


def _alike(value: str, held: list[str]) -> list[str]:
    wanted = value.casefold()
    scored = [(_likeness(wanted, text.casefold()), text) for text in held]
    best = sorted((pair for pair in scored if pair[0] >= LEAST_ALIKE), key=lambda pair: (-pair[0], pair[1]))
    return [text for _, text in best[:MOST_NEAR]]


def _likeness(one: str, other: str) -> float:
    """Measure from 0 to 1; one that is a whole word of the other reads like it, however long the other is."""
    if one and f" {one} " in f" {other} ":
        return 0.9
    return SequenceMatcher(None, one, other).ratio()
