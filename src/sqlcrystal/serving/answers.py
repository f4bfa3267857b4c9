"""What a person gets for a question: the SQL, its rows, the cards that stood in the prompt, and what it cost."""

from collections.abc import Callable
from typing import Any, TypeAlias

import msgspec
from msgspec import Struct

from sqlcrystal.bank import AnswerRecord
from sqlcrystal.serving.display import answer_html
from sqlcrystal.serving.frames import arrow_table, pandas_frame, polars_frame
from sqlcrystal.types import Card, CardId, Episode, Row


class Event(Struct, frozen=True):
    """One step of an answer as it happens: cards, sql, rows, repaired or done, with what is known by then."""

    kind: str
    data: dict[str, Any] = {}


Notify: TypeAlias = Callable[[Event], None]


class UsedCard(Struct, frozen=True, kw_only=True):
    """A card that stood in the prompt, why it was brought up, and who vouched for it."""

    id: CardId
    score: float
    signal: str
    by: str
    question: str

    @classmethod
    def of(cls, card: Card, score: float) -> "UsedCard":
        """A card as an answer shows it."""
        return cls(
            id=card.id, score=score, signal=card.admission.signal, by=card.admission.by, question=card.question.text
        )


class Offer(Struct, frozen=True, kw_only=True):
    """A stored query with its literals exchanged for the question's, to be looked at and confirmed by its id."""

    id: str
    card: CardId
    sql: str
    exchanged: tuple[tuple[str, str], ...]


class ServedAnswer(Struct, frozen=True, kw_only=True):
    """One answer as it was given; in a notebook it shows itself."""

    id: str
    database: str
    question: str
    sql: str | None
    columns: tuple[str, ...] = ()
    rows: tuple[Row, ...] = ()
    cards: tuple[UsedCard, ...] = ()
    memory: bool = True
    """False in the hold-out share; interfaces do not show it to who judges until the verdict is given."""
    replayed: bool = False
    """Served from a stored solution, without a model call."""
    adapted: bool = False
    """The stored query was given other literals; only for parameters that were confirmed before."""
    offer: Offer | None = None
    card: str = ""
    """The card it became at once, where an assertion or an external check vouched for it."""
    checked: str = ""
    """What the team's assertions and checks said."""
    repaired: bool = False
    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    seconds: float = 0.0
    error: str = ""
    trace: Episode | None = None

    def document(self, *, trace: bool = False) -> dict[str, Any]:
        """What `ask --json` prints; how the answer came about only if asked for."""
        told = {field: getattr(self, field) for field in self.__struct_fields__ if field != "trace"}
        document: dict[str, Any] = msgspec.to_builtins({**told, **({"trace": self.trace} if trace else {})})
        return document

    def to_pandas(self) -> Any:
        """The rows as a pandas DataFrame."""
        return pandas_frame(self.columns, self.rows)

    def to_polars(self) -> Any:
        """The rows as a Polars DataFrame."""
        return polars_frame(self.columns, self.rows)

    def to_arrow(self) -> Any:
        """The rows as an Arrow table."""
        return arrow_table(self.columns, self.rows)

    def _repr_html_(self) -> str:
        return answer_html(
            question=self.question,
            sql=self.sql,
            columns=self.columns,
            rows=self.rows,
            cards=[(card.id, card.score, card.signal, card.by, card.question) for card in self.cards],
            footer=self.cost_line(),
            error=self.error,
        )

    def cost_line(self) -> str:
        """The answer's id and what it took, in one line."""
        how = "replayed, no model call" if self.replayed else f"{self.calls} call{'' if self.calls == 1 else 's'}"
        how += ", adapted" if self.adapted else ""
        tokens = f", {self.prompt_tokens:,} + {self.completion_tokens:,} tokens" if self.calls else ""
        return f"answer {self.id}: {how}{tokens}, {self.seconds:.1f} s{', repaired' if self.repaired else ''}"


def served(record: AnswerRecord, cards: tuple[UsedCard, ...], **more: Any) -> ServedAnswer:
    """An answer as it is shown, from the record that is kept of it."""
    same = ("id", "database", "question", "sql", "columns", "memory", "replayed", "calls", "prompt_tokens")
    told = {field: getattr(record, field) for field in (*same, "completion_tokens", "seconds", "error")}
    return ServedAnswer(**{**told, "rows": record.rows or (), "cards": cards, **more})
