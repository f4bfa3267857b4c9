"""W0: the question and its corrected query, verbatim."""

from typing import ClassVar

from sqlcrystal.types import Episode
from sqlcrystal.writing.card import CardWriter, fence_sql, one_line


def render(question: str, sql: str) -> str:
    """A W0 card's text; the correspondence control uses it to pair a question with another's SQL."""
    return f"Q: {one_line(question)}\n{fence_sql(sql)}"


class Verbatim(CardWriter):
    """Keeps the question and the query, and nothing else."""

    name: ClassVar[str] = "W0"

    def render(self, episode: Episode) -> str:
        """Question and query."""
        return render(episode.question.text, episode.sql)
