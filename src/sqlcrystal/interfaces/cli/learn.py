"""`sqlcrystal learn`: a team's query log, proposed for the queue."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sqlcrystal.escaping import visible
from sqlcrystal.interfaces.cli.options import ApiKeyEnv, Db, Json, Model, Name, Where, opened_crystal, ready_model
from sqlcrystal.interfaces.cli.output import print_json, print_lines

if TYPE_CHECKING:
    from sqlcrystal.serving.learning import LearnReport, Tried

_LINES_APART = 25
"""One line of progress for so many queries, on a standard error that is no terminal."""


def register(app: typer.Typer) -> None:
    """Attach the command."""
    app.command()(learn)


def learn(
    source: Annotated[
        str,
        typer.Argument(
            metavar="FROM",
            help="A .sql, .csv, .tsv, .json or .jsonl file, a folder of them, a dbt project, or pg_stat_statements.",
        ),
    ],
    *,
    db: Db = None,
    name: Name = None,
    model: Model = None,
    api_key_env: ApiKeyEnv = None,
    limit: Annotated[
        int | None, typer.Option("--limit", min=1, help="Try at most so many queries, the most used first.")
    ] = None,
    dbt: Annotated[
        bool,
        typer.Option("--dbt", help="FROM is a dbt project: propose definitions from its columns' words, too."),
    ] = False,
    again: Annotated[bool, typer.Option("--again", help="Try once more what was tried and did not lead back.")] = False,
    store: Where = None,
    json: Json = False,
) -> None:
    """Propose cards from queries that were run.

    The model writes the question of each; if that, asked again, leads back to the query's rows, it waits in the queue.
    Nothing is a card before a person confirms it. Ended at any time, the same command goes on where it stood.
    """
    with opened_crystal(store, db=db, name=name, model=model, api_key_env=api_key_env) as (crystal, database):
        ready_model(crystal.model_spec)
        if dbt:  # first, as it asks no model, and says at once where there is no project
            defined = crystal.propose_definitions(database, source=Path(source))
        with _Watched() as watched:
            report = crystal.learn(
                source if source == "pg_stat_statements" else Path(source),
                database,
                again=again,
                most=limit,
                watch=watched.step,
            )
    if json:
        print_json(report)
        return
    _print(report)
    if dbt:
        print(
            f"{len(defined)} definitions proposed from the words of its columns: sqlcrystal definitions list --proposed"
        )


class _Watched:
    """Progress on standard error: a bar in a terminal, elsewhere a line now and then."""

    def __enter__(self) -> "_Watched":
        """Begin to show it."""
        from sqlcrystal.interfaces.cli.output import progress

        self._bar = progress()
        self._bar.start()
        self._task = self._bar.add_task("queries", total=None)
        return self

    def __exit__(self, *_: object) -> None:
        """End it."""
        self._bar.stop()

    def step(self, step: "Tried") -> None:
        """Show one more query that was tried."""
        self._bar.update(self._task, total=step.whole, completed=step.done)
        if not self._bar.console.is_terminal and (step.done % _LINES_APART == 0 or step.done == step.whole):
            typer.echo(f"{step.done} of {step.whole} queries tried", err=True)


def _print(report: "LearnReport") -> None:
    print(f"{report.database}: {report.read} statements, {report.shapes} queries that differ in more than literals")
    told = [
        (report.proposed, "proposed: their questions led back to their rows"),
        (report.banked, "banked by their round trip, as the settings allow"),
        (report.lost, "not proposed: their questions did not lead back, or are another query's"),
        (report.known, "tried before"),
        (report.left, "left for the next time: the same command goes on"),
    ]
    for count, words in told:
        if count:
            print(f"{count:6}  {words}")
    if report.refused:
        print("\nnot learned from:")
        print_lines(
            ["count", "reason", "for example"],
            [(refused.count, refused.reason, visible(", ".join(refused.places))) for refused in report.refused],
        )
    if report.proposed:
        print("\nread and confirm them: sqlcrystal serve, then Queue, From the query log; or: sqlcrystal queue")
