"""Nothing outlives its limits: time, memory and rows, and no innocent statement pays for a bomb beside it."""

import re
import sqlite3
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuzzing import is_late
from memory import forget_the_peak, peak_megabytes
from sqlcrystal.databases import open_database
from sqlcrystal.databases.duckdb import MAX_CHILDREN, DuckdbDatabase
from sqlcrystal.databases.results import MAX_MESSAGE
from sqlcrystal.databases.sqlite import MAX_FAST_CHARACTERS, MAX_FAST_WEIGHT, SqliteDatabase, weigh
from sqlcrystal.types import Failure, FailureKind, Rows

LIMIT = 1.0
LATE = LIMIT + 1.0
ENDLESS = {
    "sqlite": [
        "SELECT instr(hex(zeroblob(400000)), hex(zeroblob(200000)) || '1')",
        "SELECT trim(hex(zeroblob(400000)), replace(hex(zeroblob(200000)), '0', 'a') || '0')",
        "SELECT hex(zeroblob(4000000)) LIKE '%' || substr(hex(zeroblob(5000)), 1, 9000) || '1'",
        "SELECT printf('%.*c', 2147483647, 'x')",
        "SELECT " + ", ".join(f"sum(id + {n}) OVER (ORDER BY id + {n})" for n in range(1000)) + " FROM team",
    ],
    "duckdb": ["SELECT levenshtein(repeat('a', 100000), repeat('b', 100000))"],
    "postgres": ["SELECT count(*) FROM generate_series(1, 1000000000)"],
    "mysql": ["SELECT count(*) FROM " + ", ".join(f"information_schema.columns c{n}" for n in range(4))],
}


@pytest.mark.parametrize(("engine_name", "sql"), [(engine, sql) for engine, some in ENDLESS.items() for sql in some])
def test_a_statement_ends_at_its_limit(engine_name: str, sql: str, request: pytest.FixtureRequest) -> None:
    database = open_database(request.getfixturevalue(f"{engine_name}_url"))
    result = database.execute(sql, timeout=LIMIT)
    late = result.seconds > LATE and is_late(database, sql, limit=LIMIT, late=LATE)
    after = database.execute("SELECT 1")
    database.close()
    assert isinstance(result, Failure)
    assert result.kind is FailureKind.TIMEOUT
    assert not late
    assert isinstance(after, Rows)


def test_an_innocent_statement_beside_a_bomb_gets_its_answer(sqlite_url: str) -> None:
    database = open_database(sqlite_url)
    blob = "SELECT randomblob(1000000)"
    bomb = f"WITH RECURSIVE n(s) AS ({blob} UNION {blob} FROM n) SELECT count(*) FROM n"
    innocent = "SELECT count(*), group_concat(hex(zeroblob(20000))) FROM team"
    with ThreadPoolExecutor(4) as pool:
        bombs = [pool.submit(database.execute, bomb, timeout=2.0) for _ in range(2)]
        answers = [pool.submit(database.execute, innocent) for _ in range(40)]
        assert all(isinstance(answer.result(), Rows) for answer in answers)
        assert all(isinstance(bomb.result(), Failure) for bomb in bombs)
    database.close()


def test_a_thousand_large_values_are_weighed_as_they_come(sqlite_url: str) -> None:
    script = (
        "import sys; from memory import peak_megabytes; from sqlcrystal.databases import open_database\n"
        "columns = ', '.join(['zeroblob(16000000)'] * 20)\n"
        "result = open_database(sys.argv[1]).execute(f'SELECT {columns} FROM team a, team b, team c', timeout=20)\n"
        "print(result.kind, peak_megabytes())"
    )
    command = [sys.executable, "-c", script, sqlite_url]
    done = subprocess.run(command, cwd=Path(__file__).parents[1], capture_output=True, text=True, check=True)
    kind, megabytes = done.stdout.rsplit(maxsplit=1)
    assert kind == FailureKind.TOO_LARGE
    assert int(megabytes) < 300


def test_compressed_text_of_a_postgres_table_is_weighed_as_it_will_be(postgres_server: object) -> None:
    import psycopg

    with psycopg.connect(postgres_server.owner, autocommit=True) as connection:  # type: ignore[attr-defined]
        connection.execute("CREATE TABLE long_text AS SELECT repeat('x', 20000000) AS t FROM generate_series(1, 40)")
        before = peak_megabytes()
        database = open_database(postgres_server.reader)  # type: ignore[attr-defined]
        result = database.execute("SELECT t FROM long_text", timeout=30)
        database.close()
        connection.execute("DROP TABLE long_text")
    assert isinstance(result, Failure)
    assert result.kind is FailureKind.TOO_LARGE
    assert peak_megabytes() - before < 300


def test_a_statement_that_the_server_goes_on_running_is_named(mysql_url: str) -> None:
    database = open_database(mysql_url)
    result = database.execute("SELECT REPEAT('a', 1000000) LIKE CONCAT('%', REPEAT('a', 1000), 'b')", timeout=0.5)
    database.close()
    assert isinstance(result, Failure)
    assert result.kind is FailureKind.TIMEOUT
    assert re.search(r"the server (?:still runs|may still run) it \(connection \d+\)", result.message)


LONG_MESSAGES = {
    "sqlite": "SELECT json_extract('{}', 'x' || hex(zeroblob(20000)))",
    "duckdb": "SELECT error(repeat('x', 1000000))",
    "postgres": "SELECT repeat('x', 1000000)::date",
}


@pytest.mark.parametrize("engine_name", LONG_MESSAGES)
def test_what_an_engine_says_of_a_failure_is_cut(engine_name: str, request: pytest.FixtureRequest) -> None:
    database = open_database(request.getfixturevalue(f"{engine_name}_url"))
    result = database.execute(LONG_MESSAGES[engine_name], timeout=30)
    database.close()
    assert isinstance(result, Failure)
    assert result.kind is FailureKind.ENGINE
    assert len(result.message) <= MAX_MESSAGE


def in_a_small_process(url: str, sql: str) -> tuple[str, float, int]:
    """What comes of a statement in a process that may take 4 GB: its kind, its seconds, and by how much that grew."""
    script = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_AS, (4 * 2**30, 4 * 2**30))\n"
        "from memory import peak_megabytes; from sqlcrystal.databases import open_database\n"
        "database = open_database(sys.argv[1]); database.execute('SELECT 1'); before = peak_megabytes()\n"
        f"result = database.execute(sys.stdin.read(), timeout={LIMIT})\n"
        "again = database.execute('SELECT 1')\n"
        "print(getattr(result, 'kind', 'rows'), result.seconds, peak_megabytes() - before, sep='|')"
    )
    command = [sys.executable, "-c", script, url]
    done = subprocess.run(
        command, cwd=Path(__file__).parents[1], capture_output=True, text=True, check=False, input=sql, timeout=120
    )
    assert done.returncode == 0, done.stderr[-1000:]
    kind, seconds, grown = done.stdout.strip().split("|")
    return kind, float(seconds), int(grown)


def nested(step: str, depth: int) -> str:
    """A query inside a query, each with the same step over the column x of the one below."""
    sql = "SELECT id AS x FROM team"
    for _ in range(depth):
        sql = f"SELECT {step} AS x FROM ({sql})"
    return sql


MULTIPLYING = {
    "expressions": nested(f"max({','.join('x' * 15)})", 7),
    "sums": nested("(" + " + ".join("x" * 14) + ")", 8),
    "joins": "WITH s0 AS (SELECT 1 x), "
    + ", ".join(f"s{n + 1} AS (SELECT p.x FROM s{n} p, s{n} q)" for n in range(22))
    + " SELECT * FROM s22",
    "members": "WITH a0 AS (SELECT 1 AS x), "
    + ", ".join(f"a{n + 1} AS (SELECT 1 AS x WHERE 1 IN a{n} AND 2 IN a{n})" for n in range(20))
    + " SELECT * FROM a20",
    "places": nested(f"max({','.join('x' * 20)})", 3) + " ORDER BY " + ",".join(["1"] * 1500),
    "unions": "SELECT * FROM "
    + ", ".join(f"(SELECT id FROM team UNION ALL SELECT id FROM team) a{n}" for n in range(30)),
    "quoted": nested("(" + "+".join(['"x"'] * 14) + ")", 8).replace("SELECT", "select/**/"),
}


@pytest.mark.parametrize("name", MULTIPLYING)
def test_a_statement_that_multiplies_is_prepared_by_a_process_that_can_be_ended(sqlite_url: str, name: str) -> None:
    kind, _, grown = in_a_small_process(sqlite_url, MULTIPLYING[name])
    assert kind in {FailureKind.TIMEOUT, FailureKind.TOO_LARGE}
    assert grown < 200


STRANGERS = {
    "views": [
        "CREATE TABLE team (id)",
        "CREATE VIEW v0 AS SELECT id AS x FROM team",
        *(f"CREATE VIEW v{n + 1} AS SELECT max({','.join('x' * 15)}) AS x FROM v{n}" for n in range(7)),
        "CREATE VIEW last AS SELECT * FROM v7",
    ],
    "a view": ["CREATE TABLE team (id)", f"CREATE VIEW last AS {nested(f'max({chr(44).join(chr(120) * 15)})', 7)}"],
    "copies of views": [
        "CREATE VIEW v0 AS SELECT 1 AS x",
        *(f"CREATE VIEW v{n + 1} AS SELECT p.x FROM v{n} p, v{n} q" for n in range(24)),
        "CREATE VIEW last AS SELECT * FROM v24",
    ],
    "generated columns": [
        "CREATE TABLE last (c0, "
        + ", ".join(f"c{n + 1} AS ({' + '.join([f'c{n}'] * 15)})" for n in range(7))
        + ", x AS (c7))"
    ],
}


@pytest.mark.parametrize("name", STRANGERS)
def test_a_file_from_a_stranger_is_described_and_read_within_the_same_limits(name: str, tmp_path: Path) -> None:
    file = tmp_path / "strange.sqlite"
    with closing(sqlite3.connect(file)) as connection:
        for statement in STRANGERS[name]:
            connection.execute(statement)
        connection.commit()
    forget_the_peak()
    before = peak_megabytes()
    database = open_database(str(file))
    assert isinstance(database, SqliteDatabase)
    described = database.tables()
    result = database.execute('SELECT x FROM "last"', timeout=LIMIT)
    after = database.execute("SELECT 1")
    database.close()
    assert "last" in {table.name for table in described}
    assert isinstance(result, Failure)
    assert isinstance(after, Rows)
    assert peak_megabytes() - before < 200


@given(st.integers(1, 5), st.integers(1, 6), st.booleans())
def test_the_weight_of_a_statement_is_no_less_than_the_copies_sqlite_makes(
    depth: int, width: int, as_tables: bool
) -> None:
    sql = "SELECT 1 AS x"
    for _ in range(depth):
        sql = f"SELECT {'+'.join('x' * width)} AS x FROM ({sql})"
    if as_tables:
        steps = ", ".join(f"t{n + 1} AS (SELECT {'+'.join('x' * width)} AS x FROM t{n})" for n in range(depth))
        sql = f"WITH t0 AS (SELECT 1 AS x), {steps} SELECT x FROM t{depth}"
    assert weigh(sql, lambda _: None).size >= width**depth


def test_one_query_that_names_its_columns_at_many_places_is_heavy() -> None:
    sql = f"SELECT id{'+id' * 800} FROM team ORDER BY {','.join(['1'] * 700)}"
    assert len(sql) < MAX_FAST_CHARACTERS
    assert weigh(sql, lambda _: None).size > MAX_FAST_WEIGHT


BOUNDED = {
    "an alias like the weighing's": "SELECT repeat('x', 100000000) AS a, 1 AS bounded FROM generate_series(1, 30)",
    "numbers that print long": "SELECT 1e131071 AS n FROM generate_series(1, 20000)",
    "documents of such": "SELECT jsonb_build_array(1e131071) FROM generate_series(1, 20000)",
    "many columns": f"SELECT {', '.join(['1e131071'] * 500)} FROM generate_series(1, 100)",
}


@pytest.mark.parametrize("name", BOUNDED)
def test_rows_of_postgres_are_weighed_as_they_will_arrive(name: str, postgres_url: str) -> None:
    forget_the_peak()
    before = peak_megabytes()
    database = open_database(postgres_url)
    result = database.execute(BOUNDED[name], timeout=10)
    database.close()
    assert isinstance(result, Failure)
    assert result.kind in {FailureKind.TOO_LARGE, FailureKind.TIMEOUT}
    assert peak_megabytes() - before < 300


def test_a_statement_that_postgres_goes_on_running_is_named(postgres_url: str) -> None:
    database = open_database(postgres_url)
    result = database.execute("SELECT to_timestamp(repeat('1', 1000000), repeat('Y', 1000000))", timeout=0.5)
    database.close()
    assert isinstance(result, Failure)
    assert result.kind is FailureKind.TIMEOUT
    assert re.search(r"the server (?:still runs|may still run) it \(backend \d+\)", result.message)


def test_waiting_for_a_duckdb_process_is_part_of_a_statements_time(duckdb_url: str) -> None:
    database = open_database(duckdb_url)
    assert isinstance(database, DuckdbDatabase)
    for _ in range(MAX_CHILDREN):
        database._places.acquire()
    waited = database.execute("SELECT 1", timeout=0.2)
    for _ in range(MAX_CHILDREN):
        database._places.release()
    served = database.execute("SELECT 1", timeout=30.0)
    database.close()
    assert isinstance(waited, Failure)
    assert waited.kind is FailureKind.TIMEOUT
    assert waited.seconds >= 0.2
    assert isinstance(served, Rows)


def test_twelve_statements_of_duckdb_at_once_tell_their_own_time_and_all_end(duckdb_url: str) -> None:
    database = open_database(duckdb_url)

    def timed(_: int) -> tuple[object, float, float]:
        start = time.perf_counter()
        result = database.execute(ENDLESS["duckdb"][0], timeout=LIMIT)
        return getattr(result, "kind", "rows"), result.seconds, time.perf_counter() - start

    with ThreadPoolExecutor(12) as pool:
        ended = list(pool.map(timed, range(12)))
    after = database.execute("SELECT 1", timeout=30.0)
    database.close()
    assert {kind for kind, _, _ in ended} == {FailureKind.TIMEOUT}
    assert all(waited - told < 0.5 for _, told, waited in ended), ended
    assert isinstance(after, Rows)


def test_a_statement_of_duckdb_that_breaks_its_process_does_not_break_the_next(duckdb_url: str) -> None:
    database = open_database(duckdb_url)
    database.execute("SELECT * FROM summary(team)")
    after = database.execute("SELECT count(*) FROM team")
    database.close()
    assert isinstance(after, Rows)
