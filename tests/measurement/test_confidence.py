"""A confidence keeps its word on databases it never saw, and is told only from what is known without an oracle."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shop import QUESTION, RIGHT, WRONG, fenced
from sqlcrystal.acquisition.revision import OneBit
from sqlcrystal.consumption.memory import NoMemory
from sqlcrystal.databases.symptoms import symptoms
from sqlcrystal.measurement.confidence import (
    TRAITS,
    Example,
    calibration,
    cross_fitted,
    fit,
    shipped,
    traits,
)
from sqlcrystal.models.scripted import ScriptedModel
from sqlcrystal.pipeline import serve
from sqlcrystal.protocols import Database
from sqlcrystal.solving.consensus import Consensus
from sqlcrystal.solving.profile import Profiled
from sqlcrystal.solving.solver import SingleShot


def answered(count: int, *, seed: int = 0) -> list[Example]:
    """Answers of ten databases whose first trait says truly how probable it is that they are right."""
    drawn = random.Random(seed)
    made = []
    for number in range(count):
        sure = drawn.random()
        values = (sure, *(drawn.random() for _ in TRAITS[1:]))
        made.append(Example(values, drawn.random() < sure, f"database {number % 10}"))
    return made


def test_what_is_said_comes_true_over_databases_that_were_not_fitted_on() -> None:
    examples = answered(2_000)
    held = calibration(cross_fitted(examples), [example.right for example in examples])
    assert held.error < 0.05
    assert held.surest_third > 0.75


def test_traits_that_say_nothing_leave_everybody_at_the_base_rate() -> None:
    examples = [example._replace(traits=(1.0,) * len(TRAITS)) for example in answered(400)]
    share = sum(example.right for example in examples) / len(examples)
    assert fit(examples).probability((1.0,) * len(TRAITS)) == pytest.approx(share, abs=0.01)


@given(st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=60))
def test_calibration_loses_no_answer(pairs: list[tuple[float, bool]]) -> None:
    said, right = [p for p, _ in pairs], [r for _, r in pairs]
    held = calibration(said, right)
    assert sum(part.n for part in held.bins) == held.n == len(pairs)
    assert 0 <= held.error <= 1
    assert 0 <= held.brier <= 1


def shop_traits(shop: Database, *replies: str) -> dict[str, float]:
    """The traits of an answer of the shop, for which the model replies in turn, the last reply again and again."""
    said = iter(replies)
    last = [""]

    def reply(*_: object) -> str:
        last[0] = next(said, last[0])
        return fenced(last[0])

    model = ScriptedModel(reply)
    given_answer = serve(
        QUESTION,
        memory=NoMemory(),
        solver=Consensus(Profiled(model, shop), SingleShot(model, shop), shop),
        source=OneBit(model, shop, budget=1),
        database=shop,
        sound=lambda sql: not symptoms(sql, shop),
    )
    return dict(zip(TRAITS, traits(given_answer, shop), strict=True))


def test_an_answer_is_told_by_its_agreement_its_signs_and_its_shape(shop: Database) -> None:
    agreed = shop_traits(shop, RIGHT)
    assert (agreed["agreeing views"], agreed["differing views"], agreed["sign of trouble"]) == (2, 0, 0)
    assert agreed["values not in the question"] == 1  # the question says hardware, the query 'HW'
    torn = shop_traits(shop, RIGHT, "SELECT COUNT(*) FROM item")
    assert (torn["agreeing views"], torn["differing views"]) == (1, 1)
    hopeless = shop_traits(shop, WRONG)
    assert (hopeless["agreeing views"], hopeless["sign of trouble"], hopeless["repaired"]) == (0, 1, 0)


def test_an_easy_question_makes_a_sound_answer_surer_and_no_other(shop: Database) -> None:
    for reply, surer in ((RIGHT, True), (WRONG, False)):
        short = shop_traits(shop, reply)
        long = short | {"words of the question": 4.0}
        one, other = (shipped().probability(tuple(each.values())) for each in (short, long))
        assert (one > other) == surer
        assert surer or one == other


def test_the_shipped_model_is_surer_of_agreement_than_of_trouble(shop: Database) -> None:
    sure, doubtful = (
        shipped().probability(tuple(shop_traits(shop, *replies).values())) for replies in ((RIGHT,), (WRONG,))
    )
    assert sure > 0.5 > doubtful
    assert shipped().fitted_on
