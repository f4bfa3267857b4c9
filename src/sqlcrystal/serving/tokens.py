"""Access tokens: a manager makes, lists and ends those that reach no further than they do."""

import unicodedata
from collections.abc import Iterable

from sqlcrystal.bank import Grant, Scope
from sqlcrystal.bank.records import EVERY_DATABASE, end_after
from sqlcrystal.errors import ConfigError, Forbidden, NotFound
from sqlcrystal.serving.callers import Caller
from sqlcrystal.serving.documents import IssuedToken
from sqlcrystal.serving.workspace import Workspace


def tokens_of(workspace: Workspace, caller: Caller) -> list[Grant]:
    """List the tokens, revoked ones too, that reach no further than the caller manages; oldest first."""
    caller.require_anywhere(Scope.MANAGE)
    if not workspace.store_exists():
        return []
    return [
        grant
        for grant in workspace.store.tokens.all()
        if all(caller.allows(database, Scope.MANAGE) for database, _ in grant.scopes)
    ]


def issue(
    workspace: Workspace,
    caller: Caller,
    person: str,
    databases: Iterable[str] | None,
    scopes: Iterable[Scope],
    *,
    days: float | None,
    for_others: bool,
) -> IssuedToken:
    """Make a token for databases that the caller manages."""
    caller.require_anywhere(Scope.MANAGE)
    names = list(databases or [EVERY_DATABASE])
    for name in names:
        _require_known(workspace, name)
        if not caller.allows(name, Scope.MANAGE):
            raise Forbidden(f"your token lacks the scope 'manage' on database {name!r}")
    if not caller.local and not for_others:
        _require_own_name(workspace, caller, person)
    pairs = [(name, scope) for name in names for scope in scopes]
    token, grant = workspace.store.tokens.issue(person, pairs, by=caller.person, ends_at=end_after(days))
    return IssuedToken.issued(token, grant)


def end(workspace: Workspace, caller: Caller, token_id: str) -> None:
    """End a token; once ended it stays so."""
    if token_id not in {grant.id for grant in tokens_of(workspace, caller)}:
        raise NotFound(f"no token {token_id[:40]!r} here, or not for you")
    workspace.store.tokens.revoke(token_id, by=caller.person)


def _require_known(workspace: Workspace, name: str) -> None:
    """Refuse a token for a database that nobody can ask: it is most likely a slip of the pen."""
    known = workspace.names()
    if name != EVERY_DATABASE and name not in known:
        raise ConfigError.unknown("database", name, [*known, EVERY_DATABASE])


def _require_own_name(workspace: Workspace, caller: Caller, person: str) -> None:
    """Refuse a token in the name of somebody else who is known already: its holder would vouch as that person."""
    name = _same_name(person)
    if name == _same_name(caller.person):
        return
    known = [*workspace.team.people, *(grant.person for grant in workspace.store.tokens.all())]
    if name in map(_same_name, known) or workspace.store.decisions.knows(person):
        raise Forbidden(f"{person!r} is somebody else; who runs the server makes their tokens").hinting(
            "with `sqlcrystal token create`, or with a server that was started with --issue-for-others"
        )


def _same_name(person: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", person).casefold().split())
