"""`sqlcrystal benchmark`: which benchmarks there are, and whether their gold can be trusted."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sqlcrystal.interfaces.cli.output import print_json, print_table
from sqlcrystal.interfaces.cli.score import (
    AsJson,
    DatabaseLocations,
    DataFolder,
    Jobs,
    OnlyDatabases,
    SkipMissing,
    Timeout,
)
from sqlcrystal.interfaces.cli.scoring import progress_bar, tell_missing
from sqlcrystal.interfaces.cli.store_access import Where, database_name, opened_store

if TYPE_CHECKING:
    from sqlcrystal.benchmarks.preflight import DatabaseCheck, Preflight

group = typer.Typer(help="Benchmarks: what there is, and whether its gold runs.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    """Attach the group."""
    app.add_typer(group, name="benchmark")


@group.command("list")
def list_benchmarks(as_json: AsJson = False) -> None:
    """Name every benchmark and what its folder must hold."""
    from sqlcrystal.benchmarks.catalogue import BENCHMARKS

    rows = [(name, description) for name, (_, description) in BENCHMARKS.items()]
    if as_json:
        print_json([{"name": name, "description": description} for name, description in rows])
    else:
        print_table("benchmarks", ["name", "what it is"], rows)


@group.command("make")
def make(
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="The folder of the benchmark.")],
    *,
    from_store: Annotated[bool, typer.Option("--from-store", help="From confirmed answers.")],  # noqa: ARG001
    db: Annotated[str | None, typer.Option("--db", help="Only this database: its name, URL or file.")] = None,
    store: Where = None,
    as_json: AsJson = False,
) -> None:
    """Turn confirmed answers into a benchmark of your own.

    A study takes it with `benchmark = "own"` and this folder.
    """
    from sqlcrystal.serving.own_benchmark import QUESTIONS, make_benchmark

    with opened_store(store) as opened:
        count = make_benchmark(opened, out, database=database_name(db))
    if as_json:
        print_json({"questions": count, "file": str(out / QUESTIONS)})
    else:
        print(f"{count} questions in {out / QUESTIONS}; check them with: sqlcrystal benchmark check own --data {out}")


@group.command("check")
def check(
    name: Annotated[str, typer.Argument(help="The benchmark; `sqlcrystal benchmark list` shows all.")],
    *,
    data: DataFolder = None,
    databases: DatabaseLocations = None,
    database: OnlyDatabases = None,
    skip_missing: SkipMissing = False,
    jobs: Jobs = None,
    timeout: Timeout = 30.0,
    as_json: AsJson = False,
) -> None:
    """Run gold as prediction. Counts what executes, returns nothing, fails, times out or takes longer than a second."""
    from msgspec.structs import replace

    from sqlcrystal.benchmarks.catalogue import load_benchmark
    from sqlcrystal.benchmarks.preflight import check_benchmark

    loaded = load_benchmark(name, data, databases or ())
    chosen = loaded.only(database) if database else loaded
    here = chosen.available(skip_missing=skip_missing)
    with progress_bar("checking") as on_progress:
        result = check_benchmark(here, jobs=jobs, timeout=timeout, on_progress=on_progress)
    result = replace(result, missing_databases=chosen.missing)
    tell_missing(chosen.missing, len(chosen.cases) - len(here.cases))
    if as_json:
        print_json(result)
    else:
        _print_check(result)


def _print_check(result: "Preflight") -> None:
    columns = ["database", "questions", "executed", "empty", "zero", "error", "timeout", "slow"]
    counted: dict[str, DatabaseCheck | Preflight] = {**result.by_database, "all": result}
    rows: list[tuple[object, ...]] = [
        (name, count.questions, count.executed, count.empty, count.zero, count.error, count.timeout, count.slow)
        for name, count in counted.items()
    ]
    print_table(f"gold of {result.benchmark}", columns, rows)
    failed = [finding for finding in result.findings if finding.message]
    if failed:
        print_table(
            "golds that fail",
            ["question", "database", "why"],
            [(finding.question_id, finding.database, finding.message) for finding in failed],
        )
    if result.wrong:
        print(f"{result.equal_wrong} of {result.wrong} kept wrong queries cannot be told from gold")
