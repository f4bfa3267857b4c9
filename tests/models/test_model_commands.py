"""`sqlcrystal model` and `sqlcrystal recording` as a user runs them."""

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from model_endpoints import behave, serving
from sqlcrystal.errors import ConfigError, DataError, UserError
from sqlcrystal.interfaces.cli import model as model_commands
from sqlcrystal.models.opening import open_model, using_model
from sqlcrystal.models.recorded import Recorded
from sqlcrystal.models.recording import Recording
from sqlcrystal.models.scripted import ScriptedModel
from sqlcrystal.types import Message, Sampling

app = typer.Typer()
model_commands.register(app)


def run(*arguments: object) -> Any:
    result = CliRunner().invoke(app, [*map(str, arguments), "--json"])
    if isinstance(result.exception, UserError):
        raise result.exception
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_list_says_what_is_known_and_whether_it_is_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SQLCRYSTAL_CACHE", str(tmp_path))
    rows = run("model", "list")
    assert [row["name"] for row in rows] == ["qwen2.5-coder-1.5b", "qwen2.5-coder-0.5b"]
    assert {(row["present"], row["licence"]) for row in rows} == {(False, "Apache-2.0")}


def test_pull_refuses_a_file_that_is_not_the_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SQLCRYSTAL_CACHE", str(tmp_path / "cache"))
    (tmp_path / "fake.gguf").write_bytes(b"not a model")
    with pytest.raises(UserError, match="refused: sha256"):
        run("model", "pull", "qwen2.5-coder-0.5b", "--from", tmp_path / "fake.gguf")


def test_check_asks_any_endpoint_one_question_and_prints_tokens_per_second() -> None:
    with serving(behave) as server:
        report = run("model", "check", f"{server.base_url}#m")
    assert report["reply"].startswith("SELECT")
    assert report["tokens_per_second"] > 0


def test_recordings_are_merged_pruned_exported_counted_and_verified(tmp_path: Path) -> None:
    with serving(behave) as server:
        model = open_model(f"{server.base_url}#m")
        for name, questions in {"a": ["one", "two"], "b": ["two", "three"]}.items():
            with Recording(tmp_path / f"{name}.sqlite") as recording:
                for question in questions:
                    Recorded(model, recording, "fill").chat([Message("user", question)], sampling=Sampling())
        model.close()
        first, second, both = (tmp_path / f"{name}.sqlite" for name in ("a", "b", "both"))
        assert run("recording", "merge", first, second, "--out", both)["completions"] == 3
        shipped, kept = tmp_path / "all.jsonl.xz", tmp_path / "kept.jsonl.xz"
        assert run("recording", "export", both, "--out", shipped)["completions"] == 3
        assert run("recording", "prune", shipped, "--used-by", first, "--out", kept)["completions"] == 2
        [counted] = run("recording", "stats", kept)["models"]
        assert (counted["model"], counted["completions"], counted["completion_tokens"]) == ("m", 2, 6)
        report = run("recording", "verify", shipped, "--model", f"{server.base_url}#m", "--n", 20)["models"][0]
    assert (report["asked"], report["agreed"]) == (3, 3)


def users_database(path: Path) -> bytes:
    """A database of somebody else's, which had better stay as it is."""
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, total REAL)")
    connection.execute("INSERT INTO orders VALUES (1, 9.5)")
    connection.commit()
    connection.close()
    return path.read_bytes()


@pytest.mark.parametrize(
    "command",
    [
        ["stats", "DATABASE"],
        ["export", "DATABASE", "--out", "out.jsonl.xz"],
        ["verify", "DATABASE"],
        ["merge", "DATABASE", "--out", "out.sqlite"],
        ["merge", "RECORDING", "--out", "DATABASE"],
        ["prune", "DATABASE", "--keys", "keys.txt", "--out", "out.sqlite"],
        ["prune", "RECORDING", "--used-by", "DATABASE", "--out", "out.sqlite"],
    ],
    ids=" ".join,
)
def test_a_database_that_is_no_recording_is_refused_and_left_as_it_was(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    before = users_database(tmp_path / "shop.sqlite")
    (tmp_path / "keys.txt").write_text("")
    with Recording(tmp_path / "run.sqlite"):
        pass
    files = {"DATABASE": "shop.sqlite", "RECORDING": "run.sqlite"}
    with pytest.raises(DataError, match=r"recording shop.sqlite: not a recording: a database with the tables orders"):
        run("recording", *(files.get(word, word) for word in command))
    assert (tmp_path / "shop.sqlite").read_bytes() == before
    assert {path.name for path in tmp_path.iterdir()} == {"shop.sqlite", "run.sqlite", "keys.txt"}


def test_reading_a_recording_changes_nothing_beside_it_or_in_it(tmp_path: Path) -> None:
    with Recording(tmp_path / "r.sqlite"):
        pass
    before = (tmp_path / "r.sqlite").read_bytes()
    run("recording", "stats", tmp_path / "r.sqlite")
    assert [path.name for path in tmp_path.iterdir()] == ["r.sqlite"]
    assert (tmp_path / "r.sqlite").read_bytes() == before


def test_the_stats_of_a_recording_that_is_being_written_count_what_is_in_its_log(tmp_path: Path) -> None:
    with Recording(tmp_path / "r.sqlite") as recording:
        model = Recorded(ScriptedModel(["SELECT 1"]), recording, "fill")
        model.chat([Message("user", "q")], sampling=Sampling())
        [counted] = run("recording", "stats", tmp_path / "r.sqlite")["models"]
    assert counted["completions"] == 1


def test_the_key_of_an_endpoint_comes_from_the_variable_that_the_command_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEST_MODEL_KEY", "s3cret")
    with serving(behave) as server:
        named = f"{server.base_url}#m"
        run("model", "check", named, "--api-key-env", "TEST_MODEL_KEY")
        with Recording(tmp_path / "r.sqlite") as recording, using_model(named) as model:
            Recorded(model, recording, "fill").chat([Message("user", "q")], sampling=Sampling())
        run("recording", "verify", tmp_path / "r.sqlite", "--model", named, "--api-key-env", "TEST_MODEL_KEY")
        sent = [headers.get("authorization") for headers in server.headers]
    assert sent == ["Bearer s3cret", None, "Bearer s3cret"]


def test_prune_without_saying_what_to_keep_is_a_users_mistake(tmp_path: Path) -> None:
    with Recording(tmp_path / "r.sqlite"):
        pass
    with pytest.raises(ConfigError, match=r"--used-by RECORDING or --keys FILE"):
        run("recording", "prune", tmp_path / "r.sqlite", "--out", tmp_path / "o.sqlite")
