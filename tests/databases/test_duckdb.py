"""What is DuckDB's own: the child processes that run it."""

from pathlib import Path

import pytest

from sqlcrystal.databases import open_database
from sqlcrystal.databases.duckdb import DuckdbDatabase, _Child


def test_a_child_ends_with_the_exception_that_interrupts_its_statement(
    duckdb_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = open_database(duckdb_url)
    assert isinstance(database, DuckdbDatabase)
    [child] = database._idle

    def interrupted(_: _Child, __: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(_Child, "_answer", interrupted)
    with pytest.raises(KeyboardInterrupt):
        database.execute("SELECT 1")
    assert not Path(f"/proc/{child._process.pid}").exists()
    assert database._idle == []
    database.close()
