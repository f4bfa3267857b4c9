"""What the engines' own catalogues say of their functions; `python tests/function_lists.py` prints the lists.

The files in `word_lists` are made from this. A function counts as pure when no form of it is volatile (PostgreSQL) or
has side effects (DuckDB), and when SQL may call it at all: what takes or gives internals is none for a query.
"""

import re
import textwrap
from typing import Any

PLAIN = re.compile(r"[a-z][a-z0-9_]*")
_POSTGRES = """
SELECT proname, bool_or(provolatile = 'v') AS volatile,
  bool_or(prokind = 'p' OR prorettype IN
    (SELECT oid FROM pg_type WHERE typtype = 'p' AND typname ~ '(^internal|^cstring|trigger|handler)$')
    OR 2281 = ANY (proargtypes) OR 2275 = ANY (proargtypes)) AS internal
FROM pg_proc WHERE pronamespace = 'pg_catalog'::regnamespace GROUP BY 1
"""
_DUCKDB = """
SELECT function_name, bool_or(coalesce(has_side_effects, false)), function_type IN ('pragma', 'table', 'table_macro')
FROM duckdb_functions() WHERE internal GROUP BY 1, 3
"""


def postgres(connection: Any) -> tuple[set[str], set[str]]:
    """The pure functions of pg_catalog, and the others."""
    return _split(connection.execute(_POSTGRES).fetchall())


def duckdb(connection: Any) -> tuple[set[str], set[str]]:
    """The pure scalar and aggregate functions and macros, and the others, table functions among them."""
    return _split(connection.execute(_DUCKDB).fetchall())


def _split(rows: list[tuple[str, bool, bool]]) -> tuple[set[str], set[str]]:
    impure = {name for name, volatile, internal in rows if volatile or internal}
    return {name for name, *_ in rows if PLAIN.fullmatch(name)} - impure, impure


def main() -> None:
    """Print both catalogues as tables of TOML."""
    import duckdb as duckdb_module
    import psycopg

    from engines import postgres as postgres_server

    with postgres_server() as server, psycopg.connect(server.owner) as connection:
        lists = {"postgres": postgres(connection)}
    lists["duckdb"] = duckdb(duckdb_module.connect())
    for engine, (pure, impure) in lists.items():
        print(f"[{engine}]")
        for key, names in (
            ("pure", pure),
            ("impure", {name.lower() for name in impure if PLAIN.fullmatch(name.lower())}),
        ):
            print(f'{key} = """')
            print(textwrap.fill(" ".join(sorted(names)), 118, break_long_words=False, break_on_hyphens=False))
            print('"""')


if __name__ == "__main__":
    main()
