"""`sqlcrystal token`: who may ask, judge or manage which database through the service."""

from typing import Annotated

import typer

from sqlcrystal.errors import ConfigError
from sqlcrystal.interfaces.cli.output import print_json, print_lines
from sqlcrystal.interfaces.cli.store_access import Json, Where, current_user, opened_store

token_app = typer.Typer(help="Access tokens of the service: make, list and revoke them.")


def register(app: typer.Typer) -> None:
    """Attach the group."""
    app.add_typer(token_app, name="token", no_args_is_help=True)


@token_app.command()
def create(
    person: Annotated[str, typer.Argument(help="Who will hold it; their verdicts are kept under this name.")],
    *,
    scope: Annotated[
        list[str] | None, typer.Option("--scope", help="ask, judge or manage; may be given again. Default: ask, judge.")
    ] = None,
    db: Annotated[
        list[str] | None, typer.Option("--db", help="A database by its name; may be given again. Default: every one.")
    ] = None,
    days: Annotated[float | None, typer.Option("--days", help="How many days it stands. Default: without end.")] = None,
    store: Where = None,
    json: Json = False,
) -> None:
    """Make a token and print it, this once. The store keeps its digest only."""
    from sqlcrystal.bank import Scope
    from sqlcrystal.bank.records import EVERY_DATABASE, end_after

    for name in scope or []:
        if name not in list(Scope):
            raise ConfigError.unknown("--scope", name, Scope)
    scopes = [Scope(name) for name in scope or ("ask", "judge")]
    pairs = [(name, scope_name) for name in db or [EVERY_DATABASE] for scope_name in scopes]
    with opened_store(store, create=True) as opened:
        token, grant = opened.tokens.issue(person, pairs, by=current_user(), ends_at=end_after(days))
    if json:
        told = {"id": grant.id, "person": person, "scopes": sorted(pairs), "ends_at": grant.ends_at, "token": token}
        print_json(told)
    else:
        print(token)


@token_app.command("list")
def list_tokens(store: Where = None, json: Json = False) -> None:
    """Every token ever made, without the token."""
    with opened_store(store) as opened:
        grants = opened.tokens.all()
    if json:
        fields = ("id", "person", "made_at", "made_by", "ends_at", "revoked_at")
        print_json(
            [{**{field: getattr(grant, field) for field in fields}, "scopes": sorted(grant.scopes)} for grant in grants]
        )
        return
    rows = [
        (
            grant.id,
            grant.state,
            grant.person,
            grant.made_at,
            grant.ends_at or "never",
            " ".join(f"{database}:{scope}" for database, scope in sorted(grant.scopes)),
        )
        for grant in grants
    ]
    print_lines(["id", "state", "person", "made", "ends", "may"], rows)


@token_app.command()
def revoke(
    token_id: Annotated[str, typer.Argument(help="The id that `token list` shows.")],
    store: Where = None,
    json: Json = False,
) -> None:
    """End a token at once, in every process."""
    with opened_store(store) as opened:
        opened.tokens.revoke(token_id, by=current_user())
    if json:
        print_json({"revoked": token_id})
    else:
        print(f"revoked {token_id}")
