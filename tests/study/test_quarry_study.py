"""The default study, replayed from the shipped recording: what `make study` shows a newcomer."""

import hashlib
import json
from html import escape
from pathlib import Path
from typing import Any

import pytest

from sqlcrystal.config import read_study
from sqlcrystal.study.design import design
from sqlcrystal.study.opening import Finished, run_study
from sqlcrystal.study.report.write import write_report

STUDIES = Path(__file__).resolve().parents[2] / "studies"
PINNED = "5211 prompts, a7eaffd5c321a22b"
"""After a wanted change of prompts, take the new value from the test's failure, and record what is asked anew."""


NOT_RECORDED_YET = {("T4 ungated", "T4")}
"""Confirmatory contrasts whose arms wait for their recording; the report calls the study interim until it is empty."""


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    return run_study(read_study(STUDIES / "quarry.toml", ["mode=replay"]), tmp_path_factory.mktemp("quarry"))


@pytest.fixture(scope="module")
def summary(finished: Finished) -> dict[str, Any]:
    write_report(finished.folder)
    document: dict[str, Any] = json.loads((finished.folder / "summary.json").read_text(encoding="utf-8"))
    return document


def test_the_replay_asks_no_model_and_measures_every_setting(finished: Finished, summary: dict[str, Any]) -> None:
    assert finished.sent == 0
    headline = ("p0", "pm", "pk", "pe", "lift_pp", "lift_ci_pp", "cr", "cr_ci", "replay", "retention", "rerun_floor")
    assert {key: summary[key] for key in headline if summary[key] is None} == {}
    assert (summary["n_databases"], summary["seeds"]) == (10, [42, 7, 13])


def test_it_asks_exactly_the_prompts_it_asked_when_it_was_recorded(finished: Finished) -> None:
    keys = {
        call["key"]
        for log in sorted((finished.folder / "log").glob("*.jsonl"))
        for line in log.read_text(encoding="utf-8").splitlines()
        for call in json.loads(line)["calls"]
    }
    digest = hashlib.sha256("\n".join(sorted(keys)).encode()).hexdigest()
    # A changed byte asks the model anew, so it must be a decision.
    assert f"{len(keys)} prompts, {digest[:16]}" == PINNED


def test_every_confirmatory_contrast_that_is_recorded_is_there_on_three_seeds(summary: dict[str, Any]) -> None:
    confirmed = {
        (contrast["a"], contrast["b"]) for contrast in summary["contrasts"] if contrast["status"] == "confirmatory"
    }
    planned = design(read_study(STUDIES / "quarry.toml")).contrasts
    wanted = {(contrast.a, contrast.b) for contrast in planned if contrast.confirmatory}
    assert wanted - confirmed == NOT_RECORDED_YET
    assert {contrast["n"] for contrast in summary["contrasts"] if contrast["status"] == "confirmatory"} == {540}


def test_one_runtime_answered_and_what_was_added_to_the_frozen_design_is_told(finished: Finished) -> None:
    assert {row.runtime for row in finished.ledger.outcomes} == {"batched, torch 2.13.0, bfloat16"}
    frozen = finished.ledger.manifest.preregistration
    assert frozen is not None
    assert frozen.changed == ()
    assert frozen.added_arms == ("served", "served without cards")
    assert {side for contrast in frozen.added_contrasts for side in contrast.split(" vs ")} >= {"served/served"}


def test_fixes_and_breaks_that_are_luck_of_the_rows_are_named(finished: Finished, summary: dict[str, Any]) -> None:
    assert finished.ledger.lucky == ((42, "payroll-20"), (7, "orchard-26"))
    lucky = [finished.ledger.questions[question] for _, question in finished.ledger.lucky]
    shown = (finished.folder / "report" / "index.html").read_text(encoding="utf-8").partition('id="gallery"')[2]
    assert not [text for text in lucky if escape(text) in shown]


def test_repair_adds_at_least_five_points(summary: dict[str, Any]) -> None:
    assert summary["pk"] - summary["p0"] >= 5


def test_every_figure_is_drawn(finished: Finished, summary: dict[str, Any]) -> None:
    page = (finished.folder / "report" / "index.html").read_text(encoding="utf-8")
    assert page.count("<figure") >= 3


def test_the_smoke_study_is_replayed_whole_from_the_same_recording(tmp_path: Path) -> None:
    done = run_study(read_study(STUDIES / "smoke.toml", ["mode=replay"]), tmp_path)
    assert (done.sent, done.left_out) == (0, {})
