"""Chunks of work over the machine's cores: forked processes where that is safe, threads elsewhere.

Parsing SQL holds Python's lock, so threads alone leave cores idle. Forking is used on Linux from a process with no
other thread; a forked worker inherits the chunks, so only verdicts travel.
"""

import gc
import multiprocessing
import sys
import threading
import warnings
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from multiprocessing.connection import Connection, wait
from typing import Any, TypeVar

from sqlcrystal.errors import InfrastructureError, SqlcrystalError

Chunk = TypeVar("Chunk")
Result = TypeVar("Result")
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

    `on_start` is called after forking, so that it may start threads.
    """
    jobs = min(jobs, len(chunks))
    if jobs <= 1:
        on_start()
        with open_worker() as work:
            for chunk in chunks:
                on_result(work(chunk))
    elif can_fork():
        _run_forked(open_worker, chunks, jobs, on_start, on_result)
    else:
        on_start()
        _run_threads(open_worker, chunks, jobs, on_result)


def can_fork() -> bool:
    """Whether forking is safe here: on Linux, from the only thread."""
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


def _run_forked(
    open_worker: OpenWorker[Chunk, Result],
    chunks: Sequence[Chunk],
    jobs: int,
    on_start: Callable[[], None],
    on_result: Callable[[Result], None],
) -> None:
    context = multiprocessing.get_context("fork")
    following = context.Value("q", 0)
    workers: dict[Connection, Any] = {}
    try:
        for _ in range(jobs):
            ours, theirs = context.Pipe(duplex=False)
            worker = context.Process(target=_serve, args=(open_worker, chunks, following, theirs), daemon=True)
            with warnings.catch_warnings():
                # Native threads of imported libraries count as "multi-threaded"; no worker ever calls those libraries.
                warnings.simplefilter("ignore", DeprecationWarning)
                worker.start()
            theirs.close()
            workers[ours] = worker
        on_start()
        _collect(workers, on_result)
    finally:
        for connection, worker in workers.items():
            connection.close()
            if worker.is_alive():
                worker.terminate()
            worker.join()


def _collect(workers: dict[Connection, Any], on_result: Callable[[Result], None]) -> None:
    """Take what the workers send until each has said that it is done."""
    pending = set(workers)
    while pending:
        for connection in wait(list(pending)):
            assert isinstance(connection, Connection)
            try:
                kind, value = connection.recv()
            except EOFError:
                workers[connection].join()
                code = workers[connection].exitcode
                raise InfrastructureError(f"a scoring process died (exit code {code}); try a smaller --jobs") from None
            if kind == "result":
                on_result(value)
            elif kind == "error":
                raise value
            else:
                pending.remove(connection)


def _serve(open_worker: OpenWorker[Chunk, Result], chunks: Sequence[Chunk], following: Any, out: Connection) -> None:
    """A forked worker's life: take the next chunk until none is left."""
    gc.freeze()  # a collection that walks the inherited heap would copy its pages
    try:
        with open_worker() as work:
            while True:
                with following.get_lock():
                    index = following.value
                    following.value += 1
                if index >= len(chunks):
                    break
                out.send(("result", work(chunks[index])))
        out.send(("done", None))
    except SqlcrystalError as error:
        out.send(("error", error))
    except (KeyboardInterrupt, BrokenPipeError):
        return
    except Exception:
        import traceback

        out.send(("error", RuntimeError(f"in a scoring process:\n{traceback.format_exc()}")))
