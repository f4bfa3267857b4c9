"""One suite over every engine: what sqlcrystal promises of a database, whichever it is."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from sqlcrystal.protocols import Database
from sqlcrystal.types import Failure, FailureKind, Rows


def rows(result: object) -> tuple[Any, ...]:
    assert isinstance(result, Rows), result
    return result.rows


def kind(result: object) -> FailureKind:
    assert isinstance(result, Failure), result
    return result.kind


def test_a_query_returns_its_columns_and_rows(league: Database) -> None:
    result = league.execute("SELECT id, name FROM team ORDER BY id")
    assert isinstance(result, Rows)
    assert result.columns == ("id", "name")
    assert result.rows == ((1, "Ajax"), (2, "Żółw"), (3, "O'Hara"))
    assert result.seconds > 0


def test_an_empty_result_keeps_its_columns(league: Database) -> None:
    result = league.execute("SELECT id, name FROM team WHERE id > 99")
    assert isinstance(result, Rows)
    assert (result.columns, result.rows) == (("id", "name"), ())


def test_columns_of_the_same_name_are_kept(league: Database) -> None:
    result = league.execute("SELECT t.id, p.id FROM team t JOIN player p ON p.team_id = t.id ORDER BY p.id")
    assert isinstance(result, Rows)
    assert result.rows == ((1, 1), (1, 2), (2, 3))


def test_order_is_kept(league: Database) -> None:
    assert rows(league.execute("SELECT name FROM team ORDER BY id DESC")) == (("O'Hara",), ("Żółw",), ("Ajax",))


def test_cells_are_plain_values(league: Database) -> None:
    players = rows(league.execute("SELECT name, goals, pay, born FROM player ORDER BY id"))
    assert players[0] == ("Ann", 3, 10.5, "1990-01-02")
    assert players[2] == (None, 5, None, "1999-12-31")


@pytest.mark.parametrize(
    "sql",
    [
        "WITH best AS (SELECT max(goals) AS g FROM player) SELECT name FROM player, best WHERE goals = best.g",
        "SELECT 1 UNION ALL SELECT 2 EXCEPT SELECT 3",
        "SELECT name, count(*) OVER (PARTITION BY team_id) FROM player",
        "SELECT name FROM team WHERE name LIKE '%a%' AND EXISTS (SELECT 1 FROM player WHERE team_id = team.id)",
        "SELECT CASE WHEN goals > 2 THEN 'many' ELSE 'few' END, coalesce(name, '?'), round(avg(pay), 1) FROM player "
        "GROUP BY 1, 2 HAVING count(*) > 0 ORDER BY 1 LIMIT 5",
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5) SELECT sum(i) FROM n",
        "SELECT name FROM scorer; -- the end",
        "SELECT 'drop table team; -- insert' AS words",
        "/* a remark */ SELECT 1",
    ],
)
def test_every_shape_of_reading_runs(league: Database, sql: str) -> None:
    assert isinstance(league.execute(sql), Rows)


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT * FROM nowhere", FailureKind.MISSING),
        ("SELECT absent FROM team", FailureKind.MISSING),
        ("SELECT no_such_function(id) FROM team", FailureKind.MISSING),
        ("SELECT FROM WHERE", FailureKind.SYNTAX),
        ("", FailureKind.SYNTAX),
        ("DELETE FROM team", FailureKind.REFUSED),
        ("SELECT 1; SELECT 2", FailureKind.REFUSED),
    ],
)
def test_bad_sql_is_a_failure_of_its_kind(league: Database, sql: str, expected: FailureKind) -> None:
    result = league.execute(sql)
    assert kind(result) == expected
    assert isinstance(result, Failure)
    assert result.message
    assert "\n" not in result.message


def test_an_endless_query_stops_at_its_timeout(league: Database) -> None:
    bomb = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT (i + 1) % 1000 FROM n) SELECT count(*) FROM n"
    if league.dialect == "mysql":
        # MariaDB ends a recursion after max_recursive_iterations, so it needs a cross join to run on and on.
        bomb = "SELECT count(*) FROM " + ", ".join(f"information_schema.columns c{n}" for n in range(4))
    result = league.execute(bomb, timeout=0.5)
    assert kind(result) == FailureKind.TIMEOUT


def test_one_row_more_than_the_cap_is_too_large(league: Database) -> None:
    many = "SELECT a.id FROM player a, player b, player c"
    assert len(rows(league.execute(many, max_rows=27))) == 27
    assert kind(league.execute(many, max_rows=26)) == FailureKind.TOO_LARGE


def test_the_database_serves_on_after_a_failure(league: Database) -> None:
    for sql in ("SELECT * FROM nowhere", "SELECT", "SELECT a.id FROM player a, player b"):
        league.execute(sql, max_rows=2)
    assert rows(league.execute("SELECT count(*) FROM team")) == ((3,),)


def test_threads_get_their_own_answers(league: Database) -> None:
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda i: rows(league.execute(f"SELECT {i}, count(*) FROM player")), range(100)))
    assert answers == [((i, 3),) for i in range(100)]


def test_the_schema_is_ddl_with_foreign_keys_and_no_data(league: Database) -> None:
    schema = league.schema()
    assert schema.upper().count("CREATE TABLE") == 2
    assert "REFERENCES" in schema
    assert "PRIMARY KEY" in schema
    assert "CREATE VIEW" in schema
    assert "Ajax" not in schema
    assert schema == league.schema()


def test_the_fingerprint_is_stable(league: Database) -> None:
    assert league.fingerprint() == league.fingerprint()
    assert len(league.fingerprint()) == 64
