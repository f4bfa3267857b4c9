"""Chunks of work over the machine's cores: forked processes where that is safe, threads elsewhere.

Parsing SQL holds Python's lock, so threads alone leave cores idle. Forking is used on Linux from a process with no
other thread; a forked worker inherits the chunks, so only their numbers and the results travel. It is done by hand:
to load `multiprocessing` took 30 ms, where a command that scores a thousand predictions takes 470 ms of CPU.
"""

import gc
import marshal
import os
import select
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Any, TypeVar

from sqlcrystal.errors import InfrastructureError, SqlcrystalError

Chunk = TypeVar("Chunk")
Result = TypeVar("Result")
AHEAD = 2
"""Chunks that a worker is told of at once, so that it need not wait for its orders."""
OpenWorker = Callable[[], AbstractContextManager[Callable[[Chunk], Result]]]


def run_chunks(
    open_worker: OpenWorker[Chunk, Result],
    chunks: Sequence[Chunk],
    *,
    jobs: int,
    on_start: Callable[[], None],
    on_result: Callable[[Result], None],
) -> None:
    """Give every chunk to a worker and every result to `on_result`; the first error stops all and is raised.

    Results are plain values: texts, numbers, lists, tuples and mappings of them. `on_start` is called after forking, so
    that it may start threads.
    """
    jobs = min(jobs, len(chunks))
    if jobs <= 1:
        on_start()
        with open_worker() as work:
            for chunk in chunks:
                on_result(work(chunk))
    elif can_fork():
        with _forked_workers(open_worker, chunks, jobs) as workers:
            on_start()
            _collect(workers, len(chunks), on_result)
    else:
        on_start()
        _run_threads(open_worker, chunks, jobs, on_result)


def can_fork() -> bool:
    """Tell whether forking is safe here: on Linux, from the only thread."""
    return sys.platform == "linux" and threading.active_count() == 1


def _run_threads(
    open_worker: OpenWorker[Chunk, Result], chunks: Sequence[Chunk], jobs: int, on_result: Callable[[Result], None]
) -> None:
    from concurrent.futures import ThreadPoolExecutor, as_completed

    lock, waiting, stop = threading.Lock(), list(reversed(chunks)), threading.Event()

    def serve() -> None:
        with open_worker() as work:
            while not stop.is_set():
                with lock:
                    if not waiting:
                        return
                    chunk = waiting.pop()
                result = work(chunk)
                with lock:
                    on_result(result)

    with ThreadPoolExecutor(jobs) as pool:
        try:
            for future in as_completed([pool.submit(serve) for _ in range(jobs)]):
                future.result()
        finally:
            stop.set()


@contextmanager
def _forked_workers(
    open_worker: OpenWorker[Chunk, Result], chunks: Sequence[Chunk], jobs: int
) -> Iterator[dict[int, "Forked"]]:
    """The workers by the pipe that each answers through; whatever happens, all of them are ended."""
    workers: dict[int, Forked] = {}
    try:
        for _ in range(jobs):
            worker = Forked(open_worker, chunks, list(workers.values()))
            workers[worker.answers] = worker
        yield workers
    finally:
        for worker in workers.values():
            worker.end()


def _collect(workers: dict[int, "Forked"], count: int, on_result: Callable[[Any], None]) -> None:
    """Hand out the chunks and take what the workers send, until each has said that it is done."""
    waiting = iter(range(count))
    for worker in [*workers.values()] * AHEAD:
        worker.order(next(waiting, None))
    pending = set(workers)
    while pending:
        for answers in select.select(list(pending), [], [])[0]:
            kind, value = workers[answers].receive()
            if kind == "result":
                on_result(value)
                workers[answers].order(next(waiting, None))
            elif kind == "error":
                import pickle

                raise pickle.loads(value)
            else:
                pending.remove(answers)


class Forked:
    """One forked worker: its orders are the numbers of chunks, its answers are results."""

    def __init__(
        self, open_worker: OpenWorker[Chunk, Result], chunks: Sequence[Chunk], siblings: Sequence["Forked"]
    ) -> None:
        """Fork; the new process never returns from here."""
        orders_in, self._orders = os.pipe()
        self.answers, answers_out = os.pipe()
        with warnings.catch_warnings():
            # Native threads of imported libraries count as "multi-threaded"; no worker ever calls those libraries.
            warnings.simplefilter("ignore", DeprecationWarning)
            self._process = os.fork()
        if self._process:
            os.close(orders_in)
            os.close(answers_out)
            return
        try:
            for inherited in (self, *siblings):  # else a worker would outlive the one who gives the orders
                os.close(inherited._orders)
                os.close(inherited.answers)
            _serve(open_worker, chunks, orders_in, answers_out)
        finally:
            os._exit(0)

    def order(self, number: int | None) -> None:
        """Tell the worker of its next chunk; None says that there is none."""
        with suppress(BrokenPipeError):  # its answers will say what became of it
            os.write(self._orders, (-1 if number is None else number).to_bytes(4, "big", signed=True))

    def receive(self) -> tuple[str, Any]:
        """The worker's next answer; an InfrastructureError when it is gone."""
        size = _read(self.answers, 8)
        content = _read(self.answers, int.from_bytes(size, "big")) if size else b""
        if not content:
            code = os.waitstatus_to_exitcode(os.waitpid(self._process, 0)[1])
            self._process = 0
            raise InfrastructureError(f"a scoring process died (exit code {code}); try a smaller --jobs")
        answer: tuple[str, Any] = marshal.loads(content)
        return answer

    def end(self) -> None:
        """End the process, whatever it is doing, and close the pipes."""
        os.close(self._orders)
        os.close(self.answers)
        if self._process:
            with suppress(ProcessLookupError):
                os.kill(self._process, signal.SIGTERM)
            os.waitpid(self._process, 0)


def _serve(open_worker: OpenWorker[Chunk, Result], chunks: Sequence[Chunk], orders: int, answers: int) -> None:
    """A forked worker's life: take the next chunk until none is left."""
    gc.freeze()  # a collection that walks the inherited heap would copy its pages
    try:
        with open_worker() as work:
            while (number := int.from_bytes(_read(orders, 4) or b"\xff", "big", signed=True)) >= 0:
                _write(answers, ("result", work(chunks[number])))
        _write(answers, ("done", None))
    except (KeyboardInterrupt, BrokenPipeError):
        return
    except Exception as error:
        import pickle
        import traceback

        bug = RuntimeError(f"in a scoring process:\n{traceback.format_exc()}")
        _write(answers, ("error", pickle.dumps(error if isinstance(error, SqlcrystalError) else bug)))


def _write(pipe: int, answer: tuple[str, Any]) -> None:
    content = marshal.dumps(answer)
    view = memoryview(len(content).to_bytes(8, "big") + content)
    while view:
        view = view[os.write(pipe, view) :]


def _read(pipe: int, size: int) -> bytes:
    """So many bytes, or none when the other end is closed."""
    parts = []
    while size:
        part = os.read(pipe, min(size, 2**20))
        if not part:
            return b""
        parts.append(part)
        size -= len(part)
    return b"".join(parts)
