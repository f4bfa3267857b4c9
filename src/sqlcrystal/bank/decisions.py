"""Verdicts and proposals, append-only: what was said is never rewritten, a later word replaces an earlier one."""

import hashlib
from collections.abc import Callable
from typing import Any

import msgspec
import sqlalchemy as sa

from sqlcrystal.bank.answers import AnswerStore
from sqlcrystal.bank.backend import Backend
from sqlcrystal.bank.card_rows import document, is_new, now
from sqlcrystal.bank.episodes import read_episode
from sqlcrystal.bank.records import AnswerRecord, Decided, Decision, Proposal, Verdict
from sqlcrystal.bank.tables import answers, decisions, proposals
from sqlcrystal.errors import BankError
from sqlcrystal.types import is_personal

_TOLD = tuple(decisions.c[field] for field in Decision.__struct_fields__)
_LAST: "sa.Select[Any]" = sa.select(*_TOLD).order_by(decisions.c.seq.desc()).limit(1)
_MADE = sa.or_(*(decisions.c.verdict == verdict.value for verdict in (Verdict.CONFIRMED, Verdict.CORRECTED)))
_OF_CARD = decisions.c.card == sa.bindparam("name")
_ON_ANSWER = _LAST.where(decisions.c.answer == sa.bindparam("name"))
_ON_CARD = _LAST.where(_OF_CARD)
_THAT_MADE = _LAST.where(_OF_CARD, _MADE, decisions.c.answer != "")


class DecisionStore:
    """Who said what of which answer, when, by which signal, and what it replaced."""

    def __init__(self, backend: Backend, given: AnswerStore) -> None:
        """Share the store's transactions."""
        self._backend = backend
        self._answers = given

    def decide(
        self,
        answer: AnswerRecord | str,
        verdict: Verdict,
        *,
        by: str,
        signal: str,
        sql: str = "",
        note: str = "",
        proposal: str = "",
        bank: Callable[[], str] = str,
    ) -> Decided:
        """Give a verdict on an answer; `bank` makes the card it calls for, in the same transaction, and returns its id.

        The verdict that stands already, on the same SQL, is given back as it is: saying it twice makes nothing twice.
        A person who says what a rule had said is the first person to say it.
        """
        with self._backend.writing() as connection:
            answer = self._answers.get(answer) if isinstance(answer, str) else answer
            standing = self.standing(answer.id)
            if standing is not None and _says_the_same(standing, (verdict, sql, proposal), signal):
                return Decided(standing, new=False, before=standing)
            decision = Decision(
                id=_name(answer.id, verdict, sql, proposal, standing.id if standing else ""),
                database=answer.database,
                at=now(),
                by=by,
                signal=signal,
                verdict=verdict,
                answer=answer.id,
                proposal=proposal,
                card=bank(),
                replaced=standing.id if standing else "",
                sql=sql,
                note=note,
            )
            self._append(connection, decision)
            return Decided(decision, new=True, before=standing)

    def revoke_card(self, card_id: str, *, database: str, by: str, signal: str, note: str = "") -> Decision | None:
        """Take back what made a card: the verdict on its answer falls; None if that was done before."""
        with self._backend.writing() as connection:
            origin = self.that_made(card_id)
            standing = self.standing(origin.answer) if origin is not None else self.last_on_card(card_id)
            if standing is not None and standing.verdict is Verdict.REVOKED:
                return None
            replaced = standing.id if standing else ""
            answer_id = origin.answer if origin else ""
            decision = Decision(
                id=_name(answer_id, Verdict.REVOKED, card_id, "", replaced),
                database=database,
                at=now(),
                by=by,
                signal=signal,
                verdict=Verdict.REVOKED,
                answer=answer_id,
                card=card_id,
                replaced=replaced,
                note=note,
            )
            self._append(connection, decision)
            return decision

    def standing(self, answer_id: str) -> Decision | None:
        """The last decision on an answer."""
        return self._last(_ON_ANSWER, answer_id)

    def that_made(self, card_id: str) -> Decision | None:
        """The decision that made a card."""
        return self._last(_THAT_MADE, card_id)

    def last_on_card(self, card_id: str) -> Decision | None:
        """The last decision that names a card."""
        return self._last(_ON_CARD, card_id)

    def all(
        self,
        *,
        answer: str | None = None,
        database: str | None = None,
        by: str | None = None,
        signal: str | None = None,
        since: str = "",
    ) -> list[Decision]:
        """Every decision that fits what is given, oldest first."""
        query = sa.select(*_TOLD).where(decisions.c.at >= since).order_by(decisions.c.seq)
        for column, value in (("answer", answer), ("database", database), ("by", by), ("signal", signal)):
            if value is not None:
                query = query.where(decisions.c[column] == value)
        with self._backend.reading() as connection:
            return [_decision(tuple(row)) for row in connection.execute(query)]

    def knows(self, person: str) -> bool:
        """Tell whether somebody of this name ever gave a verdict."""
        query = sa.select(decisions.c.seq).where(decisions.c.by == person).limit(1)
        with self._backend.reading() as connection:
            return connection.scalar(query) is not None

    # ── proposals ────────────────────────────────────────────────────────────────────────────────────────────────

    def propose(self, proposal: Proposal) -> bool:
        """Keep what a repair came to; False when it is there already."""
        row = {field: getattr(proposal, field) for field in ("id", "database", "answer", "at", "sql", "note")}
        trace = None if proposal.episode is None else document(f"proposal {proposal.id!r}", proposal.episode)
        with self._backend.appending() as connection:
            return is_new(connection, proposals, {**row, "episode": trace})

    def proposals(self, *, answer: str | None = None, database: str | None = None) -> list[Proposal]:
        """What was proposed and not yet decided on, oldest first."""
        decided = sa.select(decisions.c.proposal).where(decisions.c.proposal != "")
        query = sa.select(proposals).where(proposals.c.id.not_in(decided)).order_by(proposals.c.seq)
        for column, value in (("answer", answer), ("database", database)):
            if value is not None:
                query = query.where(proposals.c[column] == value)
        with self._backend.reading() as connection:
            return [_proposal(row) for row in connection.execute(query)]

    def proposal(self, proposal_id: str) -> Proposal:
        """One proposal, decided on or not."""
        with self._backend.reading() as connection:
            row = connection.execute(sa.select(proposals).where(proposals.c.id == proposal_id)).first()
        if row is None:
            raise BankError(f"proposal {proposal_id!r}: not in {self._backend.where}")
        return _proposal(row)

    def _append(self, connection: sa.Connection, decision: Decision) -> None:
        values = {**msgspec.structs.asdict(decision), "verdict": str(decision.verdict)}
        connection.execute(decisions.insert(), values)
        if decision.answer:
            standing = answers.update().where(answers.c.id == decision.answer)
            connection.execute(standing.values(verdict=values["verdict"]))

    def _last(self, statement: "sa.Select[Any]", name: str) -> Decision | None:
        return next((_decision(tuple(row)) for row in self._backend.rows(statement, {"name": name})), None)


def _says_the_same(standing: Decision, said: tuple[Verdict, str, str], signal: str) -> bool:
    takes_over = is_personal(signal) and not is_personal(standing.signal)
    return (standing.verdict, standing.sql, standing.proposal) == said and not takes_over


def _name(*parts: str) -> str:
    """A decision's id says what was decided after what, so that it cannot be written twice."""
    return hashlib.sha256(msgspec.json.encode(parts)).hexdigest()[:32]


def _decision(row: tuple[str, ...]) -> Decision:
    told: dict[str, Any] = dict(zip(Decision.__struct_fields__, row, strict=True))
    return Decision(**told | {"verdict": Verdict(told["verdict"])})


def _proposal(row: "sa.Row[tuple[str, ...]]") -> Proposal:
    told = {field: row._mapping[field] for field in Proposal.__struct_fields__ if field != "episode"}
    trace = row._mapping["episode"]
    return Proposal(**told, episode=None if trace is None else read_episode(trace))
