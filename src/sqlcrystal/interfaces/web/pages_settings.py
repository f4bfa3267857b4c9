"""Settings: databases, the model, tokens."""

from typing import Annotated, Any

from fastapi import APIRouter, Form, Request
from starlette.responses import RedirectResponse, Response

from sqlcrystal.bank import Scope
from sqlcrystal.errors import ConfigError
from sqlcrystal.interfaces.server.access import Door
from sqlcrystal.interfaces.server.api import TokenId
from sqlcrystal.interfaces.server.replies import Working
from sqlcrystal.interfaces.web.rendering import databases_of, page, waiting_count
from sqlcrystal.serving.documents import EVERY_DATABASE, DatabaseState, TokenDocument

router = APIRouter(include_in_schema=False)


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
