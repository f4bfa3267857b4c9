"""`sqlcrystal ask|confirm|reject|queue`: the loop of a data team."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

import typer

from sqlcrystal.escaping import visible
from sqlcrystal.interfaces.cli.answer_pages import correction_lines, rejection_lines, ruling_lines
from sqlcrystal.interfaces.cli.answering import answer_question
from sqlcrystal.interfaces.cli.crystal_access import opened_crystal, ready_model
from sqlcrystal.interfaces.cli.crystal_options import AnswerId, By, Db, Model, Name, Note
from sqlcrystal.interfaces.cli.options import ApiKeyEnv
from sqlcrystal.interfaces.cli.output import print_json, print_lines
from sqlcrystal.interfaces.cli.store_access import Json, Where

if TYPE_CHECKING:
    from sqlcrystal.bank import Proposal, Waiting


def register(app: typer.Typer) -> None:
    """Attach the commands."""
    for command in (ask, confirm, reject, queue):
        app.command()(command)


def ask(
    question: Annotated[str, typer.Argument(help="What to ask, in words; - reads it from standard input.")],
    *,
    db: Db = None,
    name: Name = None,
    model: Model = None,
    api_key_env: ApiKeyEnv = None,
    by: By = "",
    memory: Annotated[
        bool | None, typer.Option("--memory/--no-memory", help="Force cards in or out.", show_default="as set up")
    ] = None,
    replay: Annotated[
        bool, typer.Option("--replay", help="A question confirmed before may be served without a model call.")
    ] = False,
    trace: Annotated[bool, typer.Option("--trace", help="Show what was tried before.")] = False,
    rows: Annotated[int, typer.Option("--rows", min=0, help="How many rows to show.")] = 20,
    store: Where = None,
    json: Json = False,
) -> None:
    """Answer a question with memory. Shows the SQL, its rows, the cards that were used, and an answer id."""
    answer_question(
        question,
        db=db,
        name=name,
        model=model,
        api_key_env=api_key_env,
        by=by,
        memory=memory,
        replay=replay,
        trace=trace,
        rows=rows,
        store=store,
        json=json,
    )


def confirm(
    answer: AnswerId,
    *,
    by: By = "",
    note: Note = "",
    store: Where = None,
    json: Json = False,
) -> None:
    """Vouch for an answer or a proposal: it becomes a card."""
    with opened_crystal(store) as (crystal, _):
        ruling = crystal.confirm(answer, by=by, note=note)
    if json:
        print_json(ruling)
    else:
        _print(ruling_lines(ruling))


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
    opened = opened_crystal(store, db=db, model=model, api_key_env=api_key_env)
    with opened as (crystal, _):
        if sql is not None:
            corrected = crystal.correct(answer, sql, by=by, note=note)
            document = {**_ruling_document(corrected.ruling), "sql": corrected.sql}
            document |= {"columns": corrected.rows.columns, "rows": corrected.rows.rows}
            lines = correction_lines(corrected)
        else:
            if repair:
                ready_model(crystal.workspace.team.model)
            rejected = crystal.reject(answer, by=by, note=note, repair=repair)
            document = {**_ruling_document(rejected.ruling), "proposal": None}
            if rejected.proposal is not None and rejected.rows is not None:
                proposed = {"id": rejected.proposal.id, "sql": rejected.proposal.sql}
                document["proposal"] = {**proposed, "columns": rejected.rows.columns, "rows": rejected.rows.rows}
            lines = rejection_lines(rejected, repair=repair)
    if json:
        print_json(document)
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

    First comes what is asked often, contradicted by a near card or answered differently.
    """
    with opened_crystal(store, db=db) as (crystal, database):
        waiting = crystal.queue(database if db else None, limit=limit)
        proposals = crystal.proposals(database if db else None)
    if json:
        print_json([_waiting_document(entry, proposals) for entry in waiting])
        return
    print_lines(
        ["answer", "database", "asked", "spread", "conflict", "question"],
        [
            (
                entry.answer.id,
                entry.answer.database,
                entry.asked,
                f"{entry.spread:.2f}",
                f"{entry.conflict:.2f}",
                visible(entry.answer.question),
            )
            for entry in waiting
        ],
    )
    _print(
        f"proposed for {proposal.answer}: {visible(proposal.sql)}  (sqlcrystal confirm {proposal.id})"
        for proposal in proposals
    )


def _waiting_document(entry: "Waiting", proposals: Iterable["Proposal"]) -> dict[str, object]:
    return {
        "id": entry.answer.id,
        "database": entry.answer.database,
        "question": entry.answer.question,
        "sql": entry.answer.sql,
        "at": entry.answer.at,
        "asked": entry.asked,
        "spread": entry.spread,
        "conflict": entry.conflict,
        "error": entry.answer.error,
        "proposals": [proposal.id for proposal in proposals if proposal.answer == entry.answer.id],
    }


def _ruling_document(ruling: object) -> dict[str, object]:
    import msgspec

    document: dict[str, object] = msgspec.to_builtins(ruling)
    return document


def _print(lines: Iterable[str]) -> None:
    for line in lines:
        print(line)
