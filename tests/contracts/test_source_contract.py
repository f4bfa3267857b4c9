"""What every source promises, whatever the model replies and the check says."""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shop import PROBE, QUESTION, RIGHT, WRONG, fenced
from sqlcrystal.assembly import SOURCES, source
from sqlcrystal.models.scripted import ScriptedModel
from sqlcrystal.protocols import Database
from sqlcrystal.solving.solver import SingleShot
from sqlcrystal.types import Attempt, Message, Sampling

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
    name: str, open_shop: Database, opening: str, replies: list[str], accepted: str
) -> None:
    attempt = first(open_shop, opening)
    asked: list[str] = []

    def accept(sql: str) -> bool:
        asked.append(sql)
        return sql == accepted

    model = ScriptedModel(Replies(replies))
    right = attempt.sql == accepted
    effort = source(name, model=model, database=open_shop, budget=BUDGET).acquire(attempt, right=right, accept=accept)
    rounds, episode = effort.rounds, effort.episode

    assert (effort.attempt, effort.right_at_once) == (attempt, right)
    # Every candidate is asked about once; there are no more rounds than the budget, and only the last can be accepted.
    assert asked == [spent.sql for spent in rounds if spent.sql is not None]
    assert len(rounds) <= BUDGET
    assert not any(spent.accepted for spent in rounds[:-1])
    # Every call to the model is in the trace, with its reply.
    assert [call.messages for spent in rounds for call in spent.calls] == model.prompts
    assert [call.sampling for spent in rounds for call in spent.calls] == model.samplings
    if episode is None:
        assert not any(spent.accepted for spent in rounds)
        return
    assert episode.sql == accepted
    assert (episode.attempt, episode.rounds) == (attempt, rounds)
    if rounds:
        assert rounds[-1].accepted
        assert rounds[-1].execution is not None


def test_exploring_asks_of_a_right_first_attempt_too_since_it_may_break_it(open_shop: Database) -> None:
    model = ScriptedModel(lambda *_: fenced(WRONG))
    tested = source("explore", model=model, database=open_shop)
    effort = tested.acquire(first(open_shop, fenced(RIGHT)), right=True, accept=lambda sql: sql == RIGHT)
    assert (len(effort.rounds), effort.right_at_once, effort.episode) == (1, True, None)


@pytest.mark.parametrize("name", sorted(SOURCES.keys() - {"explore"}))
def test_a_right_first_attempt_costs_no_call_and_is_kept_by_success_and_union_only(
    name: str, open_shop: Database
) -> None:
    model = ScriptedModel([])
    tested = source(name, model=model, database=open_shop)
    effort = tested.acquire(first(open_shop, fenced(RIGHT)), right=True, accept=lambda sql: True)
    assert (model.prompts, effort.rounds) == ([], ())
    assert (effort.episode is not None) == (name in KEEPS_SUCCESSES)


@every
def test_a_check_that_accepts_nothing_yields_nothing(name: str, open_shop: Database) -> None:
    model = ScriptedModel(lambda *_: fenced(WRONG))
    tested = source(name, model=model, database=open_shop)
    assert tested.acquire(first(open_shop, fenced(WRONG)), right=False, accept=lambda sql: False).episode is None


@every
def test_a_plan_never_promises_fewer_calls_than_the_budget_takes(name: str, open_shop: Database) -> None:
    """T3-look's first round asks for probes after all when a query gives it nothing to look at."""
    model = ScriptedModel(lambda *_: fenced(WRONG))
    tested = source(name, model=model, database=open_shop, budget=BUDGET)
    effort = tested.acquire(first(open_shop, fenced(WRONG)), right=False, accept=lambda sql: False)
    assert len(model.prompts) == tested.calls_in(len(effort.rounds))


@every
def test_samples_of_one_prompt_have_an_index_each(name: str, open_shop: Database) -> None:
    model = ScriptedModel(lambda *_: fenced(WRONG))
    source(name, model=model, database=open_shop).acquire(
        first(open_shop, fenced(WRONG)), right=False, accept=lambda sql: False
    )
    drawn = [
        (prompt, sampling.index)
        for prompt, sampling in zip(model.prompts, model.samplings, strict=True)
        if sampling.temperature > 0
    ]
    assert len(set(drawn)) == len(drawn)
    assert all(index > 0 for _, index in drawn)


@every
def test_a_source_does_the_same_again(name: str, open_shop: Database) -> None:
    def run() -> object:
        model = ScriptedModel(Replies([fenced(WRONG), fenced(PROBE), fenced(RIGHT)]))
        effort = source(name, model=model, database=open_shop).acquire(
            first(open_shop, fenced(WRONG)), right=False, accept=lambda sql: sql == RIGHT
        )
        return (effort.episode and effort.episode.sql, model.prompts, model.samplings)

    assert run() == run()
