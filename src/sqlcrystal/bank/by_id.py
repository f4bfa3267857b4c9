"""Records found by their id, or by as much of it as tells it from the others."""

import sqlalchemy as sa

from sqlcrystal.bank.backend import Backend
from sqlcrystal.errors import BankError

_BEYOND = "\U0010ffff"
"""Sorts after every character an id may go on with."""


class ById:
    """Looks up documents of one table."""

    def __init__(self, table: sa.Table, *, kind: str) -> None:
        """`kind` is what errors call a record."""
        name, document = table.c.id, table.c.document
        self._kind = kind
        self._whole = sa.select(name, document).where(name == sa.bindparam("wanted"))
        starting = (name > sa.bindparam("wanted")) & (name < sa.bindparam("beyond"))
        self._start = sa.select(name, document).where(starting).order_by(name).limit(3)

    def document(self, backend: Backend, wanted: str) -> bytes:
        """The record's document."""
        rows = backend.rows(self._whole, {"wanted": wanted})
        rows = rows or backend.rows(self._start, {"wanted": wanted, "beyond": wanted + _BEYOND})
        if not wanted or not rows:
            raise BankError(f"{self._kind} {wanted!r}: not in {backend.where}")
        if len(rows) > 1:
            raise BankError(f"{self._kind} {wanted!r}: several ids start so ({', '.join(name for name, _ in rows)})")
        document: bytes = rows[0][1]
        return document
