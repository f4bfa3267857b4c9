"""The caller of an action: a person or a program, the databases that exist for them, their scopes, their tokens."""

import getpass
import unicodedata
from collections.abc import Iterable
from typing import TYPE_CHECKING

from msgspec import Struct

from sqlcrystal.bank import Grant, Scope
from sqlcrystal.bank.records import EVERY_DATABASE, end_after
from sqlcrystal.errors import ConfigError, Forbidden, NotFound
from sqlcrystal.serving.documents import IssuedToken

if TYPE_CHECKING:
    from sqlcrystal.serving.workspace import Workspace

EVERYTHING = frozenset((EVERY_DATABASE, scope) for scope in Scope)


class Caller(Struct, frozen=True, kw_only=True):
    """A person or program and what it may do; every action of `Crystal` is one of a caller."""

    person: str
    """Verdicts and changes are kept under this name."""
    scopes: frozenset[tuple[str, Scope]] = EVERYTHING
    token: str = ""
    """The id of the token that they hold."""
    local: bool = False
    """At the keyboard of this machine: may name files, other people, and the start of an id."""
    is_model: bool = False
    """A language model reads the replies: it gets no cell of a database whose values are never kept."""

    @classmethod
    def at_keyboard(cls, person: str = "") -> "Caller":
        """Describe the owner of this process, who may do everything."""
        return cls(person=person or current_user(), local=True)

    @classmethod
    def of(cls, grant: Grant) -> "Caller":
        """Describe the holder of a token."""
        return cls(person=grant.person, scopes=grant.scopes, token=grant.id)

    def allows(self, database: str, scope: Scope) -> bool:
        """Tell whether they may do this to that database."""
        return (database, scope) in self.scopes or (EVERY_DATABASE, scope) in self.scopes

    def may_anywhere(self, scope: Scope) -> bool:
        """Tell whether they may do this to any database."""
        return any(given is scope for _, given in self.scopes)

    @property
    def owns_all(self) -> bool:
        """Tell whether they manage every database."""
        return (EVERY_DATABASE, Scope.MANAGE) in self.scopes

    def sees(self, database: str) -> bool:
        """Tell whether a database exists for them at all."""
        return any(self.allows(database, scope) for scope in Scope)

    def seen(self, databases: Iterable[str]) -> list[str]:
        """Name those of the databases that exist for them."""
        return [name for name in databases if self.sees(name)]

    def require(self, database: str, scope: Scope, *, sought: str) -> None:
        """Refuse an action that the scopes do not allow; a database that they do not see is simply not there."""
        if not self.sees(database):
            raise NotFound(f"no {sought} here, or not for you")
        if not self.allows(database, scope):
            raise Forbidden(f"your token lacks the scope {scope.value!r} on database {database!r}")

    def require_anywhere(self, scope: Scope) -> None:
        """Refuse a caller who has a scope nowhere."""
        if not self.may_anywhere(scope):
            raise Forbidden(f"your token lacks the scope {scope.value!r}")

    def require_owner(self) -> None:
        """Refuse a caller who does not manage every database: metrics and studies are about all of them."""
        if not self.owns_all:
            raise Forbidden("your token lacks the scope 'manage' on every database")


def current_user() -> str:
    """Name the person at the keyboard."""
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):
        return "unknown user"


def tokens_of(workspace: "Workspace", caller: Caller) -> list[Grant]:
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
    workspace: "Workspace",
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


def end(workspace: "Workspace", caller: Caller, token_id: str) -> None:
    """End a token; once ended it stays so."""
    if token_id not in {grant.id for grant in tokens_of(workspace, caller)}:
        raise NotFound(f"no token {token_id[:40]!r} here, or not for you")
    workspace.store.tokens.revoke(token_id, by=caller.person)


def _require_known(workspace: "Workspace", name: str) -> None:
    """Refuse a token for a database that nobody can ask: it is most likely a slip of the pen."""
    known = workspace.names()
    if name != EVERY_DATABASE and name not in known:
        raise ConfigError.unknown("database", name, [*known, EVERY_DATABASE])


def _require_own_name(workspace: "Workspace", caller: Caller, person: str) -> None:
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
