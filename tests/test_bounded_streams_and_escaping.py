"""What comes from elsewhere is read within limits; what leaves for a terminal or a page is shown there, not obeyed."""

import io
import lzma
import sqlite3
import tracemalloc
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

from model_endpoints import behave, serving
from sqlcrystal.bank import import_jsonl
from sqlcrystal.benchmarks.catalogue import load_benchmark
from sqlcrystal.config import read_study
from sqlcrystal.damaged_files import blocks_of, bounded_lines, inflated
from sqlcrystal.errors import ConfigError, DataError
from sqlcrystal.escaping import csv_cell, fenced, visible, without_tags
from sqlcrystal.interfaces.cli.output import print_lines, print_table
from sqlcrystal.models.openai import OpenAIModel, OpenAISettings
from sqlcrystal.models.opening import using_model
from sqlcrystal.models.recording import SMALL, RecordedCall, Recording
from sqlcrystal.models.scripted import ScriptedModel
from sqlcrystal.types import Completion, Message, Sampling


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


def test_a_recording_of_few_bytes_that_unpack_to_gigabytes_is_refused_in_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "bomb.sqlite"
    messages = (Message("user", "a" * (15 * 2**20)),)
    with Recording(path) as recording:
        recording.add([recorded(messages, index) for index in range(30)])
    assert path.stat().st_size < 2**20
    with Recording(path, read_only=True) as recording, peak_below(SMALL + 100 * 2**20):
        with pytest.raises(DataError, match=r"bomb\.sqlite: holds more than 256 MB"):
            list(recording.entries())
        assert recording.get(recorded(messages, 3).key) is not None


def test_a_shipped_recording_of_many_empty_messages_is_refused_in_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "bomb.jsonl.xz"
    line = msgspec.json.encode(recorded((Message("", ""),) * 100_000, 0)) + b"\n"
    with lzma.open(path, "wb") as file:
        for _ in range(40):
            file.write(line)
    with peak_below(SMALL + 100 * 2**20), pytest.raises(DataError, match="holds more than 256 MB"):
        Recording(path)


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE completion SET messages = zeroblob(100)",
        "UPDATE completion SET completion = '{'",
        "UPDATE completion SET sampling = (SELECT replace(sampling, '0', '1'))",
        "UPDATE completion SET digest = 'another model'",
    ],
)
def test_a_damaged_entry_of_a_recording_is_named_and_not_read(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "damaged.sqlite"
    entry = recorded((Message("user", "q"),), 0)
    with Recording(path) as recording:
        recording.add([entry])
    with sqlite3.connect(path) as connection:
        connection.execute(damage)
    connection.close()
    with Recording(path, read_only=True) as recording:
        for read in (lambda: recording.get(entry.key), lambda: list(recording.entries())):
            with pytest.raises(DataError, match=f"damaged.sqlite: entry {entry.key[:12]} is damaged"):
                read()


def recorded(messages: tuple[Message, ...], index: int) -> RecordedCall:
    model = ScriptedModel(["SELECT 1"])
    return RecordedCall.of(model, messages, Sampling(index=index), Completion(text="SELECT 1"))


@contextmanager
def peak_below(most: int) -> Iterator[None]:
    """Fail if what is done meanwhile holds more than so many bytes at once."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < most
    finally:
        tracemalloc.stop()


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


STUDY = 'name = "s"\nbenchmark = {name = "quarry"}\nmodel = "qwen2.5-coder-0.5b"\n'
AT = '{kind = "openai", base_url = "http://127.0.0.1:9/v1", name = "m"'
SECRETS = {
    "the key of a model": STUDY.replace('"qwen2.5-coder-0.5b"', AT + ', api_key = "${AWS_SECRET}"}'),
    "a header of a model": STUDY.replace('"qwen2.5-coder-0.5b"', AT + ', headers = {x-key = "a ${AWS_SECRET}"}}'),
    "the key of an embedder": STUDY + "embedder = " + AT + ', api_key = "${AWS_SECRET}"}\n',
    "the address of a database": STUDY.replace(
        '{name = "quarry"}', '{name = "own", data = ".", databases = ["postgresql://x:${AWS_SECRET}@evil/sales"]}'
    ),
    "a file of addresses": STUDY.replace(
        '{name = "quarry"}', '{name = "own", data = ".", databases = ["FOLDER/d.toml"]}'
    ),
}


@pytest.mark.parametrize("place", SECRETS)
def test_a_study_file_reads_of_the_environment_what_the_command_line_allows(place: str, tmp_path: Path) -> None:
    file = tmp_path / "s.toml"
    file.write_text(SECRETS[place].replace("FOLDER", str(tmp_path)))
    (tmp_path / "d.toml").write_text('sales = "postgresql://x:${AWS_SECRET}@evil/sales"\n')
    with pytest.raises(ConfigError, match=r"may not read \$\{AWS_SECRET\} .* say --allow-env AWS_SECRET"):
        read_study(file)
    with pytest.raises(ConfigError, match="may not read"):
        read_study(file, ["seeds=[42]"], allow_env=["AWS"])
    assert read_study(file, allow_env=["AWS_SECRET"])


def test_what_the_command_line_itself_names_is_allowed(tmp_path: Path) -> None:
    file = tmp_path / "s.toml"
    file.write_text(STUDY)
    named = read_study(file, ["model=http://127.0.0.1:9/v1#m", "model.api_key=${MINE}"])
    assert named.model == {"kind": "openai", "base_url": "http://127.0.0.1:9/v1", "name": "m", "api_key": "${MINE}"}
    file.write_text(SECRETS["the key of a model"])
    assert read_study(file, api_key_env="AWS_SECRET")
    assert read_study(file, ["model=http://127.0.0.1:9/v1#m"])


@pytest.mark.parametrize("listens", ["in the file", "on the command line"])
def test_the_usual_key_goes_to_no_address_that_a_study_file_names(
    listens: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SQLCRYSTAL_API_KEY", "hush")
    file = tmp_path / "s.toml"
    with serving(behave) as server:
        address = f"{server.base_url}#m"
        file.write_text(STUDY.replace("qwen2.5-coder-0.5b", address if listens == "in the file" else "m.gguf"))
        study = read_study(file, [] if listens == "in the file" else [f"model={address}"])
        with using_model(study.model) as model:
            model.chat([Message("user", "q")], sampling=Sampling())
        with using_model(read_study(file, [f"model={address}"], api_key_env="SQLCRYSTAL_API_KEY").model) as model:
            model.chat([Message("user", "q")], sampling=Sampling())
    sent = [headers.get("authorization") for headers in server.headers]
    assert sent == [None if listens == "in the file" else "Bearer hush", "Bearer hush"]


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
