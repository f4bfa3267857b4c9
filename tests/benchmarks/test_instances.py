"""The rule `instances`: an answer is right only if it is right on every generated instance of its database."""

import sqlite3

import pytest

from sqlcrystal.benchmarks.catalogue import load_benchmark, with_instances
from sqlcrystal.benchmarks.evaluate import score_predictions
from sqlcrystal.benchmarks.oracle import GoldOracle
from sqlcrystal.databases import open_database
from sqlcrystal.errors import ConfigError
from sqlcrystal.scoring.verdicts import INSTANCES

ORCHARD = load_benchmark("quarry").only(["orchard"])


def spelled_out(sql: str) -> str:
    """A query that returns what gold returns on the database that is shipped, and looks nothing up."""
    with sqlite3.connect(ORCHARD.locations["orchard"]) as connection:
        rows = connection.execute(sql).fetchall()
    values = ", ".join("(" + ", ".join(map(literal, row)) + ")" for row in rows)
    return f"VALUES {values}" if rows else "SELECT 1 WHERE 0"


def literal(value: object) -> str:
    return "NULL" if value is None else repr(value)


def test_an_answer_that_only_fits_the_shipped_rows_is_wrong_on_other_instances() -> None:
    golds = [case.sql for case in ORCHARD.cases]
    learned = [spelled_out(sql) for sql in golds]
    by_rule = {
        rule: score_predictions(ORCHARD, {"gold": golds, "learned": learned}, rule=rule, jobs=1)
        for rule in ("bird", INSTANCES)
    }
    assert [result.report.correct for result in by_rule["bird"]] == [len(golds), len(golds)]
    gold, hard_coded = (result.report.correct for result in by_rule[INSTANCES])
    assert gold == len(golds)
    assert hard_coded < len(golds) / 3


def test_the_oracle_judges_by_instances_where_it_is_given_them() -> None:
    benchmark = with_instances(ORCHARD, INSTANCES)
    opened = {
        location: open_database(location, name="orchard")
        for location in (benchmark.locations["orchard"], *benchmark.instances["orchard"])
    }
    oracle = GoldOracle(
        benchmark.cases,
        lambda name: opened[benchmark.locations[name]],
        check=INSTANCES,
        instances_of=lambda name: [opened[location] for location in benchmark.instances[name]],
    )
    case = benchmark.cases[0]
    assert oracle.right(case.question, case.sql)
    bits = oracle.judge(case.question, spelled_out(case.sql)).rules
    assert (bits["bird"], bits[INSTANCES]) == (True, False)
    assert INSTANCES in oracle.judge(case.question, None).rules
    for database in opened.values():
        database.close()


def test_a_benchmark_without_a_generator_is_refused() -> None:
    with pytest.raises(ConfigError, match="which quarry and quarry-1 have and bird has not"):
        with_instances(ORCHARD.__class__(name="bird", cases=ORCHARD.cases, locations={}), INSTANCES)
