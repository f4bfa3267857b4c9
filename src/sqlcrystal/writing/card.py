"""From an admitted episode to a card with its provenance; W0 and W1, which keep the episode as it is."""

import hashlib
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import ClassVar, Self

from sqlcrystal.protocols import Database, LanguageModel
from sqlcrystal.types import Admitted, Call, Card, CardId, Episode, Execution, Failure, Probe, Round, Written

WORD_PIECE = re.compile(r"[^\W\d_]{1,5}|\d{1,3}|[^\w\s]|_")


class CardWriter(ABC):
    """Renders an episode as the text that later questions see; a subclass renders it, or composes it with a model."""

    name: ClassVar[str]
    header: ClassVar[str]
    """The line above its cards in a prompt: neutral, so that no writer receives extra instruction."""
    summary: ClassVar[str]
    """Its card in a few words, for reports."""
    calls_model: ClassVar[bool] = False
    permutable: ClassVar[bool] = False
    """True if its card is `render_pair` of a question and its SQL, so that it can be rendered with another's."""

    @classmethod
    def of(cls, database: Database, model: LanguageModel) -> Self:  # noqa: ARG003
        """Make the writer for one database; a subclass takes of the two what it needs."""
        return cls(database.fingerprint)

    def __init__(self, fingerprint: Callable[[], str]) -> None:
        """Take the fingerprint of the schema that the SQL was seen to run under."""
        self._fingerprint = fingerprint

    @abstractmethod
    def render(self, episode: Episode) -> str:
        """Write the card's text, as far as it follows from the episode alone."""

    def compose(self, episode: Episode) -> tuple[str, tuple[Call, ...]]:
        """Write the card's text and give the model calls it took: none, unless a subclass asks."""
        return self.render(episode), ()

    def write(self, admitted: Admitted) -> Written:
        """Turn an admitted episode into a card."""
        if not isinstance(admitted, Admitted):
            raise TypeError("a writer accepts nothing but what admission let through")
        episode = admitted.episode
        composed, calls = self.compose(episode)
        text = composed.strip()
        card = Card(
            id=card_id(episode, self.name),
            database=episode.question.database,
            question=episode.question,
            sql=episode.sql,
            text=text,
            writer=self.name,
            source=episode.source,
            admission=admitted.admission,
            fingerprint=self._fingerprint(),
            tokens=estimate_tokens(text),
        )
        return Written(card, calls)


class DatabaseCardWriter(CardWriter):
    """A writer that looks at the database, for its dialect or its schema."""

    def __init__(self, database: Database) -> None:
        super().__init__(database.fingerprint)
        self.database = database

    @classmethod
    def of(cls, database: Database, model: LanguageModel) -> Self:  # noqa: ARG003
        """Make the writer for one database."""
        return cls(database)


def card_id(episode: Episode, writer: str) -> CardId:
    """Digest database, writer, question and SQL: the same episode, written the same way, is the same card."""
    question = episode.question
    identity = "\0".join([question.database, writer, question.id, episode.sql])
    return CardId(hashlib.sha256(identity.encode()).hexdigest()[:16])


def estimate_tokens(text: str) -> int:
    """Estimate without any model's vocabulary: a token per five letters, three digits or one sign."""
    return len(WORD_PIECE.findall(text))


def fence_sql(sql: str) -> str:
    """Write SQL in its own block."""
    return f"```sql\n{sql.strip()}\n```"


def one_line(text: str) -> str:
    """Join the lines of a text."""
    return " ".join(text.split())


def render_pair(question: str, sql: str) -> str:
    """Write a W0 card's text; the correspondence control pairs a question with another's SQL by it."""
    return f"Q: {one_line(question)}\n{fence_sql(sql)}"


class Verbatim(CardWriter):
    """Keeps the question and the query, and nothing else."""

    name: ClassVar[str] = "W0"
    header: ClassVar[str] = "[Similar solved questions and their final SQL]"
    summary: ClassVar[str] = "question and corrected query, verbatim"
    permutable: ClassVar[bool] = True

    def render(self, episode: Episode) -> str:
        """Question and query."""
        return render_pair(episode.question.text, episode.sql)


SHOWN_ROWS = 10


class Trace(CardWriter):
    """Keeps every reply, every probe with what it returned, and every verdict of the repair."""

    name: ClassVar[str] = "W1"
    header: ClassVar[str] = "[Repair traces of similar solved questions]"
    summary: ClassVar[str] = "the whole repair trace"

    def render(self, episode: Episode) -> str:
        """Write the first attempt, the rounds, the final query."""
        first = episode.attempt.sql
        lines = [
            "Past repair trace:",
            f"Q: {one_line(episode.question.text)}",
            "- First attempt:" if episode.rounds else "- First attempt (accepted):",
            fence_sql(first) if first else "(no SQL)",
        ]
        for number, spent in enumerate(episode.rounds, 1):
            lines.extend(_round(number, spent))
        return "\n".join([*lines, "- Final SQL:", fence_sql(episode.sql)])


def render_result(execution: Execution) -> str:
    """Write a result on one line, as the paper's worked example prints it: a|1  b|2."""
    if isinstance(execution, Failure):
        return f"ERROR ({execution.kind}): {one_line(execution.message)}"
    shown = ["|".join("NULL" if cell is None else one_line(str(cell)) for cell in row) for row in execution.rows]
    more = ["..."] if len(shown) > SHOWN_ROWS else []
    return "  ".join([*shown[:SHOWN_ROWS], *more]) or "(no rows)"


def render_probes(probes: tuple[Probe, ...]) -> list[str]:
    """Write each probe, and on the next line what it revealed."""
    return [line for probe in probes for line in (one_line(probe.sql), f"  -> {render_result(probe.execution)}")]


def _round(number: int, spent: Round) -> Iterator[str]:
    yield f"- Round {number} ({'accepted' if spent.accepted else 'wrong'}):"
    for call in spent.calls:
        if call is spent.calls[-1]:
            yield from render_probes(spent.probes)
        yield call.completion.text.strip()
    if spent.execution is not None:
        yield f"  -> {render_result(spent.execution)}"
