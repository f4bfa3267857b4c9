"""The guard's reading is the engine's: of random texts the engine sees the values the guard saw, or none at all."""

import re
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlglot import exp

from engines import driver
from fuzzing import league as made_league
from sqlcrystal.databases import guard, open_database
from sqlcrystal.databases.engines import engine_of
from sqlcrystal.databases.guard import Statement
from sqlcrystal.databases.parsing import parse
from sqlcrystal.protocols import Database
from sqlcrystal.types import Failure, FailureKind, Rows

# What starts, ends, escapes or hides a string, a name or a remark somewhere.
WORDS = """
' '' " "" ` [ ] -- /* */ /*/ # \\ \\' \\" $$ $a$ ; , ( ) {# #} {% %} e' E' N' x' b' U&' U&" _utf8' a b 1 2 . :: -
"""
PIECES = [*WORDS.split(), *" \n\r\t\u00a0\u3000\x0bé", " ", "''", "'x'", "'y'", " , "]
TEXTS = st.lists(st.sampled_from(PIECES), max_size=10).map("".join)
SETTINGS = settings(
    max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], derandomize=True
)


def literals(sql: str, dialect: str) -> list[str] | None:
    """The values of a SELECT of plain string literals, as the guard's tree has them; None for any other statement."""
    tree = parse(sql, dialect)
    values = []
    for column in tree.expressions:
        value = column.this if isinstance(column, exp.Alias) else column
        if not isinstance(value, exp.Literal) or not value.is_string:
            return None
        values.append(value.this)
    return values


@SETTINGS
@given(before=TEXTS, between=TEXTS, after=TEXTS)
def test_the_engine_sees_the_strings_that_the_guard_saw(
    league: Database, before: str, between: str, after: str
) -> None:
    sql = f"SELECT 'k{before}' {between}, 'canary' {after}"
    statement = guard.read(sql, league.dialect)
    if isinstance(statement, Failure):
        return
    seen = literals(statement.text, league.dialect)
    result = league.execute(sql)
    if seen is None or isinstance(result, Failure):
        return
    [row] = result.rows
    assert [str(cell) for cell in row] == seen


@SETTINGS
@given(text=st.lists(st.sampled_from([*PIECES, "SELECT ", "FROM ", "team", "id", "name"]), max_size=14).map("".join))
def test_what_is_rebuilt_is_read_again_as_the_same(engine: str, text: str) -> None:
    statement = guard.read(f"SELECT {text}", engine)
    if isinstance(statement, Statement):
        again = guard.read(statement.text, engine)
        assert isinstance(again, Statement)
        assert again.text == statement.text
        if engine_of(engine).keeps_remarks:
            return
        assert not re.search(r"--|/\*|\{#", re.sub(r"'(?:[^'\\]|\\.|'')*'|\"[^\"]*\"|`[^`]*`", "", statement.text))


@pytest.mark.parametrize(
    ("dialect", "sql", "text"),
    [
        ("sqlite", "SELECT 1 -- remark", "SELECT 1"),
        ("sqlite", "SELECT a/**/b FROM t;", "SELECT a/**/b FROM t"),
        ("postgres", "SELECT a/**/b FROM t;", "SELECT a b FROM t"),
        ("sqlite", "SELECT a=-1,[x y] FROM t", "SELECT a=-1,[x y] FROM t"),
        ("postgres", "SELECT $$it's$$", "SELECT 'it''s'"),
        ("postgres", "SELECT 1 #--'\n+ 2", None),
        ("postgres", "SELECT 'a' --x\n'b'", "SELECT 'a'\n'b'"),
        ("mysql", "SELECT 5--1", "SELECT 5- -1"),
        ("mysql", "SELECT 1 -- x\n, 2", "SELECT 1 -- x\n, 2"),
        ("mysql", "SELECT 1 /*+ x */ + 2", "SELECT 1 + 2"),
        ("mysql", "SELECT /*+ x */ 1", None),
        ("mysql", "SELECT 1 /*!50000 + 1 */", None),
        ("duckdb", "SELECT 1 -- x\n, 2", "SELECT 1\n, 2"),
        ("postgres", "SELECT a !~ b, c!~~*d, e <<= f", "SELECT a !~ b, c!~~*d, e <<= f"),
        ("postgres", "SELECT a ! ~ b", "SELECT a ! ~ b"),
        ("postgres", "SELECT a !~/* x */b", "SELECT a !~ b"),
        ("postgres", "SELECT box '((0,0),(1,1))'", "SELECT box '((0,0),(1,1))'"),
        ("duckdb", "SELECT a !~~ b", "SELECT a !~~ b"),
        ("duckdb", "SELECT {'a':1}", "SELECT {'a' : 1}"),
    ],
)
def test_the_engine_gets_the_tokens_and_remarks_only_where_they_are_part_of_labels(
    dialect: str, sql: str, text: str | None
) -> None:
    statement = guard.read(sql, dialect)
    assert (statement.text if isinstance(statement, Statement) else None) == text


@pytest.mark.parametrize("space", ["\u00a0", "\u3000", "\u2003", "\u0085", "\u1680", "\u2028", "\x0b", "\x0c", "\x1f"])
@pytest.mark.parametrize("dialect", ["sqlite", "postgres", "mysql", "duckdb"])
def test_white_space_that_not_every_engine_knows_is_refused(dialect: str, space: str) -> None:
    for sql in (f"SELECT{space}1", f"SELECT 1 --{space}a\n, 2" if dialect == "mysql" else f"SELECT 1{space}, 2"):
        refusal = guard.check(sql, dialect)
        assert refusal is not None
        assert refusal.kind in {FailureKind.REFUSED, FailureKind.SYNTAX}


@pytest.mark.parametrize("mode", ["NO_BACKSLASH_ESCAPES", "ANSI_QUOTES", "ORACLE", "ANSI,NO_BACKSLASH_ESCAPES"])
def test_a_mariadb_server_with_other_modes_still_reads_as_the_guard_does(mysql_server: Any, mode: str) -> None:
    import pymysql
    import sqlalchemy as sa

    owner = sa.make_url(mysql_server.owner)
    connection = pymysql.connect(host=owner.host, port=int(owner.port or 0), user="root", autocommit=True)
    with connection.cursor() as cursor:
        cursor.execute("SELECT @@global.sql_mode")
        before = cursor.fetchone()[0]  # type: ignore[index]
        cursor.execute("SET GLOBAL sql_mode = %s", (mode,))
        try:
            database = open_database(mysql_server.reader)
            result = database.execute("""SELECT 'a\\'b', "c" """)
            assert isinstance(result, Rows)
            assert result.rows == (("a'b", "c"),)
            database.close()
        finally:
            cursor.execute("SET GLOBAL sql_mode = %s", (before,))
    connection.close()


def test_a_postgres_role_with_old_strings_still_reads_as_the_guard_does(postgres_server: Any) -> None:
    import psycopg

    with psycopg.connect(postgres_server.owner, autocommit=True) as connection:
        connection.execute("ALTER ROLE sqlcrystal_reader SET standard_conforming_strings = off")
        connection.execute("ALTER ROLE sqlcrystal_reader SET client_encoding = 'LATIN1'")
        try:
            database = open_database(postgres_server.reader)
            result = database.execute(r"SELECT 'a\' || 'é'")
            assert isinstance(result, Rows)
            assert result.rows == (("a\\é",),)
            database.close()
        finally:
            connection.execute("ALTER ROLE sqlcrystal_reader RESET ALL")


@pytest.mark.shared_data
def test_the_text_of_every_spider_and_bird_gold_stays_as_it_is(shared_data: Path) -> None:
    import json

    golds = [case["query"] for case in json.loads((shared_data / "spider" / "dev.json").read_text())]
    golds += [case["SQL"] for case in json.loads((shared_data / "bird" / "dev.json").read_text())]
    for sql in golds:
        statement = guard.read(sql, "sqlite")
        assert isinstance(statement, Statement)
        assert statement.text == sql.rstrip("; \t\n")


@pytest.mark.parametrize("engine_name", ["sqlite", "mysql"])
def test_a_column_without_an_alias_is_named_as_the_bare_engine_names_it(
    engine_name: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    sqls = ["SELECT -- total\n sum(id * 2) /* gross */ FROM team", "SELECT 1 /* x */ + 2, count( * ) FROM team"]
    making = (
        made_league("sqlite", tmp_path)
        if engine_name == "sqlite"
        else nullcontext(request.getfixturevalue(f"{engine_name}_server"))
    )
    with making as server:
        bare = driver(engine_name, server)
        named = []
        for sql in sqls:
            cursor = bare.cursor()
            cursor.execute(sql)
            named.append(tuple(column[0] for column in cursor.description))
        bare.close()
        database = open_database(server.reader)
        results = [database.execute(sql) for sql in sqls]
        database.close()
    assert [result.columns if isinstance(result, Rows) else result for result in results] == named
