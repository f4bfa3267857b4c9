"""`sqlcrystal study report`: every table and figure of a run folder, as HTML, Markdown, LaTeX, CSV and images."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sqlcrystal.errors import ConfigError
from sqlcrystal.interfaces.cli.output import print_json, print_table

if TYPE_CHECKING:
    from sqlcrystal.study.report.document import Document


def report(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A run's folder, e.g. runs/quarry.")],
    *,
    against: Annotated[
        str | None, typer.Option("--against", help="Print the study beside published figures; choose: paper.")
    ] = None,
    beside: Annotated[
        list[Path] | None,
        typer.Option("--beside", metavar="DIR", help="Another run's folder for the tables across models; may repeat."),
    ] = None,
    method: Annotated[
        str, typer.Option("--method", help="What decides status, figures and sentences: cr2, jackknife or two-stage.")
    ] = "cr2",
    recurrence: Annotated[
        float, typer.Option(min=0, max=1, help="Break-even: share of future questions that repeat a banked one.")
    ] = 0.2,
    value: Annotated[float, typer.Option(min=0, help="Break-even: what one more right answer is worth.")] = 0.01,
    prompt_price: Annotated[float, typer.Option(min=0, help="Break-even: price of a million prompt tokens.")] = 0.1,
    completion_price: Annotated[
        float, typer.Option(min=0, help="Break-even: price of a million completion tokens.")
    ] = 0.4,
    json: Annotated[bool, typer.Option("--json", help="Print summary.json and nothing else.")] = False,
) -> None:
    """Write a run's report.

    DIR/summary.json and DIR/report/ with index.html, report.md, tables/*.tex and *.csv, figures/*.
    """
    from sqlcrystal.measurement.cost import Workload
    from sqlcrystal.study.report.write import write_report

    if against not in (None, "paper"):
        raise ConfigError.unknown("--against", against, ["paper"])
    workload = Workload(
        recurrence=recurrence,
        value_per_correct=value,
        prompt_price=prompt_price,
        completion_price=completion_price,
    )
    document = write_report(
        folder, beside=beside or (), method=method, workload=workload, against_paper=against is not None
    )
    if json:
        print_json(document.summary)
    else:
        _print(document, folder)


def _print(document: "Document", folder: Path) -> None:
    """One screen: the three sentences, what else was found, how far the study is, and where the report lies."""
    words = document.sentences
    for heading, text in words.opening:
        typer.echo(f"{heading}: {text}")
    for line in (*words.more, *words.supported):
        typer.echo(f"• {line}")
    typer.echo(f"Not supported: {len(words.open)} of {len(words.open) + len(words.supported)} other comparisons.")
    if document.against:
        body = [row if len(row) > 1 else (row[0].upper(), "", "") for row in document.against.rows]
        print_table(document.against.title, document.against.columns, body)
        typer.echo(document.against.note)
    page = folder / "report" / "index.html"
    typer.echo(
        f"{page}: {len(document.tables)} tables, {len(document.figures)} figures; {document.completeness.counted}"
    )


def register(group: typer.Typer) -> None:
    """Attach the command to the study group."""
    group.command("report")(report)
