"""The shallow looks at SQL text: what is dropped, what is kept, what is told apart."""

import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlcrystal.scoring.verdicts import (
    may_change_between_runs,
    orders_its_result,
    prepare_gold,
    prepare_prediction,
    sqlite_key,
    without_distinct,
)


def test_distinct_goes_everywhere_but_in_quotes_and_comments() -> None:
    assert without_distinct("SELECT DISTINCT a, count(distinct b)") == "SELECT  a, count( b)"
    for kept in (
        "SELECT 'distinct'",
        'SELECT "distinct"',
        "SELECT `distinct`",
        "SELECT 1 -- distinct",
        "SELECT distinction",
    ):
        assert without_distinct(kept) == kept


def test_spider_preparation_joins_operators_and_fixes_the_year() -> None:
    assert prepare_gold("SELECT DISTINCT a WHERE b > = 1", "test-suite") == "SELECT  a WHERE b >= 1"
    assert (
        prepare_prediction("SELECT YEAR(CURDATE()) - a WHERE b = value ", "test-suite") == "SELECT 2020- a WHERE b = 1 "
    )
    assert prepare_prediction("SELECT DISTINCT a", "bird") == "SELECT DISTINCT a"


@pytest.mark.parametrize(
    ("sql", "ordered"),
    [
        ("SELECT a FROM t ORDER BY a", True),
        ("SELECT a FROM t order\n by a LIMIT 1", True),
        ("SELECT a FROM (SELECT a FROM t ORDER BY a)", False),
        ("SELECT rank() OVER (ORDER BY a) FROM t", False),
        ("SELECT 'order by' FROM t", False),
        ("SELECT ')' FROM t ORDER BY 1", True),
    ],
)
def test_only_an_outer_order_by_orders_the_result(sql: str, ordered: bool) -> None:
    assert orders_its_result(sql) is ordered


@pytest.mark.parametrize("sql", ["SELECT date('now')", "SELECT CURRENT_TIMESTAMP", "SELECT random()", "SELECT date()"])
def test_sql_that_reads_the_clock_or_chance_is_known(sql: str) -> None:
    assert may_change_between_runs(sql)


def test_a_column_called_age_or_date_is_not_the_clock() -> None:
    assert not may_change_between_runs("SELECT age, date(birth) FROM t WHERE date = '2020-01-01'")


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("SELECT  Name ,  age FROM t ;", "select name, age from T"),
        ("SELECT count ( * ) FROM t", "SELECT count(*) FROM t"),
        ("SELECT a FROM t WHERE b='X Y'", "SELECT A FROM t WHERE b='X Y'"),
    ],
)
def test_layout_and_case_do_not_make_another_statement(left: str, right: str) -> None:
    assert sqlite_key(left) == sqlite_key(right)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("SELECT 'A'", "SELECT 'a'"),
        ("SELECT 'a  b'", "SELECT 'a b'"),
        ('SELECT "A"', 'SELECT "a"'),
        ("SELECT a > = b", "SELECT a >= b"),
        ("SELECT x'41'", "SELECT x '41'"),
        ("SELECT a b", "SELECT ab"),
        ("SELECT 1 -- A", "SELECT 1 -- a"),
        ("SELECT É", "SELECT é"),
        ("SELECT 1 - - 1", "SELECT 1 -- 1"),
    ],
)
def test_what_sqlite_may_read_differently_stays_apart(left: str, right: str) -> None:
    assert sqlite_key(left) != sqlite_key(right)


pieces = st.sampled_from(
    [
        "SELECT",
        "a",
        "A",
        "'A'",
        "'a'",
        '"b"',
        "x",
        "X",
        ",",
        "(",
        ")",
        " ",
        "  ",
        "\n",
        ">",
        "=",
        "1",
        ".",
        "'",
        "+",
        "[a]",
    ]
)


@given(st.lists(pieces, max_size=8), st.lists(pieces, max_size=8))
def test_statements_with_one_key_give_one_result(left: list[str], right: list[str]) -> None:
    first, second = "SELECT " + "".join(left), "SELECT " + "".join(right)
    if sqlite_key(first) == sqlite_key(second):
        assert outcome(first) == outcome(second)


def outcome(sql: str) -> object:
    """What SQLite makes of a statement over one small table."""
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE t (a, b, x)")
    try:
        return connection.execute(f"{sql} FROM (SELECT 1 AS a, 'q' AS b, 2 AS x)").fetchall()
    except (sqlite3.Error, sqlite3.Warning) as error:
        return type(error)
    finally:
        connection.close()
