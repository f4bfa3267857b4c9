"""Real databases, opened read-only behind two locks: the guard (what SQL may run) and the engine (what it may do)."""

import re
from collections.abc import Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING

from sqlcrystal.databases.engines import EngineRecord, Opening, locate
from sqlcrystal.errors import ConfigError

if TYPE_CHECKING:
    from sqlcrystal.protocols import Database

__all__ = ["accept_privileged", "accepts_privileged", "open_database"]

ALLOW_PRIVILEGED = "allow-privileged"
_accepted = {ALLOW_PRIVILEGED: False}
"""Set once for a process, by the flag that any command takes; forked workers inherit it."""
_OPTIONS = re.compile(r"#((?:(?:allow-privileged|functions=\w+(?:,\w+)*)(?:&|$))+)$")


def accept_privileged(accepted: bool = True) -> None:
    """Open accounts that may do more than read from now on, in this process."""
    _accepted[ALLOW_PRIVILEGED] = accepted


def accepts_privileged() -> bool:
    """Tell whether this process opens accounts that may do more than read, for workers that are started elsewhere."""
    return _accepted[ALLOW_PRIVILEGED]


def open_database(
    url_or_path: str,
    *,
    name: str | None = None,
    inspect: bool = True,
    functions: Sequence[str] = (),
    allow_privileged: bool = False,
    terse: bool = False,
) -> "Database":
    """Open `sqlite:///path`, a path to a SQLite file, `postgresql://…`, `mysql://…` or `duckdb:///path`, read-only.

    `inspect` lets people ask for plans and descriptions too; `functions` are names the owner allows beyond what the
    engine calls pure; `allow_privileged` opens an account that may do more than read; `terse`, for scoring, says that
    a statement fails and not why. A URL may itself end in `#functions=similarity,st_area&allow-privileged`.
    """
    url, named, privileged = _split_options(url_or_path)
    engine, path = locate(url)
    _need_modules(engine, url)
    return engine.open(
        Opening(
            url,
            path,
            name,
            inspect,
            (*functions, *named),
            allow_privileged or privileged or accepts_privileged(),
            terse,
        )
    )


def _split_options(url: str) -> tuple[str, list[str], bool]:
    """Split a URL from what it says behind `#`: the functions that this allows, and whether a privileged account is."""
    options = _OPTIONS.search(url) if "://" in url else None
    if not options:
        return url, [], False
    words = options[1].split("&")
    named = [word.removeprefix("functions=").split(",") for word in words if word.startswith("functions=")]
    return url[: options.start()], [name for names in named for name in names], ALLOW_PRIVILEGED in words


def _need_modules(engine: EngineRecord, url: str) -> None:
    for module in engine.modules:
        if find_spec(module) is None:
            scheme = url.partition("://")[0]
            raise ConfigError(f"database: {scheme}:// needs {module}; pip install 'sqlcrystal[{engine.name}]'")
