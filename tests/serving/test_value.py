"""What memory is worth in service: who is held out, what is compared, and when it is known."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cardbox import HashingEmbedder
from served_months import serve_month
from shop import RIGHT, build, fenced
from sqlcrystal import Crystal
from sqlcrystal.bank import AnswerRecord, CardUse, Store, Verdict
from sqlcrystal.bank.records import Judged
from sqlcrystal.config import DatabaseEntry, Prices, TeamFile
from sqlcrystal.models.scripted import ScriptedModel
from sqlcrystal.serving.asking import audited, held_out
from sqlcrystal.serving.value import Value, values
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


def service(
    place: Path, *, right_with: int, with_: int, right_without: int, without: int, share: float = 0.5, cards: int = 0
) -> Value:
    """A store with so many judged answers in each arm."""
    with Store(place) as store, store.transaction():
        arms = [(True, n < right_with) for n in range(with_)] + [(False, n < right_without) for n in range(without)]
        for number, (memory, right) in enumerate(arms):
            used = tuple(CardUse(CardId(f"c{n}"), 0.9) for n in range(cards)) if memory else ()
            record = AnswerRecord(
                id=f"a{number}",
                database="shop",
                question=f"q {number}",
                at=datetime(2026, 3, 1, tzinfo=UTC).isoformat(),
                asked_by="ada",
                memory=memory,
                share=share,
                cards=used,
                prompt_tokens=300 if memory else 200,
                calls=1,
            )
            store.answers.save(record)
            verdict = Verdict.CONFIRMED if right else Verdict.REJECTED
            store.decisions.decide(record.id, verdict, by="ada", signal="user")
    with Store(place) as store:
        (value,) = values(store, prices=Prices(prompt=1.0, completion=2.0))
        return value


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


def test_answers_that_nobody_judged_widen_the_worst_case_and_not_the_lift(tmp_path: Path) -> None:
    judged = service(tmp_path / "s.db", right_with=150, with_=200, right_without=100, without=200)
    with Store(str(tmp_path / "s.db")) as store:
        for number in range(100):
            store.answers.save(
                AnswerRecord(
                    id=f"u{number}",
                    database="shop",
                    question=f"unjudged {number}",
                    at=datetime(2026, 3, 1, tzinfo=UTC).isoformat(),
                    asked_by="ada",
                    memory=number % 2 == 0,
                    share=0.5,
                )
            )
        (value,) = values(store, prices=Prices())
    assert value.lift_ci_pp == judged.lift_ci_pp == judged.worst_case_pp
    assert value.worst_case_pp is not None
    assert value.lift_ci_pp is not None
    assert value.worst_case_pp[0] < value.lift_ci_pp[0] - 10
    assert value.worst_case_pp[1] > value.lift_ci_pp[1] + 10


def test_the_audited_lift_rests_on_the_answers_that_chance_chose(tmp_path: Path) -> None:
    service(tmp_path / "s.db", right_with=150, with_=200, right_without=100, without=200)

    def chosen(judged: Judged) -> bool:
        return audited(seed=1, database=judged.database, key=judged.question_key, day=judged.at[:10], share=0.3)

    with Store(str(tmp_path / "s.db")) as store:
        (value,) = values(store, prices=Prices(), audited=chosen)
        (alone,) = values(store, prices=Prices(), audited=lambda _: False)
    assert value.audit_lift_pp is not None
    assert value.audit_ci_pp is not None
    assert value.lift_ci_pp is not None
    assert value.audit_ci_pp[1] - value.audit_ci_pp[0] > value.lift_ci_pp[1] - value.lift_ci_pp[0]
    assert (alone.audit_lift_pp, alone.audit_ci_pp) == (None, None)


def test_nothing_held_out_is_said_to_compare_nothing(tmp_path: Path) -> None:
    value = service(tmp_path / "s.db", right_with=8, with_=10, right_without=0, without=0, share=0.0)
    assert (value.lift_pp, value.enough, value.needed) == (None, False, None)
    assert "set hold_out" in value.says


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
