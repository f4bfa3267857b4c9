"""Kills a process that gives verdicts, many times over, and looks each time whether an acknowledged one is missing.

Run as a script: `killed_verdicts.py PLACE KILLS SEED`. It forks from one warm process, so that a kill costs
milliseconds and falls anywhere: while the store is made, migrated, opened, written or checkpointed. A place that is a
folder gets a new SQLite file every ten kills.
"""

import os
import random
import sqlite3
import sys
from functools import partial
from pathlib import Path

from cardbox import card, episode
from killing import said_until_killed
from sqlcrystal.bank import AnswerRecord, Store, Verdict

LIVES_PER_FILE = 10
MOST_VERDICTS = 4
LONGEST_DELAY = 0.02


def give(store: Store, number: int) -> None:
    """One answer and the verdict that banks it."""
    store.answers.save(
        AnswerRecord(id=f"a{number}", database="shop", question=f"Question {number}?", at="2026-03-01", asked_by="ada")
    )
    banked = card(number, signal="user")
    store.decisions.decide(
        f"a{number}", Verdict.CONFIRMED, by="ada", signal="user", bank=lambda: store.bank.add(banked, episode(banked))
    )


def write_until_killed(place: str, first: int, pipe: int) -> None:
    """Acknowledge each verdict on the pipe once it has been taken."""
    with Store(place) as store:
        for number in range(first, first + 100_000):
            give(store, number)
            os.write(pipe, f"{number}\n".encode())


def life(place: str, first: int, verdicts: int, seconds: float) -> list[int]:
    """One writer's life: killed so long after so many verdicts; returns what it acknowledged."""
    acknowledgements = said_until_killed(partial(write_until_killed, place, first), lines=verdicts, delay=seconds)
    return [int(line) for line in acknowledgements]


def look(place: str, acknowledged: list[int]) -> None:
    """Nothing acknowledged is missing, nothing is there twice, and no card is without its verdict."""
    with Store(place) as store:
        decided = [decision.card for decision in store.decisions.all()]
        cards = [c.id for c in store.bank.cards("shop")]
        lost = {f"shop-{number}" for number in acknowledged} - set(cards)
        assert not lost, f"lost {sorted(lost)}"
        assert len(set(decided)) == len(decided)
        assert sorted(decided) == sorted(cards)
        assert all(store.bank.episode(name) for name in cards[-3:])
    if "://" not in place:
        raw = sqlite3.connect(place)
        assert raw.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        raw.close()


def main(where: str, kills: int, seed: int) -> None:
    """Print how many kills, acknowledged verdicts and interrupted lives there were; fail on the first loss."""
    rng = random.Random(seed)
    acknowledged: list[int] = []
    total = empty = 0
    place = where
    for kill in range(kills):
        if Path(where).is_dir() and kill % LIVES_PER_FILE == 0:
            place, acknowledged = str(Path(where) / f"store-{kill}.db"), []
        survived = life(place, kill * 100_000, rng.randrange(MOST_VERDICTS), rng.uniform(0, LONGEST_DELAY))
        acknowledged += survived
        total += len(survived)
        empty += not survived
        look(place, acknowledged)
    print(f"{kills} kills, {total} acknowledged, {empty} lives without a verdict")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
