"""Definitions that wait for a person's word; one that was decided on is not proposed again."""

from collections.abc import Iterable

import sqlalchemy as sa

from sqlcrystal.bank.backend import Backend
from sqlcrystal.bank.documents import DocumentLookup, StoredRecords, encode, insert_once
from sqlcrystal.bank.records import ProposedDefinition, Verdict
from sqlcrystal.bank.tables import proposed_definitions

_PROPOSED = StoredRecords(ProposedDefinition)
_LOOKUP = DocumentLookup(proposed_definitions, kind="proposed definition")


class ProposedDefinitionStore:
    """Keeps proposals by an id that follows from what they say, with the verdict on them."""

    def __init__(self, backend: Backend) -> None:
        """Share the store's transactions."""
        self._backend = backend

    def propose(self, proposed: Iterable[ProposedDefinition]) -> list[ProposedDefinition]:
        """Keep proposals, and return those that are new: neither waiting nor decided on."""
        with self._backend.writing() as connection:
            return [
                each
                for each in proposed
                if insert_once(
                    connection,
                    proposed_definitions,
                    {
                        "id": each.id,
                        "database": each.database,
                        "at": each.at,
                        "document": encode(f"definition {each.id!r}", each),
                    },
                )
            ]

    def waiting(self, database: str | None = None) -> list[ProposedDefinition]:
        """List what waits for a word, oldest first."""
        query = sa.select(proposed_definitions.c.document).where(proposed_definitions.c.verdict == "")
        if database is not None:
            query = query.where(proposed_definitions.c.database == database)
        rows = self._backend.rows(query.order_by(proposed_definitions.c.seq))
        return [_PROPOSED.decode(document) for (document,) in rows]

    def get(self, name: str) -> ProposedDefinition:
        """Return one proposal, decided or not; the start of its id will do where only one has it."""
        return _PROPOSED.decode(_LOOKUP.find(self._backend, name))

    def decide(self, name: str, verdict: Verdict, *, by: str) -> bool:
        """Keep a person's word on a proposal; False where one was given before."""
        table = proposed_definitions
        decided = table.update().where(table.c.id == name, table.c.verdict == "")
        with self._backend.writing() as connection:
            return bool(connection.execute(decided.values(verdict=str(verdict), by=by)).rowcount)
