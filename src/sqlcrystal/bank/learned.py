"""The outcome of each shape of a query log, so that learning goes on where it was ended."""

import sqlalchemy as sa

from sqlcrystal.bank.backend import Backend
from sqlcrystal.bank.documents import upsert
from sqlcrystal.bank.records import LearnedShape
from sqlcrystal.bank.tables import learned

_COLUMNS = tuple(learned.c[field] for field in LearnedShape.__struct_fields__)


class LearnedStore:
    """Keeps one line for each shape of each database; a later outcome replaces an earlier one."""

    def __init__(self, backend: Backend) -> None:
        """Share the store's transactions."""
        self._backend = backend

    def keep(self, shape: LearnedShape) -> None:
        """Keep what came of a shape, within the caller's transaction where there is one."""
        key = {"database": shape.database, "shape": shape.shape}
        row = {"at": shape.at, "outcome": shape.outcome, "answer": shape.answer}
        with self._backend.writing() as connection:
            insertion = upsert(connection, learned).values(**key, **row)
            connection.execute(
                insertion.on_conflict_do_update(index_elements=[learned.c.database, learned.c.shape], set_=row)
            )

    def known(self, database: str) -> dict[str, LearnedShape]:
        """Give the outcome of every shape of a database that was tried, by shape."""
        rows = self._backend.rows(sa.select(*_COLUMNS).where(learned.c.database == database))
        return {row.shape: LearnedShape(**row._mapping) for row in rows}
