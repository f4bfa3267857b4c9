"""Measuring memory is switched on by one choice, which says what it costs and goes before the settings."""

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from cardbox import HashingEmbedder
from shop import build, repairing
from sqlcrystal import Crystal
from sqlcrystal.bank import Scope
from sqlcrystal.config import DatabaseEntry, TeamFile
from sqlcrystal.errors import ConfigError, Forbidden
from sqlcrystal.measurement.live import paired_verdicts_needed, verdicts_needed
from sqlcrystal.models.scripted import ScriptedModel
from sqlcrystal.serving import Caller
from sqlcrystal.serving.lift import LIFTS_PP, USUAL_FLOOR, WAYS

VERDICTS = re.compile(r"about ([\d,]+) verdicts")
ASKED = "How many hardware items are there?"


def team(folder: Path, *, hold_out: float = 0.0) -> Crystal:
    place = folder / "shop.sqlite"
    entry = DatabaseEntry(url=str(place if place.exists() else build(place)), hold_out=hold_out)
    settings = TeamFile(databases={"shop": entry}, store=str(folder / "team.db"))
    return Crystal(settings, model=ScriptedModel(repairing), embedder=HashingEmbedder())


@pytest.fixture
def crystal(tmp_path: Path) -> Iterator[Crystal]:
    with team(tmp_path) as opened:
        yield opened


def share_of_the_next(crystal: Crystal) -> float:
    return crystal.store.answers.get(crystal.ask(ASKED).id).share


def chosen(crystal: Crystal) -> str:
    return " ".join(choice.kind for choice in crystal.measuring() if choice.chosen)


def test_a_choice_divides_the_questions_from_now_on_in_every_process(crystal: Crystal, tmp_path: Path) -> None:
    assert (chosen(crystal), share_of_the_next(crystal)) == ("off", 0.0)
    made = crystal.measure("hold-out", by="ada")
    assert (made.by, made.chosen) == ("ada", True)
    with team(tmp_path) as other:
        assert (chosen(other), share_of_the_next(other)) == ("hold-out", 0.2)
        other.measure("both")
    assert (chosen(crystal), share_of_the_next(crystal)) == ("both", 0.5)
    assert crystal.database_state().hold_out == 0.5


def test_a_choice_goes_before_the_settings_which_are_one_of_the_ways(tmp_path: Path) -> None:
    with team(tmp_path, hold_out=0.1) as crystal:
        assert (chosen(crystal), share_of_the_next(crystal)) == ("settings", 0.1)
        crystal.measure("off")
        assert (chosen(crystal), share_of_the_next(crystal)) == ("off", 0.0)


def test_every_way_that_compares_says_what_it_costs_and_when_it_tells(crystal: Crystal) -> None:
    for _ in range(3):
        crystal.confirm(crystal.ask(ASKED))
    told = {choice.kind: choice for choice in crystal.measuring()}
    assert "Twice the calls" in told["both"].costs
    assert "tokens more for each question here" in told["both"].costs
    assert told["off"].tells == ""
    assert "20 points after about 590 verdicts (" in told["hold-out"].tells
    assert "years at your pace)" in told["hold-out"].tells


def test_only_those_who_manage_a_database_choose_and_an_unknown_way_lists_the_others(crystal: Crystal) -> None:
    judge = crystal.acting_for(Caller(person="bo", scopes=frozenset({("shop", Scope.ASK), ("shop", Scope.JUDGE)})))
    with pytest.raises(Forbidden, match="manage"):
        judge.measure("off", "shop")
    with pytest.raises(ConfigError, match="choose from both, hold-out, off"):
        crystal.measure("always")


def test_each_way_tells_the_verdicts_that_its_own_design_needs_and_pairs_need_fewer(crystal: Crystal) -> None:
    told = {
        choice.kind: [int(n.replace(",", "")) for n in VERDICTS.findall(choice.tells)] for choice in crystal.measuring()
    }
    for kind, count in (
        ("hold-out", partial(verdicts_needed, share=WAYS["hold-out"].hold_out)),
        ("both", paired_verdicts_needed),
    ):
        needed = [count(floor=USUAL_FLOOR, effect_pp=effect) for effect in LIFTS_PP]
        assert told[kind] == pytest.approx([number for number in needed if number], rel=0.05)  # told in two digits
    assert all(pairs < halves for pairs, halves in zip(told["both"], told["hold-out"], strict=True))
