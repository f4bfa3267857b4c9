"""W1: the entire repair trajectory, unprocessed."""

from collections.abc import Iterator
from typing import ClassVar

from sqlcrystal.types import Episode, Execution, Failure, Probe, Round
from sqlcrystal.writing.card import CardWriter, fence_sql, one_line

SHOWN_ROWS = 10


class Trace(CardWriter):
    """Keeps every reply, every probe with what it returned, and every verdict of the repair."""

    name: ClassVar[str] = "W1"

    def render(self, episode: Episode) -> str:
        """The first attempt, the rounds, the final query."""
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
    """A result on one line, as the paper's worked example prints it: a|1  b|2."""
    if isinstance(execution, Failure):
        return f"ERROR ({execution.kind}): {one_line(execution.message)}"
    shown = ["|".join("NULL" if cell is None else one_line(str(cell)) for cell in row) for row in execution.rows]
    more = ["..."] if len(shown) > SHOWN_ROWS else []
    return "  ".join([*shown[:SHOWN_ROWS], *more]) or "(no rows)"


def render_probes(probes: tuple[Probe, ...]) -> list[str]:
    """Each probe, and on the next line what it revealed."""
    return [line for probe in probes for line in (one_line(probe.sql), f"  -> {render_result(probe.execution)}")]


def _round(number: int, spent: Round) -> Iterator[str]:
    yield f"- Round {number} ({'accepted' if spent.accepted else 'wrong'}):"
    for call in spent.calls:
        if call is spent.calls[-1]:
            yield from render_probes(spent.probes)
        yield call.completion.text.strip()
    if spent.execution is not None:
        yield f"  -> {render_result(spent.execution)}"
