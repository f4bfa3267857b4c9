"""`sqlcrystal value`: what memory is worth in service."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sqlcrystal.interfaces.cli import own_tests
from sqlcrystal.interfaces.cli.output import print_json, print_table
from sqlcrystal.interfaces.cli.store_access import Json, Where, database_name, opened_store

if TYPE_CHECKING:
    from sqlcrystal.serving.value import Value

SHOWN_CARDS = 10


def value(
    *,
    db: Annotated[str | None, typer.Option("--db", help="Only this database: its name, URL or file.")] = None,
    effect: Annotated[
        float, typer.Option(min=0.5, max=50, help="The lift, in points, that you want to know of.")
    ] = 5.0,
    since: Annotated[str, typer.Option(metavar="DATE", help="Only answers given since then.")] = "",
    store: Where = None,
    json: Json = False,
) -> None:
    """Say what memory is worth in service.

    Prints the lift with its interval, fixes, breaks, cost and cards, and whether it is known yet.
    """
    from sqlcrystal.config import TEAM_FILE, Prices, read_team
    from sqlcrystal.errors import ConfigError
    from sqlcrystal.serving.value import values

    prices = read_team().prices if Path(TEAM_FILE).is_file() else Prices()
    with opened_store(store) as opened:
        found = values(opened, prices=prices, effect_pp=effect, since=since)
        name = database_name(db)
    if name is not None:
        if name not in [each.database for each in found]:
            raise ConfigError.unknown("--db", name, [each.database for each in found])
        found = [each for each in found if each.database == name]
    if json:
        print_json(found)
        return
    if not found:
        print("nothing was asked yet")
    for each in found:
        _show(each)


def _show(found: "Value") -> None:
    from sqlcrystal.serving.figures import arms, figures

    print_table(f"{found.database}: {found.says}", ["", "with memory", "without"], arms(found))
    print_table("", ["", "", ""], [(each.name, each.figure, each.words) for each in figures(found)])
    told = [card for card in found.cards if card.says != "unclear"][:SHOWN_CARDS]
    if told:
        cards = [(card.card, card.says, f"{card.right}/{card.used}", f"{card.effect_pp:+.1f}") for card in told]
        print_table("cards", ["card", "", "right", "points"], cards)


def register(app: typer.Typer) -> None:
    """Attach the command."""
    app.command("value")(value)
    own_tests.register(app)
