"""Questions in threads behind a fair, bounded queue for each database: their steps, stopping, and leaving."""

import asyncio
import secrets
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeVar

from sqlcrystal.interfaces.server.errors import Busy, Stopped, Stopping, TooLate, status_and_line
from sqlcrystal.interfaces.server.logs import event
from sqlcrystal.interfaces.server.settings import ServerSettings
from sqlcrystal.interfaces.server.visits import Visit, of_this_request, this_visit
from sqlcrystal.waiting import Patience, within

if TYPE_CHECKING:
    from sqlcrystal.interfaces.server.telemetry import Metrics
    from sqlcrystal.serving import Crystal, Event, Ruling, ServedAnswer

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


Result = TypeVar("Result")
Step = tuple[str, dict[str, Any]]
LATER = 1.1
"""How much later than its own end work is given up."""
END: Step = ("end", {})


class OpenQuestion:
    """One question under way; its steps wait for the caller, who may leave."""

    def __init__(
        self, door: "Crystal", question: str, database: str, *, follow: str, memory: bool | None, watched: bool
    ) -> None:
        """Give it a ticket."""
        self.door = door
        self.question = question
        self.database = database
        self.follow = follow
        self.memory = memory
        self.watched = watched
        self.ticket = secrets.token_urlsafe(12)
        self.steps: asyncio.Queue[Step] = asyncio.Queue()
        self.stop = threading.Event()
        self.begun = 0.0
        self.answer: ServedAnswer | None = None
        self.error: BaseException | None = None
        self.task: asyncio.Task[None] | None = None

    async def events(self) -> AsyncIterator[Step]:
        """Every step as it happens, to the end."""
        while True:
            step = await self.steps.get()
            if step == END:
                return
            yield step

    async def ended(self) -> "ServedAnswer":
        """Wait for the answer; an error of its work is raised here."""
        async for _ in self.events():
            pass
        return self.given()

    def given(self) -> "ServedAnswer":
        """Give the answer of a question that has ended."""
        if self.answer is None:
            raise self.error or Stopping("the server is stopping")
        return self.answer


class Work:
    """The work of one process; a place is held until its thread is done, not until its caller gives up."""

    def __init__(self, crystal: "Crystal", settings: ServerSettings, metrics: "Metrics | None" = None) -> None:
        """Open no thread yet."""
        self.crystal = crystal
        self.settings = settings
        self.metrics = metrics
        self._queues: dict[str, Queue] = {}
        self._asked: dict[str, OpenQuestion] = {}
        self._answering = ThreadPoolExecutor(max_workers=64, thread_name_prefix="answer")
        self._quick = ThreadPoolExecutor(max_workers=16, thread_name_prefix="reading")
        # Writers wait for each other; on threads of their own, so that no reader and no token waits with them.
        self._writing = ThreadPoolExecutor(max_workers=16, thread_name_prefix="writing")
        self.stopping = False

    # ── short calls: the store, a page ───────────────────────────────────────────────────────────────────────────

    async def read(self, function: Callable[[], Result]) -> Result:
        """Run a short blocking call beside the event loop."""
        return await asyncio.get_running_loop().run_in_executor(self._quick, function)

    async def look(self, function: Callable[[], Result]) -> Result:
        """Look up a row or two: at once in a file, which takes less than handing it to a thread; else as `read`."""
        return function() if self.crystal.reads_at_once else await self.read(function)

    async def write(self, function: Callable[[], Result]) -> Result:
        """Run a short call that writes to the store."""
        return await asyncio.get_running_loop().run_in_executor(self._writing, function)

    # ── answers, repairs, statements: everything that may take long ──────────────────────────────────────────────

    async def run(self, database: str, function: Callable[[], Result]) -> Result:
        """Run what may take long in this database's queue, under the time limit."""

        def in_time() -> Result:
            with within(Patience(self.settings.answer_seconds)):
                return function()

        future = await self._begin(self._queue(database), in_time, lambda _: None)
        try:
            return await asyncio.wait_for(asyncio.shield(future), self.settings.answer_seconds * LATER)
        except TimeoutError:
            raise TooLate(f"it took longer than {self.settings.answer_seconds:g} s and was given up") from None

    def ask(
        self,
        door: "Crystal",
        question: str,
        *,
        database: str,
        follow: str = "",
        memory: bool | None = None,
        watched: bool = True,
    ) -> OpenQuestion:
        """Begin to answer for a caller; once begun it goes on when they leave, and before that it is dropped.

        Steps between the first and the last are told only where they are watched.
        """
        if self.stopping:
            raise Stopping("the server is stopping; ask again in a moment")
        queue = self._queue(database)
        queue.check(this_visit().token)
        asked = OpenQuestion(door, question, database, follow=follow, memory=memory, watched=watched)
        asked.steps.put_nowait(("begun", {"ticket": asked.ticket}))
        self._asked[asked.ticket] = asked
        asked.task = asyncio.get_running_loop().create_task(self._answer(asked, queue))
        return asked

    def stop(self, ticket: str, person: str) -> bool:
        """Stop a person's own question at its next step; False when it is not here, or not theirs."""
        asked = self._asked.get(ticket)
        if asked is None or asked.door.caller.person != person:
            return False
        asked.stop.set()
        if not asked.begun and asked.task is not None:
            asked.task.cancel()
        return True

    def count_verdict(self, ruling: "Ruling") -> None:
        """Count a verdict that was not given before."""
        if ruling.new and self.metrics is not None:
            self.metrics.verdicts.labels(ruling.database, str(ruling.verdict)).inc()

    async def drain(self) -> None:
        """Take nothing new, wait for what is under way, then close; what takes too long is told to stop."""
        self.stopping = True
        until = time.monotonic() + self.settings.stop_seconds
        while self._asked and time.monotonic() < until:
            await asyncio.sleep(0.05)
        for asked in list(self._asked.values()):
            asked.stop.set()
        event("stopped", left=len(self._asked))
        self._quick.shutdown(wait=True)
        self._writing.shutdown(wait=True)
        self._answering.shutdown(wait=not self._asked, cancel_futures=True)

    def measure(self) -> None:
        """Bring the gauges up to date."""
        if self.metrics is None:
            return
        for name, queue in self._queues.items():
            self.metrics.running.labels(name).set(queue.running)
            self.metrics.waiting.labels(name).set(queue.waiting)

    def _queue(self, database: str) -> Queue:
        if database not in self._queues:
            limits = self.settings
            self._queues[database] = Queue(database, concurrency=limits.concurrency, size=limits.queue_size)
        return self._queues[database]

    async def _begin(self, queue: Queue, function: Callable[[], Result], moved: Moved) -> "asyncio.Future[Result]":
        """Wait for a turn, as long as the client is there, then begin in a thread."""
        aside, arrived = of_this_request(), time.perf_counter()
        place = await queue.enter(this_visit(), moved)
        aside.queue += time.perf_counter() - arrived
        future = asyncio.get_running_loop().run_in_executor(self._answering, aside.around(function))

        def done(ended: "asyncio.Future[Result]") -> None:
            queue.leave(place)
            if not ended.cancelled():
                ended.exception()  # looked at, so that one nobody waits for is not reported as lost

        future.add_done_callback(done)
        return future

    async def _answer(self, asked: OpenQuestion, queue: Queue) -> None:
        loop = asyncio.get_running_loop()

        def step(happened: "Event") -> None:
            if asked.stop.is_set() and happened.kind != "done":
                raise Stopped("stopped by the caller")
            # The whole answer is given by `asked.answer`, as its caller may see it.
            if happened.kind != "done" and asked.watched:
                loop.call_soon_threadsafe(asked.steps.put_nowait, (happened.kind, dict(happened.data)))

        def work() -> "ServedAnswer":
            asked.begun = time.perf_counter()
            with within(Patience(self.settings.answer_seconds, asked.stop)):
                return asked.door.ask(
                    asked.question, asked.database, follow=asked.follow, memory=asked.memory, on_event=step
                )

        try:
            future = await self._begin(queue, work, lambda ahead: asked.steps.put_nowait(("place", {"ahead": ahead})))
            # The work ends itself in time, and leaves its draft; this is for work that does not look at the clock.
            asked.answer = await asyncio.wait_for(asyncio.shield(future), self.settings.answer_seconds * LATER)
            self._count(asked, asked.answer)
            asked.steps.put_nowait(("done", {}))
        except TimeoutError:
            asked.stop.set()
            limit = f"{self.settings.answer_seconds:g} s"
            self._fail(asked, TooLate(f"the answer took longer than {limit} and was given up"))
        except asyncio.CancelledError:
            self._fail(asked, Stopped("stopped by the caller"))
        except Exception as error:
            self._fail(asked, error)
        finally:
            self._asked.pop(asked.ticket, None)
            asked.steps.put_nowait(END)

    def _count(self, asked: OpenQuestion, answer: "ServedAnswer") -> None:
        if self.metrics is None:
            return
        ends = {"error": bool(answer.error), "replayed": answer.replayed, "repaired": answer.repaired, "answered": True}
        self.metrics.answers.labels(asked.database, next(end for end, holds in ends.items() if holds)).inc()
        self.metrics.answer_seconds.labels(asked.database).observe(answer.seconds)
        self.metrics.tokens.labels(asked.database, "prompt").inc(answer.prompt_tokens)
        self.metrics.tokens.labels(asked.database, "completion").inc(answer.completion_tokens)

    def _fail(self, asked: OpenQuestion, error: BaseException) -> None:
        asked.error = error
        if self.metrics is not None:
            self.metrics.answers.labels(asked.database, type(error).__name__).inc()
        status, detail = status_and_line(error)
        asked.steps.put_nowait(("error", {"status": status, "detail": detail}))
