"""What goes wrong around a study is told once, in the endpoint's words, and is never scored."""

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from model_endpoints import Handler, Server, serving
from sqlcrystal.config import StudyFile, parse_study
from sqlcrystal.errors import DataError, ModelRejected, ModelUnavailable
from sqlcrystal.models.recording import request_key
from sqlcrystal.protocols import Reporter
from sqlcrystal.study.opening import run_study
from sqlcrystal.types import Completion, Message, Sampling
from study_player import Player

ROOT = Path(__file__).resolve().parents[2]

ARMS = [{"name": "none", "retriever": "none", "settings": ["transfer", "repair"]}, {"name": "k=1", "k": 1}]


def tiny(**keys: Any) -> StudyFile:
    document = {"name": "tiny", "benchmark": {"name": "quarry-1", "only": ["clinic"]}, "seeds": [42], "arm": ARMS}
    return parse_study({**document, **keys})


def sqlcrystal(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "sqlcrystal.interfaces.cli.app", "study", "run", *arguments, "--out", str(folder)],
        cwd=ROOT,
        env={**os.environ, "COLUMNS": "160"},
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
    )


class Notes(Reporter):
    """A reporter that keeps what is worth a line."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        """Keep it."""
        self.notes.append(text)


class Flaky(Player):
    """A player that is away for prompts of one kind, and counts what it was asked."""

    def __init__(self, fails: Callable[[str], bool], error: Exception) -> None:
        super().__init__()
        self.fails, self.error = fails, error
        self.asked: Counter[str] = Counter()

    def chat(self, messages: Sequence[Message], *, sampling: Sampling = Sampling()) -> Completion:
        """Count, then fail or answer."""
        self.asked[request_key(self.digest, messages, sampling)] += 1
        if self.fails(messages[1].content):
            raise self.error
        return super().chat(messages, sampling=sampling)


def test_a_collection_that_fails_marks_what_depends_on_it_once(tmp_path: Path) -> None:
    failing = Player().clinic_and_telecom()[0].question.text
    notes = Notes()
    model = Flaky(lambda prompt: failing in prompt, ModelUnavailable("the endpoint is away"))
    done = run_study(tiny(), tmp_path, model=model, reporter=notes, jobs=4)
    assert max(model.asked.values()) == 1
    assert len([note for note in notes.notes if "the endpoint is away" in note]) == 1
    assert done.left_out


def test_a_model_that_goes_away_ends_the_run_after_the_calls_under_way(tmp_path: Path) -> None:
    model = Flaky(lambda prompt: sum(model.asked.values()) > 10, ModelUnavailable("connection refused"))
    with pytest.raises(ModelUnavailable, match="connection refused"):
        run_study(tiny(), tmp_path, model=model, jobs=2)
    # Two may fail before the last good answer is settled, three in a row after it, and one more is under way.
    assert sum(model.asked.values()) <= 10 + 6


def test_a_model_that_refuses_every_prompt_ends_the_run_in_its_own_words(tmp_path: Path) -> None:
    model = Flaky(lambda prompt: True, ModelRejected("max_tokens must be at most 16"))
    with pytest.raises(ModelRejected, match="max_tokens must be at most 16"):
        run_study(tiny(), tmp_path, model=model, jobs=2)
    assert sum(model.asked.values()) <= 10
    assert not (tmp_path / "results.csv").exists()


@pytest.fixture
def locked() -> Iterator[Server]:
    def refuse(handler: Handler, body: dict[str, Any], attempt: int) -> None:
        handler.reply(401, b'{"error": {"message": "Incorrect API key provided"}}')

    with serving(refuse) as server:
        yield server


def test_a_wrong_key_ends_the_run_at_once_with_exit_code_1_and_scores_nothing(locked: Server, tmp_path: Path) -> None:
    done = sqlcrystal("studies/smoke.toml", "--set", f"model={locked.base_url}#m", folder=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert "Incorrect API key provided" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "results.csv").exists()
    assert sum(map(len, locked.attempts.values())) <= 8


def test_a_run_that_is_cut_short_exits_1_and_says_the_command_that_goes_on(tmp_path: Path) -> None:
    done = sqlcrystal("studies/smoke.toml", "--set", "model=http://127.0.0.1:9/v1#m", "--until", "0", folder=tmp_path)
    assert done.returncode == 1
    assert "go on with: sqlcrystal study run studies/smoke.toml" in done.stderr
    assert f"--out {tmp_path}" in done.stderr


def test_another_study_in_the_same_folder_is_refused_and_the_difference_is_named(tmp_path: Path) -> None:
    run_study(tiny(), tmp_path, model=Player())
    before = (tmp_path / "results.csv").read_bytes()
    with pytest.raises(DataError, match=r"holds another study \(max_tokens was 2048 and is 99\)"):
        run_study(tiny(max_tokens=99), tmp_path, model=Player())
    assert (tmp_path / "results.csv").read_bytes() == before
    grown = run_study(tiny(arm=[*ARMS, {"name": "k=2", "k": 2}]), tmp_path, model=Player())
    assert grown.ledger.of("k=2", "transfer")


def test_two_processes_never_share_a_folder(tmp_path: Path) -> None:
    from sqlcrystal.ledger.folder import claimed

    with claimed(tmp_path, tiny()), pytest.raises(DataError, match="another process is running a study in"):
        run_study(tiny(), tmp_path, model=Player())
