"""The confidence in answers, as a team's own verdicts tell: the shipped model refitted for each database, or kept."""

from collections.abc import Sequence

import msgspec
from msgspec import Struct

from sqlcrystal.bank import AnswerRecord, Store
from sqlcrystal.measurement.confidence import (
    EVERY_VERDICTS,
    LEAST_VERDICTS,
    TRAITS,
    Confidence,
    Example,
    Refit,
    refit,
    shipped,
)


class TeamConfidence(Struct, frozen=True, kw_only=True):
    """The told confidence held against a team's own verdicts."""

    verdicts: int
    """Judged answers that it was worked out for."""
    needed: int = 0
    """Verdicts still missing before it is refitted."""
    tested: int = 0
    """The later half, each foretold from the verdicts before it."""
    brier_shipped: float | None = None
    brier_refitted: float | None = None
    error: float | None = None
    """The calibration error, on those, of the model in use."""
    in_use: bool = False
    """True where the refitted model tells how sure answers are; where it did no better, the shipped one does."""


def model_of(store: Store, database: str) -> Confidence:
    """Give the model that tells how sure answers of a database are."""
    kept = _kept(store, database)
    return kept.model if kept is not None else shipped()


def refit_when_due(store: Store, database: str) -> None:
    """Refit after so many new verdicts; most verdicts only count."""
    judged = store.answers.judged_count(database)
    if judged >= LEAST_VERDICTS and judged - store.confidences.verdicts(database) >= EVERY_VERDICTS:
        refit_now(store, database, judged=judged)


def refit_now(store: Store, database: str, *, judged: int | None = None) -> TeamConfidence:
    """Refit on all verdicts, and order the queue by what came of it."""
    found = refit(_examples(store, database), prior=shipped())
    counted = store.answers.judged_count(database) if judged is None else judged
    with store.transaction():
        store.confidences.keep(database, msgspec.json.encode(found), verdicts=counted)
        store.answers.doubt_again(database, lambda record: _sure(found.model, record))
    return _told(found)


def team_confidence(store: Store, database: str) -> TeamConfidence:
    """Tell how the last refit went; nothing is fitted to tell it."""
    kept = _kept(store, database)
    if kept is not None and kept.tested:
        return _told(kept)
    count = sum(bool(record.traits) for record, _ in store.answers.judged_records(database))
    return TeamConfidence(verdicts=count, needed=max(0, LEAST_VERDICTS - count))


def _kept(store: Store, database: str) -> Refit | None:
    document = store.confidences.of(database)
    kept = None if document is None else msgspec.json.decode(document, type=Refit)
    # One that an earlier version fitted on other traits says nothing of these.
    return kept if kept is not None and len(kept.model.weights) == len(TRAITS) else None


def _told(found: Refit) -> TeamConfidence:
    return TeamConfidence(
        verdicts=found.verdicts,
        needed=max(0, LEAST_VERDICTS - found.verdicts),
        tested=found.tested,
        brier_shipped=found.brier_shipped,
        brier_refitted=found.brier_refitted,
        error=found.error,
        in_use=found.in_use,
    )


def _examples(store: Store, database: str) -> Sequence[Example]:
    judged = store.answers.judged_records(database)
    return [Example(record.traits, right, database) for record, right in judged if len(record.traits) == len(TRAITS)]


def _sure(model: Confidence, record: AnswerRecord) -> float | None:
    return model.probability(record.traits) if len(record.traits) == len(TRAITS) else None
