"""`sqlcrystal power` as a user runs it."""

import json
from pathlib import Path

import scoring_data
from sqlcrystal.ledger.records import write_ledger
from synthetic_ledger import synthetic_ledger


def test_the_default_plans_the_papers_own_study(tmp_path: Path) -> None:
    done = scoring_data.run_cli("power", "--studies", 60, "--json", cache=tmp_path)
    assert done.returncode == 0, done.stderr
    prospect = json.loads(done.stdout)
    assert prospect["forecast"]["n_pairs"] == 1383
    assert 0.7 < prospect["forecast"]["power"] < 0.95
    assert prospect["needed"]["databases"] <= 11
    assert [interval["method"] for interval in prospect["expected"]] == ["cr2", "two-stage"]
    assert prospect["effort"]["hours"] is None


def test_a_pilot_is_planned_by_and_its_figure_is_written(tmp_path: Path) -> None:
    pilot = tmp_path / "run"
    pilot.mkdir()
    write_ledger(synthetic_ledger(only=("none", "W0")), pilot)
    wanted = ("--truth", pilot, "--effect", 3, "--databases", 30, "--out", tmp_path / "plan", "--studies", 60)
    done = scoring_data.run_cli("power", *wanted, cache=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "30 databases" in done.stdout
    assert "+3.00 pp" in done.stdout
    assert {path.name for path in (tmp_path / "plan").iterdir()} == {
        *("power.json", "power.svg", "power.png", "power.pdf")
    }


def test_what_is_neither_the_paper_nor_a_run_is_named(tmp_path: Path) -> None:
    done = scoring_data.run_cli("power", "--truth", tmp_path / "nowhere", cache=tmp_path)
    assert done.returncode == 2
    assert "--truth" in done.stderr
