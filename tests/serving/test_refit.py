"""A team's own verdicts refit how sure its answers are told to be, and never to a worse model."""

import random
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from cardbox import HashingEmbedder
from shop import build, fenced
from sqlcrystal.config import DatabaseEntry, TeamFile
from sqlcrystal.measurement.confidence import (
    EVERY_VERDICTS,
    LEAST_VERDICTS,
    TRAITS,
    Confidence,
    Example,
    refit,
    shipped,
)
from sqlcrystal.models.scripted import ScriptedModel, prompt_text
from sqlcrystal.serving.crystal import Crystal
from sqlcrystal.types import Message, Sampling

JOINS = TRAITS.index("joins")
FLAT = Confidence(weights=(0.0,) * len(TRAITS), intercept=0.0, fitted_on="nothing")


def told_by_joins(count: int, *, right: float, seed: int = 1) -> list[Example]:
    """Verdicts of a team whose answers with a join are wrong, and the others right so often."""
    draw = random.Random(seed)
    drawn = [(draw.random() < 0.5, draw.random()) for _ in range(count)]
    return [
        Example(
            tuple(float(joined) if place == JOINS else 0.0 for place in range(len(TRAITS))),
            not joined and chance < right,
            "shop",
        )
        for joined, chance in drawn
    ]


def test_verdicts_move_the_model_towards_what_they_say() -> None:
    found = refit(told_by_joins(200, right=0.95), prior=FLAT)
    assert found.in_use
    assert found.brier_shipped is not None
    assert found.brier_refitted is not None
    assert found.brier_refitted < found.brier_shipped
    assert found.model.weights[JOINS] < 0


def test_few_verdicts_move_it_less_than_many() -> None:
    few, many = (refit(told_by_joins(count, right=0.95), prior=FLAT).model.weights[JOINS] for count in (24, 400))
    assert many < few < 0


def test_verdicts_that_foretell_nothing_keep_the_shipped_model() -> None:
    turned = told_by_joins(60, right=1.0)
    turned = [*turned[:30], *(example._replace(right=not example.right) for example in turned[30:])]
    found = refit(turned, prior=FLAT)
    assert not found.in_use
    assert found.model == FLAT


@pytest.mark.parametrize("seed", range(20))
def test_the_model_in_use_is_never_worse_on_the_later_verdicts(seed: int) -> None:
    found = refit(told_by_joins(60, right=0.6, seed=seed), prior=shipped())
    assert found.brier_shipped is not None
    assert found.brier_refitted is not None
    assert found.in_use == (found.brier_refitted < found.brier_shipped)


def test_fewer_verdicts_than_the_least_refit_nothing() -> None:
    found = refit(told_by_joins(LEAST_VERDICTS - 1, right=1.0), prior=shipped())
    assert (found.model, found.tested) == (shipped(), 0)


def counting(messages: Sequence[Message], _: Sampling) -> str:
    """A model that is wrong where its question says dear, in all views alike."""
    asked = prompt_text(messages).rpartition("[Question]")[2]
    return fenced("SELECT COUNT(*) FROM item WHERE price > 100 AND kind = 'HW'" if "dear" in asked else SOUND)


SOUND = "SELECT COUNT(*) FROM item"


@pytest.fixture
def crystal(tmp_path: Path) -> Iterator[Crystal]:
    entry = DatabaseEntry(url=str(build(tmp_path / "shop.sqlite")), readings=0)
    team = TeamFile(databases={"shop": entry}, store=str(tmp_path / "team.db"), cards=0)
    with Crystal(team, model=ScriptedModel(counting), embedder=HashingEmbedder()) as crystal:
        yield crystal


def judge(crystal: Crystal, count: int) -> None:
    """Find answers about dear things wrong, and all others right."""
    for number in range(count):
        dear = number % 2 == 0
        answer = crystal.ask(f"How many {'dear' if dear else 'plain'} things are in shelf {chr(65 + number)}?")
        if dear:
            crystal.reject(answer, repair=False)
        else:
            crystal.confirm(answer, anyway=True)


def test_every_so_many_verdicts_refit_and_the_next_answers_are_told_by_it(crystal: Crystal) -> None:
    before = crystal.ask("How many dear things are there?").confidence
    judge(crystal, LEAST_VERDICTS - 1)
    (value,) = crystal.value()
    assert value.confidence is not None
    assert (value.confidence.needed, value.confidence.in_use) == (1, False)
    judge(crystal, LEAST_VERDICTS + EVERY_VERDICTS)
    (value,) = crystal.value()
    assert value.confidence is not None
    assert value.confidence.in_use
    after = crystal.ask("How many dear things are there?").confidence
    assert before is not None
    assert after is not None
    assert after < before


def test_the_queue_is_ordered_by_the_refitted_confidence(crystal: Crystal) -> None:
    plain = crystal.ask("How many plain things are in stock?")
    dear = crystal.ask("How many dear things are in stock?")
    judge(crystal, LEAST_VERDICTS + EVERY_VERDICTS)
    assert [waiting.id for waiting in crystal.queue()] == [dear.id, plain.id]


def test_a_refit_by_command_orders_nothing_worse_than_before(crystal: Crystal) -> None:
    judge(crystal, 4)
    found = crystal.refit("shop")
    assert (found.verdicts, found.in_use) == (4, False)
