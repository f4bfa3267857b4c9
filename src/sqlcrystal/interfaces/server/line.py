"""Bounded work on one database: so many questions at once, so many in line, the rest turned away."""

import asyncio
from collections import deque
from collections.abc import Callable

Moved = Callable[[int], None]


class Busy(Exception):
    """The line is full; the message says how long it is."""


class Line:
    """A line in the order of arrival; everybody in it is told how many are ahead whenever that changes."""

    def __init__(self, name: str, *, at_once: int, waiting: int) -> None:
        """Open the line of one database."""
        self.name = name
        self._at_once = at_once
        self._most_waiting = waiting
        self._queue: deque[tuple[asyncio.Future[None], Moved]] = deque()
        self.running = 0

    @property
    def waiting(self) -> int:
        """How many stand in line."""
        return len(self._queue)

    @property
    def full(self) -> bool:
        """Whether the next one is turned away."""
        return self.running >= self._at_once and len(self._queue) >= self._most_waiting

    async def enter(self, moved: Moved) -> None:
        """Wait for a place; whoever got one must `leave`."""
        if self.running < self._at_once and not self._queue:
            self.running += 1
            return
        if self.full:
            raise Busy(f"database {self.name!r}: {len(self._queue)} questions are waiting already; try again soon")
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        entry = (turn, moved)
        self._queue.append(entry)
        moved(len(self._queue))
        try:
            await turn
        except asyncio.CancelledError:
            if entry in self._queue:
                self._queue.remove(entry)
                self._tell()
            elif turn.done() and not turn.cancelled():
                self.leave()  # the turn came in the same moment as the cancellation
            raise

    def leave(self) -> None:
        """Give the place to the next in line."""
        if self._queue:
            turn, _ = self._queue.popleft()
            turn.set_result(None)
            self._tell()
        else:
            self.running -= 1

    def _tell(self) -> None:
        for ahead, (_, moved) in enumerate(self._queue, start=1):
            moved(ahead)
