"""sqlcrystal.toml: what it may say, and the one line it gets when it says something else."""

from pathlib import Path

import pytest

from shop import build
from sqlcrystal.config import (
    DatabaseEntry,
    ExpectedValue,
    TeamFile,
    parse_team,
    read_team,
    resolve_secrets,
)
from sqlcrystal.errors import ConfigError, DataError, UserError

FULL = """
model = "http://127.0.0.1:8000/v1#coder"
store = "postgresql://crystal:${STORE_PASSWORD}@db/crystal"
people = ["ada", "bo"]

[databases.shop]
url = "shop.sqlite"
hints = "shop.md"
values = "never"
check = "check-answer --strict"
replay = true
hold_out = 0.1

[[databases.shop.assertion]]
sql = "SELECT 1 FROM {answer} HAVING count(*) > 0"

[[databases.shop.assertion]]
name = "no negative price"
sql = "SELECT count(*) FROM {answer} WHERE price < 0"
expect = { value = 0 }

[databases.sales]
url = "postgresql://reader:${SALES_PASSWORD}@db.example/sales"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "sqlcrystal.toml").write_text(FULL)
    (tmp_path / "shop.md").write_text("HW is hardware.")
    build(tmp_path / "shop.sqlite")
    return tmp_path


def test_everything_a_team_sets_up_is_read(folder: Path) -> None:
    team = read_team(folder / "sqlcrystal.toml")
    shop = team.database("shop")
    assert team.people == ("ada", "bo")
    assert (shop.values, shop.check, shop.replay, shop.hold_out) == ("never", "check-answer --strict", True, 0.1)
    assert [given.expect for given in shop.assertion] == ["rows", ExpectedValue(value=0)]
    assert team.database("sales") == DatabaseEntry(url="postgresql://reader:${SALES_PASSWORD}@db.example/sales")


def test_paths_are_meant_from_the_settings_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/")
    team = read_team(folder / "sqlcrystal.toml")
    assert team.database("shop").hints == str(folder / "shop.md")
    assert team.database("shop").url == str(folder / "shop.sqlite")


def test_an_empty_file_is_a_team_with_defaults() -> None:
    assert parse_team({}, folder=Path("/here")) == TeamFile(store="/here/sqlcrystal.db")


@pytest.mark.parametrize(
    ("url", "placed"),
    [
        ("data/a.sqlite", "/here/data/a.sqlite"),
        ("/there/a.sqlite", "/there/a.sqlite"),
        ("sqlite:///data/a.sqlite", "sqlite:////here/data/a.sqlite"),
        ("sqlite:////there/a.sqlite", "sqlite:////there/a.sqlite"),
        ("duckdb:///a.duckdb", "duckdb:////here/a.duckdb"),
        ("mysql://reader@host/shop", "mysql://reader@host/shop"),
    ],
)
def test_a_database_is_a_path_or_a_url(url: str, placed: str) -> None:
    assert parse_team({"databases": {"a": {"url": url}}}, folder=Path("/here")).database("a").url == placed


def test_secrets_come_from_the_environment_and_never_stand_in_the_settings(folder: Path) -> None:
    team = read_team(folder / "sqlcrystal.toml")
    url = resolve_secrets(
        team.database("sales").url, where="databases.sales.url", environment={"SALES_PASSWORD": "p@ss"}
    )
    assert url == "postgresql://reader:p%40ss@db.example/sales"
    assert "p@ss" not in repr(team)
    with pytest.raises(ConfigError, match=r"^databases.sales.url: \$\{SALES_PASSWORD\} is not set in the environment$"):
        resolve_secrets(team.database("sales").url, where="databases.sales.url")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("modle = 'x'", "sqlcrystal.toml: key: unknown value 'modle'; choose from budget, cards, databases"),
        ("people = 'ada'", "sqlcrystal.toml: people: Expected array, got str"),
        ("databases = 3", "sqlcrystal.toml: databases: write one [databases.NAME] table for each"),
        ("databases.shop = 'x'", "sqlcrystal.toml: databases.shop: must be a table"),
        ("[databases.shop]", "sqlcrystal.toml: databases.shop: Object missing required field url"),
        ("databases.shop.url = 3", "sqlcrystal.toml: databases.shop.url: Expected str, got int"),
        (
            "databases.shop.ulr = 'x'",
            "sqlcrystal.toml: databases.shop: key: unknown value 'ulr'; choose from allow_privileged, assertion",
        ),
        (
            "[databases.s]\nurl='x'\nvalues='some'",
            "sqlcrystal.toml: databases.s.values: Invalid enum value 'some'; choose from allowed, never",
        ),
        (
            "[databases.s]\nurl='x'\nchoice='best'",
            "sqlcrystal.toml: databases.s.choice: Invalid enum value 'best'; choose from agreement, signs, none",
        ),
        ("[databases.s]\nurl='x'\nhold_out=1.0", "sqlcrystal.toml: databases.s.hold_out: must be a share from 0"),
        ("[databases.s]\nurl='x'\nhints='no.md'", "sqlcrystal.toml: databases.s.hints: no such file"),
        (
            "[databases.s]\nurl='x'\n[[databases.s.assertion]]\nsq='x'",
            "databases.s.assertion 1: key: unknown value 'sq'",
        ),
        ("budget = -1", "sqlcrystal.toml: budget: needs at least 0"),
        ("model = ", "sqlcrystal.toml: not TOML"),
    ],
)
def test_a_mistake_is_one_line_that_names_the_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, line: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("sqlcrystal.toml").write_text(text)
    with pytest.raises(UserError) as caught:
        read_team()
    assert line in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_file_and_an_unknown_database_say_what_to_do(folder: Path) -> None:
    with pytest.raises(DataError, match="no such file; `sqlcrystal init` writes one"):
        read_team(folder / "other.toml")
    with pytest.raises(ConfigError, match="'shp'; choose from sales, shop"):
        read_team(folder / "sqlcrystal.toml").database("shp")
