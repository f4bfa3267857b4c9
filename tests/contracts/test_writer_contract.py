"""What every writer promises, whatever the episode holds."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shop import PROBE, QUESTION, RIGHT, WRONG
from sqlcrystal.admission.verifiers import Oracle
from sqlcrystal.assembly import WRITERS, writer
from sqlcrystal.models.scripted import ScriptedModel
from sqlcrystal.protocols import Database
from sqlcrystal.types import (
    Admitted,
    Attempt,
    Call,
    CardStatus,
    Completion,
    Episode,
    Failure,
    FailureKind,
    Probe,
    Rejected,
    Round,
    Rows,
    Sampling,
)
from sqlcrystal.writing.card import estimate_tokens

CALL = Call(purpose="probe", messages=(), sampling=Sampling(), completion=Completion(text="…"))
EXECUTIONS = st.sampled_from(
    [
        Rows(("kind",), (("HW",), (None,))),
        Rows((), ()),
        Failure(FailureKind.TIMEOUT, "late"),
        Rows(("n",), ((1,),) * 30),
    ]
)
SQL = st.sampled_from([WRONG, RIGHT, PROBE, "SELEC broken", "WITH a AS (SELECT 1) SELECT * FROM a UNION SELECT 2"])
CAPSULES = st.sampled_from(['{"lesson": "kind holds codes"}', "no JSON", '{"lesson": "see `nowhere`", "trigger": 3}'])


@st.composite
def episodes(draw: st.DrawFn) -> Episode:
    """Repairs by any source, first-try successes, and attempts without SQL."""
    rounds = draw(
        st.lists(
            st.builds(
                lambda sql, execution, probed: Round(
                    calls=(CALL, CALL), sql=sql, execution=execution, probes=(Probe(PROBE, probed),)
                ),
                SQL,
                EXECUTIONS,
                EXECUTIONS,
            ),
            max_size=3,
        )
    )
    attempt = Attempt(question=QUESTION, calls=(CALL,), sql=draw(SQL | st.none()))
    return Episode(attempt=attempt, source="T3", sql=draw(SQL | st.text(min_size=1, max_size=20)), rounds=tuple(rounds))


every = pytest.mark.parametrize("name", WRITERS)


def admitted(episode: Episode) -> Admitted:
    verdict = Oracle(lambda question, sql: True).verify(episode)
    assert isinstance(verdict, Admitted)
    return verdict


def test_every_writer_has_its_header_in_the_prompt() -> None:
    assert all(re.fullmatch(r"\[.+\]", kind.header) and kind.summary for kind in WRITERS.values())


@every
@settings(max_examples=25, deadline=None)
@given(episode=episodes(), capsule=CAPSULES)
def test_a_card_keeps_its_provenance_and_says_something(
    name: str, open_shop: Database, episode: Episode, capsule: str
) -> None:
    passed = admitted(episode)
    card = writer(name, database=open_shop, model=ScriptedModel(lambda *_: capsule)).write(passed).card
    assert (card.writer, card.source, card.status) == (name, episode.source, CardStatus.ACTIVE)
    assert (card.question, card.database, card.sql) == (QUESTION, "shop", episode.sql)
    assert card.admission == passed.admission
    assert card.fingerprint == open_shop.fingerprint()
    assert card.text == card.text.strip() != ""
    assert card.tokens == estimate_tokens(card.text) > 0


@every
@settings(max_examples=10, deadline=None)
@given(episode=episodes(), capsule=CAPSULES)
def test_the_same_episode_gives_the_same_card(name: str, open_shop: Database, episode: Episode, capsule: str) -> None:
    passed = admitted(episode)
    cards = [
        writer(name, database=open_shop, model=ScriptedModel(lambda *_: capsule)).write(passed).card for _ in range(2)
    ]
    assert cards[0] == cards[1]


def test_two_writers_never_share_a_card_id(open_shop: Database) -> None:
    passed = admitted(Episode(attempt=Attempt(question=QUESTION, calls=(CALL,), sql=WRONG), source="T3", sql=RIGHT))
    model = ScriptedModel(lambda *_: "{}")
    assert len({writer(name, database=open_shop, model=model).write(passed).card.id for name in WRITERS}) == len(
        WRITERS
    )


@every
def test_a_rejected_episode_is_refused_at_run_time_too(name: str, open_shop: Database) -> None:
    episode = Episode(attempt=Attempt(question=QUESTION, calls=(CALL,), sql=WRONG), source="T3", sql=RIGHT)
    rejected = Rejected(episode=episode, signal="oracle", reason="wrong")
    with pytest.raises(TypeError, match="admission"):
        writer(name, database=open_shop, model=ScriptedModel([])).write(rejected)  # type: ignore[arg-type]
