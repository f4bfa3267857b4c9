"""The caller of an action: a person or a program, the databases that exist for them, and their scopes there."""

import getpass
from collections.abc import Iterable

from msgspec import Struct

from sqlcrystal.bank import Grant, Scope
from sqlcrystal.bank.records import EVERY_DATABASE
from sqlcrystal.errors import Forbidden, NotFound

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
