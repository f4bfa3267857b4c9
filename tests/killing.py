"""A process that is killed in the middle of its work, and what it had said until then."""

import os
import signal
import time
from collections.abc import Callable


def said_until_killed(work: Callable[[int], None], *, lines: int, delay: float) -> list[str]:
    """Fork, let `work` write lines into a pipe, kill it so long after so many of them; returns all that it wrote."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            work(writing)
        finally:
            os._exit(1)
    os.close(writing)
    heard = b""
    while heard.count(b"\n") < lines:
        piece = os.read(reading, 1024)
        assert piece, "the process ended on its own"
        heard += piece
    time.sleep(delay)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status), "the process ended on its own"
    with os.fdopen(reading, "rb") as pipe:
        return (heard + pipe.read()).decode().splitlines()
