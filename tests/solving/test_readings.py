"""Two readings are told from facts alone; a prefix cache spares what prompts begin with."""

import pytest

from shop import QUESTION, SCHEMA
from sqlcrystal.solving.consensus import other_reading
from sqlcrystal.solving.prompt import build_prompt, unread_tokens
from sqlcrystal.types import Call, Completion, Message, Question, Sampling, View


def seen(*views: tuple[bool, int]) -> tuple[View, ...]:
    """Views A, B, C, each sound or not, with the number of its result."""
    return tuple(View(sql="ABC"[place], sound=sound, result=result) for place, (sound, result) in enumerate(views))


@pytest.mark.parametrize(
    ("views", "standing", "other"),
    [
        (seen((True, 0), (True, 1)), "A", "B"),
        (seen((True, 0), (True, 1), (True, 2)), "A", "B"),
        (seen((False, 0), (True, 1), (True, 2)), "B", "C"),
        (seen((True, 0), (False, 1), (True, 2)), "A", "C"),
        (seen((True, 0), (True, 0)), "A", None),
        (seen((True, 0), (True, 1), (True, 1)), "B", None),
        (seen((True, 0), (False, 1)), "A", None),
        (seen((False, 0), (False, 1)), "A", None),
        (seen((True, 0), (True, 1)), "a repair", None),
        ((), "A", None),
    ],
)
def test_only_sound_views_that_fall_apart_are_two_readings(
    views: tuple[View, ...], standing: str, other: str | None
) -> None:
    assert other_reading(views, standing) == other


def call(*messages: Message, tokens: int) -> Call:
    completion = Completion(text="", prompt_tokens=tokens)
    return Call(purpose="solve", messages=messages, sampling=Sampling(), completion=completion)


def prompt(question: Question, *, long: int = 200) -> tuple[Message, ...]:
    return build_prompt(schema=SCHEMA * long, dialect="sqlite", question=question)


def test_the_schema_of_a_database_is_not_read_again() -> None:
    assert unread_tokens([call(*prompt(QUESTION), tokens=10_000)]) < 200


def test_a_prompt_that_was_read_for_the_same_answer_costs_nothing_again() -> None:
    once, *_ = calls = [call(*prompt(QUESTION, long=1), tokens=100)] * 3
    assert unread_tokens(calls) == unread_tokens([once]) > 0


def test_what_begins_otherwise_is_read_whole() -> None:
    assert unread_tokens([call(Message("user", "Something else"), tokens=100)]) == 100


def test_no_call_reads_nothing() -> None:
    assert unread_tokens([]) == 0
