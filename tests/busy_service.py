"""Many threads ask and confirm through one Crystal, or one process does until it is killed; then all is counted.

Run as a script: `busy_service.py threads STORE FOLDER SECONDS` or `busy_service.py kills STORE FOLDER KILLS SEED`. The
folder holds, or is given, the shop's database.
"""

import itertools
import os
import random
import sys
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from cardbox import HashingEmbedder
from killing import said_until_killed
from shop import build, fenced
from sqlcrystal import Crystal
from sqlcrystal.bank import Verdict
from sqlcrystal.models.scripted import ScriptedModel
from sqlcrystal.types import Message, Sampling

THREADS = 50
SHARED = 7
MOST_VERDICTS = 3
LONGEST_DELAY = 0.03


def counting(messages: Sequence[Message], _: Sampling) -> str:
    """Answers each question with its own number, so that no answer can pass for another."""
    number = messages[1].content.rsplit("number ", 1)[1].split("?")[0]
    return fenced(f"SELECT {number} FROM item LIMIT 1")


def opened(store: str, folder: Path) -> Crystal:
    """A service over the shop."""
    place = folder / "shop.sqlite"
    model = ScriptedModel(counting)
    return Crystal.over(place if place.exists() else build(place), model=model, store=store, embedder=HashingEmbedder())


def ask_and_confirm(crystal: Crystal, number: int) -> str:
    """One question, its answer and the verdict; returns the answer's id once both are acknowledged."""
    answer = crystal.ask(f"What is number {number}?", by="ada")
    assert answer.rows == ((number,),), answer
    ruling = crystal.confirm(answer, by="ada")
    assert ruling.card
    return answer.id


def threads(store: str, folder: Path, seconds: float) -> str:
    """Fifty threads at once, each with questions of its own and some that all of them ask."""
    with opened(store, folder) as crystal:
        ends = time.monotonic() + seconds

        def work(thread: int) -> list[tuple[str, int]]:
            done = []
            for turn in itertools.count():
                number = turn % SHARED if turn % 3 == 2 else 1_000_000 * (thread + 1) + turn
                done.append((ask_and_confirm(crystal, number), number))
                if time.monotonic() >= ends:
                    return done
            raise AssertionError("unreachable")

        with ThreadPoolExecutor(THREADS) as pool:
            done = list(itertools.chain.from_iterable(pool.map(work, range(THREADS))))
        look(crystal, done, complete=True)
        return f"{len(done)} asked and confirmed, {len({number for _, number in done})} different questions"


def look(crystal: Crystal, acknowledged: Sequence[tuple[str, int]], *, complete: bool) -> None:
    """Nothing acknowledged is missing, nothing is there twice, and no card is without its verdict."""
    store = crystal.store
    kept = {answer.id: answer for answer in crystal.history(limit=10_000_000)}
    decided = Counter(decision.answer for decision in store.decisions.all())
    served = Counter(card.question.text for card in crystal.cards("shop"))
    assert len({name for name, _ in acknowledged}) == len(acknowledged)
    for name, number in acknowledged:
        assert kept[name].question == f"What is number {number}?"
        assert store.answers.verdict(name) == Verdict.CONFIRMED
        assert served[kept[name].question] == 1
    assert set(decided.values()) <= {1}
    assert set(served.values()) <= {1}
    assert set(served) == {kept[name].question for name in decided}
    if complete:
        assert set(kept) == set(decided) == {name for name, _ in acknowledged}


def life(store: str, folder: Path, first: int, verdicts: int, delay: float) -> list[tuple[str, int]]:
    """A process that asks and confirms until it is killed; returns what it acknowledged."""

    def work(pipe: int) -> None:
        with opened(store, folder) as crystal:
            for number in itertools.count(first):
                os.write(pipe, f"{ask_and_confirm(crystal, number)} {number}\n".encode())

    acknowledgements = said_until_killed(work, lines=verdicts, delay=delay)
    return [(line.split()[0], int(line.split()[1])) for line in acknowledgements]


def kills(store: str, folder: Path, count: int, seed: int) -> str:
    """Kill the service at random moments; look each time whether what it acknowledged is there."""
    rng = random.Random(seed)
    build(folder / "shop.sqlite")
    with opened(str(folder / "warm.db"), folder) as crystal:
        ask_and_confirm(crystal, 0)  # so that a kill falls into the work, and not into the loading of modules
    acknowledged: list[tuple[str, int]] = []
    for kill in range(count):
        verdicts, delay = rng.randrange(MOST_VERDICTS), rng.uniform(0, LONGEST_DELAY)
        acknowledged += life(store, folder, kill * 100_000, verdicts, delay)
        with opened(store, folder) as crystal:
            look(crystal, acknowledged, complete=False)
    return f"{count} kills, {len(acknowledged)} acknowledged"


if __name__ == "__main__":
    kind, where, at, *numbers = sys.argv[1:]
    if kind == "threads":
        print(threads(where, Path(at), float(numbers[0])))
    else:
        print(kills(where, Path(at), int(numbers[0]), int(numbers[1])))
