"""Every value and every failure of an engine is a cell or a Failure, never an exception."""

import json
from typing import Any

import pytest

from sqlcrystal.databases import open_database
from sqlcrystal.types import Failure, FailureKind, Rows

VALUES: dict[str, dict[str, Any]] = {
    "sqlite": {
        "SELECT 9223372036854775807 + 1": 9.223372036854776e18,
        "SELECT 1e999": float("inf"),
        "SELECT CAST(x'ff' AS TEXT)": "\ufffd",
        "SELECT json_extract('{\"a\": 1}', '$.a')": 1,
        "SELECT length(zeroblob(1000000))": 1_000_000,
    },
    "postgres": {
        "SELECT 'infinity'::timestamp": "infinity",
        "SELECT '-infinity'::date": "-infinity",
        "SELECT 'infinity'::interval": "infinity",
        "SELECT '0044-03-15 BC'::date": "0044-03-15 BC",
        "SELECT '24:00:00'::time": "24:00:00",
        "SELECT '10000-01-01'::date": "10000-01-01",
        "SELECT 170141183460469231731687303715884105727::numeric": 1.7014118346046923e38,
        "SELECT repeat('9', 5000)::numeric": "9" * 5000,
        "SELECT (repeat('[', 3000) || repeat(']', 3000))::json": "[" * 3000 + "]" * 3000,
        "SELECT '\"\\ud800\"'::json": '"\\ud800"',
        "SELECT ARRAY[1, 2]": "[1, 2]",
        "SELECT '2020-01-02 03:04:05'::timestamp": "2020-01-02 03:04:05",
    },
    "mysql": {
        "SELECT CONVERT(UNHEX('41FF42') USING utf8mb4)": "A?B",
        "SELECT CAST('838:59:59' AS TIME)": "838:59:59",
        "SELECT CAST('0000-00-00' AS DATE)": "0000-00-00",
        "SELECT CHAR(0)": "x'00'",
        "SELECT 18446744073709551615": 18446744073709551615,
    },
    "duckdb": {
        "SELECT 170141183460469231731687303715884105727::HUGEINT": 1.7014118346046923e38,
        "SELECT sum(goals::HUGEINT * 10000000000000000000) FROM player": 8e19,
        "SELECT '2020-01-02 03:04:05+00'::TIMESTAMPTZ AT TIME ZONE 'UTC'": "2020-01-02 03:04:05",
        "SELECT DATE '5877642-06-25 (BC)'": "5877642-06-25 (BC)",
        "SELECT '24:00:00'::TIME": "24:00:00",
        "SELECT 1e400::DOUBLE": float("inf"),
    },
}


@pytest.mark.parametrize(("engine_name", "sql"), [(engine, sql) for engine, cases in VALUES.items() for sql in cases])
def test_a_value_that_python_does_not_have_is_told_otherwise(
    engine_name: str, sql: str, request: pytest.FixtureRequest
) -> None:
    database = open_database(request.getfixturevalue(f"{engine_name}_url"))
    result = database.execute(sql)
    database.close()
    assert isinstance(result, Rows), result
    expected = VALUES[engine_name][sql]
    assert result.rows[0][0] == expected or (engine_name == "mysql" and "\ufffd" in str(result.rows[0][0]))
    json.dumps(result.rows).encode()


def test_a_time_zone_of_duckdb_becomes_text(duckdb_url: str) -> None:
    database = open_database(duckdb_url)
    result = database.execute("SELECT '2020-01-02 03:04:05+00'::TIMESTAMPTZ")
    database.close()
    assert isinstance(result, Rows)
    assert str(result.rows[0][0]).startswith("2020-01-0")


def test_json_functions_on_a_cell_that_is_no_json_do_not_call_the_database_damaged(sqlite_url: str) -> None:
    database = open_database(sqlite_url)
    result = database.execute("SELECT json_extract(name, '$.a') FROM team")
    database.close()
    assert isinstance(result, Failure)
    assert (result.kind, result.message) == (FailureKind.ENGINE, "malformed JSON")


def test_a_schema_that_is_not_utf8_opens(tmp_path: Any) -> None:
    import sqlite3

    path = tmp_path / "a.sqlite"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE good (a TEXT)")
    connection.execute("CREATE TABLE bQQd (a TEXT)")
    connection.commit()
    connection.close()
    path.write_bytes(path.read_bytes().replace(b"QQ", b"\xff\xfe"))
    database = open_database(str(path))
    assert isinstance(database.execute("SELECT * FROM good"), Rows)
    assert "\ufffd" in database.schema()
    database.close()
