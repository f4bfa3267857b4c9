"""The line before a database: bounded, shared fairly among tokens, and left by those whose clients have left."""

import asyncio
from collections import Counter
from collections.abc import Callable

from sqlcrystal.interfaces.server.errors import Busy, Stopped
from sqlcrystal.interfaces.server.visits import Visit

Moved = Callable[[int], None]


class Place:
    """A place at work or in the line; everybody in the line is told how many are ahead of them."""

    def __init__(self, token: str, moved: Moved) -> None:
        """Take a place for the holder of a token."""
        self.token = token
        self.moved = moved
        self.turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()


class Queue:
    """Bounded work on one database: the tokens that wait take turns, and each token's own work keeps its order."""

    def __init__(self, name: str, *, concurrency: int, size: int) -> None:
        """Open the queue of one database."""
        self.name = name
        self._concurrency = concurrency
        self._size = size
        self._line: list[Place] = []
        self._working: Counter[str] = Counter()
        self._turns: dict[str, int] = {}
        """When each token had its last turn, as long as anybody waits."""

    @property
    def waiting(self) -> int:
        """Tell how many wait."""
        return len(self._line)

    @property
    def running(self) -> int:
        """Tell how many are worked on."""
        return self._working.total()

    def check(self, token: str) -> None:
        """Turn away a newcomer where the line is full, unless another token has more than its share of it."""
        if self.running >= self._concurrency and self.waiting >= self._size and self._greedy(token) is None:
            raise self._busy()

    async def enter(self, visit: Visit, moved: Moved) -> Place:
        """Wait for a place, which must be left with `leave`; given up when the client of the visit leaves."""
        place = Place(visit.token, moved)
        if self.running < self._concurrency and not self._line:
            self._working[place.token] += 1
            return place
        self.check(place.token)
        if self.waiting >= self._size and (last := self._greedy(place.token)) is not None:
            self._line.remove(last)
            last.turn.set_exception(self._busy())
        self._line.append(place)
        self._tell()
        gone = asyncio.ensure_future(visit.gone())
        try:
            await asyncio.wait({place.turn, gone}, return_when=asyncio.FIRST_COMPLETED)
            if gone.done():
                raise Stopped("the client left before its turn")
            place.turn.result()
        except BaseException:
            self._give_up(place)
            raise
        finally:
            gone.cancel()
        return place

    def leave(self, place: Place) -> None:
        """Give the place to the next in line."""
        self._working[place.token] -= 1
        order = self._order()
        if order:
            self._line.remove(order[0])
            self._working[order[0].token] += 1
            self._turns[order[0].token] = max(self._turns.values(), default=0) + 1
            order[0].turn.set_result(None)
            self._tell()
        else:
            self._turns.clear()

    def _give_up(self, place: Place) -> None:
        if place in self._line:
            self._line.remove(place)
            place.turn.cancel()
            self._tell()
        elif place.turn.done() and place.turn.exception() is None:
            self.leave(place)  # the turn came in the same moment

    def _order(self) -> list[Place]:
        """Rank by how much of the same token goes before, at work or in the line; then by its last turn."""
        before = Counter(self._working)
        ranked = []
        for place in self._line:
            ranked.append((before[place.token], self._turns.get(place.token, 0), place))
            before[place.token] += 1
        return [place for *_, place in sorted(ranked, key=lambda each: each[:2])]

    def _greedy(self, token: str) -> Place | None:
        """Find the newest place of the token with the most of them, if it would have more even so than the newcomer."""
        counts = Counter(place.token for place in self._line)
        most, count = max(counts.items(), key=lambda each: each[1], default=("", 0))
        if count <= counts[token] + 1:
            return None
        return next(place for place in reversed(self._line) if place.token == most)

    def _busy(self) -> Busy:
        return Busy(f"database {self.name!r}: {self.waiting} questions are waiting already; try again soon")

    def _tell(self) -> None:
        for ahead, place in enumerate(self._order(), start=1):
            place.moved(ahead)
