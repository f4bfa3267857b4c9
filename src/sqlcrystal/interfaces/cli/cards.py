"""`sqlcrystal cards`: look into the bank, mend it, move it, and check it against the live database."""

from pathlib import Path
from typing import Annotated

import typer

from sqlcrystal.bank.listing import told_card
from sqlcrystal.errors import ConfigError
from sqlcrystal.interfaces.cli import card_service
from sqlcrystal.interfaces.cli.card_pages import check_lines, edited, one_line, short_ids, story, with_sql
from sqlcrystal.interfaces.cli.card_service import By, Db, Id, Reason, Signal, Writer
from sqlcrystal.interfaces.cli.output import print_json, print_lines, progress
from sqlcrystal.interfaces.cli.store_access import (
    Json,
    Where,
    checked_filters,
    current_user,
    database_name,
    must_have_cards,
    must_run,
    opened_store,
    reading,
    writing,
)

cards_app = typer.Typer(help="The bank: look at cards, change, move and check them.")

Status = Annotated[str | None, typer.Option("--status", help="Only active, disabled or quarantined cards.")]


def register(app: typer.Typer) -> None:
    """Attach the group."""
    app.add_typer(cards_app, name="cards", no_args_is_help=True)


card_service.register(cards_app)


@cards_app.command("list")
def list_cards(
    *,
    store: Where = None,
    db: Db = None,
    status: Status = None,
    signal: Signal = None,
    by: By = None,
    writer: Writer = None,
    json: Json = False,
) -> None:
    """List cards, one line each, in the order they were banked."""
    with opened_store(store) as opened:
        filters = checked_filters(opened.bank, db=db, status=status, signal=signal, by=by, writer=writer)
        cards = opened.bank.find(**filters)  # type: ignore[arg-type]
    if json:
        print_json([told_card(card) for card in cards])
        return
    several = len({card.database for card in cards}) > 1
    names = short_ids(card.id for card in cards)
    print_lines(
        ["id", "status", "signal", *(["database"] if several else []), "question"],
        [
            (card.id, card.status, card.admission.signal, *([card.database] if several else []), card.question.text)
            for card in cards
        ],
        shortened=names,
    )


@cards_app.command()
def show(card: Id, store: Where = None, json: Json = False) -> None:
    """Show a card, who admitted it and what was done to it."""
    from sqlcrystal.bank import Entry

    with opened_store(store) as opened:
        bank = opened.bank
        shown = bank.get(card)
        entry = Entry(card=shown, episode=bank.episode(shown.id), history=bank.history(shown.id))
    if json:
        print_json(entry)
        return
    for line in story(entry):
        print(line)


@cards_app.command()
def edit(
    card: Id,
    *,
    text: Annotated[str | None, typer.Option("--text", help="The new text.")] = None,
    sql: Annotated[str | None, typer.Option("--sql", help="The new SQL; replaced in the text too.")] = None,
    db: Annotated[str | None, typer.Option("--db", help="Run the new SQL on this database first: URL or file.")] = None,
    reason: Reason = "",
    store: Where = None,
    json: Json = False,
) -> None:
    """Change a card's text or SQL, by option or in $EDITOR. Who changes the SQL is recorded as vouching for it."""
    from sqlcrystal.writing.card import estimate_tokens

    with opened_store(store) as opened:
        old = opened.bank.get(card)
        if text is None and sql is None:
            text, sql = edited(old)
        elif text is None and sql is not None:
            text = with_sql(old, sql)
        for name, value in (("--text", text), ("--sql", sql)):
            if value is not None and not value.strip():
                raise ConfigError(f"{name}: must not be empty")
        if db and sql is not None:
            must_run(sql, db)
        tokens = None if text is None else estimate_tokens(text)
        new = opened.bank.edit(old.id, by=current_user(), text=text, sql=sql, tokens=tokens, reason=reason)
    if json:
        print_json(new)
    else:
        print(f"{new.id}: {'unchanged' if new == old else 'edited'}")


@cards_app.command("export")
def export_cards(
    file: Annotated[str, typer.Argument(help="Where to write JSON lines; - is standard output.")] = "-",
    db: Db = None,
    store: Where = None,
    json: Json = False,
) -> None:
    """Write cards as JSON lines that import again byte for byte.

    Cards of any status, with their episodes and history.
    """
    from sqlcrystal.bank import export_jsonl

    if json and file == "-":
        raise ConfigError("--json: name a file to export to; standard output already carries the cards")
    with opened_store(store) as opened, writing(file) as out:
        count = export_jsonl(opened.bank, out, database=database_name(db))
    if json:
        print_json({"exported": count, "file": file})
    elif file != "-":
        print(f"exported {count} to {file}")


@cards_app.command("import")
def import_cards(
    file: Annotated[str | None, typer.Argument(help="An export; - is standard input.")] = None,
    *,
    from_run: Annotated[Path | None, typer.Option("--from-run", metavar="DIR", help="A study's run instead.")] = None,
    arm: Annotated[str, typer.Option("--arm", help="The arm whose cards to take from the run.")] = "W0",
    seed: Annotated[int, typer.Option("--seed", help="The seed whose cards to take from the run.")] = 42,
    store: Where = None,
    json: Json = False,
) -> None:
    """Bank every card of an export or a study's run. None if one is broken; cards already there stay as they are."""
    from sqlcrystal.bank import import_entries, import_jsonl

    if (file is None) == (from_run is None):
        raise ConfigError("import: give either an export or --from-run DIR")
    if from_run is not None:
        from sqlcrystal.ledger.takeover import banked_entries

        entries = banked_entries(from_run, arm=arm, seed=seed)
        with opened_store(store, create=True) as opened:
            report = import_entries(opened.bank, entries)
    elif file is not None:
        with reading(file) as lines, opened_store(store, create=True) as opened:
            report = import_jsonl(opened.bank, lines, name=file)
    if json:
        print_json(report)
    else:
        print(f"imported {report.added}, already there {report.already_there}")


@cards_app.command()
def check(
    *,
    db: Annotated[str, typer.Option("--db", help="The live database: URL or SQLite file.")],
    name: Annotated[str | None, typer.Option("--name", help="The database's name on the cards, if another.")] = None,
    release: Annotated[bool, typer.Option("--release", help="Serve quarantined cards that run again.")] = False,
    fail: Annotated[bool, typer.Option("--fail", help="Exit 1 when a card does not run, for CI.")] = False,
    timeout: Annotated[float, typer.Option(min=0.1, help="Seconds a card's SQL may take.")] = 30.0,
    store: Where = None,
    json: Json = False,
) -> None:
    """Run every card again and quarantine what no longer runs."""
    from sqlcrystal.bank import check_cards
    from sqlcrystal.databases import open_database

    with opened_store(store) as opened:
        database = open_database(db, name=name)
        try:
            must_have_cards(opened.bank, database.name)
            with progress(disable=json) as bar:
                task = bar.add_task(f"checking {database.name}")
                report = check_cards(
                    opened.bank,
                    database,
                    release=release,
                    timeout=timeout,
                    on_progress=lambda done, total: bar.update(task, completed=done, total=total),
                )
        finally:
            database.close()
    if json:
        print_json(report)
    else:
        for line in check_lines(report):
            print(one_line(line))
    if fail and (report.quarantined or report.still_quarantined or report.undecided):
        raise typer.Exit(1)
