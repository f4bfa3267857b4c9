"""A study's bank on its way into service: the cards of one arm and seed, as a store takes them."""

from pathlib import Path

from sqlcrystal.bank import Entry
from sqlcrystal.errors import ConfigError, DataError
from sqlcrystal.ledger.records import BankedCard, Ledger, read_ledger
from sqlcrystal.timestamps import timestamp
from sqlcrystal.types import Admission, Card, Question


def banked_entries(folder: Path, *, arm: str, seed: int) -> list[Entry]:
    """Every card that the arm banked under the seed; each keeps the signal that admitted it and names its study.

    A ledger does not keep fingerprints, so every card is run again before it is served for the first time.
    """
    ledger = read_ledger(folder)
    arms = sorted({card.arm for card in ledger.cards})
    if not arms:
        raise DataError(f"{folder}: the study banked no cards")
    if arm not in arms:
        raise ConfigError.unknown("--arm", arm, arms)
    seeds = sorted({card.seed for card in ledger.cards if card.arm == arm})
    if seed not in seeds:
        raise ConfigError.unknown("--seed", str(seed), [str(known) for known in seeds])
    writer = next((listed.writer for listed in ledger.manifest.arms if listed.name == arm), arm)
    at = timestamp()
    return [
        Entry(card=_card(card, ledger, writer=writer, at=at))
        for card in ledger.cards
        if card.arm == arm and card.seed == seed
    ]


def _card(card: BankedCard, ledger: Ledger, *, writer: str, at: str) -> Card:
    study = ledger.manifest.study
    return Card(
        id=card.id,
        database=card.database,
        question=Question(id=card.question_id, database=card.database, text=card.question),
        sql=card.sql,
        text=card.text,
        writer=writer,
        source=card.source,
        admission=Admission(signal=card.signal, by=f"study {study}", at=at, detail=f"arm {card.arm}, seed {card.seed}"),
        fingerprint="",
        tokens=card.tokens,
    )
