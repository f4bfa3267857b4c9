"""Functions by what they are: lists are the engines' own, calls are found wherever they stand, owners allow more."""

from pathlib import Path
from typing import Any

import pytest

import function_lists
from engines import Server, driver
from sqlcrystal.databases import guard, open_database
from sqlcrystal.databases.engines import words_of
from sqlcrystal.databases.functions import Functions
from sqlcrystal.databases.parsing import tokenize
from sqlcrystal.errors import ConfigError
from sqlcrystal.types import Failure, FailureKind, Rows

CALLS = [
    "SELECT {f}",
    "SELECT 1 WHERE {f} IS NULL",
    "SELECT * FROM team ORDER BY {f}",
    "SELECT count(*) FILTER (WHERE {f} IS NULL) FROM team",
    "SELECT sum(id) OVER (ORDER BY {f}) FROM team",
    "WITH x AS (SELECT {f} AS y) SELECT y FROM x",
    "SELECT CASE WHEN 1 = 1 THEN {f} END",
    "SELECT coalesce(NULL, {f})",
    "SELECT (SELECT {f})",
    "SELECT 1 LIMIT (SELECT 1 WHERE {f} IS NULL)",
]


@pytest.mark.parametrize("shape", CALLS)
@pytest.mark.parametrize(
    ("dialect", "call"),
    [
        ("postgres", "pg_sleep(1)"),
        ("postgres", "pg_catalog.pg_sleep(1)"),
        ("postgres", "league.pg_catalog.pg_sleep(1)"),
        ("postgres", '"pg_sleep"(1)'),
        ("postgres", "PG_SLEEP (1)"),
        ("postgres", "(1).pg_sleep"),
        ("postgres", "team.pg_sleep"),
        ("postgres", "query_to_xml('select 1', true, true, '')"),
        ("postgres", "table_to_xml('pg_authid', true, true, '')"),
        ("postgres", "crosstab('select 1')"),
        ("duckdb", "getenv('HOME')"),
        ("duckdb", "'HOME'.getenv()"),
        ("duckdb", "system.main.getenv('HOME')"),
        ("duckdb", "sleep_ms(1000)"),
        ("mysql", "SLEEP(1)"),
        ("mysql", "slèep(1)"),
        ("mysql", "`sleep`(1)"),
        ("sqlite", "load_extension('x')"),
        ("sqlite", "[readfile]('x')"),
    ],
)
def test_a_call_is_found_wherever_it_stands(dialect: str, call: str, shape: str) -> None:
    assert guard.check(shape.format(f=call), dialect) is not None


@pytest.mark.parametrize("dialect", ["postgres", "duckdb", "mysql", "sqlite"])
def test_every_denied_name_is_a_name_to_the_tokenizer(dialect: str) -> None:
    lists = words_of(dialect)
    for name in lists.get("never", lists.get("denied", frozenset())):
        assert len(tokenize(name, dialect)) == 1, name
        assert guard.check(f"SELECT {name}(1)", dialect) is not None, name


def test_what_postgres_says_is_volatile_is_called_pure_nowhere(postgres_server: Server) -> None:
    import psycopg

    with psycopg.connect(postgres_server.owner) as connection:
        pure, impure = function_lists.postgres(connection)
    assert words_of("postgres")["pure"] <= pure
    assert impure & words_of("postgres")["pure"] == set()


def test_what_duckdb_says_has_side_effects_is_called_pure_nowhere() -> None:
    duckdb = pytest.importorskip("duckdb")
    _, impure = function_lists.duckdb(duckdb.connect())
    assert impure & words_of("duckdb")["pure"] == set()


@pytest.fixture
def with_functions(postgres_server: Server) -> Any:
    """A database whose owner made a pure function and one that may do anything."""
    import psycopg

    with psycopg.connect(postgres_server.owner, autocommit=True) as connection:
        connection.execute("CREATE FUNCTION twice(n int) RETURNS int IMMUTABLE LANGUAGE sql AS 'SELECT 2 * n'")
        connection.execute("CREATE FUNCTION odd_job(n int) RETURNS int LANGUAGE sql AS 'SELECT n'")
        yield postgres_server.reader
        connection.execute("DROP FUNCTION twice(int); DROP FUNCTION odd_job(int)")


def test_the_live_catalogue_decides_on_functions_of_the_database(with_functions: str) -> None:
    database = open_database(with_functions)
    pure = database.execute("SELECT twice(21)")
    assert isinstance(pure, Rows)
    assert pure.rows == ((42,),)
    for sql in ("SELECT odd_job(1)", "SELECT (1).odd_job", "SELECT team.odd_job FROM team"):
        refused = database.execute(sql)
        assert isinstance(refused, Failure)
        assert refused.kind is FailureKind.REFUSED
    unknown = database.execute("SELECT ifnull(1, 2)")
    assert isinstance(unknown, Failure)
    assert unknown.kind is FailureKind.MISSING
    database.close()


def test_the_owner_allows_functions_by_name(with_functions: str) -> None:
    for database in (
        open_database(with_functions, functions=["odd_job"]),
        open_database(f"{with_functions}#functions=odd_job"),
    ):
        result = database.execute("SELECT odd_job(7)")
        assert isinstance(result, Rows)
        assert result.rows == ((7,),)
        database.close()


def test_what_runs_sql_from_text_can_never_be_allowed() -> None:
    with pytest.raises(ConfigError, match="crosstab can never be allowed"):
        Functions("postgres", allowed=["crosstab"])


@pytest.mark.parametrize(
    ("dialect", "sql"),
    [
        ("postgres", "SELECT rolpassword FROM pg_authid"),
        ("postgres", "TABLE pg_shadow"),
        ("postgres", 'SELECT * FROM pg_catalog."pg_authid"'),
        ("postgres", "SELECT histogram_bounds FROM pg_stats WHERE tablename = 'pg_authid'"),
        ("postgres", "SELECT chunk_data FROM pg_toast.pg_toast_2619"),
        ("mysql", "SELECT * FROM mysql.user"),
        ("mysql", "SELECT * FROM `mysql`.`global_priv`"),
        ("duckdb", "SELECT * FROM duckdb_secrets()"),
        ("duckdb", "SELECT * FROM duckdb_logs"),
        ("duckdb", "SELECT setting FROM pg_catalog.pg_settings"),
    ],
)
def test_catalogues_with_secrets_are_not_read(dialect: str, sql: str) -> None:
    refusal = guard.check(sql, dialect)
    assert refusal is not None
    assert refusal.kind is FailureKind.REFUSED


@pytest.mark.parametrize("sql", ["FROM (SHOW databases)", "FROM (DESC team)", "SELECT * FROM (SUMMARIZE team)"])
def test_what_describes_duckdb_stands_for_a_table_where_a_person_asks_and_not_a_model(sql: str) -> None:
    assert isinstance(guard.read(sql, "duckdb"), Failure)
    assert isinstance(guard.read(sql, "duckdb", guard.DatabaseRules(inspect=True)), guard.Statement)


@pytest.mark.parametrize(("dialect", "call"), [("postgres", "pg_sleep(1)"), ("mysql", "SLEEP(1)")])
def test_a_default_that_calls_is_no_clause_to_be_left_out(dialect: str, call: str) -> None:
    sql = f"SELECT * FROM JSON_TABLE('[1]', '$[*]' COLUMNS (a INT PATH '$' DEFAULT {call} ON EMPTY)) t"
    assert guard.check(sql, dialect) is not None


@pytest.mark.parametrize("sql", ["FROM (SUMMARIZE pg_settings)", "FROM (SUMMARIZE '/etc/passwd')"])
def test_a_person_describes_no_secret_and_no_file_either(sql: str) -> None:
    assert isinstance(guard.read(sql, "duckdb", guard.DatabaseRules(inspect=True)), Failure)


def test_an_overload_that_may_do_anything_takes_a_harmless_name_out_of_use(postgres_server: Server) -> None:
    owner = driver("postgres", postgres_server)
    owner.execute("CREATE FUNCTION public.log(message text) RETURNS text LANGUAGE sql VOLATILE AS 'SELECT message'")
    try:
        database = open_database(postgres_server.reader)
        refused = [database.execute(sql) for sql in ("SELECT log('x'::text)", "SELECT public.log('x')")]
        unharmed = database.execute("SELECT ln(10), random() IS NOT NULL")
        database.close()
        allowing = open_database(postgres_server.reader, functions=["log"])
        allowed = allowing.execute("SELECT log('x'::text)")
        allowing.close()
    finally:
        owner.execute("DROP FUNCTION public.log(text)")
        owner.close()
    assert [getattr(result, "kind", "rows") for result in refused] == [FailureKind.REFUSED] * 2
    assert isinstance(unharmed, Rows)
    assert isinstance(allowed, Rows)


def test_a_macro_of_a_duckdb_file_does_not_pass_under_a_harmless_name(tmp_path: Path) -> None:
    import duckdb

    with duckdb.connect(str(tmp_path / "file.duckdb")) as connection:
        connection.execute("CREATE MACRO upper(x) AS current_setting(x)")
    database = open_database(f"duckdb:///{tmp_path / 'file.duckdb'}")
    refused, unharmed = database.execute("SELECT upper('memory_limit')"), database.execute("SELECT lower('A')")
    database.close()
    assert isinstance(refused, Failure)
    assert refused.kind is FailureKind.REFUSED
    assert isinstance(unharmed, Rows)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT SFORMAT('{:2000000000}', 1)",
        "SELECT SFORMAT('{:>{}}', 'x', 100000000)",
        "SELECT SFORMAT(CONCAT('{:9', '000000000}'), 1)",
        "SELECT ENCRYPT('x', '$6$rounds=999999999$abcdefgh')",
    ],
)
def test_what_ends_a_mariadb_server_or_cannot_be_ended_is_refused(sql: str) -> None:
    refusal = guard.check(sql, "mysql")
    assert refusal is not None
    assert refusal.kind is FailureKind.REFUSED


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM neighbour.secret",
        "SELECT * FROM `Neighbour` . `secret`",
        "SELECT neighbour.leak(1)",
        "SELECT (SELECT max(x) FROM neighbour.secret) FROM team",
        "DESCRIBE neighbour.secret",
        "SELECT * FROM performance_schema.threads",
        "SELECT * FROM sys.processlist",
    ],
)
def test_a_statement_stays_in_the_schema_that_was_opened(sql: str) -> None:
    found = guard.read(sql, "mysql", guard.DatabaseRules(inspect=True, schema="league"))
    assert isinstance(found, Failure)
    assert found.kind is FailureKind.REFUSED


@pytest.mark.parametrize(
    ("dialect", "sql"),
    [
        ("postgres", "SELECT @ -3, U&'\\0041'"),
        ("postgres", "SELECT E'a\\nb', x'41'"),
        ("mysql", "SELECT id FROM hist FOR SYSTEM_TIME AS OF NOW()"),
        ("mysql", "SELECT id, v FROM hist FOR SYSTEM_TIME ALL ORDER BY id"),
        ("mysql", "SELECT {d '2024-01-01'}, {ts '2024-01-01 10:00:00'}"),
        ("duckdb", "PIVOT player ON team_id USING sum(goals) GROUP BY name ORDER BY name LIMIT 3"),
        ("duckdb", "SELECT 5!, @(-3), E'a\\nb', x'41'"),
    ],
)
def test_what_was_wrongly_refused_once_is_let_through(dialect: str, sql: str) -> None:
    assert guard.check(sql, dialect) is None


def test_a_statement_may_name_its_own_schema_and_the_catalogue() -> None:
    for sql in ("SELECT * FROM League.team", "SELECT table_name FROM information_schema.tables"):
        assert isinstance(guard.read(sql, "mysql", guard.DatabaseRules(schema="league")), guard.Statement)


def test_another_schema_of_the_server_is_not_read_though_the_account_may(mysql_server: Server) -> None:
    owner = driver("mysql", mysql_server)
    with owner.cursor() as cursor:
        cursor.execute("CREATE DATABASE neighbour")
        cursor.execute("CREATE TABLE neighbour.secret AS SELECT 42 AS x")
        cursor.execute("GRANT SELECT ON neighbour.* TO sqlcrystal_reader@'%'")
    database = open_database(mysql_server.reader)
    result = database.execute("SELECT * FROM neighbour.secret")
    database.close()
    with owner.cursor() as cursor:
        cursor.execute("DROP DATABASE neighbour")
        cursor.execute("REVOKE SELECT ON neighbour.* FROM sqlcrystal_reader@'%'")
    owner.close()
    assert isinstance(result, Failure)
    assert result.kind is FailureKind.REFUSED
