"""Tortures the promises of SECURITY.md, safety.md and privacy.md, and prints one table: torture, tries, survived, lost.

`python tests/torture.py --progress FILE` goes on after the tortures that are in the file; each runs in a process and a
folder of its own, two at a time. `--only NAME` runs one, `--quick` a few tries of each that has no tests of its own.
Exit code 1 when anything was lost.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ET
from concurrent.futures import ThreadPoolExecutor
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


def tested(folder: Path, quick: bool, *, files: tuple[str, ...]) -> Toll:
    """Run tests that torture by themselves; a skipped one was not tried."""
    report = folder / "report.xml"
    command = [sys.executable, "-m", "pytest", "-q", f"--junitxml={report}", *(str(HERE / name) for name in files)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=HERE.parent, check=False)
    if not report.exists():
        return Toll(1, [done.stdout[-500:] + done.stderr[-500:]])
    cases = [case for case in ET.parse(report).iter("testcase") if case.find("skipped") is None]
    broken = [
        f"{case.get('name')}: {' '.join(found.get('message', '').split())[:300]}"
        for case in cases
        for found in case
        if found.tag in ("failure", "error")
    ]
    return Toll(len(cases), broken)


def tests(*files: str) -> Torture:
    """Make a torture of test files."""
    return partial(tested, files=files)


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


def one(name: str, *, quick: bool) -> dict[str, Any]:
    """Run one torture here."""
    start = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="sc-torture-", dir="/tmp", ignore_cleanup_errors=True) as folder:
        try:
            toll, absent = TORTURES[name](Path(folder), quick), ""
        except NotHere as reason:
            toll, absent = Toll(0, []), str(reason)
    seconds = round(time.monotonic() - start)
    return {"name": name, "tries": toll.tries, "lost": toll.lost, "absent": absent, "seconds": seconds}


def apart(name: str, *, quick: bool) -> dict[str, Any]:
    """Run one torture in a process of its own; one that ends badly or never has lost."""
    command = [sys.executable, __file__, "--only", name, *(["--quick"] if quick else [])]
    path = os.pathsep.join([str(HERE.parent / "src"), str(HERE), os.environ.get("PYTHONPATH", "")])
    try:
        done = subprocess.run(
            command, env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True, timeout=LONGEST, check=False
        )
        document: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return {**document, "said": done.stderr[-300:]}
    except subprocess.TimeoutExpired:
        said = f"not done after {LONGEST} s"
    except (ValueError, IndexError):
        said = done.stderr[-1000:] or "it said nothing"
    return {"name": name, "tries": 1, "lost": [said], "absent": "", "seconds": 0}


def table(reports: list[dict[str, Any]]) -> str:
    """Write what was found as a table in Markdown."""
    lines = ["| torture | tries | survived | lost | seconds |", "|---|--:|--:|--:|--:|"]
    for report in reports:
        lost = len(report["lost"])
        tries = f"{report['tries']:,}" if not report["absent"] else report["absent"]
        survived = f"{max(0, report['tries'] - lost):,}"
        lines.append(f"| {report['name']} | {tries} | {survived} | {lost} | {report['seconds']} |")
    return "\n".join(lines)


def main() -> int:
    """Run what the file of progress does not hold yet, and print the table of all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--progress", type=Path, default=Path("torture.jsonl"), help="one line for each torture")
    parser.add_argument("--only", choices=TORTURES, help="run one here and print its document")
    parser.add_argument("--quick", action="store_true")
    chosen = parser.parse_args()
    if chosen.only:
        print(json.dumps(one(chosen.only, quick=chosen.quick)))
        return 0
    chosen.progress.parent.mkdir(parents=True, exist_ok=True)
    lines = chosen.progress.read_text(encoding="utf-8").splitlines() if chosen.progress.exists() else []
    known = {report["name"]: report for report in map(json.loads, lines)}
    left = [name for name in TORTURES if name not in known]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for report in pool.map(partial(apart, quick=chosen.quick), left):
            known[report["name"]] = report
            with chosen.progress.open("a", encoding="utf-8") as progress:
                print(json.dumps(report), file=progress)
            print(f"{report['name']}: {report['tries']} tries, {len(report['lost'])} lost", file=sys.stderr, flush=True)
    reports = [known[name] for name in TORTURES]
    print(table(reports), *(f"{report['name']}: {each}" for report in reports for each in report["lost"]), sep="\n")
    return 1 if any(report["lost"] for report in reports) else 0


if __name__ == "__main__":
    sys.exit(main())
