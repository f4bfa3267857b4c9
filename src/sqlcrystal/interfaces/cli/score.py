"""`sqlcrystal score`: rate anybody's prediction files."""

from pathlib import Path
from typing import Annotated

import typer

from sqlcrystal.interfaces.cli.scoring import score_files

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
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]


def register(app: typer.Typer) -> None:
    """Attach the command."""
    app.command("score")(score)


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
    as_json: AsJson = False,
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
        as_json=as_json,
    )
