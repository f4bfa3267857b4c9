"""Scores files for `sqlcrystal score`, and reads its plain arguments without the command-line library.

The library takes 0.16 of the 0.56 s of processor time in which a file is scored (LOG.md), which users of other
evaluators would miss. The reader takes only what it is sure of: an option by its whole name with a value that converts.
For everything else (help, a mistake, `--name=value`) it says None, and the library reads the arguments and finds the
words for the mistake.
"""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlcrystal.benchmarks.catalogue import load_benchmark
from sqlcrystal.benchmarks.evaluate import read_predictions, score_predictions
from sqlcrystal.errors import ConfigError, DataError
from sqlcrystal.escaping import csv_cell
from sqlcrystal.interfaces.cli.output import print_json, print_table, progress
from sqlcrystal.scoring.cache import GoldCache
from sqlcrystal.scoring.verdicts import rule_named

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from sqlcrystal.benchmarks.evaluate import Scoring
    from sqlcrystal.scoring.verdicts import Report

VALUES: dict[str, Callable[[str], object]] = {
    "--benchmark": str,
    "--data": Path,
    "--rule": str,
    "--out": Path,
    "--jobs": int,
    "--timeout": float,
}
LISTS = {"--databases", "--database"}
FLAGS = {"--skip-missing": "skip_missing", "--json": "json"}


def quick_score(arguments: Sequence[str]) -> dict[str, Any] | None:
    """Read the arguments of `score_files`, or give None when the library has to read them."""
    settings: dict[str, Any] = {"predictions": []}
    waiting = list(reversed(arguments))
    while waiting:
        word = waiting.pop()
        if word in FLAGS:
            settings[FLAGS[word]] = True
        elif not word.startswith("-"):
            settings["predictions"].append(Path(word))
        elif not waiting or waiting[-1].startswith("-") or not _take(settings, word, waiting.pop()):
            return None
    if not settings["predictions"] or "benchmark" not in settings:
        return None
    return settings if settings.get("jobs", 1) >= 1 and settings.get("timeout", 1.0) >= 0.001 else None


def _take(settings: dict[str, Any], option: str, value: str) -> bool:
    """Note the value of an option that is known and whose value converts."""
    name = option.removeprefix("--")
    if option in LISTS:
        settings.setdefault(name, []).append(value)
        return True
    if option not in VALUES:
        return False
    try:
        settings[name] = VALUES[option](value)
    except ValueError:
        return False
    return True


def score_files(
    predictions: Sequence[Path],
    *,
    benchmark: str,
    data: Path | None = None,
    rule: str = "bird",
    databases: Sequence[str] | None = None,
    database: Sequence[str] | None = None,
    skip_missing: bool = False,
    out: Path | None = None,
    jobs: int | None = None,
    timeout: float = 30.0,
    json: bool = False,
) -> None:
    """Score the files on the benchmark and print how they did."""
    rule_named(rule)
    if out is not None and not out.parent.is_dir():
        raise ConfigError(f"--out: there is no folder {out.parent}")
    loaded = load_benchmark(benchmark, data, databases or ())
    if not skip_missing:
        (loaded.only(database) if database else loaded).available(skip_missing=False)
    files = {str(path): read_predictions(path, loaded) for path in predictions}
    cache = GoldCache()
    try:
        with progress_bar("scoring") as on_progress:
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
    tell_missing(results[0].report.missing_databases, results[0].report.left_out)
    _tell_fenced(files)
    _print_scores(results, json=json)


@contextmanager
def progress_bar(label: str) -> Iterator[Callable[[int, int], None]]:
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


def tell_missing(missing: Sequence[str], left_out: int) -> None:
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
