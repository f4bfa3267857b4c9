"""The pages as one piece: login, settings, static files, errors, and the routers of the rest."""

from http.client import responses
from typing import Annotated, Any

from fastapi import APIRouter, FastAPI, Form, Request
from starlette.responses import RedirectResponse, Response
from starlette.staticfiles import StaticFiles

from sqlcrystal.bank import Scope
from sqlcrystal.errors import ConfigError
from sqlcrystal.interfaces.server.access import COOKIE, Door, from_this_origin
from sqlcrystal.interfaces.server.api import TokenId
from sqlcrystal.interfaces.server.replies import Working
from sqlcrystal.interfaces.web.rendering import FOLDER, databases_of, page, waiting_count
from sqlcrystal.serving.documents import EVERY_DATABASE, DatabaseState, TokenDocument

router = APIRouter(include_in_schema=False)
API = ("/api/", "/v1/", "/mcp", "/metrics", "/health", "/ready", "/openapi.json")
TITLES = {401: "Log in", 403: "Not allowed", 404: "Not here", 422: "A mistake", 429: "Too many requests", 503: "Busy"}


HINTS = {
    403: "Your token does not reach this. The person who runs the server can give you one that does.",
    404: "The address may be misspelt, or what it named was deleted.",
    429: "Wait a minute, then load the page again.",
    503: "The server is busy or stopping. Load the page again in a moment.",
}
"""A next step for a person."""


def add_pages(app: FastAPI) -> None:
    """Every page, under the gate like the rest."""
    from sqlcrystal.interfaces.web import (
        pages_ask,
        pages_bank,
        pages_definitions,
        pages_demo,
        pages_learn,
        pages_queue,
        pages_value,
    )

    app.mount("/static", StaticFiles(directory=FOLDER / "static"), name="static")
    for module in (pages_ask, pages_queue, pages_learn, pages_definitions, pages_bank, pages_value, pages_demo):
        app.include_router(module.router)
    app.include_router(router)


def wants_page(request: Request) -> bool:
    """Tell whether an error is shown as a page: to a browser, outside the interface, and not to the script."""
    by_script = "x-fragment" in request.headers
    return not by_script and not request.url.path.startswith(API) and "text/html" in request.headers.get("accept", "")


def error_page(request: Request, status: int, detail: object) -> Response:
    """Tell what went wrong, and where to go on."""
    said = str(detail)
    return page(
        request,
        "error.html",
        status=status,
        title=TITLES.get(status, "Not done"),
        detail="" if said == responses.get(status) else said,  # which says no more than the title
        hint=HINTS.get(status, ""),
    )


@router.get("/login")
async def login_page(request: Request) -> Response:
    """Tell where a token is given."""
    return page(request, "login.html", refused="")


@router.post("/login")
async def login(request: Request, work: Working, token: Annotated[str, Form(max_length=200)] = "") -> Response:
    """Keep a token that stands in a cookie that scripts cannot read and other sites cannot send."""
    holder = await work.read(lambda: work.crystal.recognise(token.strip()))
    if holder is None or not from_this_origin(request):
        refused = "This token is not known, was revoked, or its time is over."
        return page(request, "login.html", status=401, refused=refused)
    reply = RedirectResponse("/demo" if work.settings.demo else "/", status_code=303)
    reply.set_cookie(
        COOKIE,
        token.strip(),
        max_age=int(work.settings.session_hours * 3600),
        httponly=True,
        samesite="strict",
        secure=work.settings.secure_cookie or request.url.scheme == "https",
        path="/",
    )
    return reply


@router.post("/logout")
async def logout() -> Response:
    """Forget the token."""
    reply = RedirectResponse("/login", status_code=303)
    reply.delete_cookie(COOKIE, path="/", httponly=True, samesite="strict")
    return reply


@router.get("/settings")
async def settings_page(request: Request, door: Door, work: Working) -> Response:
    """Show what is set, and who may do what."""
    return page(request, "settings.html", **await work.read(lambda: _values(request, door)))


@router.post("/settings/tokens")
async def issue(
    *,
    request: Request,
    door: Door,
    work: Working,
    person: Annotated[str, Form(min_length=1, max_length=100)],
    on: Annotated[str, Form(min_length=1, max_length=200)],
    scope: Annotated[list[Scope] | None, Form(max_length=3)] = None,
    days: Annotated[str, Form(max_length=10)] = "",
) -> Response:
    """Make a token and show it this once."""
    others, end = work.settings.issue_for_others, _days(days)
    issued = await work.write(lambda: door.issue_token(person, [on], scope or (), days=end, for_others=others))
    values = await work.read(lambda: _values(request, door))
    return page(request, "settings.html", **{**values, "issued": issued.token, "issued_for": issued.person})


@router.post("/settings/tokens/{token_id}/revoke")
async def revoke(token_id: TokenId, door: Door, work: Working) -> Response:
    """End a token."""
    await work.write(lambda: door.end_token(token_id))
    return RedirectResponse("/settings", status_code=303)


def _days(given: str) -> float | None:
    try:
        return float(given) if given.strip() else None
    except ValueError:
        raise ConfigError("days: a number, or nothing for a token without end") from None


def _values(request: Request, door: Door) -> dict[str, Any]:
    manages = door.caller.may_anywhere(Scope.MANAGE)
    every = [EVERY_DATABASE] if door.caller.owns_all else []
    return {
        "states": [_state(state) for state in door.databases()],
        "model_name": door.model_name(),
        "may_manage": manages,
        "grants": [_token(TokenDocument.of(grant)) for grant in door.tokens()] if manages else [],
        "grantable": [*every, *databases_of(door, Scope.MANAGE)],
        "scopes": [str(scope) for scope in Scope],
        "waiting_count": waiting_count(request, door),
        "issued": "",
        "issued_for": "",
    }


def _state(state: DatabaseState) -> dict[str, Any]:
    same = {name: getattr(state, name) for name in ("name", "dialect", "place", "error", "cards", "replay")}
    return {**same, "values_are": state.values, "hold_out": f"{100 * state.hold_out:g} %"}


def _token(token: TokenDocument) -> dict[str, Any]:
    by_database: dict[str, list[str]] = {}
    for database, scope in token.scopes:
        by_database.setdefault("every database" if database == EVERY_DATABASE else database, []).append(str(scope))
    same = {name: getattr(token, name) for name in ("id", "person", "made_at", "made_by", "state", "ends_at")}
    return {**same, "may": "; ".join(f"{name}: {', '.join(scopes)}" for name, scopes in by_database.items())}
