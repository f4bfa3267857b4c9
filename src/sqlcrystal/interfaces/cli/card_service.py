"""Which cards are served: `cards disable|enable|delete|revoke`."""

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sqlcrystal.errors import ConfigError
from sqlcrystal.interfaces.cli.card_pages import revocation_lines
from sqlcrystal.interfaces.cli.output import print_json
from sqlcrystal.interfaces.cli.store_access import Json, Where, checked_filters, current_user, opened_store
from sqlcrystal.types import Card, CardStatus

if TYPE_CHECKING:
    from sqlcrystal.bank import CardStore

Db = Annotated[str | None, typer.Option("--db", help="Only cards of this database: its name, URL or file.")]
Signal = Annotated[str | None, typer.Option("--signal", help="Only cards admitted by this signal, e.g. ungated.")]
By = Annotated[str | None, typer.Option("--by", help="Only cards admitted by this person or check.")]
Writer = Annotated[str | None, typer.Option("--writer", help="Only cards of this format, e.g. W0.")]
Ids = Annotated[list[str] | None, typer.Argument(help="Card ids, or the start of one.")]
Id = Annotated[str, typer.Argument(help="A card id, or the start of one.")]
Reason = Annotated[str, typer.Option("--reason", help="Why; kept in the card's history.")]

DISABLE = "Stop serving cards. Those named, or all that a signal, person, format or database brought in."
ENABLE = "Serve cards again. Those named, quarantined ones too, or all disabled ones that match."


def register(cards_app: typer.Typer) -> None:
    """Attach the commands to their group."""
    cards_app.command("disable", help=DISABLE)(_serving(CardStatus.DISABLED))
    cards_app.command("enable", help=ENABLE)(_serving(CardStatus.ACTIVE))
    cards_app.command()(delete)
    cards_app.command()(revoke)


def _serving(status: CardStatus) -> Callable[..., None]:
    """The command that gives cards this status."""

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
        filters = {"db": db, "signal": signal, "by": by, "writer": writer}
        _change(store=store, status=status, named=cards, filters=filters, reason=reason, json=json)

    return command


def delete(
    cards: Annotated[list[str], typer.Argument(help="Card ids, or the start of one.")],
    reason: Reason = "",
    store: Where = None,
    json: Json = False,
) -> None:
    """Take cards out for good, with their episodes. Only what was done to them is remembered."""
    with opened_store(store) as opened, opened.transaction():
        ids = list(dict.fromkeys(opened.bank.get(name).id for name in cards))
        for card_id in ids:
            opened.bank.delete(card_id, by=current_user(), reason=reason)
    if json:
        print_json({"deleted": ids})
    else:
        print(f"deleted {len(ids)}")


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
    if by is None and signal is None and since is None:
        raise ConfigError("cards revoke: give one or more of --by, --signal, --since")
    moment = None if since is None else _moment(since)
    with opened_store(store) as opened:
        filters = checked_filters(opened.bank, db=db, signal=signal, by=by)
        revocation = opened.revoke(
            by=by,
            signal=signal,
            since=moment,
            database=filters["database"],
            revoked_by=current_user(),
            reason=reason,
        )
    if json:
        print_json(
            {
                "revoked": [card.id for card in revocation.cards],
                "leaned": [
                    {"id": answer.id, "database": answer.database, "question": answer.question, "at": answer.at}
                    for answer in revocation.leaned
                ],
            }
        )
        return
    for line in revocation_lines(revocation):
        print(line)


def _moment(since: str) -> str:
    try:
        datetime.fromisoformat(since)
    except ValueError:
        raise ConfigError(f"--since: {since!r} is not a day or time such as 2026-03-01 or 2026-03-01T08:00") from None
    return since


def _unanswered(bank: "CardStore", cards: list[Card]) -> list[Card]:
    """Of a group to be enabled the last card of every question that no active card answers."""
    from sqlcrystal.bank import question_key

    last = {(card.database, question_key(card.question.text)): card for card in cards}
    return [
        card
        for card in last.values()
        if not bank.find(database=card.database, status=CardStatus.ACTIVE, question=card.question.text)
    ]


def _change(
    *,
    store: str | None,
    status: CardStatus,
    named: list[str] | None,
    filters: dict[str, str | None],
    reason: str,
    json: bool,
) -> None:
    if bool(named) == any(value is not None for value in filters.values()):
        raise ConfigError("cards: give either card ids, or one or more of --db, --signal, --by, --writer")
    with opened_store(store) as opened, opened.transaction():
        bank = opened.bank
        if named:
            matching = [bank.get(name) for name in named]
        else:
            # A whole group is enabled only as far as a person disabled it; quarantine is lifted by card or by `check`.
            before = CardStatus.ACTIVE if status is CardStatus.DISABLED else CardStatus.DISABLED
            wanted: dict[str, Any] = checked_filters(bank, **filters)
            matching = bank.find(**wanted | {"status": before})
            if status is CardStatus.ACTIVE:
                matching = _unanswered(bank, matching)
        changing = list(dict.fromkeys(card.id for card in matching if card.status is not status))
        bank.set_statuses(changing, status, by=current_user(), reason=reason)
    if json:
        print_json({"status": status, "changed": changing})
    else:
        print(f"{len(changing)} card{'' if len(changing) == 1 else 's'} now {status}")
