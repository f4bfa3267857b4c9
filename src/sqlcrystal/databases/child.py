"""A database process and the pipe to it: what it runs can be ended at any moment, and its memory is its own."""

import os
import subprocess
import sys
from pathlib import Path
from threading import Timer

from sqlcrystal.databases.messages import read, write

_ROOT = str(Path(__file__).resolve().parents[2])


class Late(Exception):
    """The process did not answer in time and has been ended."""


class Gone(Exception):
    """The process has ended by itself, or was ended for the memory it took."""


class Child:
    """One worker process; it is asked one thing at a time."""

    def __init__(self, module: str, *arguments: str) -> None:
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
