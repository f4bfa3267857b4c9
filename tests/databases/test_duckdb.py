"""What is DuckDB's own: the child processes that run it, and what it takes for a table."""

from pathlib import Path

import pytest

from sqlcrystal.databases import open_database
from sqlcrystal.databases.child import Child
from sqlcrystal.databases.duckdb import DuckdbDatabase
from sqlcrystal.types import Failure, FailureKind


def test_a_child_ends_with_the_exception_that_interrupts_its_statement(
    duckdb_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = open_database(duckdb_url)
    assert isinstance(database, DuckdbDatabase)
    [child] = database._idle

    def interrupted(_: Child, __: float) -> bytes:
        raise KeyboardInterrupt

    monkeypatch.setattr(Child, "answer", interrupted)
    with pytest.raises(KeyboardInterrupt):
        database.execute("SELECT 1")
    assert not Path(f"/proc/{child.pid}").exists()
    assert database._idle == []
    database.close()


@pytest.mark.parametrize("variable", ["sys", "statements", "connection", "request"])
def test_a_variable_of_the_child_is_no_table(duckdb_url: str, variable: str) -> None:
    database = open_database(duckdb_url)
    result = database.execute(f'SELECT * FROM "{variable}"')
    assert isinstance(result, Failure)
    assert result.kind is FailureKind.MISSING
    database.close()
