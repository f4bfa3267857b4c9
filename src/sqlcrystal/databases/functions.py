"""The functions that a statement may call, by engine and by name; the lists are in word_lists/.

PostgreSQL and DuckDB say of their functions whether they are pure, so there only those may be called, and what the
owner of a database allows by name. SQLite and MySQL say nothing, so there what reaches beyond a query is named.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import NamedTuple

from sqlcrystal.databases.engines import engine_of
from sqlcrystal.errors import ConfigError
from sqlcrystal.types import Failure, FailureKind

PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_$]*")
"""MariaDB finds SLEEP under slèep too: a function is called by a name in ASCII, or not at all."""


class Catalogue(NamedTuple):
    """The functions of a live database, by its own catalogue."""

    purity: Mapping[str, bool] = {}
    """For each name, whether every function of that name is pure."""
    made_impure: frozenset[str] = frozenset()
    """The names under which the database itself has a function that may do more than compute.

    An overload of a harmless name is called wherever its arguments fit better.
    """


class Functions:
    """The functions of one dialect, and of one database when its catalogue can be asked."""

    def __init__(
        self, dialect: str, *, catalogue: Callable[[], Catalogue] | None = None, allowed: Iterable[str] = ()
    ) -> None:
        """The owner of the database allows further names; what runs SQL from text stays out even so."""
        lists = engine_of(dialect).words
        self._by_catalogue = engine_of(dialect).tells_purity
        self._never = lists["never"] if self._by_catalogue else lists["denied"]
        self._never_prefixes = tuple(lists["never_prefixes" if self._by_catalogue else "prefixes"])
        self._known: frozenset[str] = frozenset()
        if self._by_catalogue:
            self._known = lists["pure"] | lists["reviewed"] | lists["syntax"]
        self._impure = lists.get("impure", frozenset())
        self._allowed = frozenset(name.lower() for name in allowed)
        self._catalogue = catalogue
        self._live: Catalogue | None = None
        if refused := sorted(name for name in self._allowed if self._is_never(name)):
            raise ConfigError(f"functions: {', '.join(refused)} can never be allowed: see docs/reference/safety.md")

    def call(self, name: str) -> Failure | None:
        """Tell why a function may not be called, if so."""
        lowered = name.lower()
        if not PLAIN_NAME.fullmatch(name):
            return _refused(f"function name {name!a}")
        if lowered in self._allowed:
            return None
        if self.is_made_impure(lowered):
            return _may_do_more(lowered)
        if lowered in self._known:
            return None
        if self._is_never(lowered) or lowered in self._impure:
            return _refused(f"function {lowered}")
        return self._by_live_catalogue(lowered) if self._by_catalogue else None

    def _by_live_catalogue(self, name: str) -> Failure | None:
        """A function that the lists do not know: one of this database, of another version of the engine, or none."""
        pure = self._asked().purity.get(name)
        if pure is None:
            return Failure(FailureKind.MISSING, f"no function {name} is known to be here")
        return None if pure else _may_do_more(name)

    def is_banned(self, name: str) -> bool:
        """Tell whether no call of this name may stand anywhere, whatever the tree makes of it."""
        lowered = name.lower()
        return lowered not in self._allowed and (lowered in self._impure or self._is_never(lowered))

    def is_made_impure(self, name: str) -> bool:
        """Tell whether the database itself has a function of this name that may do more than compute."""
        lowered = name.lower()
        return self._by_catalogue and lowered not in self._allowed and lowered in self._asked().made_impure

    def attribute(self, name: str) -> Failure | None:
        """Tell why a name may not stand behind a dot: PostgreSQL reads (1).pg_sleep as pg_sleep(1)."""
        lowered = name.lower()
        if lowered in self._allowed:
            return None
        if lowered in self._impure or (self._is_never(lowered) and lowered not in self._known):
            return _refused(f"function {lowered} as an attribute")
        return _refused(f"function {lowered} as an attribute") if self._asked().purity.get(lowered) is False else None

    def relation(self, name: str) -> Failure | None:
        """Tell why a table of this name may not be read: DuckDB has views of what its functions show."""
        return _refused(f"table {name}") if self._by_catalogue and self._is_never(name.lower()) else None

    def _is_never(self, name: str) -> bool:
        return name in self._never or name.startswith(self._never_prefixes)

    def _asked(self) -> Catalogue:
        """Ask the live catalogue, once."""
        if self._live is None:
            self._live = self._catalogue() if self._catalogue else Catalogue()
        return self._live


@cache
def built_in(dialect: str) -> Functions:
    """Give the functions of a dialect, whatever the database."""
    return Functions(dialect)


def _may_do_more(name: str) -> Failure:
    message = f"function {name} may have side effects; the owner of the database may allow it by name"
    return Failure(FailureKind.REFUSED, message)


def _refused(what: str) -> Failure:
    return Failure(FailureKind.REFUSED, f"{what} is not allowed in a read-only query")
