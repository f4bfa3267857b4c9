"""Real predictions on real data: the field's own figures, and a naive evaluator question by question."""

import sqlite3
from pathlib import Path

import pytest

from sqlcrystal.benchmarks.catalogue import load_benchmark
from sqlcrystal.benchmarks.evaluate import read_predictions, score_predictions
from sqlcrystal.benchmarks.preflight import check_benchmark
from sqlcrystal.scoring import Kind
from sqlcrystal.scoring.cache import GoldCache

pytestmark = pytest.mark.shared_data


@pytest.mark.parametrize(
    ("system", "test_suite", "bird"),
    [("dail_gpt4", 83.46, 80.75), ("codes_7b", 85.69, 82.98), ("c3sql_chatgpt", 82.30, 78.24)],
)
def test_spider_dev_gives_the_published_accuracies(
    shared_data: Path, tmp_path: Path, system: str, test_suite: float, bird: float
) -> None:
    benchmark = load_benchmark("spider", shared_data / "spider")
    predictions = {system: read_predictions(shared_data / "predictions" / "spider_dev" / f"{system}.json", benchmark)}
    for rule, expected in (("test-suite", test_suite), ("bird", bird)):
        [result] = score_predictions(benchmark, predictions, rule=rule, cache=GoldCache(tmp_path))
        assert result.report.n == 1034
        assert result.report.accuracy == pytest.approx(expected, abs=0.01)


def naive(path: str, gold: str, predicted: str) -> bool:
    """A fresh connection, gold run again, Python sets."""
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        return set(connection.execute(predicted).fetchall()) == set(connection.execute(gold).fetchall())
    except (sqlite3.Error, sqlite3.Warning):
        return False
    finally:
        connection.close()


@pytest.mark.parametrize(
    ("system", "superhero", "financial"), [("tasql_gpt4", 82.2, 61.2), ("damo_chatgpt_kg", 65.1, 34.1)]
)
def test_bird_verdicts_equal_a_naive_evaluator_question_by_question(
    shared_data: Path, system: str, superhero: float, financial: float
) -> None:
    benchmark = load_benchmark("bird", shared_data / "bird")
    sqls = read_predictions(shared_data / "predictions" / "bird_dev" / f"{system}.json", benchmark)
    [result] = score_predictions(benchmark, {system: sqls}, rule="bird", skip_missing=True)
    cases = {case.question.id: (case, sql) for case, sql in zip(benchmark.cases, sqls, strict=True)}
    expected = {}
    for prediction in result.scored:
        case, sql = cases[prediction.question_id]
        expected[prediction.question_id] = naive(benchmark.locations[prediction.database], case.sql, sql)
    assert len(expected) == 235
    assert {prediction.question_id: prediction.correct for prediction in result.scored} == expected
    assert result.report.by_database["superhero"].accuracy == pytest.approx(superhero, abs=0.1)
    # The data lacks the rows of `trans`, which 21 of the 106 golds read.
    whole = [
        prediction
        for prediction in result.scored
        if prediction.database == "financial" and "trans" not in cases[prediction.question_id][0].sql
    ]
    assert len(whole) == 85
    assert 100 * sum(prediction.correct for prediction in whole) / 85 == pytest.approx(financial, abs=0.1)


def test_a_missing_database_is_named_and_left_out_of_n(shared_data: Path) -> None:
    benchmark = load_benchmark("bird", shared_data / "bird")
    sqls = [case.sql for case in benchmark.cases]
    [result] = score_predictions(benchmark, {"gold": sqls}, skip_missing=True)
    assert (result.report.n, result.report.left_out, len(result.report.missing_databases)) == (235, 1299, 9)
    assert result.report.by_kind[Kind.MATCH] == 235


def test_every_gold_of_spider_dev_and_of_superhero_executes(shared_data: Path) -> None:
    spider = check_benchmark(load_benchmark("spider", shared_data / "spider"))
    assert (spider.questions, spider.executed, spider.empty) == (1034, 1034, 57)
    superhero = check_benchmark(load_benchmark("bird", shared_data / "bird").only(["superhero"]))
    assert (superhero.questions, superhero.executed, superhero.error) == (129, 129, 0)
