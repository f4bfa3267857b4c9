"""What memory is worth in service: who is held out, what is compared, and when it is known."""

from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cardbox import HashingEmbedder
from served_months import serve_month
from shop import RIGHT, build, fenced
from sqlcrystal import Crystal
from sqlcrystal.bank import AnswerRecord, CardUse, Store, Verdict
from sqlcrystal.config import DatabaseEntry, Prices, TeamFile
from sqlcrystal.models.scripted import ScriptedModel
from sqlcrystal.serving.asking import held_out
from sqlcrystal.serving.value import Value, figures, values
from sqlcrystal.types import CardId, Message, Sampling


def helped(messages: Sequence[Message], _: Sampling) -> str:
    """A model that is right where a card is in its prompt."""
    return fenced(RIGHT if RIGHT in messages[1].content else "SELECT COUNT(*) FROM item")


def team(folder: Path, **settings: object) -> TeamFile:
    entry = DatabaseEntry(url=str(build(folder / "shop.sqlite")), **settings)  # type: ignore[arg-type]
    return TeamFile(databases={"shop": entry}, store=str(folder / "team.db"), budget=0)


def opened(folder: Path, **settings: object) -> Crystal:
    return Crystal(team(folder, **settings), model=ScriptedModel(helped), embedder=HashingEmbedder())


# ── who is held out ──────────────────────────────────────────────────────────────────────────────────────────────────


@given(st.text(max_size=30), st.floats(0, 1), st.floats(0, 1))
def test_a_larger_share_holds_out_whatever_a_smaller_one_does(question: str, first: float, second: float) -> None:
    small, large = (
        held_out(seed=1, database="shop", question=question, day="2026-03-01", share=share)
        for share in sorted((first, second))
    )
    assert large or not small


def test_the_share_is_met_over_questions_and_drawn_anew_every_day_and_for_every_seed() -> None:
    def drawn(seed: int, day: str) -> list[bool]:
        return [held_out(seed=seed, database="d", question=f"q {n}", day=day, share=0.2) for n in range(4_000)]

    first, next_day, other_seed = drawn(0, "2026-03-01"), drawn(0, "2026-03-02"), drawn(1, "2026-03-01")
    assert sum(first) == pytest.approx(800, abs=100)
    both = [sum(a and b for a, b in zip(first, other, strict=True)) for other in (next_day, other_seed)]
    assert both == pytest.approx([160, 160], abs=50)  # independent draws


def test_a_question_laid_out_otherwise_is_in_the_same_arm_all_day() -> None:
    for number in range(50):
        wordings = (f"How many {number}?", f"  how MANY   {number} ")
        arms = {held_out(seed=0, database="d", question=q, day="2026-03-01", share=0.5) for q in wordings}
        assert len(arms) == 1


def test_a_held_out_answer_looks_like_one_without_a_near_card_until_the_verdict(tmp_path: Path) -> None:
    with opened(tmp_path, hold_out=0.5) as crystal:
        crystal.correct(crystal.ask("How many hardware items are there?", memory=False), RIGHT, by="ada")
        answers = [crystal.ask(f"How many hardware items are there? ({n})") for n in range(20)]
        held = [answer for answer in answers if not crystal.store.answers.get(answer.id).memory]
        assert 3 <= len(held) <= 17
        assert all(not answer.cards and answer.offer is None for answer in held)
        assert crystal.confirm(held[0], by="ada").memory is False
        assert {crystal.store.answers.get(kept.id).share for kept in crystal.history(limit=20)} == {0.5}


def test_who_asks_with_or_without_memory_on_purpose_is_not_measured(tmp_path: Path) -> None:
    with opened(tmp_path, hold_out=0.5) as crystal:
        for memory in (True, False):
            crystal.confirm(crystal.ask("How many items?", memory=memory), by="ada")
        (value,) = crystal.value()
        assert (value.verdicts, value.with_memory, value.without_memory) == (2, None, None)


def test_both_arms_answer_and_one_is_shown(tmp_path: Path) -> None:
    with opened(tmp_path, hold_out=0.5, both_arms=True) as crystal:
        crystal.correct(crystal.ask("How many hardware items are there?", memory=False), RIGHT, by="ada")
        shown = [crystal.ask(f"How many hardware items are there? ({n})") for n in range(12)]
        assert len(crystal.history(limit=100)) == 13  # what was not shown is in no list
        assert not {answer.id for answer in shown} - {kept.id for kept in crystal.history(limit=100)}
        for answer in shown:
            if answer.sql == RIGHT:
                crystal.confirm(answer, by="ada")
            else:
                crystal.reject(answer, by="ada", repair=False)
        (value,) = crystal.value()
        with_cards = [crystal.store.answers.get(answer.id).memory for answer in shown]
        assert value.fixed == sum(with_cards)  # confirmed, and the other arm said something else
        assert value.broke == 0
        assert value.measuring_tokens > 0


def test_where_no_card_comes_up_the_second_arm_costs_nothing(tmp_path: Path) -> None:
    with opened(tmp_path, hold_out=0.5, both_arms=True) as crystal:
        crystal.confirm(crystal.ask("How many items?"), by="ada")
        (value,) = crystal.value()
        assert (value.measuring_tokens, value.fixed, value.broke) == (0, 0, 0)
        assert isinstance(crystal.workspace.model, ScriptedModel)
        assert len(crystal.workspace.model.prompts) == 2  # one arm's two views of the database


# ── what is said ─────────────────────────────────────────────────────────────────────────────────────────────────────


class Given(NamedTuple):
    """So many answers of an arm alike, right, wrong or not judged."""

    times: int
    memory: bool
    right: bool | None
    audit: bool = False
    trouble: bool | None = None
    question: str = ""


def measured(place: Path, *kinds: Given, share: float = 0.5, cards: int = 0) -> Value:
    """A store with such answers, and the figures that it gives."""
    with Store(place) as store, store.transaction():
        numbers = count()
        for kind in kinds:
            for number, _ in zip(numbers, range(kind.times), strict=False):
                used = tuple(CardUse(CardId(f"c{n}"), 0.9) for n in range(cards)) if kind.memory else ()
                record = AnswerRecord(
                    id=f"a{number}",
                    database="shop",
                    question=kind.question or f"q {number}",
                    at=datetime(2026, 3, 1, tzinfo=UTC).isoformat(),
                    asked_by="ada",
                    memory=kind.memory,
                    share=share,
                    audit=kind.audit,
                    trouble=kind.trouble,
                    cards=used,
                    prompt_tokens=300 if kind.memory else 200,
                    calls=1,
                )
                store.answers.save(record)
                if kind.right is not None:
                    verdict = Verdict.CONFIRMED if kind.right else Verdict.REJECTED
                    store.decisions.decide(record.id, verdict, by="ada", signal="user")
    with Store(place) as store:
        (value,) = values(store, prices=Prices(prompt=1.0, completion=2.0))
        return value


def service(
    place: Path, *, right_with: int, with_: int, right_without: int, without: int, share: float = 0.5, cards: int = 0
) -> Value:
    """A store with so many judged answers in each arm."""
    arms = ((True, right_with, with_), (False, right_without, without))
    kinds = [
        Given(number, memory, right)
        for memory, known, all_ in arms
        for right, number in ((True, known), (False, all_ - known))
    ]
    return measured(place, *kinds, share=share, cards=cards)


def test_a_large_lift_is_known_and_its_price_named(tmp_path: Path) -> None:
    value = service(tmp_path / "s.db", right_with=180, with_=200, right_without=100, without=200)
    assert (value.with_memory, value.without_memory, value.lift_pp) == (90.0, 50.0, 40.0)
    assert value.lift_ci_pp is not None
    assert value.lift_ci_pp[0] > 0
    assert (value.enough, value.needed) == (True, 0)
    assert value.says.startswith("Memory helps: +40.0 points")
    assert (value.overhead_tokens, value.tokens_per_right_answer) == (100, 250)
    assert value.cost_per_right_answer == pytest.approx(250e-6)


def test_few_verdicts_are_said_to_be_few_and_how_many_more_it_takes(tmp_path: Path) -> None:
    value = service(tmp_path / "s.db", right_with=8, with_=10, right_without=5, without=10)
    assert not value.enough
    assert value.needed is not None
    assert value.needed > 1_000
    assert "Not enough verdicts yet: 20 so far" in value.says
    assert f"{value.needed:,} more" in value.says


def test_a_lift_that_takes_thousands_of_verdicts_is_told_with_what_both_arms_would_take(tmp_path: Path) -> None:
    value = service(tmp_path / "s.db", right_with=8, with_=10, right_without=5, without=10)
    assert value.needed is not None
    assert value.paired_needed is not None
    assert value.paired_needed < value.needed
    assert f"both_arms = true and hold_out = 0.5 about {value.paired_needed:,} would do" in value.says


def test_before_the_first_verdict_it_is_said_how_many_it_takes(tmp_path: Path) -> None:
    value = measured(
        tmp_path / "s.db", Given(8, memory=True, right=None), Given(2, memory=False, right=None), share=0.2
    )
    assert (value.needed, value.paired_needed) == (9_339, 3_883)
    assert "Not enough verdicts yet: 0 so far; about 9,339 more" in value.says


JUDGED_ALL = [Given(*kind) for kind in ((150, True, True), (50, True, False), (100, False, True), (100, False, False))]


def test_answers_that_nobody_judged_widen_the_worst_case_and_not_the_lift(tmp_path: Path) -> None:
    judged = measured(tmp_path / "all.db", *JUDGED_ALL)
    value = measured(tmp_path / "some.db", *JUDGED_ALL, Given(50, True, None), Given(50, False, None))
    assert value.lift_ci_pp == judged.lift_ci_pp == judged.worst_case_pp
    assert (judged.unjudged, value.unjudged) == (0, 20)
    assert value.worst_case_pp is not None
    assert value.lift_ci_pp is not None
    assert value.worst_case_pp[0] < value.lift_ci_pp[0] - 10
    assert value.worst_case_pp[1] > value.lift_ci_pp[1] + 10
    assert "among the answers that were judged" in value.says
    assert "among the answers that were judged" not in judged.says


def test_a_question_asked_again_after_its_verdict_is_no_unjudged_one(tmp_path: Path) -> None:
    again = [Given(1, True, right, question="asked again") for right in (True, None, None)]
    value = measured(tmp_path / "s.db", *JUDGED_ALL, *again)
    assert value.unjudged == 0


def test_the_worst_case_is_known_where_one_share_after_the_other_was_held_out(tmp_path: Path) -> None:
    measured(tmp_path / "s.db", *JUDGED_ALL, share=0.5)
    with Store(tmp_path / "s.db") as store, store.transaction():
        for number in range(40):
            memory = number % 2 == 0
            record = AnswerRecord(
                id=f"later {number}",
                database="shop",
                question=f"later {number}",
                at="2026-03-02T00:00:00+00:00",
                asked_by="ada",
                memory=memory,
                share=0.2,
            )
            store.answers.save(record)
    with Store(tmp_path / "s.db") as store:
        (value,) = values(store, prices=Prices())
    assert value.worst_case_pp is not None
    assert value.unjudged == pytest.approx(100 * 40 / 440, abs=0.01)


def selective(*, wrong_with: int, wrong_without: int, audit: int = 0) -> list[Given]:
    """A memory worth nothing: 200 of 400 answers of either arm are right, half of which are judged, and some wrong."""
    kinds = []
    for memory, wrong in ((True, wrong_with), (False, wrong_without)):
        kinds += [Given(100, memory, True), Given(100, memory, None), Given(wrong, memory, False)]
        kinds += [Given(200 - wrong, memory, None, trouble=True)]
        kinds += [Given(audit, memory, right, audit=True) for right in (True, False)]
    return kinds


def test_a_lift_that_is_made_by_the_choice_of_what_to_judge_is_not_claimed(tmp_path: Path) -> None:
    value = measured(tmp_path / "s.db", *selective(wrong_with=25, wrong_without=100))
    assert value.lift_ci_pp is not None
    assert value.worst_case_pp is not None
    assert value.lift_ci_pp[0] > 10  # memory is worth nothing
    assert value.worst_case_pp[0] < 0 < value.worst_case_pp[1]
    assert value.selection.by_arm_pp == pytest.approx(-18.75)
    assert (value.enough, value.needed) == (False, None)
    assert value.says.startswith("Not known: +30.0 points")
    assert "audit = 0.05" in value.says
    assert value.warnings[0].startswith("Answers with memory are judged 19 points less often than the others")
    assert "not while the lift may be" in figures(value)[-1].words


def test_rates_that_differ_by_sign_of_trouble_are_a_warning(tmp_path: Path) -> None:
    kinds = [Given(90, memory, True, trouble=False) for memory in (True, False)]
    kinds += [Given(10, memory, False, trouble=True) for memory in (True, False)]
    kinds += [Given(90, memory, None, trouble=True) for memory in (True, False)]
    value = measured(tmp_path / "s.db", *kinds)
    assert value.selection.by_arm_pp is None
    assert value.selection.by_trouble_pp == pytest.approx(-90)
    assert value.warnings == (
        "Answers that show a sign of trouble are judged 90 points less often than the others, beyond chance: the lift "
        "may be that choice.",
    )


def test_the_audit_contradicts_a_lift_that_equal_verdict_rates_hide(tmp_path: Path) -> None:
    kinds = [Given(180, True, True), Given(20, True, False), Given(20, False, True), Given(180, False, False)]
    kinds += [Given(200, memory, None) for memory in (True, False)]
    kinds += [Given(40, memory, right, audit=True) for memory in (True, False) for right in (True, False)]
    value = measured(tmp_path / "s.db", *kinds)
    assert not value.selection.selective
    assert value.audit is not None
    assert (value.audit.drawn, value.audit.judged, value.audit.lift_pp) == (160, 160, 0)
    assert value.audit.lift_ci_pp is not None
    assert value.audit.lift_ci_pp[0] < 0 < value.audit.lift_ci_pp[1]
    assert value.warnings[-1].startswith("The audit does not hold the lift among judged answers")


def test_answers_that_chance_chose_and_nobody_judged_widen_the_audit_and_are_counted(tmp_path: Path) -> None:
    kinds = [Given(30, memory, right, audit=True) for memory in (True, False) for right in (True, False)]
    whole = measured(tmp_path / "whole.db", *kinds)
    value = measured(tmp_path / "some.db", *kinds, Given(6, True, None, audit=True))
    assert whole.audit is not None
    assert whole.audit.lift_ci_pp == whole.lift_ci_pp
    assert value.audit is not None
    assert value.audit.lift_ci_pp is not None
    assert whole.audit.lift_ci_pp is not None
    assert (value.audit.drawn, value.audit.judged) == (126, 120)
    assert value.audit.lift_ci_pp[0] < whole.audit.lift_ci_pp[0]
    assert value.warnings[0].startswith("6 of 126 answers that chance chose to be judged still wait")
    assert figures(value)[2].words.endswith("120 of 126 that chance chose are judged")


def test_without_an_audit_no_audited_lift_is_given(tmp_path: Path) -> None:
    value = measured(tmp_path / "s.db", *JUDGED_ALL)
    assert (value.audit, value.warnings) == (None, ())
    assert [figure.name for figure in figures(value)][:2] == ["Lift", "Fixed, broke"]


def test_nothing_held_out_is_said_to_compare_nothing(tmp_path: Path) -> None:
    value = service(tmp_path / "s.db", right_with=8, with_=10, right_without=0, without=0, share=0.0)
    assert (value.lift_pp, value.enough, value.needed) == (None, False, None)
    assert "hold_out in sqlcrystal.toml" in value.says


def test_a_card_that_stands_in_wrong_answers_is_named_as_harmful(tmp_path: Path) -> None:
    value = service(tmp_path / "s.db", right_with=20, with_=200, right_without=160, without=200, cards=1)
    (card,) = value.cards
    assert (card.card, card.used, card.right, card.says) == ("c0", 200, 20, "harms")
    assert value.says.startswith("Memory harms")


def test_asking_the_same_again_on_one_day_adds_no_observation(tmp_path: Path) -> None:
    with opened(tmp_path, hold_out=0.5) as crystal:
        for _ in range(6):
            crystal.confirm(crystal.ask("How many items?"), by="ada")
        (value,) = crystal.value()
        assert value.verdicts == 6
        assert "1 so far" in value.says


def test_a_month_through_the_whole_service_says_at_every_look_what_its_verdicts_say(tmp_path: Path) -> None:
    looks = list(serve_month(tmp_path, seed=1, lift=0.06, days=6, asked=10))
    for look in looks:
        counted = look.counted
        assert look.said.lift_pp == (None if counted.value_pp is None else round(counted.value_pp, 2))
        if counted.low_pp is not None and counted.high_pp is not None:
            assert look.said.lift_ci_pp == (round(counted.low_pp, 2), round(counted.high_pp, 2))
    assert looks[-1].said.lift_ci_pp is not None
