"""Settings: databases, the model, tokens."""

from typing import Annotated, Any

from fastapi import APIRouter, Form, HTTPException, Request
from starlette.responses import RedirectResponse, Response

from sqlcrystal.bank import Grant, Scope
from sqlcrystal.bank.access import EVERY_DATABASE, end_after
from sqlcrystal.errors import SqlcrystalError
from sqlcrystal.interfaces.server.access import Caller, Calling
from sqlcrystal.interfaces.server.api_manage import TokenId
from sqlcrystal.interfaces.server.reach import grants_for, may_grant, require_own_name
from sqlcrystal.interfaces.server.replies import Working
from sqlcrystal.interfaces.server.work import Work
from sqlcrystal.interfaces.web.rendering import chosen_database, databases_of, page, waiting_in
from sqlcrystal.serving.locations import without_password

router = APIRouter(include_in_schema=False)


@router.get("/settings")
async def settings_page(request: Request, caller: Calling, work: Working) -> Response:
    """What is set, and who may do what."""
    name = chosen_database(request, work, caller, None)
    return page(request, "settings.html", **await work.call(lambda: _values(work, caller, name)))


@router.post("/settings/tokens")
async def issue(
    *,
    request: Request,
    caller: Calling,
    work: Working,
    person: Annotated[str, Form(min_length=1, max_length=100)],
    on: Annotated[str, Form(min_length=1, max_length=200)],
    scope: Annotated[list[Scope] | None, Form(max_length=3)] = None,
    days: Annotated[str, Form(max_length=10)] = "",
) -> Response:
    """Make a token and show it this once."""
    if not may_grant(caller, on):
        raise HTTPException(403, "your token lacks the scope 'manage' there")
    if not scope:
        raise HTTPException(422, "scopes: choose at least one of ask, judge, manage")

    def write() -> tuple[str, dict[str, Any]]:
        require_own_name(work.crystal, caller, person, for_others=work.settings.issue_for_others)
        pairs = [(on, each) for each in scope]
        token, _ = work.crystal.store.tokens.issue(person, pairs, by=caller.person, ends_at=end_after(_days(days)))
        return token, _values(work, caller, chosen_database(request, work, caller, None))

    token, values = await work.write(write)
    return page(request, "settings.html", **{**values, "issued": token, "issued_for": person})


@router.post("/settings/tokens/{token_id}/revoke")
async def revoke(token_id: TokenId, caller: Calling, work: Working) -> Response:
    """End a token."""

    def write() -> None:
        if token_id not in {grant.id for grant in grants_for(work.crystal, caller)}:
            raise HTTPException(404, "no token of this id here, or not for you")
        work.crystal.store.tokens.revoke(token_id, by=caller.person)

    caller.require_anywhere(Scope.MANAGE)
    await work.write(write)
    return RedirectResponse("/settings", status_code=303)


def _days(given: str) -> float | None:
    try:
        return float(given) if given.strip() else None
    except ValueError:
        raise HTTPException(422, "days: a number, or nothing for a token without end") from None


def _values(work: Work, caller: Caller, database: str) -> dict[str, Any]:
    manages = caller.may_anywhere(Scope.MANAGE)
    return {
        "states": [_state(work, caller, state) for state in work.crystal.databases() if caller.sees(state.name)],
        "model_name": _model_name(work),
        "may_manage": manages,
        "grants": [_grant(grant) for grant in grants_for(work.crystal, caller)] if manages else [],
        "grantable": [name for name in (EVERY_DATABASE, *databases_of(work, caller)) if may_grant(caller, name)],
        "scopes": [str(scope) for scope in Scope],
        "waiting_count": len(waiting_in(work, caller, database)),
        "issued": "",
        "issued_for": "",
    }


def _model_name(work: Work) -> str:
    try:
        return work.crystal.desk.model.name
    except SqlcrystalError as error:
        return str(error)


def _state(work: Work, caller: Caller, state: Any) -> dict[str, Any]:
    entry = work.crystal.desk.team.databases.get(state.name)
    return {
        "name": state.name,
        "dialect": state.dialect,
        "place": without_password(entry.url) if entry and caller.allows(state.name, Scope.MANAGE) else "",
        "error": state.error,
        "cards": state.cards,
        "values_are": entry.values if entry else "allowed",
        "replay": entry.replay if entry else False,
        "hold_out": f"{100 * entry.hold_out:g} %" if entry else "0 %",
    }


def _grant(grant: Grant) -> dict[str, Any]:
    by_database: dict[str, list[str]] = {}
    for database, scope in sorted(grant.scopes):
        by_database.setdefault("every database" if database == EVERY_DATABASE else database, []).append(str(scope))
    return {
        "id": grant.id,
        "person": grant.person,
        "made_at": grant.made_at,
        "made_by": grant.made_by,
        "may": "; ".join(f"{name}: {', '.join(scopes)}" for name, scopes in by_database.items()),
        "state": grant.state,
        "ends_at": grant.ends_at,
    }
