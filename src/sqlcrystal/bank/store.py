"""The whole store of a team, from cards to tokens and experiments, in one transaction where needed."""

import hashlib
import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

import sqlalchemy as sa
from msgspec import Struct

from sqlcrystal.bank.answers import AnswerStore
from sqlcrystal.bank.backend import BUSY_SECONDS, Backend, open_backend
from sqlcrystal.bank.cards import CardStore
from sqlcrystal.bank.decisions import DecisionStore, ProposedDefinitionStore
from sqlcrystal.bank.forgetting import Forgotten, forget
from sqlcrystal.bank.records import AnswerRecord, DatabaseLocation, Experiment, Grant, LearnedShape, Scope
from sqlcrystal.bank.snapshots import MEMORY
from sqlcrystal.bank.tables import confidences, experiments, learned, locations, token_scopes, tokens, upsert
from sqlcrystal.errors import BankError
from sqlcrystal.timestamps import timestamp
from sqlcrystal.types import Card, CardStatus

PREFIX = "sqlc_"
_GRANTS: "sa.Select[Any]" = (
    sa.select(
        *(tokens.c[name] for name in ("id", "person", "made_at", "made_by", "ends_at", "revoked_at")),
        token_scopes.c.database,
        token_scopes.c.scope,
    )
    .join(token_scopes, token_scopes.c.token == tokens.c.id)
    .order_by(tokens.c.made_at, tokens.c.id)
)
_BY_DIGEST = _GRANTS.where(tokens.c.digest == sa.bindparam("value"))
_BY_ID = _GRANTS.where(tokens.c.id == sa.bindparam("value"))


class TokenStore:
    """Issues, recognises and revokes tokens."""

    def __init__(self, backend: Backend) -> None:
        """Share the store's transactions."""
        self._backend = backend

    def issue(
        self, person: str, scopes: Iterable[tuple[str, Scope]], *, by: str, ends_at: str = ""
    ) -> tuple[str, Grant]:
        """Issue a new token, shown this once, and return it with its grant."""
        token = PREFIX + secrets.token_urlsafe(32)
        grant = Grant(
            id=secrets.token_hex(6),
            person=person,
            scopes=frozenset(scopes),
            made_at=timestamp(),
            made_by=by,
            ends_at=ends_at,
        )
        if not grant.scopes:
            raise BankError(f"token for {person!r}: needs at least one database and scope")
        row = {"id": grant.id, "digest": _digest(token), "person": person, "made_at": grant.made_at, "made_by": by}
        allowed = [{"token": grant.id, "database": name, "scope": str(scope)} for name, scope in grant.scopes]
        with self._backend.writing() as connection:
            connection.execute(tokens.insert().values(**row, ends_at=ends_at, revoked_at="", revoked_by=""))
            connection.execute(token_scopes.insert(), allowed)
        return token, grant

    def recognise(self, token: str) -> Grant | None:
        """Return the grant of a token that stands; None if it was never issued, was revoked, or its time is over."""
        # The token has 256 random bits, so a plain digest cannot be guessed back and looking it up leaks nothing.
        grants = self._grants(_BY_DIGEST, {"value": _digest(token)})
        return grants[0] if grants and grants[0].state == "stands" else None

    def revoke(self, token_id: str, *, by: str) -> None:
        """End a token; once revoked it stays so."""
        with self._backend.writing() as connection:
            standing = tokens.update().where(tokens.c.id == token_id, tokens.c.revoked_at == "")
            if connection.execute(standing.values(revoked_at=timestamp(), revoked_by=by)).rowcount:
                return
            if not self._grants(_BY_ID, {"value": token_id}):
                raise BankError(f"token {token_id!r}: not in {self._backend.where}")

    def all(self) -> list[Grant]:
        """List every token ever issued, revoked ones too, oldest first."""
        return self._grants(_GRANTS, {})

    def _grants(self, statement: "sa.Select[Any]", given: dict[str, str]) -> list[Grant]:
        scopes_of: dict[tuple[str, ...], set[tuple[str, Scope]]] = {}
        for *grant, database, scope in self._backend.rows(statement, given):
            scopes_of.setdefault(tuple(grant), set()).add((database, Scope(scope)))
        return [
            Grant(
                id=name,
                person=person,
                scopes=frozenset(scopes),
                made_at=made_at,
                made_by=made_by,
                ends_at=ends_at,
                revoked_at=revoked_at,
            )
            for (name, person, made_at, made_by, ends_at, revoked_at), scopes in scopes_of.items()
        ]


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


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


class Revocation(Struct, frozen=True, kw_only=True):
    """The cards a revocation took out of service, and the answers that had leaned on them."""

    cards: tuple[Card, ...]
    leaned: tuple[AnswerRecord, ...]


class LocationStore:
    """Keeps where databases lie that no settings name; a later location of a database replaces an earlier one."""

    def __init__(self, backend: Backend) -> None:
        """Share the store's transactions."""
        self._backend = backend

    def remember(self, location: DatabaseLocation) -> None:
        """Keep where a database lies, unless it is known to lie there."""
        if location in self.all():
            return
        row = {"url": location.url, "model": location.model, "at": timestamp()}
        with self._backend.writing() as connection:
            insertion = upsert(connection, locations).values(database=location.database, **row)
            connection.execute(insertion.on_conflict_do_update(index_elements=[locations.c.database], set_=row))

    def all(self) -> list[DatabaseLocation]:
        """List every known location, the one asked last first."""
        query = sa.select(locations.c.database, locations.c.url, locations.c.model).order_by(locations.c.at.desc())
        return [DatabaseLocation(**row._mapping) for row in self._backend.rows(query)]


class ExperimentStore:
    """Keeps how a database's questions are divided to measure memory, where a person chose it."""

    def __init__(self, backend: Backend) -> None:
        """Share the store's transactions."""
        self._backend = backend

    def choose(self, experiment: Experiment) -> None:
        """Keep a choice; it replaces the one before."""
        row = {name: getattr(experiment, name) for name in ("hold_out", "both_arms", "by", "at")}
        with self._backend.writing() as connection:
            insertion = upsert(connection, experiments).values(database=experiment.database, **row)
            connection.execute(insertion.on_conflict_do_update(index_elements=[experiments.c.database], set_=row))

    def of(self, database: str) -> Experiment | None:
        """Give what was chosen for a database last; None where the settings say it."""
        found = self._backend.rows(sa.select(experiments).where(experiments.c.database == database))
        return next((Experiment(**row._mapping) for row in found), None)


class ConfidenceStore:
    """Keeps how sure answers of a database are told to be, where a team's own verdicts refitted that; as a document."""

    def __init__(self, backend: Backend) -> None:
        """Share the store's transactions."""
        self._backend = backend

    def keep(self, database: str, document: bytes, *, verdicts: int) -> None:
        """Keep what so many verdicts led to; it replaces the one before."""
        row = {"document": document, "verdicts": verdicts, "at": timestamp()}
        with self._backend.writing() as connection:
            insertion = upsert(connection, confidences).values(database=database, **row)
            connection.execute(insertion.on_conflict_do_update(index_elements=[confidences.c.database], set_=row))

    def of(self, database: str) -> bytes | None:
        """Give what was kept of a database last."""
        query = sa.select(confidences.c.document).where(confidences.c.database == database)
        return next((bytes(document) for (document,) in self._backend.rows(query)), None)

    def verdicts(self, database: str) -> int:
        """Count the verdicts that the one that is kept was fitted on; 0 where none is."""
        query = sa.select(confidences.c.verdicts).where(confidences.c.database == database)
        return next((int(count) for (count,) in self._backend.rows(query)), 0)


class Store:
    """One store, shared by threads, processes and (in PostgreSQL) machines; acknowledged means on disk."""

    def __init__(
        self, location: Path | str, *, create: bool = True, busy_seconds: float = BUSY_SECONDS, memory: int = MEMORY
    ) -> None:
        """Open the store at a path, `sqlite:///path` or `postgresql://…`; `memory` bounds the cards kept decoded."""
        self.backend = open_backend(location, create=create, busy_seconds=busy_seconds)
        self.where = self.backend.where
        self.bank = CardStore(self.backend, memory=memory)
        self.answers = AnswerStore(self.backend)
        self.decisions = DecisionStore(self.backend, self.answers)
        self.tokens = TokenStore(self.backend)
        self.locations = LocationStore(self.backend)
        self.experiments = ExperimentStore(self.backend)
        self.confidences = ConfidenceStore(self.backend)
        self.learned = LearnedStore(self.backend)
        self.proposed_definitions = ProposedDefinitionStore(self.backend)

    @property
    def is_file(self) -> bool:
        """Tell whether a query is a matter of microseconds: no server has to be asked."""
        return self.backend.dialect == "sqlite"

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Keep everything this thread writes inside the block together, or none of it."""
        with self.backend.writing():
            yield

    @contextmanager
    def appending(self) -> Iterator[None]:
        """Do the same for writes that only add rows, such as answers: they wait for no writer if the engine can."""
        with self.backend.appending():
            yield

    def revoke(
        self,
        *,
        revoked_by: str,
        by: str | None = None,
        signal: str | None = None,
        since: str | None = None,
        database: str | None = None,
        reason: str = "",
    ) -> Revocation:
        """Undo a verifier: disable its cards, take its verdicts back, and say which answers leaned on them."""
        with self.transaction():
            matching = self.bank.find(database=database, signal=signal, admitted_by=by, since=since, kind=None)
            served = [card for card in matching if card.status is not CardStatus.DISABLED]
            after = self.bank.set_statuses(
                [card.id for card in served], CardStatus.DISABLED, by=revoked_by, reason=reason or "revoked"
            )
            for card in matching:
                self.decisions.revoke_card(
                    card.id, database=card.database, by=revoked_by, signal="revocation", note=reason
                )
            leaned = self.answers.leaning_on([card.id for card in matching])
        return Revocation(cards=tuple(after), leaned=tuple(leaned))

    def forget(self, *, by: str, question: str | None = None, value: str | None = None) -> Forgotten:
        """Remove a question or a value wherever it was kept; the counts stay."""
        return forget(self.backend, self.bank, by=by, question=question, value=value)

    def close(self) -> None:
        """Close the store."""
        self.backend.close()

    def __enter__(self) -> "Store":
        """Use the store in a with statement."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Close it."""
        self.close()
