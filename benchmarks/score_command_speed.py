"""Measures `sqlcrystal score` as its users meet it: whole commands, cold processes, against BIRD's evaluator's shape.

Each round runs both contestants one after the other, so that a busy machine slows both, and a bar is the median ratio
of the rounds. Gold is warm for `score`, which keeps it between runs; the reference has no such memory. Verdicts must be
identical, question by question. Without the real Spider data beside the checkout a synthetic benchmark is made.
"""

import csv
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from score_speed import SHARED, Files, real_data, synthetic_data, ten_files

from sqlcrystal.benchmarks.cases import Benchmark

ROUNDS, ROUNDS_OF_TEN = 9, 3
BARS = {"one file": 2.0, "ten files": 8.0}
BIRD_SHAPE = Path(__file__).with_name("bird_shape.py")


class Contest:
    """One benchmark with its files on disk, in the form in which each contestant reads them."""

    def __init__(self, benchmark: Benchmark, files: Files, folder: Path, *, name: str, data: Path) -> None:
        self._environment = {**os.environ, "SQLCRYSTAL_CACHE": str(folder / "cache")}
        # An installed package comes with its bytecode; a checkout may be told not to keep it.
        self._environment.pop("PYTHONDONTWRITEBYTECODE", None)
        self._environment["PYTHONPYCACHEPREFIX"] = str(folder / "bytecode")
        self._arguments = ["--benchmark", name, "--data", str(data)]
        self._folder = folder
        self._paths: list[tuple[Path, Path]] = []
        for title, sqls in files.items():
            ours, theirs = folder / f"{title}.json", folder / f"{title}.pairs.json"
            names = [case.question.database for case in benchmark.cases]
            answers = [f"{sql}\t----- bird -----\t{name}" for sql, name in zip(sqls, names, strict=True)]
            ours.write_text(json.dumps(dict(enumerate(answers))), encoding="utf-8")
            rows = [
                [benchmark.locations[name], sql, case.sql]
                for name, sql, case in zip(names, sqls, benchmark.cases, strict=True)
            ]
            theirs.write_text(json.dumps(rows), encoding="utf-8")
            self._paths.append((ours, theirs))

    def score(self, count: int, *more: str) -> None:
        """Our command on the first files, all at once."""
        script = "from sqlcrystal.interfaces.cli.app import main; main()"  # what the installed command runs
        command = [sys.executable, "-c", script, "score"]
        command += [str(ours) for ours, _ in self._paths[:count]]
        self._run([*command, *self._arguments, "--json", *more])

    def reference(self, count: int) -> list[int]:
        """The yardstick's command on the first files, one after the other."""
        outputs = [self._run([sys.executable, str(BIRD_SHAPE), str(theirs)]) for _, theirs in self._paths[:count]]
        return [bit for output in outputs for bit in json.loads(output)]

    def verdicts(self, count: int) -> list[int]:
        """Our verdicts on the first files, which also warms gold."""
        out = self._folder / "verdicts.csv"
        self.score(count, "--out", str(out))
        with out.open(encoding="utf-8", newline="") as rows:
            return [int(row["verdict"]) for row in csv.DictReader(rows)]

    def _run(self, command: Sequence[str]) -> str:
        done = subprocess.run(command, check=True, capture_output=True, text=True, env=self._environment)
        return done.stdout


def timed(run: Callable[[], object]) -> float:
    """Seconds a command takes."""
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def measure(contest: Contest, label: str, count: int, rounds: int) -> bool:
    """Print one bar with what was measured; whether it is met and every verdict agrees."""
    agree = contest.verdicts(count) == contest.reference(count)
    pairs = [(timed(lambda: contest.reference(count)), timed(lambda: contest.score(count))) for _ in range(rounds)]
    ratios = [theirs / ours for theirs, ours in pairs]
    reference, score = (statistics.median(column) for column in zip(*pairs, strict=True))
    met = statistics.median(ratios) >= BARS[label] and agree
    print(
        f"{'ok  ' if met else 'MISS'} {label + ', whole commands: times faster than the reference':<58}"
        f" bar {BARS[label]:.1f}  measured {statistics.median(ratios):5.2f}"
        f" ({min(ratios):.2f} to {max(ratios):.2f}; {score:.2f} s against {reference:.2f} s)"
    )
    if not agree:
        print(f"MISS verdicts differ from the reference: {label}")
    return met


def prepare(folder: Path) -> Contest:
    """The real benchmark, or a synthetic one written in the user's own format."""
    if real := real_data():
        return Contest(real[0], ten_files(real[1]), folder, name="spider", data=SHARED / "spider")
    benchmark, files = synthetic_data(folder)
    rows = [
        {"id": case.question.id, "question": case.question.text, "sql": case.sql, "database": case.question.database}
        for case in benchmark.cases
    ]
    (folder / "questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return Contest(benchmark, ten_files(files), folder, name="own", data=folder)


def main() -> int:
    """Print both bars; 0 when they are met."""
    with tempfile.TemporaryDirectory() as name:
        contest = prepare(Path(name))
        print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
        one_is_fast = measure(contest, "one file", 1, ROUNDS)
        ten_are_fast = measure(contest, "ten files", 10, ROUNDS_OF_TEN)
    return int(not (one_is_fast and ten_are_fast))


if __name__ == "__main__":
    sys.exit(main())
