"""The answer of the service: chosen among views as the settings say, repaired without a call, told how sure it is."""

from pathlib import Path

import pytest

from cardbox import HashingEmbedder
from shop import RIGHT, build, fenced
from sqlcrystal.config import DatabaseEntry, TeamFile
from sqlcrystal.models.scripted import ScriptedModel, prompt_text
from sqlcrystal.serving.crystal import Crystal
from sqlcrystal.solving.profile import HEADING

ASKED = "How many hardware items are there?"
OTHER = "SELECT COUNT(*) FROM item"


def opened(folder: Path, model: ScriptedModel, **settings: object) -> Crystal:
    entry = DatabaseEntry(url=str(build(folder / "shop.sqlite")), **settings)  # type: ignore[arg-type]
    team = TeamFile(databases={"shop": entry}, store=str(folder / "team.db"))
    return Crystal(team, model=model, embedder=HashingEmbedder())


def by_view(profiled: str, bare: str) -> ScriptedModel:
    """A model that answers by whether its prompt shows what the columns hold."""
    return ScriptedModel(lambda messages, _: fenced(profiled if HEADING in prompt_text(messages) else bare))


@pytest.mark.parametrize(
    ("settings", "calls"), [({}, 2), ({"choice": "signs"}, 1), ({"choice": "none"}, 1), ({"values": "never"}, 1)]
)
def test_as_many_views_are_asked_for_as_the_settings_say(
    tmp_path: Path, settings: dict[str, object], calls: int
) -> None:
    with opened(tmp_path, by_view(RIGHT, RIGHT), **settings) as crystal:
        assert crystal.ask(ASKED).calls == calls


def test_views_that_agree_make_a_surer_answer_than_views_that_differ(tmp_path: Path) -> None:
    told = []
    for name, bare in (("agree", RIGHT), ("differ", OTHER)):
        (tmp_path / name).mkdir()
        with opened(tmp_path / name, by_view(RIGHT, bare)) as crystal:
            told.append(crystal.ask(ASKED))
    sure, doubtful = told
    assert sure.confidence is not None
    assert doubtful.confidence is not None
    assert sure.confidence > doubtful.confidence
    assert f"({100 * sure.confidence:.0f} %)" in sure.cost_line()


def test_the_queue_begins_with_the_answer_that_is_doubted_most(tmp_path: Path) -> None:
    model = ScriptedModel(
        lambda messages, _: fenced(
            RIGHT
            if "hardware" in messages[1].content.rpartition("[Question]")[2]
            else (RIGHT if HEADING in messages[1].content else OTHER)
        )
    )
    with opened(tmp_path, model) as crystal:
        crystal.ask(ASKED)
        doubted = crystal.ask("How many bolts and nuts?")
        assert crystal.queue()[0].id == doubted.id


def test_a_misspelt_value_is_mended_without_asking_the_model_again(tmp_path: Path) -> None:
    model = by_view("SELECT price FROM item WHERE name = 'bolt'", "SELECT price FROM item WHERE name = 'bolt'")
    with opened(tmp_path, model) as crystal:
        answer = crystal.ask("What does a bolt cost?")
    assert (answer.sql, answer.rows) == ("SELECT price FROM item WHERE name = 'Bolt'", ((120,),))
    assert len(model.prompts) == 2  # the two views, and no repair
