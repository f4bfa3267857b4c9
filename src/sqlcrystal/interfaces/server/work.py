"""Questions in threads behind a line for each database: their steps as events, stopping, and leaving."""

import asyncio
import secrets
import threading
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeVar

from sqlcrystal.errors import InfrastructureError, ModelError, RecordingMiss, SqlcrystalError, UserError
from sqlcrystal.interfaces.server.line import Busy, Line, Moved
from sqlcrystal.interfaces.server.logs import event
from sqlcrystal.interfaces.server.metrics import Metrics
from sqlcrystal.interfaces.server.settings import ServerSettings
from sqlcrystal.interfaces.server.timing import of_this_request

if TYPE_CHECKING:
    from sqlcrystal.serving import Crystal, Event, ServedAnswer

Result = TypeVar("Result")
Step = tuple[str, dict[str, Any]]
END: Step = ("end", {})


class Stopped(Exception):
    """The person who asked no longer wants the answer."""


class TooLate(Exception):
    """The time limit of an answer passed."""


class Stopping(Exception):
    """The server is shutting down and takes no new work."""


class Asked:
    """One question under way; its steps wait in a queue for whoever asked, who may leave."""

    def __init__(self, person: str, database: str, *, watched: bool) -> None:
        """Give it a ticket."""
        self.watched = watched
        self.ticket = secrets.token_urlsafe(12)
        self.person = person
        self.database = database
        self.steps: asyncio.Queue[Step] = asyncio.Queue()
        self.stop = threading.Event()
        self.begun = 0.0
        self.answer: ServedAnswer | None = None
        self.told: dict[str, Any] = {}
        """The answer as JSON, where that was asked for."""
        self.error: BaseException | None = None
        self.task: asyncio.Task[None] | None = None

    async def events(self) -> AsyncIterator[Step]:
        """Every step as it happens, to the end."""
        while True:
            step = await self.steps.get()
            if step == END:
                return
            yield step


class Work:
    """What one process does at a time; a place is held until its thread is done, not until somebody gives up."""

    def __init__(self, crystal: "Crystal", settings: ServerSettings, metrics: Metrics) -> None:
        """Open no thread yet."""
        self.crystal = crystal
        self.settings = settings
        self.metrics = metrics
        self._lines: dict[str, Line] = {}
        self._asked: dict[str, Asked] = {}
        self._answering = ThreadPoolExecutor(max_workers=64, thread_name_prefix="answer")
        self._quick = ThreadPoolExecutor(max_workers=16, thread_name_prefix="reading")
        # Writers wait for each other; on threads of their own, so that no reader and no token waits with them.
        self._writing = ThreadPoolExecutor(max_workers=16, thread_name_prefix="writing")
        self.stopping = False

    # ── short calls: the store, a page ───────────────────────────────────────────────────────────────────────────

    async def call(self, function: Callable[[], Result]) -> Result:
        """Run a short blocking call beside the event loop."""
        return await asyncio.get_running_loop().run_in_executor(self._quick, function)

    async def peek(self, function: Callable[[], Result]) -> Result:
        """Look up a row or two: at once in a file, which takes less than handing it to a thread; else as `call`."""
        return function() if self.crystal.store.is_file else await self.call(function)

    async def write(self, function: Callable[[], Result]) -> Result:
        """Run a short call that writes to the store."""
        return await asyncio.get_running_loop().run_in_executor(self._writing, function)

    # ── answers, repairs, statements: everything that may take long ──────────────────────────────────────────────

    async def long(self, database: str, function: Callable[[], Result]) -> Result:
        """Run what may take long in this database's line, under the time limit."""
        future = await self._begin(self._line(database), function, lambda _: None)
        try:
            return await asyncio.wait_for(asyncio.shield(future), self.settings.answer_seconds)
        except TimeoutError:
            raise TooLate(f"it took longer than {self.settings.answer_seconds:g} s and was given up") from None

    def ask(
        self,
        question: str,
        *,
        database: str,
        person: str,
        memory: bool | None = None,
        tell: "Callable[[ServedAnswer], dict[str, Any]] | None" = None,
        watched: bool = True,
    ) -> Asked:
        """Begin to answer, and `tell` the answer in the same thread; goes on when whoever asked leaves.

        Steps between the first and the last are told only where somebody watches them.
        """
        if self.stopping:
            raise Stopping("the server is stopping; ask again in a moment")
        line = self._line(database)
        if line.full:
            raise Busy(f"database {database!r}: {line.waiting} questions are waiting already; try again soon")
        asked = Asked(person, database, watched=watched)
        asked.steps.put_nowait(("begun", {"ticket": asked.ticket}))
        self._asked[asked.ticket] = asked
        asked.task = asyncio.get_running_loop().create_task(self._answer(asked, line, question, memory, tell))
        return asked

    def stop(self, ticket: str, person: str) -> bool:
        """Stop somebody's own question at its next step; False when it is not here, or not theirs."""
        asked = self._asked.get(ticket)
        if asked is None or asked.person != person:
            return False
        asked.stop.set()
        if not asked.begun and asked.task is not None:
            asked.task.cancel()
        return True

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
        for name, line in self._lines.items():
            self.metrics.running.labels(name).set(line.running)
            self.metrics.waiting.labels(name).set(line.waiting)

    def _line(self, database: str) -> Line:
        if database not in self._lines:
            self._lines[database] = Line(database, at_once=self.settings.at_once, waiting=self.settings.waiting)
        return self._lines[database]

    async def _begin(self, line: Line, function: Callable[[], Result], moved: Moved) -> "asyncio.Future[Result]":
        """Wait for a turn, then begin in a thread."""
        aside, arrived = of_this_request(), time.perf_counter()
        await line.enter(moved)
        aside.line += time.perf_counter() - arrived
        future = asyncio.get_running_loop().run_in_executor(self._answering, aside.around(function))

        def done(ended: "asyncio.Future[Result]") -> None:
            line.leave()
            if not ended.cancelled():
                ended.exception()  # looked at, so that one nobody waits for is not reported as lost

        future.add_done_callback(done)
        return future

    async def _answer(
        self,
        asked: Asked,
        line: Line,
        question: str,
        memory: bool | None,
        tell: "Callable[[ServedAnswer], dict[str, Any]] | None",
    ) -> None:
        loop = asyncio.get_running_loop()

        def step(happened: "Event") -> None:
            if asked.stop.is_set() and happened.kind != "done":
                raise Stopped("stopped by whoever asked")
            # The whole answer is told below, in the shape its judge may see.
            if happened.kind != "done" and asked.watched:
                loop.call_soon_threadsafe(asked.steps.put_nowait, (happened.kind, dict(happened.data)))

        def work() -> "ServedAnswer":
            asked.begun = time.perf_counter()
            answer = self.crystal.ask(question, asked.database, by=asked.person, memory=memory, on_event=step)
            asked.told = {} if tell is None else tell(answer)
            return answer

        try:
            future = await self._begin(line, work, lambda ahead: asked.steps.put_nowait(("place", {"ahead": ahead})))
            asked.answer = await asyncio.wait_for(asyncio.shield(future), self.settings.answer_seconds)
            self._count(asked, asked.answer)
            asked.steps.put_nowait(("done", {}))
        except TimeoutError:
            asked.stop.set()
            limit = f"{self.settings.answer_seconds:g} s"
            self._fail(asked, TooLate(f"the answer took longer than {limit} and was given up"))
        except asyncio.CancelledError:
            self._fail(asked, Stopped("stopped by whoever asked"))
        except Exception as error:
            self._fail(asked, error)
        finally:
            self._asked.pop(asked.ticket, None)
            asked.steps.put_nowait(END)

    def _count(self, asked: Asked, answer: "ServedAnswer") -> None:
        end = (
            "error"
            if answer.error
            else "replayed"
            if answer.replayed
            else "repaired"
            if answer.repaired
            else "answered"
        )
        self.metrics.answers.labels(asked.database, end).inc()
        self.metrics.answer_seconds.labels(asked.database).observe(answer.seconds)
        self.metrics.tokens.labels(asked.database, "prompt").inc(answer.prompt_tokens)
        self.metrics.tokens.labels(asked.database, "completion").inc(answer.completion_tokens)

    def _fail(self, asked: Asked, error: BaseException) -> None:
        asked.error = error
        self.metrics.answers.labels(asked.database, type(error).__name__).inc()
        status, detail = told(error)
        asked.steps.put_nowait(("error", {"status": status, "detail": detail}))


def told(error: BaseException) -> tuple[int, str]:
    """The status and the one line a caller gets for an error; a bug says nothing of itself."""
    table: tuple[tuple[type[BaseException], int], ...] = (
        (Busy, 503),
        (Stopping, 503),
        (Stopped, 499),
        (TooLate, 504),
        (UserError, 422),
        (RecordingMiss, 404),
        (ModelError, 502),
        (InfrastructureError, 502),
        (SqlcrystalError, 422),
    )
    for kind, status in table:
        if isinstance(error, kind):
            return status, str(error)
    event("bug", level=40, cause=error)
    return 500, "the server failed; its log says where"
