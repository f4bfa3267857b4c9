"""Verdicts and proposals, append-only: a verdict is never rewritten, a later one replaces it; proposals wait."""

import hashlib
from collections.abc import Callable, Iterable
from typing import Any

import msgspec
import sqlalchemy as sa

from sqlcrystal.bank.answers import AnswerStore
from sqlcrystal.bank.backend import Backend, Row
from sqlcrystal.bank.records import AnswerRecord, Decided, Decision, Proposal, ProposedDefinition, Verdict
from sqlcrystal.bank.tables import (
    DocumentLookup,
    StoredRecords,
    answers,
    decisions,
    encode,
    insert_once,
    proposals,
    proposed_definitions,
    read_episode,
)
from sqlcrystal.errors import BankError
from sqlcrystal.timestamps import as_timestamp, timestamp
from sqlcrystal.types import is_personal

_COLUMNS = tuple(decisions.c[field] for field in Decision.__struct_fields__)
_LAST: "sa.Select[Any]" = sa.select(*_COLUMNS).order_by(decisions.c.seq.desc()).limit(1)
_MADE = sa.or_(*(decisions.c.verdict == verdict.value for verdict in (Verdict.CONFIRMED, Verdict.CORRECTED)))
_OF_CARD = decisions.c.card == sa.bindparam("name")
_ON_ANSWER = _LAST.where(decisions.c.answer == sa.bindparam("name"))
_ON_CARD = _LAST.where(_OF_CARD)
_THAT_MADE = _LAST.where(_OF_CARD, _MADE, decisions.c.answer != "")


class DecisionStore:
    """Keeps each verdict with its person, time and signal, the answer it is on, and the decision it replaced."""

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
        A person's verdict that a rule gave before is new: it is the first of a person.
        """
        with self._backend.writing() as connection:
            answer = self._answers.get(answer) if isinstance(answer, str) else answer
            standing = self.standing(answer.id)
            if standing is not None and _says_the_same(standing, (verdict, sql, proposal), signal):
                return Decided(standing, new=False, before=standing)
            decision = Decision(
                id=_name(answer.id, verdict, sql, proposal, standing.id if standing else ""),
                database=answer.database,
                at=timestamp(),
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
        """Take back the verdict that made a card; None if that was done before."""
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
                at=timestamp(),
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
        """Return the last decision on an answer."""
        return self._last(_ON_ANSWER, answer_id)

    def that_made(self, card_id: str) -> Decision | None:
        """Return the decision that made a card."""
        return self._last(_THAT_MADE, card_id)

    def last_on_card(self, card_id: str) -> Decision | None:
        """Return the last decision that names a card."""
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
        """Find every decision that fits what is given, oldest first."""
        query = sa.select(*_COLUMNS).where(decisions.c.at >= as_timestamp(since)).order_by(decisions.c.seq)
        for column, value in (("answer", answer), ("database", database), ("by", by), ("signal", signal)):
            if value is not None:
                query = query.where(decisions.c[column] == value)
        return [_decision(row) for row in self._backend.rows(query)]

    def knows(self, person: str) -> bool:
        """Tell whether somebody of this name ever gave a verdict."""
        query = sa.select(decisions.c.seq).where(decisions.c.by == person).limit(1)
        return bool(self._backend.rows(query))

    # ── proposals ────────────────────────────────────────────────────────────────────────────────────────────────

    def propose(self, proposal: Proposal) -> bool:
        """Keep a repair's proposal; False when it is there already."""
        row = {
            field: getattr(proposal, field) for field in ("id", "database", "answer", "at", "sql", "note", "question")
        }
        trace = None if proposal.episode is None else encode(f"proposal {proposal.id!r}", proposal.episode)
        with self._backend.appending() as connection:
            return insert_once(connection, proposals, {**row, "episode": trace})

    def proposals(self, *, answer: str | None = None, database: str | None = None) -> list[Proposal]:
        """List the proposals that are not decided on yet, oldest first."""
        decided = sa.select(decisions.c.proposal).where(decisions.c.proposal != "")
        query = sa.select(proposals).where(proposals.c.id.not_in(decided)).order_by(proposals.c.seq)
        for column, value in (("answer", answer), ("database", database)):
            if value is not None:
                query = query.where(proposals.c[column] == value)
        return [_proposal(row) for row in self._backend.rows(query)]

    def proposal(self, proposal_id: str) -> Proposal:
        """Return one proposal, decided on or not."""
        rows = self._backend.rows(sa.select(proposals).where(proposals.c.id == proposal_id))
        if not rows:
            raise BankError(f"proposal {proposal_id!r}: not in {self._backend.where}")
        return _proposal(rows[0])

    def _append(self, connection: sa.Connection, decision: Decision) -> None:
        values = {**msgspec.structs.asdict(decision), "verdict": str(decision.verdict)}
        connection.execute(decisions.insert(), values)
        if decision.answer:
            standing = answers.update().where(answers.c.id == decision.answer)
            connection.execute(standing.values(verdict=values["verdict"]))

    def _last(self, statement: "sa.Select[Any]", name: str) -> Decision | None:
        return next(map(_decision, self._backend.rows(statement, {"name": name})), None)


def _says_the_same(standing: Decision, said: tuple[Verdict, str, str], signal: str) -> bool:
    takes_over = is_personal(signal) and not is_personal(standing.signal)
    return (standing.verdict, standing.sql, standing.proposal) == said and not takes_over


def _name(*parts: str) -> str:
    """Name a decision after its content and the one before it, so that it cannot be written twice."""
    return hashlib.sha256(msgspec.json.encode(parts)).hexdigest()[:32]


def _decision(row: Row) -> Decision:
    fields: dict[str, Any] = dict(row._mapping)
    return Decision(**fields | {"verdict": Verdict(fields["verdict"])})


def _proposal(row: Row) -> Proposal:
    fields: dict[str, Any] = {field: row._mapping[field] for field in Proposal.__struct_fields__}
    trace = fields["episode"]
    return Proposal(**fields | {"episode": None if trace is None else read_episode(trace)})


_PROPOSED = StoredRecords(ProposedDefinition)
_LOOKUP = DocumentLookup(proposed_definitions, kind="proposed definition")


class ProposedDefinitionStore:
    """Keeps proposals by an id that follows from what they say, with the verdict on them."""

    def __init__(self, backend: Backend) -> None:
        """Share the store's transactions."""
        self._backend = backend

    def propose(self, proposed: Iterable[ProposedDefinition]) -> list[ProposedDefinition]:
        """Keep proposals, and return those that are new: neither waiting nor decided on."""
        with self._backend.writing() as connection:
            return [
                each
                for each in proposed
                if insert_once(
                    connection,
                    proposed_definitions,
                    {
                        "id": each.id,
                        "database": each.database,
                        "at": each.at,
                        "document": encode(f"definition {each.id!r}", each),
                    },
                )
            ]

    def waiting(self, database: str | None = None) -> list[ProposedDefinition]:
        """List what waits for a word, oldest first."""
        query = sa.select(proposed_definitions.c.document).where(proposed_definitions.c.verdict == "")
        if database is not None:
            query = query.where(proposed_definitions.c.database == database)
        rows = self._backend.rows(query.order_by(proposed_definitions.c.seq))
        return [_PROPOSED.decode(document) for (document,) in rows]

    def get(self, name: str) -> ProposedDefinition:
        """Return one proposal, decided or not; the start of its id will do where only one has it."""
        return _PROPOSED.decode(_LOOKUP.find(self._backend, name))

    def decide(self, name: str, verdict: Verdict, *, by: str) -> bool:
        """Keep a person's word on a proposal; False where one was given before."""
        table = proposed_definitions
        decided = table.update().where(table.c.id == name, table.c.verdict == "")
        with self._backend.writing() as connection:
            return bool(connection.execute(decided.values(verdict=str(verdict), by=by)).rowcount)
