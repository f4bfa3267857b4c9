"""Card-level cause: a change is asked again without each card, and cards that harm are retired by collection alone."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from sqlcrystal.config import parse_study
from sqlcrystal.errors import ConfigError
from sqlcrystal.ledger.records import Ledger, Outcome
from sqlcrystal.measurement.attribution import card_effects, flip_causes, harmful
from sqlcrystal.planning.plan import StudyPlan, plan_study
from sqlcrystal.study.design import design
from sqlcrystal.study.opening import Finished, run_study
from sqlcrystal.study.report.document import make_document
from sqlcrystal.study.report.facts import Facts
from sqlcrystal.types import CardId, Message, Sampling
from study_player import Player, draw


class Suggestible(Player):
    """A player that one card in three misleads, and one in three helps, whatever else is in the window."""

    def reply(self, messages: Sequence[Message], sampling: Sampling) -> str:
        """Right or wrong by the cards that the prompt holds."""
        user = messages[1].content
        said = super().reply(messages, sampling)
        if "Similar solved" not in user or "correcting" in messages[0].content:
            return said
        questions = [line for line in user.splitlines() if line.startswith("Q: ")]
        moods = {draw(line) % 3 for line in questions}
        case = self.cases[self.question_in(user)]
        if 0 in moods:
            return f"```sql\n{case.wrong[0]}\n```"
        return f"```sql\n{case.sql}\n```" if 1 in moods else said


NONE = {"name": "none", "retriever": "none"}
SETTINGS = ["transfer", "cause", "collection-cause"]


def study(**keys: Any) -> Any:
    document: dict[str, Any] = {
        "name": "cause",
        "benchmark": {"name": "quarry-1", "only": ["clinic", "telecom"]},
        "seeds": [42, 7],
        "max_tokens": 384,
        "default": {"name": "W0", "k": 3, "settings": SETTINGS},
        "arm": [NONE, {"name": "retired", "bank": "retire:W0"}],
        "contrast": [{"a": "none", "b": "W0", "confirmatory": True}, {"a": "W0", "b": "retired"}],
    }
    return parse_study({**document, **keys})


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    return run_study(study(), tmp_path_factory.mktemp("cause"), model=Suggestible(), jobs=2)


@pytest.fixture
def ledger(finished: Finished) -> Ledger:
    return finished.ledger


def flips(ledger: Ledger) -> dict[tuple[int, str], Outcome]:
    bare = {(row.seed, row.question): row for row in ledger.of("none", "transfer")}
    return {
        (row.seed, row.question): row
        for row in ledger.of("W0", "transfer")
        if row.right != bare[row.seed, row.question].right
    }


def test_every_change_is_asked_again_without_each_card_of_its_window(ledger: Ledger) -> None:
    changed = flips(ledger)
    asked = {(row.seed, row.question, row.without) for row in ledger.of("W0", "cause")}
    assert changed
    assert asked == {(*key, card) for key, row in changed.items() for card in row.cards}


def test_the_card_that_the_model_follows_is_found(ledger: Ledger) -> None:
    questions = {(card.seed, card.id): card.question for card in ledger.cards if card.arm == "W0"}
    causes = flip_causes(ledger.of("W0", "cause"))
    breaks = [flip for flip in causes if flip.verdict == "break"]
    assert breaks
    for flip in breaks:
        bad = [card for card in flip.window if draw(f"Q: {questions[flip.seed, card]}") % 3 == 0]
        assert flip.causes == (tuple(bad) if len(bad) == 1 else ())


def test_cards_are_retired_by_collection_questions_and_never_by_held_out_ones(ledger: Ledger) -> None:
    for seed in (42, 7):
        held_out = {row.question for row in ledger.of("none", "transfer") if row.seed == seed}
        tried = [row for row in ledger.of("W0", "collection-cause") if row.seed == seed]
        assert tried
        assert not held_out & {row.question for row in tried}
        banks = {
            arm: {card.id for card in ledger.cards if (card.arm, card.seed) == (arm, seed)} for arm in ("W0", "retired")
        }
        assert banks["retired"] == banks["W0"] - harmful(tried)
    assert any(harmful(row for row in ledger.of("W0", "collection-cause") if row.seed == seed) for seed in (42, 7))


def test_a_finished_study_is_planned_without_another_call(finished: Finished) -> None:
    plan = plan_study(study(), finished.folder / "recording.sqlite", model=Suggestible())
    assert plan.calls == 0


def shares(plan: StudyPlan) -> dict[str, float]:
    return {name: value for name, value in plan.assumptions.items() if "fixes or breaks" in name or "0.05" in name}


def guessed(plan: StudyPlan) -> float:
    return sum(work.guessed for work in plan.work if work.setting in {"cause", "collection-cause"})


def test_a_plan_before_the_first_call_says_what_it_assumes_of_changes_and_its_effect() -> None:
    plan = plan_study(study(), model=Suggestible())
    (name, share), (_, effect) = shares(plan).items()
    assert (name, share) == (
        "share of answers that memory fixes or breaks (assumed; --truth DIR takes a pilot's)",
        0.15,
    )
    assert guessed(plan) == pytest.approx(3 * effect, rel=0.05)


def test_a_plan_with_a_pilot_takes_the_share_of_changes_from_there(finished: Finished, ledger: Ledger) -> None:
    plan = plan_study(study(), model=Suggestible(), pilot=finished.folder)
    answers = len(ledger.of("W0", "transfer"))
    (name, share), (_, effect) = shares(plan).items()
    assert name.endswith(f"(pilot {finished.folder}: {len(flips(ledger))} of {answers})")
    assert share == pytest.approx(len(flips(ledger)) / answers, abs=1e-4)
    assert guessed(plan) == pytest.approx(20 * effect * share, rel=0.05)  # whole calls are told


def test_a_plan_of_a_study_begun_takes_the_share_of_changes_from_what_is_recorded(tmp_path: Path) -> None:
    begun = run_study(
        study(default={"name": "W0", "k": 3, "settings": ["transfer"]}, arm=[NONE], contrast=[]),
        tmp_path,
        model=Suggestible(),
    )
    plan = plan_study(study(seeds=[42, 7, 1]), begun.folder / "recording.sqlite", model=Suggestible())
    (name, share), _ = shares(plan).items()
    changed, answered = (int(count) for count in re.findall(r"recorded: (\d+) of (\d+)", name)[0])
    assert answered >= len(begun.ledger.of("W0", "transfer"))
    assert share == pytest.approx(changed / answered, abs=1e-4)


def test_a_plan_says_nothing_of_changes_where_no_call_depends_on_them(finished: Finished) -> None:
    assert shares(plan_study(study(), finished.folder / "recording.sqlite", model=Suggestible())) == {}


def test_a_card_is_credited_with_what_only_it_made() -> None:
    def answer(card: str, *, whole: bool, without: bool) -> Outcome:
        base: dict[str, Any] = {"arm": "W0", "setting": "cause", "seed": 1, "question": "q", "database": "d"}
        more: dict[str, Any] = {"difficulty": "", "rules": {}, "kind": "match", "sql": "", "without": CardId(card)}
        return Outcome(**base, **more, right=without, first_right=whole)

    [fixed] = flip_causes([answer("a", whole=True, without=False), answer("b", whole=True, without=True)])
    assert (fixed.verdict, fixed.window, fixed.causes) == ("fix", ("a", "b"), ("a",))
    effects = card_effects([fixed])
    assert (effects[CardId("a")].fixed, effects[CardId("b")].fixed, effects[CardId("b")].in_fixes) == (1, 0, 1)
    assert harmful([answer("a", whole=False, without=True), answer("b", whole=False, without=False)]) == {"a"}


def test_the_report_says_which_card_did_it_and_what_forgetting_is_worth(ledger: Ledger) -> None:
    document = make_document([Facts(ledger)])
    tables = {table.key: table for table in document.tables}
    fixes, breaks = tables["cause"].rows
    causes = flip_causes(ledger.of("W0", "cause"))
    assert int(breaks[1]) == sum(flip.verdict == "break" for flip in causes)
    assert int(fixes[-1]) + int(breaks[-1]) == len(ledger.of("W0", "cause"))
    assert tables["cause-cards"].rows
    before, after = tables["retirement"].rows
    assert (before[0], after[0]) == ("W0 (2 seeds, preliminary)", "retired (2 seeds, preliminary)")
    assert any(card.cause == "Without this card the change is gone." for e in document.gallery for card in e.cards)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"default": {"name": "W0", "settings": ["transfer"]}}, "add collection-cause to the settings of arm 'W0'"),
        ({"arm": [{"name": "retired", "bank": "retire:W9"}], "contrast": []}, "unknown value 'W9'; choose from W0"),
        (
            {"arm": [{"name": "none", "retriever": "none", "settings": ["cause"]}], "contrast": []},
            "cause needs a bank, and this arm has none",
        ),
        ({"contrast": [{"a": "W0", "b": "W0/replay"}]}, "add replay to its settings, or take the contrast out of the"),
        ({"contrast": [{"a": "W0", "b": "W0/cause"}]}, "asks only where memory changed the verdict"),
    ],
)
def test_what_cannot_be_tried_is_refused_with_the_way_out(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        design(study(**changes))
