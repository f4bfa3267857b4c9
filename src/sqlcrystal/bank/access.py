"""Access tokens: the rights of people to databases; the store never holds a token itself, only its digest."""

import hashlib
import secrets
from collections.abc import Iterable
from typing import Any

import sqlalchemy as sa

from sqlcrystal.bank.backend import Backend
from sqlcrystal.bank.records import Grant, Scope
from sqlcrystal.bank.tables import token_scopes, tokens
from sqlcrystal.errors import BankError
from sqlcrystal.timestamps import timestamp

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


class TokenStore:
    """Issues, recognises and revokes tokens."""

    def __init__(self, backend: Backend) -> None:
        """Share the store's transactions."""
        self._backend = backend

    def issue(
        self, person: str, scopes: Iterable[tuple[str, Scope]], *, by: str, ends_at: str = ""
    ) -> tuple[str, Grant]:
        """Issue a new token, shown this once, and return it with its grant."""
        token = PREFIX + secrets.token_urlsafe(32)
        grant = Grant(
            id=secrets.token_hex(6),
            person=person,
            scopes=frozenset(scopes),
            made_at=timestamp(),
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
        """Return the grant of a token that stands; None if it was never issued, was revoked, or its time is over."""
        # The token has 256 random bits, so a plain digest cannot be guessed back and looking it up leaks nothing.
        grants = self._grants(_BY_DIGEST, {"value": _digest(token)})
        return grants[0] if grants and grants[0].state == "stands" else None

    def revoke(self, token_id: str, *, by: str) -> None:
        """End a token; once revoked it stays so."""
        with self._backend.writing() as connection:
            standing = tokens.update().where(tokens.c.id == token_id, tokens.c.revoked_at == "")
            if connection.execute(standing.values(revoked_at=timestamp(), revoked_by=by)).rowcount:
                return
            if not self._grants(_BY_ID, {"value": token_id}):
                raise BankError(f"token {token_id!r}: not in {self._backend.where}")

    def all(self) -> list[Grant]:
        """List every token ever issued, revoked ones too, oldest first."""
        return self._grants(_GRANTS, {})

    def _grants(self, statement: "sa.Select[Any]", given: dict[str, str]) -> list[Grant]:
        scopes_of: dict[tuple[str, ...], set[tuple[str, Scope]]] = {}
        for *grant, database, scope in self._backend.rows(statement, given):
            scopes_of.setdefault(tuple(grant), set()).add((database, Scope(scope)))
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
            for (name, person, made_at, made_by, ends_at, revoked_at), scopes in scopes_of.items()
        ]


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()
