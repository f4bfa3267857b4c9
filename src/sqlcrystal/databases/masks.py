"""Values taken out of SQL and of the question it answers, so that what is kept holds none.

«1» stands for a text and «n2» for a number, the same one wherever the same value stood. Kept are what no cell holds:
limits, 0 and 1, the digits a function counts by, formats and units of time. Not guaranteed: a value that a question
names in lower-case words and no query compares with.
"""

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from sqlglot import exp

from sqlcrystal.databases.parsing import Unparsable, grammar, parse

MASK = re.compile(r"«n?\d+»")
_HARMLESS_NUMBERS = frozenset({"0", "1", "-1", "100"})
_TIME = re.compile(
    r"(?:%[a-zA-Z]|[-:/ .T])+|(?:YYYY|MM|DD|HH24|MI|SS|[-:/ ])+"
    r"|(?:start of )?(?:second|minute|hour|day|week|month|quarter|year)s?",
    re.IGNORECASE,
)
# What in a question looks like a value, whether a query compares with it or not: quoted, with a digit or an @, a name.
_QUOTED = r"\"[^\"]+\"|“[^”]+”|‘[^’]+’|(?<!\w)'[^']+'(?!\w)"
_TOKEN = re.compile(rf"{_QUOTED}|[^\s,;?!()]*[\d@][^\s,;?!()]*|(?<!\w)[^\W\d_][\w'’.-]*")
UNREADABLE = "(not kept: its values cannot be told from the rest)"


class Masked(NamedTuple):
    """A question and its query without values."""

    question: str
    sql: str | None


class _Names:
    """Which mask stands for which value; two spellings of one value share a mask."""

    def __init__(self, known: Mapping[str, str] | None = None, *, taken: str = "") -> None:
        self._known = dict(known or {})
        self._last = max((int(number) for number in re.findall(r"«n?(\d+)»", taken)), default=0)

    def of(self, value: str, *, number: bool = False) -> str:
        if MASK.search(value):
            return value
        mark = "n" if number or re.fullmatch(r"\d+(?:\.\d+)?", value) else ""
        if value.casefold() not in self._known:
            self._last += 1
            self._known[value.casefold()] = f"«{mark}{self._last}»"
        return self._known[value.casefold()]

    def apply(self, text: str) -> str:
        """The text with every known value masked, the longest first."""
        for value in sorted(self._known, key=len, reverse=True):
            whole = rf"(?<!\w){re.escape(value)}(?!\w)"
            text = re.sub(whole, self._known[value], text, flags=re.IGNORECASE)
        return text


def mask(question: str, sql: str | None, *, dialect: str, vocabulary: Iterable[str] = ()) -> Masked:
    """Take out the query's literals and whatever in the question looks like a value; `vocabulary` is the schema's."""
    names = _Names()
    masked = None if sql is None else _mask_literals(sql, names, dialect)
    return Masked(_mask_words(names.apply(question), names, vocabulary), masked)


def mask_like(sql: str, *, masked: str, spoken: str, dialect: str) -> str:
    """Another query for a question that was masked before: a value of the question gets the mask it has there."""
    return _mask_literals(sql, _Names(_values(masked, spoken), taken=masked), dialect)


def _values(masked: str, spoken: str) -> dict[str, str]:
    """Which value each mask of a question stands for, from the question as it was spoken."""
    marks = MASK.findall(masked)
    pieces = (re.escape(piece) for piece in MASK.split(masked))
    found = re.fullmatch("(.+?)".join(pieces), spoken, re.IGNORECASE | re.DOTALL)
    return {} if found is None else {value.casefold(): mark for mark, value in zip(marks, found.groups(), strict=True)}


def _mask_literals(sql: str, names: _Names, dialect: str) -> str:
    try:
        query = parse(sql, dialect)
    except Unparsable:
        return UNREADABLE
    for literal in list(query.find_all(exp.Literal)):
        if not _is_harmless(literal):
            core = str(literal.this).strip("%").strip() or str(literal.this)
            masked = str(literal.this).replace(core, names.of(core, number=not literal.is_string))
            literal.replace(exp.Literal.string(masked))
    return query.sql(grammar(dialect))


def is_masked(text: str) -> bool:
    """Whether a value was taken out."""
    return MASK.search(text) is not None


def _mask_words(question: str, names: _Names, vocabulary: Iterable[str]) -> str:
    known = {word.casefold() for word in vocabulary}

    def masked(found: re.Match[str]) -> str:
        word = found[0]
        if MASK.search(word):
            return word
        plain = word.strip("\"“”‘’'.")
        quoted_or_coded = plain != word.strip(".") or re.search(r"[\d@]", word) is not None
        first = not question[: found.start()].strip()
        if quoted_or_coded or (word[:1].isupper() and not first and not _in_schema(plain, known)):
            return word.replace(plain, names.of(plain))
        return word

    return _TOKEN.sub(masked, question)


def _in_schema(word: str, known: set[str]) -> bool:
    plain = word.casefold()
    return plain in known or plain.rstrip("s") in known or f"{plain}s" in known


def _is_harmless(literal: exp.Literal) -> bool:
    text = str(literal.this)
    if MASK.search(text):
        return True
    if literal.is_string:
        return not text.strip("% _") or _TIME.fullmatch(text) is not None
    parent = literal.parent
    counts = isinstance(parent, exp.Func) and not isinstance(parent, exp.Binary | exp.Connector | exp.Case | exp.If)
    return text in _HARMLESS_NUMBERS or isinstance(parent, exp.Limit | exp.Offset | exp.DataTypeParam) or counts
