"""Recurring questions, served from what was confirmed: executed again, labelled, and without a model call."""

from collections.abc import Sequence

from msgspec import Struct

from sqlcrystal.databases.symptoms import strange_values
from sqlcrystal.serving.draft import Draft
from sqlcrystal.serving.parameters import Exchanged, exchange, same_query
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
