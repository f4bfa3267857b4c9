"""The child process that runs SQLite's slow statements: a single function call there may outlast any interrupt.

Reads requests and writes replies as length-prefixed msgpack on standard input and output.
"""

import sys
from collections import OrderedDict

import msgspec

from sqlcrystal.databases.messages import GRACE_SECONDS, OUTSIDE, Request, light_fuse, read, write
from sqlcrystal.databases.sqlite_connection import SLOW, Connection
from sqlcrystal.types import Execution, Failure, FailureKind

MAX_CONNECTIONS = 4
PROCESS_LIMIT = 512 * 2**20


class _Connections:
    """The databases asked about last."""

    def __init__(self) -> None:
        self._open: OrderedDict[str, Connection] = OrderedDict()

    def to(self, location: str) -> Connection:
        """The connection to a database, opened when it is not at hand."""
        if location not in self._open:
            self._open[location] = Connection(location, SLOW)
            if len(self._open) > MAX_CONNECTIONS:
                self._open.popitem(last=False)[1].close()
        self._open.move_to_end(location)
        return self._open[location]


def answer(connections: _Connections, request: Request) -> Execution:
    """Run one statement; the system ends this process when that takes too long, even if nobody waits any more."""
    light_fuse(request.timeout + 4 * GRACE_SECONDS)
    try:
        return connections.to(request.location).run(request.sql, request.timeout, request.max_rows)
    except Exception as error:
        return Failure(FailureKind.ENGINE, f"{OUTSIDE}{error}")
    finally:
        light_fuse(0)


def main() -> None:
    """Serve until the parent closes the pipe."""
    try:
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, (PROCESS_LIMIT, PROCESS_LIMIT))
    except (ImportError, ValueError, OSError):
        pass  # Windows has no such limit, and macOS does not keep it: SQLite's own heap limit stands alone there
    connections = _Connections()
    replies, requests = sys.stdout.buffer, sys.stdin.buffer
    write(replies, b"ready")
    while message := read(requests):
        result = answer(connections, msgspec.msgpack.decode(message, type=Request))
        try:
            reply = msgspec.msgpack.encode(result)
        except Exception as error:
            reply = msgspec.msgpack.encode(Failure(FailureKind.TOO_LARGE, f"the result cannot travel: {error}"))
        write(replies, reply)


if __name__ == "__main__":
    main()
