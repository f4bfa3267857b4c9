"""One thread that interrupts SQLite statements past their deadline.

A progress handler would do the same, but it takes the interpreter's lock every few thousand steps, which slows every
long query while other threads work.
"""

import os
import sqlite3
from threading import Lock, Thread
from time import perf_counter, sleep

TICK = 0.05
_deadlines: dict[sqlite3.Connection, float] = {}
_starting = Lock()
_watcher: Thread | None = None


def watch(connection: sqlite3.Connection, deadline: float) -> None:
    """Interrupt the connection when the deadline (perf_counter) passes, at most a tick later."""
    _deadlines[connection] = deadline
    if _watcher is None:
        _start()


def release(connection: sqlite3.Connection) -> None:
    """The statement has ended; an interrupt may still be on its way."""
    _deadlines.pop(connection, None)


def _start() -> None:
    global _watcher  # noqa: PLW0603
    with _starting:
        if _watcher is None:
            _watcher = Thread(target=_loop, name="sqlcrystal-sqlite-watchdog", daemon=True)
            _watcher.start()


def _loop() -> None:
    while True:
        sleep(TICK)
        now = perf_counter()
        for connection, deadline in list(_deadlines.items()):
            if now > deadline:
                try:
                    connection.interrupt()
                except sqlite3.ProgrammingError:
                    _deadlines.pop(connection, None)  # closed meanwhile


def _forget() -> None:
    """A forked child has no watcher thread and no statement running."""
    global _watcher  # noqa: PLW0603
    _watcher = None
    _deadlines.clear()


if hasattr(os, "register_at_fork"):  # Windows has no fork
    os.register_at_fork(after_in_child=_forget)
