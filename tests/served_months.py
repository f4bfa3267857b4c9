"""Months of traffic with a known truth through the whole service: asked, held out, judged by users who err, looked at.

Run as a script: `served_months.py MONTHS FILE.jsonl` serves so many months of 30 days, for a memory that helps and for
one that does not. It prints how often `value` held the truth at every daily look, how wide its interval is at the end
against one for a single look, and how far wrong verdicts pull it. Months that the file has already are not served
again. The store of each month lies in memory (/dev/shm) where there is such a place: nobody needs it afterwards.
"""

import random
import statistics
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from cardbox import HashingEmbedder
from shop import build, fenced
from simulated_months import fixed_sample
from sqlcrystal import Crystal
from sqlcrystal.config import DatabaseEntry, TeamFile
from sqlcrystal.measurement.live import LiveLift, Tally, live_lift
from sqlcrystal.models.scripted import ScriptedModel
from sqlcrystal.serving.value import Value
from sqlcrystal.types import Message, Sampling

FLOOR, BROKE, ERRS, JUDGED = 0.6, 0.03, 0.05, 0.8
SHARE = 0.3
LIFTS = (0.06, 0.0)
TOLD_EVERY = 25


class Counts:
    """Verdicts by arm: right and wrong ones."""

    def __init__(self) -> None:
        self._seen = {(memory, right): 0 for memory in (True, False) for right in (True, False)}

    def add(self, *, memory: bool, right: bool) -> None:
        """One verdict more."""
        self._seen[memory, right] += 1

    def tally(self) -> Tally:
        """As the estimator takes them."""
        with_memory, without = (self._seen[memory, True] + self._seen[memory, False] for memory in (True, False))
        return Tally(with_memory, self._seen[True, True], without, self._seen[False, True])


class Look(Struct, frozen=True):
    """What `value` said at the end of a day, and what the verdicts say, as given and had none been wrong."""

    said: Value
    counted: LiveLift
    truthful: LiveLift
    fixed_sample_pp: float
    """Half the width of an interval for one look at the same verdicts."""


class Month(Struct, frozen=True):
    """What a month came to, in points: whether every look held the truth, and the last look's estimates and widths."""

    seed: int
    lift: float
    held: bool
    estimate: float
    truthful: float
    width_ratio: float


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
    given, truth = Counts(), Counts()
    with Crystal(team, model=ScriptedModel(reply), embedder=HashingEmbedder()) as crystal:
        crystal.confirm(crystal.ask("What is number 0?", memory=False), by="ada")
        for day in range(days):
            for turn in range(asked):
                number = 100 * (day * asked + turn) + rng.randrange(100)
                answer = crystal.ask(f"On day {day}, what is number {number}?", by="ada")
                if rng.random() < JUDGED:
                    is_right = answer.rows == ((number,),)
                    verdict = is_right != (rng.random() < ERRS)
                    arm = crystal.store.answers.get(answer.id).memory
                    given.add(memory=arm, right=verdict)
                    truth.add(memory=arm, right=is_right)
                    crystal.confirm(answer, by="ada") if verdict else crystal.reject(answer, by="ada", repair=False)
            (value,) = crystal.value()
            yield _look(value, given.tally(), truth.tally())


def _look(value: Value, given: Tally, truth: Tally) -> Look:
    one_look = 100 * float(fixed_sample(given)) if given.with_memory and given.without else 0.0
    return Look(value, live_lift([given]), live_lift([truth]), one_look)


def month(*, seed: int, lift: float) -> Month:
    """Serve one month somewhere, and sum it up."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        looks = list(serve_month(Path(folder), seed=seed, lift=lift))
    for look in looks:
        counted = look.counted.value_pp
        assert look.said.lift_pp == (None if counted is None else round(counted, 2))
    known = [look.said.lift_ci_pp for look in looks if look.said.lift_ci_pp is not None]
    last, (low, high) = looks[-1], known[-1]
    assert last.said.lift_pp is not None
    assert last.truthful.value_pp is not None
    return Month(
        seed=seed,
        lift=lift,
        held=all(low <= 100 * lift <= high for low, high in known),
        estimate=last.said.lift_pp,
        truthful=last.truthful.value_pp,
        width_ratio=(high - low) / 2 / last.fixed_sample_pp,
    )


def summary(lift: float, months: Sequence[Month]) -> str:
    """One line about the months of one truth."""
    estimates = [month.estimate for month in months]
    error = statistics.stdev(estimates) / len(months) ** 0.5
    pull = statistics.mean(month.estimate - month.truthful for month in months)
    return (
        f"lift {100 * lift:+.0f}: held at every look in {sum(month.held for month in months)} of {len(months)} months; "
        f"mean estimate {statistics.mean(estimates):+.2f} ± {error:.2f}, wrong verdicts pull it by {pull:+.2f}; "
        f"{statistics.median(month.width_ratio for month in months):.2f} × as wide as for one look"
    )


def main(months: int, file: Path) -> None:
    """Both truths in turn, told now and then, so that an interrupted run has said something of each."""
    known = [msgspec.json.decode(line, type=Month) for line in file.read_bytes().splitlines()] if file.exists() else []
    seen = {(month.seed, month.lift): month for month in known}
    with file.open("ab", buffering=0) as out:
        for seed in range(months):
            for lift in LIFTS:
                if (seed, lift) not in seen:
                    seen[seed, lift] = month(seed=seed, lift=lift)
                    out.write(msgspec.json.encode(seen[seed, lift]) + b"\n")
            if (seed + 1) % TOLD_EVERY == 0 or seed + 1 == months:
                for lift in LIFTS:
                    print(summary(lift, [seen[number, lift] for number in range(seed + 1)]), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]))
