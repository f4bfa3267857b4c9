"""Kills a process that banks cards, many times over, and looks each time whether an acknowledged card is missing.

Run as a script: `killed_writer.py FOLDER KILLS SEED`. It forks from one warm process, so that a kill costs milliseconds
and falls anywhere: while the file is made, migrated, opened, written or checkpointed.
"""

import os
import random
import signal
import sqlite3
import sys
import time
from pathlib import Path

from cardbox import card, episode
from sqlcrystal.bank import CardStore

CARDS_PER_FILE = 10
MOST_CARDS = 4
LONGEST_DELAY = 0.02


def write_until_killed(path: Path, first: int, pipe: int) -> None:
    """Bank cards one by one and acknowledge each on the pipe once `add` has returned."""
    with CardStore(path) as store:
        for number in range(first, first + 100_000):
            made = card(number)
            store.add(made, episode(made))
            os.write(pipe, f"{number}\n".encode())


def life(path: Path, first: int, cards: int, seconds: float) -> list[int]:
    """One writer's life: killed so long after so many cards; returns what it acknowledged."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            write_until_killed(path, first, writing)
        finally:
            os._exit(1)
    os.close(writing)
    heard = b""
    while heard.count(b"\n") < cards:
        heard += os.read(reading, 1024)
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status), "the writer ended on its own"
    with os.fdopen(reading, "rb") as pipe:
        return [int(line) for line in (heard + pipe.read()).splitlines()]


def main(folder: Path, kills: int, seed: int) -> None:
    """Print how many kills, acknowledged cards and interrupted lives there were; fail on the first loss."""
    rng = random.Random(seed)
    acknowledged: list[int] = []
    total = empty = 0
    for kill in range(kills):
        if kill % CARDS_PER_FILE == 0:
            path, acknowledged = folder / f"bank-{kill}.sqlite", []
        got = life(path, kill * 100_000, rng.randrange(MOST_CARDS), rng.uniform(0, LONGEST_DELAY))
        acknowledged += got
        total += len(got)
        empty += not got
        with CardStore(path) as store:
            kept = {c.id for c in store.cards("shop")}
            lost = {f"shop-{number}" for number in acknowledged} - kept
            assert not lost, f"kill {kill}: lost {sorted(lost)}"
            assert all(store.episode(name) for name in list(kept)[-3:])
        raw = sqlite3.connect(path)
        assert raw.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        raw.close()
    print(f"{kills} kills, {total} acknowledged, {empty} lives without a card")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
