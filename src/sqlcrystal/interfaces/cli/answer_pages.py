"""Answers and verdicts as people read them in a terminal."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from sqlcrystal.escaping import visible
from sqlcrystal.types import Execution, Failure, Row

if TYPE_CHECKING:
    from sqlcrystal.config import Prices
    from sqlcrystal.serving import Correction, Rejection, Ruling, ServedAnswer

WIDEST = 40


def answer_lines(answer: "ServedAnswer", *, rows: int, prices: "Prices | None" = None) -> Iterator[str]:
    """The SQL, the rows, the cards and the cost."""
    yield visible(answer.sql) if answer.sql else "the reply held no SQL"
    yield ""
    if answer.error:
        yield f"it does not run: {visible(answer.error)}"
    else:
        yield from row_lines(answer.columns, answer.rows, shown=rows)
    yield ""
    for card in answer.cards:
        yield f"card {card.id}  {card.score:.2f}  {card.signal} {visible(card.by)}  {visible(card.question)}"
    if answer.checked:
        yield f"checked: {visible(answer.checked)}"
    yield answer.cost_line() + _money(answer, prices)
    if answer.card:
        yield f"banked as card {answer.card}"
    elif answer.error:
        yield f'give the right SQL: sqlcrystal reject {answer.id} --sql "…"'
    else:
        yield f'right: sqlcrystal confirm {answer.id}   wrong: sqlcrystal reject {answer.id} [--sql "…"] [--note "…"]'


def offer_lines(answer: "ServedAnswer") -> Iterator[str]:
    """A stored query with other literals, to look at."""
    if answer.offer is not None:
        exchanged = ", ".join(f"{visible(old)} → {visible(new)}" for old, new in answer.offer.exchanged)
        yield f"card {answer.offer.card} with {exchanged} returns something else:"
        yield f"  {visible(answer.offer.sql)}"
        yield f"to take that instead: sqlcrystal confirm {answer.offer.id}"


def trace_lines(answer: "ServedAnswer") -> Iterator[str]:
    """What was tried before the answer stood: the first attempt, every probe, every round."""
    if answer.trace is None:
        return
    attempt = answer.trace.attempt
    yield f"first attempt: {_one_line(attempt.sql or 'no SQL in the reply')}"
    for number, turn in enumerate(answer.trace.rounds, start=1):
        for probe in turn.probes:
            yield f"  probe: {_one_line(probe.sql)} → {_outcome(probe.execution)}"
        outcome = "taken" if turn.accepted else "not taken"
        yield f"round {number} ({outcome}): {_one_line(turn.sql or 'no SQL in the reply')} → {_outcome(turn.execution)}"
    yield ""


def ruling_lines(ruling: "Ruling") -> Iterator[str]:
    """What a verdict did."""
    repeated = "" if ruling.new else " (as was said before)"
    by = visible(ruling.by)
    yield f"{ruling.verdict}: answer {ruling.id} is card {ruling.card} of {ruling.database}, by {by}{repeated}"
    if ruling.replaced:
        yield f"no longer served: card {', '.join(ruling.replaced)}"
    if not ruling.memory:
        yield "it had been answered without memory"


def correction_lines(correction: "Correction") -> Iterator[str]:
    """What the user's SQL returns, and its card."""
    yield from row_lines(correction.rows.columns, correction.rows.rows, shown=20)
    yield from ruling_lines(correction.ruling)


def rejection_lines(rejection: "Rejection", *, repair: bool) -> Iterator[str]:
    """What a repair proposes."""
    ruling = rejection.ruling
    yield f"rejected: answer {ruling.id} of {ruling.database}, by {visible(ruling.by)}"
    if ruling.replaced:
        yield f"no longer served: card {', '.join(ruling.replaced)}"
    if rejection.proposal is not None and rejection.rows is not None:
        yield f"\nproposed, not yet a card:\n{visible(rejection.proposal.sql)}\n"
        yield from row_lines(rejection.rows.columns, rejection.rows.rows, shown=20)
        yield f"\nright: sqlcrystal confirm {rejection.proposal.id}"
    elif repair:
        yield f'the repair found nothing else; give the right SQL: sqlcrystal reject {ruling.id} --sql "…"'


def row_lines(columns: Sequence[str], rows: Sequence[Row], *, shown: int) -> Iterator[str]:
    """Rows in aligned columns, numbers flush right, long cells cut."""
    cells = [[_cell(cell) for cell in row] for row in rows[:shown]]
    head = [_one_line(column)[:WIDEST] for column in columns]
    widths = [max(map(len, [head[column], *(row[column] for row in cells)])) for column in range(len(head))]
    right = [
        bool(rows) and all(isinstance(row[column], int | float) for row in rows[:shown]) for column in range(len(head))
    ]
    for line in [head, ["-" * width for width in widths], *cells]:
        aligned = [
            cell.rjust(width) if flush else cell.ljust(width)
            for cell, width, flush in zip(line, widths, right, strict=True)
        ]
        yield "  ".join(aligned).rstrip()
    more = len(rows) - len(cells)
    yield f"({_rows(len(rows))}{f', {more:,} not shown' if more else ''})"


def _rows(count: int) -> str:
    return f"{count:,} row{'' if count == 1 else 's'}"


def _money(answer: "ServedAnswer", prices: "Prices | None") -> str:
    if prices is None or not (prices.prompt or prices.completion) or not answer.calls:
        return ""
    cost = (answer.prompt_tokens * prices.prompt + answer.completion_tokens * prices.completion) / 1e6
    return f", cost {cost:.6f}"


def _outcome(execution: Execution | None) -> str:
    if execution is None:
        return "nothing"
    if isinstance(execution, Failure):
        return f"{execution.kind}: {_one_line(execution.message)}"
    first = ", ".join("|".join(map(_cell, row)) for row in execution.rows[:3])
    return f"{_rows(len(execution.rows))}{f': {first}' if first else ''}"


def _cell(value: object) -> str:
    text = "NULL" if value is None else _one_line(str(value))
    return text if len(text) <= WIDEST else text[: WIDEST - 1] + "…"


def _one_line(text: str) -> str:
    return visible(" ".join(text.split()))
