"""Memory, unless its answer shows a sign of trouble and the plain one does not."""

import pytest
from msgspec.structs import replace

from cardbox import card
from shop import QUESTION, RIGHT, WRONG, fenced
from sqlcrystal.models.scripted import ScriptedModel
from sqlcrystal.protocols import Database
from sqlcrystal.solving.fallback import Fallback
from sqlcrystal.solving.solver import SingleShot

CARD = card("1", database="shop")


def answered(shop: Database, *, with_cards: str, plain: str) -> tuple[Fallback, ScriptedModel]:
    model = ScriptedModel(
        lambda messages, _: fenced(with_cards if "[Relevant experience" in messages[1].content else plain)
    )
    return Fallback(SingleShot(model, shop), shop), model


@pytest.mark.parametrize(
    ("with_cards", "plain", "chosen", "calls"),
    [
        (RIGHT, WRONG, RIGHT, 1),
        (WRONG, RIGHT, RIGHT, 2),
        (WRONG, "SELECT nothing FROM item", WRONG, 2),
        ("SELECT COUNT(*) FROM item", RIGHT, "SELECT COUNT(*) FROM item", 1),
    ],
)
def test_the_plain_answer_stands_only_where_it_alone_shows_no_sign(
    shop: Database, with_cards: str, plain: str, chosen: str, calls: int
) -> None:
    solver, model = answered(shop, with_cards=with_cards, plain=plain)
    attempt = solver.solve(QUESTION, [CARD])
    assert attempt.sql == chosen
    assert len(attempt.calls) == len(model.prompts) == calls
    assert chosen in attempt.call.completion.text


def test_a_card_is_named_only_if_it_was_in_the_prompt_of_the_answer(shop: Database) -> None:
    fell_back, _ = answered(shop, with_cards=WRONG, plain=RIGHT)
    assert fell_back.solve(QUESTION, [CARD]).cards == ()
    stood, _ = answered(shop, with_cards=RIGHT, plain=WRONG)
    assert stood.solve(QUESTION, [CARD]).cards == (CARD.id,)


def test_without_cards_nothing_is_asked_twice(shop: Database) -> None:
    solver, model = answered(shop, with_cards=RIGHT, plain=WRONG)
    assert solver.solve(replace(QUESTION, evidence="")).sql == WRONG
    assert len(model.prompts) == 1
