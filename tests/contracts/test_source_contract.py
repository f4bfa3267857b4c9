"""What every source promises, whatever the model replies and the check says."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shop import PROBE, QUESTION, RIGHT, WRONG, build, fenced
from sqlcrystal.assembly import SOURCES, source
from sqlcrystal.databases import open_database
from sqlcrystal.models.scripted import ScriptedModel
from sqlcrystal.protocols import Database
from sqlcrystal.solving import SingleShot
from sqlcrystal.types import Attempt, Message, Round, Sampling

BUDGET = 3
KEEPS_SUCCESSES = {"success", "union", "union-look"}
REPLIES = st.sampled_from(
    [
        fenced(RIGHT),
        fenced(WRONG),
        fenced(PROBE, "SELECT name FROM item"),
        fenced("SELECT nope FROM item"),
        fenced("DELETE FROM item"),
        "I do not know.",
        "```sql\nSELECT name FROM",
    ]
)
every = pytest.mark.parametrize("name", SOURCES)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    path: Path = tmp_path_factory.mktemp("shop") / "shop.sqlite"
    database = open_database(str(build(path)), name="shop")
    yield database
    database.close()


def first(database: Database, reply: str) -> Attempt:
    return SingleShot(ScriptedModel([reply]), database).solve(QUESTION)


class Replies:
    """Replies drawn once and then dealt by turn, so that two runs hear the same."""

    def __init__(self, replies: Sequence[str]) -> None:
        self.replies = replies
        self.turn = 0

    def __call__(self, messages: Sequence[Message], sampling: Sampling) -> str:
        self.turn += 1
        return self.replies[self.turn % len(self.replies)]


@every
@settings(max_examples=25, deadline=None)
@given(opening=REPLIES, replies=st.lists(REPLIES, min_size=1, max_size=7), accepted=st.sampled_from([RIGHT, WRONG, ""]))
def test_an_episode_ends_with_the_candidate_that_the_check_accepted(
    name: str, store: Database, opening: str, replies: list[str], accepted: str
) -> None:
    attempt = first(store, opening)
    asked: list[str] = []
    watched: list[Round] = []

    def check(sql: str) -> bool:
        asked.append(sql)
        return sql == accepted

    model = ScriptedModel(Replies(replies))
    episode = source(name, model=model, database=store, budget=BUDGET).acquire(attempt, check, watch=watched.append)

    # The first attempt is asked about once, first, and only if there is one.
    assert asked[:1] == ([attempt.sql] if attempt.sql is not None else asked[:1])
    assert len(asked) == (attempt.sql is not None) + sum(r.sql is not None for r in watched)
    # Every round is watched, within the budget, and only the last can be accepted.
    assert len(watched) <= BUDGET
    assert not any(r.accepted for r in watched[:-1])
    # Every call to the model is in the trace, with its reply.
    assert [call.messages for r in watched for call in r.calls] == model.prompts
    assert [call.sampling for r in watched for call in r.calls] == model.samplings
    if episode is None:
        assert not any(r.accepted for r in watched)
        return
    assert episode.sql == asked[-1] == accepted
    assert episode.attempt is attempt
    assert episode.rounds == tuple(watched)
    if watched:
        assert watched[-1].accepted
        assert watched[-1].execution is not None


@every
def test_a_right_first_attempt_costs_no_call_and_is_kept_by_success_and_union_only(name: str, store: Database) -> None:
    model = ScriptedModel([])
    episode = source(name, model=model, database=store).acquire(first(store, fenced(RIGHT)), lambda sql: True)
    assert model.prompts == []
    assert (episode is not None) == (name in KEEPS_SUCCESSES)
    if episode is not None:
        assert episode.rounds == ()


@every
def test_a_check_that_accepts_nothing_yields_nothing(name: str, store: Database) -> None:
    model = ScriptedModel(lambda *_: fenced(WRONG))
    assert source(name, model=model, database=store).acquire(first(store, fenced(WRONG)), lambda sql: False) is None


@every
def test_samples_of_one_prompt_have_an_index_each(name: str, store: Database) -> None:
    model = ScriptedModel(lambda *_: fenced(WRONG))
    source(name, model=model, database=store).acquire(first(store, fenced(WRONG)), lambda sql: False)
    drawn = [
        (prompt, sampling.index)
        for prompt, sampling in zip(model.prompts, model.samplings, strict=True)
        if sampling.temperature > 0
    ]
    assert len(set(drawn)) == len(drawn)
    assert all(index > 0 for _, index in drawn)


@every
def test_a_source_does_the_same_again(name: str, store: Database) -> None:
    def run() -> object:
        model = ScriptedModel(Replies([fenced(WRONG), fenced(PROBE), fenced(RIGHT)]))
        episode = source(name, model=model, database=store).acquire(
            first(store, fenced(WRONG)), lambda sql: sql == RIGHT
        )
        return (episode and episode.sql, model.prompts, model.samplings)

    assert run() == run()
