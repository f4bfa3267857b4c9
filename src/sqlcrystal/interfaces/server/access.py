"""From a request to the Crystal that acts for its caller."""

from typing import Annotated

from fastapi import Depends, Request
from fastapi.security import HTTPBearer

from sqlcrystal.serving.callers import Caller
from sqlcrystal.serving.crystal import Crystal

COOKIE = "sqlcrystal_session"
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
bearer_scheme = HTTPBearer(auto_error=False, description="A token from `sqlcrystal token create`.")


def given_token(request: Request) -> tuple[str, bool]:
    """Read the token of a request, and whether a browser sent it by itself."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    if token:
        return (token.strip(), False) if scheme.lower() == "bearer" else ("", False)
    return request.cookies.get(COOKIE, ""), True


def from_this_origin(request: Request) -> bool:
    """Tell whether a request that a browser made comes from a page of ours: the cookie alone proves nothing."""
    site = request.headers.get("sec-fetch-site")
    if site is not None:
        return site in {"same-origin", "none"}
    origin = request.headers.get("origin")
    return origin is not None and origin.partition("://")[2] == request.headers.get("host")


def recognised(request: Request, crystal: Crystal) -> Caller | None:
    """Name the holder of the request's token, if it stands and the request is theirs."""
    token, by_browser = given_token(request)
    if not token or (by_browser and request.method not in SAFE_METHODS and not from_this_origin(request)):
        return None
    return crystal.recognise(token)


async def door_of(request: Request, _: Annotated[object, Depends(bearer_scheme)]) -> Crystal:
    """Give the Crystal that acts for the caller whom the gate has recognised; it lets no one else through."""
    crystal: Crystal = request.app.state.work.crystal
    return crystal.acting_for(request.state.caller)


Door = Annotated[Crystal, Depends(door_of)]
