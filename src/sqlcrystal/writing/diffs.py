"""W2, W3, W3+A and W4: the edit as a structured diff, and what may be said about it without a model."""

from typing import ClassVar

from sqlcrystal.protocols import Database
from sqlcrystal.types import Episode
from sqlcrystal.writing.card import CardWriter, fence_sql, one_line
from sqlcrystal.writing.diff import QUERY, ClauseDiff, diff
from sqlcrystal.writing.guards import guard
from sqlcrystal.writing.modes import modes


class Diff(CardWriter):
    """W2: the clauses that changed."""

    name: ClassVar[str] = "W2"

    def __init__(self, database: Database) -> None:
        super().__init__(database.fingerprint)
        self.database = database

    def render(self, episode: Episode) -> str:
        """The diff without a label."""
        return self.render_diff(episode, title="Past repair:")

    def render_diff(self, episode: Episode, *, title: str) -> str:
        """Wrong, fixed and clause, once for each clause that changed; a first-try success has no wrong side."""
        question = f"Q: {one_line(episode.question.text)}"
        changes = diff(episode.attempt.sql, episode.sql, self.database.dialect)
        if not changes and episode.rounds:  # repaired by a spelling that the trees do not tell apart
            changes = (ClauseDiff(QUERY, one_line(episode.attempt.sql or ""), one_line(episode.sql)),)
        if not changes:
            return "\n".join(["Past success:", question, f"- Right at once: {one_line(episode.sql)}"])
        lines = [
            line
            for change in changes
            for line in (f"- Wrong: {change.wrong}", f"- Fixed: {change.fixed}", f"- Clause: {change.clause}")
        ]
        return "\n".join([title, question, *lines])

    def modes(self, episode: Episode) -> tuple[str, ...]:
        """The failure modes of the episode's repair."""
        return modes(episode.attempt.sql, episode.sql, self.database.dialect)


class DiffMode(Diff):
    """W3: the diff with its failure modes."""

    name: ClassVar[str] = "W3"

    def render(self, episode: Episode) -> str:
        """The labelled diff."""
        named = ", ".join(self.modes(episode))
        return self.render_diff(episode, title=f"Past repair (failure mode: {named}):" if named else "Past repair:")


class Anchor(DiffMode):
    """W3+A: the labelled diff, paired with the corrected query."""

    name: ClassVar[str] = "W3+A"

    def render(self, episode: Episode) -> str:
        """The labelled diff, then the query in full."""
        return f"{super().render(episode)}\n- Final SQL:\n{fence_sql(episode.sql)}"


class DiffGuard(DiffMode):
    """W4: the labelled diff, with the fixed guard of its first failure mode."""

    name: ClassVar[str] = "W4"

    def render(self, episode: Episode) -> str:
        """The labelled diff, then when it applies."""
        sentence = guard(self.modes(episode))
        return super().render(episode) + (f"\n- Guard: {sentence}" if sentence else "")
