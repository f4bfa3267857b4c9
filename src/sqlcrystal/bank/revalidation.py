"""Running cards again: their SQL is executed against the live database, and the cards that fail are quarantined."""

import re
from collections.abc import Callable
from enum import StrEnum

from msgspec import Struct

from sqlcrystal.bank.cards import CardStore
from sqlcrystal.protocols import Database
from sqlcrystal.types import Card, CardStatus, Execution, Failure, FailureKind

CHECKER = "cards check"
_MASKED_NUMBER = re.compile(r"'«n\d+»'")
_MASKED_COUNT = re.compile(r"«n\d+»")
_MASKED_LITERAL = re.compile(r"'[^'«]*«\d+»[^'«]*'")


class CheckOutcome(StrEnum):
    """The outcome of running a card."""

    RAN = "ran"
    RELEASED = "released"
    RELEASABLE = "releasable"
    QUARANTINED = "quarantined"
    STILL_QUARANTINED = "still quarantined"
    UNDECIDED = "undecided"


_RAN = (CheckOutcome.RAN, CheckOutcome.RELEASED, CheckOutcome.RELEASABLE)


class CheckedCard(Struct, frozen=True, kw_only=True):
    """One card whose SQL gave a failure, and what the engine said."""

    card: str
    kind: str
    message: str


class CheckReport(Struct, frozen=True, kw_only=True):
    """The outcome for the cards of one database."""

    database: str
    fingerprint: str
    checked: int
    stale: int
    ran: int
    quarantined: tuple[CheckedCard, ...]
    still_quarantined: tuple[CheckedCard, ...]
    released: tuple[str, ...]
    releasable: tuple[str, ...]
    undecided: tuple[CheckedCard, ...]


def check_cards(
    store: CardStore,
    database: Database,
    *,
    release: bool = False,
    timeout: float = 30.0,
    quote: bool = True,
    on_progress: Callable[[int, int], None] | None = None,
) -> CheckReport:
    """Run every active and quarantined card of this database, those of an older schema first.

    A card is judged as soon as it has run, so that an interrupted check keeps what it found. A timeout decides
    nothing: a busy server is no reason to take a card away. Without `quote` the store keeps no word of the engine's,
    which may cite a cell.
    """
    fingerprint = database.fingerprint()
    stale = store.stale(database.name, fingerprint)
    cards = [card for card in store.find(database=database.name, kind=None) if card.status is not CardStatus.DISABLED]
    cards.sort(key=lambda card: card.id not in stale)
    outcomes: dict[CheckOutcome, list[CheckedCard]] = {outcome: [] for outcome in CheckOutcome}
    for done, card in enumerate(cards, start=1):
        outcome, failure = run_again(store, card, database, release=release, timeout=timeout, quote=quote)
        message = CheckedCard(
            card=card.id, kind=failure.kind if failure else "", message=failure.message if failure else ""
        )
        outcomes[outcome].append(message)
        if on_progress:
            on_progress(done, len(cards))
    ran = [finding.card for outcome in _RAN for finding in outcomes[outcome]]
    store.mark_valid(ran, fingerprint)
    return CheckReport(
        database=database.name,
        fingerprint=fingerprint,
        checked=len(cards),
        stale=sum(card.id in stale for card in cards),
        ran=len(ran),
        quarantined=tuple(outcomes[CheckOutcome.QUARANTINED]),
        still_quarantined=tuple(outcomes[CheckOutcome.STILL_QUARANTINED]),
        released=tuple(finding.card for finding in outcomes[CheckOutcome.RELEASED]),
        releasable=tuple(finding.card for finding in outcomes[CheckOutcome.RELEASABLE]),
        undecided=tuple(outcomes[CheckOutcome.UNDECIDED]),
    )


def run_again(
    store: CardStore,
    card: Card,
    database: Database,
    *,
    release: bool = False,
    timeout: float = 30.0,
    quote: bool = True,
) -> tuple[CheckOutcome, Failure | None]:
    """Run one card and judge it at once; one that fails is quarantined."""
    failure = _failure(database.execute(runnable(card.sql), timeout=timeout))
    return _judge(store, card, failure, release=release, quote=quote), failure


def runnable(sql: str) -> str:
    """Make a query run whose values were taken out (`databases.masks`): texts are NULL, numbers are 1."""
    return _MASKED_LITERAL.sub("NULL", _MASKED_COUNT.sub("1", _MASKED_NUMBER.sub("1", sql)))


def _has_another(store: CardStore, card: Card) -> bool:
    """Tell whether the card's question got another card meanwhile, which a check does not replace."""
    same = {"database": card.database, "question": card.question.text}
    return bool(store.find(**same, status=CardStatus.ACTIVE, kind=card.kind))


def _failure(execution: Execution) -> Failure | None:
    # More rows than the cap is proof enough that the statement runs.
    if isinstance(execution, Failure) and execution.kind is not FailureKind.TOO_LARGE:
        return execution
    return None


def _judge(store: CardStore, card: Card, failure: Failure | None, *, release: bool, quote: bool) -> CheckOutcome:
    quarantined = card.status is CardStatus.QUARANTINED
    if failure is None:
        if quarantined and release and not _has_another(store, card):
            store.set_status(card.id, CardStatus.ACTIVE, by=CHECKER, reason="runs again")
            return CheckOutcome.RELEASED
        return CheckOutcome.RELEASABLE if quarantined else CheckOutcome.RAN
    if failure.kind is FailureKind.TIMEOUT:
        return CheckOutcome.UNDECIDED
    if quarantined:
        return CheckOutcome.STILL_QUARANTINED
    reason = f"{failure.kind}: {failure.message}" if quote else str(failure.kind)
    store.set_status(card.id, CardStatus.QUARANTINED, by=CHECKER, reason=reason)
    return CheckOutcome.QUARANTINED
