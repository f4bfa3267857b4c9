"""Errors as every interface tells them: one table of statuses, one line of words."""

from sqlcrystal.errors import (
    Contradicted,
    Forbidden,
    InfrastructureError,
    ModelError,
    NotFound,
    RecordingMiss,
    SqlcrystalError,
    UserError,
)
from sqlcrystal.interfaces.server.logs import event


class Busy(Exception):
    """The queue of a database is full; the message says how long it is."""


class Stopped(Exception):
    """The caller no longer wants the answer."""


class TooLate(Exception):
    """The time limit of an answer passed."""


class Stopping(Exception):
    """The server is shutting down and takes no new work."""


STATUSES: tuple[tuple[type[BaseException], int], ...] = (
    (Busy, 503),
    (Stopping, 503),
    (Stopped, 499),
    (TooLate, 504),
    (NotFound, 404),
    (Forbidden, 403),
    (Contradicted, 409),
    (UserError, 422),
    (RecordingMiss, 404),
    (ModelError, 502),
    (InfrastructureError, 502),
    (SqlcrystalError, 422),
)
"""The first that fits counts."""
EXPECTED = (SqlcrystalError, Busy, Stopping, Stopped, TooLate)
FAILED = "the server failed; its log says where"


def status_and_line(error: BaseException) -> tuple[int, str]:
    """Give the status and the one line that a caller gets for an error; a bug says nothing of itself."""
    for kind, status in STATUSES:
        if isinstance(error, kind):
            return status, str(error)
    event("bug", level=40, cause=error)
    return 500, FAILED
