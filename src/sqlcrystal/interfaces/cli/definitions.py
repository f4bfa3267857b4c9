"""`sqlcrystal definitions`: the terms of a team with their SQL, told to the model where they stand in a question."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sqlcrystal.errors import ConfigError
from sqlcrystal.escaping import visible
from sqlcrystal.interfaces.cli.options import Db, Json, Name, OnlyDb, Where, opened_crystal, reading, writing
from sqlcrystal.interfaces.cli.output import print_json, print_lines
from sqlcrystal.types import Card, CardStatus

if TYPE_CHECKING:
    from sqlcrystal.serving.documents import DefinitionProposal

definitions_app = typer.Typer(help="Terms with their SQL: list, write, change and move them.")

LONGEST_FILE = 20_000_000
"""Bytes of a CSV of definitions."""
Id = Annotated[str, typer.Argument(help="A definition's id, or the start of one.")]
ProposalId = Annotated[str, typer.Argument(metavar="PROPOSAL", help="The id of a proposed definition.")]
Synonyms = Annotated[list[str] | None, typer.Option("--synonym", help="Another name of the term; may repeat.")]
Tables = Annotated[
    list[str] | None,
    typer.Option("--table", help="A table of the expression; may repeat.", show_default="those whose columns it names"),
]
Meaning = Annotated[str | None, typer.Option("--meaning", help="What it means, in words.")]
Term = Annotated[str | None, typer.Option("--term", help="The term.")]
Sql = Annotated[str | None, typer.Option("--sql", help="The SQL expression, such as \"status = 'A'\".")]
Reason = Annotated[str, typer.Option("--reason", help="Why; kept in the history.")]


def register(app: typer.Typer) -> None:
    """Attach the group."""
    app.add_typer(definitions_app, name="definitions", no_args_is_help=True)


@definitions_app.command("list")
def list_definitions(
    *,
    db: OnlyDb = None,
    status: Annotated[
        CardStatus | None, typer.Option("--status", help="Only active, disabled or quarantined ones.")
    ] = None,
    proposed: Annotated[bool, typer.Option("--proposed", help="Those that wait for a person instead.")] = False,
    store: Where = None,
    json: Json = False,
) -> None:
    """List definitions, one line each, in the order they were written."""
    with opened_crystal(store, existing=True) as (crystal, _):
        if proposed:
            _show_proposals(crystal.definition_proposals(db), json=json)
            return
        cards = crystal.definitions(db, status=status)
    if json:
        from sqlcrystal.serving.documents import DefinitionDocument

        print_json([DefinitionDocument.of(card) for card in cards])
        return
    rows = [(card.id, card.status, card.database, card.question.text, _sql(card)) for card in cards]
    print_lines(["id", "status", "database", "term", "sql"], rows)


@definitions_app.command()
def show(definition: Id, store: Where = None, json: Json = False) -> None:
    """Show a definition, who wrote it and what was done to it."""
    with opened_crystal(store, existing=True) as (crystal, _):
        entry = crystal.definition(definition)
    if json:
        from sqlcrystal.serving.documents import WholeDefinition

        print_json(WholeDefinition.of_entry(entry))
        return
    card = entry.card
    print(visible(f"{card.id}  {card.status}  database {card.database}, from {card.source}"))
    print(
        visible(f"vouched for by {card.admission.by} ({card.admission.signal}) at {card.admission.at}\n\n{card.text}")
    )
    for change in entry.history:
        move = f": {change.before} → {change.after}" if change.before or change.after else ""
        print(
            visible(f"{change.at} {change.by}: {change.action}{move}{f' ({change.reason})' if change.reason else ''}")
        )


@definitions_app.command()
def add(
    term: Annotated[str, typer.Argument(help='The term, such as "active customer".')],
    sql: Annotated[str, typer.Argument(help="The SQL expression, such as \"status = 'A' AND closed IS NULL\".")],
    *,
    table: Tables = None,
    synonym: Synonyms = None,
    meaning: Meaning = None,
    db: Db = None,
    name: Name = None,
    store: Where = None,
    json: Json = False,
) -> None:
    """Tell the model from now on what a term means. The expression is run over its tables first."""
    with opened_crystal(store, db=db, name=name) as (crystal, database):
        card = crystal.define(term, sql, database, tables=table or (), synonyms=synonym or (), meaning=meaning or "")
    _print(card, "defined", json=json)


@definitions_app.command()
def edit(
    definition: Id,
    *,
    term: Term = None,
    sql: Sql = None,
    table: Tables = None,
    synonym: Synonyms = None,
    meaning: Meaning = None,
    reason: Reason = "",
    db: Db = None,
    name: Name = None,
    store: Where = None,
    json: Json = False,
) -> None:
    """Change parts of a definition. New SQL is run first, and you vouch for it."""
    if all(part is None for part in (term, sql, table, synonym, meaning)):
        raise ConfigError("edit: give one or more of --term, --sql, --table, --synonym, --meaning")
    with opened_crystal(store, db=db, name=name, existing=True) as (crystal, _):
        card = crystal.redefine(
            definition, term=term, sql=sql, tables=table, synonyms=synonym, meaning=meaning, reason=reason
        )
    _print(card, "changed", json=json)


@definitions_app.command()
def delete(
    definitions: Annotated[list[str], typer.Argument(help="Ids of definitions, or the start of one.")],
    reason: Reason = "",
    store: Where = None,
    json: Json = False,
) -> None:
    """Take definitions out for good. What was done to them is remembered; `cards disable` only stops showing them."""
    with opened_crystal(store, existing=True) as (crystal, _):
        names = [crystal.definition(definition).card.id for definition in definitions]
        deleted = crystal.delete(names, reason=reason)
    if json:
        print_json({"deleted": deleted})
    else:
        print(f"deleted {len(deleted)}")


# ── moving ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@definitions_app.command("import")
def import_definitions(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="A CSV: term, sql; also database, synonyms, meaning, tables. Or -.")
    ],
    *,
    db: Db = None,
    name: Name = None,
    store: Where = None,
    json: Json = False,
) -> None:
    """Take in a CSV of definitions, in your name. All or none; a term that is known gets the file's version."""
    with reading(file) as lines:
        raw = lines.read(LONGEST_FILE + 1)
    if len(raw) > LONGEST_FILE:
        raise ConfigError(f"{file}: larger than {LONGEST_FILE // 1_000_000} MB")
    with opened_crystal(store, db=db, name=name) as (crystal, database):
        report = crystal.import_definitions(
            raw.decode("utf-8-sig", errors="replace"),
            database,
            name="standard input" if file == "-" else Path(file).name,
        )
    if json:
        print_json(report)
    else:
        left = f", of other databases {report.elsewhere}" if report.elsewhere else ""
        print(f"added {report.added}, changed {report.changed}, unchanged {report.unchanged}{left}")


@definitions_app.command("export")
def export_definitions(
    file: Annotated[str, typer.Argument(metavar="FILE", help="Where to write the CSV; - is standard output.")] = "-",
    *,
    db: OnlyDb = None,
    store: Where = None,
) -> None:
    """Write the definitions that are shown as a CSV. `cards export` writes them with their history."""
    with opened_crystal(store, existing=True) as (crystal, _), writing(file) as out:
        crystal.export_definitions(out, db)


# ── proposals ────────────────────────────────────────────────────────────────────────────────────────────────────────


@definitions_app.command()
def propose(
    source: Annotated[
        str | None,
        typer.Argument(
            metavar="FROM", help="A dbt project's folder, or comments.", show_default="filters that cards share"
        ),
    ] = None,
    *,
    db: Db = None,
    name: Name = None,
    store: Where = None,
    json: Json = False,
) -> None:
    """Look for definitions to propose.

    Filters that confirmed queries share and no question says, or words beside columns. Nothing of it is shown to a
    model before a person confirms it.
    """
    with opened_crystal(store, db=db, name=name) as (crystal, database):
        proposals = crystal.propose_definitions(database, source=source)
    _show_proposals(proposals, json=json)


@definitions_app.command()
def confirm(
    proposal: ProposalId,
    *,
    term: Term = None,
    sql: Sql = None,
    table: Tables = None,
    synonym: Synonyms = None,
    meaning: Meaning = None,
    store: Where = None,
    json: Json = False,
) -> None:
    """Vouch for a proposed definition. Its term is the one that you give, or the one that is suggested."""
    with opened_crystal(store, existing=True) as (crystal, _):
        card = crystal.confirm_definition(proposal, term=term, sql=sql, tables=table, synonyms=synonym, meaning=meaning)
    _print(card, "defined", json=json)


@definitions_app.command()
def reject(proposal: ProposalId, store: Where = None, json: Json = False) -> None:
    """Say that a proposal defines nothing; it is not proposed again."""
    with opened_crystal(store, existing=True) as (crystal, _):
        rejected = crystal.reject_definition(proposal)
    if json:
        print_json(rejected)
    else:
        print(f"rejected {rejected.id}")


def _sql(card: Card) -> str:
    return card.definition.sql if card.definition is not None else card.sql


def _print(card: Card, done: str, *, json: bool) -> None:
    if json:
        from sqlcrystal.serving.documents import DefinitionDocument

        print_json(DefinitionDocument.of(card))
    else:
        print(visible(f"{done} {card.id}: {card.text}"))


def _show_proposals(proposals: "list[DefinitionProposal]", *, json: bool) -> None:
    if json:
        print_json(proposals)
        return
    rows = [
        (each.id, each.term or "(give it a term)", each.sql, each.place or f"{len(each.cards)} cards")
        for each in proposals
    ]
    print_lines(["id", "term", "sql", "from"], rows)
    if proposals:
        print("\nconfirm one: sqlcrystal definitions confirm ID --term TERM; or: sqlcrystal serve, then Queue")
