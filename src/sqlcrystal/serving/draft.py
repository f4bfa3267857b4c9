"""An answer on its way: what the pipeline or the store came to, before it is kept."""

from collections import Counter
from typing import TYPE_CHECKING

from msgspec import Struct

from sqlcrystal.databases.results import result_digest
from sqlcrystal.serving.documents import UsedCard
from sqlcrystal.serving.workspace import OpenDatabase, Workspace
from sqlcrystal.types import Call, Episode, Execution, Question, Retrieved, Row, Rows

if TYPE_CHECKING:
    from sqlcrystal.telling.words import Meant


class Draft(Struct, frozen=True, kw_only=True):
    """A question with the SQL that answers it, what that returned, and how it came about."""

    question: Question
    sql: str | None
    execution: Execution | None
    retrieved: tuple[Retrieved, ...] = ()
    meant: "tuple[Meant, ...]" = ()
    """The definitions of its terms."""
    calls: tuple[Call, ...] = ()
    episode: Episode | None = None
    replayed: bool = False
    adapted: bool = False
    repaired: bool = False
    confidence: float | None = None
    traits: tuple[float, ...] = ()
    other: str | None = None
    """The SQL of a second reading."""

    @property
    def used(self) -> tuple[UsedCard, ...]:
        """List the cards that it leans on, as an answer names them."""
        return tuple(UsedCard.of(retrieved.card, retrieved.score) for retrieved in self.retrieved)

    @property
    def columns(self) -> tuple[str, ...]:
        """Give the result's columns; none for SQL that failed."""
        return self.execution.columns if isinstance(self.execution, Rows) else ()

    @property
    def rows(self) -> tuple[Row, ...]:
        """Give the result's rows; none for SQL that failed."""
        return self.execution.rows if isinstance(self.execution, Rows) else ()


class Vouched(Struct, frozen=True):
    """The card that a team's own checks made of an answer, their words, and the verdict that now stands."""

    card: str = ""
    said: str = ""
    verdict: str = ""


NEAR = 0.9
"""A card this near is about the same thing, and should not say something else."""
LOOKED_AT = 10


def spread(workspace: Workspace, draft: Draft, digest: str) -> float:
    """Tell how much this answer, the candidates for it and earlier answers to the question disagree, from 0 to 1."""
    tried = draft.episode.rounds if draft.episode is not None else ()
    results = [digest, *(result_digest(turn.execution) for turn in tried)]
    if workspace.store_exists():
        asked = draft.question
        results += workspace.store.answers.digests(asked.text, database=asked.database, limit=LOOKED_AT)
    (_, most), *_ = Counter(results).most_common(1)
    return round(1 - most / len(results), 6)


def conflict(opened: OpenDatabase, draft: Draft, digest: str) -> float:
    """Give the score of the nearest card whose result is another."""
    found = contradicting(opened, draft, digest)
    return found.score if found is not None else 0.0


def contradicting(opened: OpenDatabase, draft: Draft, digest: str) -> Retrieved | None:
    """Find the nearest card whose result is another; a question with other literals is no contradiction."""
    if draft.replayed or draft.sql is None or opened.entry.values == "never":
        return None
    for retrieved in draft.retrieved:
        card = retrieved.card
        if retrieved.score < NEAR:
            break
        from sqlcrystal.serving.replay import other_values

        if card.sql.strip() == draft.sql.strip() or other_values(card, draft.question.text, opened.database.dialect):
            continue
        if result_digest(opened.database.execute(card.sql)) != digest:
            return retrieved
    return None
