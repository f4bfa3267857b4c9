"""Gold as prediction: every way a gold can misbehave is counted under its own name."""

from pathlib import Path

from msgspec.structs import replace

import scoring_data
from sqlcrystal.benchmarks.preflight import check_benchmark

ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"


def test_golds_that_run_fail_hang_or_return_nothing_are_told_apart(tmp_path: Path) -> None:
    own = scoring_data.make_own(tmp_path)
    sqls = ["SELECT name FROM pet WHERE age > 99", "SELECT nome FROM pet", ENDLESS, own.cases[3].sql]
    cases = tuple(replace(case, sql=sql) for case, sql in zip(own.cases, sqls, strict=True))
    result = check_benchmark(replace(own, cases=cases), timeout=1.2)
    assert (result.executed, result.empty, result.error, result.timeout, result.slow) == (2, 1, 1, 1, 1)
    assert result.by_database["mall"].executed == 1
    assert [(finding.question_id, finding.outcome) for finding in result.findings] == [
        ("a", "empty"),
        ("b", "error"),
        ("c", "timeout"),
    ]
    assert "nome" in result.findings[1].message


def test_golds_that_return_nothing_but_null_and_zero_are_told_from_those_without_a_row(tmp_path: Path) -> None:
    own = scoring_data.make_own(tmp_path)
    sqls = ["SELECT 0, NULL", "SELECT name FROM pet WHERE age > 99", "SELECT 0, 'none'", own.cases[3].sql]
    result = check_benchmark(
        replace(own, cases=tuple(replace(case, sql=sql) for case, sql in zip(own.cases, sqls, strict=True)))
    )
    assert (result.executed, result.empty, result.zero) == (4, 1, 1)


def test_a_kept_wrong_query_that_equals_gold_is_counted(tmp_path: Path) -> None:
    own = scoring_data.make_own(tmp_path)
    first = replace(own.cases[0], wrong=("SELECT 3", "SELECT 4"))
    result = check_benchmark(replace(own, cases=(first, *own.cases[1:])))
    assert (result.wrong, result.equal_wrong, result.by_database["zoo"].equal_wrong) == (2, 1, 1)
    assert [finding.question_id for finding in result.findings] == ["a"]
