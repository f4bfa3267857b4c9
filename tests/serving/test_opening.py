"""A service opens as `ask` would: of settings, of options, or of what the store knows."""

from pathlib import Path

import pytest

from serving_commands import run_command
from serving_endpoint import model_at, scripted_endpoint
from shop import build, repairing
from sqlcrystal.errors import ConfigError
from sqlcrystal.serving.opening import open_service

SETTINGS = Path("sqlcrystal.toml")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    build(tmp_path / "shop.sqlite")


def test_without_settings_it_serves_what_was_asked_before_with_the_model_that_answered(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with scripted_endpoint(repairing) as server:
        asked = ("ask", "How many hardware items are there?", "--db", "shop.sqlite", "--model", model_at(server))
        assert run_command(capsys, monkeypatch, *asked).code == 0
        with open_service(SETTINGS) as crystal:
            assert (crystal.workspace.names(), crystal.workspace.team.model) == (["shop"], model_at(server))
        with open_service(SETTINGS, model="another") as crystal:
            assert crystal.workspace.team.model == "another"


def test_beside_settings_a_model_may_be_named_and_a_database_may_not() -> None:
    SETTINGS.write_text('model = "one"\n[databases.shop]\nurl = "shop.sqlite"\n')
    with open_service(SETTINGS) as crystal:
        assert crystal.workspace.team.model == "one"
    with open_service(SETTINGS, model="another") as crystal:
        assert (crystal.workspace.names(), crystal.workspace.team.model) == (["shop"], "another")
    with pytest.raises(ConfigError, match=r"--db, --store: sqlcrystal\.toml says these"):
        open_service(SETTINGS, db="shop.sqlite")


def test_with_nothing_to_serve_it_says_what_to_give() -> None:
    with pytest.raises(ConfigError, match="give --db FILE or URL, or run: sqlcrystal init"):
        open_service(SETTINGS)
