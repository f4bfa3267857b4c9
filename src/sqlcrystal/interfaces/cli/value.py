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
    """Say what memory is worth in service: lift with interval, fixes, breaks, cost, cards, and if it is known yet."""
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
    print_table(f"{found.database}: {found.says}", ["", "with memory", "without"], _arms(found))
    rows = [
        ("lift, 95 % at every look", _lift(found)),
        ("fixed, broke", f"{found.fixed}, {found.broke} questions"),
        ("replayed", f"{found.replayed:.1f} % of {found.answers:,} answers"),
        (
            "tokens",
            f"{found.tokens:,}" + (f"; {found.measuring_tokens:,} to measure" if found.measuring_tokens else ""),
        ),
        ("cost", f"{found.cost:,.4f}" if found.cost else "set prices in sqlcrystal.toml"),
        ("one more right answer takes", _break_even(found)),
    ]
    print_table("", ["", ""], rows)
    told = [card for card in found.cards if card.says != "unclear"][:SHOWN_CARDS]
    if told:
        cards = [(card.card, card.says, f"{card.right}/{card.used}", f"{card.effect_pp:+.1f}") for card in told]
        print_table("cards", ["card", "", "right", "points"], cards)


def _arms(found: "Value") -> list[tuple[str, str, str]]:
    one, other = found.arms["with_memory"], found.arms["without_memory"]

    def percent(number: float | None) -> str:
        return "" if number is None else f"{number:.1f} %"

    return [
        ("right, of verdicts", percent(found.with_memory), percent(found.without_memory)),
        ("answers", f"{one.answers:,}", f"{other.answers:,}"),
        ("verdicts", f"{one.verdicts:,}", f"{other.verdicts:,}"),
        ("verdict rate", percent(one.verdict_rate), percent(other.verdict_rate)),
        ("tokens an answer", f"{one.tokens_per_answer or 0:,.0f}", f"{other.tokens_per_answer or 0:,.0f}"),
    ]


def _lift(found: "Value") -> str:
    if found.lift_pp is None or found.lift_ci_pp is None:
        return "not known yet"
    return f"{found.lift_pp:+.1f} points [{found.lift_ci_pp[0]:+.1f}, {found.lift_ci_pp[1]:+.1f}]"


def _break_even(found: "Value") -> str:
    if found.tokens_per_right_answer is None:
        return "not known yet"
    if found.tokens_per_right_answer <= 0:
        return f"nothing: memory saves {-(found.overhead_tokens or 0):,.0f} tokens an answer"
    cost = f", {found.cost_per_right_answer:,.4f} in money" if found.cost_per_right_answer else ""
    return f"{found.tokens_per_right_answer:,.0f} tokens{cost}: it pays where one is worth more"


def register(app: typer.Typer) -> None:
    """Attach the command."""
    app.command("value")(value)
    own_tests.register(app)
