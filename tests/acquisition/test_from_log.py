"""From SQL to a question and back: the source that starts from a query that was run."""

import pytest

from shop import QUESTION, RIGHT, SCHEMA, WRONG, fenced
from sqlcrystal.acquisition.from_log import FromLog, question_in, question_prompt
from sqlcrystal.admission.verifiers import RoundTrip
from sqlcrystal.models.scripted import ScriptedModel
from sqlcrystal.protocols import Database
from sqlcrystal.types import Admitted, Attempt, Effort, Question, Rejected

ASKED = "How many items are of kind 'HW'?"
UNASKED = Question(id="shop-1", database="shop", text="")


def round_trip(shop: Database, replies: list[str], *, budget: int = 2, logged: str = RIGHT) -> Effort:
    source = FromLog(ScriptedModel(replies), shop, budget=budget)
    check = RoundTrip(shop)
    attempt = Attempt(question=UNASKED, calls=(), sql=logged)
    return source.acquire(attempt, right=False, accept=lambda sql: check.leads_back(sql, logged))


def test_a_question_that_leads_back_to_the_rows_of_its_query_makes_an_episode(shop: Database) -> None:
    back = "SELECT COUNT(id) FROM item WHERE kind IN ('HW')"
    effort = round_trip(shop, [f'Question: "{ASKED}"', fenced(back)])
    episode = effort.episode
    assert episode is not None
    assert (episode.source, episode.sql, episode.question.text, episode.question.id) == ("log", RIGHT, ASKED, "shop-1")
    assert episode.attempt.sql == back
    assert [call.purpose for spent in episode.rounds for call in spent.calls] == ["word", "solve"]
    assert isinstance(RoundTrip(shop).verify(episode), Admitted)


def test_a_wording_that_leads_elsewhere_is_followed_by_another_sample(shop: Database) -> None:
    effort = round_trip(shop, ["How many hardware items?", fenced(WRONG), ASKED, fenced(RIGHT)])
    assert [spent.accepted for spent in effort.rounds] == [False, True]
    words = [spent.calls[0].sampling for spent in effort.rounds]
    assert [(sampling.temperature > 0, sampling.index) for sampling in words] == [(False, 0), (True, 1)]


def test_what_never_leads_back_is_turned_away_on_the_record(shop: Database) -> None:
    effort = round_trip(shop, ["How many hardware items?", fenced(WRONG), "no", fenced(WRONG)])
    assert (effort.episode, len(effort.rounds)) == (None, 2)
    last = effort.last_candidate
    assert last is not None
    verdict = RoundTrip(shop).verify(last)
    assert isinstance(verdict, Rejected)
    assert verdict.reason == "asked again, its question gave other rows"


def test_a_query_without_rows_proves_nothing_by_coming_back(shop: Database) -> None:
    empty = "SELECT name FROM item WHERE price > 9000"
    effort = round_trip(shop, ["Which items cost over 9000?", fenced(empty)], budget=1, logged=empty)
    assert effort.episode is not None
    assert isinstance(RoundTrip(shop).verify(effort.episode), Rejected)


def test_a_reply_without_a_question_leaves_no_candidate_that_any_gate_could_let_in(shop: Database) -> None:
    effort = round_trip(shop, [fenced(RIGHT), "  "])
    assert (effort.episode, effort.last_candidate, len(effort.rounds)) == (None, None, 2)


@pytest.mark.parametrize(
    ("reply", "found"),
    [
        (f"**{ASKED}**\nIt counts rows.", ASKED),
        (f"The question is: {ASKED}", ASKED),
        (f"\n- {ASKED}", ASKED),
        ("SELECT 1", None),
        ("```sql\nSELECT 1\n```", None),
        ("Yes", None),
        ("word " * 300, None),
    ],
)
def test_the_question_is_the_first_line_of_words(reply: str, found: str | None) -> None:
    assert question_in(reply) == found


def test_the_prompt_holds_the_query_and_no_table_that_it_does_not_name() -> None:
    schema = f"{SCHEMA}\n\nCREATE TABLE other_thing (\n    id INTEGER\n);\n"
    system, user = question_prompt(RIGHT, schema=schema, dialect="sqlite")
    assert RIGHT in user.content
    assert SCHEMA in user.content
    assert "other_thing" not in user.content
    assert QUESTION.text not in system.content + user.content
    assert "other_thing" in question_prompt("SELECT 1", schema=schema, dialect="sqlite")[1].content
