"""Nothing outlives its limits: time, memory and rows, and no innocent statement pays for a bomb beside it."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from fuzzing import is_late
from memory import peak_megabytes
from sqlcrystal.databases import open_database
from sqlcrystal.databases.limits import MAX_MESSAGE
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
    assert "the server still runs it (connection" in result.message


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


def test_expressions_that_double_at_each_step_are_planned_by_a_process_that_can_be_ended(sqlite_url: str) -> None:
    steps = ", ".join(f"s{n + 1} AS (SELECT p.x FROM s{n} p, s{n} q)" for n in range(22))
    database = open_database(sqlite_url)
    before = peak_megabytes()
    sql = f"WITH s0 AS (SELECT 1 x), {steps} SELECT * FROM s22"
    result = database.execute(sql, timeout=LIMIT)
    late = result.seconds > LATE and is_late(database, sql, limit=LIMIT, late=LATE)
    database.close()
    assert isinstance(result, Failure)
    assert not late
    assert peak_megabytes() - before < 200
