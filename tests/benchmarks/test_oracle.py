"""The oracle tells one bit, runs gold once, and never blames an answer for a gold that fails."""

from pathlib import Path

import pytest
from msgspec.structs import replace

import scoring_data
from sqlcrystal.benchmarks.oracle import check_for, verdict_for
from sqlcrystal.databases import open_database
from sqlcrystal.errors import DataError
from sqlcrystal.protocols import Database
from sqlcrystal.scoring import Kind
from sqlcrystal.types import Execution


class Counting:
    """A real database that remembers what it was asked."""

    def __init__(self, inner: Database) -> None:
        self.name, self.dialect, self.inner = inner.name, inner.dialect, inner
        self.asked: list[str] = []

    def execute(self, sql: str, *, timeout: float = 30.0, max_rows: int = 100_000) -> Execution:
        self.asked.append(sql)
        return self.inner.execute(sql, timeout=timeout, max_rows=max_rows)

    def schema(self) -> str:
        return self.inner.schema()

    def fingerprint(self) -> str:
        return self.inner.fingerprint()

    def close(self) -> None:
        self.inner.close()


def test_the_check_is_one_bit_and_gold_runs_once(tmp_path: Path) -> None:
    own = scoring_data.make_own(tmp_path)
    database = Counting(open_database(own.locations["zoo"], name="zoo"))
    check = check_for(own.cases[1], database)
    assert [check("SELECT name FROM pet LIMIT 2"), check("SELECT 1"), check("DROP TABLE pet")] == [True, False, False]
    assert database.asked.count(own.cases[1].sql) == 1
    assert check_for(own.cases[1], database, rule="bag")("SELECT name FROM pet LIMIT 2") is False
    database.close()


def test_a_gold_that_fails_is_told_without_its_text(tmp_path: Path) -> None:
    own = scoring_data.make_own(tmp_path)
    broken = replace(own.cases[0], sql="SELECT sentinel_of_gold FROM pet")
    database = open_database(own.locations["zoo"], name="zoo")
    assert verdict_for(broken, database)("SELECT 1").kind is Kind.GOLD_ERROR
    with pytest.raises(DataError, match="question a of zoo: its gold does not run") as caught:
        check_for(broken, database)("SELECT 1")
    assert "sentinel" not in str(caught.value)
    database.close()
