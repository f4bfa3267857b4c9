"""Tables, columns and keys as the DDL declares them, and the table that a query's column belongs to."""

import pytest
from sqlglot import exp

from sqlcrystal.databases.layout import ForeignKey, Layout, join_path, keys_of, owner_of
from sqlcrystal.databases.parsing import parse

SCHEMA = """
CREATE TABLE "Order" (id INTEGER PRIMARY KEY, customer INTEGER REFERENCES customer, note TEXT);
CREATE TABLE customer (id INTEGER, city TEXT, PRIMARY KEY (id));
CREATE TABLE line (order_id INTEGER, number INTEGER, PRIMARY KEY (order_id, number),
    FOREIGN KEY (order_id) REFERENCES "Order" (id));
"""
LAYOUT: Layout = {"order": ("id", "customer", "note"), "customer": ("id", "city"), "line": ("order_id", "number")}


@pytest.mark.parametrize("dialect", ["sqlite", "postgresql", "duckdb"])
def test_keys_are_read_whether_declared_with_a_column_or_with_the_table(dialect: str) -> None:
    keys = keys_of(SCHEMA, dialect)
    assert keys.primary == {("Order", "id"), ("customer", "id"), ("line", "order_id"), ("line", "number")}
    assert set(keys.foreign) == {
        ForeignKey("Order", "customer", "customer", "id"),
        ForeignKey("line", "order_id", "Order", "id"),
    }


def test_the_path_between_two_tables_is_the_shortest_chain_of_keys() -> None:
    keys = keys_of(SCHEMA, "sqlite")
    assert [str(key) for key in join_path(["line"], "customer", keys)] == [
        "line.order_id = Order.id",
        "Order.customer = customer.id",
    ]
    assert join_path(["customer"], "nowhere", keys) == []


@pytest.mark.parametrize(
    ("sql", "owner"),
    [
        ("SELECT city FROM customer", "customer"),
        ("SELECT c.city FROM customer c", "customer"),
        ("SELECT id FROM line WHERE EXISTS (SELECT 1 FROM customer WHERE city = 'x' AND number = 1)", "customer"),
        ("SELECT city FROM (SELECT city FROM customer)", None),
        ("WITH customer AS (SELECT 1 AS city) SELECT city FROM customer", None),
        ("SELECT city FROM line", None),
    ],
)
def test_a_column_belongs_to_a_table_of_its_own_query_or_of_one_around_it(sql: str, owner: str | None) -> None:
    column = next(column for column in parse(sql, "sqlite").find_all(exp.Column) if column.name == "city")
    assert owner_of(column, LAYOUT) == owner
