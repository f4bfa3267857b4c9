"""`sqlcrystal value|test|forget`: the worth of memory in service, a team's own tests, and removal of a value."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sqlcrystal.interfaces.cli.options import ApiKeyEnv, Db, Json, Model, OnlyDb, Where, opened_crystal, ready_model
from sqlcrystal.interfaces.cli.output import print_json, print_lines, print_table

if TYPE_CHECKING:
    from sqlcrystal.serving.value import Value

SHOWN_CARDS = 10


def value(
    *,
    db: OnlyDb = None,
    effect: Annotated[
        float, typer.Option(min=0.5, max=50, help="The lift, in points, that you want to know of.")
    ] = 5.0,
    refit: Annotated[
        bool, typer.Option("--refit", help="Refit the confidence now; else every ten verdicts do.")
    ] = False,
    since: Annotated[str, typer.Option(metavar="DATE", help="Only answers given since then.")] = "",
    store: Where = None,
    json: Json = False,
) -> None:
    """Say what memory is worth in service.

    Prints the lift with its interval, fixes, breaks, cost and cards, and whether it is known yet.
    """
    with opened_crystal(store, existing=True) as (crystal, _):
        if refit:
            crystal.refit(db)
        reports = crystal.value(db, effect_pp=effect, since=since)
    if json:
        print_json(reports)
        return
    if not reports:
        print("nothing was asked yet")
    for report in reports:
        _show(report)


def _show(report: "Value") -> None:
    from sqlcrystal.serving.value import arms, figures, verdict_rates

    print_table(f"{report.database}: {report.says}", ["", "with memory", "without"], arms(report))
    print_table("", ["", "", ""], [(figure.name, figure.figure, figure.words) for figure in figures(report)])
    for words in (*(f"warning: {warning}" for warning in report.warnings), verdict_rates(report)):
        if words:
            print(words)
    clear = [card for card in report.cards if card.says != "unclear"][:SHOWN_CARDS]
    if clear:
        cards = [(card.card, card.says, f"{card.right}/{card.used}", f"{card.effect_pp:+.1f}") for card in clear]
        print_table("cards", ["card", "", "right", "points"], cards)


def own_tests(
    file: Annotated[Path, typer.Argument(help="YAML: a list of name, question, and sql or rows; database if several.")],
    *,
    db: Db = None,
    model: Model = None,
    api_key_env: ApiKeyEnv = None,
    out: Annotated[Path | None, typer.Option("--junit", metavar="FILE", help="Write JUnit XML for CI.")] = None,
    store: Where = None,
    json: Json = False,
) -> None:
    """Run your own tests with memory and without. Exits 1 when an answer with memory is wrong; nothing is kept."""
    from sqlcrystal.serving.own_tests import junit, read_tests

    tests = read_tests(file)
    with opened_crystal(store, db=db, model=model, api_key_env=api_key_env) as (crystal, database):
        ready_model(crystal.model_spec)
        results = crystal.test(tests, database)
    if out is not None:
        out.write_bytes(junit(results, suite=file.stem))
    right = sum(result.right for result in results)
    without = sum(result.right_without for result in results)
    if json:
        cases = [{"name": result.name, "says": result.says, "why": result.why, "sql": result.sql} for result in results]
        print_json({"tests": len(results), "right": right, "right_without": without, "results": cases})
    else:
        print_lines(["", "test", "why"], [(result.says, result.name, result.why) for result in results])
        print(f"{right} of {len(results)} right with memory, {without} without")
    if right < len(results):
        raise typer.Exit(1)


def forget(
    *,
    question: Annotated[str | None, typer.Option("--question", help="This question, however it was laid out.")] = None,
    value: Annotated[str | None, typer.Option("--value", help="This value, wherever it stands.")] = None,
    store: Where = None,
    json: Json = False,
) -> None:
    """Remove a question or a value wherever it was kept.

    That is in cards, answers, traces and notes; what was counted stays counted.
    """
    with opened_crystal(store, existing=True) as (crystal, _):
        report = crystal.forget(question=question, value=value)
    if json:
        print_json(report)
    else:
        print(", ".join(f"{name} {getattr(report, name)}" for name in report.__struct_fields__))


def register(app: typer.Typer) -> None:
    """Attach the commands."""
    app.command("value")(value)
    app.command("test")(own_tests)
    app.command("forget")(forget)
