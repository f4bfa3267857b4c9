"""Cards that no longer run against the live database are quarantined, and can come back."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from cardbox import card
from shop import build
from sqlcrystal.bank import CardStore, check_cards
from sqlcrystal.databases import open_database
from sqlcrystal.protocols import Database
from sqlcrystal.types import CardStatus, Execution, Failure, FailureKind


class Watched:
    """The real database, remembering what it was asked, and timing out where told to."""

    def __init__(self, path: Path, slow: str = "") -> None:
        self.inner: Database = open_database(str(path), name="shop")
        self.name, self.dialect = self.inner.name, self.inner.dialect
        self.asked: list[str] = []
        self.slow = slow

    def schema(self) -> str:
        return self.inner.schema()

    def fingerprint(self) -> str:
        return self.inner.fingerprint()

    def execute(self, sql: str, *, timeout: float = 30.0, max_rows: int = 100_000) -> Execution:
        self.asked.append(sql)
        if sql == self.slow:
            return Failure(FailureKind.TIMEOUT, "too slow")
        return self.inner.execute(sql, timeout=timeout, max_rows=max_rows)

    def close(self) -> None:
        self.inner.close()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return build(tmp_path / "shop.sqlite")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[CardStore]:
    with CardStore(tmp_path / "bank.sqlite") as opened:
        opened.add(card(1, sql="SELECT name FROM item"))
        opened.add(card(2, sql="SELECT price FROM item"))
        opened.add(card(3, sql="SELECT nothing FROM nowhere", status=CardStatus.DISABLED))
        opened.add(card(4, sql="SELECT nothing FROM nowhere", database="bar"))
        yield opened


def change_schema(path: Path, statement: str) -> None:
    connection = sqlite3.connect(path)
    connection.execute(statement)
    connection.commit()
    connection.close()


def test_a_card_whose_column_is_gone_is_quarantined_with_the_engines_words(path: Path, store: CardStore) -> None:
    change_schema(path, "ALTER TABLE item DROP COLUMN price")
    report = check_cards(store, open_database(str(path), name="shop"))
    assert [finding.card for finding in report.quarantined] == ["shop-2"]
    assert (report.checked, report.ran) == (2, 1)
    assert [c.id for c in store.cards("shop")] == ["shop-1"]
    (change,) = store.history("shop-2")
    assert "price" in change.reason
    assert change.after == "quarantined"


def test_a_quarantined_card_that_runs_again_is_released_only_when_asked(path: Path, store: CardStore) -> None:
    store.set_status("shop-2", CardStatus.QUARANTINED, by="cards check", reason="no such column")
    database = open_database(str(path), name="shop")
    assert check_cards(store, database).releasable == ("shop-2",)
    assert store.get("shop-2").status is CardStatus.QUARANTINED
    assert check_cards(store, database, release=True).released == ("shop-2",)
    assert store.get("shop-2").status is CardStatus.ACTIVE


def test_disabled_cards_and_other_databases_are_left_alone(path: Path, store: CardStore) -> None:
    watched = Watched(path)
    check_cards(store, watched)
    assert "SELECT nothing FROM nowhere" not in watched.asked
    assert store.get("bar-4").status is CardStatus.ACTIVE


def test_cards_of_an_older_schema_run_first_until_they_were_seen_to_run(path: Path, store: CardStore) -> None:
    watched = Watched(path)
    store.add(card(5, sql="SELECT kind FROM item", fingerprint="an older schema"))
    for number in (1, 2):
        store.mark_valid([f"shop-{number}"], watched.fingerprint())
    report = check_cards(store, watched)
    assert watched.asked[0] == "SELECT kind FROM item"
    assert report.stale == 1
    assert check_cards(store, watched).stale == 0


def test_a_check_of_unchanged_cards_leaves_the_served_snapshot_alone(path: Path, store: CardStore) -> None:
    before = store.cards("shop")
    check_cards(store, Watched(path))
    assert store.cards("shop") is before


def test_a_timeout_decides_nothing(path: Path, store: CardStore) -> None:
    report = check_cards(store, Watched(path, slow="SELECT price FROM item"))
    assert [finding.card for finding in report.undecided] == ["shop-2"]
    assert store.get("shop-2").status is CardStatus.ACTIVE
