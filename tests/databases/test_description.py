"""Every engine tells its tables one by one: columns, foreign keys, views, and comments where it keeps them."""

import sqlite3
from collections.abc import Sequence
from pathlib import Path

import pytest

import engines
from sqlcrystal.databases import open_database
from sqlcrystal.protocols import Database, Described
from sqlcrystal.types import Table


def tables(database: Database) -> Sequence[Table]:
    assert isinstance(database, Described)
    return database.tables()


def test_the_definitions_of_the_tables_are_the_schema(league: Database) -> None:
    assert "\n\n".join(table.definition for table in tables(league)) == league.schema()


def test_tables_and_views_are_told_with_their_columns_and_what_they_refer_to(league: Database) -> None:
    told = {table.name: table for table in tables(league)}
    assert set(told) == {"team", "player", "scorer"}
    assert [column.name for column in told["team"].columns] == ["id", "name"]
    assert [column.name for column in told["scorer"].columns] == ["name", "goals"]
    assert (told["player"].kind, told["player"].references) == ("table", ("team",))
    assert (told["scorer"].kind, told["scorer"].references) == ("view", ("player",))


def comments(url: str) -> list[str]:
    database = open_database(url, allow_privileged=True)
    team = next(table for table in tables(database) if table.name == "team")
    database.close()
    return [team.comment, *(column.comment for column in team.columns)]


def test_postgres_tells_what_its_owner_commented(postgres_server: engines.Server) -> None:
    import psycopg

    with psycopg.connect(postgres_server.owner, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA told")
        connection.execute("CREATE TABLE told.team (id int, name text)")
        connection.execute("COMMENT ON TABLE told.team IS 'the clubs'")
        connection.execute("COMMENT ON COLUMN told.team.name IS 'as registered'")
    url = postgres_server.owner + "&options=-csearch_path%3Dtold"
    assert comments(url) == ["the clubs", "", "as registered"]


def test_mysql_tells_what_its_owner_commented(mysql_server: engines.Server) -> None:
    import pymysql

    address = mysql_server.owner.partition("@")[2]
    host, _, port = address.partition("/")[0].partition(":")
    connection = pymysql.connect(host=host, port=int(port), user="root", autocommit=True)
    with connection.cursor() as cursor:
        cursor.execute("CREATE DATABASE told")
        cursor.execute("CREATE TABLE told.team (id int, name text COMMENT 'as registered') COMMENT 'the clubs'")
    connection.close()
    assert comments(f"mysql://root@{host}:{port}/told") == ["the clubs", "", "as registered"]


def test_duckdb_tells_what_its_owner_commented(tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    connection = duckdb.connect(str(tmp_path / "told.duckdb"))
    connection.execute("CREATE TABLE team (id int, name text)")
    connection.execute("COMMENT ON TABLE team IS 'the clubs'")
    connection.execute("COMMENT ON COLUMN team.name IS 'as registered'")
    connection.close()
    assert comments(f"duckdb:///{tmp_path}/told.duckdb") == ["the clubs", "", "as registered"]


def test_sqlite_keeps_comments_in_the_definition(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "told.sqlite") as connection:
        connection.execute('CREATE TABLE "the team" (id INT, -- as registered\n "full name" TEXT)')
    connection.close()
    database = open_database(str(tmp_path / "told.sqlite"))
    (table,) = tables(database)
    database.close()
    assert [column.name for column in table.columns] == ["id", "full name"]
    assert "-- as registered" in table.definition
