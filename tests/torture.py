"""Tortures the promises of SECURITY.md, safety.md and privacy.md, and prints one table: torture, tries, survived, lost.

`python tests/torture.py --progress FILE` goes on after the tortures that are in the file; each runs in a process and a
folder of its own. Those that hold statements to a clock come first and alone, the others two at a time. Ended by a
signal, it ends what it began. `--only NAME` runs one, `--quick` a few tries of each that has no tests of its own.
Exit code 1 when anything was lost.
"""

import argparse
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager, suppress
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import tortured_disks as disks
import tortured_lives as lives
from tortured_disks import NotHere
from tortured_lives import Toll, Torture

HERE = Path(__file__).resolve().parent
AT_ONCE = 2
LONGEST = 3600
"""Seconds that one torture may take, also on a machine that has other work."""
ENDING = 60
"""Seconds that tests which are told to end may take to stop their servers and to remove their files."""
NO_TESTS = 5
"""How pytest ends where it ran none, be it that all were skipped."""
MOST_MEMORY = 12 * 2**30
"""Bytes of addresses that each process of tests may take: what gets past a limit ends itself, not the machine."""


# ── tests that are tortures ──────────────────────────────────────────────────────────────────────────────────────────


def tested(folder: Path, quick: bool, *, files: tuple[str, ...]) -> Toll:
    """Run tests that torture by themselves, and count what they tried."""
    report = folder / "report.xml"
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-o", "junit_family=xunit1", f"--junitxml={report}"]
    command += [str(HERE / name) for name in files]
    with (folder / "said.txt").open("w+") as said:
        running = subprocess.Popen(
            command, cwd=HERE.parent, stdout=said, stderr=subprocess.STDOUT, start_new_session=True
        )
        with _ended(running, signal.SIGINT, ENDING):
            code = running.wait()
        said.seek(0)
        tail = said.read()[-1000:]
    return counted(report, "" if code in (0, NO_TESTS) else tail)


def counted(report: Path, trouble: str) -> Toll:
    """Count a report of tests: each is one try, or as many as it says; a skipped one is named and was not tried."""
    if not report.exists():
        return Toll(1, [trouble or "there is no report"])
    tries, lost, untried = 0, [], []
    for case in ET.parse(report).iter("testcase"):
        skipped = case.find("skipped")
        if skipped is not None:
            collected = skipped.get("message") != "collection skipped"  # else the reason stands below it
            untried.append(f"{case.get('name')}: {skipped.get('message') if collected else skipped.text}")
            continue
        said = [(each.get("name"), str(each.get("value"))) for each in case.iter("property")]
        tries += sum(int(value) for name, value in said if name == "tries") or 1
        own = [f"{case.get('name')}: {value}" for name, value in said if name == "lost"]
        broken = [found for found in case if found.tag in ("failure", "error")]
        lost += own or [f"{case.get('name')}: {' '.join(each.get('message', '').split())[:300]}" for each in broken[:1]]
    if trouble and not lost:
        lost.append(trouble)
    if untried and not tries and not lost:
        raise NotHere(untried[0])
    if not tries and not lost:
        return Toll(1, ["no test was found"])
    return Toll(tries, lost, untried)


def tests(*files: str) -> Torture:
    """Make a torture of test files."""
    return partial(tested, files=files)


@contextmanager
def _ended(running: "subprocess.Popen[Any]", by: signal.Signals, seconds: int) -> Iterator[None]:
    """Leave no process behind: one that still runs at the end is told to end, and killed if it takes longer."""
    try:
        yield
    finally:
        if running.poll() is None:
            running.send_signal(by)
            with suppress(subprocess.TimeoutExpired):
                running.wait(seconds)
            running.kill()
            running.wait()


# ── the tortures ─────────────────────────────────────────────────────────────────────────────────────────────────────

OWN: dict[str, Torture] = {
    "a model endpoint that misbehaves on a schedule": lives.misbehaving_model,
    "SIGKILL of a study": lives.killed_studies,
    "SIGKILL while confirming, SQLite": lives.killed_confirmations,
    "SIGKILL while confirming, PostgreSQL": lives.killed_confirmations_in_postgres,
    "SIGKILL of an import": lives.killed_imports,
    "SIGKILL of a migration": lives.killed_migrations,
    "SIGKILL of learning from a log": lives.killed_learns,
    "full disk": disks.full_disk,
    "read-only disk": disks.read_only_disk,
    "damaged store": disks.damaged_stores,
    "damaged recording": disks.damaged_recordings,
    "damaged card file": disks.damaged_card_files,
    "damaged log": disks.damaged_logs,
    "clock that jumps": disks.jumping_clock,
    "service and store crash under load; then calm": lives.soak,
}
"""What this script does itself."""
OF_TESTS: dict[str, Torture] = {
    "corpora of attacks, under canaries": tests("databases/test_attacks.py", "databases/test_outside_attack.py"),
    "limits of time and memory": tests("databases/test_limits.py", "test_bounded_streams_and_escaping.py"),
    "every route with every kind of token": tests("service/test_access.py", "service/test_tenants.py"),
    "every action through every door": tests("serving/test_one_door.py"),
    "privacy: planted values": tests("serving/test_values_never.py", "serving/test_privacy.py"),
    "poisoned memory": tests("serving/test_whose_word_stands.py", "serving/test_poisoned_cards.py"),
    "greedy, slow and leaving clients": tests("service/test_line.py", "service/test_stays_up.py"),
    "worst inputs of regular expressions": tests("test_regular_expressions.py"),
    "several processes on one store": tests("contracts/test_store_durability.py", "service/test_load.py"),
}
"""What tests do already: they are run, and counted."""
TORTURES = {**OWN, **OF_TESTS}
ALONE = ("corpora of attacks, under canaries", "limits of time and memory")
"""They hold statements to a clock, so that nothing of ours may run beside them."""
LONG = (
    "service and store crash under load; then calm",
    "SIGKILL while confirming, PostgreSQL",
    "several processes on one store",
    "SIGKILL while confirming, SQLite",
    "every route with every kind of token",
    "SIGKILL of learning from a log",
)
"""They begin first, so that none is left to run alone at the end."""


# ── one of them, and all ─────────────────────────────────────────────────────────────────────────────────────────────

LIFELINE = os.pipe()
"""The other end is with each torture that runs apart: once it is closed, they end."""


def one(name: str, *, quick: bool) -> dict[str, Any]:
    """Run one torture here."""
    start, began = time.monotonic(), now()
    with tempfile.TemporaryDirectory(prefix="sc-torture-", dir="/tmp", ignore_cleanup_errors=True) as folder:
        try:
            toll, absent = TORTURES[name](Path(folder), quick), ""
        except NotHere as reason:
            toll, absent = Toll(0, []), str(reason)
    return {
        "name": name,
        "tries": toll.tries,
        "lost": toll.lost,
        "untried": list(toll.untried),
        "absent": absent,
        "seconds": round(time.monotonic() - start),
        "began": began,
        "ended": now(),
        "load": round(os.getloadavg()[0], 1),
    }


def now() -> str:
    """Tell the time to the second."""
    return datetime.now().isoformat(timespec="seconds")


def apart(name: str, *, quick: bool) -> dict[str, Any]:
    """Run one torture in a process of its own; one that ends badly or never has lost."""
    began = now()
    command = [sys.executable, __file__, "--only", name, "--attached", *(["--quick"] if quick else [])]
    path = os.pathsep.join([str(HERE.parent / "src"), str(HERE), os.environ.get("PYTHONPATH", "")])
    running = subprocess.Popen(
        command,
        env=os.environ | {"PYTHONPATH": path},
        text=True,
        stdin=LIFELINE[0],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,  # what a terminal sends is for this script, which ends them in order
    )
    err = ""
    with _ended(running, signal.SIGTERM, 2 * ENDING):
        try:
            out, err = running.communicate(timeout=LONGEST)
            document: dict[str, Any] = json.loads(out.splitlines()[-1])
            return {**document, "said": err[-300:]}
        except subprocess.TimeoutExpired:
            said = f"not done after {LONGEST} s"
        except (ValueError, IndexError):
            said = err[-1000:] or "it said nothing"
    ended = {"seconds": 0, "began": began, "ended": now(), "load": round(os.getloadavg()[0], 1)}
    return {"name": name, "tries": 1, "lost": [said], "untried": [], "absent": "", **ended}


def _end_once(_: int, __: object) -> None:
    """End, and let no second signal disturb the cleaning up."""
    for each in (signal.SIGTERM, signal.SIGINT):
        signal.signal(each, signal.SIG_IGN)
    raise SystemExit(130)


def _attach() -> None:
    """End when the script that began this process is gone, or lets go."""
    while os.read(0, 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


def head(reports: Sequence[dict[str, Any]]) -> str:
    """Tell how these were run: when, for how long, on what, and beside how much."""
    began, ended = min(each["began"] for each in reports), max(each["ended"] for each in reports)
    runs = {each["run"] for each in reports}
    working = sum(
        (_moment(max(each["ended"] for each in reports if each["run"] == run)) - _moment(run)).total_seconds()
        for run in runs
    )
    parts = "in one run" if len(runs) == 1 else f"in {len(runs)} runs, each going on after the one before"
    loads = [each["load"] for each in reports]
    return (
        f"From {began} to {ended}, {parts}: {working / 60:.0f} minutes on {os.cpu_count()} processors, load "
        f"{min(loads)} to {max(loads)}. {AT_ONCE} at a time; alone: {', '.join(ALONE)}."
    )


_moment = datetime.fromisoformat


def table(reports: Sequence[dict[str, Any]]) -> str:
    """Write what was found as a table in Markdown."""
    lines = ["| torture | tries | survived | lost | seconds |", "|---|--:|--:|--:|--:|"]
    for report in reports:
        lost = len(report["lost"])
        tries = f"{report['tries']:,}" if not report["absent"] else report["absent"]
        survived = f"{max(0, report['tries'] - lost):,}"
        lines.append(f"| {report['name']} | {tries} | {survived} | {lost} | {report['seconds']} |")
    return "\n".join(lines)


def reports_of(left: Sequence[str], *, quick: bool) -> Iterator[dict[str, Any]]:
    """Run tortures apart and give each report as it comes: those by the clock alone, then the others."""
    for name in ALONE:
        if name in left:
            yield apart(name, quick=quick)
    rest = sorted(set(left).difference(ALONE), key=lambda name: (LONG.index(name) if name in LONG else 99, name))
    with ThreadPoolExecutor(AT_ONCE) as pool:
        coming = [pool.submit(apart, name, quick=quick) for name in rest]
        try:
            for each in as_completed(coming):
                yield each.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            os.close(LIFELINE[1])
            raise


def known_of(progress: Path) -> dict[str, dict[str, Any]]:
    """Read which tortures are done; a line that was cut off, or that does not tell its run, counts for nothing."""
    known: dict[str, dict[str, Any]] = {}
    text = progress.read_text(encoding="utf-8") if progress.exists() else ""
    if not text.endswith("\n"):
        with progress.open("a", encoding="utf-8") as whole:
            whole.write("\n")
    for line in text.splitlines():
        with suppress(ValueError, KeyError):
            report = json.loads(line)
            known[report["name"]] = {**report, "run": report["run"]}
    return known


def main() -> int:
    """Run what the file of progress does not hold yet, and print the table of all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--progress", type=Path, default=Path("torture.jsonl"), help="one line for each torture")
    parser.add_argument("--only", choices=TORTURES, help="run one here and print its document")
    parser.add_argument("--attached", action="store_true", help="end when the standard input does")
    parser.add_argument("--quick", action="store_true")
    chosen = parser.parse_args()
    signal.signal(signal.SIGTERM, _end_once)
    if chosen.attached:
        threading.Thread(target=_attach, daemon=True).start()
    if chosen.only:
        if chosen.only in OF_TESTS:
            resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
        print(json.dumps(one(chosen.only, quick=chosen.quick)))
        return 0
    chosen.progress.parent.mkdir(parents=True, exist_ok=True)
    known, run = known_of(chosen.progress), now()
    for report in reports_of([name for name in TORTURES if name not in known], quick=chosen.quick):
        known[report["name"]] = report | {"run": run}
        with chosen.progress.open("a", encoding="utf-8") as progress:
            print(json.dumps(known[report["name"]]), file=progress)
        print(
            f"{report['name']}: {report['tries']} tries, {len(report['lost'])} lost, {report['seconds']} s",
            file=sys.stderr,
            flush=True,
        )
    reports = [known[name] for name in TORTURES]
    print(head(reports), "", table(reports), sep="\n")
    print(*(f"{report['name']}: lost: {each}" for report in reports for each in report["lost"]), sep="\n")
    print(*(f"{report['name']}: not tried: {each}" for report in reports for each in report["untried"]), sep="\n")
    return 1 if any(report["lost"] for report in reports) else 0


if __name__ == "__main__":
    sys.exit(main())
