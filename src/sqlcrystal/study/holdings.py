"""The cards of a collection for the units that wait for them, once the last of its own is performed."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import TypeAlias

from msgspec import Struct

from sqlcrystal.ledger.log import LogLine
from sqlcrystal.ledger.records import Outcome
from sqlcrystal.measurement.cause import harmful
from sqlcrystal.study.units import Collection, Unit
from sqlcrystal.types import Card, CardId


class BankedEpisode(Struct, frozen=True):
    """A card as a collection made it, with the failure modes of its repair; a first-try success has none."""

    card: Card
    modes: tuple[str, ...] = ()


class Performed(Struct, frozen=True, kw_only=True):
    """The outcome of a unit: its row, its line in the log, and for a collection the card or that there is none yet."""

    outcome: Outcome
    line: LogLine
    banked: BankedEpisode | None = None
    missed: bool = False


class Holding(Struct, frozen=True):
    """A finished collection: its cards in the order they were banked, and the questions still without one."""

    episodes: tuple[BankedEpisode, ...] = ()
    missed: frozenset[tuple[str, str]] = frozenset()
    retired: frozenset[CardId] = frozenset()
    """The cards that did more harm than good to the questions of their own collection, once they were tried."""


Filled: TypeAlias = Mapping[Collection, Holding]
"""The collections that are complete, and what they hold."""


class Holdings:
    """The banks of a study as they fill; a run and a plan keep one each."""

    def __init__(self, units: Iterable[Unit]) -> None:
        self.filled: dict[Collection, Holding] = {}
        self._waiting: dict[Collection, dict[Unit, Performed | None]] = defaultdict(dict)
        self._fillers: dict[Collection, list[Unit]] = defaultdict(list)
        for unit in units:
            if unit.fills is not None:
                self._fillers[unit.fills].append(unit)

    def keep(self, unit: Unit, performed: Performed | None) -> bool:
        """Take what came of a unit; True when it was the last that its bank waited for."""
        if unit.fills is None:
            return False
        waiting, fillers = self._waiting[unit.fills], self._fillers[unit.fills]
        waiting[unit] = performed
        if len(waiting) < len(fillers):
            return False
        before = self.filled[unit.needs[0]] if unit.needs else Holding()  # the pass before this one
        finished = [(filler.question.key, done) for filler in fillers if (done := waiting[filler]) is not None]
        if unit.fills.tried_by:
            retired = harmful(done.outcome for _, done in finished)
            self.filled[unit.fills] = Holding(before.episodes, before.missed, retired)
            del self._waiting[unit.fills]
            return True
        banked = (done.banked for _, done in finished if done.banked is not None)
        missed = frozenset(key for key, done in finished if done.missed)
        self.filled[unit.fills] = Holding((*before.episodes, *banked), missed)
        del self._waiting[unit.fills]
        return True
