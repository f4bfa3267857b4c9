"""Answers as they were given, and what can be asked of many: what waits, what was judged, what it cost."""

from collections.abc import Iterable
from functools import cache
from typing import Any

import msgspec
import sqlalchemy as sa

from sqlcrystal.bank.backend import Backend
from sqlcrystal.bank.by_id import ById
from sqlcrystal.bank.card_rows import document, is_new
from sqlcrystal.bank.episodes import read_episode
from sqlcrystal.bank.records import JUDGED, AnswerRecord, CardEffect, Judged, Traffic, Verdict, Waiting
from sqlcrystal.bank.tables import answer_cards, answers
from sqlcrystal.bank.text import question_key
from sqlcrystal.types import CardId, Episode

_ANSWER = msgspec.json.Decoder(AnswerRecord)
_COLUMNS = (
    *("database", "at", "asked_by", "memory", "replayed", "twin_of", "repair_of", "result_digest"),
    *("calls", "prompt_tokens", "completion_tokens", "seconds", "spread", "conflict", "share", "error"),
)
_SPENT = ("calls", "prompt_tokens", "completion_tokens", "seconds")
_JUDGED = answers.c.verdict.in_([verdict.value for verdict in JUDGED])
_RIGHT = answers.c.verdict == Verdict.CONFIRMED.value
_SHOWN = answers.c.twin_of == ""
_BY_ID = ById(answers, kind="answer")
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
    query = sa.select(answers.c.document).where(_SHOWN).order_by(answers.c.seq.desc()).limit(sa.bindparam("most"))
    return query.where(*(answers.c[column] == sa.bindparam(column) for column in columns))


@cache
def _traffic(shown: bool, drawn: bool, of_one: bool) -> "sa.Select[Any]":
    """Answers counted by database and arm: shown or hidden ones, all or those whose arm was drawn, of one or all."""

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
            "document": document(f"answer {answer.id!r}", answer),
            "trace": None if trace is None else document(f"answer {answer.id!r}", trace),
        }
        uses = [
            {"answer": answer.id, "place": place, "card": use.card, "score": use.score}
            for place, use in enumerate(answer.cards)
        ]
        with self._backend.appending() as connection:
            new = is_new(connection, answers, row)
            if new and uses:
                connection.execute(answer_cards.insert(), uses)
        return new

    def get(self, answer_id: str) -> AnswerRecord:
        """One answer; the start of its id will do where only one has it."""
        return _ANSWER.decode(_BY_ID.document(self._backend, answer_id))

    def trace(self, answer_id: str) -> Episode | None:
        """How an answer came about: its attempt, rounds and probes; None where that was not kept."""
        rows = self._backend.rows(_TRACE, {"name": answer_id})
        ((trace,),) = rows or self._backend.rows(_TRACE, {"name": self.get(answer_id).id})
        return None if trace is None else read_episode(trace)

    def verdict(self, answer_id: str) -> str:
        """The verdict that stands on an answer, or nothing."""
        return next((str(verdict) for (verdict,) in self._backend.rows(_VERDICT, {"name": answer_id})), "")

    def recent(
        self, *, database: str | None = None, question: str | None = None, limit: int = 50
    ) -> list[AnswerRecord]:
        """The latest shown answers, newest first: of one database, or to one question however it is laid out."""
        key = None if question is None else question_key(question)
        wanted = {name: value for name, value in (("database", database), ("question_key", key)) if value is not None}
        rows = self._backend.rows(_recent(*wanted), {**wanted, "most": limit})
        return [_ANSWER.decode(document) for (document,) in rows]

    def digests(self, question: str, *, database: str, limit: int) -> list[str]:
        """What the latest shown answers to a question returned, by its digest, newest first."""
        wanted = {"database": database, "question_key": question_key(question), "most": limit}
        return [digest for (digest,) in self._backend.rows(_DIGESTS, wanted)]

    def leaning_on(self, ids: Iterable[CardId]) -> list[AnswerRecord]:
        """Every answer that had one of these cards in its prompt, oldest first."""
        documents: dict[int, bytes] = {}
        names = list(ids)
        with self._backend.reading() as connection:
            for start in range(0, len(names), 500):
                used = sa.select(answer_cards.c.answer).where(answer_cards.c.card.in_(names[start : start + 500]))
                query = sa.select(answers.c.seq, answers.c.document).where(answers.c.id.in_(used))
                documents.update((row.seq, row.document) for row in connection.execute(query))
        return [_ANSWER.decode(documents[seq]) for seq in sorted(documents)]

    # ── what is read from many ───────────────────────────────────────────────────────────────────────────────────

    def waiting(self, *, database: str | None = None, limit: int = 100) -> list[Waiting]:
        """Questions whose latest answer has no verdict, most useful first.

        Useful is what is asked often, then what a near card disagrees with, then what samples disagreed on.
        """
        grouped = (
            sa.select(
                sa.func.max(answers.c.seq).label("seq"),
                sa.func.count().label("asked"),
                sa.func.max(answers.c.spread).label("spread"),
                sa.func.max(answers.c.conflict).label("conflict"),
            )
            .where(_SHOWN)
            .group_by(answers.c.database, answers.c.question_key)
        )
        if database is not None:
            grouped = grouped.where(answers.c.database == database)
        latest = grouped.subquery()
        open_ = answers.c.verdict.in_(["", Verdict.UNDONE.value, Verdict.REVOKED.value])
        query = (
            sa.select(answers.c.document, latest.c.asked, latest.c.spread, latest.c.conflict)
            .join(latest, answers.c.seq == latest.c.seq)
            .where(open_)
            .order_by(latest.c.asked.desc(), latest.c.conflict.desc(), latest.c.spread.desc(), answers.c.seq)
            .limit(limit)
        )
        with self._backend.reading() as connection:
            return [
                Waiting(answer=_ANSWER.decode(row.document), asked=row.asked, spread=row.spread, conflict=row.conflict)
                for row in connection.execute(query)
            ]

    def judged(self, *, database: str | None = None, since: str = "") -> list[Judged]:
        """Every shown answer with a verdict that stands, in the order they were given."""
        twin = answers.alias("twin")
        names = ("id", "database", "question_key", "at", "memory", "share", "replayed", "result_digest")
        told = (*(answers.c[name] for name in names), _RIGHT.label("right_at_last"), twin.c.id.label("twin"))
        query = sa.select(*told, twin.c.result_digest.label("other_digest")).where(_JUDGED, _SHOWN)
        query = query.outerjoin_from(answers, twin, twin.c.twin_of == answers.c.id)
        query = query.where(answers.c.at >= since).order_by(answers.c.seq)
        if database is not None:
            query = query.where(answers.c.database == database)
        with self._backend.reading() as connection:
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
                    settled=None if row.twin is None else row.other_digest == row.result_digest != "",
                )
                for row in connection.execute(query)
            ]

    def traffic(
        self, *, database: str | None = None, since: str = "", shown: bool = True, drawn: bool = False
    ) -> list[Traffic]:
        """What each arm of each database was asked, and what that cost; or what was answered and never shown.

        With `drawn`, only the answers whose arm chance decided.
        """
        given = {"since": since} | ({} if database is None else {"database": database})
        with self._backend.reading() as connection:
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
                for row in connection.execute(_traffic(shown, drawn, database is not None), given)
            ]

    def effects(self, database: str) -> list[CardEffect]:
        """How judged answers fared with each card in their prompt, the most used first."""
        right = sa.func.sum(sa.case((_RIGHT, 1), else_=0))
        query = (
            sa.select(answer_cards.c.card, sa.func.count().label("used"), right.label("right_at_last"))
            .join(answers, answers.c.id == answer_cards.c.answer)
            .where(answers.c.database == database, _JUDGED, _SHOWN)
            .group_by(answer_cards.c.card)
            .order_by(sa.func.count().desc(), answer_cards.c.card)
        )
        with self._backend.reading() as connection:
            return [
                CardEffect(
                    card=row.card, used=row.used, right=int(row.right_at_last), wrong=row.used - int(row.right_at_last)
                )
                for row in connection.execute(query)
            ]
