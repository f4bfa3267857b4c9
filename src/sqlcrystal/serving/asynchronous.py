"""`Crystal` for asynchronous programs: each call runs in a thread, so that the loop is never held up."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, ParamSpec, TypeVar

from sqlcrystal.config import TEAM_FILE
from sqlcrystal.serving.answers import Event, Notify, ServedAnswer
from sqlcrystal.serving.crystal import Crystal
from sqlcrystal.serving.documents import Correction, Rejection, Result, Ruling

Parameters = ParamSpec("Parameters")
Returned = TypeVar("Returned")


class AsyncCrystal:
    """The same calls, awaited; `crystal` is the one underneath, for everything that is quick."""

    def __init__(self, crystal: Crystal) -> None:
        """Wrap an open Crystal, which it closes."""
        self.crystal = crystal

    @classmethod
    def open(cls, path: Path | str = TEAM_FILE) -> "AsyncCrystal":
        """Open with the settings of a sqlcrystal.toml."""
        return cls(Crystal.open(path))

    @classmethod
    def over(cls, db: str | Path | None = None, **settings: Any) -> "AsyncCrystal":
        """Open without a settings file; as `Crystal.over`."""
        return cls(Crystal.over(db, **settings))

    async def ask(
        self,
        question: str,
        database: str | None = None,
        *,
        by: str = "",
        follow: ServedAnswer | str = "",
        memory: bool | None = None,
        on_event: Notify | None = None,
    ) -> ServedAnswer:
        """Answer a question; events are handed over on the loop's own thread."""
        notify = None if on_event is None else _on_the_loop(on_event)
        return await self.call(
            self.crystal.ask, question, database, by=by, follow=follow, memory=memory, on_event=notify
        )

    async def confirm(
        self, answer: ServedAnswer | str, *, by: str = "", note: str = "", anyway: bool = False
    ) -> Ruling:
        """Vouch for an answer or a proposal."""
        return await self.call(self.crystal.confirm, answer, by=by, note=note, anyway=anyway)

    async def pick(
        self, answer: ServedAnswer | str, reading: int, *, by: str = "", note: str = "", anyway: bool = False
    ) -> Ruling:
        """Say which of an answer's two readings was meant."""
        return await self.call(self.crystal.pick, answer, reading, by=by, note=note, anyway=anyway)

    async def correct(self, answer: ServedAnswer | str, sql: str, *, by: str = "", note: str = "") -> Correction:
        """Give the right SQL for an answer's question."""
        return await self.call(self.crystal.correct, answer, sql, by=by, note=note)

    async def reject(
        self, answer: ServedAnswer | str, *, by: str = "", note: str = "", repair: bool = True
    ) -> Rejection:
        """Say that an answer is wrong."""
        return await self.call(self.crystal.reject, answer, by=by, note=note, repair=repair)

    async def run(self, sql: str, database: str | None = None) -> Result:
        """Run one read-only statement."""
        return await self.call(self.crystal.run, sql, database)

    async def call(
        self, function: Callable[Parameters, Returned], *arguments: Parameters.args, **named: Parameters.kwargs
    ) -> Returned:
        """Make any other call of the Crystal underneath, in a thread."""
        return await asyncio.to_thread(function, *arguments, **named)

    async def close(self) -> None:
        """Close the Crystal."""
        await asyncio.to_thread(self.crystal.close)

    async def __aenter__(self) -> "AsyncCrystal":
        """Use it in an async with statement."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        """Close it."""
        await self.close()


def _on_the_loop(notify: Notify) -> Notify:
    loop = asyncio.get_running_loop()

    def hand_over(event: Event) -> None:
        loop.call_soon_threadsafe(notify, event)

    return hand_over
