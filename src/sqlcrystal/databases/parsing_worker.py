"""The child process that tries what may be too much for the parser, so that nobody else waits or dies of it."""

import signal
import sys
import threading

import msgspec

from sqlcrystal.databases.messages import read, write
from sqlcrystal.databases.parsing import rehearsed

WORK_SECONDS = 0.5
STACK = 2**20
"""Less than any thread of the parent has left: what overflows it ends this process and nobody else."""


def main() -> None:
    """Parse what comes and say that it went well; the system ends this process when it works for too long."""
    replies, requests = sys.stdout.buffer, sys.stdin.buffer
    threading.stack_size(STACK)
    write(replies, b"ready")
    while message := read(requests):
        dialect, sql = msgspec.msgpack.decode(message, type=tuple[str, str])
        if hasattr(signal, "setitimer"):  # Windows has none; there the parent ends it, by the clock
            signal.setitimer(signal.ITIMER_PROF, WORK_SECONDS)
        thread = threading.Thread(target=rehearsed, args=(sql, dialect))
        thread.start()
        thread.join()
        if hasattr(signal, "setitimer"):
            signal.setitimer(signal.ITIMER_PROF, 0)
        write(replies, b"parsed")


if __name__ == "__main__":
    main()
