"""The tutorial of learning from a log runs as it is written."""

import re
from pathlib import Path

import logged_quarry
from serving.test_ask_tutorial import bash
from serving_endpoint import model_at, scripted_endpoint

PAGE = Path(__file__).resolve().parents[2] / "docs" / "tutorial" / "learn.md"


def test_the_tutorial_runs_from_an_empty_folder(tmp_path: Path) -> None:
    script = "\n".join(re.findall(r"```sh\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S))
    with scripted_endpoint(logged_quarry.Reader()) as server:
        shown = bash(script, tmp_path, SQLCRYSTAL_MODEL=model_at(server))
    assert "200 statements in log" in shown
    assert "webshop: 200 statements" in shown
    assert "holds what looks like a secret\tweek-" in shown
    assert re.search(r"tried before\n", shown)
    assert "webshop: 1 statements, 1 queries" in shown
    assert "3 definitions proposed from the words of its columns" in shown
    assert re.search(r"shipped\b.*orders\.status = 'shp'", shown)
    assert re.search(r"^confirmed: answer \w+ is card \w+ of webshop, by ada$", shown, re.M)
