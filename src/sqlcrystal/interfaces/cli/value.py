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
        reports = values(opened, prices=prices, effect_pp=effect, since=since)
        name = database_name(db)
    if name is not None:
        if name not in [report.database for report in reports]:
            raise ConfigError.unknown("--db", name, [report.database for report in reports])
        reports = [report for report in reports if report.database == name]
    if json:
        print_json(reports)
        return
    if not reports:
        print("nothing was asked yet")
    for report in reports:
        _show(report)


def _show(report: "Value") -> None:
    from sqlcrystal.serving.figures import arms, figures

    print_table(f"{report.database}: {report.says}", ["", "with memory", "without"], arms(report))
    print_table("", ["", "", ""], [(figure.name, figure.figure, figure.words) for figure in figures(report)])
    clear = [card for card in report.cards if card.says != "unclear"][:SHOWN_CARDS]
    if clear:
        cards = [(card.card, card.says, f"{card.right}/{card.used}", f"{card.effect_pp:+.1f}") for card in clear]
        print_table("cards", ["card", "", "right", "points"], cards)


def register(app: typer.Typer) -> None:
    """Attach the command."""
    app.command("value")(value)
    own_tests.register(app)
