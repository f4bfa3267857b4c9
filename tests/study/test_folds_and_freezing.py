"""Folds, paraphrases, runtimes and frozen designs in a whole study."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from typer.testing import CliRunner

from sqlcrystal.config import StudyFile, parse_study, read_study
from sqlcrystal.errors import ConfigError, DataError
from sqlcrystal.interfaces.cli.tree import app
from sqlcrystal.ledger.records import Ledger, Preregistration
from sqlcrystal.planning.plan import plan_study
from sqlcrystal.study.opening import freeze_study, run_study
from sqlcrystal.study.report.design_tables import conditions
from sqlcrystal.study.report.document import make_document
from sqlcrystal.study.report.facts import Facts
from sqlcrystal.study.report.write import to_report
from sqlcrystal.types import Completion, Message, Sampling
from study_player import Player

ARMS: list[dict[str, Any]] = [
    {"name": "none", "retriever": "none", "settings": ["transfer", "repair"]},
    {"name": "values", "writer": "W0-values"},
    {"name": "placebo", "writer": "W0-placebo"},
    {"name": "profile", "base": "none", "solver": "profiled"},
    {"name": "profile W0", "solver": "profiled"},
    {"name": "W0 fallback", "solver": "fallback"},
]
DOCUMENT: dict[str, Any] = {
    "name": "folded",
    "benchmark": {"name": "quarry", "only": ["clinic", "orchard", "telecom"]},
    "seeds": [42],
    "folds": 3,
    "max_tokens": 384,
    "budget": 1,
    "default": {
        "name": "W0",
        "settings": ["transfer", "replay", "retention", "rerun", "paraphrase", "paraphrase-others", "paraphrase-none"],
    },
    "arm": ARMS,
    "contrast": [
        {"a": "none", "b": "W0", "confirmatory": True},
        {"a": "none/repair", "b": "W0"},
        {"a": "W0/paraphrase-none", "b": "W0/paraphrase"},
    ],
}


class TwoRuntimes(Player):
    """Answers with cards as one program and without them as another."""

    def chat(self, messages: Sequence[Message], *, sampling: Sampling = Sampling()) -> Completion:
        """Say which program answered."""
        reply = super().chat(messages, sampling=sampling)
        runtime = "second 2.0, int8" if "[Relevant experience" in messages[1].content else "first 1.0, bfloat16"
        return msgspec.structs.replace(reply, runtime=runtime)


def folded(**changes: Any) -> StudyFile:
    return parse_study({**DOCUMENT, **changes})


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> Ledger:
    return run_study(folded(), tmp_path_factory.mktemp("run"), model=TwoRuntimes(), jobs=2).ledger


def test_every_question_is_held_out_once_and_sees_no_card_of_its_own_fold(ledger: Ledger) -> None:
    rows = ledger.of("W0", "transfer")
    assert Counter(row.question for row in rows) == Counter(row.question for row in ledger.of("none", "transfer"))
    assert set(Counter(row.question for row in rows).values()) == {1}
    assert len(rows) == 180
    fold_of = {row.question: row.seed for row in rows}
    assert set(fold_of.values()) == {1, 2, 3}
    source = {(card.seed, card.id): card.question_id for card in ledger.cards if card.arm == "W0"}
    shown = [(row.seed, source[row.seed, card]) for row in rows for card in row.cards]
    assert shown
    assert all(fold_of[question] != fold for fold, question in shown)


def test_a_report_of_folds_speaks_of_folds(ledger: Ledger) -> None:
    report = to_report(make_document([Facts(ledger)]))
    assert "3 folds drawn with seed 42: every question is held out once" in report
    assert "180 answers (question × fold)" in report
    assert "question–seed" not in report


def test_a_contrast_may_name_the_setting_of_each_side(ledger: Ledger) -> None:
    report = to_report(make_document([Facts(ledger)]))
    assert "W0 − none/repair" in report
    assert "W0/paraphrase − W0/paraphrase-none" in report


def test_paraphrases_ask_banked_questions_in_other_words(ledger: Ledger) -> None:
    own, others = ledger.of("W0", "paraphrase"), ledger.of("W0", "paraphrase-others")
    banked = {(card.seed, card.question_id) for card in ledger.cards if card.arm == "W0"}
    assert {(row.seed, row.question) for row in own} <= banked
    assert {row.wording for row in own} == {1, 2}
    source = {card.id: card.question_id for card in ledger.cards}
    assert any(source[card] == row.question for row in own for card in row.cards)
    assert not any(source[card] == row.question for row in others for card in row.cards)


def test_a_contrast_that_crosses_runtimes_says_so(ledger: Ledger) -> None:
    facts = Facts(ledger)
    assert dict(conditions(facts))["runtime"] == "first 1.0, bfloat16 and second 2.0, int8"
    report = to_report(make_document([facts]))
    assert (
        "Answered by more than one runtime (first 1.0, bfloat16; second 2.0, int8), which adds drift: W0 − none"
        in report
    )


def test_a_plan_of_folds_asks_each_question_once_an_arm(tmp_path: Path) -> None:
    planned = plan_study(folded(), tmp_path / "recording.sqlite")
    sent = {(part.arm, part.setting): part.calls for part in planned.work}
    assert sent["profile", "transfer"] == 180
    assert planned.foresight.pairs == 180


@pytest.mark.parametrize("changes", [{"folds": 1}, {"folds": 3, "seeds": [42, 7]}])
def test_folds_need_two_parts_and_one_seed(changes: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="folds: at least 2, drawn by one seed"):
        folded(**changes)


def test_a_contrast_of_settings_that_ask_other_questions_is_refused() -> None:
    from sqlcrystal.study.design import design

    with pytest.raises(ConfigError, match="do not ask the same questions"):
        design(folded(contrast=[{"a": "W0/replay", "b": "W0"}]))


# ── frozen designs ──────────────────────────────────────────────────────────────────────────────────────────────────

STUDY = """
name = "small"
benchmark = { name = "quarry", only = ["clinic"] }
seeds = [42]
budget = 1
[default]
name = "W0"
settings = ["transfer"]
[[arm]]
name = "none"
retriever = "none"
[[contrast]]
a = "none"
b = "W0"
confirmatory = true
"""
ADDED = '[[arm]]\nname = "k=1"\nk = 1\n[[contrast]]\na = "k=1"\nb = "W0"\n'


@pytest.fixture
def study_file(tmp_path: Path) -> Path:
    file = tmp_path / "small.toml"
    file.write_text(STUDY, encoding="utf-8")
    return file


def told(file: Path) -> Preregistration | None:
    return run_study(read_study(file), file.parent / "run", model=Player(), jobs=2).ledger.manifest.preregistration


def test_a_run_from_a_frozen_design_says_that_nothing_changed(study_file: Path) -> None:
    result = CliRunner().invoke(app, ["study", "freeze", str(study_file)])
    assert result.exit_code == 0
    assert "2 arms, 1 contrasts" in result.output
    frozen = told(study_file)
    assert frozen is not None
    assert (frozen.changed, frozen.added_arms, frozen.added_contrasts) == ((), (), ())


def test_what_was_added_or_changed_after_freezing_is_named(study_file: Path) -> None:
    freeze_study(read_study(study_file), study_file.with_suffix(".frozen.json"))
    study_file.write_text(STUDY.replace("budget = 1", "budget = 2") + ADDED, encoding="utf-8")
    frozen = told(study_file)
    assert frozen is not None
    assert frozen.changed == ("conditions",)
    assert (frozen.added_arms, frozen.added_contrasts) == (("k=1",), ("W0 vs k=1",))


def test_a_changed_prompt_is_named(study_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    freeze_study(read_study(study_file), study_file.with_suffix(".frozen.json"))
    from sqlcrystal.solving import prompt

    monkeypatch.setattr(prompt, "MEMORY", "[Other words]")
    frozen = told(study_file)
    assert frozen is not None
    assert frozen.changed == ("prompts of writer W0",)


def test_a_design_is_frozen_once(study_file: Path) -> None:
    target = study_file.with_suffix(".frozen.json")
    freeze_study(read_study(study_file), target)
    with pytest.raises(DataError, match="was frozen already"):
        freeze_study(read_study(study_file), target)


def test_a_study_that_was_not_frozen_says_so(study_file: Path) -> None:
    assert told(study_file) is None
