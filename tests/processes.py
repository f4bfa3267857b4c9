"""What runs below a server or below this process: programs that no statement should have started.

Linux only: elsewhere there is no /proc, and nothing is watched.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

PROC = Path("/proc")
WORKERS = b"sqlcrystal.databases."
"""Our own workers are started as modules of this package."""


class Process(NamedTuple):
    """One line of the system's table."""

    number: int
    parent: int
    program: str
    waited: int
    """Page faults of children that have ended and were waited for; a process that never had a child has none."""


class Processes:
    """The processes below one, as they were at first and as they are now."""

    def __init__(self, engine: str, root: int) -> None:
        self._engine = engine
        self._root = root
        listed = _listed()
        self._known = {process.number for process in _below(root, listed)}
        self._waited = listed[root].waited if root in listed else 0

    def strangers(self) -> list[str]:
        """Every process that is neither known nor the engine's own, and those that have had a child of their own."""
        listed = _listed()
        if self._root not in listed:
            return []
        strangers = [
            f"{process.program} ({process.number})"
            for process in _below(self._root, listed, besides=self._known)
            if process.parent != self._root or process.waited or not self._is_own(process, listed[self._root])
        ]
        if self._engine == "mysql" and listed[self._root].waited != self._waited:
            strangers.append("a child of the server that has ended")
        return strangers

    def _is_own(self, process: Process, root: Process) -> bool:
        """PostgreSQL's sessions are processes, MariaDB's are not; SQLite's and DuckDB's statements have workers."""
        if self._engine == "mysql":
            return False
        if self._engine == "postgres":
            return process.program == root.program
        try:
            return WORKERS in (PROC / str(process.number) / "cmdline").read_bytes()
        except OSError:  # it has ended meanwhile
            return True


def _listed() -> dict[int, Process]:
    """The system's table."""
    processes = {}
    for entry in os.listdir(PROC) if PROC.is_dir() else ():
        if entry.isdigit() and (process := _read(int(entry))):
            processes[process.number] = process
    return processes


def _read(number: int) -> Process | None:
    try:
        text = (PROC / str(number) / "stat").read_text(errors="replace")
    except OSError:  # it has ended meanwhile
        return None
    program, fields = text[text.index("(") + 1 : text.rindex(")")], text[text.rindex(")") + 2 :].split()
    return Process(number, int(fields[1]), program, int(fields[8]))


def _below(root: int, listed: dict[int, Process], besides: set[int] | None = None) -> Iterator[Process]:
    """Every descendant; what is known is passed over with all that is below it."""
    for process in listed.values():
        if process.parent == root and process.number not in (besides or ()):
            yield process
            yield from _below(process.number, listed, besides)
