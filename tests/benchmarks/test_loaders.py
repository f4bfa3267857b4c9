"""Loading benchmarks from the layouts people have on disk."""

import json
import sqlite3
from pathlib import Path

import pytest

import scoring_data
from sqlcrystal.benchmarks.catalogue import BENCHMARKS, load_benchmark
from sqlcrystal.benchmarks.files import locate
from sqlcrystal.errors import ConfigError, DataError


def touch_database(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE t (a)")
    connection.commit()
    connection.close()


def bird_entry(number: int, database: str = "zoo") -> dict[str, object]:
    entry: dict[str, object] = {"question_id": number, "db_id": database, "question": f"q{number}", "evidence": "hint"}
    return {**entry, "SQL": "SELECT 1", "difficulty": "simple"}


def spider_entry(text: str, database: str = "zoo") -> dict[str, str]:
    return {"db_id": database, "question": text, "query": "SELECT 1"}


@pytest.mark.parametrize(
    ("questions", "databases"),
    [
        ("dev.json", "dev_databases"),
        ("dev_20240627/dev.json", "dev_20240627/dev_databases"),
        ("bird/dev/dev.json", "bird/dev/dev_databases/dev_databases"),
    ],
)
def test_bird_is_found_however_its_archive_nests_it(tmp_path: Path, questions: str, databases: str) -> None:
    (tmp_path / questions).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / questions).write_text(json.dumps([bird_entry(0), bird_entry(1, "gone")]))
    touch_database(tmp_path / databases / "zoo" / "zoo.sqlite")
    benchmark = load_benchmark("bird", tmp_path)
    assert [case.question.id for case in benchmark.cases] == ["0", "1"]
    assert benchmark.cases[0].question.evidence == "hint"
    assert Path(benchmark.locations["zoo"]).is_file()
    assert benchmark.missing == ("gone",)


def test_minidev_keeps_a_repeated_question_id_apart(tmp_path: Path) -> None:
    (tmp_path / "mini_dev_sqlite.json").write_text(json.dumps([bird_entry(137), bird_entry(138), bird_entry(137)]))
    assert [case.question.id for case in load_benchmark("minidev", tmp_path).cases] == ["137", "138", "137-2"]


def test_the_postgresql_minidev_takes_one_url_for_all_databases(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mini_dev_postgresql.json").write_text(json.dumps([bird_entry(1), bird_entry(2, "mall")]))
    touch_database(tmp_path / "dev_databases" / "zoo" / "zoo.sqlite")
    assert load_benchmark("minidev-postgresql", tmp_path).missing == ("zoo", "mall"), "SQLite files are no PostgreSQL"
    monkeypatch.setenv("BIRD_PASSWORD", "s3cret")
    benchmark = load_benchmark("minidev-postgresql", tmp_path, ["postgresql://me:${BIRD_PASSWORD}@localhost/bird?a=b"])
    assert set(benchmark.locations.values()) == {"postgresql://me:s3cret@localhost/bird?a=b"}


def test_spider_train_joins_both_files_and_test_prefers_its_own_databases(tmp_path: Path) -> None:
    (tmp_path / "train_spider.json").write_text(json.dumps([spider_entry("one"), spider_entry("two")]))
    (tmp_path / "train_others.json").write_text(json.dumps([spider_entry("three")]))
    (tmp_path / "test.json").write_text(json.dumps([spider_entry("four")]))
    touch_database(tmp_path / "database" / "zoo" / "zoo.sqlite")
    touch_database(tmp_path / "test_database" / "zoo" / "zoo.sqlite")
    train, test = load_benchmark("spider-train", tmp_path), load_benchmark("spider-test", tmp_path)
    assert [(case.question.id, case.question.text) for case in train.cases] == [
        ("0", "one"),
        ("1", "two"),
        ("2", "three"),
    ]
    assert "/database/" in train.locations["zoo"]
    assert "/test_database/" in test.locations["zoo"]


@pytest.mark.shared_data
def test_spider_dev_has_the_official_hardness_counts(shared_data: Path) -> None:
    levels = [case.question.difficulty for case in load_benchmark("spider", shared_data / "spider").cases]
    assert {level: levels.count(level) for level in set(levels)} == {
        "easy": 248,
        "medium": 446,
        "hard": 174,
        "extra": 166,
    }


def test_own_questions_find_their_databases_in_files_folders_and_mappings(tmp_path: Path) -> None:
    own = scoring_data.make_own(tmp_path)
    assert {name: Path(place).name for name, place in own.locations.items()} == {
        "zoo": "zoo.sqlite",
        "mall": "mall.sqlite",
    }
    (tmp_path / "databases.toml").write_text('[databases]\nzoo = "mall.sqlite"\nmall = "duckdb:///m.duckdb"\n')
    mapped = load_benchmark("own", tmp_path / "questions.jsonl")
    assert mapped.locations == {"zoo": str(tmp_path / "mall.sqlite"), "mall": "duckdb:///m.duckdb"}


def test_a_database_given_by_name_wins_over_a_folder(tmp_path: Path) -> None:
    scoring_data.make_databases(tmp_path)
    locations = locate(["zoo", "mall"], given=[str(tmp_path), "zoo=mysql://host/zoo?x=y"])
    assert locations == {"zoo": "mysql://host/zoo?x=y", "mall": str(tmp_path / "mall.sqlite")}


def test_a_secret_that_is_not_set_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_SUCH_SECRET", raising=False)
    with pytest.raises(ConfigError, match="NO_SUCH_SECRET is not set"):
        locate(["zoo"], given=["zoo=mysql://me:${NO_SUCH_SECRET}@host/zoo"])


def test_an_unknown_benchmark_names_the_choices() -> None:
    with pytest.raises(ConfigError, match="benchmark: unknown value 'brid'; choose from bird, cosql, minidev"):
        load_benchmark("brid")


@pytest.mark.parametrize("name", [name for name in BENCHMARKS if not name.startswith("quarry")])
def test_every_loader_asks_for_its_folder_in_one_line(name: str, tmp_path: Path) -> None:
    for data in (None, tmp_path / "nowhere", tmp_path):
        with pytest.raises(DataError) as caught:
            load_benchmark(name, data)
        assert "\n" not in str(caught.value)


def test_own_files_name_the_line_that_is_wrong(tmp_path: Path) -> None:
    path = tmp_path / "q.jsonl"
    for line, message in [
        ('{"question": "q", "sql": "SELECT 1"}', "line 2: Object missing required field `database`"),
        ("nonsense", "line 2 is not JSON"),
        ('{"question": "q", "sql": "SELECT 1", "database": "zoo", "id": 0}', "line 2 repeats the id '0' of line 1"),
    ]:
        path.write_text('{"question": "q", "sql": "SELECT 1", "database": "zoo"}\n' + line + "\n")
        with pytest.raises(DataError, match=message):
            load_benchmark("own", path)


def test_missing_databases_are_listed_unless_they_may_be_skipped(tmp_path: Path) -> None:
    scoring_data.make_own(tmp_path)
    (tmp_path / "mall.sqlite").unlink()
    benchmark = load_benchmark("own", tmp_path)
    with pytest.raises(DataError, match=r"1 of 2 databases of own are missing: mall; pass --skip-missing"):
        benchmark.available(skip_missing=False)
    assert [case.question.database for case in benchmark.available(skip_missing=True).cases] == ["zoo"] * 3
    assert benchmark.available(skip_missing=True).skipped == ("mall",)
    assert benchmark.only(["zoo"]).available(skip_missing=False).databases == ("zoo",)
    with pytest.raises(ConfigError, match="database: unknown value 'farm'; choose from mall, zoo"):
        benchmark.only(["farm"])
