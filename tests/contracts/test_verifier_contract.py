"""What every verifier promises: the episode as it was, on the record, and nothing let through against the signal."""

from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from shop import QUESTION, RIGHT, WRONG
from sqlcrystal.admission import external, verifiers
from sqlcrystal.admission.external import ExternalCheck
from sqlcrystal.admission.seal import Clock
from sqlcrystal.admission.verifiers import Assertion, EngineSignal, Noisy, Oracle, RoundTrip, Ungated, UserConfirmation
from sqlcrystal.config import ExpectedValue
from sqlcrystal.protocols import Database, Verifier
from sqlcrystal.types import Admitted, Attempt, Call, Completion, Episode, Rejected, Sampling

CALL = Call(purpose="solve", messages=(), sampling=Sampling(), completion=Completion(text=""))


def clock() -> datetime:
    return datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def answer(asked: bytes) -> bytes:
    return b'{"accept": true}' if b"'HW'" in asked else b'{"accept": false}'


MADE: dict[str, Callable[[Database, Clock], Verifier]] = {
    "oracle": lambda database, clock: Oracle(lambda question, sql: sql == RIGHT, clock=clock),
    "ungated": lambda database, clock: Ungated(clock=clock),
    "noisy": lambda database, clock: Noisy(lambda question, sql: sql == RIGHT, rate=0.0, clock=clock),
    "user": lambda database, clock: UserConfirmation(lambda episode: episode.sql == RIGHT, by="ada", clock=clock),
    "assertion": lambda database, clock: Assertion(
        database, "SELECT * FROM {answer}", expect=ExpectedValue(value=2), clock=clock
    ),
    "external": lambda database, clock: ExternalCheck(answer, by="ledger", clock=clock),
    "engine": lambda database, clock: EngineSignal(database, clock=clock),
    "round-trip": lambda database, clock: RoundTrip(database, clock=clock),
}
every = pytest.mark.parametrize("name", MADE)


def episode(sql: str, name: str) -> Episode:
    """An episode of a wrong attempt; for the round trip, of the answer that its question led back to."""
    first = RIGHT if name == "round-trip" else WRONG
    return Episode(attempt=Attempt(question=QUESTION, calls=(CALL,), sql=first), source="T3", sql=sql)


def test_the_contract_covers_every_verifier() -> None:
    classes = [*vars(verifiers).values(), *vars(external).values()]
    assert MADE.keys() == {
        vars(kind)["signal"] for kind in classes if isinstance(kind, type) and hasattr(kind, "verify")
    }


@every
def test_what_the_signal_accepts_is_admitted_with_signal_author_and_time(name: str, shop: Database) -> None:
    verdict = MADE[name](shop, clock).verify(episode(RIGHT, name))
    assert isinstance(verdict, Admitted)
    assert verdict.episode == episode(RIGHT, name)
    assert verdict.admission.signal == name
    assert verdict.admission.by
    assert verdict.admission.at == "2026-01-02T03:04:05+00:00"


@every
def test_what_the_signal_refuses_is_rejected_with_a_reason_unless_there_is_no_gate(name: str, shop: Database) -> None:
    verdict = MADE[name](shop, clock).verify(episode(WRONG, name))
    if name == "ungated":
        assert isinstance(verdict, Admitted)
        return
    assert isinstance(verdict, Rejected)
    assert (verdict.episode, verdict.signal) == (episode(WRONG, name), name)
    assert verdict.reason


@every
def test_a_verdict_can_be_had_again(name: str, shop: Database) -> None:
    verifier = MADE[name](shop, clock)
    assert verifier.verify(episode(RIGHT, name)) == verifier.verify(episode(RIGHT, name))
