"""The whole store of a team: cards, answers, decisions and tokens, behind one door and in one transaction."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType

from msgspec import Struct

from sqlcrystal.bank.access import TokenStore
from sqlcrystal.bank.answers import AnswerStore
from sqlcrystal.bank.backend import BUSY_SECONDS, open_backend
from sqlcrystal.bank.cards import CardStore
from sqlcrystal.bank.decisions import DecisionStore
from sqlcrystal.bank.forgetting import Forgotten, forget
from sqlcrystal.bank.places import PlaceStore
from sqlcrystal.bank.records import AnswerRecord
from sqlcrystal.bank.served import MEMORY
from sqlcrystal.types import Card, CardStatus


class Revocation(Struct, frozen=True, kw_only=True):
    """The cards a revocation took out of service, and the answers that had leaned on them."""

    cards: tuple[Card, ...]
    leaned: tuple[AnswerRecord, ...]


class Store:
    """One store, shared by threads, processes and (in PostgreSQL) machines; acknowledged means on disk."""

    def __init__(
        self, place: Path | str, *, create: bool = True, busy_seconds: float = BUSY_SECONDS, memory: int = MEMORY
    ) -> None:
        """Open the store at a path, `sqlite:///path` or `postgresql://…`; `memory` bounds the cards kept decoded."""
        self.backend = open_backend(place, create=create, busy_seconds=busy_seconds)
        self.where = self.backend.where
        self.bank = CardStore(self.backend, memory=memory)
        self.answers = AnswerStore(self.backend)
        self.decisions = DecisionStore(self.backend, self.answers)
        self.tokens = TokenStore(self.backend)
        self.places = PlaceStore(self.backend)

    @property
    def is_file(self) -> bool:
        """Whether a look is a matter of microseconds: no server has to be asked."""
        return self.backend.dialect == "sqlite"

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Everything this thread writes inside the block is kept together, or none of it."""
        with self.backend.writing():
            yield

    @contextmanager
    def appending(self) -> Iterator[None]:
        """The same for what only adds rows, such as answers: it waits for no writer where the engine spares that."""
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
            matching = self.bank.find(database=database, signal=signal, admitted_by=by, since=since)
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
        """Remove a question or a value wherever it was kept; what was counted stays counted."""
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
