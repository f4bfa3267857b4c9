"""What a study owes its model: a key, a line in the ledger for an empty reply, no word on the terminal, and a close."""

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from model_endpoints import Handler, Server, completion, serving
from sqlcrystal.config import parse_study, read_study
from sqlcrystal.models.openai import Endpoint
from sqlcrystal.study.opening import run_study
from sqlcrystal.types import Completion, Message, Sampling
from study_player import QUESTION, Player, draw

ROOT = Path(__file__).resolve().parents[2]

SMOKE = ROOT / "studies" / "smoke.toml"
TINY = {"name": "tiny", "benchmark": {"name": "quarry-1", "only": ["clinic"]}, "seeds": [42]}


@pytest.fixture(scope="module")
def endpoint() -> Iterator[Server]:
    player = Player()

    def answer(handler: Handler, body: dict[str, Any], attempt: int) -> None:
        messages = [Message(**message) for message in body["messages"]]
        handler.reply(200, completion(player.chat(messages, sampling=Sampling(temperature=body["temperature"])).text))

    with serving(answer) as server:
        yield server


def test_the_papers_study_runs_its_own_t3_for_three_rounds_over_an_endpoint(endpoint: Server, tmp_path: Path) -> None:
    overrides = ["benchmark={name='quarry', only=['clinic']}", f"model={endpoint.base_url}#m", "seeds=[42]"]
    study = read_study(ROOT / "studies" / "paper.toml", [*overrides, "arms=['none']"])
    assert (study.budget, study.max_tokens) == (3, 2048)
    rows = [row for row in run_study(study, tmp_path).ledger.outcomes if row.setting == "repair"]
    assert {row.calls for row in rows if row.first_right} == {1}
    assert all(row.round_calls == (2,) * row.rounds for row in rows)  # it proposes probes, then it revises
    assert {row.rounds for row in rows if not row.first_right} >= {1, 3}
    assert any(row.right for row in rows if not row.first_right)


def is_too_hard(question: str) -> bool:
    """Three questions in ten."""
    return draw(question.strip()) < 30


class Speechless(Player):
    """A player whose reasoning uses up its tokens on some questions."""

    def chat(self, messages: Sequence[Message], *, sampling: Sampling = Sampling()) -> Completion:
        """Nothing, or the player's reply."""
        asked = QUESTION.search(messages[1].content)
        if asked and is_too_hard(asked[1]):
            return Completion(text="", finish_reason="length", prompt_tokens=10, completion_tokens=384)
        return super().chat(messages, sampling=sampling)


def test_an_empty_reply_is_one_wrong_answer_and_leaves_nothing_out(tmp_path: Path) -> None:
    done = run_study(parse_study(TINY), tmp_path, model=Speechless())
    assert done.left_out == {}
    silent = [row for row in done.ledger.outcomes if is_too_hard(done.ledger.questions[row.question])]
    assert silent
    assert {(row.right, row.sql) for row in silent} == {(False, None)}
    assert any(row.right for row in done.ledger.outcomes)


def test_a_study_closes_the_model_that_it_opened(
    endpoint: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed: list[str] = []
    close = Endpoint.close

    def watched(self: Endpoint) -> None:
        closed.append(self.base_url)
        close(self)

    monkeypatch.setattr(Endpoint, "close", watched)
    run_study(parse_study({**TINY, "model": f"{endpoint.base_url}#player"}), tmp_path)
    assert closed == [endpoint.base_url]


def test_a_study_tells_no_log_lines_of_its_libraries_and_sends_the_key_it_was_named(
    endpoint: Server, tmp_path: Path
) -> None:
    command = [sys.executable, "-m", "sqlcrystal.interfaces.cli.app", "study", "run", str(SMOKE)]
    done = subprocess.run(
        [*command, "--set", f"model={endpoint.base_url}#player", "--api-key-env", "TEST_KEY", "--out", str(tmp_path)],
        env={**os.environ, "TEST_KEY": "s3cret"},
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert endpoint.headers[-1]["authorization"] == "Bearer s3cret"
    for noise in ("INFO", "HTTP Request", "httpx", "wordllama"):
        assert noise not in done.stderr + done.stdout
    written = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert b"s3cret" not in written
