"""`sqlcrystal cards`: look into the bank, change its cards, move them, and check them against the live database."""

import os
import shlex
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sqlcrystal.errors import ConfigError
from sqlcrystal.escaping import visible
from sqlcrystal.interfaces.cli.options import Json, Where, opened_crystal, reading, writing
from sqlcrystal.interfaces.cli.output import print_json, print_lines, progress
from sqlcrystal.types import Card, CardStatus

if TYPE_CHECKING:
    from sqlcrystal.bank import CheckReport, Entry
    from sqlcrystal.serving.documents import Revoked

cards_app = typer.Typer(help="The bank: look at cards, change, move and check them.")

Db = Annotated[str | None, typer.Option("--db", help="Only cards of this database: its name, URL or file.")]
Status = Annotated[str | None, typer.Option("--status", help="Only active, disabled or quarantined cards.")]
Signal = Annotated[str | None, typer.Option("--signal", help="Only cards admitted by this signal, e.g. ungated.")]
By = Annotated[str | None, typer.Option("--by", help="Only cards admitted by this person or check.")]
Writer = Annotated[str | None, typer.Option("--writer", help="Only cards of this format, e.g. W0.")]
Ids = Annotated[list[str] | None, typer.Argument(help="Card ids, or the start of one.")]
Id = Annotated[str, typer.Argument(help="A card id, or the start of one.")]
Reason = Annotated[str, typer.Option("--reason", help="Why; kept in the card's history.")]
LiveName = Annotated[str | None, typer.Option("--name", help="The database's name on the cards, if another.")]

DISABLE = "Stop serving cards. Those named, or all that a signal, person, format or database brought in."
ENABLE = "Serve cards again. Those named, quarantined ones too, or all disabled ones that match."
TEXT_MARK, SQL_MARK = "--- text ---", "--- sql ---"


def register(app: typer.Typer) -> None:
    """Attach the group."""
    app.add_typer(cards_app, name="cards", no_args_is_help=True)


# ── which cards are served ───────────────────────────────────────────────────────────────────────────────────────────


def _serving(status: CardStatus) -> Callable[..., None]:
    """Make the command that gives cards a status."""

    def command(
        cards: Ids = None,
        *,
        db: Db = None,
        signal: Signal = None,
        by: By = None,
        writer: Writer = None,
        reason: Reason = "",
        store: Where = None,
        json: Json = False,
    ) -> None:
        with opened_crystal(store, existing=True) as (crystal, _):
            change = crystal.enable if status is CardStatus.ACTIVE else crystal.disable
            changed = change(cards or None, reason=reason, database=db, signal=signal, admitted=by, writer=writer)
        if json:
            print_json({"status": status, "changed": [card.id for card in changed]})
        else:
            print(f"{len(changed)} card{'' if len(changed) == 1 else 's'} now {status}")

    return command


cards_app.command("disable", help=DISABLE)(_serving(CardStatus.DISABLED))
cards_app.command("enable", help=ENABLE)(_serving(CardStatus.ACTIVE))


@cards_app.command()
def delete(
    cards: Annotated[list[str], typer.Argument(help="Card ids, or the start of one.")],
    reason: Reason = "",
    store: Where = None,
    json: Json = False,
) -> None:
    """Take cards out for good, with their episodes. Only what was done to them is remembered."""
    with opened_crystal(store, existing=True) as (crystal, _):
        deleted = crystal.delete(cards, reason=reason)
    if json:
        print_json({"deleted": deleted})
    else:
        print(f"deleted {len(deleted)}")


@cards_app.command()
def revoke(
    *,
    by: Annotated[str | None, typer.Option("--by", help="What this person or check admitted.")] = None,
    signal: Annotated[str | None, typer.Option("--signal", help="What this signal admitted, e.g. user.")] = None,
    since: Annotated[
        str | None, typer.Option("--since", help="Admitted on or after this day, e.g. 2026-03-01.")
    ] = None,
    db: Db = None,
    reason: Reason = "",
    store: Where = None,
    json: Json = False,
) -> None:
    """Undo a verifier. Disables what it admitted, takes its verdicts back, and names the answers that leaned on it."""
    with opened_crystal(store, existing=True) as (crystal, _):
        revoked = crystal.revoke(by=by, signal=signal, since=since, database=db, reason=reason)
    if json:
        print_json(revoked)
    else:
        _print(revoked_lines(revoked))


# ── looking and changing ─────────────────────────────────────────────────────────────────────────────────────────────


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
    with opened_crystal(store, existing=True) as (crystal, _):
        cards = crystal.cards(db, status=status, signal=signal, by=by, writer=writer)
    if json:
        from sqlcrystal.serving.documents import CardDocument

        print_json([CardDocument.of(card) for card in cards])
        return
    several = len({card.database for card in cards}) > 1
    print_lines(
        ["id", "status", "signal", *(["database"] if several else []), "question"],
        [
            (card.id, card.status, card.admission.signal, *([card.database] if several else []), card.question.text)
            for card in cards
        ],
        shortened=short_ids(card.id for card in cards),
    )


@cards_app.command()
def show(card: Id, store: Where = None, json: Json = False) -> None:
    """Show a card, who admitted it and what was done to it."""
    with opened_crystal(store, existing=True) as (crystal, _):
        entry = crystal.card(card)
    if json:
        from sqlcrystal.serving.documents import WholeCard

        print_json(WholeCard.of_entry(entry))
    else:
        _print(entry_lines(entry))


@cards_app.command()
def edit(
    card: Id,
    *,
    text: Annotated[str | None, typer.Option("--text", help="The new text.")] = None,
    sql: Annotated[str | None, typer.Option("--sql", help="The new SQL; replaced in the text too.")] = None,
    db: Annotated[
        str | None,
        typer.Option("--db", help="The card's database, on which new SQL is run first: its name, URL or file."),
    ] = None,
    name: LiveName = None,
    reason: Reason = "",
    store: Where = None,
    json: Json = False,
) -> None:
    """Change a card's text or SQL, by option or in $EDITOR. Who changes the SQL is recorded as vouching for it."""
    with opened_crystal(store, db=db, name=name, existing=True) as (crystal, _):
        old = crystal.card(card).card
        if text is None and sql is None:
            text, sql = _edited(old)
        new = crystal.edit(old.id, text=text, sql=sql, reason=reason)
        entry = crystal.card(new.id)
    if json:
        from sqlcrystal.serving.documents import WholeCard

        print_json(WholeCard.of_entry(entry))
    else:
        print(f"{new.id}: {'unchanged' if new == old else 'edited'}")


def _edited(card: Card) -> tuple[str | None, str | None]:
    """Let the person at the keyboard edit text and SQL in $VISUAL or $EDITOR; a part left as it was is None."""
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / f"{card.id}.txt"
        page.write_text(f"{TEXT_MARK}\n{card.text}\n{SQL_MARK}\n{card.sql}\n", encoding="utf-8")
        try:
            subprocess.run([*shlex.split(editor), str(page)], check=True)
        except (OSError, subprocess.CalledProcessError) as error:
            raise ConfigError(f"$EDITOR: {editor!r} failed ({error}); or give --text or --sql") from error
        saved = page.read_text(encoding="utf-8")
    head, mark, sql = saved.partition(f"\n{SQL_MARK}\n")
    if not mark or not head.startswith(TEXT_MARK):
        raise ConfigError(f"edit: keep the lines {TEXT_MARK!r} and {SQL_MARK!r}; nothing was changed")
    text, sql = head.removeprefix(TEXT_MARK).strip("\n"), sql.strip("\n")
    return None if text == card.text.strip("\n") else text, None if sql == card.sql.strip("\n") else sql


# ── moving and checking ──────────────────────────────────────────────────────────────────────────────────────────────


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
    if json and file == "-":
        raise ConfigError("--json: name a file to export to; standard output already carries the cards")
    with opened_crystal(store, existing=True) as (crystal, _), writing(file) as out:
        count = crystal.export_cards(out, db)
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
    if (file is None) == (from_run is None):
        raise ConfigError("import: give either an export or --from-run DIR")
    if from_run is not None:
        from sqlcrystal.ledger.folder import banked_entries

        entries = banked_entries(from_run, arm=arm, seed=seed)
        with opened_crystal(store) as (crystal, _):
            report = crystal.import_cards(entries)
    elif file is not None:
        from sqlcrystal.bank import read_entries

        with reading(file) as lines, opened_crystal(store) as (crystal, _):
            report = crystal.import_cards(read_entries(lines, name=file))
    if json:
        print_json(report)
    else:
        print(f"imported {report.added}, already there {report.already_there}")


@cards_app.command()
def check(
    *,
    db: Annotated[str, typer.Option("--db", help="The live database: its name, URL or file.")],
    name: LiveName = None,
    release: Annotated[bool, typer.Option("--release", help="Serve quarantined cards that run again.")] = False,
    fail: Annotated[bool, typer.Option("--fail", help="Exit 1 when a card does not run, for CI.")] = False,
    timeout: Annotated[float, typer.Option(min=0.1, help="Seconds a card's SQL may take.")] = 30.0,
    store: Where = None,
    json: Json = False,
) -> None:
    """Run every card again and quarantine what no longer runs."""
    with opened_crystal(store, db=db, name=name, existing=True) as (crystal, database), progress(disable=json) as bar:
        task = bar.add_task(f"checking {database}")
        report = crystal.check(
            database,
            release=release,
            timeout=timeout,
            on_progress=lambda done, total: bar.update(task, completed=done, total=total),
        )
    if json:
        print_json(report)
    else:
        _print(map(_one_line, check_lines(report)))
    if fail and (report.quarantined or report.still_quarantined or report.undecided):
        raise typer.Exit(1)


# ── cards as lines ───────────────────────────────────────────────────────────────────────────────────────────────────


def short_ids(ids: Iterable[str]) -> dict[str, str]:
    """Shorten each id to the start, of eight characters or more, that tells it from the others."""
    names = sorted(set(ids))
    shared = [_shared(left, right) for left, right in pairwise(["", *names, ""])]
    return {name: name[: max(8, 1 + max(shared[at : at + 2]))] for at, name in enumerate(names)}


def _shared(left: str, right: str) -> int:
    """Count the characters that two texts have in common at their start."""
    return next(
        (at for at, (old, new) in enumerate(zip(left, right, strict=False)) if old != new), min(len(left), len(right))
    )


def entry_lines(entry: "Entry") -> Iterator[str]:
    """Write a card with its provenance for people."""
    card = entry.card
    yield f"{card.id}  {card.status}  database {card.database}, {card.writer} from {card.source}, {card.tokens} tokens"
    admission = card.admission
    detail = f": {admission.detail}" if admission.detail else ""
    yield f"admitted by {admission.signal} ({admission.by}) at {admission.at}{detail}"
    yield f"schema {card.fingerprint}\n"
    yield card.text
    yield f"\nSQL: {card.sql}"
    if entry.episode is not None:
        yield f"\nfirst attempt: {entry.episode.attempt.sql or 'no SQL in the reply'}"
        for number, turn in enumerate(entry.episode.rounds, start=1):
            verdict = "accepted" if turn.accepted else "not accepted"
            yield f"round {number}: {len(turn.probes)} probes, {verdict}: {turn.sql or 'no SQL in the reply'}"
    for change in entry.history:
        move = f" {change.before} → {change.after}" if change.action == "status" else ""
        yield f"{change.at} {change.by}: {change.action}{move}{f' ({change.reason})' if change.reason else ''}"


def revoked_lines(revoked: "Revoked") -> Iterator[str]:
    """Write how many cards a revocation took out, and the answers that had leaned on them."""
    count = len(revoked.revoked)
    yield f"{count} card{'' if count == 1 else 's'} revoked"
    if revoked.leaned:
        yield f"{len(revoked.leaned)} answers had leaned on what was revoked; look at them again:"
    for answer in revoked.leaned:
        yield f"{answer.id}  {answer.at}  {answer.database}: {_one_line(answer.question)}"


def check_lines(report: "CheckReport") -> Iterator[str]:
    """Write how the cards of a database fared in a check."""
    yield f"{report.database}: {report.checked} checked ({report.stale} of an older schema), {report.ran} ran"
    for title, findings in (
        ("quarantined", report.quarantined),
        ("still quarantined", report.still_quarantined),
        ("undecided", report.undecided),
    ):
        for finding in findings:
            yield f"{title}: {finding.card} ({finding.kind}: {finding.message})"
    for card_id in report.released:
        yield f"released: {card_id}"
    if report.releasable:
        yield f"{len(report.releasable)} quarantined run again; --release serves them: {', '.join(report.releasable)}"


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _print(lines: Iterable[str]) -> None:
    for line in lines:
        print(visible(line))
