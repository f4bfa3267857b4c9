"""Where an effect falls: per database, per difficulty, per seed."""

from collections.abc import Callable, Iterable, Sequence
from math import nan

import numpy as np
from msgspec import Struct

from sqlcrystal.measurement.flips import Pair
from sqlcrystal.measurement.statistics import mcnemar_p


class Effect(Struct, frozen=True, kw_only=True):
    """What a change did within one stratum, accuracies in percent."""

    name: str
    n: int
    before: float
    after: float
    fixed: int
    broke: int
    mcnemar_p: float

    @property
    def net(self) -> int:
        """Questions gained."""
        return self.fixed - self.broke

    @property
    def delta_pp(self) -> float:
        """The change in percentage points."""
        return 100 * self.net / self.n


def effects(pairs: Iterable[Pair], key: Callable[[Pair], str]) -> tuple[Effect, ...]:
    """One effect per value of `key`, in the order the values first appear."""
    groups: dict[str, list[Pair]] = {}
    for pair in pairs:
        groups.setdefault(key(pair), []).append(pair)
    return tuple(_effect(name, members) for name, members in groups.items())


def _effect(name: str, pairs: Sequence[Pair]) -> Effect:
    verdicts = [pair.verdict for pair in pairs]
    fixed, broke = verdicts.count("fix"), verdicts.count("break")
    return Effect(
        name=name,
        n=len(pairs),
        before=100 * sum(pair.before.right for pair in pairs) / len(pairs),
        after=100 * sum(pair.after.right for pair in pairs) / len(pairs),
        fixed=fixed,
        broke=broke,
        mcnemar_p=mcnemar_p(fixed=fixed, broke=broke),
    )


def correlation(x: Sequence[float], y: Sequence[float]) -> float:
    """Pearson's r; NaN where either side does not vary."""
    if len(x) < 3 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return nan
    return float(np.corrcoef(x, y)[0, 1])


def top_share(nets: Sequence[int], *, top: int = 3) -> float | None:
    """Which share of the net gain the first `top` strata carry, in percent; None when there is no gain."""
    total = sum(nets)
    return 100 * sum(nets[:top]) / total if total > 0 else None
