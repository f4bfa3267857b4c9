"""Who is calling, and what their token lets them do to which database."""

from collections.abc import Iterable
from typing import Annotated, Protocol

from fastapi import Depends, HTTPException, Request
from fastapi.security import HTTPBearer
from msgspec import Struct

from sqlcrystal.bank import Grant, Scope

COOKIE = "sqlcrystal_session"
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
bearer_scheme = HTTPBearer(auto_error=False, description="A token from `sqlcrystal token create`.")


class Recogniser(Protocol):
    """Where tokens are known."""

    def recognise(self, token: str) -> Grant | None:
        """What a token grants now."""
        ...


class Caller(Struct, frozen=True):
    """A recognised token's holder."""

    grant: Grant

    @property
    def person(self) -> str:
        """Under this name verdicts are kept."""
        return self.grant.person

    def allows(self, database: str, scope: Scope) -> bool:
        """Whether they may do this to that database."""
        return self.grant.allows(database, scope)

    def may_anywhere(self, scope: Scope) -> bool:
        """Whether they may do this to any database."""
        return any(given is scope for _, given in self.grant.scopes)

    def sees(self, database: str) -> bool:
        """Whether a database exists for them at all."""
        return any(self.allows(database, scope) for scope in Scope)

    def seen(self, databases: Iterable[str]) -> list[str]:
        """Those of the databases that exist for them."""
        return [name for name in databases if self.sees(name)]

    def require(self, database: str, scope: Scope, *, what: str) -> None:
        """Refuse what the token does not allow; a database it does not see is not there, whatever else is."""
        if not self.sees(database):
            raise HTTPException(404, f"no {what} here, or not for you")
        if not self.allows(database, scope):
            raise HTTPException(403, f"your token lacks the scope {scope.value!r} on database {database!r}")

    def require_anywhere(self, scope: Scope) -> None:
        """Refuse a token that has a scope nowhere."""
        if not self.may_anywhere(scope):
            raise HTTPException(403, f"your token lacks the scope {scope.value!r}")


def given_token(request: Request) -> tuple[str, bool]:
    """The token of a request, and whether a browser sent it by itself."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    if token:
        return (token.strip(), False) if scheme.lower() == "bearer" else ("", False)
    return request.cookies.get(COOKIE, ""), True


def from_this_origin(request: Request) -> bool:
    """Whether a request a browser made comes from a page of ours: the cookie alone proves nothing."""
    site = request.headers.get("sec-fetch-site")
    if site is not None:
        return site in {"same-origin", "none"}
    origin = request.headers.get("origin")
    return origin is not None and origin.partition("://")[2] == request.headers.get("host")


def recognised(request: Request, tokens: Recogniser) -> Caller | None:
    """The holder of the request's token, if it stands and the request is theirs."""
    token, by_browser = given_token(request)
    if not token or (by_browser and request.method not in SAFE_METHODS and not from_this_origin(request)):
        return None
    grant = tokens.recognise(token)
    return None if grant is None else Caller(grant)


async def caller_of(request: Request, _: Annotated[object, Depends(bearer_scheme)]) -> Caller:
    """The caller the middleware recognised; it lets nobody else through."""
    caller: Caller = request.state.caller
    return caller


Calling = Annotated[Caller, Depends(caller_of)]
