"""Values taken out of SQL and of the question it answers, so that what is kept holds none.

«1» stands for a text and «n2» for a number, the same one wherever the same value stood. Not guaranteed: a value that a
question names in words without a capital and that no query compares with.
"""

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from sqlcrystal.databases.masked_sql import MASK, Reader, masked_sql
from sqlcrystal.gaps import Gap, Part, between

# What in a question looks like a value, whether a query compares with it or not: quoted, with a digit or an @, a name.
_QUOTED = r"\"[^\"]+\"|“[^”]+”|‘[^’]+’|(?<!\w)'[^']+'(?!\w)"
_CHUNK = r"[^\s,;?!()«»]+"
_TOKEN = re.compile(rf"{MASK.pattern}|{_QUOTED}|{_CHUNK}|[«»]")
_WORD = re.compile(r"(?<!\w)[^\W\d_][\w'’.-]*")
# Capitalised where a question or a sentence begins, and nobody's name.
_OPENING_WORDS = """
a about according across after all also among an and any are as at average based before below between by calculate
can compare compute consider could count describe determine did display do does during each every explain fetch
find first for from get give given group had has have how i identify if in include is it its last let like list
many me more most name need of on only or order out over per please print provide rank report retrieve return
select should show since some sort summarize tell than that the their there these they this those to top total
under until up was we were what what's when where whether which while who whom whose why will with within without
would you
"""
_OPENING = frozenset(_OPENING_WORDS.split())
UNREADABLE = "(not kept: its values cannot be told from the rest)"


class Masked(NamedTuple):
    """A question and its query without values."""

    question: str
    sql: str | None


class _Names:
    """Which mask stands for which value; two spellings of one value share a mask."""

    def __init__(self, known: Mapping[str, str] | None = None, *, taken: str = "") -> None:
        self._known = {value.casefold(): (value, mark) for value, mark in (known or {}).items()}
        self._last = max((int(number) for number in re.findall(r"«n?(\d+)»", taken)), default=0)

    def of(self, value: str, number: bool = False) -> str:
        if MASK.fullmatch(value):
            return value
        if value.casefold() not in self._known:
            self._last += 1
            self._known[value.casefold()] = (value, f"«{'n' if number else ''}{self._last}»")
        return self._known[value.casefold()][1]

    def apply(self, text: str) -> str:
        """The text with every known value masked, the longest first."""
        for value, mark in sorted(self._known.values(), key=lambda pair: len(pair[0]), reverse=True):
            text = re.sub(rf"(?<!\w){re.escape(value)}(?!\w)", mark, text, flags=re.IGNORECASE)
        return text


def mask(question: str, sql: str | None, *, dialect: str, names: Iterable[str] = (), runs: bool = True) -> Masked:
    """Take out the query's constants and whatever in the question looks like a value; `names` are the schema's."""
    schema = frozenset(name.casefold() for name in names)
    marks = _Names()
    masked = None if sql is None else _mask_query(sql, marks, dialect, schema, runs=runs)
    words = {word.casefold() for name in schema for word in re.findall(r"[^\W_]+", name)} | schema
    return Masked(_mask_words(marks.apply(question), marks, words), masked)


def mask_like(sql: str, *, masked: str, spoken: str, dialect: str, names: Iterable[str] = ()) -> str:
    """Another query for a question that was masked before: a value of the question gets the mask it has there."""
    schema = frozenset(name.casefold() for name in names)
    return _mask_query(sql, _Names(_values(masked, spoken), taken=masked), dialect, schema)


def is_masked(text: str) -> bool:
    """Whether a value was taken out."""
    return MASK.search(text) is not None


def _values(masked: str, spoken: str) -> dict[str, str]:
    """Which value each mask of a question stands for, from the question as it was spoken."""
    marks, pieces = MASK.findall(masked), MASK.split(masked)
    parts: list[Part] = [pieces[0]]
    for piece in pieces[1:]:
        parts += [Gap(), piece] if piece else [Gap()]
    return dict(zip(between(parts, spoken) or (), marks, strict=False))


def _mask_query(sql: str, marks: _Names, dialect: str, schema: frozenset[str], *, runs: bool = True) -> str:
    reader = Reader(dialect=dialect, schema=schema, name=marks.of, runs=runs)
    return masked_sql(sql, reader) or UNREADABLE


def _mask_words(question: str, marks: _Names, known: set[str]) -> str:
    def masked(found: re.Match[str]) -> str:
        chunk = found[0]
        if MASK.fullmatch(chunk):
            return chunk
        plain = chunk.strip("\"“”‘’'.")
        if plain and (plain != chunk.strip(".") or re.search(r"[\d@]", chunk)):
            return chunk.replace(plain, marks.of(plain, plain.isdecimal()))
        return _WORD.sub(named, chunk)

    def named(found: re.Match[str]) -> str:
        word = found[0].rstrip(".'’-")
        if not word[:1].isupper() or word.casefold() in _OPENING or _in_schema(word, known):
            return found[0]
        return found[0].replace(word, marks.of(word))

    return _TOKEN.sub(masked, question)


def _in_schema(word: str, known: set[str]) -> bool:
    plain = word.casefold()
    return plain in known or plain.rstrip("s") in known or f"{plain}s" in known
