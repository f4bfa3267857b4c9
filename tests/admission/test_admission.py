"""Admission tells its story: which signal lets an episode through, who gave it, and when."""

import json
import sys
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta, timezone
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from shop import QUESTION, RIGHT, WRONG
from sqlcrystal.admission.external import ExternalCheck
from sqlcrystal.admission.verifiers import Assertion, Noisy, Oracle, Ungated, UserConfirmation
from sqlcrystal.config import ExpectedValue
from sqlcrystal.errors import CheckError, ConfigError, InfrastructureError
from sqlcrystal.protocols import Database
from sqlcrystal.types import Admission, Admitted, Attempt, Call, Completion, Episode, Question, Rejected, Sampling


def noon() -> datetime:
    return datetime(2026, 3, 1, 13, 0, tzinfo=timezone(timedelta(hours=1)))


AT = "2026-03-01T12:00:00+00:00"


def episode(sql: str = RIGHT, question: Question = QUESTION) -> Episode:
    call = Call(purpose="solve", messages=(), sampling=Sampling(), completion=Completion(text=""))
    return Episode(attempt=Attempt(question=question, calls=(call,), sql=WRONG), source="T3", sql=sql)


def judge(question: Question, sql: str) -> bool:
    return sql == RIGHT


# ── the study's regimes ─────────────────────────────────────────────────────────────────────────────────────────────


def test_the_oracle_admits_what_is_right_and_records_signal_author_and_time() -> None:
    verdict = Oracle(judge, clock=noon).verify(episode())
    assert isinstance(verdict, Admitted)
    assert verdict.admission == Admission(signal="oracle", by="benchmark", at=AT)


def test_the_oracle_turns_away_what_is_wrong() -> None:
    verdict = Oracle(judge, clock=noon).verify(episode(WRONG))
    assert isinstance(verdict, Rejected)
    assert verdict.signal == "oracle"


def test_no_gate_admits_anything_and_says_that_nobody_looked() -> None:
    verdict = Ungated(clock=noon).verify(episode(WRONG))
    assert verdict.admission == Admission(signal="ungated", by="nobody", at=AT, detail="elected by T3")


@pytest.mark.parametrize("rate", [0.05, 0.1, 0.2])
def test_noise_flips_the_stated_share_of_decisions_both_ways(rate: float) -> None:
    noisy = Noisy(judge, rate=rate, seed=7)
    cases = [replace(QUESTION, id=f"q{n}") for n in range(4000)]
    for sql, admitted_when_flipped in ((RIGHT, False), (WRONG, True)):
        verdicts = [noisy.verify(episode(sql, question)) for question in cases]
        flipped = sum(isinstance(verdict, Admitted) == admitted_when_flipped for verdict in verdicts)
        assert flipped / len(cases) == pytest.approx(rate, abs=4 * (rate / len(cases)) ** 0.5)


@given(st.text(max_size=8), st.integers(0, 9), st.floats(0, 0.5), st.floats(0.5, 1))
def test_a_higher_noise_rate_flips_a_superset_and_the_seed_decides(
    name: str, seed: int, low: float, high: float
) -> None:
    question = replace(QUESTION, id=name)
    assert Noisy(judge, rate=low, seed=seed).flips(question) <= Noisy(judge, rate=high, seed=seed).flips(question)
    assert Noisy(judge, rate=low, seed=seed).flips(question) == Noisy(judge, rate=low, seed=seed).flips(question)


def test_another_seed_flips_other_questions() -> None:
    cases = [replace(QUESTION, id=f"q{n}") for n in range(300)]
    flips = [[Noisy(judge, rate=0.2, seed=seed).flips(q) for q in cases] for seed in (1, 2)]
    assert flips[0] != flips[1]


def test_a_rate_that_is_no_share_is_the_users_mistake() -> None:
    with pytest.raises(ConfigError, match=r"admission\.rate.*from 0 to 1"):
        Noisy(judge, rate=20)


# ── a person ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_person_confirms_and_is_named_on_the_record() -> None:
    verdict = UserConfirmation(lambda _: True, by="ada", note="checked by hand", clock=noon).verify(episode())
    assert isinstance(verdict, Admitted)
    assert verdict.admission == Admission(signal="user", by="ada", at=AT, detail="checked by hand")


@pytest.mark.parametrize(("reply", "reason"), [(False, "ada rejected it"), (None, "ada gave no verdict")])
def test_a_no_and_a_silence_both_keep_the_episode_out(reply: bool | None, reason: str) -> None:
    verdict = UserConfirmation(lambda _: reply, by="ada").verify(episode())
    assert isinstance(verdict, Rejected)
    assert verdict.reason == reason


# ── an assertion ────────────────────────────────────────────────────────────────────────────────────────────────────

POSITIVE = 'SELECT 1 FROM {answer} WHERE "COUNT(*)" > 0'


@pytest.mark.parametrize(
    ("sql", "expect", "candidate", "admitted"),
    [
        (POSITIVE, "rows", RIGHT, True),
        (POSITIVE, "rows", WRONG, False),
        (POSITIVE, "no rows", WRONG, True),
        (POSITIVE, "no rows", RIGHT, False),
        ("SELECT * FROM {answer}", ExpectedValue(value=2), RIGHT, True),
        ("SELECT * FROM {answer}", ExpectedValue(value=2.0), RIGHT, True),
        ("SELECT * FROM {answer}", ExpectedValue(value=3), RIGHT, False),
        ("SELECT * FROM {answer}", ExpectedValue(value="HW"), "SELECT DISTINCT kind FROM item", False),
        ("SELECT MIN(kind) FROM {answer}", ExpectedValue(value="FD"), "SELECT kind FROM item -- all", True),
    ],
)
def test_an_assertion_must_hold(shop: Database, sql: str, expect: Any, candidate: str, admitted: bool) -> None:
    verdict = Assertion(shop, sql, expect=expect, by="stock rules", clock=noon).verify(episode(candidate))
    assert isinstance(verdict, Admitted if admitted else Rejected)
    if isinstance(verdict, Admitted):
        assert verdict.admission == Admission(signal="assertion", by="stock rules", at=AT, detail=sql)


@pytest.mark.parametrize(
    ("sql", "candidate", "reason"),
    [
        ("SELECT 1 FROM {answer}", "SELECT nope FROM item", "the SQL does not run"),
        ("SELECT 1 FROM {answer}", "SELECT 1) AS a, (SELECT 2", "the SQL does not run"),
        ("SELECT nope FROM {answer}", RIGHT, "the assertion could not run"),
        ("DELETE FROM {answer}", RIGHT, "the assertion could not run"),
    ],
)
def test_what_cannot_run_is_never_admitted(shop: Database, sql: str, candidate: str, reason: str) -> None:
    verdict = Assertion(shop, sql).verify(episode(candidate))
    assert isinstance(verdict, Rejected)
    assert verdict.reason.startswith(reason)


def test_an_assertion_that_ignores_the_answer_is_the_users_mistake(shop: Database) -> None:
    with pytest.raises(ConfigError, match=r"must read from \{answer\}"):
        Assertion(shop, "SELECT 1")


# ── an external check ───────────────────────────────────────────────────────────────────────────────────────────────

Script = Callable[[str], list[str]]


@pytest.fixture
def script(tmp_path: Path) -> Script:
    """Turn Python code into a command; `asked` holds what the check was told."""

    def write(code: str) -> list[str]:
        path = tmp_path / "check.py"
        path.write_text(f"import json, sys, time, subprocess\nasked = json.load(sys.stdin)\n{code}\n")
        return [sys.executable, str(path)]

    return write


def test_a_command_is_told_the_episode_and_decides(script: Script) -> None:
    command = script(f"print(json.dumps({{'accept': asked['sql'] == {RIGHT!r}, 'reason': asked['first_sql']}}))")
    check = ExternalCheck.command(command, by="finance", clock=noon)
    accepted, refused = check.verify(episode()), check.verify(episode(WRONG))
    assert isinstance(accepted, Admitted)
    assert accepted.admission == Admission(signal="external", by="finance", at=AT, detail=WRONG)
    assert isinstance(refused, Rejected)
    assert refused.reason == WRONG


def test_a_command_sees_the_question_and_no_gold(script: Script) -> None:
    command = script("print(json.dumps({'accept': True, 'reason': ','.join(sorted(asked))}))")
    verdict = ExternalCheck.command(command).verify(episode())
    assert isinstance(verdict, Admitted)
    assert verdict.admission.detail == "database,evidence,first_sql,question,source,sql"


@pytest.mark.parametrize(
    ("code", "complaint"),
    [
        ("sys.exit(3)", "exit code 3"),
        ("print('yes')", "must answer"),
        ("print('{\"accept\": 1}')", "must answer"),
        ("pass", "must answer"),
        ("raise SystemExit('boom')", "exit code 1: boom"),
    ],
)
def test_a_check_that_fails_admits_and_rejects_nothing(script: Script, code: str, complaint: str) -> None:
    with pytest.raises(CheckError, match=complaint) as caught:
        ExternalCheck.command(script(code)).verify(episode())
    assert isinstance(caught.value, InfrastructureError)


def test_a_command_that_does_not_exist_is_an_infrastructure_error() -> None:
    with pytest.raises(CheckError, match="cannot be started"):
        ExternalCheck.command(["/nowhere/check"]).verify(episode())


def test_a_late_command_is_ended_with_its_children(script: Script) -> None:
    command = script("subprocess.run(['sleep', '3600'])")  # if it were waited for, the test itself would be late
    with pytest.raises(CheckError, match=r"no answer within 0\.5 s"):
        ExternalCheck.command(command, timeout=0.5).verify(episode())


@pytest.fixture
def callback() -> Iterator[str]:
    """A real HTTP server; the path chooses how it behaves."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
            if self.path == "/slow":
                time.sleep(1.0)
            body = json.dumps({"accept": asked["sql"] == RIGHT, "by": "ledger"}).encode()
            self.send_response(500 if self.path == "/broken" else 200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            return None

    server = HTTPServer(("127.0.0.1", 0), Handler)
    server.handle_error = lambda *_: None  # type: ignore[method-assign]
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_callback_decides(callback: str) -> None:
    check = ExternalCheck.callback(callback, clock=noon)
    accepted, refused = check.verify(episode()), check.verify(episode(WRONG))
    assert isinstance(accepted, Admitted)
    assert accepted.admission == Admission(signal="external", by="ledger", at=AT)
    assert isinstance(refused, Rejected)


@pytest.mark.parametrize(
    ("path", "timeout", "complaint"), [("/broken", 60, "status 500"), ("/slow", 0.3, "cannot be reached")]
)
def test_a_broken_or_late_callback_admits_nothing(callback: str, path: str, timeout: float, complaint: str) -> None:
    with pytest.raises(CheckError, match=complaint):
        ExternalCheck.callback(callback + path, timeout=timeout).verify(episode())


def test_the_default_clock_is_now_in_utc() -> None:
    verdict = Oracle(judge).verify(episode())
    assert isinstance(verdict, Admitted)
    stamped = datetime.fromisoformat(verdict.admission.at)
    assert abs(stamped - datetime.now(UTC)) < timedelta(seconds=5)
