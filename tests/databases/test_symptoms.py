"""What the engine shows of a query that is probably wrong."""

import pytest

from sqlcrystal.databases.symptoms import symptoms
from sqlcrystal.protocols import Database


@pytest.mark.parametrize(
    ("sql", "shown"),
    [
        ("SELECT cost FROM item", ["It fails: no such column: cost"]),
        ("SELECT name FROM item WHERE price < 0", ["It returns no rows."]),
        ("SELECT COUNT(*) FROM item WHERE price < 0", ["It returns nothing but NULL or zero."]),
        ("SELECT SUM(price), MAX(price) FROM item WHERE price < 0", ["It returns nothing but NULL or zero."]),
        (
            "SELECT COUNT(*) FROM item WHERE kind = 'hardware'",
            ["It returns nothing but NULL or zero.", "item.kind never holds 'hardware'."],
        ),
        ("SELECT COUNT(*) FROM item AS i WHERE i.kind IN ('HW', 'hw')", ["item.kind never holds 'hw'."]),
        ("SELECT COUNT(*) FROM item WHERE 'tea' = name OR kind = 'HW'", ["item.name never holds 'tea'."]),
        (None, ["There is no SQL."]),
    ],
)
def test_each_symptom_is_named(shop: Database, sql: str | None, shown: list[str]) -> None:
    assert list(symptoms(sql, shop)) == shown


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) FROM item WHERE kind = 'HW'",
        "SELECT name FROM item WHERE LOWER(kind) = 'hw'",
        "SELECT name, 0 FROM item",
        "SELECT name FROM item WHERE kind <> 'hardware'",
        "WITH dear AS (SELECT * FROM item WHERE price > 100) SELECT name FROM dear WHERE kind = 'FD'",
    ],
)
def test_a_query_that_looks_sound_has_no_symptom(shop: Database, sql: str) -> None:
    assert symptoms(sql, shop) == ()
