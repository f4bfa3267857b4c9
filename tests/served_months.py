"""Months of traffic with a known truth through the whole service: asked, held out, judged by users who err, looked at.

Run as a script: `served_months.py MONTHS FOLDER` prints how often `value` held the truth at every daily look.
"""

import random
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from cardbox import HashingEmbedder
from shop import build, fenced
from sqlcrystal import Crystal
from sqlcrystal.config import DatabaseEntry, TeamFile
from sqlcrystal.measurement.live import Tally, live_lift
from sqlcrystal.models.scripted import ScriptedModel
from sqlcrystal.serving.value import Value
from sqlcrystal.types import Message, Sampling

FLOOR, BROKE, ERRS, JUDGED = 0.6, 0.03, 0.05, 0.8
SHARE = 0.3


class Look(Struct, frozen=True):
    """What `value` said at the end of a day, and what the same verdicts say when they are counted here."""

    said: Value
    value_pp: float | None
    low_pp: float | None
    high_pp: float | None


def right(number: int, *, memory: bool, lift: float) -> bool:
    """Whether the model answers a question right: a fixed share without memory, and so many points more with it."""
    place = number % 100 / 100
    before = place < FLOOR
    return (place >= BROKE if before else place < FLOOR + BROKE + lift) if memory else before


def serve_month(folder: Path, *, seed: int, lift: float, days: int = 30, asked: int = 12) -> Iterator[Look]:
    """One month: the service answers, its users judge most answers and err in some verdicts, one looks every day."""
    rng = random.Random(seed)

    def reply(messages: Sequence[Message], _: Sampling) -> str:
        number = int(messages[1].content.rsplit("number ", 1)[1].split("?")[0])
        told = "[Similar solved questions" in messages[1].content
        return fenced(f"SELECT {number if right(number, memory=told, lift=lift) else -number} FROM item LIMIT 1")

    entry = DatabaseEntry(url=str(build(folder / "shop.sqlite")), hold_out=SHARE)
    team = TeamFile(databases={"shop": entry}, store=str(folder / "team.db"), budget=0, seed=seed)
    counts = {(memory, verdict): 0 for memory in (True, False) for verdict in (True, False)}
    with Crystal(team, model=ScriptedModel(reply), embedder=HashingEmbedder()) as crystal:
        crystal.confirm(crystal.ask("What is number 0?", memory=False), by="ada")
        for day in range(days):
            for turn in range(asked):
                number = 100 * (day * asked + turn) + rng.randrange(100)
                answer = crystal.ask(f"On day {day}, what is number {number}?", by="ada")
                if rng.random() < JUDGED:
                    verdict = (answer.rows == ((number,),)) != (rng.random() < ERRS)
                    counts[answer.memory, verdict] += 1
                    crystal.confirm(answer, by="ada") if verdict else crystal.reject(answer, by="ada", repair=False)
            (said,) = crystal.value()
            yield _look(said, counts)


def _look(said: Value, counts: dict[tuple[bool, bool], int]) -> Look:
    arms = [counts[memory, True] + counts[memory, False] for memory in (True, False)]
    seen = live_lift([Tally(arms[0], counts[True, True], arms[1], counts[False, True])])
    return Look(said, seen.value_pp, seen.low_pp, seen.high_pp)


def main(months: int, where: str) -> None:
    """Print one line for each lift."""
    for lift in (0.06, 0.0):
        held, ends = 0, []
        for seed in range(months):
            folder = Path(tempfile.mkdtemp(dir=where))
            looks = list(serve_month(folder, seed=seed, lift=lift))
            ends.append(looks[-1].said.lift_pp or 0.0)
            known = [look.said.lift_ci_pp for look in looks if look.said.lift_ci_pp is not None]
            held += all(low <= 100 * lift <= high for low, high in known)
            assert all(
                look.said.lift_pp == (None if look.value_pp is None else round(look.value_pp, 2)) for look in looks
            )
            shutil.rmtree(folder)
        print(f"lift {100 * lift:+.0f}: held in {held} of {months} months, mean {sum(ends) / months:+.1f}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
