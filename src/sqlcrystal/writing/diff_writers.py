"""W2, W3, W3+A and W4: the edit as a structured diff, and the words about it that need no model."""

from typing import ClassVar

from sqlcrystal.types import Episode
from sqlcrystal.writing.card import DatabaseCardWriter, fence_sql, one_line
from sqlcrystal.writing.diff import QUERY, ClauseDiff, diff
from sqlcrystal.writing.modes import modes

GUARDS = {
    "value-literal": (
        "Apply only when filtering on this column; verify the literal actually exists in the column first."
    ),
    "column-ref": "Apply only when the question means the same attribute; verify which column holds it.",
    "table-ref": "Apply only when the question is about the same entity; verify which table holds it.",
    "join": "Join only the tables whose columns the answer needs; verify that the join keeps every wanted row.",
    "join-condition": "Apply only when joining the same tables; verify the key columns on both sides.",
    "aggregate": "Apply only when the question asks for the same kind of total, count, average or extreme.",
    "group-by": "Add GROUP BY only when the answer is per entity/category.",
    "order-by": "Add ORDER BY only when the question asks for a ranking or an order; verify its direction.",
    "limit": "Add LIMIT only when the question asks for a fixed number of rows.",
    "distinct": "Use DISTINCT only when the question counts or lists different things and rows repeat.",
    "subquery": "Nest a query only when a value must be computed before the rows can be chosen.",
    "set-operation": "Combine queries only when the question asks for one set with, without, or within another.",
    "function-cast": "Apply only when the column is stored in the same form; verify its type and format first.",
    "predicate-logic": "Apply only when the question states the same condition; verify how its parts combine.",
}


def guard(modes: tuple[str, ...]) -> str:
    """Give the guard of the first mode; empty when the repair has none."""
    return GUARDS[modes[0]] if modes else ""


class Diff(DatabaseCardWriter):
    """W2: the clauses that changed."""

    name: ClassVar[str] = "W2"
    header: ClassVar[str] = "[Repair diffs of similar solved questions]"
    summary: ClassVar[str] = "bare diff of the query"

    def render(self, episode: Episode) -> str:
        """Write the diff without a label."""
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
        """Find the failure modes of the episode's repair."""
        return modes(episode.attempt.sql, episode.sql, self.database.dialect)


class DiffMode(Diff):
    """W3: the diff with its failure modes."""

    name: ClassVar[str] = "W3"
    header: ClassVar[str] = "[Repair diffs of similar solved questions]"
    summary: ClassVar[str] = "diff with its failure mode"

    def render(self, episode: Episode) -> str:
        """Write the labelled diff."""
        named = ", ".join(self.modes(episode))
        return self.render_diff(episode, title=f"Past repair (failure mode: {named}):" if named else "Past repair:")


class Anchor(DiffMode):
    """W3+A: the labelled diff, paired with the corrected query."""

    name: ClassVar[str] = "W3+A"
    header: ClassVar[str] = "[Repair diffs of similar solved questions and their final SQL]"
    summary: ClassVar[str] = "diff with its failure mode, the corrected query beneath (anchor)"

    def render(self, episode: Episode) -> str:
        """Write the labelled diff, then the query in full."""
        return f"{super().render(episode)}\n- Final SQL:\n{fence_sql(episode.sql)}"


class DiffGuard(DiffMode):
    """W4: the labelled diff, with the fixed guard of its first failure mode."""

    name: ClassVar[str] = "W4"
    header: ClassVar[str] = "[Repair diffs with applicability guards of similar solved questions]"
    summary: ClassVar[str] = "diff with a guard that says when it applies"

    def render(self, episode: Episode) -> str:
        """Write the labelled diff, then when it applies."""
        sentence = guard(self.modes(episode))
        return super().render(episode) + (f"\n- Guard: {sentence}" if sentence else "")
