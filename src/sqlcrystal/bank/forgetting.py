"""Forgetting a datum: everything that holds it goes, the counts stay.

Cards and episodes that hold it are deleted; answers, decisions and changes keep person, time, arm, verdict and cost,
and lose their words. It is better to forget too much than too little: a value is found in any case, layout, accent,
quoting or code (Jose for José, a name for the same name with a hyphen). Not guaranteed: copies outside the store
(exports, backups, a server's write-ahead log).
"""

import re
import unicodedata
from collections.abc import Callable, Iterator
from decimal import Decimal, InvalidOperation
from typing import Any, TypeAlias

import msgspec
import sqlalchemy as sa
from msgspec import Struct

from sqlcrystal.bank.backend import Backend
from sqlcrystal.bank.cards import CardStore
from sqlcrystal.bank.records import FORGOTTEN, AnswerRecord, question_key
from sqlcrystal.bank.tables import answers, cards, changes, decisions, episodes, proposals, proposed_definitions
from sqlcrystal.errors import ConfigError

# Fields that say how a record came about and hold no words of a person.
_NAMES = frozenset(
    {"id", "database", "fingerprint", "writer", "source", "at", "by", "asked_by", "signal", "status", "difficulty"}
    | {
        "role",
        "purpose",
        "kind",
        "type",
        "finish_reason",
        "card",
        "twin_of",
        "repair_of",
        "follows",
        "other",
        "origin",
        "result_digest",
    }
)

_WORD = re.compile(r"[^\W_]+")
_NUMBER = re.compile(r"\d[\d,_]*(?:\.\d+)?(?:e[-+]?\d{1,3}(?!\d))?", re.IGNORECASE)
_HEX = re.compile(r"(?:x'|0x)([0-9a-f]+)", re.IGNORECASE)
_CODES = re.compile(r"cha?r\s{0,9}\(([\d,\s]+)\)", re.IGNORECASE)
_ESCAPED = re.compile(r"\\u([0-9a-f]{4})", re.IGNORECASE)
_LARGEST_CODE = 0x10FFFF

Holds: TypeAlias = Callable[[Any], bool]
"""Whether decoded JSON, or a text, holds what is to be forgotten."""


class Forgotten(Struct, frozen=True, kw_only=True):
    """The records that lost their words, and the cards, proposals and episodes that were deleted, counted."""

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
            proposals=_drop_proposals(connection, holds, blanked) + _drop_definitions(connection, holds),
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
    held = _holds_value(value)
    return lambda node: any(map(held, _leaves(node)))


def _leaves(node: Any, *, in_list: bool = False) -> Iterator[str | float]:
    """Yield every text in decoded JSON and every number of a row, apart from names and counts."""
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
    """Yield every row, a few at a time: a store is larger than memory."""
    return iter(connection.execute(sa.select(*columns), execution_options={"yield_per": 500}))


def _blank_answers(connection: sa.Connection, holds: Holds) -> tuple[set[str], int]:
    """Take the words out of answers that hold it; return their ids, and how many more lost only their trace."""
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
        kept,
        question=FORGOTTEN,
        asked="",
        evidence="",
        sql=None,
        columns=(),
        rows=None,
        definitions=(),
        result_digest="",
        error="",
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
    columns = (*(proposals.c[name] for name in ("seq", "answer", "sql", "note", "question")), proposals.c.episode)
    doomed = [
        row.seq
        for row in _each(connection, *columns)
        if row.answer in blanked or holds([row.sql, row.note, row.question]) or holds(_decoded(row.episode))
    ]
    for seq in doomed:
        connection.execute(proposals.delete().where(proposals.c.seq == seq))
    return len(doomed)


def _drop_definitions(connection: sa.Connection, holds: Holds) -> int:
    """Drop the proposed definitions that hold it; those that are cards are dropped as cards."""
    columns = (proposed_definitions.c.seq, proposed_definitions.c.document)
    doomed = [row.seq for row in _each(connection, *columns) if holds(_decoded(row.document))]
    for seq in doomed:
        connection.execute(proposed_definitions.delete().where(proposed_definitions.c.seq == seq))
    return len(doomed)


def _drop_episodes(connection: sa.Connection, holds: Holds) -> int:
    columns = (episodes.c.digest, episodes.c.document)
    doomed = [row.digest for row in _each(connection, *columns) if holds(_decoded(row.document))]
    for digest in doomed:
        connection.execute(cards.update().where(cards.c.episode == digest).values(episode=None))
        connection.execute(episodes.delete().where(episodes.c.digest == digest))
    return len(doomed)


# ── the spellings of one value ───────────────────────────────────────────────────────────────────────────────────────


def _holds_value(value: str) -> Callable[[str | float], bool]:
    """Tell whether a text, or a number of a row, is or holds the value."""
    number = _number(value)
    words = _words(value)
    plain = value.casefold()

    def in_words(text: str) -> bool:
        return words in _words(text) if words else plain in text.casefold()

    def held(leaf: str | float) -> bool:
        if not isinstance(leaf, str):
            return number is not None and _number(str(leaf)) == number
        if number is None:
            return any(in_words(text) for text in (leaf, *_spelled_out(leaf)))
        if any(_number(found) == number for found in _NUMBER.findall(leaf)):
            return True
        return any(int(digits[:40], 16) == number for digits in _HEX.findall(leaf)) or any(
            value in text for text in _spelled_out(leaf)
        )

    return held


def _words(text: str) -> str:
    """Take the words of a text alone: without case, accents, quotes, wildcards and layout."""
    plain = "".join(letter for letter in unicodedata.normalize("NFKD", text) if not unicodedata.combining(letter))
    return " ".join(_WORD.findall(plain.casefold()))


def _number(text: str) -> Decimal | None:
    try:
        number = Decimal(text.strip().replace(",", "").replace("_", ""))
    except InvalidOperation:
        return None
    return number if number.is_finite() else None


def _spelled_out(text: str) -> Iterator[str]:
    """Yield the texts that are written as hexadecimal bytes, as numbers of characters, or as escapes."""
    for digits in _HEX.findall(text):
        yield bytes.fromhex(digits[: len(digits) // 2 * 2]).decode(errors="replace")
    codes = [int(code) for found in _CODES.findall(text) for code in re.findall(r"\d{1,7}", found)]
    if codes:
        yield "".join(chr(code) for code in codes if code <= _LARGEST_CODE)
    if "\\u" in text:
        yield _ESCAPED.sub(lambda found: chr(int(found[1], 16)), text)
