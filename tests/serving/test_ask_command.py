"""`sqlcrystal ask|confirm|reject|queue` in an empty folder, with a model behind a real endpoint."""

import io
import os
import shutil
import socket
import sqlite3
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from serving_commands import Done, run_command
from serving_endpoint import model_at, scripted_endpoint, snapshot
from shop import RIGHT, WRONG, build, repairing

ASKED = "How many hardware items are there?"
Run = Callable[..., Done]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SQLCRYSTAL_API_KEY", raising=False)
    return build(tmp_path / "shop.sqlite").parent


@pytest.fixture
def run(folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    return lambda *arguments: run_command(capsys, monkeypatch, *arguments)


@pytest.fixture(scope="module")
def model() -> Iterator[str]:
    with scripted_endpoint(repairing) as server:
        yield model_at(server)


@pytest.fixture
def asked(run: Run, model: str) -> str:
    """The id of an answer."""
    return str(run("ask", ASKED, "--db", "shop.sqlite", "--model", model, "--json").document["id"])


# ── the loop ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_one_command_leads_from_nothing_to_an_answer(run: Run, model: str, folder: Path) -> None:
    done = run("ask", ASKED, "--db", "shop.sqlite", "--model", model, "--json")
    document = done.document
    assert (done.code, done.err) == (0, "")
    assert document | {"id": "", "seconds": 0} == {
        "id": "",
        "database": "shop",
        "question": ASKED,
        "sql": RIGHT,
        "words": "Counts items whose kind is 'HW'.",
        "unasked": [],
        "columns": ["COUNT(*)"],
        "rows": [[2]],
        "row_count": 1,
        "truncated": False,
        "cards": [],
        "memory": None,
        "replayed": False,
        "adapted": False,
        "audit": False,
        "offer": None,
        "readings": [],
        "definitions": [],
        "verdict": "",
        "card": "",
        "checked": "",
        "repaired": True,
        "follows": None,
        "confidence": document["confidence"],
        "calls": 3,
        "prompt_tokens": 21,
        "completion_tokens": 9,
        "seconds": 0,
        "error": "",
    }
    assert 0 < document["confidence"] < 1
    assert sorted(path.name for path in folder.iterdir()) == ["shop.sqlite", "sqlcrystal.db"]


def test_after_the_first_question_neither_database_nor_model_has_to_be_named(run: Run, asked: str) -> None:
    confirmed = run("confirm", asked, "--by", "ada", "--json").document
    again = run("ask", "How many hardware items cost over 100?", "--json").document
    assert (confirmed["id"], again["database"]) == (asked, "shop")
    assert [(card["id"], card["signal"], card["by"]) for card in again["cards"]] == [(confirmed["card"], "user", "ada")]


def test_a_person_sees_sql_rows_cards_with_who_vouched_cost_and_id(run: Run, asked: str) -> None:
    card = run("confirm", asked, "--by", "ada", "--json").document["card"]
    shown = run("ask", ASKED).out
    assert RIGHT in shown
    assert "COUNT(*)\n--------\n       2\n(1 row)" in shown
    assert f"card {card}  1.00  user ada  {ASKED}" in shown
    assert "1 call, 7 + 3 tokens" in shown  # the query of a card stands at once
    assert "sqlcrystal confirm" in shown


def test_the_trace_shows_what_was_tried(run: Run, model: str) -> None:
    shown = run("ask", ASKED, "--db", "shop.sqlite", "--model", model, "--trace").out
    assert f"first attempt: {WRONG}" in shown
    assert "probe: SELECT DISTINCT kind FROM item → 2 rows: HW, FD" in shown


def test_a_users_own_sql_is_shown_and_banked_as_theirs(run: Run, asked: str) -> None:
    document = run("reject", asked, "--sql", "SELECT count(*) FROM item", "--by", "ada", "--json").document
    assert (document["id"], document["rows"]) == (asked, [[3]])
    (card,) = run("cards", "list", "--json").document
    assert (card["id"], card["sql"], card["by"]) == (document["card"], "SELECT count(*) FROM item", "ada")


def test_what_waits_is_listed_until_a_verdict(run: Run, asked: str) -> None:
    assert [waiting["id"] for waiting in run("queue", "--json").document] == [asked]
    run("confirm", asked)
    assert run("queue", "--json").document == []


def test_a_recurring_question_is_replayed_where_allowed(run: Run, asked: str) -> None:
    run("confirm", asked)
    document = run("ask", ASKED.lower(), "--replay", "--json").document
    assert (document["replayed"], document["calls"], document["rows"]) == (True, 0, [[2]])


def test_a_question_can_come_from_standard_input(run: Run, model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(ASKED.encode()), isatty=lambda: False))
    assert run("ask", "-", "--db", "shop.sqlite", "--model", model, "--json").document["question"] == ASKED


def test_two_databases_of_one_file_name_are_not_taken_for_one(run: Run, asked: str, model: str, folder: Path) -> None:
    (folder / "other").mkdir()
    shutil.copy("shop.sqlite", folder / "other" / "shop.sqlite")
    done = run("ask", ASKED, "--db", "other/shop.sqlite", "--model", model)
    assert done.code == 2
    assert "--name" in done.err
    named = run("ask", ASKED, "--db", "other/shop.sqlite", "--name", "second", "--model", model, "--json").document
    assert named["database"] == "second"


def test_without_an_option_the_store_is_the_one_that_settings_name(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "sqlcrystal.toml").write_text('store = "${TEAM}.db"\n[databases.shop]\nurl = "shop.sqlite"\n')
    monkeypatch.setenv("TEAM", "blue")
    assert run("token", "create", "bo", "--db", "shop").code == 0
    assert (folder / "blue.db").is_file()


# ── the team's rules hold for commands ───────────────────────────────────────────────────────────────────────────────


def settle(folder: Path, model: str, *, team: str = "", database: str = "") -> None:
    """Write settings for the shop."""
    lines = [f'model = "{model}"', team, "[databases.shop]", 'url = "shop.sqlite"', database]
    (folder / "sqlcrystal.toml").write_text("\n".join(lines))


STRANGE = {
    "edit": ("cards", "edit", "CARD", "--text", "other"),
    "disable": ("cards", "disable", "CARD"),
    "disable a group": ("cards", "disable", "--signal", "user"),
    "delete": ("cards", "delete", "CARD"),
    "revoke": ("cards", "revoke", "--by", "ada"),
    "forget": ("forget", "--value", "HW"),
    "confirm": ("confirm", "ID"),
}


@pytest.mark.parametrize("name", STRANGE)
def test_a_person_whom_the_team_does_not_know_changes_nothing(
    run: Run, asked: str, model: str, folder: Path, name: str
) -> None:
    card = run("confirm", asked, "--by", "ada", "--json").document["card"]
    settle(folder, model, team='people = ["ada"]')
    before = snapshot(folder)
    done = run(*({"CARD": card, "ID": asked}.get(argument, argument) for argument in STRANGE[name]))
    assert (done.code, done.out) == (2, "")
    assert "choose from ada" in done.err
    assert snapshot(folder) == before


def test_neither_text_nor_reason_is_kept_where_values_never_are(run: Run, asked: str, model: str, folder: Path) -> None:
    card = run("confirm", asked, "--json").document["card"]
    settle(folder, model, database='values = "never"')
    run("cards", "disable", card, "--reason", "it names Zacharias")
    run("cards", "edit", card, "--text", "Zacharias", "--reason", "Zacharias")
    shown = run("cards", "show", card, "--json")
    assert shown.document["status"] == "disabled"
    assert "Zacharias" not in shown.out


def test_a_token_is_made_only_for_a_database_that_is_known(run: Run, asked: str) -> None:
    refused = run("token", "create", "bo", "--db", "ship")
    assert (refused.code, "choose from" in refused.err) == (2, True)
    issued = run("token", "create", "bo", "--db", "shop", "--json").document
    (listed,) = run("token", "list", "--json").document
    assert (listed["id"], listed["state"], "token" in listed) == (issued["id"], "stands", False)


# ── bad input: one line, and nothing changes ─────────────────────────────────────────────────────────────────────────


def closed_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


BAD = {
    "unknown database": (("ask", ASKED, "--db", "ship"), 2, "choose from shop"),
    "missing file": (("ask", ASKED, "--db", "sqlite:///ship.sqlite"), 2, "no such file"),
    "broken URL": (("ask", ASKED, "--db", "postgresql://[::1"), 2, "database"),
    "unknown scheme": (("ask", ASKED, "--db", "oracle://host/db"), 2, "choose from"),
    "no database file": (("ask", ASKED, "--db", "no.sqlite"), 2, "not a database"),
    "dead endpoint": (("ask", ASKED, "--model", f"http://127.0.0.1:{closed_port()}/v1#m"), 1, "127.0.0.1"),
    "unknown model": (("ask", ASKED, "--model", "gpt-9"), 2, "choose from"),
    "empty question": (("ask", " "), 2, "question: is empty"),
    "long question": (("ask", "x" * 100_000), 2, "at most 10,000"),
    "question of 1 MB": (("ask", "-"), 2, "at most 10,000"),
    "wrong key": (("ask", ASKED, "--model", "LOCKED", "--api-key-env", "TEAM_KEY"), 1, "the key came from TEAM_KEY"),
    "no key": (("ask", ASKED, "--model", "LOCKED"), 1, "no key was sent"),
    "key that is not set": (("ask", ASKED, "--model", "LOCKED", "--api-key-env", "NO_KEY"), 2, "NO_KEY is not set"),
    "unknown answer": (("confirm", "zzz"), 2, "not in"),
    "unknown answer, rejected": (("reject", "zzz", "--sql", RIGHT), 2, "not in"),
    "unknown card": (("cards", "show", "zzz"), 2, "not in"),
    "value of an unknown database": (("value", "--db", "ship"), 2, "choose from shop"),
    "tests that are not there": (("test", "no.yaml"), 2, "no.yaml"),
    "cards that are none": (("cards", "import", "no.sqlite"), 2, "line 1: not an exported card"),
    "nothing to forget": (("forget",), 2, "either a question or a value"),
    "unknown proposal": (("confirm", "p-zzz"), 2, "not in"),
    "SQL that writes": (("reject", "ID", "--sql", "DROP TABLE item"), 2, "nothing was changed"),
    "SQL that fails": (("reject", "ID", "--sql", "SELECT nope FROM item"), 2, "nothing was changed"),
    "store of another kind": (("ask", ASKED, "--store", "shop.sqlite"), 2, "not a card bank"),
    "store of a newer version": (("ask", ASKED, "--store", "newer.db"), 2, "newer sqlcrystal"),
    "broken store URL": (("queue", "--store", "postgresql://host:port/db"), 2, "store"),
    "store elsewhere": (("queue", "--store", "mongodb://host/db"), 2, "choose from"),
}


@pytest.fixture(scope="module")
def locked() -> Iterator[str]:
    """A model that wants a key nobody here has."""
    with scripted_endpoint(repairing, key="right") as server:
        yield model_at(server)


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_one_line_and_changes_nothing(
    run: Run, asked: str, locked: str, folder: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("TEAM_KEY", "a-wrong-key")
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b"x" * 2**20), isatty=lambda: False))
    (folder / "no.sqlite").write_text("this is no database, however long it is made to be")
    shutil.copy("sqlcrystal.db", "newer.db")
    with sqlite3.connect("newer.db") as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    connection.close()
    before = snapshot(folder)
    arguments, code, complaint = BAD[name]
    done = run(*({"ID": asked, "LOCKED": locked}.get(argument, argument) for argument in arguments))
    assert (done.code, done.out) == (code, ""), done.err
    assert complaint in done.err
    assert done.err.startswith("sqlcrystal: ")
    assert done.err.count("\n") == 1
    assert "a-wrong-key" not in done.err
    assert snapshot(folder) == before


def test_a_wrong_key_is_one_line_and_makes_no_store(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEAM_KEY", "wrong")
    with scripted_endpoint(repairing, key="right") as server:
        done = run("ask", ASKED, "--db", "shop.sqlite", "--model", model_at(server), "--api-key-env", "TEAM_KEY")
    assert (done.code, done.err.count("\n")) == (1, 1)
    assert "401" in done.err
    assert "TEAM_KEY" in done.err
    assert "wrong" not in done.err
    assert not (folder / "sqlcrystal.db").exists()


def test_weights_that_are_not_here_are_not_pulled_unasked(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SQLCRYSTAL_CACHE", str(folder / "cache"))
    done = run("ask", ASKED, "--db", "shop.sqlite")
    assert done.code == 2
    assert "sqlcrystal model pull qwen2.5-coder-1.5b" in done.err
    assert os.listdir(folder) == ["shop.sqlite"]


def test_without_a_database_the_next_step_is_named(run: Run, folder: Path) -> None:
    assert "sqlcrystal init" in run("ask", ASKED, "--model", "http://127.0.0.1:9/v1#m").err
