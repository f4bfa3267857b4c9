"""External check: a command or an HTTP callback decides, within a deadline.

Either is sent one JSON object {question, evidence, database, sql, first_sql, source} and must answer one JSON object
{"accept": true|false, "reason": "…", "by": "…"} (reason and by are optional). A command reads stdin, writes stdout and
exits 0; a callback is sent a POST and answers 200. Anything else is a CheckError: the episode is neither admitted nor
rejected, and can be verified again.
"""

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from typing import ClassVar

import msgspec
from msgspec import Struct

from sqlcrystal.admission.seal import Clock, admit, utc_now
from sqlcrystal.errors import CheckError
from sqlcrystal.types import Admitted, Episode, Rejected

LONGEST_ANSWER = 65_536


class CheckRequest(Struct, frozen=True, kw_only=True):
    """The request to the check; never gold, for a source never saw any."""

    question: str
    evidence: str
    database: str
    sql: str
    first_sql: str | None
    source: str


class CheckReply(Struct, frozen=True, kw_only=True):
    """The reply of the check."""

    accept: bool
    reason: str = ""
    by: str = ""


class ExternalCheck:
    """Admits what the outside world accepts; `send` carries the question there and the answer back."""

    signal: ClassVar[str] = "external"

    def __init__(self, send: Callable[[bytes], bytes], *, by: str, clock: Clock = utc_now) -> None:
        self.send = send
        self.by = by
        self.clock = clock

    @classmethod
    def command(
        cls, arguments: Sequence[str], *, timeout: float = 30.0, by: str = "", clock: Clock = utc_now
    ) -> "ExternalCheck":
        """Make a check that runs a command; no shell is involved."""
        return cls(lambda asked: run_command(arguments, asked, timeout=timeout), by=by or arguments[0], clock=clock)

    @classmethod
    def callback(cls, url: str, *, timeout: float = 30.0, by: str = "", clock: Clock = utc_now) -> "ExternalCheck":
        """Make a check that posts to a URL."""
        return cls(lambda asked: post(url, asked, timeout=timeout), by=by or url, clock=clock)

    def verify(self, episode: Episode) -> Admitted | Rejected:
        """Ask, and hold the answer to its form."""
        question = episode.question
        asked = CheckRequest(
            question=question.text,
            evidence=question.evidence,
            database=question.database,
            sql=episode.sql,
            first_sql=episode.attempt.sql,
            source=episode.source,
        )
        reply = self.send(msgspec.json.encode(asked))
        try:
            answer = msgspec.json.decode(reply, type=CheckReply)
        except msgspec.DecodeError as error:
            raise CheckError(f'{self.by}: the check must answer {{"accept": true|false}}: {error}') from error
        if answer.accept:
            return admit(episode, signal=self.signal, by=answer.by or self.by, clock=self.clock, detail=answer.reason)
        return Rejected(episode=episode, signal=self.signal, reason=answer.reason or f"{self.by} rejected it")


def run_command(arguments: Sequence[str], asked: bytes, *, timeout: float) -> bytes:
    """Run a check in its own process group, so that the deadline ends its children too."""
    name = arguments[0]
    try:
        process = subprocess.Popen(
            list(arguments),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as error:
        raise CheckError(f"{name}: the check cannot be started: {error}") from error
    with process:
        try:
            answer, complaint = process.communicate(asked, timeout=timeout)
        except subprocess.TimeoutExpired as error:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            raise CheckError(f"{name}: no answer within {timeout:g} s") from error
    if process.returncode != 0:
        last = complaint.decode(errors="replace").strip().rpartition("\n")[2]
        raise CheckError(f"{name}: the check failed with exit code {process.returncode}: {last}")
    return answer


def post(url: str, asked: bytes, *, timeout: float) -> bytes:
    """Post to a callback; each network operation and the whole answer are bounded by the deadline."""
    import httpx

    deadline = time.monotonic() + timeout
    try:
        with httpx.stream(
            "POST", url, content=asked, headers={"content-type": "application/json"}, timeout=timeout
        ) as response:
            answer = b""
            for chunk in response.iter_bytes():
                answer += chunk
                if time.monotonic() > deadline or len(answer) > LONGEST_ANSWER:
                    raise CheckError(f"{url}: the answer is too slow or too long")
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise CheckError(f"{url}: the check cannot be reached: {error}") from error
    if response.status_code != httpx.codes.OK:
        raise CheckError(f"{url}: the check answered status {response.status_code}")
    return answer
