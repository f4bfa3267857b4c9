"""`sqlcrystal cards`: look into the bank, mend it, revoke from it, move it, and check it against the live database."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sqlcrystal.errors import ConfigError
from sqlcrystal.interfaces.cli.bank_access import (
    current_user,
    database_name,
    must_have_cards,
    must_run,
    opened_bank,
    reading,
    writing,
)
from sqlcrystal.interfaces.cli.card_pages import check_lines, edited, short, story, with_sql
from sqlcrystal.interfaces.cli.output import print_json, print_table, progress
from sqlcrystal.types import Card, CardStatus

if TYPE_CHECKING:
    from sqlcrystal.bank import CardStore

cards_app = typer.Typer(help="The bank: list, show, edit, disable, enable, delete, export, import and check cards.")

Bank = Annotated[
    Path | None,
    typer.Option("--bank", envvar="SQLCRYSTAL_BANK", help="The bank file; by default the one in your data folder."),
]
Db = Annotated[str | None, typer.Option("--db", help="Only cards of this database: its name, URL or file.")]
Status = Annotated[str | None, typer.Option("--status", help="Only active, disabled or quarantined cards.")]
Signal = Annotated[str | None, typer.Option("--signal", help="Only cards admitted by this signal, e.g. ungated.")]
By = Annotated[str | None, typer.Option("--by", help="Only cards admitted by this person or check.")]
Writer = Annotated[str | None, typer.Option("--writer", help="Only cards of this format, e.g. W0.")]
Ids = Annotated[list[str] | None, typer.Argument(help="Card ids, or the start of one.")]
Id = Annotated[str, typer.Argument(help="A card id, or the start of one.")]
Reason = Annotated[str, typer.Option("--reason", help="Why; kept in the card's history.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]


def register(app: typer.Typer) -> None:
    """Attach the group."""
    app.add_typer(cards_app, name="cards", no_args_is_help=True)


@cards_app.command("list")
def list_cards(
    *,
    bank: Bank = None,
    db: Db = None,
    status: Status = None,
    signal: Signal = None,
    by: By = None,
    writer: Writer = None,
    json: Json = False,
) -> None:
    """List cards, in the order they were banked."""
    with opened_bank(bank) as store:
        cards = _matching(store, db=db, status=status, signal=signal, by=by, writer=writer)
        path = str(store.path)
    if json:
        print_json({"bank": path, "cards": cards})
        return
    rows = [
        (c.id, c.database, c.status, c.writer, c.source, c.admission.signal, c.tokens, short(c.question.text))
        for c in cards
    ]
    title = f"{len(cards)} card{'' if len(cards) == 1 else 's'} in {path}"
    print_table(title, ["id", "database", "status", "writer", "source", "signal", "tokens", "question"], rows)


@cards_app.command()
def show(card: Id, bank: Bank = None, json: Json = False) -> None:
    """Show a card with its episode, who admitted it, and what was done to it."""
    from sqlcrystal.bank import Entry

    with opened_bank(bank) as store:
        found = store.get(card)
        entry = Entry(card=found, episode=store.episode(found.id), history=store.history(found.id))
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
    bank: Bank = None,
    json: Json = False,
) -> None:
    """Change a card's text or SQL, by option or in $EDITOR; who changes the SQL is recorded as vouching for it."""
    from sqlcrystal.writing import estimate_tokens

    with opened_bank(bank) as store:
        old = store.get(card)
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
        new = store.edit(old.id, by=current_user(), text=text, sql=sql, tokens=tokens, reason=reason)
    if json:
        print_json(new)
    else:
        print(f"{new.id}: {'unchanged' if new == old else 'edited'}")


@cards_app.command()
def disable(
    cards: Ids = None,
    *,
    db: Db = None,
    signal: Signal = None,
    by: By = None,
    writer: Writer = None,
    reason: Reason = "",
    bank: Bank = None,
    json: Json = False,
) -> None:
    """Stop serving cards: those named, or all that a signal, person, format or database brought in."""
    filters = {"db": db, "signal": signal, "by": by, "writer": writer}
    _change(bank=bank, status=CardStatus.DISABLED, named=cards, filters=filters, reason=reason, json=json)


@cards_app.command()
def enable(
    cards: Ids = None,
    *,
    db: Db = None,
    signal: Signal = None,
    by: By = None,
    writer: Writer = None,
    reason: Reason = "",
    bank: Bank = None,
    json: Json = False,
) -> None:
    """Serve cards again: those named, quarantined ones too, or all disabled ones that match."""
    filters = {"db": db, "signal": signal, "by": by, "writer": writer}
    _change(bank=bank, status=CardStatus.ACTIVE, named=cards, filters=filters, reason=reason, json=json)


@cards_app.command()
def delete(
    cards: Annotated[list[str], typer.Argument(help="Card ids, or the start of one.")],
    reason: Reason = "",
    bank: Bank = None,
    json: Json = False,
) -> None:
    """Take cards out for good, with their episodes; only what was done to them is remembered."""
    with opened_bank(bank) as store:
        found = list(dict.fromkeys(store.get(name).id for name in cards))
        for card_id in found:
            store.delete(card_id, by=current_user(), reason=reason)
    if json:
        print_json({"deleted": found})
    else:
        print(f"deleted {len(found)}")


@cards_app.command("export")
def export_cards(
    file: Annotated[str, typer.Argument(help="Where to write JSON lines; - is standard output.")] = "-",
    db: Db = None,
    bank: Bank = None,
    json: Json = False,
) -> None:
    """Write cards of any status, with episodes and history, as JSON lines that import again byte for byte."""
    from sqlcrystal.bank import export_jsonl

    if json and file == "-":
        raise ConfigError("--json: name a file to export to; standard output already carries the cards")
    with opened_bank(bank) as store, writing(file) as out:
        count = export_jsonl(store, out, database=database_name(db))
    if json:
        print_json({"exported": count, "file": file})
    elif file != "-":
        print(f"exported {count} to {file}")


@cards_app.command("import")
def import_cards(
    file: Annotated[str, typer.Argument(help="An export; - is standard input.")],
    bank: Bank = None,
    json: Json = False,
) -> None:
    """Bank every card of an export, or none if a line is broken; cards that are there already stay as they are."""
    from sqlcrystal.bank import import_jsonl

    with reading(file) as lines, opened_bank(bank, create=True) as store:
        report = import_jsonl(store, lines, name=file)
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
    timeout: Annotated[float, typer.Option(min=0.1, help="Seconds a card's SQL may take.")] = 30.0,
    bank: Bank = None,
    json: Json = False,
) -> None:
    """Run every card's SQL on the live database and quarantine what no longer runs."""
    from sqlcrystal.bank import check_cards
    from sqlcrystal.databases import open_database

    with opened_bank(bank) as store:
        database = open_database(db, name=name)
        try:
            must_have_cards(store, database.name)
            with progress(disable=json) as bar:
                task = bar.add_task(f"checking {database.name}")
                report = check_cards(
                    store,
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
            print(line)


# ── what the commands share ──────────────────────────────────────────────────────────────────────────────────────────


def _matching(
    store: "CardStore", *, db: str | None, status: str | None, signal: str | None, by: str | None, writer: str | None
) -> list[Card]:
    if status is not None and status not in list(CardStatus):
        raise ConfigError.unknown("--status", status, CardStatus)
    wanted = None if status is None else CardStatus(status)
    return store.find(database=database_name(db), status=wanted, signal=signal, admitted_by=by, writer=writer)


def _change(
    *,
    bank: Path | None,
    status: CardStatus,
    named: list[str] | None,
    filters: dict[str, str | None],
    reason: str,
    json: bool,
) -> None:
    if bool(named) == any(value is not None for value in filters.values()):
        raise ConfigError("cards: give either card ids, or one or more of --db, --signal, --by, --writer")
    with opened_bank(bank) as store:
        # A whole group is enabled only as far as a person disabled it; quarantine is lifted card by card or by `check`.
        before = CardStatus.ACTIVE if status is CardStatus.DISABLED else CardStatus.DISABLED
        found = [store.get(name) for name in named or ()] or _matching(store, status=before, **filters)
        changing = list(dict.fromkeys(card.id for card in found if card.status is not status))
        store.set_statuses(changing, status, by=current_user(), reason=reason)
    if json:
        print_json({"status": status, "changed": changing})
    else:
        print(f"{len(changing)} card{'' if len(changing) == 1 else 's'} now {status}")
