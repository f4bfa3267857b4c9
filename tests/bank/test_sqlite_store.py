"""A store in one SQLite file: what is somebody else's stays untouched, and files of earlier versions open."""

import io
import shutil
import sqlite3
from pathlib import Path

import pytest

from cardbox import card
from sqlcrystal.bank import CardStore, FrozenBank, Store, export_jsonl
from sqlcrystal.bank.migrations import TAKEN_OVER
from sqlcrystal.errors import BankError
from sqlcrystal.types import CardStatus

OLD = Path(__file__).parent / "old"


def test_a_frozen_bank_serves_active_cards_only() -> None:
    assert len(FrozenBank([card(1), card(2, status=CardStatus.DISABLED)])) == 1


def test_a_locked_bank_is_reported_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "bank.sqlite"
    with CardStore(path, busy_seconds=0.05) as store:
        holder = sqlite3.connect(path, isolation_level=None)
        holder.execute("BEGIN IMMEDIATE")
        with pytest.raises(BankError, match="another process has kept the bank locked"):
            store.add(card(1))
        holder.execute("ROLLBACK")
        holder.close()
        store.add(card(1))
        assert store.cards("shop") == (card(1),)


def test_somebodys_own_database_is_never_turned_into_a_bank(tmp_path: Path) -> None:
    path = tmp_path / "mine.sqlite"
    with sqlite3.connect(path) as mine:
        mine.execute("CREATE TABLE t (a)")
    mine.close()
    before = path.read_bytes()
    with pytest.raises(BankError, match="not a card bank"):
        CardStore(path)
    assert path.read_bytes() == before


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("hello, this is not a database\n" * 50)
    with pytest.raises(BankError, match="not a card bank"):
        CardStore(path)


def test_a_table_whose_text_is_damaged_beyond_letters_is_damage_with_a_name(tmp_path: Path) -> None:
    path = tmp_path / "team.sqlite"
    with Store(path):
        pass
    content = path.read_bytes()
    assert b"AUTOINCREMENT" in content
    path.write_bytes(content.replace(b"AUTOINCREMENT", b"AUTOIN\x9dREMENT"))
    with pytest.raises(BankError, match="the bank file is damaged"):
        Store(path)


@pytest.mark.parametrize("version", ["0001-cards", "0002-revisions"])
def test_a_bank_file_of_an_earlier_version_opens_with_every_card_episode_and_change(
    tmp_path: Path, version: str
) -> None:
    path = tmp_path / "bank.sqlite"
    shutil.copy(OLD / f"{version}.sqlite", path)
    with CardStore(path) as store:
        out = io.BytesIO()
        export_jsonl(store, out)
        assert out.getvalue() == (OLD / "cards.jsonl").read_bytes()
        assert store.stale("shop", "f1") == {"shop-2"}
        assert [banked.id for banked in store.find(question="how many items are cheap")] == ["shop-2"]
        assert [banked.id for banked in store.find(since="2026-06-01")] == ["bar-3"]
        before = store.cards("shop")
        store.add(card(9))
        assert store.cards("shop") == (*before, card(9))


def test_an_earlier_sqlcrystal_refuses_a_file_that_was_migrated(tmp_path: Path) -> None:
    path = tmp_path / "bank.sqlite"
    shutil.copy(OLD / "0002-revisions.sqlite", path)
    Store(path).close()
    with sqlite3.connect(path) as raw:
        names = {name for (name,) in raw.execute("SELECT name FROM migrations")}
    raw.close()
    assert TAKEN_OVER in names  # earlier versions refuse a bank with a step they do not know


def test_what_was_forgotten_is_in_no_byte_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with Store(path) as store:
        for number in range(50):
            store.bank.add(card(number, sql=f"SELECT 'Zaphod Beeblebrox {number}'"))
        store.forget(by="ada", value="Zaphod")
    assert all(b"Zaphod" not in file.read_bytes() for file in tmp_path.iterdir())
