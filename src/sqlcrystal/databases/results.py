"""A name for a result, the same for the same rows in any order."""

import hashlib

import msgspec

from sqlcrystal.types import Execution, Rows


def result_digest(execution: Execution | None) -> str:
    """Name a result by its rows in any order; nothing for SQL that gave none."""
    if not isinstance(execution, Rows):
        return ""
    rows = sorted(msgspec.json.encode(row) for row in execution.rows)
    return hashlib.sha256(b"\n".join([str(len(execution.columns)).encode(), *rows])).hexdigest()[:32]
