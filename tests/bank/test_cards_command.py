"""`sqlcrystal cards` as a user runs it."""

import json
import os
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from typer.testing import CliRunner

from cardbox import card, episode
from shop import RIGHT, build
from sqlcrystal.bank import AnswerRecord, CardStore, CardUse, Store
from sqlcrystal.errors import UserError
from sqlcrystal.interfaces.cli.cards import cards_app
from sqlcrystal.types import CardId, CardStatus

Run = Callable[..., str]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with CardStore(tmp_path / "bank.sqlite") as store:
        store.add(card(1, sql="SELECT name FROM item"), episode(card(1)))
        store.add(card(2, sql="SELECT price FROM item", signal="ungated", by="nobody"))
        store.add(card(3, database="bar", signal="ungated", by="nobody", writer="W5"))
    return tmp_path / "bank.sqlite"


@pytest.fixture
def run(path: Path) -> Run:
    def invoke(*arguments: object, fails: str = "") -> str:
        result = CliRunner().invoke(cards_app, [*map(str, arguments), "--store", str(path)])
        if fails:
            assert isinstance(result.exception, UserError), result.output
            assert fails in str(result.exception)
            assert "\n" not in str(result.exception)
        elif result.exception is not None:
            raise result.exception
        return result.stdout

    return invoke


def document(text: str) -> Any:
    return json.loads(text)


def test_cards_are_listed_by_what_is_asked_for(run: Run) -> None:
    def listed_ids(*filters: str) -> list[str]:
        return [listed["id"] for listed in document(run("list", "--json", *filters))]

    assert listed_ids() == ["shop-1", "shop-2", "bar-3"]
    assert listed_ids("--db", "shop") == ["shop-1", "shop-2"]
    assert listed_ids("--signal", "ungated", "--writer", "W5") == ["bar-3"]
    assert listed_ids("--by", "nobody", "--status", "active") == ["shop-2", "bar-3"]
    assert [line.split("\t")[0] for line in run("list").splitlines()] == ["id", "shop-1", "shop-2", "bar-3"]


def test_a_listed_card_says_what_scripts_read(run: Run) -> None:
    shown = document(run("list", "--json", "--db", "bar"))[0]
    assert {key: shown[key] for key in ("id", "database", "question", "sql", "status", "signal", "by")} == {
        "id": "bar-3",
        "database": "bar",
        "question": "question number 3",
        "sql": "SELECT 3",
        "status": "active",
        "signal": "ungated",
        "by": "nobody",
    }


def test_a_database_can_be_given_by_its_file(run: Run, tmp_path: Path) -> None:
    shop = build(tmp_path / "shop.sqlite")
    assert len(document(run("list", "--json", "--db", shop))) == 2


def test_a_card_is_shown_with_its_episode_and_history(run: Run) -> None:
    run("disable", "shop-1", "--reason", "doubtful")
    shown = document(run("show", "shop-1", "--json"))
    assert shown["first_attempt"] == "SELECT wrong"
    assert shown["history"][0]["reason"] == "doubtful"
    page = run("show", "shop-1")
    assert "first attempt: SELECT wrong" in page
    assert "active → disabled (doubtful)" in page


def test_every_ungated_card_can_be_revoked_and_restored(run: Run, path: Path) -> None:
    assert document(run("disable", "--signal", "ungated", "--json"))["changed"] == ["shop-2", "bar-3"]
    with CardStore(path) as store:
        assert store.databases() == ("shop",)
    assert "2 cards now active" in run("enable", "--by", "nobody")


def test_a_group_is_not_lifted_out_of_quarantine_but_a_named_card_is(run: Run, path: Path) -> None:
    with CardStore(path) as store:
        store.set_status("shop-2", CardStatus.QUARANTINED, by="cards check")
    assert "0 cards" in run("enable", "--db", "shop")
    assert "1 card now active" in run("enable", "shop-2")


def test_a_bad_verifier_is_undone_in_one_step_and_what_leaned_on_it_is_named(run: Run, path: Path) -> None:
    with Store(path) as store:
        given = AnswerRecord(id="a1", database="shop", question="How many?", at="2026-03-01", asked_by="ada")
        store.answers.save(msgspec.structs.replace(given, cards=(CardUse(CardId("shop-2"), 0.9),)))
    page = run("revoke", "--by", "nobody", "--reason", "careless")
    assert "2 cards revoked" in page
    assert "a1  2026-03-01  shop: How many?" in page
    assert document(run("revoke", "--by", "nobody", "--json"))["revoked"] == []
    assert [card["id"] for card in document(run("list", "--json", "--status", "active"))] == ["shop-1"]


def test_a_deleted_card_is_gone(run: Run) -> None:
    run("delete", "shop-1", "--reason", "private")
    run("show", "shop-1", fails="card 'shop-1': not in")


def test_edited_sql_is_edited_in_the_text_too(run: Run, tmp_path: Path) -> None:
    shop = build(tmp_path / "shop.sqlite")
    edited = document(run("edit", "shop-1", "--sql", "SELECT kind FROM item", "--db", shop, "--json"))
    assert edited["text"] == "Question: question number 1\nSQL: SELECT kind FROM item"
    assert edited["signal"] == "edited"


def test_edited_sql_that_does_not_run_is_refused(run: Run, tmp_path: Path) -> None:
    shop = build(tmp_path / "shop.sqlite")
    run("edit", "shop-1", "--sql", "SELECT nonsense FROM item", "--db", shop, fails="sql: missing object")
    run("edit", "shop-1", "--sql", "DROP TABLE item", "--db", shop, fails="nothing was changed")
    run("edit", "shop-1", "--sql", RIGHT, "--db", shop)


def test_edited_sql_is_run_on_the_database_that_the_card_names(run: Run, tmp_path: Path) -> None:
    run("edit", "shop-1", "--sql", RIGHT, fails="database 'shop', on which it is run first, is not known")
    copy = build(tmp_path / "copy.sqlite")
    run("edit", "shop-1", "--sql", RIGHT, "--db", copy, fails="database 'shop'")
    run("edit", "shop-1", "--sql", RIGHT, "--db", copy, "--name", "shop")


def test_the_editor_changes_what_the_person_changed(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    editor = tmp_path / "editor"
    editor.write_text("#!/bin/sh\nsed -i 's/number 1/number one/' \"$1\"\n")
    editor.chmod(editor.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("VISUAL", str(editor))
    edited = document(run("edit", "shop-1", "--json"))
    assert edited["text"].startswith("Question: question number one\n")
    assert edited["signal"] == "oracle"
    monkeypatch.setenv("VISUAL", "no-such-editor")
    run("edit", "shop-1", fails="$EDITOR: 'no-such-editor' failed")


def test_an_export_imports_into_an_empty_bank_and_exports_the_same_bytes(run: Run, tmp_path: Path) -> None:
    run("disable", "shop-2")
    first, second, other = tmp_path / "1.jsonl", tmp_path / "2.jsonl", tmp_path / "other.sqlite"
    assert document(run("export", first, "--json"))["exported"] == 3
    for arguments in (["import", str(first)], ["export", str(second)]):
        assert CliRunner().invoke(cards_app, [*arguments, "--store", str(other)]).exit_code == 0
    assert second.read_bytes() == first.read_bytes()
    assert run("export", "--db", "bar").count("\n") == 1
    assert "imported 0, already there 3" in run("import", first)


def test_check_quarantines_what_no_longer_runs_and_releases_what_runs_again(run: Run, tmp_path: Path) -> None:
    shop = build(tmp_path / "shop.sqlite")
    connection = sqlite3.connect(shop)
    connection.execute("ALTER TABLE item RENAME COLUMN price TO cost")
    assert [quarantined["card"] for quarantined in document(run("check", "--db", shop, "--json"))["quarantined"]] == [
        "shop-2"
    ]
    assert "still quarantined: shop-2" in run("check", "--db", shop)
    connection.execute("ALTER TABLE item RENAME COLUMN cost TO price")
    connection.close()
    assert "--release serves them: shop-2" in run("check", "--db", shop)
    assert "released: shop-2" in run("check", "--db", shop, "--release")


def test_check_fails_in_ci_when_a_card_does_not_run(path: Path, tmp_path: Path) -> None:
    shop = build(tmp_path / "shop.sqlite")
    arguments = ["check", "--db", str(shop), "--store", str(path), "--fail"]
    assert CliRunner().invoke(cards_app, arguments).exit_code == 0
    with CardStore(path) as store:
        store.add(card(9, sql="SELECT nothing FROM nowhere"))
    assert CliRunner().invoke(cards_app, arguments).exit_code == 1


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["list", "--signal", "ungatd"], "signal: unknown value 'ungatd'; choose from oracle, ungated"),
        (["list", "--by", "bob"], "by: unknown value 'bob'; choose from benchmark, nobody"),
        (["list", "--writer", "W9"], "writer: unknown value 'W9'; choose from W0, W5"),
        (["list", "--db", "shp"], "database: unknown value 'shp'; choose from bar, shop"),
        (["disable", "--signal", "x"], "signal: unknown value 'x'; choose from oracle, ungated"),
        (["revoke"], "revoke: give one or more of by, signal, since"),
        (["revoke", "--since", "last week"], "since: 'last week' is not a day or time such as"),
        (["list", "--status", "actve"], "status: unknown value 'actve'; choose from active, disabled, quarantined"),
        (["show", "nobody"], "card 'nobody': not in"),
        (["show", "shop"], "card 'shop': several ids start so"),
        (["disable"], "give either card ids, or one or more of database, signal, by, writer"),
        (["disable", "shop-1", "--signal", "x"], "give either card ids, or"),
        (["edit", "shop-1", "--text", " "], "text: must not be empty"),
        (["export", "--json"], "--json: name a file"),
        (["export", "/nowhere/at/all.jsonl"], "cannot be written"),
        (["import", "nowhere.jsonl"], "nowhere.jsonl: cannot be read"),
        (["check", "--db", "nowhere.sqlite"], "no such file"),
    ],
)
def test_a_mistake_is_one_line_that_says_what_to_mend(run: Run, arguments: list[str], line: str) -> None:
    run(*arguments, fails=line)


def test_a_database_without_cards_is_answered_with_those_that_have_some(run: Run, tmp_path: Path) -> None:
    run("check", "--db", build(tmp_path / "other.sqlite"), fails="'other'; choose from bar, shop")


def test_a_mistake_leaves_by_exit_code_2_with_one_line_and_no_bank_is_made(tmp_path: Path) -> None:
    bank = tmp_path / "bank.sqlite"
    done = subprocess.run(
        [sys.executable, "-m", "sqlcrystal.interfaces.cli.app", "cards", "list"],
        env=os.environ | {"SQLCRYSTAL_STORE": str(bank)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"sqlcrystal: {bank}: there is no store here yet; ask first\n"
    assert not bank.exists()
