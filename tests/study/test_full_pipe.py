"""The pipe is kept full: no place in the pool is taken by a unit that would only wait for another one's replies."""

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

import pytest

from sqlcrystal.config import parse_study
from sqlcrystal.engines.worker_pool import Done, ThreadWorkers
from sqlcrystal.study import opening
from sqlcrystal.study.memories import FinishedCollection, Performed
from sqlcrystal.study.perform import Performer
from sqlcrystal.study.units import Collection, Unit
from study_player import Player

STUDY = parse_study(
    {
        "name": "pipe",
        "benchmark": {"name": "quarry-1", "only": ["clinic"]},
        "budget": 2,
        "arm": [{"name": "none", "retriever": "none", "settings": ["transfer", "repair"]}, {"name": "k=1", "k": 1}],
    }
)


class Watched(ThreadWorkers[Unit, Collection, FinishedCollection, Performed]):
    """Threads that notes the work under way whenever a unit is begun."""

    seen: ClassVar[list[tuple[object, list[object]]]] = []

    def __init__(self, performer: Performer, *, size: int) -> None:
        super().__init__(performer, size=size)
        self._work = performer.work
        self._names: dict[Unit, object] = {}

    def begin(self, unit: Unit, finished: Mapping[Collection, FinishedCollection]) -> None:
        name = self._work(unit, finished).name
        self.seen.append((name, list(self._names.values())))
        self._names[unit] = name
        super().begin(unit, finished)

    def next_done(self) -> Done[Unit, Performed]:
        done = super().next_done()
        del self._names[done.unit]
        return done


def test_units_that_ask_alike_are_never_under_way_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "ThreadWorkers", Watched)
    monkeypatch.setattr(Watched, "seen", [])
    finished = opening.run_study(STUDY, tmp_path / "run", model=Player(), jobs=8)
    assert not finished.left_out
    assert max(len(others) for _, others in Watched.seen) == 7
    assert [name for name, others in Watched.seen if name in others] == []
