"""`sqlcrystal score` and `sqlcrystal benchmark`: rate prediction files, and check whether gold can be trusted."""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sqlcrystal.benchmarks.catalogue import BENCHMARKS, load_benchmark
from sqlcrystal.benchmarks.evaluate import score_predictions
from sqlcrystal.benchmarks.predictions import read_predictions
from sqlcrystal.errors import ConfigError, DataError
from sqlcrystal.interfaces.cli.options import Json, OnlyDb, Where, opened_crystal
from sqlcrystal.interfaces.cli.output import print_json, print_table, progress
from sqlcrystal.outgoing import csv_cell
from sqlcrystal.scoring.cache import GoldCache
from sqlcrystal.scoring.verdicts import rule_named

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from sqlcrystal.benchmarks.evaluate import Scoring
    from sqlcrystal.benchmarks.preflight import DatabaseCheck, Preflight
    from sqlcrystal.scoring.report import Report

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
    rule: Annotated[str, typer.Option("--rule", help="bird, subset, bag or test-suite.")] = "bird",
    databases: DatabaseLocations = None,
    database: OnlyDatabases = None,
    skip_missing: SkipMissing = False,
    out: Annotated[Path | None, typer.Option("--out", help="Write one CSV row per question.")] = None,
    jobs: Jobs = None,
    timeout: Timeout = 30.0,
    json: Json = False,
) -> None:
    """Execute predicted SQL and compare its results with gold's."""
    rule_named(rule)
    if out is not None and not out.parent.is_dir():
        raise ConfigError(f"--out: there is no folder {out.parent}")
    loaded = load_benchmark(benchmark, data, databases or ())
    if not skip_missing:
        (loaded.only(database) if database else loaded).available(skip_missing=False)
    files = {str(path): read_predictions(path, loaded) for path in predictions}
    cache = GoldCache()
    try:
        with _progress_bar("scoring") as on_progress:
            results = score_predictions(
                loaded,
                files,
                rule=rule,
                jobs=jobs,
                timeout=timeout,
                skip_missing=skip_missing,
                databases=database or (),
                cache=cache,
                on_progress=on_progress,
            )
    finally:
        cache.close()
    if out is not None:
        _write_csv(out, results)
    _tell_missing(results[0].report.missing_databases, results[0].report.left_out)
    _tell_fenced(files)
    _print_scores(results, json=json)


@contextmanager
def _progress_bar(label: str) -> Iterator[Callable[[int, int], None]]:
    """Give a callback (done, total) with a bar on stderr, whose thread starts at the first call: after forking."""
    with ExitStack() as stack:
        bars: list[tuple[Progress, TaskID]] = []

        def advance(done: int, total: int) -> None:
            if not sys.stderr.isatty():
                return
            if not bars:
                bar = stack.enter_context(progress())
                bars.append((bar, bar.add_task(label, total=total)))
            bars[0][0].update(bars[0][1], completed=done)

        yield advance


def _write_csv(out: Path, results: Sequence["Scoring"]) -> None:
    """Write beside the target and rename, so that a file is whole or not there; several files share one CSV."""
    import csv
    import tempfile

    several = len(results) > 1
    columns = ["question_id", "database", "verdict", "kind", "seconds", "sql", "error"] + ["predictions"] * several
    handle, scratch = tempfile.mkstemp(dir=out.parent, prefix=f".{out.name}.")
    try:
        with open(handle, "w", newline="", encoding="utf-8") as stream:
            writer = csv.writer(stream)
            writer.writerow(columns)
            for result in results:
                for question in result.scored:
                    verdict = [
                        int(question.correct),
                        question.kind.value,
                        f"{question.seconds:.6f}",
                        question.sql,
                        question.message,
                    ]
                    row = [question.question_id, question.database, *verdict] + [result.report.predictions] * several
                    writer.writerow([csv_cell(cell) if isinstance(cell, str) else cell for cell in row])
        Path(scratch).chmod(0o644)
        Path(scratch).replace(out)
    except OSError as error:
        Path(scratch).unlink(missing_ok=True)
        raise DataError(f"--out: {out} cannot be written ({error.strerror})") from None


def _print_scores(results: Sequence["Scoring"], *, json: bool) -> None:
    reports = [result.report for result in results]
    if json:
        print_json(reports[0] if len(reports) == 1 else {**_shared(reports[0]), "files": reports})
        return
    for report in reports:
        title = f"{report.predictions} on {report.benchmark}, rule {report.rule}"
        overall = [("all", report.n, report.correct, report.accuracy, report.scorable, report.accuracy_scorable)]
        groups = [*report.by_database.items(), *report.by_difficulty.items()]
        rows = [
            (name, group.n, group.correct, group.accuracy, group.scorable, group.accuracy_scorable)
            for name, group in groups
        ]
        print_table(title, ["", "n", "correct", "accuracy %", "gold runs", "of those %"], overall + rows)
        print_table("verdicts", ["kind", "n"], [(kind, count) for kind, count in report.by_kind.items() if count])
    if len(reports) > 1:
        rows_of_files = [(report.predictions, report.n, report.correct, report.accuracy) for report in reports]
        print_table("all files", ["predictions", "n", "correct", "accuracy %"], rows_of_files)


def _shared(report: "Report") -> dict[str, object]:
    return {"benchmark": report.benchmark, "rule": report.rule}


def _tell_missing(missing: Sequence[str], left_out: int) -> None:
    """Say on stderr what was left out: never silently."""
    if missing:
        print(
            f"left out: {left_out} questions of {len(missing)} missing databases: {', '.join(missing)}", file=sys.stderr
        )


def _tell_fenced(files: Mapping[str, Sequence[str]]) -> None:
    """Point at predictions that still wear the fence of a model's reply, which no database runs."""
    for name, sqls in files.items():
        fenced = sum("```" in sql for sql in sqls)
        if fenced:
            print(
                f"hint: {fenced} of {len(sqls)} predictions in {name} hold a ``` fence; score takes bare SQL, so write"
                " what stands between the fences",
                file=sys.stderr,
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
    with _progress_bar("checking") as on_progress:
        result = check_benchmark(here, jobs=jobs, timeout=timeout, on_progress=on_progress)
    result = replace(result, missing_databases=chosen.missing)
    _tell_missing(chosen.missing, len(chosen.cases) - len(here.cases))
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
