"""An answer on its way: what the pipeline or the store came to, before it is kept."""

from msgspec import Struct

from sqlcrystal.serving.documents import UsedCard
from sqlcrystal.types import Call, Episode, Execution, Question, Retrieved, Row, Rows


class Draft(Struct, frozen=True, kw_only=True):
    """A question with the SQL that answers it, what that returned, and how it came about."""

    question: Question
    sql: str | None
    execution: Execution | None
    retrieved: tuple[Retrieved, ...] = ()
    calls: tuple[Call, ...] = ()
    episode: Episode | None = None
    replayed: bool = False
    adapted: bool = False
    repaired: bool = False

    @property
    def used(self) -> tuple[UsedCard, ...]:
        """The cards that it leans on, as an answer names them."""
        return tuple(UsedCard.of(retrieved.card, retrieved.score) for retrieved in self.retrieved)

    @property
    def columns(self) -> tuple[str, ...]:
        """The result's columns; none for SQL that failed."""
        return self.execution.columns if isinstance(self.execution, Rows) else ()

    @property
    def rows(self) -> tuple[Row, ...]:
        """The result's rows; none for SQL that failed."""
        return self.execution.rows if isinstance(self.execution, Rows) else ()


class Vouched(Struct, frozen=True):
    """The card that a team's own checks made of an answer, their words, and the verdict that now stands."""

    card: str = ""
    said: str = ""
    verdict: str = ""
