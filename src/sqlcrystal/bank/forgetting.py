"""Forgetting a datum: everything that holds it goes, what only counted stays counted.

Cards and episodes that hold it are deleted; answers, decisions and changes keep who, when, the arm, the verdict and the
cost, and lose their words. Not guaranteed: copies outside the store (exports, backups, a server's write-ahead log).
"""

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import msgspec
import sqlalchemy as sa
from msgspec import Struct

from sqlcrystal.bank.backend import Backend
from sqlcrystal.bank.cards import CardStore
from sqlcrystal.bank.records import AnswerRecord
from sqlcrystal.bank.spellings import holds_value
from sqlcrystal.bank.tables import answers, cards, changes, decisions, episodes, proposals
from sqlcrystal.bank.text import question_key
from sqlcrystal.errors import ConfigError

FORGOTTEN = "(forgotten)"
# What says how a record came about and holds nobody's words.
_NAMES = frozenset(
    {"id", "database", "fingerprint", "writer", "source", "at", "by", "asked_by", "signal", "status", "difficulty"}
    | {"role", "purpose", "kind", "type", "finish_reason", "card", "twin_of", "repair_of", "result_digest"}
)

Holds: TypeAlias = Callable[[Any], bool]
"""Whether decoded JSON, or a text, holds what is to be forgotten."""


class Forgotten(Struct, frozen=True, kw_only=True):
    """How many records lost their words, and how many cards, proposals and episodes were deleted."""

    answers: int
    traces: int
    cards: int
    decisions: int
    proposals: int
    episodes: int
    changes: int


def forget(
    backend: Backend, bank: CardStore, *, by: str, question: str | None = None, value: str | None = None
) -> Forgotten:
    """Remove one question, however it was laid out, or one value, wherever it stands; in one transaction."""
    if bool(question) == bool(value):
        raise ConfigError("forget: give either a question or a value")
    holds = _asks(question) if question else _mentions(str(value))
    with backend.writing() as connection:
        doomed = [row.id for row in _each(connection, cards.c.id, cards.c.document) if holds(_decoded(row.document))]
        for card_id in doomed:
            bank.delete(card_id, by=by, reason="forgotten")
        blanked, traces = _blank_answers(connection, holds)
        report = Forgotten(
            cards=len(doomed),
            answers=len(blanked),
            traces=traces,
            decisions=_blank_decisions(connection, holds, blanked),
            proposals=_drop_proposals(connection, holds, blanked),
            episodes=_drop_episodes(connection, holds),
            changes=_blank_changes(connection, holds, set(doomed)),
        )
    with backend.explained():
        backend.engine.erase()
    return report


def _asks(question: str) -> Holds:
    wanted = question_key(question)
    return lambda node: any(wanted in question_key(leaf) for leaf in _leaves(node) if isinstance(leaf, str))


def _mentions(value: str) -> Holds:
    held = holds_value(value)
    return lambda node: any(map(held, _leaves(node)))


def _leaves(node: Any, *, in_list: bool = False) -> Iterator[str | float]:
    """Every text in decoded JSON and every number of a row, apart from what only names or counts."""
    if isinstance(node, dict):
        for key, inner in node.items():
            if key not in _NAMES or not isinstance(inner, str):
                yield from _leaves(inner)
    elif isinstance(node, list):
        for inner in node:
            yield from _leaves(inner, in_list=True)
    elif isinstance(node, str) or (in_list and isinstance(node, int | float)):
        yield node


def _decoded(encoded: bytes | None) -> Any:
    return None if encoded is None else msgspec.json.decode(encoded)


def _each(connection: sa.Connection, *columns: "sa.Column[Any]") -> Iterator[Any]:
    """Every row, a few at a time: a store is larger than memory."""
    return iter(connection.execute(sa.select(*columns), execution_options={"yield_per": 500}))


def _blank_answers(connection: sa.Connection, holds: Holds) -> tuple[set[str], int]:
    """The answers that held it and lost their words, and how many more lost only the trace of how they came about."""
    columns = (answers.c.id, answers.c.error, answers.c.document, answers.c.trace)
    blanked, traced = {}, []
    for row in _each(connection, *columns):
        if holds(row.error) or holds(_decoded(row.document)):
            blanked[row.id] = _blank(row.document)
        elif holds(_decoded(row.trace)):
            traced.append(row.id)
    for answer_id, document in blanked.items():
        empty = {"document": document, "trace": None, "error": "", "result_digest": "", "question_key": FORGOTTEN}
        connection.execute(answers.update().where(answers.c.id == answer_id).values(**empty))
    for answer_id in traced:
        connection.execute(answers.update().where(answers.c.id == answer_id).values(trace=None))
    return set(blanked), len(traced)


def _blank(document: bytes) -> bytes:
    kept = msgspec.json.decode(document, type=AnswerRecord)
    blank = msgspec.structs.replace(
        kept, question=FORGOTTEN, evidence="", sql=None, columns=(), rows=None, result_digest="", error=""
    )
    return msgspec.json.encode(blank)


def _blank_decisions(connection: sa.Connection, holds: Holds, blanked: set[str]) -> int:
    columns = (decisions.c.seq, decisions.c.answer, decisions.c.sql, decisions.c.note)
    rows = connection.execute(sa.select(*columns)).all()
    blanking = [row.seq for row in rows if row.answer in blanked or holds([row.sql, row.note])]
    for seq in blanking:
        connection.execute(decisions.update().where(decisions.c.seq == seq).values(sql=FORGOTTEN, note=FORGOTTEN))
    return len(blanking)


def _blank_changes(connection: sa.Connection, holds: Holds, deleted: set[str]) -> int:
    columns = (changes.c.seq, changes.c.card, changes.c.action, changes.c.before, changes.c.after, changes.c.reason)
    rows = connection.execute(sa.select(*columns)).all()
    blanking = [row for row in rows if row.card in deleted or holds([row.before, row.after, row.reason])]
    for row in blanking:
        words = {"reason": FORGOTTEN}
        if row.action not in {"status", "deleted"}:
            words |= {"before": FORGOTTEN, "after": FORGOTTEN}
        connection.execute(changes.update().where(changes.c.seq == row.seq).values(**words))
    return len(blanking)


def _drop_proposals(connection: sa.Connection, holds: Holds, blanked: set[str]) -> int:
    columns = (proposals.c.seq, proposals.c.answer, proposals.c.sql, proposals.c.note, proposals.c.episode)
    doomed = [
        row.seq
        for row in _each(connection, *columns)
        if row.answer in blanked or holds([row.sql, row.note]) or holds(_decoded(row.episode))
    ]
    for seq in doomed:
        connection.execute(proposals.delete().where(proposals.c.seq == seq))
    return len(doomed)


def _drop_episodes(connection: sa.Connection, holds: Holds) -> int:
    columns = (episodes.c.digest, episodes.c.document)
    doomed = [row.digest for row in _each(connection, *columns) if holds(_decoded(row.document))]
    for digest in doomed:
        connection.execute(cards.update().where(cards.c.episode == digest).values(episode=None))
        connection.execute(episodes.delete().where(episodes.c.digest == digest))
    return len(doomed)
