"""`sqlcrystal test` and `sqlcrystal forget`: a team's own tests, and what must be known no more."""

from pathlib import Path
from typing import Annotated

import typer

from sqlcrystal.interfaces.cli.crystal_access import opened_crystal, ready_model
from sqlcrystal.interfaces.cli.crystal_options import Db, Model
from sqlcrystal.interfaces.cli.options import ApiKeyEnv
from sqlcrystal.interfaces.cli.output import print_json, print_lines
from sqlcrystal.interfaces.cli.store_access import Json, Where, current_user, opened_store


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
    from sqlcrystal.serving.own_tests import junit, read_tests, run_tests

    tests = read_tests(file)
    with opened_crystal(store, db=db, model=model, api_key_env=api_key_env) as (crystal, database):
        ready_model(crystal.workspace.team.model)
        results = run_tests(crystal.workspace, tests, database=database)
    if out is not None:
        out.write_bytes(junit(results, suite=file.stem))
    right = sum(result.right for result in results)
    if json:
        without = sum(result.right_without for result in results)
        cases = [{"name": result.name, "says": result.says, "why": result.why, "sql": result.sql} for result in results]
        print_json({"tests": len(results), "right": right, "right_without": without, "results": cases})
    else:
        print_lines(["", "test", "why"], [(result.says, result.name, result.why) for result in results])
        print(f"{right} of {len(results)} right with memory")
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
    with opened_store(store) as opened:
        report = opened.forget(by=current_user(), question=question, value=value)
    if json:
        print_json(report)
    else:
        print(", ".join(f"{name} {getattr(report, name)}" for name in report.__struct_fields__))


def register(app: typer.Typer) -> None:
    """Attach the commands."""
    app.command("test")(own_tests)
    app.command("forget")(forget)
