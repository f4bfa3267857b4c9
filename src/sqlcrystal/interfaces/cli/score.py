"""`sqlcrystal score` and `sqlcrystal benchmark`: rate prediction files, and check whether gold can be trusted."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sqlcrystal.benchmarks.catalogue import BENCHMARKS, load_benchmark
from sqlcrystal.interfaces.cli.options import Json, OnlyDb, Where, opened_crystal
from sqlcrystal.interfaces.cli.output import print_json, print_table
from sqlcrystal.interfaces.cli.scoring import progress_bar, score_files, tell_missing

if TYPE_CHECKING:
    from sqlcrystal.benchmarks.preflight import DatabaseCheck, Preflight

benchmark_app = typer.Typer(help="Benchmarks: what there is, and whether its gold runs.", no_args_is_help=True)

BenchmarkName = Annotated[str, typer.Option("--benchmark", help="Its name; `sqlcrystal benchmark list` shows all.")]
DataFolder = Annotated[Path | None, typer.Option("--data", help="The folder (for own: or file) that holds it.")]
DatabaseLocations = Annotated[
    list[str] | None,
    typer.Option(
        "--databases",
        help="Where databases are: a folder, a TOML or JSON file, NAME=URL, or one URL; ${ENV} is filled in.",
    ),
]
OnlyDatabases = Annotated[
    list[str] | None, typer.Option("--database", help="Only questions of this database; may repeat.")
]
SkipMissing = Annotated[bool, typer.Option("--skip-missing", help="Leave out questions whose database is missing.")]
Jobs = Annotated[int | None, typer.Option("--jobs", min=1, help="Parallel workers.", show_default="all cores")]
Timeout = Annotated[float, typer.Option("--timeout", min=0.001, help="Seconds each statement may take.")]


def register(app: typer.Typer) -> None:
    """Attach the command and the group."""
    app.command("score")(score)
    app.add_typer(benchmark_app, name="benchmark")


# ── scoring ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def score(
    predictions: Annotated[
        list[Path], typer.Argument(help="BIRD JSON, Spider lines or JSON Lines; several at once are faster.")
    ],
    *,
    benchmark: BenchmarkName,
    data: DataFolder = None,
    rule: Annotated[str, typer.Option("--rule", help="bird, subset, bag, test-suite or instances (quarry).")] = "bird",
    databases: DatabaseLocations = None,
    database: OnlyDatabases = None,
    skip_missing: SkipMissing = False,
    out: Annotated[Path | None, typer.Option("--out", help="Write one CSV row per question.")] = None,
    jobs: Jobs = None,
    timeout: Timeout = 30.0,
    json: Json = False,
) -> None:
    """Execute predicted SQL and compare its results with gold's."""
    score_files(
        predictions,
        benchmark=benchmark,
        data=data,
        rule=rule,
        databases=databases,
        database=database,
        skip_missing=skip_missing,
        out=out,
        jobs=jobs,
        timeout=timeout,
        json=json,
    )


# ── benchmarks ───────────────────────────────────────────────────────────────────────────────────────────────────────


@benchmark_app.command("list")
def list_benchmarks(json: Json = False) -> None:
    """Name every benchmark and what its folder must hold."""
    rows = [(name, description) for name, (_, description) in BENCHMARKS.items()]
    if json:
        print_json([{"name": name, "description": description} for name, description in rows])
    else:
        print_table("benchmarks", ["name", "what it is"], rows)


@benchmark_app.command("make")
def make(
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="The folder of the benchmark.")],
    *,
    from_store: Annotated[bool, typer.Option("--from-store", help="From confirmed answers.")],  # noqa: ARG001
    db: OnlyDb = None,
    store: Where = None,
    json: Json = False,
) -> None:
    """Turn confirmed answers into a benchmark of your own.

    A study takes it with `benchmark = "own"` and this folder.
    """
    from sqlcrystal.serving.own_tests import QUESTIONS

    with opened_crystal(store, existing=True) as (crystal, _):
        count = crystal.make_benchmark(out, db)
    if json:
        print_json({"questions": count, "file": str(out / QUESTIONS)})
    else:
        print(f"{count} questions in {out / QUESTIONS}; check them with: sqlcrystal benchmark check own --data {out}")


@benchmark_app.command("log")
def log(
    name: Annotated[str, typer.Argument(help="The benchmark; `sqlcrystal benchmark list` shows all.")],
    *,
    database: Annotated[str, typer.Option("--database", metavar="NAME", help="The database whose queries are meant.")],
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="The folder of the log.")],
    data: DataFolder = None,
    json: Json = False,
) -> None:
    """Write a query log to try `learn` with.

    It holds 200 statements: the benchmark's own queries over one database, some often, and what no log is without.
    A database that is a file is copied beside them.
    """
    from sqlcrystal.benchmarks.query_log import write_database, write_log

    chosen = load_benchmark(name, data).only([database]).available(skip_missing=False)
    count = write_log(chosen.cases, out)
    place = write_database(chosen.locations[database], out)
    if json:
        print_json({"statements": count, "folder": str(out), "database": place})
    else:
        print(f"{count} statements in {out}; learn from them with: sqlcrystal learn {out} --db {place}")


@benchmark_app.command("check")
def check(
    name: Annotated[str, typer.Argument(help="The benchmark; `sqlcrystal benchmark list` shows all.")],
    *,
    data: DataFolder = None,
    databases: DatabaseLocations = None,
    database: OnlyDatabases = None,
    skip_missing: SkipMissing = False,
    jobs: Jobs = None,
    timeout: Timeout = 30.0,
    json: Json = False,
) -> None:
    """Run gold as prediction. Counts what executes, returns nothing, fails, times out or takes longer than a second."""
    from msgspec.structs import replace

    from sqlcrystal.benchmarks.preflight import check_benchmark

    loaded = load_benchmark(name, data, databases or ())
    chosen = loaded.only(database) if database else loaded
    here = chosen.available(skip_missing=skip_missing)
    with progress_bar("checking") as on_progress:
        result = check_benchmark(here, jobs=jobs, timeout=timeout, on_progress=on_progress)
    result = replace(result, missing_databases=chosen.missing)
    tell_missing(chosen.missing, len(chosen.cases) - len(here.cases))
    if json:
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
