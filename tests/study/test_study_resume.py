"""A study killed at any moment goes on: the same tables, and no finished call sent again."""

import subprocess
import sys
from pathlib import Path

from msgspec.structs import replace

import killed_study
from sqlcrystal.ledger.folder import LogLine, Logs
from sqlcrystal.ledger.records import read_ledger
from sqlcrystal.models.recording import Recording

SCRIPT = Path(killed_study.__file__)
KILLS = 50


def play(folder: Path, kills: int) -> list[str]:
    """Run the script and return how each child ended."""
    folder.mkdir()
    command = [sys.executable, str(SCRIPT), str(folder), str(kills), "1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "Traceback" not in done.stderr, done.stderr[-2000:]
    return [line.split(maxsplit=1)[1] for line in done.stdout.splitlines()]


def test_fifty_kills_change_no_byte_of_the_tables_and_repeat_no_finished_call(tmp_path: Path) -> None:
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    assert play(whole, 0) == ["0"]
    ends = play(killed, KILLS)
    assert ends[-1] == "0"
    assert ends.count("killed") >= KILLS - 10, "the study must not be over before most kills"
    for name in ("results.csv", "results.parquet"):
        assert (killed / name).read_bytes() == (whole / name).read_bytes()
    ledger = read_ledger(whole)
    assert replace(read_ledger(killed), manifest=ledger.manifest) == ledger

    once = (whole / "asked-00.txt").read_text().split()
    asked = [path.read_text().split() for path in sorted(killed.glob("asked-*.txt"))]
    sent = [key for keys in asked for key in keys]
    assert set(sent) == set(once)
    with Recording(killed / "recording.sqlite") as recording:
        assert recording.keys() == set(once)
    # Two threads ask at once, so a kill can lose two calls under way and no more; what a child finished it recorded.
    for number, keys in enumerate(asked[:-1]):
        later = {key for other in asked[number + 1 :] for key in other}
        assert len(set(keys) & later) <= 2
        assert set(keys) & later <= set(keys[-4:])


def test_a_torn_last_line_of_a_log_is_cut_off_and_written_again(tmp_path: Path) -> None:
    lines = [
        LogLine(question=f"q{n}", database="d", text="?", sql=None, right=False, prompts=(), calls=()) for n in range(3)
    ]
    logs = Logs(tmp_path)
    for line in lines:
        logs.append("arm=1/x", line)
    [path] = tmp_path.iterdir()
    content = path.read_bytes()
    path.write_bytes(content[:-5])
    mended = Logs(tmp_path)
    for line in lines:
        mended.append("arm=1/x", line)
    assert path.read_bytes() == content


def test_a_log_keeps_an_older_line_of_a_question_that_was_answered_otherwise(tmp_path: Path) -> None:
    line = LogLine(question="q", database="d", text="?", sql=None, right=False, prompts=(), calls=())
    Logs(tmp_path).append("a", line)
    Logs(tmp_path).append("a", replace(line, sql="SELECT 1"))
    assert len((tmp_path / "a.jsonl").read_bytes().splitlines()) == 2
