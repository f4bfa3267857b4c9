"""Access tokens: who may ask, judge or manage which database; the store never holds a token itself, only its digest."""

import hashlib
import secrets
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any

import sqlalchemy as sa
from msgspec import Struct

from sqlcrystal.bank.backend import Backend
from sqlcrystal.bank.card_rows import now
from sqlcrystal.bank.tables import token_scopes, tokens
from sqlcrystal.errors import BankError, ConfigError

EVERY_DATABASE = "*"
MOST_DAYS = 3650
"""How long a token may stand that ends at all."""
PREFIX = "sqlc_"
_GRANTS: "sa.Select[Any]" = (
    sa.select(
        *(tokens.c[name] for name in ("id", "person", "made_at", "made_by", "ends_at", "revoked_at")),
        token_scopes.c.database,
        token_scopes.c.scope,
    )
    .join(token_scopes, token_scopes.c.token == tokens.c.id)
    .order_by(tokens.c.made_at, tokens.c.id)
)
_BY_DIGEST = _GRANTS.where(tokens.c.digest == sa.bindparam("value"))
_BY_ID = _GRANTS.where(tokens.c.id == sa.bindparam("value"))


class Scope(StrEnum):
    """What a token lets its holder do."""

    ASK = "ask"
    JUDGE = "judge"
    MANAGE = "manage"


class Grant(Struct, frozen=True, kw_only=True):
    """Who holds a token and what it lets them do: pairs of a database, or * for every one, and a scope."""

    id: str
    person: str
    scopes: frozenset[tuple[str, Scope]]
    made_at: str
    made_by: str
    ends_at: str = ""
    revoked_at: str = ""

    @property
    def state(self) -> str:
        """Tell whether it stands now, was revoked, or its time is over."""
        if self.revoked_at:
            return "revoked"
        return "ended" if self.ends_at and self.ends_at <= now() else "stands"

    def allows(self, database: str, scope: Scope) -> bool:
        """Whether the holder may do this to that database."""
        return (database, scope) in self.scopes or (EVERY_DATABASE, scope) in self.scopes


def end_after(days: float | None) -> str:
    """The moment a token ends that stands for so many days from now; nothing for one that does not end."""
    if days is None:
        return ""
    if not 0 < days <= MOST_DAYS:
        raise ConfigError(f"days: more than 0 and at most {MOST_DAYS}, not {days:g}")
    return (datetime.now(UTC) + timedelta(days=days)).isoformat(timespec="seconds")


class TokenStore:
    """Issues, recognises and revokes tokens."""

    def __init__(self, backend: Backend) -> None:
        """Share the store's transactions."""
        self._backend = backend

    def issue(
        self, person: str, scopes: Iterable[tuple[str, Scope]], *, by: str, ends_at: str = ""
    ) -> tuple[str, Grant]:
        """A new token, shown this once, and what it grants."""
        token = PREFIX + secrets.token_urlsafe(32)
        grant = Grant(
            id=secrets.token_hex(6),
            person=person,
            scopes=frozenset(scopes),
            made_at=now(),
            made_by=by,
            ends_at=ends_at,
        )
        if not grant.scopes:
            raise BankError(f"token for {person!r}: needs at least one database and scope")
        row = {"id": grant.id, "digest": _digest(token), "person": person, "made_at": grant.made_at, "made_by": by}
        allowed = [{"token": grant.id, "database": name, "scope": str(scope)} for name, scope in grant.scopes]
        with self._backend.writing() as connection:
            connection.execute(tokens.insert().values(**row, ends_at=ends_at, revoked_at="", revoked_by=""))
            connection.execute(token_scopes.insert(), allowed)
        return token, grant

    def recognise(self, token: str) -> Grant | None:
        """What a token grants now; nothing if nobody issued it, it was revoked or its time is over."""
        # The token has 256 random bits, so a plain digest cannot be guessed back and looking it up leaks nothing.
        grants = self._grants(_BY_DIGEST, {"value": _digest(token)})
        return grants[0] if grants and grants[0].state == "stands" else None

    def revoke(self, token_id: str, *, by: str) -> None:
        """End a token; once revoked it stays so."""
        with self._backend.writing() as connection:
            standing = tokens.update().where(tokens.c.id == token_id, tokens.c.revoked_at == "")
            if connection.execute(standing.values(revoked_at=now(), revoked_by=by)).rowcount:
                return
            if not self._grants(_BY_ID, {"value": token_id}):
                raise BankError(f"token {token_id!r}: not in {self._backend.where}")

    def all(self) -> list[Grant]:
        """Every token ever issued, revoked ones too, oldest first."""
        return self._grants(_GRANTS, {})

    def _grants(self, statement: "sa.Select[Any]", given: dict[str, str]) -> list[Grant]:
        told: dict[tuple[str, ...], set[tuple[str, Scope]]] = {}
        for *grant, database, scope in self._backend.rows(statement, given):
            told.setdefault(tuple(grant), set()).add((database, Scope(scope)))
        return [
            Grant(
                id=name,
                person=person,
                scopes=frozenset(scopes),
                made_at=made_at,
                made_by=made_by,
                ends_at=ends_at,
                revoked_at=revoked_at,
            )
            for (name, person, made_at, made_by, ends_at, revoked_at), scopes in told.items()
        ]


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()
