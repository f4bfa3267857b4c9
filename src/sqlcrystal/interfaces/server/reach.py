"""What a caller may see and do, on top of `Crystal`: every lookup by id goes through here."""

import unicodedata
from typing import TYPE_CHECKING, Any

import msgspec
from fastapi import HTTPException

from sqlcrystal.bank import AnswerRecord, Entry, Grant, Proposal, Scope, Verdict
from sqlcrystal.bank.records import EVERY_DATABASE, JUDGED
from sqlcrystal.errors import BankError
from sqlcrystal.interfaces.server.access import Caller
from sqlcrystal.types import Card, Failure, Rows

if TYPE_CHECKING:
    from sqlcrystal.serving import Crystal, Rejection, Ruling, ServedAnswer
    from sqlcrystal.types import Execution

ROWS_SHOWN = 1000
"""Rows in one reply; `row_count` and `truncated` say what was left out."""


def database_for(crystal: "Crystal", caller: Caller, name: str | None, scope: Scope = Scope.ASK) -> str:
    """The database a caller means: one they see, or the only one they see."""
    seen = caller.seen(crystal.workspace.names())
    if name is None:
        if len(seen) != 1:
            raise HTTPException(422, f"database: say which; choose from {', '.join(seen) or 'none'}")
        name = seen[0]
    # Only names: `Crystal` would open a path or URL, which only the owner of the machine may do.
    if name not in seen:
        raise HTTPException(404, f"no database {name!r} here, or not for you")
    caller.require(name, scope, what=f"database {name!r}")
    return name


def answer_for(crystal: "Crystal", caller: Caller, answer_id: str, scope: Scope = Scope.ASK) -> AnswerRecord:
    """An answer by its whole id, if its database exists for the caller."""
    missing = HTTPException(404, f"no answer {answer_id[:40]!r} here, or not for you")
    try:
        record = crystal.store.answers.get(answer_id)
    except BankError:
        raise missing from None
    # What the other arm answered, where both did, stays hidden: it would tell the judge which arm they look at.
    if record.id != answer_id or record.twin_of or not caller.sees(record.database):
        raise missing
    caller.require(record.database, scope, what="answer")
    return record


def proposal_for(crystal: "Crystal", caller: Caller, proposal_id: str) -> Proposal:
    """A proposal by its id, if its database exists for the caller."""
    missing = HTTPException(404, f"no proposal {proposal_id[:40]!r} here, or not for you")
    try:
        proposal = crystal.store.decisions.proposal(proposal_id)
    except BankError:
        raise missing from None
    if not caller.sees(proposal.database):
        raise missing
    caller.require(proposal.database, Scope.JUDGE, what="proposal")
    return proposal


def card_for(crystal: "Crystal", caller: Caller, card_id: str, scope: Scope = Scope.ASK) -> Entry:
    """A card by its whole id, if its database exists for the caller."""
    missing = HTTPException(404, f"no card {card_id[:40]!r} here, or not for you")
    try:
        entry = crystal.card(card_id)
    except BankError:
        raise missing from None
    if entry.card.id != card_id or not caller.sees(entry.card.database):
        raise missing
    caller.require(entry.card.database, scope, what="card")
    return entry


def grants_for(crystal: "Crystal", caller: Caller) -> list[Grant]:
    """The tokens a caller manages: those that reach no further than they do."""
    return [grant for grant in crystal.store.tokens.all() if _within(grant, caller)]


def may_grant(caller: Caller, database: str) -> bool:
    """Whether a caller may hand out tokens for a database."""
    return caller.allows(database, Scope.MANAGE)


def require_own_name(crystal: "Crystal", caller: Caller, person: str, *, for_others: bool) -> None:
    """Refuse a token in the name of somebody else who is known already: its holder would vouch as that person."""
    name = _same_name(person)
    if for_others or name == _same_name(caller.person):
        return
    known = [*crystal.workspace.team.people, *(grant.person for grant in crystal.store.tokens.all())]
    if name in map(_same_name, known) or crystal.store.decisions.knows(person):
        raise HTTPException(
            403,
            f"{person!r} is somebody else; their tokens are made with `sqlcrystal token create`, or by a server "
            "that was started with --issue-for-others",
        )


def _same_name(person: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", person).casefold().split())


def owns_all(caller: Caller) -> bool:
    """Whether a caller manages every database."""
    return (EVERY_DATABASE, Scope.MANAGE) in caller.grant.scopes


def require_owner(caller: Caller) -> None:
    """Refuse who does not manage every database: metrics and studies are about all of them."""
    if not owns_all(caller):
        raise HTTPException(403, "your token lacks the scope 'manage' on every database")


def _within(grant: Grant, caller: Caller) -> bool:
    return all(caller.allows(database, Scope.MANAGE) for database, _ in grant.scopes)


# ── how things are told ──────────────────────────────────────────────────────────────────────────────────────────────


def told_answer(crystal: "Crystal", given: "ServedAnswer | AnswerRecord") -> dict[str, Any]:
    """An answer as JSON; whether it had memory is not told before a verdict stands."""
    from sqlcrystal.serving import UsedCard

    # Of an answer given this moment nobody but the team's own checks can have said anything yet.
    spoken = isinstance(given, AnswerRecord) or bool(given.checked)
    standing = crystal.store.decisions.standing(given.id) if spoken else None
    judged = standing is not None and standing.verdict in JUDGED
    if isinstance(given, AnswerRecord):
        cards = [UsedCard.of(card, use.score) for use in given.cards if (card := known_card(crystal, use.card))]
        rows, count = given.rows, given.row_count
    else:
        cards, rows, count = list(given.cards), given.rows, len(given.rows)
    shown = None if rows is None else rows[:ROWS_SHOWN]
    same = ("id", "database", "question", "sql", "columns", "replayed", "calls")
    spent = ("prompt_tokens", "completion_tokens", "seconds", "error")
    document: dict[str, Any] = msgspec.to_builtins(
        {
            **{field: getattr(given, field) for field in (*same, *spent)},
            "rows": shown,
            "row_count": count,
            "truncated": count > len(shown or ()),
            "cards": cards,
            "memory": given.memory if judged else None,
            "verdict": str(standing.verdict) if standing else "",
            "card": _made_card(standing.verdict, standing.card) if standing else "",
        }
    )
    return document


def known_card(crystal: "Crystal", card_id: str) -> Card | None:
    """A card that an answer used, unless it was deleted since."""
    try:
        return crystal.store.bank.get(card_id)
    except BankError:
        return None


def told_rows(execution: "Execution") -> dict[str, Any]:
    """What a statement returned, as JSON."""
    if isinstance(execution, Failure):
        return {
            "columns": [],
            "rows": [],
            "row_count": 0,
            "truncated": False,
            "seconds": execution.seconds,
            "error": f"{execution.kind}: {execution.message}",
        }
    return {
        "columns": list(execution.columns),
        "rows": [list(row) for row in execution.rows[:ROWS_SHOWN]],
        "row_count": len(execution.rows),
        "truncated": len(execution.rows) > ROWS_SHOWN,
        "seconds": execution.seconds,
        "error": "",
    }


def told_ruling(ruling: "Ruling") -> dict[str, Any]:
    """A verdict as JSON."""
    fields = ("id", "database", "verdict", "by", "card", "replaced", "memory", "new")
    document: dict[str, Any] = msgspec.to_builtins({field: getattr(ruling, field) for field in fields})
    return document


def told_rejection(rejection: "Rejection") -> dict[str, Any]:
    """A rejection as JSON, with what was proposed."""
    proposal, rows = rejection.proposal, rejection.rows
    if proposal is None or not isinstance(rows, Rows):
        return {**told_ruling(rejection.ruling), "proposal": None}
    shown = {key: value for key, value in told_rows(rows).items() if key in {"columns", "rows", "row_count"}}
    return {**told_ruling(rejection.ruling), "proposal": {"id": proposal.id, "sql": proposal.sql, **shown}}


def told_past(record: AnswerRecord, verdict: str) -> dict[str, Any]:
    """An answer as history lists it."""
    fields = ("id", "database", "question", "at", "asked_by")
    return {**{field: getattr(record, field) for field in fields}, "verdict": verdict}


def told_grant(grant: Grant) -> dict[str, Any]:
    """A token without the token."""
    fields = ("id", "person", "made_at", "made_by", "ends_at", "revoked_at")
    scopes = [[database, str(scope)] for database, scope in sorted(grant.scopes)]
    return {**{field: getattr(grant, field) for field in fields}, "scopes": scopes}


def _made_card(verdict: Verdict, card: str) -> str:
    return card if verdict in {Verdict.CONFIRMED, Verdict.CORRECTED} else ""
