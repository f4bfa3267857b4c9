"""The profile tells what each column holds, within limits, and nothing of keys."""

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from sqlcrystal.databases import open_database
from sqlcrystal.models.scripted import ScriptedModel
from sqlcrystal.protocols import Database
from sqlcrystal.solving.profile import FEW, HEADING, ColumnProfile, Profiled, read_profile, render_profile
from sqlcrystal.types import Question

QUESTION = Question(id="1", database="clinic", text="How many visits did Ada's clinic in Bern have?")


@pytest.fixture
def clinic(tmp_path: Path) -> Iterator[Database]:
    place = tmp_path / "clinic.sqlite"
    with contextlib.closing(sqlite3.connect(place)) as connection, connection:
        connection.executescript(
            "CREATE TABLE town (id INTEGER PRIMARY KEY, name TEXT);"
            "CREATE TABLE visit (id INTEGER PRIMARY KEY, town_id INTEGER REFERENCES town (id), day TEXT, state TEXT,"
            ' fee REAL, "the note" TEXT, empty TEXT);'
        )
        connection.executemany("INSERT INTO town VALUES (?, ?)", [(n, f"Town {n:02}") for n in range(1, 31)])
        rows = [
            (n, n % 30 + 1, f"2024-01-{n % 28 + 1:02}", "CX"[n % 3 == 0], n / 2, None if n % 2 else "it's fine", None)
            for n in range(60)
        ]
        connection.executemany("INSERT INTO visit VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
    database = open_database(str(place), name="clinic")
    yield database
    database.close()


def test_each_column_but_a_key_says_what_it_holds(clinic: Database) -> None:
    assert [column.line for column in read_profile(clinic)] == [
        "-- town.name: such as 'Town 01', 'Town 02', 'Town 03', ...",
        "-- visit.day: from '2024-01-01' to '2024-01-28'",
        "-- visit.state: 'C', 'X'",
        "-- visit.fee: from 0.0 to 29.5",
        "-- visit.the note: 'it''s fine' or NULL",
        "-- visit.empty: only NULL",
    ]


def test_the_profile_follows_the_schema_and_stands_before_the_question(clinic: Database) -> None:
    model = ScriptedModel(["```sql\nSELECT 1\n```"])
    Profiled(model, clinic).solve(QUESTION)
    [(_, user)] = model.prompts
    schema, profile, question = (user.content.index(part) for part in ("CREATE TABLE visit", HEADING, "[Question]"))
    assert schema < profile < question


def test_a_profile_without_room_keeps_the_lines_that_share_words_with_the_question() -> None:
    lines = [ColumnProfile(f"table{n}", "column", "'x'") for n in range(50)]
    lines.append(ColumnProfile("office", "town", "'Bern'"))
    shown = render_profile(lines, QUESTION, room=120)
    assert "-- office.town: 'Bern'" in shown
    assert len(shown) <= 120 + len(HEADING) + 1
    assert render_profile(lines, QUESTION).count("\n") == len(lines)


def test_a_long_value_is_cut_and_a_column_without_rows_is_left_out(tmp_path: Path) -> None:
    place = tmp_path / "long.sqlite"
    with contextlib.closing(sqlite3.connect(place)) as connection, connection:
        connection.executescript("CREATE TABLE t (a TEXT); CREATE TABLE vacant (b TEXT);")
        connection.execute("INSERT INTO t VALUES (?)", ["long\n" * 50])
    database = open_database(str(place), name="long")
    [only] = read_profile(database)
    assert only.values == "'" + ("long " * 50)[:39] + "…'"
    database.close()


def test_many_values_of_a_number_give_its_range_and_few_give_all(clinic: Database) -> None:
    by_column = {column.column: column.values for column in read_profile(clinic)}
    assert len(by_column["state"].split(", ")) <= FEW
    assert by_column["fee"].startswith("from ")
