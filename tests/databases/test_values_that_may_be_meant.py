"""A value that a column never holds is answered with those that it does hold and that read like it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from shop import build
from sqlcrystal.databases import open_database
from sqlcrystal.databases.spelling import near_values, with_value
from sqlcrystal.protocols import Database


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Database]:
    opened = open_database(str(build(tmp_path / "shop.sqlite")))
    yield opened
    opened.close()


@pytest.mark.parametrize(
    ("condition", "near", "holds"),
    [
        ("name = 'bolts'", ("Bolt",), ()),
        ("kind = 'hardware'", (), ("FD", "HW")),
        ("kind IN ('HW', 'Fd')", ("FD",), ()),
    ],
)
def test_what_is_not_held_is_told_with_what_is_near_or_else_all_there_is(
    shop: Database, condition: str, near: tuple[str, ...], holds: tuple[str, ...]
) -> None:
    (found,) = near_values(f"SELECT price FROM item WHERE {condition}", shop)
    assert (found.table, found.near, found.holds) == ("item", near, holds)


@pytest.mark.parametrize("condition", ["kind = 'HW'", "price = 7", "kind NOT IN ('x')", "name LIKE 'bolts'"])
def test_what_is_held_or_is_no_text_is_not_told(shop: Database, condition: str) -> None:
    assert near_values(f"SELECT price FROM item WHERE {condition}", shop) == ()


def test_only_the_whole_text_is_exchanged_and_sql_that_cannot_be_read_stays() -> None:
    sql = "SELECT 1 FROM item WHERE name = 'Nut' OR name = 'Nuts' -- 'Nut'"
    changed = with_value(sql, "sqlite", "Nut", "it's")
    assert "name = 'it''s' OR name = 'Nuts'" in " ".join(changed.split())
    assert with_value("SELECT FROM WHERE (", "sqlite", "a", "b") == "SELECT FROM WHERE ("
