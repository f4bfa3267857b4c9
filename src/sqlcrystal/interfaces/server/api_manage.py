"""Databases, value, tokens, health and metrics."""

from typing import Annotated

import msgspec
from fastapi import APIRouter, HTTPException, Path
from starlette.responses import Response

from sqlcrystal.bank import Scope
from sqlcrystal.bank.records import end_after
from sqlcrystal.errors import SqlcrystalError
from sqlcrystal.interfaces.server.access import Calling
from sqlcrystal.interfaces.server.api_answers import Which
from sqlcrystal.interfaces.server.reach import (
    database_for,
    grants_for,
    may_grant,
    require_own_name,
    require_owner,
    told_grant,
)
from sqlcrystal.interfaces.server.replies import ERRORS, Working, json_reply
from sqlcrystal.interfaces.server.shapes import (
    DatabaseShape,
    GrantShape,
    IssuedShape,
    SchemaShape,
    StateShape,
    TokenBody,
)

router = APIRouter(tags=["management"], responses=ERRORS)
DatabaseName = Annotated[str, Path(min_length=1, max_length=200)]
TokenId = Annotated[str, Path(min_length=1, max_length=64, pattern=r"^[a-f0-9]+$")]


@router.get("/health", response_model=StateShape)
async def health() -> Response:
    """Whether the process runs."""
    return json_reply({"status": "ok"})


@router.get("/ready", response_model=StateShape)
async def ready(work: Working) -> Response:
    """Whether it can work: not stopping, and the store answers."""
    if work.stopping:
        return json_reply({"status": "stopping"}, status=503)
    try:
        await work.call(lambda: work.crystal.store.answers.recent(limit=1))
    except SqlcrystalError:
        return json_reply({"status": "store unreachable"}, status=503)
    return json_reply({"status": "ok"})


@router.get("/metrics")
async def metrics(caller: Calling, work: Working) -> Response:
    """Measures of this process for Prometheus; needs `manage` on every database."""
    require_owner(caller)
    work.measure()
    return Response(work.metrics.exposition(), media_type=work.metrics.content_type)


@router.get("/api/databases", response_model=list[DatabaseShape])
async def databases(caller: Calling, work: Working) -> Response:
    """The databases the token sees, and what it may do there."""

    def read() -> list[dict[str, object]]:
        return [
            {
                **msgspec.to_builtins(state),
                "scopes": [str(scope) for scope in Scope if caller.allows(state.name, scope)],
            }
            for state in work.crystal.databases()
            if caller.sees(state.name)
        ]

    return json_reply(await work.call(read))


@router.get("/api/databases/{name}/schema", response_model=SchemaShape)
async def schema(name: DatabaseName, caller: Calling, work: Working) -> Response:
    """A database's tables as prompts show them."""

    def read() -> dict[str, object]:
        database = database_for(work.crystal, caller, name)
        return {"database": database, "schema": work.crystal.schema(database)}

    return json_reply(await work.call(read))


@router.get("/api/value")
async def value(caller: Calling, work: Working, database: Which = None) -> Response:
    """What memory is worth in service: the live lift with its interval, its cost, and which cards earn it."""

    def read() -> object:
        return msgspec.to_builtins(work.crystal.value(database_for(work.crystal, caller, database)))

    return json_reply(await work.call(read))


@router.get("/api/tokens", response_model=list[GrantShape])
async def tokens(caller: Calling, work: Working) -> Response:
    """The tokens that reach no further than you manage; never the tokens themselves."""
    caller.require_anywhere(Scope.MANAGE)
    return json_reply(await work.call(lambda: [told_grant(grant) for grant in grants_for(work.crystal, caller)]))


@router.post("/api/tokens", response_model=IssuedShape, status_code=201)
async def issue(body: TokenBody, caller: Calling, work: Working) -> Response:
    """Make a token for databases you manage; it is shown this once."""
    caller.require_anywhere(Scope.MANAGE)
    for name in body.databases:
        if not may_grant(caller, name):
            raise HTTPException(403, f"your token lacks the scope 'manage' on database {name!r}")
    pairs = [(name, scope) for name in body.databases for scope in body.scopes]

    def write() -> dict[str, object]:
        require_own_name(work.crystal, caller, body.person, for_others=work.settings.issue_for_others)
        ends_at = end_after(body.days)
        token, grant = work.crystal.store.tokens.issue(body.person, pairs, by=caller.person, ends_at=ends_at)
        return {**told_grant(grant), "token": token}

    return json_reply(await work.write(write), status=201)


@router.delete("/api/tokens/{token_id}", status_code=204)
async def revoke(token_id: TokenId, caller: Calling, work: Working) -> Response:
    """End a token."""
    caller.require_anywhere(Scope.MANAGE)

    def write() -> None:
        if token_id not in {grant.id for grant in grants_for(work.crystal, caller)}:
            raise HTTPException(404, "no token of this id here, or not for you")
        work.crystal.store.tokens.revoke(token_id, by=caller.person)

    await work.write(write)
    return Response(status_code=204)
