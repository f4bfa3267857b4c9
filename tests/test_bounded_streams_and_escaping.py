"""What comes from elsewhere is read within limits; what leaves for a terminal or a page is shown there, not obeyed."""

import io
import lzma
import sqlite3
import tracemalloc
from collections.abc import Iterable
from pathlib import Path

import pytest

from sqlcrystal.bank import import_jsonl
from sqlcrystal.benchmarks.catalogue import load_benchmark
from sqlcrystal.bounded_streams import blocks_of, bounded_lines, inflated
from sqlcrystal.config import read_study
from sqlcrystal.errors import ConfigError, DataError
from sqlcrystal.escaping import csv_cell, fenced, visible, without_tags
from sqlcrystal.interfaces.cli.output import print_lines, print_table
from sqlcrystal.models.openai import OpenAIModel, OpenAISettings
from sqlcrystal.models.recording import Recording


def test_a_small_recording_that_would_unpack_to_gigabytes_is_refused_in_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "bomb.jsonl.xz"
    with lzma.open(path, "wb") as file:
        for _ in range(64):
            file.write(b" " * 2**20)
    tracemalloc.start()
    with pytest.raises(DataError, match="a line is longer than 16 MB"):
        Recording(path)
    assert tracemalloc.get_traced_memory()[1] < 100 * 2**20
    tracemalloc.stop()


@pytest.mark.parametrize(
    "definition",
    [
        "CREATE VIEW completion AS SELECT 'k' AS key, 'm' AS model, 'd' AS digest, zeroblob(900000000) AS messages, "
        "'' AS sampling, '' AS completion",
        "CREATE TABLE completion (key TEXT, model TEXT, digest TEXT, messages BLOB, sampling BLOB, completion BLOB, "
        "more BLOB AS (zeroblob(900000000)))",
    ],
    ids=["a view", "a computed column"],
)
def test_a_recording_that_would_compute_its_entries_is_refused(tmp_path: Path, definition: str) -> None:
    path = tmp_path / "bomb.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute(definition)
        connection.execute("PRAGMA user_version = 1")
    connection.close()
    with pytest.raises(DataError, match="not a recording"):
        Recording(path, read_only=True)


def test_lines_are_those_of_the_file_whatever_the_blocks() -> None:
    content = b"one\n\ntwo " + b"x" * 100_000 + b"\nthree"
    assert list(bounded_lines(blocks_of(io.BytesIO(content)), name="f")) == content.split(b"\n")


def test_a_file_beyond_its_total_is_refused() -> None:
    with pytest.raises(DataError, match="f: holds more than 1 MB"):
        list(bounded_lines([b"a\n" * 2**19] * 3, name="f", max_total=2**20))


def test_a_packed_value_beyond_its_limit_is_refused() -> None:
    import zlib

    assert inflated(zlib.compress(b"abc"), name="r") == b"abc"
    with pytest.raises(DataError, match="larger than 1 MB"):
        inflated(zlib.compress(b"a" * 2**21), name="r", max_size=2**20)


def test_a_card_file_with_one_endless_line_is_refused() -> None:
    class NoStore:
        def add_all(self, entries: Iterable[object], **_: object) -> list[object]:
            return list(entries)

    with pytest.raises(DataError, match="a line is longer"):
        import_jsonl(NoStore(), io.BytesIO(b"x" * (20 * 2**20)), name="cards")  # type: ignore[arg-type]


def test_a_benchmark_folder_cannot_read_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SALES_PASSWORD", "hush")
    (tmp_path / "q.jsonl").write_text('{"question": "q", "sql": "SELECT 1", "database": "sales"}\n')
    (tmp_path / "databases.toml").write_text('sales = "postgresql://r:${SALES_PASSWORD}@127.0.0.1:1/sales"\n')
    with pytest.raises(ConfigError, match="may not read") as caught:
        load_benchmark("own", tmp_path)
    assert "hush" not in str(caught.value)
    trusted = load_benchmark("own", tmp_path, [str(tmp_path / "databases.toml")])
    assert "hush" in trusted.locations["sales"]


@pytest.mark.parametrize("name", ["../../etc/passwd", "a/b", "a\\b", "..", "a\nb"])
def test_a_database_name_is_no_path(name: str, tmp_path: Path) -> None:
    import json

    (tmp_path / "q.jsonl").write_text(json.dumps({"question": "q", "sql": "SELECT 1", "database": name}) + "\n")
    with pytest.raises(DataError, match="path separators"):
        load_benchmark("own", tmp_path)


def test_a_study_name_is_no_path(tmp_path: Path) -> None:
    file = tmp_path / "s.toml"
    file.write_text('name = "../evil"\nbenchmark = "quarry"\nmodel = "qwen2.5-coder-0.5b"\n')
    with pytest.raises(ConfigError, match="path separator"):
        read_study(file)


def test_secrets_stand_in_no_url_and_no_header() -> None:
    with pytest.raises(ConfigError, match=r"model\.base_url") as caught:
        OpenAIModel(OpenAISettings(name="m", base_url="https://me:hush@host/v1"))
    assert "hush" not in str(caught.value)
    with pytest.raises(ConfigError, match=r"model\.headers\.x-api-key") as caught:
        OpenAIModel(OpenAISettings(name="m", base_url="https://host/v1", headers={"x-api-key": "hush"}))
    assert "hush" not in str(caught.value)
    OpenAIModel(OpenAISettings(name="m", base_url="https://host/v1", headers={"x-api-key": "${KEY}", "x-title": "t"}))


def test_the_terminal_shows_control_characters_and_markup_as_text(capsys: pytest.CaptureFixture[str]) -> None:
    print_table("[/]", ["a"], [["[/] [red]x[/red]"], ["\x1b]0;owned\x07"]])
    print_lines(["a"], [["\x1b[2J\u202e"]])
    shown = capsys.readouterr().out
    assert "[red]x[/red]" in shown
    assert "\\x1b]0;owned\\x07" in shown
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert visible("a\tb\nc") == "a\tb\nc"


@pytest.mark.parametrize("text", ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\t=1"])
def test_a_spreadsheet_takes_a_formula_for_text(text: str) -> None:
    assert csv_cell(text) == f"'{text}"


@pytest.mark.parametrize("text", ["-3.5", "+1e-9", "-12,000.50 %", "plain", "", "1=1"])
def test_numbers_and_words_stay_as_they_are_in_a_spreadsheet(text: str) -> None:
    assert csv_cell(text) == text


def test_markdown_holds_no_tags_and_sql_does_not_break_out_of_its_block() -> None:
    assert without_tags("<script>x</script> p < 0.05") == "&lt;script>x&lt;/script> p < 0.05"
    assert without_tags("arm ![x](https://evil) [y]: z") == "arm ![x\\](https\\://evil) [y\\]: z"
    assert fenced("SELECT 1\n```\n# x").startswith("````sql\n")
