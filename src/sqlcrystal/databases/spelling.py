"""Values as they are stored: a literal that its column never holds, and the values that may have been meant."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from difflib import SequenceMatcher

from msgspec import Struct
from sqlglot import exp

from sqlcrystal.databases.parsing import Unparsable, grammar, parse, written
from sqlcrystal.databases.symptoms import SECONDS_TO_LOOK, StrangeLiteral, strange_literals
from sqlcrystal.protocols import Database
from sqlcrystal.types import Rows

MOST_VALUES = 5_000
"""A column with more different texts is not searched for a near one, only for another case."""
ALIKE = 0.8
"""The least share of letters that two spellings of one value have in common."""
CLEARLY = 0.05
"""By so much the nearest value must be nearer than the next, or either may be meant."""
PERHAPS = 0.6
"""The least likeness of a value that a person is shown, who can tell."""
MOST_NEAR, FEW_VALUES, MOST_LITERALS = 3, 8, 3
DATES = ("%Y-%m-%d", "%d-%b-%Y", "%d-%B-%Y", "%d.%m.%Y", "%Y/%m/%d", "%d %b %Y", "%d %B %Y", "%b %d, %Y", "%B %d, %Y")
"""Ways to write a day that can be read in one way only; 03/04/2023 is left out on purpose."""


class NotHeld(Struct, frozen=True, kw_only=True):
    """A value that a query looks for and its column never holds, with those of the column that may be meant."""

    table: str
    column: str
    value: str
    near: tuple[str, ...] = ()
    holds: tuple[str, ...] = ()
    """All that the column holds, where that is little and nothing of it reads like the value."""


class Respelling(Struct, frozen=True):
    """A value as the query has it, and as its column holds it."""

    written: str
    stored: str


class Respelled(Struct, frozen=True):
    """A query whose literals are spelled as they are stored."""

    sql: str
    changes: tuple[Respelling, ...]


def respelled(sql: str | None, database: Database) -> Respelled | None:
    """Exchange every literal that its column never holds for the one value near it; None where one has no such value.

    Read through the guard, without a model: no value leaves the database but in the query that is to run there.
    """
    try:
        query = parse(sql or "", database.dialect)
    except Unparsable:
        return None
    changes = []
    for strange in list(strange_literals(query, database)):
        stored = nearest_value(strange, database)
        if stored is None:
            return None
        changes.append(Respelling(strange.literal.name, stored))
        _exchange(query, strange.literal.name, stored)
    if not changes:
        return None
    try:
        return Respelled(written(query, database.dialect), tuple(dict.fromkeys(changes)))
    except Unparsable:
        return None


def with_value(sql: str, dialect: str, old: str, new: str) -> str:
    """Write a query with one text in the place of another; one that cannot be read stays as it is."""
    try:
        query = parse(sql, dialect)
    except Unparsable:
        return sql
    _exchange(query, old, new)
    return written(query, dialect, pretty=True)


def _exchange(query: exp.Expr, old: str, new: str) -> None:
    for literal in list(query.find_all(exp.Literal)):
        if literal.is_string and literal.name == old:
            literal.replace(exp.Literal.string(new))


def near_values(sql: str, database: Database) -> tuple[NotHeld, ...]:
    """List the values that may be meant by each text that its column never holds, for a person to choose from."""
    try:
        query = parse(sql, database.dialect)
    except Unparsable:
        return ()
    found: list[NotHeld] = []
    for strange in strange_literals(query, database):
        if strange.literal.is_string and len(found) < MOST_LITERALS:
            value, held = strange.literal.name, sorted(filter(None, _texts_of(strange, database)))
            near = tuple(_perhaps_meant(value, held))
            few = tuple(held) if not near and len(held) <= FEW_VALUES else ()
            found.append(NotHeld(table=strange.table, column=strange.column.name, value=value, near=near, holds=few))
    return tuple(each for each in found if each.near or each.holds)


def misspelt(sql: str | None, database: Database) -> Iterator[str]:
    """Write a sentence for each literal that has a value near it, for a repair that may see values."""
    try:
        query = parse(sql or "", database.dialect)
    except Unparsable:
        return
    for strange in strange_literals(query, database):
        stored = nearest_value(strange, database)
        if stored is not None:
            quoted = exp.Literal.string(stored).sql(grammar(database.dialect))
            yield f"{strange.sentence(database.dialect)} It holds {quoted}."


def nearest_value(strange: StrangeLiteral, database: Database) -> str | None:
    """Find the text that a column holds and a literal probably means: the same but for case, day or a few letters."""
    if not strange.literal.is_string:
        return None
    meant = strange.literal.name
    lowered = exp.Lower(this=exp.column(strange.column.this.copy()))
    same = _distinct(strange).where(lowered.eq(exp.Literal.string(meant.lower())))
    cased = _texts(database, same, most=2)
    if cased:
        return cased[0] if len(cased) == 1 else None
    return _one_that_is_clearly_nearest(meant, _texts_of(strange, database))


def _texts_of(strange: StrangeLiteral, database: Database) -> tuple[str, ...]:
    """Read the different texts of a column; none where there are too many to choose from."""
    return _texts(database, _distinct(strange), most=MOST_VALUES) or ()


def _distinct(strange: StrangeLiteral) -> exp.Select:
    return exp.select(exp.column(strange.column.this.copy())).distinct().from_(exp.to_identifier(strange.table))


def _texts(database: Database, query: exp.Select, *, most: int) -> tuple[str, ...] | None:
    """Read the texts of a column; None where there are more than asked for, or the look fails."""
    sql = query.limit(most + 1).sql(grammar(database.dialect))
    found = database.execute(sql, timeout=SECONDS_TO_LOOK, max_rows=most + 1)
    if not isinstance(found, Rows) or len(found.rows) > most:
        return None
    return tuple(row[0] for row in found.rows if isinstance(row[0], str))


def _one_that_is_clearly_nearest(meant: str, held: tuple[str, ...]) -> str | None:
    if (day := _day(meant)) is not None:
        same = [value for value in held if _day(value) == day]
        return same[0] if len(same) == 1 else None
    near = sorted(((_likeness(meant, value), value) for value in held), reverse=True)[:2]
    if not near or near[0][0] < ALIKE or (len(near) > 1 and near[0][0] - near[1][0] < CLEARLY):
        return None
    return near[0][1]


def _likeness(one: str, other: str) -> float:
    """Compare two spellings from 0 to 1; digits must be the same, since another number is another thing."""
    if [letter for letter in one if letter.isdigit()] != [letter for letter in other if letter.isdigit()]:
        return 0.0
    matcher = SequenceMatcher(None, one.casefold(), other.casefold())
    return matcher.ratio() if matcher.real_quick_ratio() >= ALIKE and matcher.quick_ratio() >= ALIKE else 0.0


def _perhaps_meant(value: str, held: Sequence[str]) -> list[str]:
    """List the values most like one, best first; a whole word of another is like it, however long the other is."""
    wanted = value.casefold()

    def likeness(other: str) -> float:
        inside = wanted and f" {wanted} " in f" {other} "
        return 0.9 if inside else SequenceMatcher(None, wanted, other).ratio()

    scored = [(likeness(text.casefold()), text) for text in held]
    best = sorted((pair for pair in scored if pair[0] >= PERHAPS), key=lambda pair: (-pair[0], pair[1]))
    return [text for _, text in best[:MOST_NEAR]]


def _day(text: str) -> datetime | None:
    for form in DATES:
        try:
            return datetime.strptime(text.strip(), form)
        except ValueError:
            continue
    return None
