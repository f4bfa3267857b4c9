"""An answer as a person or program gets it: SQL, rows, the cards in the prompt, and the cost; and on its way there."""

from collections import Counter
from collections.abc import Callable, Sequence
from html import escape
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from sqlcrystal.bank import AnswerRecord
from sqlcrystal.databases.results import result_digest
from sqlcrystal.errors import ConfigError
from sqlcrystal.escaping import visible
from sqlcrystal.serving.documents import DOES_NOT_RUN, Followed, Offer, PossibleReading, UsedCard, UsedDefinition
from sqlcrystal.serving.workspace import OpenDatabase, Workspace
from sqlcrystal.types import Call, Cell, Episode, Execution, Question, Retrieved, Row, Rows

if TYPE_CHECKING:
    from sqlcrystal.telling.words import Meant

ROWS_IN_NOTEBOOK = 20
ROWS_IN_PRINT = 3


class Event(Struct, frozen=True):
    """One step of an answer: read, cards, writing, sql, rows, repaired or done, with what is known by then."""

    kind: str
    data: dict[str, Any] = {}


Notify: TypeAlias = Callable[[Event], None]


def unheard(_: Event) -> None:
    """Tell nobody."""


class ServedAnswer(Struct, frozen=True, kw_only=True):
    """One answer as it was given; in a notebook it shows itself."""

    id: str
    database: str
    question: str
    sql: str | None
    words: str = ""
    """The work of the SQL, in one sentence; empty where no rule speaks of something in it."""
    unasked: tuple[str, ...] = ()
    """Parts of the words that no word of the question asks for."""
    columns: tuple[str, ...] = ()
    rows: tuple[Row, ...] | None = ()
    """None where values are not kept and the answer was given before."""
    row_count: int = 0
    truncated: bool = False
    cards: tuple[UsedCard, ...] = ()
    memory: bool | None = None
    """Whether cards were allowed; told once a verdict stands, so that it cannot sway it."""
    replayed: bool = False
    """Served from a stored solution, without a model call."""
    adapted: bool = False
    """The stored query was given other literals; only for parameters that were confirmed before."""
    repaired: bool = False
    """The SQL is not the first attempt's."""
    audit: bool = False
    """Chance chose it to be judged, whatever it says."""
    definitions: tuple[UsedDefinition, ...] = ()
    """The definitions of terms that stand in the question."""
    offer: Offer | None = None
    readings: tuple[PossibleReading, ...] = ()
    """Two where its views fell apart, the answer itself first; a person picks one (`Crystal.pick`)."""
    follows: Followed | None = None
    confidence: float | None = None
    """The probability of being right, from what is known without an oracle; None where nothing was worked out."""
    verdict: str = ""
    card: str = ""
    """The card that a verdict made of it."""
    checked: str = ""
    """Words of the team's assertions and checks."""
    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    seconds: float = 0.0
    error: str = ""
    trace: Episode | None = None

    def document(self, *, trace: bool = False) -> dict[str, Any]:
        """Write it as JSON would hold it; how the answer came about only if asked for."""
        written = {field: getattr(self, field) for field in self.__struct_fields__ if field != "trace"}
        document: dict[str, Any] = msgspec.to_builtins({**written, **({"trace": self.trace} if trace else {})})
        return document

    def limited(self, most: int) -> "ServedAnswer":
        """Leave out the rows beyond so many; `row_count` and `truncated` tell that there are more."""
        if self.rows is None:
            return self
        shown = self.rows[:most]
        readings = tuple(reading.limited(most) for reading in self.readings)
        return replace(self, rows=shown, readings=readings, truncated=self.row_count > len(shown))

    def withheld(self) -> "ServedAnswer":
        """Leave out every cell, and the figures that a statement can make spell out a cell."""
        error = DOES_NOT_RUN if self.error else ""
        count = min(self.row_count, 1)
        readings = tuple(reading.withheld() for reading in self.readings)
        answer = replace(self, columns=(), rows=(), row_count=count, truncated=False, seconds=0.0, error=error)
        return replace(answer, readings=readings)

    def to_pandas(self) -> Any:
        """Give the rows as a pandas DataFrame; repeated column names stay as they are."""
        return _library("pandas").DataFrame(list(self.rows or ()), columns=list(self.columns))

    def to_polars(self) -> Any:
        """Give the rows as a Polars DataFrame; a column of mixed types becomes text."""
        return _library("polars").DataFrame(self._by_column(), strict=False)

    def to_arrow(self) -> Any:
        """Give the rows as an Arrow table; a column of mixed types becomes text."""
        return _library("pyarrow").table(self._by_column())

    def cost_line(self) -> str:
        """Say in one line its id and its cost."""
        how = f"{self.calls} call{'' if self.calls == 1 else 's'}"
        if self.replayed:
            how = f"replayed, {how} to read it" if self.calls else "replayed, no model call"
        how += ", adapted" if self.adapted else ""
        tokens = f", {self.prompt_tokens:,} + {self.completion_tokens:,} tokens" if self.calls else ""
        sure = f", {self.sureness}" if self.confidence is not None else ""
        return f"answer {self.id}: {how}{tokens}, {self.seconds:.1f} s{', repaired' if self.repaired else ''}{sure}"

    @property
    def sureness(self) -> str:
        """Say how sure the answer is in words, with the number behind them; nothing where none was worked out."""
        return sureness(self.confidence)

    def __str__(self) -> str:
        """Say it shortly: the SQL, what came back, and the id; everything else are its fields."""
        if self.error or not self.sql:
            return visible(f"{self.sql or 'no SQL in the reply'}\n{self.error}\n{self.cost_line()}")
        first = _first(self.rows or ())
        more = "; …" if self.row_count > ROWS_IN_PRINT else ""
        rows = f"{self.row_count:,} row{'' if self.row_count == 1 else 's'}{f': {first}{more}' if first else ''}"
        other = f"\nor, as a second reading (pick 2):\n{self.readings[1].sql}" if self.readings else ""
        return visible(f"{self.sql}\n{rows}\n{self.cost_line()}{other}")

    def _by_column(self) -> dict[str, list[Cell]]:
        return dict(zip(_told_apart(self.columns), _columns(self.columns, self.rows or ()), strict=True))

    def _repr_html_(self) -> str:
        """Draw one block of HTML for a notebook; every value is escaped, for cells and questions are anybody's text."""
        asked = f"<p>{escape(self.follows.asked)}</p>" if self.follows is not None else ""
        parts = [
            f"{asked}<p><b>{escape(self.question)}</b></p>",
            f"<pre>{escape(self.sql or 'no SQL in the reply')}</pre>",
        ]
        parts += [f"<p>{escape(self.words)}</p>"] * bool(self.words)
        parts.append(f"<p>{escape(self.error)}</p>" if self.error else _table(self.columns, self.rows or ()))
        if self.readings:
            picked = [(each.number, each.words, each.sql, _first(each.rows)) for each in self.readings]
            parts.append(_table(("pick", "in words", "SQL", "first rows"), picked))
        if self.cards:
            used = [(card.id, card.score, card.signal, card.by, card.question) for card in self.cards]
            parts.append(_table(("card", "score", "signal", "by", "question"), used))
        return "<div>" + "".join(parts) + f"<p><small>{escape(self.cost_line())}</small></p></div>"


SURENESS = ((0.85, "sure"), (0.6, "probably right"), (0.4, "unsure"), (0.0, "doubtful"))


def sureness(confidence: float | None) -> str:
    """Put a probability of being right into words."""
    if confidence is None:
        return ""
    word = next(word for least, word in SURENESS if confidence >= least)
    return f"{word} ({100 * confidence:.0f} %)"


def served(record: AnswerRecord, cards: tuple[UsedCard, ...], **more: Any) -> ServedAnswer:
    """Make an answer as it is shown from the record that is kept of it."""
    same = ("id", "database", "question", "sql", "columns", "rows", "row_count", "replayed", "calls", "prompt_tokens")
    taken = {
        field: getattr(record, field)
        for field in (*same, "completion_tokens", "seconds", "error", "confidence", "audit")
    }
    answer = ServedAnswer(**{**taken, "cards": cards, "follows": Followed.of(record), **more})
    return replace(answer, truncated=answer.row_count > len(answer.rows or ()))


# ── data frames and notebooks ────────────────────────────────────────────────────────────────────────────────────────


def _columns(columns: Sequence[str], rows: Sequence[Row]) -> list[list[Cell]]:
    by_column = [[row[place] for row in rows] for place in range(len(columns))]
    return [values if len(_kinds(values)) <= 1 else [_as_text(value) for value in values] for values in by_column]


def _kinds(values: Sequence[Cell]) -> set[type]:
    """Name the types in a column; whole and broken numbers are one."""
    return {float if type(value) is int else type(value) for value in values if value is not None}


def _as_text(value: Cell) -> Cell:
    return None if value is None else str(value)


def _told_apart(columns: Sequence[str]) -> list[str]:
    """Give a repeated column name its number: frames that go by name would lose a column."""
    names: list[str] = []
    for column in columns:
        name, number = column, 2
        while name in names:
            name, number = f"{column}_{number}", number + 1
        names.append(name)
    return names


def _library(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        raise ConfigError(f"{name} is not installed; pip install {name}") from None


def _table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    shown = rows[:ROWS_IN_NOTEBOOK]
    head = "".join(f"<th>{escape(column)}</th>" for column in columns)
    body = "".join("<tr>" + "".join(f"<td>{_cell(cell)}</td>" for cell in row) + "</tr>" for row in shown)
    more = f"<p><small>{len(rows) - len(shown):,} more rows</small></p>" if len(rows) > len(shown) else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


def _first(rows: Sequence[Row]) -> str:
    return "; ".join(", ".join(map(_cell_text, row)) for row in rows[:ROWS_IN_PRINT])


def _cell(cell: object) -> str:
    return escape(_cell_text(cell))


def _cell_text(cell: object) -> str:
    return "NULL" if cell is None else str(cell)


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
