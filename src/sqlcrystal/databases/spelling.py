"""Values as they are stored: a literal that its column never holds, and the value that was probably meant."""

from collections.abc import Iterator
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
DATES = ("%Y-%m-%d", "%d-%b-%Y", "%d-%B-%Y", "%d.%m.%Y", "%Y/%m/%d", "%d %b %Y", "%d %B %Y", "%b %d, %Y", "%B %d, %Y")
"""Ways to write a day that can be read in one way only; 03/04/2023 is left out on purpose."""


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
        for literal in list(query.find_all(exp.Literal)):
            if literal == strange.literal:
                literal.replace(exp.Literal.string(stored))
    if not changes:
        return None
    try:
        return Respelled(written(query, database.dialect), tuple(dict.fromkeys(changes)))
    except Unparsable:
        return None


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
    meant, column = strange.literal.name, exp.column(strange.column.this.copy())
    texts = exp.select(column).distinct().from_(exp.to_identifier(strange.table))
    same = texts.where(exp.Lower(this=column.copy()).eq(exp.Literal.string(meant.lower())))
    cased = _texts(database, same, most=2)
    if cased:
        return cased[0] if len(cased) == 1 else None
    return _one_that_is_clearly_nearest(meant, _texts(database, texts, most=MOST_VALUES) or ())


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


def _day(text: str) -> datetime | None:
    for form in DATES:
        try:
            return datetime.strptime(text.strip(), form)
        except ValueError:
            continue
    return None
