"""Shapes: what differs in literals and layout alone is one query, and what may not be learned from has a reason."""

import pytest

from sqlcrystal.querylog.readers import LoggedQuery, Reason
from sqlcrystal.querylog.shapes import shapes_of


def test_the_same_query_with_other_literals_is_one_shape_with_its_most_used_form_first() -> None:
    found = [
        LoggedQuery("SELECT name FROM item WHERE kind = 'HW' AND price > 5", 3, "a.sql:1"),
        LoggedQuery("select name\nfrom item -- all\nwhere kind = 'FD' and price > 10", 9, "b.sql:1"),
        LoggedQuery("SELECT name FROM item WHERE id IN (1, 2, 3)", 4),
        LoggedQuery("SELECT name FROM item WHERE id IN (7)", 1),
        LoggedQuery("SELECT price FROM item", 50),
    ]
    shapes = shapes_of(found, "sqlite").shapes
    assert [(shape.sql, shape.uses, shape.parameters) for shape in shapes] == [
        ("SELECT price FROM item", 50, ()),
        ("SELECT name FROM item WHERE kind = 'FD' AND price > 10", 12, ("FD", "10")),
        ("SELECT name FROM item WHERE id IN (1, 2, 3)", 5, ("1", "2", "3")),
    ]
    assert shapes[1].places == ("a.sql:1", "b.sql:1")


def test_a_query_whose_values_the_log_left_out_says_so() -> None:
    given, bound = shapes_of(
        [LoggedQuery("SELECT a FROM t WHERE b = 1", 2), LoggedQuery("SELECT a FROM t WHERE c = $1")], "postgres"
    ).shapes
    assert (given.bound, bound.bound) == (False, True)


HOSTILE = {
    "INSERT INTO t VALUES (1)": Reason.WRITES,
    "WITH gone AS (DELETE FROM t RETURNING *) SELECT * FROM gone": Reason.WRITES,
    "SELECT * INTO copy FROM t": Reason.WRITES,
    "CREATE TABLE copy AS SELECT * FROM t": Reason.WRITES,
    "BEGIN": Reason.WRITES,
    "SET x = 1": Reason.WRITES,
    "SELECT 1": Reason.NO_TABLE,
    "SELECT name FROM sqlite_master": Reason.NO_TABLE,
    "SELECT * FROM information_schema.tables": Reason.NO_TABLE,
    "WITH x AS (SELECT 1) SELECT * FROM x": Reason.NO_TABLE,
    "SELECT load_extension('x') FROM t": Reason.GUARDED,
    "SELECT TOP 5 [a] FROM [b].[c]": Reason.UNREADABLE,
    "SELECT a FROM": Reason.UNREADABLE,
    "SELECT a FROM t; SELECT b FROM t": Reason.UNREADABLE,
    "SELECT '" + "x" * 200_000 + "' FROM t": Reason.TOO_LONG,
    f"SELECT {'(' * 300}1{')' * 300} FROM t": Reason.TOO_MUCH,
    "SELECT a FROM users WHERE password = 'hunter2'": Reason.SECRET,
    "SELECT a FROM users WHERE 'x' = api_key": Reason.SECRET,
    "SELECT a FROM t WHERE k IN ('sk-proj-abcdefghijklmnop1234')": Reason.SECRET,
    "SELECT a FROM t WHERE u = 'postgresql://ada:s3cret@host/db'": Reason.SECRET,
    "SELECT a FROM t WHERE k = 'Zm9vYmFyYmF6cXV4Zm9vYmFyYmF6cXV4MTIz'": Reason.SECRET,
    "SELECT a FROM t WHERE j = 'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl'": Reason.SECRET,
    "SELECT a FROM t /* password: hunter2hunter2 */": Reason.SECRET,
    "SELECT CASE password WHEN 'hunter2' THEN 1 END FROM t": Reason.SECRET,
    "SELECT a, 'hunter2' AS password FROM t": Reason.SECRET,
    "SELECT pgp_decrypt(card_number, 'hunter2') FROM t": Reason.SECRET,
    "SELECT a FROM t WHERE (a, pin) = ('x', '1234')": Reason.SECRET,
    "SELECT a FROM t WHERE b = {{ kind }}": Reason.TEMPLATE,
    "SELECT a FROM t {% if x %} WHERE b = 1 {% endif %}": Reason.TEMPLATE,
    "SELECT a FROM t WHERE b <> 'M\ufffdller'": Reason.LETTERS,
}


@pytest.mark.parametrize(("sql", "reason"), HOSTILE.items(), ids=[sql[:60] for sql in HOSTILE])
def test_a_hostile_statement_is_refused_for_its_reason(sql: str, reason: Reason) -> None:
    shapes = shapes_of([LoggedQuery(sql, 3, "log.sql:1")], "sqlite")
    assert (shapes.read, shapes.shapes) == (1, ())
    assert [(refused.reason, refused.place, refused.uses) for refused in shapes.refused] == [(reason, "log.sql:1", 3)]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT a FROM t WHERE hash = 'd41d8cd98f00b204e9800998ecf8427e'",
        "SELECT a FROM t WHERE title = 'The Secret of Monkey Island and Other Long Names'",
        "SELECT token FROM t WHERE kind = 'HW'",
        "SELECT a FROM t WHERE token IS NOT NULL AND kind = 'HW'",
        "SELECT COUNT(CASE WHEN kind = 'HW' THEN token END) FROM t",
        "SELECT a FROM t WHERE b = 'Hello {{name}}'",
        "SELECT a FROM shipping WHERE pinned = 'yes'",
    ],
)
def test_an_ordinary_text_is_no_secret(sql: str) -> None:
    assert len(shapes_of([LoggedQuery(sql)], "sqlite").shapes) == 1
