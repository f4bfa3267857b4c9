"""The fast part of `make torture`: a few tries of each torture that has no test of its own, and the table of all."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import torture

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


def test_a_torture_goes_on_after_those_that_are_done_and_one_loss_fails_it(tmp_path: Path) -> None:
    progress, left = tmp_path / "torture.jsonl", "damaged log"
    reports = [
        {"name": name, "tries": 9, "lost": ["a card"] * (name == "full disk"), "absent": "", "seconds": 1}
        for name in torture.TORTURES
        if name != left
    ]
    progress.write_text("".join(json.dumps(report) + "\n" for report in reports))
    command = [sys.executable, torture.__file__, "--quick", "--progress", str(progress)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "| full disk | 9 | 8 | 1 | 1 |" in done.stdout
    assert "full disk: a card" in done.stdout
    assert [json.loads(line)["name"] for line in progress.read_text().splitlines()][-1] == left
    assert done.stderr.count("tries") == 1


def test_every_test_file_that_a_torture_names_is_there() -> None:
    named = {name for tests in torture.OF_TESTS.values() for name in tests.keywords["files"]}  # type: ignore[attr-defined]
    assert not [name for name in named if not (torture.HERE / name).is_file()]
