"""The prompts of the bundled study are pinned: a changed byte asks the model anew, so it must be a decision."""

import hashlib
import json
from pathlib import Path

from sqlcrystal.config import read_study
from sqlcrystal.study.opening import run_study

STUDIES = Path(__file__).resolve().parents[2] / "studies"
PINNED = "2810 prompts, 7f800549681dd78b"
"""After a wanted change of prompts, take the new value from this test's failure, and record what is asked anew."""


def test_the_bundled_study_asks_exactly_the_prompts_it_asked_when_it_was_recorded(tmp_path: Path) -> None:
    run_study(read_study(STUDIES / "quarry.toml", ["mode=replay"]), tmp_path)
    keys = {
        call["key"]
        for log in sorted((tmp_path / "log").glob("*.jsonl"))
        for line in log.read_text(encoding="utf-8").splitlines()
        for call in json.loads(line)["calls"]
    }
    digest = hashlib.sha256("\n".join(sorted(keys)).encode()).hexdigest()
    assert f"{len(keys)} prompts, {digest[:16]}" == PINNED
