"""The child process that runs DuckDB: scalar functions there allocate past memory_limit, so the system bounds it.

Reads requests and writes replies as length-prefixed msgpack on standard input and output.
"""

import sys
from threading import Timer
from typing import Any

import duckdb
import msgspec

from sqlcrystal.databases.child import GRACE_SECONDS, Request, bound_memory, light_fuse, read, write
from sqlcrystal.databases.results import TooLarge, collect, first_line
from sqlcrystal.types import Execution, Failure, FailureKind, Rows

MEMORY_LIMIT = 128 * 2**20
PROCESS_LIMIT = 420 * 2**20
_KINDS: tuple[tuple[type[Exception], FailureKind], ...] = (
    (duckdb.InterruptException, FailureKind.TIMEOUT),
    (duckdb.CatalogException, FailureKind.MISSING),
    (duckdb.BinderException, FailureKind.MISSING),
    (duckdb.ParserException, FailureKind.SYNTAX),
    (duckdb.SyntaxException, FailureKind.SYNTAX),
    (duckdb.PermissionException, FailureKind.REFUSED),
    (duckdb.OutOfMemoryException, FailureKind.TOO_LARGE),
    (duckdb.OutOfRangeException, FailureKind.ENGINE),
    (TooLarge, FailureKind.TOO_LARGE),
    (MemoryError, FailureKind.TOO_LARGE),
)


def _may_be(request: Request) -> set[object]:
    """The kinds of statement DuckDB may take the text for; PIVOT without a list first makes a type for its columns."""
    kinds: set[object] = {duckdb.StatementType.SELECT}
    if request.inspection:
        kinds.add(duckdb.StatementType.EXPLAIN)
    if request.pivot:
        kinds.add(duckdb.StatementType.MULTI)
    return kinds


def connect(path: str) -> Any:
    """A read-only connection without files, network, extensions or a way to change that."""
    return duckdb.connect(
        path,
        read_only=True,
        config={
            "enable_external_access": "false",
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
            "allow_community_extensions": "false",
            "allow_persistent_secrets": "false",
            "memory_limit": f"{MEMORY_LIMIT // 2**20}MB",
            "max_temp_directory_size": "0B",
            "threads": "2",
            "python_enable_replacements": "false",  # else a table may be a variable of this module
            "lock_configuration": "true",
        },
    )


def run(connection: Any, request: Request) -> Execution:
    """Run one statement; the timer interrupts what the engine lets be interrupted, the parent ends the rest."""
    light_fuse(request.timeout + 4 * GRACE_SECONDS)
    timer = Timer(request.timeout, connection.interrupt)
    timer.daemon = True
    timer.start()
    try:
        statements = connection.extract_statements(request.sql)
        if len(statements) != 1 or statements[0].type not in _may_be(request):
            return Failure(FailureKind.REFUSED, "the statement is not one query")
        cursor = connection.execute(statements[0])
        columns = tuple(column[0] for column in cursor.description)
        return Rows(columns, collect(iter(cursor.fetchone, None), request.max_rows, wide=True))
    except Exception as error:
        kind = next((kind for cause, kind in _KINDS if isinstance(error, cause)), FailureKind.ENGINE)
        message = first_line(str(error))
        if "configuration has been locked" in message or "read-only" in message:
            kind = FailureKind.REFUSED
        elif "syntax error" in message.lower():
            kind = FailureKind.SYNTAX
        elif "bad_alloc" in message or "Allocation failure" in message:
            kind = FailureKind.TOO_LARGE
        return Failure(kind, message or type(error).__name__)
    finally:
        timer.cancel()
        light_fuse(0)


def _works(connection: Any) -> bool:
    """Tell whether the next statement can run: some errors leave an aborted transaction, or end the whole instance."""
    try:
        connection.execute("SELECT 1").fetchone()
    except duckdb.Error:
        return False
    return True


def main() -> None:
    """Open the file, say so, then serve until the parent closes the pipe."""
    replies, requests = sys.stdout.buffer, sys.stdin.buffer
    try:
        connection = connect(sys.argv[1])
    except Exception as error:
        write(replies, msgspec.msgpack.encode(Failure(FailureKind.ENGINE, str(error).strip().splitlines()[0])))
        return
    bound_memory(PROCESS_LIMIT)
    write(replies, msgspec.msgpack.encode(Rows((), ())))
    while message := read(requests):
        result = run(connection, msgspec.msgpack.decode(message, type=Request))
        if isinstance(result, Failure) and not _works(connection):
            connection.close()
            connection = connect(sys.argv[1])
        try:
            reply = msgspec.msgpack.encode(result)
        except Exception as error:  # a value that no message can carry
            reply = msgspec.msgpack.encode(Failure(FailureKind.ENGINE, f"the result cannot travel: {error}"))
        write(replies, reply)


if __name__ == "__main__":
    main()
