"""Where databases lie that no settings name: verdicts find them again, and two of one name are told apart."""

import sqlalchemy as sa
from msgspec import Struct

from sqlcrystal.bank.backend import Backend
from sqlcrystal.bank.card_rows import now, upsert
from sqlcrystal.bank.tables import places


class Place(Struct, frozen=True, kw_only=True):
    """One database by its name in the store, its URL without a password, and the model it was last asked with."""

    database: str
    url: str
    model: str = ""


class PlaceStore:
    """One place a name; a later word replaces an earlier one."""

    def __init__(self, backend: Backend) -> None:
        """Share the store's transactions."""
        self._backend = backend

    def remember(self, place: Place) -> None:
        """Keep where a database lies, unless that is what is known already."""
        if self.get(place.database) == place:
            return
        row = {"url": place.url, "model": place.model, "at": now()}
        with self._backend.writing() as connection:
            insertion = upsert(connection, places).values(database=place.database, **row)
            connection.execute(insertion.on_conflict_do_update(index_elements=[places.c.database], set_=row))

    def get(self, database: str) -> Place | None:
        """Where a database was last asked."""
        return next((place for place in self.all() if place.database == database), None)

    def all(self) -> list[Place]:
        """Every known place, the one asked last first."""
        query = sa.select(places.c.database, places.c.url, places.c.model).order_by(places.c.at.desc())
        with self._backend.reading() as connection:
            return [Place(**row._mapping) for row in connection.execute(query)]
