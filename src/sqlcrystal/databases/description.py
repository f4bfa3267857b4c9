"""A database told table by table: columns, foreign keys, and the comments its owner left on them."""

import re
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from typing import Any

from msgspec.structs import replace

from sqlcrystal.errors import DatabaseError
from sqlcrystal.types import Column, Execution, Failure, Row, Table

_DUCKDB_TABLES = """
SELECT 'type', type_name, 'CREATE TYPE ' || type_name || ' AS ENUM ' || labels::VARCHAR || ';', ''
FROM duckdb_types() WHERE NOT internal AND logical_type = 'ENUM'
UNION ALL SELECT 'table', table_name, sql, coalesce(comment, '') FROM duckdb_tables() WHERE NOT internal
UNION ALL SELECT 'view', view_name, sql, coalesce(comment, '') FROM duckdb_views() WHERE NOT internal
"""
_DUCKDB_COLUMNS = """
SELECT table_name, column_name, data_type, coalesce(comment, '') FROM duckdb_columns() WHERE NOT internal
ORDER BY table_name, column_index
"""
_DUCKDB_REFERENCES = """
SELECT DISTINCT table_name, referenced_table FROM duckdb_constraints()
WHERE constraint_type = 'FOREIGN KEY' ORDER BY ALL
"""
_ORDER = ("type", "table", "view")
_WORD = re.compile(r"\w+")


def sqlite_tables(uri: str, definitions: Sequence[str]) -> tuple[Table, ...]:
    """By SQLite's own account of each table, read over a connection of its own: users' SQL may not use PRAGMA."""
    query = (
        "SELECT type, name FROM sqlite_master WHERE type IN ('table', 'view') AND sql IS NOT NULL "
        "AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY rowid"
    )
    with closing(sqlite3.connect(uri, uri=True)) as connection:
        named = connection.execute(query).fetchall()
        tables = [
            Table(
                name=name,
                kind=kind,
                columns=tuple(
                    Column(name=column, type=declared)
                    for _, column, declared, *_ in connection.execute(f"PRAGMA table_info({_quoted(name)})")
                ),
                definition=f"{definition};",
                references=tuple(
                    dict.fromkeys(row[2] for row in connection.execute(f"PRAGMA foreign_key_list({_quoted(name)})"))
                ),
            )
            for (kind, name), definition in zip(named, definitions, strict=True)
        ]
    return _with_views(tables)


def duckdb_tables(run: Callable[[str], Execution], name: str) -> tuple[Table, ...]:
    """By DuckDB's catalogue."""

    def rows(sql: str) -> tuple[Row, ...]:
        result = run(sql)
        if isinstance(result, Failure):
            raise DatabaseError(f"database {name}: {result.message}")
        return result.rows

    columns: dict[str, list[Column]] = {}
    for table, column, declared, comment in rows(_DUCKDB_COLUMNS):
        columns.setdefault(str(table), []).append(Column(name=str(column), type=str(declared), comment=str(comment)))
    references: dict[str, list[str]] = {}
    for table, other in rows(_DUCKDB_REFERENCES):
        references.setdefault(str(table), []).append(str(other))
    found = sorted(
        ((str(kind), str(table), str(sql).strip(), str(comment)) for kind, table, sql, comment in rows(_DUCKDB_TABLES)),
        key=lambda row: (_ORDER.index(row[0]), row[1]),
    )
    return _with_views(
        Table(
            name=table,
            kind=kind,
            columns=tuple(columns.get(table, ())) if kind != "type" else (),
            definition=sql,
            comment=comment,
            references=tuple(references.get(table, ())),
        )
        for kind, table, sql, comment in found
    )


def server_tables(
    inspector: Any,
    types: Iterable[str],
    *,
    define: Callable[[Any, Any], str],
    define_view: Callable[[Any, str], str],
) -> tuple[Table, ...]:
    """By SQLAlchemy's reflection; `define` and `define_view` give the DDL that `schema()` shows."""
    import sqlalchemy as sa

    metadata = sa.MetaData()
    metadata.reflect(inspector.engine)
    made = [Table(name=text.split()[2], kind="type", definition=text) for text in types]
    for name in sorted(metadata.tables):
        table = metadata.tables[name]
        made.append(
            Table(
                name=name,
                columns=tuple(
                    Column(name=column.name, type=str(column.type), comment=column.comment or "")
                    for column in table.columns
                ),
                comment=table.comment or "",
                references=tuple(sorted({key.column.table.name for key in table.foreign_keys})),
                definition=define(table, inspector.engine),
            )
        )
    made += [_server_view(inspector, name, define_view) for name in sorted(inspector.get_view_names())]
    return _with_views(made)


def _server_view(inspector: Any, name: str, define: Callable[[Any, str], str]) -> Table:
    comment = str(inspector.get_table_comment(name)["text"] or "")
    return Table(
        name=name,
        kind="view",
        columns=tuple(
            Column(name=column["name"], type=str(column["type"]), comment=column.get("comment") or "")
            for column in inspector.get_columns(name)
        ),
        comment="" if comment == "VIEW" else comment,  # what MySQL says of a view that has none
        definition=define(inspector, name),
    )


def _with_views(tables: Iterable[Table]) -> tuple[Table, ...]:
    """The tables, each view with the tables its definition names."""
    described = list(tables)
    names = {table.name.lower(): table.name for table in described if table.kind != "type"}
    for place, table in enumerate(described):
        if table.kind == "view":
            words = dict.fromkeys(word.lower() for word in _WORD.findall(table.definition))
            named = tuple(names[word] for word in words if word in names and names[word] != table.name)
            described[place] = replace(table, references=named)
    return tuple(described)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
