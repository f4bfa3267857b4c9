"""A value is spelled as its column holds it where one stored value is clearly meant, and left alone otherwise."""

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from sqlcrystal.databases import open_database
from sqlcrystal.databases.spelling import MOST_VALUES, misspelt, respelled
from sqlcrystal.protocols import Database

ARTISTS = ["Iron Maiden", "Metallica", "AC/DC", "Station 12", "Jon Smith", "Joan Smith"]


@pytest.fixture
def music(tmp_path: Path) -> Iterator[Database]:
    place = tmp_path / "music.sqlite"
    with contextlib.closing(sqlite3.connect(place)) as connection, connection:
        connection.executescript(
            "CREATE TABLE artist (id INTEGER PRIMARY KEY, name TEXT, country TEXT, born TEXT);"
            "CREATE TABLE ticket (id INTEGER PRIMARY KEY, code TEXT);"
        )
        rows = [(number, name, "Germany", f"2023-04-{number + 10}") for number, name in enumerate(ARTISTS)]
        connection.executemany("INSERT INTO artist VALUES (?, ?, ?, ?)", rows)
        codes = [(number, f"ticket of row {number}") for number in range(MOST_VALUES + 2)]
        connection.executemany("INSERT INTO ticket VALUES (?, ?)", codes)
    database = open_database(str(place), name="music")
    yield database
    database.close()


@pytest.mark.parametrize(
    ("written", "stored"),
    [
        ("name = 'Iron Maden'", "name = 'Iron Maiden'"),
        ("name = 'metallica'", "name = 'Metallica'"),
        ("country IN ('germany')", "country IN ('Germany')"),
        ("born = '15-APR-2023'", "born = '2023-04-15'"),
        ("born = 'April 15, 2023' AND name = 'ac/dc'", "born = '2023-04-15' AND name = 'AC/DC'"),
    ],
)
def test_a_value_that_one_stored_value_clearly_means_is_exchanged(music: Database, written: str, stored: str) -> None:
    found = respelled(f"SELECT id FROM artist WHERE {written}", music)
    assert found is not None
    assert found.sql == f"SELECT id FROM artist WHERE {stored}"


@pytest.mark.parametrize(
    "condition",
    [
        "name = 'Station 13'",  # another number is another thing
        "name = 'Joen Smith'",  # either Smith may be meant
        "name = 'Beatles'",  # nothing is near
        "born = '03/04/2023'",  # a day that can be read in two ways
        "name <> 'Iron Maden'",  # not a value that is looked for
        "name = 'Iron Maden' AND country = 'Atlantis'",  # half a repair is none
        "id = 77",
    ],
)
def test_a_value_that_may_mean_several_or_none_is_left_alone(music: Database, condition: str) -> None:
    assert respelled(f"SELECT id FROM artist WHERE {condition}", music) is None


def test_a_column_of_too_many_texts_is_searched_for_another_case_only(music: Database) -> None:
    near, cased = (
        respelled(f"SELECT id FROM ticket WHERE code = '{code}'", music)
        for code in ("tickets of row 9", "Ticket of Row 9")
    )
    assert near is None
    assert cased is not None
    assert cased.sql == "SELECT id FROM ticket WHERE code = 'ticket of row 9'"


def test_a_repair_that_may_see_values_is_told_which_stored_value_is_near(music: Database) -> None:
    assert list(misspelt("SELECT id FROM artist WHERE name = 'Iron Maden'", music)) == [
        "artist.name never holds 'Iron Maden'. It holds 'Iron Maiden'."
    ]


def test_a_text_that_is_no_query_has_no_misspelt_value(music: Database) -> None:
    assert respelled("SELECT FROM WHERE", music) is None
    assert list(misspelt(None, music)) == []
