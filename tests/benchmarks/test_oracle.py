"""The oracle tells bits, judges each SQL once, and never blames an answer for a gold that fails."""

from pathlib import Path

import pytest
from msgspec.structs import replace

import scoring_data
from sqlcrystal.benchmarks.oracle import GoldOracle
from sqlcrystal.databases import open_database
from sqlcrystal.protocols import Database
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


def test_the_oracle_tells_one_bit_and_judges_each_sql_once(tmp_path: Path) -> None:
    own = scoring_data.make_own(tmp_path)
    database = Counting(open_database(own.locations["zoo"], name="zoo"))
    oracle, question = GoldOracle(own.cases, lambda _: database), own.cases[1].question
    said = ["SELECT name FROM pet LIMIT 2", "SELECT 1", "DROP TABLE pet"]
    assert [oracle.right(question, sql) for sql in said] == [True, False, False]
    asked = len(database.asked)
    assert oracle.right(question, said[0])
    assert len(database.asked) == asked
    assert (
        GoldOracle(own.cases, lambda _: database, check="bag").right(question, "SELECT name FROM pet LIMIT 2") is False
    )
    database.close()


def test_a_gold_that_fails_makes_its_question_unevaluable_and_no_answer_wrong_by_itself(tmp_path: Path) -> None:
    own = scoring_data.make_own(tmp_path)
    broken = replace(own.cases[0], sql="SELECT sentinel_of_gold FROM pet")
    database = open_database(own.locations["zoo"], name="zoo")
    oracle = GoldOracle([broken, own.cases[1]], lambda _: database)
    assert [oracle.evaluable(case.question) for case in (broken, own.cases[1])] == [False, True]
    judgement = oracle.judge(broken.question, "SELECT 1")
    assert judgement.named("bird") == "unevaluable"
    assert "sentinel" not in repr(judgement)
    database.close()


def test_an_answer_without_sql_is_wrong_under_every_rule(tmp_path: Path) -> None:
    own = scoring_data.make_own(tmp_path)
    judgement = GoldOracle(own.cases, lambda _: pytest.fail("nothing to run")).judge(own.cases[0].question, None)
    assert (judgement.named("bag"), set(judgement.rules.values())) == ("no SQL", {False})
