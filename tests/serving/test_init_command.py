"""`sqlcrystal init` writes settings that work, or says in one line what does not."""

import os
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from servers import new_postgres_database, running_postgres
from serving_commands import Done, run_command
from serving_endpoint import model_at, scripted_endpoint
from shop import RIGHT, build, repairing
from sqlcrystal import Crystal

Run = Callable[..., Done]


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.chdir(tmp_path)
    build(tmp_path / "shop.sqlite")
    return lambda *arguments: run_command(capsys, monkeypatch, *arguments)


def test_what_init_writes_answers_the_next_question(run: Run, tmp_path: Path) -> None:
    with scripted_endpoint(repairing) as server:
        done = run("init", "--db", "shop.sqlite", "--model", model_at(server), "--person", "ada")
        assert (done.code, done.err) == (0, "")
        assert not (tmp_path / "sqlcrystal.db").exists()
        answer = run("ask", "How many hardware items are there?", "--json").document
    assert (answer["database"], answer["sql"]) == ("shop", RIGHT)
    assert run("confirm", answer["id"], "--by", "mallory").err.endswith("choose from ada\n")


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("--db", "ship.sqlite"), "ship.sqlite"),
        (("--db", "shop=postgresql://reader@127.0.0.1:1/shop"), "127.0.0.1"),
        (("--db", "shop.sqlite", "--store", "nowhere/team.db"), "nowhere"),
        (("--db", "shop.sqlite", "--model", "http://127.0.0.1:1/v1#m"), "127.0.0.1:1"),
    ],
)
def test_what_cannot_be_reached_is_one_line_and_nothing_is_written(
    run: Run, tmp_path: Path, arguments: tuple[str, ...], complaint: str
) -> None:
    with scripted_endpoint(repairing) as server:
        done = run("init", "--model", model_at(server), *arguments)
    assert (done.code, done.err.count("\n"), done.out) == (1, 1, "")
    assert complaint in done.err
    assert os.listdir(tmp_path) == ["shop.sqlite"]


def test_settings_that_are_there_stay(run: Run, tmp_path: Path) -> None:
    (tmp_path / "sqlcrystal.toml").write_text("# mine\n")
    assert run("init", "--db", "shop.sqlite").code == 2
    assert (tmp_path / "sqlcrystal.toml").read_text() == "# mine\n"


def test_without_a_terminal_the_database_has_to_be_named(run: Run) -> None:
    done = run("init")
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert "--db" in done.err


def test_a_password_stays_out_of_the_file(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import psycopg

    monkeypatch.setenv("SHOP_PASSWORD", "s3cret/@word")
    with running_postgres() as server, scripted_endpoint(repairing) as model:
        url = new_postgres_database(server, "shop")
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("CREATE ROLE reader LOGIN PASSWORD 's3cret/@word'")
            connection.execute("CREATE TABLE item (kind text)")
            connection.execute("GRANT SELECT ON item TO reader")
        given = "postgresql://reader:s3cret%2F%40word@/shop?" + url.partition("?")[2]
        done = run("init", "--db", f"shop={given}", "--model", model_at(model))
    assert (done.code, done.err) == (0, "")
    assert "SHOP_PASSWORD" in done.out
    written = tomllib.loads((tmp_path / "sqlcrystal.toml").read_text())
    assert "${SHOP_PASSWORD}" in written["databases"]["shop"]["url"]
    assert "s3cret" not in (tmp_path / "sqlcrystal.toml").read_text()


def test_a_privileged_account_that_init_was_told_to_accept_is_accepted_by_ask(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running_postgres() as server, scripted_endpoint(repairing) as model:
        url = new_postgres_database(server, "shop")
        given = ("--db", f"shop={url}", "--model", model_at(model))
        refused = run("init", *given)
        assert (refused.code, "--allow-privileged" in refused.err) == (1, True)
        monkeypatch.setattr("sqlcrystal.databases._accepted", {"allow-privileged": True})
        assert run("init", *given).code == 0
        monkeypatch.setattr("sqlcrystal.databases._accepted", {"allow-privileged": False})
        written = tomllib.loads((tmp_path / "sqlcrystal.toml").read_text())
        assert written["databases"]["shop"]["allow_privileged"] is True
        with Crystal.open(tmp_path / "sqlcrystal.toml") as crystal:
            assert crystal.run("SELECT 1").rows == ((1,),)
