"""`sqlcrystal study`: run a study, go on with it, and say beforehand what it will cost."""

import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
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

from sqlcrystal.interfaces.cli.options import ApiKeyEnv
from sqlcrystal.interfaces.cli.output import print_json, print_table

if TYPE_CHECKING:
    from sqlcrystal.study.opening import Finished

study_app = typer.Typer(help="Controlled studies: run, plan, report.")

SECONDS_BETWEEN_LINES = 30.0
SECONDS_OF_PACE = 120.0
StudyPath = Annotated[Path, typer.Argument(metavar="FILE", help="A study file, e.g. studies/quarry.toml.")]
Overrides = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Change a key of the file, e.g. seeds=[42]; may repeat."),
]
Out = Annotated[Path | None, typer.Option("--out", metavar="DIR", help="The run's folder.", show_default="runs/NAME")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]


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
    json: Json = False,
) -> None:
    """Run a study, or go on with the one in DIR; whatever is recorded is never asked again."""
    from sqlcrystal.config import read_study
    from sqlcrystal.study.opening import run_study

    study = read_study(file, overrides or (), api_key_env=api_key_env)
    folder = out or Path("runs") / study.name
    with told() as reporter:
        finished = run_study(study, folder, jobs=jobs, engine=engine, minutes=until, reporter=reporter)
    _print_finished(finished, as_json=json)


@study_app.command("plan")
def plan(file: StudyPath, *, out: Out = None, overrides: Overrides = None, json: Json = False) -> None:
    """Say what a study will send and cost, after what is recorded already; asks no model."""
    from sqlcrystal.config import read_study
    from sqlcrystal.study.opening import RECORDING
    from sqlcrystal.study.plan import PlannedWork, plan_study

    study = read_study(file, overrides or ())
    planned = plan_study(study, (out or Path("runs") / study.name) / RECORDING)
    if json:
        print_json(planned)
        return
    columns = ["arm", "recorded", "to send", "guessed", "prompt tokens", "completion", "minutes"]
    total = PlannedWork(
        arm="total",
        setting="",
        recorded=planned.recorded,
        known=sum(one.known for one in planned.work),
        guessed=sum(one.guessed for one in planned.work),
        prompt_tokens=planned.prompt_tokens,
        completion_tokens=planned.completion_tokens,
        minutes=planned.minutes,
        money=planned.money,
    )
    counts = ("recorded", "calls", "guessed", "prompt_tokens", "completion_tokens")
    rows = [
        (
            "/".join(filter(None, (one.arm, one.setting))),
            *(round(getattr(one, name)) for name in counts),
            one.minutes,
            one.money,
        )
        for one in (*planned.work, total)
    ]
    priced = planned.money > 0
    shown = rows if priced else [row[:-1] for row in rows]
    print_table(f"{planned.study}, {planned.model}", [*columns, "money"] if priced else columns, shown)
    origin = "measured in the recording" if planned.measured else "assumed, for nothing is recorded"
    typer.echo(f"pace and reply length are {origin}; a call that two arms or seeds share counts where it is first sent")
    for name, value in planned.assumptions.items():
        typer.echo(f"  {name}: {value:g}")


class Pace:
    """How fast it went lately: what a recording answers at once says nothing about what is still to be asked."""

    def __init__(self, began: float) -> None:
        """Nothing is done yet."""
        self._began = began
        self._steps: deque[float] = deque()

    def step(self, now: float) -> float:
        """One more is done; how many a second were, over the last two minutes."""
        self._steps.append(now)
        while self._steps[0] < now - SECONDS_OF_PACE:
            self._steps.popleft()
        return len(self._steps) / max(min(now - self._began, SECONDS_OF_PACE), 1e-9)


class Told:
    """Progress on stderr: a bar with rate and time left, or a plain line every half minute."""

    def __init__(self, console: Console) -> None:
        """Draw on this console."""
        self._console = console
        self._lock = Lock()
        self._label, self._done, self._total = "", 0, 0
        self._last = time.monotonic()
        self._pace = Pace(self._last)
        self._bar: Progress | None = None
        self._task: TaskID | None = None
        if console.is_terminal:
            columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
            rate = TextColumn("{task.fields[rate]}")
            self._bar = Progress(*columns, rate, TimeElapsedColumn(), TimeRemainingColumn(), console=console)
            self._bar.start()

    def start(self, label: str, total: int) -> None:
        """A stretch of work begins."""
        with self._lock:
            self._label, self._done, self._total = label, 0, total
            self._pace = Pace(time.monotonic())
            if self._bar is not None:
                if self._task is not None:
                    self._bar.remove_task(self._task)
                self._task = self._bar.add_task(label, total=total, rate="")

    def step(self) -> None:
        """One question is done."""
        with self._lock:
            self._done += 1
            now = time.monotonic()
            rate = self._pace.step(now)
            if self._bar is not None and self._task is not None:
                self._bar.update(self._task, completed=self._done, rate=f"{rate:.2f}/s")
            elif now - self._last >= SECONDS_BETWEEN_LINES:
                self._last = now
                left = (self._total - self._done) / rate
                self._console.print(
                    f"{self._label}: {self._done}/{self._total}, {rate:.2f}/s, {left:.0f} s left of this stretch",
                    soft_wrap=True,
                )

    def note(self, text: str) -> None:
        """Something worth a line."""
        self._console.print(text, soft_wrap=True, markup=False)

    def stop(self) -> None:
        """Take the bar away."""
        if self._bar is not None:
            self._bar.stop()


@contextmanager
def told() -> Iterator[Told]:
    """A reporter on stderr for one command."""
    reporter = Told(Console(stderr=True))
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
    print_table(f"{manifest.study}, {manifest.model}", ["arm", "setting", "n", "right", "%"], table)
    typer.echo(
        f"{finished.folder}: {len(finished.ledger.outcomes)} answers, {finished.sent} model calls sent this time"
    )
    for label, reason in finished.left_out.items():
        typer.echo(f"left out: {label} ({reason})")
