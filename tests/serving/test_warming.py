"""A service that was just started makes nobody wait for what it can load beforehand."""

from pathlib import Path

from cardbox import HashingEmbedder, card
from shop import build, fenced
from sqlcrystal import Crystal
from sqlcrystal.models.scripted import ScriptedModel
from sqlcrystal.serving.asking import warm_up


def opened(folder: Path, embedder: HashingEmbedder) -> Crystal:
    place = folder / "shop.sqlite"
    model = ScriptedModel(lambda *_: fenced("SELECT 1"))
    return Crystal.over(
        place if place.exists() else build(place), model=model, store=folder / "team.db", embedder=embedder
    )


def test_the_first_question_finds_every_card_embedded(tmp_path: Path) -> None:
    with opened(tmp_path, HashingEmbedder()) as crystal:
        for number in range(3):
            crystal.store.bank.add(card(number, text=f"question number {number}"))
    embedder = HashingEmbedder()
    with opened(tmp_path, embedder) as crystal:
        warm_up(crystal.workspace)
        before = len(embedder.embedded)
        crystal.ask("How many hardware items are there?", by="ada")
        assert embedder.embedded[before:] == ["How many hardware items are there?"]


def test_a_bank_that_would_take_too_long_is_left_to_its_first_question(tmp_path: Path) -> None:
    embedder = HashingEmbedder()
    with opened(tmp_path, embedder) as crystal:
        crystal.store.bank.add(card(1))
        warm_up(crystal.workspace, seconds=-1)
        assert not embedder.embedded


def test_without_cards_no_embedder_is_loaded_and_no_store_is_made(tmp_path: Path) -> None:
    embedder = HashingEmbedder()
    with opened(tmp_path, embedder) as crystal:
        warm_up(crystal.workspace)
    assert not embedder.embedded
    assert not (tmp_path / "team.db").exists()
