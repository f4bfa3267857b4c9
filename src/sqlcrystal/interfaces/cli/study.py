"""`sqlcrystal study`: plan a study, freeze its design, run it, go on with it, and write its report."""

import shlex
import sys
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from sqlcrystal.errors import ConfigError
from sqlcrystal.interfaces.cli.options import ApiKeyEnv, Json
from sqlcrystal.interfaces.cli.output import print_json, print_lines, print_table
from sqlcrystal.protocols import Reporter

if TYPE_CHECKING:
    from sqlcrystal.config import StudyFile
    from sqlcrystal.planning.plan import StudyPlan
    from sqlcrystal.planning.power import Foresight
    from sqlcrystal.study.opening import Finished
    from sqlcrystal.study.report.document import Document

study_app = typer.Typer(help="Controlled studies: run, plan, report.")

SECONDS_BETWEEN_LINES = 30.0
SECONDS_OF_PACE = 120.0
ROWS_ON_A_SCREEN = 12
LABELS_IN_A_LINE = 6
StudyPath = Annotated[
    Path, typer.Argument(metavar="FILE", help="A study file, a run's folder, or a bundled study: quarry, smoke, …")
]
Overrides = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Change a key of the file, e.g. seeds=[42]; may repeat."),
]
AllowEnv = Annotated[
    list[str] | None,
    typer.Option("--allow-env", metavar="NAME", help="A variable of the environment that FILE may read; may repeat."),
]
Out = Annotated[Path | None, typer.Option("--out", metavar="DIR", help="The run's folder.", show_default="runs/NAME")]


def register(app: typer.Typer) -> None:
    """Attach the group."""
    app.add_typer(study_app, name="study", no_args_is_help=True)


@study_app.command("run")
def run(
    file: StudyPath,
    *,
    out: Out = None,
    overrides: Overrides = None,
    jobs: Annotated[
        int | None, typer.Option("--jobs", min=1, help="Questions at once.", show_default="the model's slots")
    ] = None,
    engine: Annotated[str, typer.Option("--engine", help="Where models run: local or ray.")] = "local",
    until: Annotated[
        float | None,
        typer.Option("--until", metavar="MINUTES", help="Begin no question after so many minutes; run again to go on."),
    ] = None,
    api_key_env: ApiKeyEnv = None,
    allow_env: AllowEnv = None,
    json: Json = False,
) -> None:
    """Run a study, or go on with the one in DIR. Whatever is recorded is never asked again."""
    from sqlcrystal.config import read_study
    from sqlcrystal.study.opening import run_study

    read = read_study(file, overrides or (), api_key_env=api_key_env, allow_env=allow_env or ())
    study = _as_far_as_recorded(read)
    folder = out or _folder(file, study)
    with terminal_reporter() as reporter:
        finished = run_study(study, folder, jobs=jobs, engine=engine, minutes=until, reporter=reporter)
    _print_finished(finished, as_json=json)
    if finished.left_out and study.mode != "replay":  # a replay that reports what is recorded is whole
        _say_what_is_left(finished)
        raise typer.Exit(1)


def _folder(file: Path, study: "StudyFile") -> Path:
    """Name the folder of a study that is given none: the run's folder that it was named by, or its own."""
    return file if file.is_dir() else Path("runs") / study.name


def _as_far_as_recorded(study: "StudyFile") -> "StudyFile":
    """Replay a study whose embedded model is not here, and say how to go beyond what is recorded."""
    from msgspec.structs import replace

    from sqlcrystal.models.catalogue import KNOWN_MODELS, weights_path

    name = study.model if isinstance(study.model, str) else str(study.model.get("name"))
    absent = name in KNOWN_MODELS and not weights_path(name).is_file()
    if not absent or study.mode != "fill" or not any(Path(file).is_file() for file in study.recordings):
        return study
    missing = f"{name} is not here; to record more, run: sqlcrystal model pull {name}"
    typer.echo(f"replaying what is recorded: {missing}", err=True)
    return replace(study, mode="replay")


@study_app.command("plan")
def plan(
    file: StudyPath,
    *,
    out: Out = None,
    overrides: Overrides = None,
    truth: Annotated[
        Path | None, typer.Option("--truth", metavar="DIR", help="A pilot's folder: how many answers memory changed.")
    ] = None,
    allow_env: AllowEnv = None,
    json: Json = False,
) -> None:
    """Say what a study will send and cost. Counts what is recorded already; asks no model."""
    from sqlcrystal.config import read_study
    from sqlcrystal.ledger.folder import RECORDING
    from sqlcrystal.planning.plan import plan_study

    study = read_study(file, overrides or (), allow_env=allow_env or ())
    planned = plan_study(study, (out or _folder(file, study)) / RECORDING, pilot=truth)
    if json:
        print_json(planned)
        return
    typer.echo(f"{planned.study}, {planned.model}", err=True)
    _print_work(planned)
    origin = "measured in the recording" if planned.measured else "assumed, for nothing is recorded"
    typer.echo(f"pace and reply length are {origin}; a call that two arms or seeds share counts where it is first sent")
    for name, value in planned.assumptions.items():
        typer.echo(f"  {name}: {value:g}")
    _print_foresight(planned.foresight)


@study_app.command("freeze")
def freeze(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A study file.")],
    *,
    overrides: Overrides = None,
    allow_env: AllowEnv = None,
) -> None:
    """Write a design down before it is run.

    The digests of its arms, questions, prompts and contrasts go to FILE with the ending .frozen.json, with the date.
    A report then says whether it was made from this design, and what was added later.
    """
    from sqlcrystal.config import FROZEN_SUFFIX, read_study
    from sqlcrystal.study.opening import freeze_study

    target = file.with_suffix(FROZEN_SUFFIX)
    frozen = freeze_study(read_study(file, overrides or (), allow_env=allow_env or ()), target)
    parts = f"{len(frozen.arms)} arms, {len(frozen.contrasts)} contrasts, {len(frozen.prompts)} kinds of prompt"
    typer.echo(f"{target}: {parts}, digest {frozen.digest}")


@study_app.command("report")
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
        _print_report(document, folder)


def _print_report(document: "Document", folder: Path) -> None:
    """Print one screen: the three sentences, the other findings, how far the study is, and where the report lies."""
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


def _print_work(planned: "StudyPlan") -> None:
    """Print the calls of each arm in each setting, and all of them together."""
    from sqlcrystal.planning.plan import PlannedWork

    columns = ["recorded", "to send", "guessed", "tokens in", "tokens out", "minutes"]
    total = PlannedWork(
        arm="total",
        setting="",
        recorded=planned.recorded,
        known=sum(part.known for part in planned.work),
        guessed=sum(part.guessed for part in planned.work),
        prompt_tokens=planned.prompt_tokens,
        completion_tokens=planned.completion_tokens,
        minutes=planned.minutes,
        money=planned.money,
    )
    counts = ("recorded", "calls", "guessed", "prompt_tokens", "completion_tokens")
    priced = ["money"] if planned.money > 0 else []
    rows = [
        (
            *(f"{round(getattr(part, name)):,}" for name in counts),
            *(f"{getattr(part, name):,.2f}" for name in ("minutes", *priced)),
            "/".join(filter(None, (part.arm, part.setting))),
        )
        for part in (*planned.work, total)
    ]
    # The arm stands last: the only column that may be cut, and the one that grows.
    print_lines([*columns, *priced, "arm/setting"], rows)


def _print_foresight(foresight: "Foresight") -> None:
    """Print the lift that the study will be able to find."""
    detectable = ""
    if foresight.detectable_pp is not None:
        detectable = (
            f": a lift of {foresight.detectable_pp:.1f} pp is found with 80 % power,"
            " if floors and churn are like the paper's (`sqlcrystal power` says more)"
        )
    size = f"{foresight.pairs:,} held-out pairs, databases: {foresight.databases:,}, seeds: {foresight.seeds}"
    typer.echo(f"{size}{detectable}")
    for warning in foresight.warnings:
        typer.echo(f"warning: {warning}")


class Pace:
    """The pace of the last two minutes: replies from a recording say nothing about calls that are still to be sent."""

    def __init__(self, began: float) -> None:
        """Begin at a moment, with nothing done yet."""
        self._began = began
        self._steps: deque[float] = deque()

    def step(self, now: float) -> float:
        """Count one more as done; returns how many a second were."""
        self._steps.append(now)
        while self._steps[0] < now - SECONDS_OF_PACE:
            self._steps.popleft()
        return len(self._steps) / max(min(now - self._began, SECONDS_OF_PACE), 1e-9)


class TerminalReporter(Reporter):
    """Progress on stderr: a bar with rate and time left, or a plain line every half minute."""

    def __init__(self, console: Console) -> None:
        """Draw on this console."""
        self._console = console
        self._done, self._total = 0, 0
        self._last = time.monotonic()
        self._pace = Pace(self._last)
        self._bar: Progress | None = None
        self._task: TaskID | None = None
        if console.is_terminal:
            columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
            rate = TextColumn("{task.fields[rate]}")
            self._bar = Progress(*columns, rate, TimeElapsedColumn(), TimeRemainingColumn(), console=console)
            self._bar.start()

    def start(self, total: int) -> None:
        """Begin with so many units ahead."""
        self._total = total
        self._pace = Pace(time.monotonic())
        if self._bar is not None:
            self._task = self._bar.add_task("", total=total, rate="")

    def step(self, label: str) -> None:
        """Count one unit of the named batch as done."""
        self._done += 1
        now = time.monotonic()
        rate = self._pace.step(now)
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=self._done, description=label, rate=f"{rate:.2f}/s")
        elif now - self._last >= SECONDS_BETWEEN_LINES:
            self._last = now
            left = (self._total - self._done) / rate
            self._console.print(
                f"{self._done}/{self._total} units, now {label}, {rate:.2f}/s, at most {left:.0f} s left",
                soft_wrap=True,
            )

    def note(self, text: str) -> None:
        """Print a line."""
        self._console.print(text, soft_wrap=True, markup=False)

    def stop(self) -> None:
        """Take the bar away."""
        if self._bar is not None:
            self._bar.stop()


@contextmanager
def terminal_reporter() -> Iterator[TerminalReporter]:
    """Make a reporter on stderr for one command."""
    reporter = TerminalReporter(Console(stderr=True))
    try:
        yield reporter
    finally:
        reporter.stop()


def _print_finished(finished: "Finished", *, as_json: bool) -> None:
    manifest = finished.ledger.manifest
    counts: dict[tuple[str, str], list[bool]] = {}
    for row in finished.ledger.outcomes:
        counts.setdefault((row.arm, row.setting), []).append(row.right)
    table = [
        (arm, setting, len(bits), sum(bits), 100 * sum(bits) / len(bits)) for (arm, setting), bits in counts.items()
    ]
    if as_json:
        print_json(
            {
                "study": manifest.study,
                "digest": manifest.digest,
                "folder": str(finished.folder),
                "sent": finished.sent,
                "accuracy": [dict(zip(("arm", "setting", "n", "right", "percent"), row, strict=True)) for row in table],
                "left_out": finished.left_out,
            }
        )
        return
    headline = {arm.name for arm in manifest.arms if arm.name == manifest.default_arm or not arm.remembers}
    shown = table if len(table) <= ROWS_ON_A_SCREEN else [row for row in table if row[0] in headline]
    print_table(f"{manifest.study}, {manifest.model}", ["arm", "setting", "n", "right", "%"], shown)
    if len(shown) < len(table):
        typer.echo(f"and {len(table) - len(shown)} more in {finished.folder / 'results.csv'}")
    complete, planned = len(counts), len(counts) + len(finished.left_out)
    sent = f"{finished.sent} model calls sent this time"
    typer.echo(f"{finished.folder}: {complete} of {planned} arms and settings complete, {sent}")


def _say_what_is_left(finished: "Finished") -> None:
    """Name the unfinished arms, why, and the command that goes on; on stderr, and one screen at most."""
    for reason, labels in _by_reason(finished.left_out):
        listed = ", ".join(labels[:LABELS_IN_A_LINE]) + (" …" if len(labels) > LABELS_IN_A_LINE else "")
        typer.echo(f"unfinished: {listed}: {reason}", err=True)
    typer.echo(f"go on with: sqlcrystal {shlex.join(sys.argv[1:])}", err=True)


def _by_reason(left_out: dict[str, str]) -> list[tuple[str, list[str]]]:
    grouped: dict[str, list[str]] = {}
    for label, reason in left_out.items():
        grouped.setdefault(reason, []).append(label)
    return list(grouped.items())[:ROWS_ON_A_SCREEN]
