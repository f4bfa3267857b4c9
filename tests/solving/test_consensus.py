"""Several answers to one question: two sound results that agree stand, and no more is asked than that needs."""

from collections.abc import Sequence

import pytest

from cardbox import card
from shop import QUESTION, RIGHT, WRONG, fenced
from sqlcrystal.errors import ModelError
from sqlcrystal.models.scripted import ScriptedModel
from sqlcrystal.protocols import Database
from sqlcrystal.solving.consensus import Consensus
from sqlcrystal.solving.profile import HEADING, Profiled
from sqlcrystal.solving.solver import SingleShot
from sqlcrystal.types import Attempt, Card, Message, Sampling

SAME_RESULT = "SELECT SUM(kind = 'HW') FROM item"
OTHER_RESULT = "SELECT COUNT(*) FROM item"
CARDS = (card("another", sql="SELECT name FROM item"),)


def view_of(messages: Sequence[Message]) -> str:
    """Tell which view of the database a prompt is: with columns and cards, with columns, or bare."""
    user = messages[1].content
    if "[Relevant experience" in user:
        return "cards"
    return "columns" if HEADING in user else "bare"


def chosen(shop: Database, replies: dict[str, str], cards: Sequence[Card] = CARDS) -> tuple[Attempt, list[str]]:
    """Answer by consensus; also the views that were asked for, in order."""
    model = ScriptedModel(lambda messages, _: fenced(replies[view_of(messages)]))
    attempt = Consensus(Profiled(model, shop), SingleShot(model, shop), shop).solve(QUESTION, cards)
    return attempt, [view_of(prompt) for prompt in model.prompts]


def test_two_views_that_agree_are_enough_and_the_fullest_stands(shop: Database) -> None:
    attempt, asked = chosen(shop, {"cards": RIGHT, "columns": SAME_RESULT})
    assert (attempt.sql, attempt.cards, asked) == (RIGHT, (CARDS[0].id,), ["cards", "columns"])


def test_the_bare_view_decides_between_two_that_differ(shop: Database) -> None:
    attempt, asked = chosen(shop, {"cards": OTHER_RESULT, "columns": RIGHT, "bare": SAME_RESULT})
    assert (attempt.sql, attempt.cards, asked) == (RIGHT, (), ["cards", "columns", "bare"])


def test_a_view_that_shows_a_sign_of_trouble_has_no_voice(shop: Database) -> None:
    attempt, _ = chosen(shop, {"cards": WRONG, "columns": WRONG, "bare": RIGHT})
    assert attempt.sql == RIGHT


def test_where_every_view_shows_a_sign_the_first_stands(shop: Database) -> None:
    attempt, _ = chosen(shop, {"cards": WRONG, "columns": "SELECT nope FROM item", "bare": "no idea"})
    assert attempt.sql == WRONG


def test_where_all_results_differ_the_first_sound_one_stands(shop: Database) -> None:
    attempt, _ = chosen(shop, {"cards": WRONG, "columns": RIGHT, "bare": OTHER_RESULT})
    assert attempt.sql == RIGHT


def test_the_attempt_carries_every_view_and_every_call_its_own_last(shop: Database) -> None:
    attempt, asked = chosen(shop, {"cards": OTHER_RESULT, "columns": RIGHT, "bare": SAME_RESULT})
    assert [(view.sql, view.sound, view.result) for view in attempt.views] == [
        (OTHER_RESULT, True, 0),
        (RIGHT, True, 1),
        (SAME_RESULT, True, 1),
    ]
    assert sorted(view_of(call.messages) for call in attempt.calls) == sorted(asked)
    assert view_of(attempt.call.messages) == "columns"


def test_without_cards_the_same_prompt_is_not_asked_twice(shop: Database) -> None:
    _, asked = chosen(shop, {"columns": RIGHT, "bare": OTHER_RESULT}, cards=())
    assert asked == ["columns", "bare"]


def test_a_lenient_choice_is_made_from_the_views_there_are_when_the_model_fails(shop: Database) -> None:
    def failing_later(messages: Sequence[Message], _: Sampling) -> str:
        if view_of(messages) != "cards":
            raise ModelError("the endpoint is gone")
        return fenced(RIGHT)

    model = ScriptedModel(failing_later)
    full, bare = Profiled(model, shop), SingleShot(model, shop)
    assert Consensus(full, bare, shop, lenient=True).solve(QUESTION, CARDS).sql == RIGHT
    with pytest.raises(ModelError):
        Consensus(full, bare, shop).solve(QUESTION, CARDS)


def test_the_very_query_of_a_card_stands_and_nothing_more_is_asked(shop: Database) -> None:
    attempt, asked = chosen(shop, {"cards": "select NAME from item;"})
    assert (attempt.sql, asked) == ("select NAME from item", ["cards"])


def test_the_query_of_a_card_that_shows_a_sign_of_trouble_has_no_such_right(shop: Database) -> None:
    attempt, asked = chosen(
        shop, {"cards": WRONG, "columns": RIGHT, "bare": RIGHT}, cards=(card("another", sql=WRONG),)
    )
    assert (attempt.sql, len(asked)) == (RIGHT, 3)
