"""Recurring questions, served from what was confirmed: executed again, labelled, and without a model call."""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from msgspec import Struct
from sqlglot import exp

from sqlcrystal.databases.parsing import Unparsable, parse, written
from sqlcrystal.databases.symptoms import strange_values
from sqlcrystal.gaps import Again, Gap, Part, between
from sqlcrystal.serving.answers import Draft
from sqlcrystal.serving.workspace import OpenDatabase, Workspace
from sqlcrystal.types import Attempt, Card, CardStatus, Episode, Question, Retrieved, Rows


class Adaptation(Struct, frozen=True, kw_only=True):
    """A card's query with a question's literals, what it returned, and whether such an exchange was confirmed."""

    card: Card
    sql: str
    exchanged: tuple[tuple[str, str], ...]
    execution: Rows
    confirmed: bool


def replay(workspace: Workspace, opened: OpenDatabase, question: Question) -> Draft | None:
    """Find the stored solution of this very question, or of one that differs in a parameter that was confirmed."""
    if not workspace.store_exists():
        return None
    fingerprint = opened.database.fingerprint()
    known = workspace.store.bank.find(database=opened.name, status=CardStatus.ACTIVE, question=question.text)
    for card in reversed(known):
        execution = opened.database.execute(card.sql) if card.fingerprint == fingerprint else None
        if isinstance(execution, Rows):
            return _draft(question, card, card.sql, execution, score=1.0)
    near = workspace.memory(opened).recall(question)
    adapted = adaptation(opened, question, [neighbour.card for neighbour in near], fingerprint=fingerprint)
    if adapted is None or not adapted.confirmed:
        return None
    score = next(neighbour.score for neighbour in near if neighbour.card.id == adapted.card.id)
    return _draft(question, adapted.card, adapted.sql, adapted.execution, score=score, adapted=True)


def adaptation(
    opened: OpenDatabase, question: Question, cards: Sequence[Card], *, fingerprint: str
) -> Adaptation | None:
    """Find the nearest of these cards that differs in literals only, if its query runs with the new ones.

    A literal that its column never holds is none to exchange: what was vouched for would answer nothing.
    """
    dialect = opened.database.dialect
    for card in cards:
        exchanged = exchange(card, question.text, dialect) if card.fingerprint == fingerprint else None
        if exchanged is None:
            continue
        execution = opened.database.execute(exchanged.sql)
        if isinstance(execution, Rows) and not any(strange_values(exchanged.sql, opened.database)):
            confirmed = any(_is_an_instance(other, card, dialect) for other in cards if other.id != card.id)
            return Adaptation(
                card=card, sql=exchanged.sql, exchanged=exchanged.values, execution=execution, confirmed=confirmed
            )
    return None


def _is_an_instance(other: Card, card: Card, dialect: str) -> bool:
    """Tell whether somebody confirmed the same exchange before: another card is this one with another value."""
    exchanged: Exchanged | None = exchange(card, other.question.text, dialect)
    return exchanged is not None and same_query(exchanged.sql, other.sql, dialect)


def _draft(question: Question, card: Card, sql: str, execution: Rows, *, score: float, adapted: bool = False) -> Draft:
    attempt = Attempt(question=question, calls=(), sql=sql, cards=(card.id,))
    return Draft(
        question=question,
        sql=sql,
        execution=execution,
        retrieved=(Retrieved(card, score),),
        episode=Episode(attempt=attempt, source=card.source, sql=sql),
        replayed=True,
        adapted=adapted,
    )


# ── questions that differ only in a literal ───────────────────────────────────────────────────────────────────────────
# A literal of the query that stands in its question as well is a parameter. A new question that reads the same but for
# its parameters is given the query with the values exchanged; nothing is guessed about words that are not in the query.


_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_VALUE = Gap(longest=80, without="?")
_MOST_PARAMETERS = 20
"""A question that names more values than these is taken for another question."""


class Exchanged(NamedTuple):
    """A query with other values, and which stand for which."""

    sql: str
    values: tuple[tuple[str, str], ...]


def exchange(card: Card, question: str, dialect: str) -> Exchanged | None:
    """Give the card's query for a question that differs in parameters only; None for any other question."""
    changed = other_values(card, question, dialect)
    if not changed:
        return None
    query = parse(card.sql, dialect)
    for literal in list(query.find_all(exp.Literal)):
        literal.replace(_exchanged(literal, changed))
    try:
        return Exchanged(written(query, dialect), changed)
    except Unparsable:
        return None


def other_values(card: Card, question: str, dialect: str) -> tuple[tuple[str, str], ...]:
    """Tell which values of the card's question stand for which in a question that is the same but for them."""
    form = _form(card.sql, card.question.text, dialect)
    found = None if form is None else between(form.parts, _plain(question))
    if form is None or found is None:
        return ()
    values = zip(form.parameters, map(str.strip, found), strict=True)
    changed = tuple((old, new) for old, new in values if old.casefold() != new.casefold())
    # A value that is part of a table's or column's name cannot be exchanged there.
    return () if any(old.casefold() in form.names for old, _ in changed) else changed


def same_query(one: str, other: str, dialect: str) -> bool:
    """Tell whether two queries are the same but for layout."""
    try:
        return _laid_out(one, dialect) == _laid_out(other, dialect)
    except Unparsable:
        return False


class _Form(NamedTuple):
    """The parameters of a query, what a question with others looks like, and every name in the query."""

    parameters: tuple[str, ...]
    parts: tuple[Part, ...]
    names: str


# The same cards come up again and again, and reading a query takes longer than looking at a question.


@lru_cache(maxsize=10_000)
def _form(sql: str, asked: str, dialect: str) -> _Form | None:
    try:
        query = parse(sql, dialect)
    except Unparsable:
        return None
    parameters = _parameters(query, _plain(asked))
    if not 0 < len(parameters) <= _MOST_PARAMETERS:
        return None
    names = " ".join(str(name.this) for name in query.find_all(exp.Identifier)).casefold()
    return _Form(tuple(parameters), _parts(_plain(asked), parameters), names)


@lru_cache(maxsize=10_000)
def _laid_out(sql: str, dialect: str) -> str:
    return written(parse(sql, dialect), dialect)


def _plain(text: str) -> str:
    return " ".join(text.replace("\x00", " ").split()).rstrip(" ?.!;:")


def _parameters(query: exp.Expr, asked: str) -> list[str]:
    """List the literals of a query as its question writes them, in the order the question names them."""
    starts: dict[str, int] = {}
    for literal in query.find_all(exp.Literal):
        for value in _values(literal):
            place = re.search(_whole(value), asked, re.IGNORECASE)
            if place is not None:
                starts.setdefault(place[0], place.start())
    # A value inside another one (a year inside a title) is part of it.
    whole = [value for value in starts if not any(value != other and value in other for other in starts)]
    return sorted(whole, key=lambda value: starts[value])


def _values(literal: exp.Literal) -> Iterator[str]:
    """Tell what a question could call a literal by: itself, or a number inside a text such as a date."""
    core = str(literal.this).strip("%").strip()
    if core:
        yield core
    if literal.is_string and re.search(r"[a-z]{2}", core, re.IGNORECASE) is None:
        yield from (number for number in re.findall(r"\d+", core) if len(number) > 1)


def _parts(asked: str, parameters: list[str]) -> tuple[Part, ...]:
    """Cut a question: a gap for each parameter, and the same again where one is named once more at the end."""
    parts: list[Part] = []
    rest = asked
    for value in parameters:
        before, _, rest = _partition(rest, value)
        parts += [before, Gap(number=True) if _NUMBER.fullmatch(value) else _VALUE]
    for place, value in enumerate(parameters):
        rest = re.sub(_whole(value), f"\x00{place}\x00", rest, flags=re.IGNORECASE)
    for place, piece in enumerate(rest.split("\x00")):
        parts.append(Again(int(piece)) if place % 2 else piece)
    return tuple(part for part in parts if part != "")


def _partition(text: str, value: str) -> tuple[str, str, str]:
    match = re.search(_whole(value), text, re.IGNORECASE)
    return (text[: match.start()], match[0], text[match.end() :]) if match else (text, "", "")


def _whole(value: str) -> str:
    return rf"(?<!\w){re.escape(value)}(?!\w)"


def _exchanged(literal: exp.Literal, changed: tuple[tuple[str, str], ...]) -> exp.Literal:
    text = str(literal.this)
    for old, new in changed:
        if literal.is_string:
            text = re.sub(_whole(old), lambda _, new=new: new, text, flags=re.IGNORECASE)  # type: ignore[misc]
        elif text == old:
            text = new
    return exp.Literal(this=text, is_string=literal.is_string)
