"""A new writer or retriever is one class and its line in a table: studies, plans, reports and services then know it."""

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar, Self

import pytest

from cardbox import HashingEmbedder, card
from shop import RIGHT, build, fenced
from sqlcrystal import Crystal
from sqlcrystal.assembly import RETRIEVERS, WRITERS, by_name
from sqlcrystal.config import DatabaseEntry, TeamFile, parse_study
from sqlcrystal.consumption.retriever import Excluded, NamedRetriever, Reach
from sqlcrystal.errors import ConfigError
from sqlcrystal.models.scripted import ScriptedModel, prompt_text
from sqlcrystal.planning.plan import plan_study
from sqlcrystal.protocols import Bank
from sqlcrystal.study.opening import run_study
from sqlcrystal.study.report.table import WORDS
from sqlcrystal.types import Call, Episode, Question, Retrieved, Sampling
from sqlcrystal.writing.capsule import CapsuleWriter
from study_player import Player

ASKED = "How many hardware items are there?"


class Riddle(CapsuleWriter):
    """Asks the model for a riddle about the repair."""

    name: ClassVar[str] = "riddle"
    header: ClassVar[str] = "[Riddles about similar solved questions]"
    summary: ClassVar[str] = "a riddle by the model"

    def compose(self, episode: Episode) -> tuple[str, tuple[Call, ...]]:
        """Ask once."""
        messages = episode.attempt.call.messages
        completion = self.model.chat(messages, sampling=Sampling(index=77))
        return f"Riddle: {len(episode.sql)}", (
            Call(purpose="riddle", messages=messages, sampling=Sampling(index=77), completion=completion),
        )


class Lottery(NamedRetriever):
    """Brings the card that the seed points at."""

    name: ClassVar[str] = "lottery"
    summary: ClassVar[str] = "the card that the seed points at"
    seeded: ClassVar[bool] = True
    seeds: ClassVar[list[int]] = []

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.seeds.append(seed)

    @classmethod
    def of(cls, reach: Reach) -> Self:
        """Make the retriever with the seed."""
        return cls(reach.seed)

    def retrieve(self, question: Question, bank: Bank, *, k: int, exclude: Excluded = None) -> Sequence[Retrieved]:
        """Bring one card."""
        cards = bank.cards(question.database)
        return [Retrieved(cards[self.seed % len(cards)], 1.0)] if cards and k else []


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    for table, stages in ((WRITERS, by_name(Riddle)), (RETRIEVERS, by_name(Lottery))):
        for name, stage in stages.items():
            monkeypatch.setitem(table, name, stage)
    monkeypatch.setattr(Lottery, "seeds", [])


def test_a_study_runs_plans_and_reports_arms_with_a_new_writer_and_a_new_retriever(tmp_path: Path) -> None:
    study = parse_study(
        {
            "name": "new",
            "benchmark": {"name": "quarry-1", "only": ["clinic"]},
            "seeds": [42, 7],
            "max_tokens": 384,
            "default": {"name": "W0", "settings": ["transfer"]},
            "arm": [{"name": "riddles", "writer": "riddle"}, {"name": "lots", "retriever": "lottery"}],
            "contrast": [{"a": "W0", "b": "riddles"}, {"a": "W0", "b": "lots"}],
        }
    )
    player = Player()
    finished = run_study(study, tmp_path / "run", model=player, jobs=1)
    counts = {(row.arm, row.setting) for row in finished.ledger.outcomes}
    assert {("riddles", "transfer"), ("lots", "transfer"), ("riddles", "collection")} <= counts
    assert any("[Riddles about similar solved questions]\nRiddle: " in prompt[1].content for prompt in player.prompts)
    assert sorted(Lottery.seeds) == [7, 42]
    assert WORDS["writer"]("riddle") == "card = a riddle by the model"
    assert WORDS["retriever"]("lottery") == "the card that the seed points at"
    planned = plan_study(study, model=Player())
    assert sum(work.calls for work in planned.work if work.arm == "riddles" and work.setting == "collection") > 0


def served(folder: Path, retriever: str) -> Crystal:
    entry = DatabaseEntry(url=str(build(folder / "shop.sqlite")), retriever=retriever)
    team = TeamFile(databases={"shop": entry}, store=str(folder / "team.db"), seed=1)
    return Crystal(team, model=ScriptedModel(lambda *_: fenced(RIGHT)), embedder=HashingEmbedder())


def test_a_service_finds_cards_by_the_retriever_of_its_settings_and_shows_a_new_writers_header(tmp_path: Path) -> None:
    with served(tmp_path, "lottery") as crystal:
        for number in range(2):
            crystal.store.bank.add(card(number, text=f"question {number}", writer="riddle"))
        answer = crystal.ask(ASKED, by="ada")
        [used] = answer.cards
        assert used.id == crystal.store.bank.cards("shop")[1].id
        assert "[Riddles about similar solved questions]\n" in prompt_text(crystal.workspace.model.prompts[0])  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", ["nearest", "foreign"])
def test_a_retriever_that_is_not_there_or_crosses_databases_is_refused_with_the_choices(
    tmp_path: Path, name: str
) -> None:
    choices = "bm25, dense, lottery, mmr, none, payload, random"
    with pytest.raises(
        ConfigError, match=rf"databases\.shop\.retriever: unknown value '{name}'; choose from {choices}$"
    ):
        served(tmp_path, name)
