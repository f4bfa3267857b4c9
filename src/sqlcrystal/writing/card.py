"""What every writer shares: from an admitted episode to a card with an id, a token estimate and its provenance."""

import hashlib
import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar

from sqlcrystal.types import Admitted, Call, Card, CardId, Episode, Written

WORD_PIECE = re.compile(r"[^\W\d_]{1,5}|\d{1,3}|[^\w\s]|_")


class CardWriter(ABC):
    """Renders an episode as the text that later questions see; a subclass renders it, or composes it with a model."""

    name: ClassVar[str]

    def __init__(self, fingerprint: Callable[[], str]) -> None:
        """`fingerprint` names the schema that the SQL was seen to run under."""
        self._fingerprint = fingerprint

    @abstractmethod
    def render(self, episode: Episode) -> str:
        """The card's text, as far as it follows from the episode alone."""

    def compose(self, episode: Episode) -> tuple[str, tuple[Call, ...]]:
        """The card's text and the model calls it took: none, unless a subclass asks."""
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


def card_id(episode: Episode, writer: str) -> CardId:
    """The same episode, written the same way, is the same card: a digest of database, writer, question and SQL."""
    question = episode.question
    identity = "\0".join([question.database, writer, question.id, episode.sql])
    return CardId(hashlib.sha256(identity.encode()).hexdigest()[:16])


def estimate_tokens(text: str) -> int:
    """An estimate, without any model's vocabulary: a token per five letters, three digits or one sign."""
    return len(WORD_PIECE.findall(text))


def fence_sql(sql: str) -> str:
    """SQL in its own block."""
    return f"```sql\n{sql.strip()}\n```"


def one_line(text: str) -> str:
    """Text without line breaks."""
    return " ".join(text.split())
