"""The live lift at every look so far: the interval that `value` gives today, as it stood after so many verdicts."""

from msgspec import Struct

from sqlcrystal.bank import Store
from sqlcrystal.measurement.live import live_lift
from sqlcrystal.serving.observations import observations, tallies

LOOKS = 60


class Look(Struct, frozen=True, kw_only=True):
    """The lift in points after so many verdicts."""

    verdicts: int
    at: str
    lift_pp: float
    low_pp: float
    high_pp: float


def trend(store: Store, database: str) -> list[Look]:
    """At most sixty looks, evenly spaced over the verdicts; none before both arms have enough for an interval."""
    judged = [verdict for verdict in store.answers.judged(database=database) if verdict.share > 0]
    every = max(1, -(-len(judged) // LOOKS))
    looks = []
    for count in sorted({*range(every, len(judged) + 1, every), len(judged)} - {0}):
        lift = live_lift(tallies(observations(judged[:count])))
        if lift.value_pp is not None and lift.low_pp is not None and lift.high_pp is not None:
            at = judged[count - 1].at
            looks.append(Look(verdicts=count, at=at, lift_pp=lift.value_pp, low_pp=lift.low_pp, high_pp=lift.high_pp))
    return looks
