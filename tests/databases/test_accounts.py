"""Which accounts of a server are opened: those that read, and no other unless the user says so."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from engines import Server, driver
from sqlcrystal.databases import open_database
from sqlcrystal.errors import ConfigError
from sqlcrystal.types import Rows

POSTGRES = {
    "CREATEROLE": "ALTER ROLE suspect CREATEROLE",
    "CREATEDB": "ALTER ROLE suspect CREATEDB",
    "REPLICATION": "ALTER ROLE suspect REPLICATION",
    "BYPASSRLS": "ALTER ROLE suspect BYPASSRLS",
    "the rights of pg_write_all_data": "GRANT pg_write_all_data TO suspect",
    "the rights of pg_signal_backend": "GRANT pg_signal_backend TO suspect",
    "more than SELECT on team": "GRANT ALL ON team TO suspect",
    "more than SELECT on player": "GRANT UPDATE (goals) ON player TO suspect",
    "CREATE on the database": "GRANT CREATE ON DATABASE league TO suspect",
    "CREATE in schema public": "GRANT CREATE ON SCHEMA public TO suspect",
    "SUPERUSER": "GRANT captain TO suspect",
}
MYSQL = {
    "ALL PRIVILEGES on `league`.*": "GRANT ALL ON league.* TO suspect@'%'",
    "INSERT on `league`.*": "GRANT INSERT ON league.* TO suspect@'%'",
    "UPDATE on `league`.`player`": "GRANT UPDATE (goals) ON league.player TO suspect@'%'",
    "DROP on *.*": "GRANT DROP ON *.* TO suspect@'%'",
    "CREATE USER on *.*": "GRANT CREATE USER ON *.* TO suspect@'%'",
    "CREATE TEMPORARY TABLES on `league`.*": "GRANT CREATE TEMPORARY TABLES ON league.* TO suspect@'%'",
    "GRANT OPTION on `league`.*": "GRANT SELECT ON league.* TO suspect@'%' WITH GRANT OPTION",
    "DELETE on `league`.*": "GRANT captain TO suspect@'%'",
}


@contextmanager
def account(engine: str, server: Server, grant: str) -> Iterator[str]:
    """A reader with one grant more, by its URL."""
    owner = driver(engine, server)
    made = {
        "postgres": [
            "CREATE ROLE captain SUPERUSER",
            "CREATE ROLE suspect LOGIN",
            "GRANT SELECT ON team, player TO suspect",
        ],
        "mysql": [
            "CREATE ROLE captain",
            "GRANT DELETE ON league.* TO captain",
            "CREATE USER suspect@'%'",
            "GRANT SELECT, SHOW VIEW ON league.* TO suspect@'%'",
        ],
    }
    ended = {
        "postgres": ["DROP OWNED BY suspect", "DROP ROLE suspect", "DROP ROLE captain"],
        "mysql": ["DROP USER suspect@'%'", "DROP ROLE captain"],
    }
    try:
        for statement in [*made[engine], *([grant] if grant else [])]:
            owner.cursor().execute(statement)
        yield server.reader.replace("sqlcrystal_reader", "suspect")
    finally:
        for statement in ended[engine]:
            owner.cursor().execute(statement)
        owner.close()


@pytest.mark.parametrize(
    ("engine_name", "power", "grant"),
    [(engine, *grant) for engine, grants in (("postgres", POSTGRES), ("mysql", MYSQL)) for grant in grants.items()],
)
def test_an_account_with_one_grant_too_many_is_refused_and_the_grant_is_named(
    engine_name: str, power: str, grant: str, request: pytest.FixtureRequest
) -> None:
    server = request.getfixturevalue(f"{engine_name}_server")
    with account(engine_name, server, grant) as url:
        with pytest.raises(ConfigError, match="make a reader: CREATE") as caught:
            open_database(url)
        assert power in str(caught.value)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("engine_name", ["postgres", "mysql"])
def test_an_account_that_only_reads_is_opened(engine_name: str, request: pytest.FixtureRequest) -> None:
    server = request.getfixturevalue(f"{engine_name}_server")
    with account(engine_name, server, "") as url:
        database = open_database(url)
        result = database.execute("SELECT count(*) FROM team")
        database.close()
    assert isinstance(result, Rows)


@pytest.mark.parametrize("engine_name", ["postgres", "mysql"])
def test_an_account_that_may_do_more_than_read_is_refused(engine_name: str, request: pytest.FixtureRequest) -> None:
    server = request.getfixturevalue(f"{engine_name}_server")
    with pytest.raises(ConfigError, match="make a reader: CREATE") as caught:
        open_database(server.owner)
    assert "\n" not in str(caught.value)
    for database in (
        open_database(server.owner, allow_privileged=True),
        open_database(f"{server.owner}#allow-privileged"),
    ):
        assert isinstance(database.execute("SELECT count(*) FROM team"), Rows)
        database.close()


def test_the_command_line_opens_such_an_account_when_told_to(mysql_server: Server, tmp_path: Path) -> None:
    (tmp_path / "q.jsonl").write_text(
        json.dumps({"question": "q", "sql": "SELECT count(*) FROM team", "database": "league"})
    )
    command = [
        sys.executable,
        "-m",
        "sqlcrystal.interfaces.cli.app",
        "benchmark",
        "check",
        "own",
        "--data",
        str(tmp_path),
    ]
    command += ["--databases", f"league={mysql_server.owner}"]
    refused = subprocess.run(command, capture_output=True, text=True, check=False)
    assert refused.returncode == 2
    assert "--allow-privileged" in refused.stderr
    allowed = subprocess.run([*command, "--allow-privileged"], capture_output=True, text=True, check=False)
    assert allowed.returncode == 0, allowed.stderr
