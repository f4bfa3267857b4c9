"""A database process and the pipe to it: what it runs can be ended at any moment, and its memory is its own.

Both sides are here: the parent starts and asks, the worker reads a message, limits itself and answers.
"""

import os
import signal
import sys
from pathlib import Path
from threading import Lock, Timer
from typing import IO

import msgspec

from sqlcrystal.errors import DatabaseError
from sqlcrystal.types import Execution, Failure, Rows

START_SECONDS = 60.0
GRACE_SECONDS = 0.25
"""How long after its time a statement may still end by itself before its process is ended."""
OUTSIDE = "database: "
"""Begins the message of a failure that is not the statement's: the database itself cannot be read."""
_EXECUTION: msgspec.msgpack.Decoder[Rows | Failure] = msgspec.msgpack.Decoder(Rows | Failure)
_ROOT = str(Path(__file__).resolve().parents[2])


class Late(Exception):
    """The process did not answer in time and has been ended."""


class Gone(Exception):
    """The process has ended by itself, or was ended for the memory it took."""


class Child:
    """One worker process; it is asked one thing at a time."""

    def __init__(self, module: str, *arguments: str) -> None:
        import subprocess  # which most who open a database never need, and which takes a while to load

        self.alive = True
        self.ready = False
        self._process = subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join([_ROOT, os.environ.get("PYTHONPATH", "")]).strip(os.pathsep),
            },
        )

    @property
    def pid(self) -> int:
        """The process's number."""
        return self._process.pid

    def ask(self, message: bytes, seconds: float) -> bytes:
        """Send a message and wait for the reply, so long; whatever goes wrong, the process is ended."""
        assert self._process.stdin
        try:
            write(self._process.stdin, message)
            return self.answer(seconds)
        except OSError:
            self.close()
            raise Gone from None
        except BaseException:  # an interrupt too: a process in mid-answer must not be asked again, nor outlive us
            self.close()
            raise

    def answer(self, seconds: float) -> bytes:
        """The next message of the process. A timer ends it, which ends the reading, on every system alike."""
        late = Timer(seconds, self._process.kill)
        late.daemon = True
        late.start()
        assert self._process.stdout
        try:
            message = read(self._process.stdout)
        finally:
            in_time = late.is_alive()
            late.cancel()
        if message:
            self.ready = True
            return message
        self.close()
        raise Gone if in_time else Late

    def close(self) -> None:
        """End the process at once: it holds nothing that could be lost."""
        self.alive = False
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe:
                try:
                    pipe.close()
                except OSError:
                    continue


class Children:
    """The idle processes of one kind, whichever thread asks; there are as many as questions at once."""

    def __init__(self, module: str, *, max_idle: int) -> None:
        self._module = module
        self._max_idle = max_idle
        self._lock = Lock()
        self._idle: list[Child] = []
        if hasattr(os, "register_at_fork"):  # Windows has no fork
            os.register_at_fork(after_in_child=self._forget)

    def take(self) -> Child:
        """A process that is ready to be asked."""
        with self._lock:
            child = self._idle.pop() if self._idle else None
        child = child or Child(self._module)
        if not child.ready:
            try:
                child.answer(START_SECONDS)
            except (Late, Gone):
                raise DatabaseError(f"a process of {self._module} does not start") from None
        return child

    def give_back(self, child: Child) -> None:
        """Keep the process for the next; for one that was ended another is started, so that the next need not wait."""
        kept = child if child.alive else Child(self._module)
        with self._lock:
            if len(self._idle) < self._max_idle:
                self._idle.append(kept)
                return
        kept.close()

    def _forget(self) -> None:
        """A forked process does not own its parent's children."""
        self._lock = Lock()
        self._idle = []


class Request(msgspec.Struct, frozen=True):
    """One statement to run."""

    sql: str
    timeout: float
    max_rows: int
    inspection: bool = False
    pivot: bool = False
    location: str = ""


def read(stream: IO[bytes]) -> bytes:
    """Read the next message; empty when the other side has gone."""
    header = stream.read(4)
    if len(header) < 4:
        return b""
    size = int.from_bytes(header, "big")
    message = stream.read(size)
    return message if len(message) == size else b""


def write(stream: IO[bytes], message: bytes) -> None:
    """Send one message."""
    stream.write(len(message).to_bytes(4, "big") + message)
    stream.flush()


def decode(message: bytes) -> Execution:
    """Decode what a process answered."""
    return _EXECUTION.decode(message)


def light_fuse(seconds: float) -> None:
    """Let the system end this process after so long, should the parent that would end it be gone; zero puts it out."""
    if hasattr(signal, "setitimer"):  # Windows has none; there the parent alone ends it
        signal.setitimer(signal.ITIMER_REAL, seconds)


def bound_memory(size: int) -> None:
    """Let the system bound what this process allocates; where it cannot, the engine's own limit stands alone."""
    try:
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, (size, size))
    except (ImportError, ValueError, OSError):
        return  # Windows has no such limit, and macOS does not keep it
