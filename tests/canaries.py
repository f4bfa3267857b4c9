"""What no statement may do, looked at from outside the locks: each canary sings when its own thing has happened.

Watched are files, connections, processes, locks, rows and schema, the memory of the calling process, and secrets that
were planted to be looked for. On DuckDB locks are not: its readers share one lock on the file for as long as they have
it open.
"""

import os
import secrets
import socket
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from engines import Server, driver
from memory import forget_the_peak, peak_megabytes
from processes import Processes
from sqlcrystal.databases import open_database
from sqlcrystal.types import Rows

PATIENCE = 30.0
"""A server may take so long to notice that a session of it is gone, or to end a function that nothing interrupts."""
GROWTH = 500
"""So many megabytes may the calling process grow by."""
TABLES = ("team", "player", "scorer")
VARIABLE = "SQLCRYSTAL_CANARY"
_POSTGRES_LOCKS = """
SELECT count(*) FROM pg_locks JOIN pg_stat_activity USING (pid)
WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'
"""
_MYSQL_LOCKS = """
SELECT (SELECT count(*) FROM information_schema.INNODB_TRX)
  + (SELECT count(*) FROM information_schema.METADATA_LOCK_INFO WHERE THREAD_ID <> CONNECTION_ID())
"""


class Canaries:
    """All of them, for one engine."""

    def __init__(self, engine: str, server: Server, folder: Path) -> None:
        """The folder is one that every account may write to: else a file would be missing for another reason."""
        self.evil = folder / "evil"
        self.secret = folder / "secret"
        self.program = folder / "program"
        self.program.write_text(f"#!/bin/sh\necho ran > {self.evil}-ran\n", encoding="utf-8")
        self.program.chmod(0o755)
        self._engine = engine
        self._server = server
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self.connections = 0
        threading.Thread(target=self._listen, daemon=True).start()
        self._owner = _watcher(engine, server)
        self.secrets = self._planted()
        self._before = self._content()
        self._processes = Processes(engine, server.process)
        forget_the_peak()
        self._megabytes = peak_megabytes()

    def _listen(self) -> None:
        with suppress(OSError):
            while True:
                line, _ = self._listener.accept()
                self.connections += 1
                line.close()

    def sung(self, patience: float | None = None) -> list[str]:
        """Which of those that cost nothing to ask have sung; a statement known to run on needs more patience."""
        heard = []
        if written := [path.name for path in self.evil.parent.glob("evil*")]:
            heard.append(f"a file was written: {written}")
        if self.connections:
            heard.append("a connection was made")
        if strangers := self._processes.strangers():
            heard.append(f"a process was started: {strangers}")
        if (grown := peak_megabytes() - self._megabytes) > GROWTH:
            heard.append(f"this process grew by {grown} MB")
        if self._is_locked(PATIENCE if patience is None else patience):
            heard.append("a lock is held")
        return heard

    def sung_at_all(self) -> list[str]:
        """Which of all have."""
        return self.sung() + (["rows or schema changed"] if self._content() != self._before else [])

    def told(self, result: Any) -> list[str]:
        """Which planted secrets the rows of a result hold."""
        text = repr(result.rows) if isinstance(result, Rows) else str(result.message)
        return [name for name, secret in self.secrets.items() if secret in text]

    def close(self) -> None:
        """Stop listening."""
        self._listener.close()
        self._owner.close()
        os.environ.pop(VARIABLE, None)

    def _is_locked(self, patience: float) -> bool:
        deadline = time.monotonic() + patience
        while self._locks():
            if time.monotonic() > deadline:
                return True
            time.sleep(0.1)
        return False

    def _locks(self) -> int:
        """How many locks others hold, this moment."""
        if self._engine == "sqlite":
            try:
                self._owner.execute("BEGIN EXCLUSIVE")
            except sqlite3.OperationalError:
                return 1
            self._owner.execute("ROLLBACK")
        if self._engine in {"sqlite", "duckdb"}:
            return 0
        return int(self._asked(_POSTGRES_LOCKS if self._engine == "postgres" else _MYSQL_LOCKS)[0][0])

    def _asked(self, sql: str) -> list[tuple[Any, ...]]:
        cursor = self._owner.cursor()
        cursor.execute(sql)
        return list(cursor.fetchall()) if cursor.description else []

    def _content(self) -> str:
        database = open_database(self._server.owner, allow_privileged=True)
        tables = [database.execute(f"SELECT * FROM {name} ORDER BY 1") for name in TABLES]
        schema = database.schema()
        database.close()
        return repr([result.rows if isinstance(result, Rows) else result for result in tables]) + schema

    def _planted(self) -> dict[str, str]:
        """A variable of the environment, a file, and an account with a password, by what a thief would see of them."""
        planted = {name: secrets.token_hex(8) for name in ("environment", "file")}
        os.environ[VARIABLE] = planted["environment"]
        self.secret.write_text(planted["file"], encoding="utf-8")
        planted["accounts"] = "root:x:0:0"
        if self._engine == "postgres":
            self._asked(f"ALTER ROLE sqlcrystal_reader PASSWORD '{secrets.token_hex(8)}'")
            planted["password"] = self._asked("SELECT max(rolpassword) FROM pg_authid")[0][0]
        elif self._engine == "mysql":
            self._asked(f"CREATE OR REPLACE USER canary@localhost IDENTIFIED BY '{secrets.token_hex(8)}'")
            planted["password"] = self._asked("SELECT authentication_string FROM mysql.user WHERE user = 'canary'")[0][
                0
            ]
        return planted


def _watcher(engine: str, server: Server) -> Any:
    """The owner's own connection, with no lock of ours before it."""
    if engine == "duckdb":  # which would keep the file locked
        return sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    connection = driver(engine, server)
    if engine == "mysql":
        import pymysql

        with suppress(pymysql.MySQLError), connection.cursor() as cursor:  # it is there from the canaries before
            cursor.execute("INSTALL SONAME 'metadata_lock_info'")
    return connection


@contextmanager
def watching(engine: str, server: Server, folder: Path) -> Iterator[Canaries]:
    """Canaries that stop listening at the end."""
    canaries = Canaries(engine, server, folder)
    try:
        yield canaries
    finally:
        canaries.close()
