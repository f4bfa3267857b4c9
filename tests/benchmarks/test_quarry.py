"""Quarry is what its datasheet says: deterministic, sound question by question, and free of gold where solvers look."""

import csv
import hashlib
from collections import Counter
from pathlib import Path

import msgspec
import pytest

from sqlcrystal.benchmarks import quarry
from sqlcrystal.benchmarks.catalogue import load_benchmark
from sqlcrystal.benchmarks.quarry import entries, names
from sqlcrystal.benchmarks.quarry.check import render, review
from sqlcrystal.errors import ConfigError


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("quarry")


@pytest.mark.parametrize("name", names())
def test_every_gold_of_a_database_runs_and_differs_from_its_wrong_queries(name: str, built: Path) -> None:
    reviewed = review(name, quarry.path(name, built))
    assert reviewed.problems == ()
    assert {finding.entry.id: finding.problems for finding in reviewed.findings if finding.problems} == {}


@pytest.mark.parametrize("name", names())
def test_a_database_built_twice_has_the_same_bytes(name: str, built: Path, tmp_path: Path) -> None:
    again = tmp_path / "again.sqlite"
    quarry.build(name, again)
    assert again.read_bytes() == quarry.path(name, built).read_bytes()


@pytest.mark.parametrize("name", names())
def test_a_database_has_the_content_it_was_released_with(name: str, built: Path) -> None:
    assert quarry.digest(quarry.path(name, built)) == quarry.pinned()[name]


@pytest.mark.parametrize("name", names())
def test_the_schema_gives_no_convention_away_in_a_comment(name: str) -> None:
    schema = quarry.blueprint(name).schema
    assert "--" not in schema
    assert "/*" not in schema


def test_quarry_has_the_size_and_the_mix_it_promises(built: Path) -> None:
    every = [entry for name in names() for entry in entries(name)]
    shares = {level: n / len(every) for level, n in Counter(entry.difficulty for entry in every).items()}
    assert len(names()) >= 10
    assert len(every) >= 240
    assert shares == pytest.approx({"simple": 0.60, "moderate": 0.29, "challenging": 0.11}, abs=0.04)
    assert sum(quarry.path(name, built).stat().st_size for name in names()) < 30_000_000


def test_no_question_is_asked_twice() -> None:
    texts = Counter(entry.text.casefold() for name in names() for entry in entries(name))
    assert [text for text, n in texts.items() if n > 1] == []


def test_a_question_carries_neither_gold_nor_wrong_queries_nor_tags() -> None:
    for entry in (entry for name in names() for entry in entries(name)):
        shown = msgspec.json.encode(entry.question).decode()
        assert not any(sql in shown for sql in (entry.sql, *entry.wrong))
        assert set(msgspec.to_builtins(entry.question)) == {"id", "database", "text", "evidence", "difficulty"}


def test_quarry_loads_by_name_with_its_wrong_queries_and_every_database(
    built: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SQLCRYSTAL_CACHE", str(built))
    benchmark = load_benchmark("quarry")
    assert benchmark.databases == names()
    assert benchmark.missing == ()
    assert all(Path(benchmark.locations[name]).is_file() for name in names())
    assert all(len(case.wrong) >= 2 for case in benchmark.cases)


def test_the_first_edition_is_in_the_second_word_for_word() -> None:
    first = [entry for name in names() for entry in entries(name) if entry.edition == 1]
    digest = hashlib.sha256(msgspec.json.encode([(entry.question, entry.sql) for entry in first])).hexdigest()
    assert (len(first), digest[:16]) == (259, "e422af24a6f6423d")


def test_about_six_in_a_hundred_new_questions_have_an_empty_answer() -> None:
    new = [entry for name in names() for entry in entries(name) if entry.edition == 2]
    assert 0.05 <= sum(entry.empty for entry in new) / len(new) <= 0.07


@pytest.mark.parametrize("name", names())
def test_every_question_was_read_against_its_gold_and_the_reading_is_on_record(name: str) -> None:
    record = Path(__file__).parents[2] / "docs" / "reference" / "quarry-readings" / f"{name}.csv"
    with record.open(encoding="utf-8", newline="") as file:
        readings = list(csv.DictReader(file))
    assert {reading["verdict"] for reading in readings} == {"kept", "mended", "thrown out"}
    assert sorted(reading["id"] for reading in readings if reading["id"]) == sorted(entry.id for entry in entries(name))
    assert all(reading["note"] for reading in readings if reading["verdict"] != "kept")
    assert all(reading["second_verdict"] for reading in readings if reading["verdict"] == "mended")


def test_a_built_database_is_kept_and_not_built_again(built: Path) -> None:
    first = quarry.path("clinic", built).stat().st_mtime_ns
    assert quarry.path("clinic", built).stat().st_mtime_ns == first


def test_an_unknown_database_is_answered_with_the_choices() -> None:
    with pytest.raises(ConfigError, match=r"unknown value 'clinik'; choose from .*clinic.*freight"):
        quarry.path("clinik")


def test_the_datasheet_counts_what_is_there() -> None:
    page = Path(__file__).parents[2] / "docs" / "reference" / "quarry.md"
    assert render() in page.read_text(encoding="utf-8")
