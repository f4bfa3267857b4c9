"""What the engine shows of a query that is probably wrong."""

import contextlib
import sqlite3
from pathlib import Path

import pytest

from sqlcrystal.databases import open_database
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
        "SELECT name FROM item WHERE kind NOT IN ('hardware', 'soft')",
        "SELECT name FROM item WHERE NOT (kind = 'hardware' OR kind = 'soft')",
        "WITH dear AS (SELECT * FROM item WHERE price > 100) SELECT name FROM dear WHERE kind = 'FD'",
    ],
)
def test_a_query_that_looks_sound_has_no_symptom(shop: Database, sql: str) -> None:
    assert symptoms(sql, shop) == ()


def test_a_literal_of_a_nested_query_is_held_against_its_own_table(tmp_path: Path) -> None:
    place = tmp_path / "music.sqlite"
    with contextlib.closing(sqlite3.connect(place)) as connection, connection:
        connection.executescript(
            "CREATE TABLE artist (id INTEGER PRIMARY KEY, name TEXT);"
            "CREATE TABLE track (id INTEGER PRIMARY KEY, artist_id INTEGER REFERENCES artist, name TEXT);"
            "INSERT INTO artist VALUES (1, 'Metallica'); INSERT INTO track VALUES (1, 1, 'One');"
        )
    music = open_database(str(place), name="music")
    asked = "SELECT COUNT(*) FROM track WHERE artist_id IN (SELECT id FROM artist WHERE name = '{}')"
    assert symptoms(asked.format("Metallica"), music) == ()
    assert "artist.name never holds 'Metalica'." in symptoms(asked.format("Metalica"), music)
    music.close()
