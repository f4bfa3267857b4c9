"""`sqlcrystal ask|confirm|reject|queue`: the loop of a data team, and answers as people read them."""

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from sqlcrystal.errors import Contradicted
from sqlcrystal.escaping import visible
from sqlcrystal.interfaces.cli.options import (
    AnswerId,
    ApiKeyEnv,
    By,
    Db,
    Json,
    Model,
    Name,
    Note,
    Where,
    opened_crystal,
    read_question,
    ready_model,
)
from sqlcrystal.interfaces.cli.output import print_json, print_lines, tell, tell_step
from sqlcrystal.types import Execution, Failure, Row

if TYPE_CHECKING:
    from sqlcrystal.config import Prices
    from sqlcrystal.serving import Correction, PossibleReading, Rejection, Ruling, ServedAnswer

Anyway = Annotated[
    bool, typer.Option("--anyway", help="Also where a near card says otherwise, which is asked about first.")
]
WIDEST_CELL = 40
ROWS_SHOWN = 20


def register(app: typer.Typer) -> None:
    """Attach the commands."""
    for command in (ask, confirm, pick, reject, queue):
        app.command()(command)


# ── commands ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def ask(
    question: Annotated[str, typer.Argument(help="What to ask, in words; - reads it from standard input.")],
    *,
    db: Db = None,
    name: Name = None,
    model: Model = None,
    api_key_env: ApiKeyEnv = None,
    by: By = "",
    follow: Annotated[
        str, typer.Option("--follow", metavar="ID", help="Go on from an answer: its id or the start of one, or last.")
    ] = "",
    memory: Annotated[
        bool | None, typer.Option("--memory/--no-memory", help="Force cards in or out.", show_default="as set up")
    ] = None,
    replay: Annotated[
        bool, typer.Option("--replay", help="A question confirmed before may be served without a model call.")
    ] = False,
    trace: Annotated[bool, typer.Option("--trace", help="Show what was tried before.")] = False,
    rows: Annotated[int, typer.Option("--rows", min=0, help="How many rows to show.")] = ROWS_SHOWN,
    store: Where = None,
    json: Json = False,
) -> None:
    """Answer a question with memory. Shows the SQL, its rows, the cards that were used, and an answer id."""
    text = read_question(question)
    opened = opened_crystal(store, db=db, name=name, model=model, api_key_env=api_key_env, replay=replay)
    with opened as (crystal, database):
        ready_model(crystal.model_spec)
        told = tell_step if sys.stderr.isatty() and not json else None  # a reply is streamed where a person looks on
        try:
            answer = crystal.ask(text, database, by=by, follow=follow, memory=memory, on_event=told)
        finally:
            if told is not None:
                tell("")
        prices = crystal.prices
    if json:
        print_json(answer.document(trace=trace))
    else:
        if follow and answer.follows is None:
            print("a new topic: the answer before was left aside")
        _print(trace_lines(answer) if trace else ())
        _print(answer_lines(answer, rows=rows, prices=prices))
    if answer.error:
        raise typer.Exit(1)


def confirm(
    answer: AnswerId,
    *,
    by: By = "",
    note: Note = "",
    anyway: Anyway = False,
    store: Where = None,
    json: Json = False,
) -> None:
    """Vouch for an answer or a proposal: it becomes a card."""
    with opened_crystal(store) as (crystal, _):
        ruling = _asked_twice(
            lambda sure: crystal.confirm(answer, by=by, note=note, anyway=sure),
            f"sqlcrystal confirm {answer}",
            sure=anyway,
            asks=not json,
        )
    if json:
        print_json(ruling)
    else:
        _print(ruling_lines(ruling))


def pick(
    answer: AnswerId,
    reading: Annotated[int, typer.Argument(min=1, max=2, help="The reading that was meant, 1 or 2.")],
    *,
    by: By = "",
    note: Note = "",
    anyway: Anyway = False,
    store: Where = None,
    json: Json = False,
) -> None:
    """Say which of two readings was meant. It becomes a card, and the other is kept as not chosen."""
    with opened_crystal(store) as (crystal, _):
        ruling = _asked_twice(
            lambda sure: crystal.pick(answer, reading, by=by, note=note, anyway=sure),
            f"sqlcrystal pick {answer} {reading}",
            sure=anyway,
            asks=not json,
        )
    if json:
        print_json(ruling)
    else:
        _print(ruling_lines(ruling))


def _asked_twice(vouch: "Callable[[bool], Ruling]", typed: str, *, sure: bool, asks: bool) -> "Ruling":
    """Take a person's word; where a near card speaks against it, ask them once more, if they are there."""
    try:
        return vouch(sure)
    except Contradicted as doubt:
        if not asks or not sys.stdin.isatty():
            raise Contradicted(f"{doubt}: {typed} --anyway") from None
        typer.confirm(f"{visible(str(doubt))}. Confirm anyway?", abort=True, err=True)
        return vouch(True)


def reject(
    answer: AnswerId,
    *,
    sql: Annotated[
        str | None, typer.Option("--sql", help="The right SQL: it is run, shown, and banked as yours.")
    ] = None,
    note: Note = "",
    by: By = "",
    repair: Annotated[bool, typer.Option("--repair/--no-repair", help="Let a repair propose another answer.")] = True,
    db: Db = None,
    model: Model = None,
    api_key_env: ApiKeyEnv = None,
    store: Where = None,
    json: Json = False,
) -> None:
    """Say that an answer is wrong. Give the right SQL, or let a repair propose one for you to confirm."""
    ruling: Ruling
    with opened_crystal(store, db=db, model=model, api_key_env=api_key_env) as (crystal, _):
        if sql is not None:
            ruling = crystal.correct(answer, sql, by=by, note=note)
            lines = correction_lines(ruling)
        else:
            if repair:
                ready_model(crystal.model_spec)
            ruling = crystal.reject(answer, by=by, note=note, repair=repair)
            lines = rejection_lines(ruling, repair=repair)
    if json:
        print_json(ruling)
    else:
        _print(lines)


def queue(
    *,
    db: Db = None,
    limit: Annotated[int, typer.Option("--limit", min=1, help="At most so many.")] = 50,
    store: Where = None,
    json: Json = False,
) -> None:
    """List what waits for a verdict, most useful first.

    First comes what chance chose to be judged (audit), then what is asked often, contradicted by a near card or
    answered differently.
    """
    with opened_crystal(store, db=db) as (crystal, database):
        waiting = crystal.queue(database, limit=limit)
        proposals = [] if json else crystal.proposals(database)
    if json:
        print_json(waiting)
        return
    print_lines(
        ["answer", "database", "audit", "asked", "ran", "spread", "conflict", "question"],
        [
            (
                *(entry.id, entry.database, "judge" if entry.audit else ""),
                *(0 if entry.uses else entry.asked, entry.uses),
                *(f"{entry.spread:.2f}", f"{entry.conflict:.2f}", entry.question),
            )
            for entry in waiting
        ],
    )
    if chosen := sum(entry.audit for entry in waiting):
        print(f"{chosen} chosen by chance for the audit: judge all of them, whatever they say")
    if waiting and sys.stdout.isatty():
        _print(f"{entry.id}: {visible(entry.words)}" for entry in waiting if entry.words)
    _print(
        f"proposed for {proposal.answer}: {visible(proposal.sql)}  (sqlcrystal confirm {proposal.id})"
        for proposal in proposals
    )


def _print(lines: Iterable[str]) -> None:
    for line in lines:
        print(line)


# ── answers and verdicts as lines ────────────────────────────────────────────────────────────────────────────────────


class Typed(NamedTuple):
    """The words to type after an answer, for the place where it is shown; `{}` stands for its id."""

    confirm: str
    reject: str
    correct: str
    take: str
    pick: str


COMMANDS = Typed(
    confirm="sqlcrystal confirm {}",
    reject='sqlcrystal reject {} [--sql "…"] [--note "…"]',
    correct='sqlcrystal reject {} --sql "…"',
    take="sqlcrystal confirm {}",
    pick="sqlcrystal pick {} 1|2",
)


def answer_lines(
    answer: "ServedAnswer", *, rows: int = ROWS_SHOWN, prices: "Prices | None" = None, typed: Typed = COMMANDS
) -> Iterator[str]:
    """Write the SQL, the rows, the cards and the cost, and a stored query that is offered in its place."""
    if answer.follows is not None:
        yield f"read as: {visible(answer.question)}"
    yield visible(answer.sql) if answer.sql else "the reply held no SQL"
    yield from word_lines(answer.words, answer.unasked)
    for used in answer.definitions:
        yield f"as defined: {visible(used.name)} is {visible(used.sql)}"
    yield ""
    if answer.error:
        yield f"it does not run: {visible(answer.error)}"
    else:
        yield from row_lines(answer.columns, answer.rows or (), shown=rows)
    yield ""
    for card in answer.cards:
        yield f"card {card.id}  {card.score:.2f}  {card.signal} {visible(card.by)}  {visible(card.question)}"
    if answer.checked:
        yield f"checked: {visible(answer.checked)}"
    yield answer.cost_line() + _money(answer, prices)
    if answer.card:
        yield f"banked as card {answer.card}"
    elif answer.readings:
        yield from reading_lines(answer.readings)
        yield f"which is meant: {typed.pick.format(answer.id)}   neither: {typed.reject.format(answer.id)}"
    elif answer.error:
        yield f"give the right SQL: {typed.correct.format(answer.id)}"
    else:
        yield f"right: {typed.confirm.format(answer.id)}   wrong: {typed.reject.format(answer.id)}"
    if answer.audit and not answer.verdict:
        yield "chosen by chance for the audit: it must be judged, whatever it says"
    if answer.offer is not None:
        exchanged = ", ".join(f"{visible(old)} → {visible(new)}" for old, new in answer.offer.exchanged)
        yield f"card {answer.offer.card} with {exchanged} returns something else:"
        yield f"  {visible(answer.offer.sql)}"
        yield from word_lines(answer.offer.words)
        yield f"to take that instead: {typed.take.format(answer.offer.id)}"


def reading_lines(readings: "Sequence[PossibleReading]") -> Iterator[str]:
    """Write two readings of a question: each in words where there are some, its SQL, and its first rows."""
    yield "the question can be read in two ways:"
    for reading in readings:
        yield f"  {reading.number}  {visible(reading.words) or _one_line(reading.sql)}"
        if reading.words:
            yield f"     {_one_line(reading.sql)}"
        yield f"     → {_found(reading.rows, reading.row_count)}"


def word_lines(words: str, unasked: Sequence[str] = ()) -> Iterator[str]:
    """Write SQL in words, and the parts of them that no word of the question asks for."""
    if words:
        yield f"in words: {visible(words)}"
    if unasked:
        yield f"not asked for: {'; '.join(map(visible, unasked))}"


def trace_lines(answer: "ServedAnswer") -> Iterator[str]:
    """Write the first attempt, every probe and every round that led to an answer."""
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
    """Write a verdict with the card it made and the cards it took out."""
    repeated = "" if ruling.new else " (as was said before)"
    by = visible(ruling.by)
    yield f"{ruling.verdict}: answer {ruling.id} is card {ruling.card} of {ruling.database}, by {by}{repeated}"
    if ruling.question:
        yield f"banked as: {visible(ruling.question)}"
    if ruling.replaced:
        yield f"no longer served: card {', '.join(ruling.replaced)}"
    if not ruling.memory:
        yield "it had been answered without memory"


def correction_lines(correction: "Correction") -> Iterator[str]:
    """Write the rows of the user's SQL, and its card."""
    yield from word_lines(correction.words, correction.unasked)
    yield from row_lines(correction.columns, correction.rows, shown=ROWS_SHOWN)
    yield from ruling_lines(correction)


def rejection_lines(rejection: "Rejection", *, repair: bool, typed: Typed = COMMANDS) -> Iterator[str]:
    """Write a rejection with the answer that a repair proposed."""
    yield f"rejected: answer {rejection.id} of {rejection.database}, by {visible(rejection.by)}"
    if rejection.replaced:
        yield f"no longer served: card {', '.join(rejection.replaced)}"
    proposal = rejection.proposal
    if proposal is not None:
        if proposal.question:
            yield f"read as: {visible(proposal.question)}"
        yield f"\nproposed, not yet a card:\n{visible(proposal.sql)}"
        yield from word_lines(proposal.words)
        yield ""
        yield from row_lines(proposal.columns, proposal.rows, shown=ROWS_SHOWN)
        yield f"\nright: {typed.confirm.format(proposal.id)}"
        return
    if repair:
        trouble = f"nothing could be proposed ({visible(rejection.trouble)})" if rejection.trouble else ""
        found = trouble or "the repair found nothing else"
        yield f"{found}; give the right SQL: {typed.correct.format(rejection.id)}"


def row_lines(columns: Sequence[str], rows: Sequence[Row], *, shown: int) -> Iterator[str]:
    """Set rows in aligned columns, numbers flush right, long cells cut."""
    cells = [[_cell(cell) for cell in row] for row in rows[:shown]]
    head = [_one_line(column)[:WIDEST_CELL] for column in columns]
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
    return _found(execution.rows, len(execution.rows))


def _found(rows: Sequence[Row], count: int) -> str:
    first = ", ".join("|".join(map(_cell, row)) for row in rows[:3])
    return f"{_rows(count)}{f': {first}' if first else ''}"


def _cell(value: object) -> str:
    text = "NULL" if value is None else _one_line(str(value))
    return text if len(text) <= WIDEST_CELL else text[: WIDEST_CELL - 1] + "…"


def _one_line(text: str) -> str:
    return visible(" ".join(text.split()))
