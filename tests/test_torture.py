"""The fast part of `make torture`: a few tries of each torture that has no test of its own, and the table of all."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

import torture
from tortured_disks import NotHere
from tortured_lives import Toll

QUICK = [
    "SIGKILL of an import",
    "SIGKILL of a migration",
    "SIGKILL of learning from a log",
    "full disk",
    "read-only disk",
    "damaged store",
    "damaged recording",
    "damaged card file",
    "damaged log",
    "clock that jumps",
]


@pytest.mark.parametrize("name", QUICK)
def test_nothing_is_lost_in_a_few_tries(name: str) -> None:
    report = torture.apart(name, quick=True)
    if report["absent"]:
        pytest.skip(report["absent"])
    assert report["lost"] == []
    assert report["tries"] > 0


def done_but_for(progress: Path, left: Sequence[str], *, lost: str = "") -> None:
    """Write a file of progress in which all but some tortures are done, and one has lost."""
    reports = [
        {"name": name, "tries": 9, "lost": ["a card"] * (name == lost), "untried": ["an engine"] * (name == lost)}
        | {"absent": "", "seconds": 1, "load": 1.5, "run": "2026-01-01T10:00:00"}
        | {"began": "2026-01-01T10:00:00", "ended": "2026-01-01T10:05:00"}
        for name in torture.TORTURES
        if name not in left
    ]
    progress.write_text("".join(json.dumps(report) + "\n" for report in reports))


def test_a_torture_goes_on_after_those_that_are_done_and_one_loss_fails_it(tmp_path: Path) -> None:
    progress, left = tmp_path / "torture.jsonl", "damaged log"
    done_but_for(progress, [left], lost="full disk")
    with progress.open("a") as cut_off:
        cut_off.write('{"name": "damaged l')
    command = [sys.executable, torture.__file__, "--quick", "--progress", str(progress)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "in 2 runs, each going on after the one before: 5 minutes on" in done.stdout
    assert "| full disk | 9 | 8 | 1 | 1 |" in done.stdout
    assert "full disk: lost: a card" in done.stdout
    assert "full disk: not tried: an engine" in done.stdout
    assert json.loads(progress.read_text().splitlines()[-1])["name"] == left
    assert done.stderr.count("tries") == 1


def children(process: int) -> list[int]:
    found = Path(f"/proc/{process}/task").glob("*/children")
    return [int(child) for each in found for child in each.read_text().split()]


def is_running(process: int) -> bool:
    """Tell whether a process is there and at work: one that ended may stay in the table until it is asked after."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in {"Z", "X"}
    except OSError:
        return False


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="processes are looked up in Linux's table")
@pytest.mark.parametrize("by", [signal.SIGTERM, signal.SIGKILL])
def test_a_torture_that_is_ended_leaves_no_process_and_counts_nothing_that_it_did_not_finish(
    tmp_path: Path, by: signal.Signals
) -> None:
    progress, left = tmp_path / "torture.jsonl", ["SIGKILL of an import", "SIGKILL of a migration"]
    done_but_for(progress, left)
    before = progress.read_bytes()
    running = subprocess.Popen([sys.executable, torture.__file__, "--progress", str(progress)])
    ends = time.monotonic() + 120
    while len(begun := children(running.pid)) < len(left):
        assert time.monotonic() < ends
        assert running.poll() is None
        time.sleep(0.01)
    running.send_signal(by)
    assert running.wait(120) != 0
    while any(is_running(child) for child in begun):
        assert time.monotonic() < ends
        time.sleep(0.05)
    assert progress.read_bytes() == before


TESTS = """
import os, pytest
def test_one(): pass
def test_many(record_property): record_property("tries", 7)
def test_lost(record_property):
    record_property("tries", 5)
    record_property("lost", "SELECT 1: a file was written")
    record_property("lost", "SELECT 2: late")
    assert False
def test_broken(): assert 1 == 2, "a reason"
def test_cannot_begin(no_such): pass
@pytest.mark.skip(reason="no server")
def test_skipped(): pass
"""


def toll_of(folder: Path, text: str) -> Toll:
    (folder / "test_these.py").write_text(text)
    return torture.tested(folder, False, files=(str(folder / "test_these.py"),))


def test_tests_count_what_they_tried_and_name_what_was_lost_and_what_was_not_tried(tmp_path: Path) -> None:
    toll = toll_of(tmp_path, TESTS)
    assert toll.tries == 1 + 7 + 5 + 1 + 1
    assert toll.lost[:2] == ["test_lost: SELECT 1: a file was written", "test_lost: SELECT 2: late"]
    assert toll.lost[2].startswith("test_broken: AssertionError: a reason")
    assert toll.lost[3].startswith("test_cannot_begin: ")
    assert len(toll.lost) == 4
    assert toll.untried == ["test_skipped: no server"]


@pytest.mark.parametrize("text", ["", "import nothing_that_is_there", "import os\ndef test_it(): os._exit(1)"])
def test_tests_that_cannot_be_run_are_lost(tmp_path: Path, text: str) -> None:
    assert len(toll_of(tmp_path, text).lost) == 1


def test_where_all_tests_are_skipped_nothing_is_said_to_have_survived(tmp_path: Path) -> None:
    with pytest.raises(NotHere, match="no server"):
        toll_of(tmp_path, "import pytest\npytest.skip('no server', allow_module_level=True)")


def test_those_by_the_clock_and_the_long_ones_are_tortures() -> None:
    assert {*torture.ALONE, *torture.LONG} <= set(torture.TORTURES)


def test_every_test_file_that_a_torture_names_is_there() -> None:
    named = {name for tests in torture.OF_TESTS.values() for name in tests.keywords["files"]}  # type: ignore[attr-defined]
    assert not [name for name in named if not (torture.HERE / name).is_file()]
