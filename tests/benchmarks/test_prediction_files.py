"""Reading anybody's predictions, and saying in one line why a file does not fit."""

import json
from pathlib import Path

import pytest

import scoring_data
from sqlcrystal.benchmarks.cases import Benchmark
from sqlcrystal.benchmarks.evaluate import read_predictions
from sqlcrystal.errors import DataError

GOLDS = scoring_data.GOLDS
DATABASES = ["zoo", "zoo", "zoo", "mall"]


@pytest.fixture
def own(tmp_path: Path) -> Benchmark:
    return scoring_data.make_own(tmp_path / "own")


def bird(keys: list[str], databases: list[str] = DATABASES) -> dict[str, str]:
    return {key: f"{sql}\t----- bird -----\t{db}" for key, sql, db in zip(keys, GOLDS, databases, strict=True)}


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(bird(["0", "1", "2", "3"]), indent=1),
        json.dumps(bird(["0", "1", "2", "3"])),
        json.dumps(dict(reversed(bird(["a", "b", "c", "d"]).items()))),
        json.dumps(GOLDS),
        "\n".join(GOLDS) + "\n",
        "\r\n".join(f"{sql}\t{db}" for sql, db in zip(GOLDS, DATABASES, strict=True)),
        "".join(json.dumps({"id": key, "sql": sql}) + "\n" for key, sql in zip("abcd", GOLDS, strict=True)),
        "".join(
            json.dumps({"question_id": n, "prediction": sql}) + "\n" for n, sql in reversed(list(enumerate(GOLDS)))
        ),
        "".join(json.dumps({"sql": sql, "db_id": db}) + "\n" for sql, db in zip(GOLDS, DATABASES, strict=True)),
        "\ufeff" + json.dumps([{"id": key, "sql": sql} for key, sql in zip("abcd", GOLDS, strict=True)]),
    ],
    ids=[
        "bird",
        "bird on one line",
        "bird by id",
        "list",
        "spider",
        "spider with databases",
        "jsonl",
        "jsonl by position",
        "jsonl without ids",
        "list of objects with a byte order mark",
    ],
)
def test_every_format_gives_the_predictions_in_the_order_of_the_questions(
    own: Benchmark, tmp_path: Path, text: str
) -> None:
    (tmp_path / "p").write_text(text, newline="")
    assert read_predictions(tmp_path / "p", own) == GOLDS


def test_an_answer_that_is_missing_in_its_place_is_empty(own: Benchmark, tmp_path: Path) -> None:
    (tmp_path / "p").write_text(json.dumps({"0": 0, "1": None, "2": "", "3": "SELECT 1"}))
    assert read_predictions(tmp_path / "p", own) == ["", "", "", "SELECT 1"]
    (tmp_path / "lines").write_text("SELECT 1\n\n\nSELECT 2\n")
    assert read_predictions(tmp_path / "lines", own) == ["SELECT 1", "", "", "SELECT 2"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the file is empty"),
        (b"{", "not JSON"),
        (b"[1, 2", "not JSON"),
        (b'{"0": "SELECT 1"}', "1 predictions, but own has 4 questions: none for '1' and 2 more"),
        (b"SELECT 1\nSELECT 2\n", "2 predictions, but own has 4 questions"),
        (json.dumps(bird(["0", "1", "2", "9"])).encode(), "'9' is neither a question id of own nor a position below 4"),
        (json.dumps(bird(["0", "1", "2", "3"], ["zoo", "zoo", "zoo", "farm"])).encode(), "unknown database 'farm'"),
        (
            json.dumps(bird(["0", "1", "2", "3"], ["mall", *DATABASES[1:]])).encode(),
            "'mall', but that question asks 'zoo'",
        ),
        (b"SELECT 1\tfarm\n" * 4, "unknown database 'farm'"),
        (b'{"id": "a", "sql": "x"}\n{"id": "a", "sql": "x"}\n', "line 2 repeats the id 'a'"),
        (b'{"id": "a", "sql": "x"}\n{"id": "b", "text": "x"}\n', "line 2 has none of the keys sql, prediction"),
        (b'{"id": "a", "sql": "x"}\nnonsense\n', "line 2 is not JSON"),
        (b'{"id": "a", "sql": 3}\n{"id": "b", "sql": "x"}\n', "line 1: the SQL must be a string or null"),
        (b'["a", 1, "b", "c"]', "element 0 is not an object"),
        (b"SELECT '\xe9'\n" * 4, r"not UTF-8 \(byte 8 is 0xe9\)"),
    ],
)
def test_a_file_that_does_not_fit_is_refused_in_one_line(
    own: Benchmark, tmp_path: Path, content: bytes, message: str
) -> None:
    (tmp_path / "p.json").write_bytes(content)
    with pytest.raises(DataError, match=message) as caught:
        read_predictions(tmp_path / "p.json", own)
    assert str(tmp_path / "p.json") in str(caught.value)
    assert "\n" not in str(caught.value)
