"""Answers as they were given, and figures over many: the queue, the judged, and the cost."""

from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

import sqlalchemy as sa

from sqlcrystal.bank.backend import Backend
from sqlcrystal.bank.records import (
    FORGOTTEN,
    JUDGED,
    AnswerRecord,
    CardEffect,
    Drawn,
    Judged,
    Traffic,
    Verdict,
    Waiting,
    question_key,
)
from sqlcrystal.bank.tables import (
    DocumentLookup,
    StoredRecords,
    answer_cards,
    answers,
    cards,
    encode,
    insert_once,
    proposals,
    read_episode,
)
from sqlcrystal.timestamps import as_timestamp
from sqlcrystal.types import CardId, CardKind, Episode

_ANSWER = StoredRecords(AnswerRecord)
_COLUMNS = (
    "origin",
    *("database", "at", "asked_by", "memory", "replayed", "twin_of", "repair_of", "follows", "result_digest"),
    *("calls", "prompt_tokens", "completion_tokens", "seconds", "spread", "conflict", "share", "doubt", "error"),
    *("audit", "trouble"),
)
_SPENT = ("calls", "prompt_tokens", "completion_tokens", "seconds")
_JUDGED = answers.c.verdict.in_([verdict.value for verdict in JUDGED])
_RIGHT = answers.c.verdict == Verdict.CONFIRMED.value
_OPEN = answers.c.verdict.in_(["", Verdict.UNDONE.value, Verdict.REVOKED.value])
_USEFUL = ("asked", "conflict", "doubt", "spread")
"""By what the queue is ordered, the most telling measure first."""
_DAY = sa.func.substr(answers.c.at, 1, 10)
_AUDITED_ON = sa.select(answers.c.seq).where(
    answers.c.audit,
    answers.c.database == sa.bindparam("database"),
    answers.c.question_key == sa.bindparam("question_key"),
    sa.bindparam("day") == _DAY,
)
_FIRST = answers.c.twin_of == ""
_SHOWN = sa.and_(_FIRST, answers.c.origin == "")
"""Answers that a person was shown: not those of the other arm, and not those that a query log led to."""
_LOOKUP = DocumentLookup(answers, kind="answer")
_TRACE = sa.select(answers.c.trace).where(answers.c.id == sa.bindparam("name"))
_VERDICT = sa.select(answers.c.verdict).where(answers.c.id == sa.bindparam("name"))
_DIGESTS = (
    sa.select(answers.c.result_digest)
    .where(
        _SHOWN,
        answers.c.database == sa.bindparam("database"),
        answers.c.question_key == sa.bindparam("question_key"),
    )
    .order_by(answers.c.seq.desc())
    .limit(sa.bindparam("most"))
)


@cache
def _recent(*columns: str) -> "sa.Select[tuple[bytes]]":
    shown = _FIRST if "question_key" in columns else _SHOWN  # of one question also what was learned
    query = sa.select(answers.c.document).where(shown).order_by(answers.c.seq.desc()).limit(sa.bindparam("most"))
    return query.where(*(answers.c[column] == sa.bindparam(column) for column in columns))


@cache
def _traffic(shown: bool, drawn: bool, of_one: bool) -> "sa.Select[Any]":
    """Count answers by database and arm: shown or hidden ones, all or those whose arm was drawn, of one or all."""

    def counted(condition: "sa.ColumnElement[bool]") -> "sa.ColumnElement[int]":
        return sa.func.coalesce(sa.func.sum(sa.case((condition, 1), else_=0)), 0)

    query = (
        sa.select(
            answers.c.database,
            answers.c.memory,
            sa.func.count().label("answers"),
            counted(_JUDGED).label("judged"),
            counted(_RIGHT).label("right_at_last"),
            counted(answers.c.replayed).label("replayed"),
            *(sa.func.sum(answers.c[column]).label(column) for column in _SPENT),
        )
        .where(_SHOWN if shown else ~_SHOWN, answers.c.at >= sa.bindparam("since"))
        .group_by(answers.c.database, answers.c.memory)
        .order_by(answers.c.database, answers.c.memory)
    )
    query = query.where(answers.c.share > 0) if drawn else query
    return query.where(answers.c.database == sa.bindparam("database")) if of_one else query


def _chosen(database: str | None) -> "sa.Select[Any]":
    """Choose what chance drew to be judged and nobody judged; words that were forgotten cannot be judged any more."""
    same = answers.alias("same")
    here = (same.c.database == answers.c.database, same.c.question_key == answers.c.question_key, same.c.twin_of == "")
    asked = sa.select(sa.func.count()).where(*here).scalar_subquery().label("asked")
    query = sa.select(answers.c.document, asked, answers.c.spread, answers.c.conflict)
    query = query.where(answers.c.audit, _OPEN, answers.c.question_key != FORGOTTEN).order_by(answers.c.seq)
    return query if database is None else query.where(answers.c.database == database)


def _as_number(condition: "sa.ColumnElement[bool]", over: Any) -> "sa.ColumnElement[int]":
    """Write a condition as 0 or 1 over a group of answers: engines have no common way to take its least or most."""
    number: sa.ColumnElement[int] = over(sa.case((condition, 1), else_=0))
    return number


class AnswerStore:
    """Append-only: an answer is written once under its id, and only the verdict that stands on it changes."""

    def __init__(self, backend: Backend) -> None:
        """Share the store's transactions."""
        self._backend = backend

    def save(self, answer: AnswerRecord, trace: Episode | None = None) -> bool:
        """Keep an answer, durably; False when one of this id is there already, which then stays as it is."""
        kept = {column: getattr(answer, column) for column in _COLUMNS}
        row = {
            **kept,
            "id": answer.id,
            "question_key": question_key(answer.question),
            "document": encode(f"answer {answer.id!r}", answer),
            "trace": None if trace is None else encode(f"answer {answer.id!r}", trace),
        }
        uses = [
            {"answer": answer.id, "place": place, "card": use.card, "score": use.score}
            for place, use in enumerate(answer.cards)
        ]
        uses += [
            {"answer": answer.id, "place": place, "card": use.card, "score": 1.0}
            for place, use in enumerate(answer.definitions, start=len(uses))
        ]
        with self._backend.appending() as connection:
            new = insert_once(connection, answers, row)
            if new and uses:
                connection.execute(answer_cards.insert(), uses)
        return new

    def get(self, answer_id: str) -> AnswerRecord:
        """Return one answer; the start of its id will do where only one has it."""
        return _ANSWER.decode(_LOOKUP.find(self._backend, answer_id))

    def trace(self, answer_id: str) -> Episode | None:
        """Return how an answer came about: its attempt, rounds and probes; None where that was not kept."""
        rows = self._backend.rows(_TRACE, {"name": answer_id})
        ((trace,),) = rows or self._backend.rows(_TRACE, {"name": self.get(answer_id).id})
        return None if trace is None else read_episode(trace)

    def verdict(self, answer_id: str) -> str:
        """Return the verdict that stands on an answer, or nothing."""
        return next((str(verdict) for (verdict,) in self._backend.rows(_VERDICT, {"name": answer_id})), "")

    def recent(
        self, *, database: str | None = None, question: str | None = None, limit: int = 50
    ) -> list[AnswerRecord]:
        """List the latest shown answers, newest first: of one database, or to one question however it is laid out."""
        key = None if question is None else question_key(question)
        wanted = {name: value for name, value in (("database", database), ("question_key", key)) if value is not None}
        rows = self._backend.rows(_recent(*wanted), {**wanted, "most": limit})
        return [_ANSWER.decode(document) for (document,) in rows]

    def after(self, answer_id: str) -> list[AnswerRecord]:
        """List the shown answers to questions that follow one, oldest first."""
        query = sa.select(answers.c.document).where(_SHOWN, answers.c.follows == answer_id).order_by(answers.c.seq)
        return [_ANSWER.decode(document) for (document,) in self._backend.rows(query)]

    def digests(self, question: str, *, database: str, limit: int) -> list[str]:
        """List the digests of the rows that the latest shown answers to a question gave, newest first."""
        wanted = {"database": database, "question_key": question_key(question), "most": limit}
        return [digest for (digest,) in self._backend.rows(_DIGESTS, wanted)]

    def leaning_on(self, ids: Iterable[CardId]) -> list[AnswerRecord]:
        """Find every answer that had one of these cards in its prompt, oldest first."""
        documents: dict[int, bytes] = {}
        names = list(ids)
        for start in range(0, len(names), 500):
            used = sa.select(answer_cards.c.answer).where(answer_cards.c.card.in_(names[start : start + 500]))
            query = sa.select(answers.c.seq, answers.c.document).where(answers.c.id.in_(used))
            documents.update((row.seq, row.document) for row in self._backend.rows(query))
        return [_ANSWER.decode(documents[seq]) for seq in sorted(documents)]

    # ── figures over many ────────────────────────────────────────────────────────────────────────────────────────

    def waiting(self, *, database: str | None = None, limit: int = 100) -> list[Waiting]:
        """List what waits for a verdict: first what chance chose to be judged, oldest first, then the rest by use.

        Of other questions the latest answer waits. A question is useful that is asked often, then one that a near card
        disagrees on, then a doubtful answer.
        """
        grouped = (
            sa.select(
                sa.func.max(answers.c.seq).label("seq"),
                sa.func.count().label("asked"),
                sa.func.max(answers.c.spread).label("spread"),
                sa.func.max(answers.c.conflict).label("conflict"),
                sa.func.max(answers.c.doubt).label("doubt"),
            )
            .where(_FIRST)
            .group_by(answers.c.database, answers.c.question_key)
        )
        if database is not None:
            grouped = grouped.where(answers.c.database == database)
        latest = grouped.subquery()
        query = (
            sa.select(answers.c.document, latest.c.asked, latest.c.spread, latest.c.conflict)
            .join(latest, answers.c.seq == latest.c.seq)
            .where(_OPEN, ~answers.c.audit)
            .order_by(*(latest.c[measure].desc() for measure in _USEFUL), answers.c.seq)
        )
        chosen = self._backend.rows(_chosen(database).limit(limit))
        rest = self._backend.rows(query.limit(limit - len(chosen)))
        return [
            Waiting(answer=_ANSWER.decode(row.document), asked=row.asked, spread=row.spread, conflict=row.conflict)
            for row in (*chosen, *rest)
        ]

    def audited_on(self, day: str, *, database: str, question: str) -> bool:
        """Tell whether an answer to a question was chosen to be judged that day."""
        wanted = {"database": database, "question_key": question_key(question), "day": day}
        return bool(self._backend.rows(_AUDITED_ON, wanted))

    def drawn(self, database: str, *, since: str = "", audit: bool = False) -> list[Drawn]:
        """Count the questions and days whose arm chance decided, judged or not; with `audit` those it chose to judge.

        One is judged where one of its answers is.
        """
        twin = answers.alias("twin")
        same = sa.and_(twin.c.result_digest == answers.c.result_digest, answers.c.result_digest != "")
        question = sa.case((answers.c.question_key == FORGOTTEN, answers.c.id), else_=answers.c.question_key)
        each = (
            sa.select(
                answers.c.share,
                answers.c.memory,
                _as_number(twin.c.id.is_not(None), sa.func.min).label("both"),
                _as_number(same, sa.func.min).label("settled"),
                sa.func.max(sa.cast(answers.c.trouble, sa.Integer)).label("trouble"),
                _as_number(_JUDGED, sa.func.max).label("judged"),
            )
            .outerjoin_from(answers, twin, twin.c.twin_of == answers.c.id)
            .where(answers.c.database == database, answers.c.at >= as_timestamp(since), answers.c.share > 0, _SHOWN)
            .group_by(answers.c.share, answers.c.memory, question, _DAY)
        )
        unit = (each.where(answers.c.audit) if audit else each).subquery()
        kinds = (unit.c.share, unit.c.memory, unit.c.both, unit.c.settled, unit.c.trouble)
        query = sa.select(*kinds, sa.func.count().label("asked"), sa.func.sum(unit.c.judged).label("judged"))
        return [
            Drawn(
                share=row.share,
                memory=bool(row.memory),
                both=bool(row.both),
                settled=bool(row.settled),
                trouble=None if row.trouble is None else bool(row.trouble),
                asked=row.asked,
                judged=int(row.judged),
            )
            for row in self._backend.rows(query.group_by(*kinds).order_by(*kinds))
        ]

    def judged(self, *, database: str | None = None, since: str = "") -> list[Judged]:
        """List every shown answer with a verdict that stands, in the order they were given."""
        twin = answers.alias("twin")
        names = ("id", "database", "question_key", "at", "memory", "share", "replayed", "audit", "result_digest")
        told = (*(answers.c[name] for name in names), _RIGHT.label("right_at_last"), twin.c.id.label("twin"))
        query = sa.select(*told, twin.c.result_digest.label("other_digest")).where(_JUDGED, _SHOWN)
        query = query.outerjoin_from(answers, twin, twin.c.twin_of == answers.c.id)
        query = query.where(answers.c.at >= as_timestamp(since)).order_by(answers.c.seq)
        if database is not None:
            query = query.where(answers.c.database == database)
        return [
            Judged(
                answer=row.id,
                database=row.database,
                question_key=row.question_key,
                at=row.at,
                memory=row.memory,
                share=row.share,
                replayed=row.replayed,
                right=bool(row.right_at_last),
                audit=bool(row.audit),
                settled=None if row.twin is None else row.other_digest == row.result_digest != "",
            )
            for row in self._backend.rows(query)
        ]

    def judged_count(self, database: str) -> int:
        """Count the shown answers of a database with a verdict that stands."""
        query = sa.select(sa.func.count()).where(_JUDGED, _SHOWN, answers.c.database == database)
        return int(self._backend.rows(query)[0][0])

    def judged_records(self, database: str) -> list[tuple[AnswerRecord, bool]]:
        """List every shown answer with a verdict that stands, in the order they were given, and whether it is right."""
        query = sa.select(answers.c.document, _RIGHT.label("right_at_last")).where(_JUDGED, _SHOWN)
        query = query.where(answers.c.database == database).order_by(answers.c.seq)
        return [(_ANSWER.decode(row.document), bool(row.right_at_last)) for row in self._backend.rows(query)]

    def doubt_again(self, database: str, confidence: Callable[[AnswerRecord], float | None]) -> None:
        """Work out anew how much each answer without a verdict is doubted, for the order of the queue."""
        with self._backend.writing() as connection:
            waiting = sa.select(answers.c.seq, answers.c.document).where(_OPEN, _FIRST, answers.c.database == database)
            for row in connection.execute(waiting).all():
                sure = confidence(_ANSWER.decode(row.document))
                if sure is not None:
                    connection.execute(answers.update().where(answers.c.seq == row.seq).values(doubt=1 - sure))

    def with_readings(self, database: str, *, since: str = "") -> list[AnswerRecord]:
        """List the shown answers that were given as two readings, oldest first."""
        proposed = sa.select(proposals.c.answer).where(proposals.c.database == database)
        query = sa.select(answers.c.document).where(_SHOWN, answers.c.id.in_(proposed))
        query = query.where(answers.c.at >= as_timestamp(since)).order_by(answers.c.seq)
        found = (_ANSWER.decode(document) for (document,) in self._backend.rows(query))
        return [record for record in found if record.other]

    def traffic(
        self, *, database: str | None = None, since: str = "", shown: bool = True, drawn: bool = False
    ) -> list[Traffic]:
        """Count the answers and costs of each arm of each database: those shown, or those answered and never shown.

        With `drawn`, only the answers whose arm chance decided.
        """
        given = {"since": as_timestamp(since)} | ({} if database is None else {"database": database})
        return [
            Traffic(
                database=row.database,
                memory=row.memory,
                answers=row.answers,
                judged=int(row.judged),
                right=int(row.right_at_last),
                replayed=int(row.replayed),
                calls=int(row.calls),
                prompt_tokens=int(row.prompt_tokens),
                completion_tokens=int(row.completion_tokens),
                seconds=float(row.seconds),
            )
            for row in self._backend.rows(_traffic(shown, drawn, database is not None), given)
        ]

    def effects(self, database: str) -> list[CardEffect]:
        """Count how judged answers fared with each card in their prompt, the most used first; not with definitions.

        Those are told in both arms, so that nothing is known of the same questions without them.
        """
        right = sa.func.sum(sa.case((_RIGHT, 1), else_=0))
        query = (
            sa.select(answer_cards.c.card, sa.func.count().label("used"), right.label("right_at_last"))
            .join(answers, answers.c.id == answer_cards.c.answer)
            .outerjoin(cards, cards.c.id == answer_cards.c.card)
            .where(answers.c.database == database, _JUDGED, _SHOWN)
            .where(sa.or_(cards.c.kind.is_(None), cards.c.kind != CardKind.DEFINITION.value))
            .group_by(answer_cards.c.card)
            .order_by(sa.func.count().desc(), answer_cards.c.card)
        )
        return [
            CardEffect(
                card=row.card, used=row.used, right=int(row.right_at_last), wrong=row.used - int(row.right_at_last)
            )
            for row in self._backend.rows(query)
        ]
