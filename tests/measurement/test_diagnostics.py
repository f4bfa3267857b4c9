"""Diagnostics on small, hand-made cases whose answers can be counted on one hand."""

from math import isnan

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from sqlcrystal.measurement.attribution import audit, card_use, elements, gini, stands_in, template, trace, trace_depth
from sqlcrystal.measurement.flips import (
    breaks,
    correlation,
    drift,
    effects,
    fixes,
    observed,
    overlap,
    pair_up,
    rerun,
    stability,
    to_outcomes,
    top_share,
)
from sqlcrystal.types import CardId


class Answer(Struct, frozen=True, kw_only=True):
    question: str
    right: bool
    seed: int = 1
    database: str = "shop"
    difficulty: str = "simple"
    kind: str = "match"
    sql: str | None = "SELECT 1"
    cards: tuple[CardId, ...] = ()
    wording: int = 0


class Note(Struct, frozen=True, kw_only=True):
    question_id: str
    question: str
    sql: str
    seed: int = 1
    database: str = "shop"


def answers(bits: str, **fields: object) -> list[Answer]:
    return [Answer(question=f"q{index}", right=bit == "1", **fields) for index, bit in enumerate(bits)]  # type: ignore[arg-type]


def test_a_fix_is_wrong_then_right_and_a_break_the_other_way() -> None:
    pairs = pair_up(answers("0011"), answers("0101"))
    assert [pair.after.question for pair in fixes(pairs)] == ["q1"]
    assert [pair.after.question for pair in breaks(pairs)] == ["q2"]
    assert (to_outcomes(pairs).fixed, to_outcomes(pairs).broke) == (1, 1)


def test_questions_answered_on_one_side_only_are_not_paired() -> None:
    assert len(pair_up(answers("01"), answers("0111"))) == 2


def test_a_fix_is_stable_only_when_every_seed_agrees_and_there_are_two() -> None:
    before = [*answers("000", seed=1), *answers("00", seed=2)]
    after = [*answers("111", seed=1), *answers("10", seed=2)]
    stable = stability(pair_up(before, after))
    assert stable.stable_fixes == ("q0",)
    assert (stable.churn_fixes, stable.repeated, stable.both) == (2, 2, ())


def test_a_question_fixed_and_broken_is_named() -> None:
    stable = stability(
        pair_up([*answers("0", seed=1), *answers("1", seed=2)], [*answers("1", seed=1), *answers("0", seed=2)])
    )
    assert stable.both == ("q0",)


def test_effects_add_up_to_the_whole() -> None:
    before = [*answers("0011", database="a"), *[Answer(question=f"r{i}", right=False, database="b") for i in range(3)]]
    after = [*answers("0111", database="a"), *[Answer(question=f"r{i}", right=i == 0, database="b") for i in range(3)]]
    by_database = {effect.name: effect for effect in effects(pair_up(before, after), lambda pair: pair.after.database)}
    assert (by_database["a"].delta_pp, by_database["a"].net, by_database["b"].n) == (25.0, 1, 3)
    assert by_database["b"].after == pytest.approx(100 / 3)


def test_correlation_is_undefined_without_variation() -> None:
    assert isnan(correlation([1, 1, 1], [1, 2, 3]))
    assert correlation([1, 2, 3], [2, 4, 6]) == pytest.approx(1.0)


def test_the_top_three_of_the_paper_carry_48_percent() -> None:
    assert top_share([16, 8, 5, 7, 5, 4, 5, 5, 4, 4, -3]) == pytest.approx(48, abs=0.5)
    assert top_share([1, -2]) is None


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        ("SELECT a FROM t WHERE b = 'x'", "select A from T where B = 'other'", True),
        ("SELECT a FROM t LIMIT 1", "SELECT a FROM t LIMIT 5", True),
        ("SELECT a FROM t", "SELECT b FROM t", False),
    ],
)
def test_a_template_masks_literals_and_nothing_else(left: str, right: str, same: bool) -> None:
    assert (template(left) == template(right)) is same


def test_sql_that_cannot_be_parsed_has_no_template() -> None:
    assert template("SELECT FROM WHERE (((") is None


def test_the_audit_finds_twins_and_gives_the_lift_without_them() -> None:
    pairs = pair_up(answers("0001"), answers("1101"))
    cards = [
        Note(
            question_id="x",
            question="how many open orders are there now",
            sql="SELECT COUNT(*) FROM o WHERE s = 'open'",
        ),
        Note(question_id="q3", question="entirely different words here", sql="SELECT z FROM z"),
        Note(question_id="q2", question="elsewhere", sql="SELECT 1", database="other"),
    ]
    texts = {"q0": "How many open orders are there now?", "q1": "list the late parcels", "q2": "a", "q3": "b"}
    leakage = audit(
        pairs=pairs, cards=cards, questions=texts, right_sql={"q1": ["SELECT COUNT(*) FROM o WHERE s = 'late'"]}
    )
    assert (leakage.shared_ids, leakage.paraphrases, leakage.same_template) == (1, 1, 1)
    assert leakage.lift_pp == 50.0
    assert leakage.lift_without_paraphrases_pp == pytest.approx(100 / 3)
    assert leakage.lift_without_both_pp == 0.0


def test_elements_are_literals_limits_and_names_but_not_functions_or_aliases() -> None:
    named = elements("SELECT COUNT(t.day) FROM trips AS t WHERE t.state = '2019-09-09' LIMIT 3")
    assert named == {"day", "trips", "state", "2019-09-09", "limit 3"}


@pytest.mark.parametrize(
    ("sql", "text", "stands"),
    [
        ("SELECT a FROM b WHERE c = -7", "WHERE limit_hours != -7", True),
        ("SELECT a FROM b WHERE c = -7", "ORDER BY c LIMIT 7", False),
        ("SELECT a FROM b WHERE c = 7", "WHERE limit_hours != -7", False),
        ("SELECT a FROM b WHERE c = 7", "ORDER BY c\nLIMIT 7", False),
        ("SELECT a FROM b WHERE c = d - 7", "WHERE c < 7.5", False),
        ("SELECT a FROM b WHERE c = d - 7", "WHERE e IN (7, 2)", True),
    ],
)
def test_a_number_is_traced_as_a_value_with_its_sign(sql: str, text: str, stands: bool) -> None:
    number = next(element for element in elements(sql) if "7" in element)
    assert stands_in(number, text) is stands


def test_a_new_literal_is_traced_to_the_card_that_has_it() -> None:
    before = [Answer(question="q", right=False, sql="SELECT a FROM income WHERE day = '2019/9/14'")]
    after = [Answer(question="q", right=True, sql="SELECT a FROM income WHERE day = '2019-09-14'")]
    pairs = pair_up(before, after)
    traced = trace(pairs, lambda _: ["date = '2019-09-14'"])
    untraced = trace(pairs, lambda _: ["date = '2019-09-140'"])
    assert (traced.traced, traced.share_of_changed) == (1, 100.0)
    assert untraced.traced == 0


@pytest.mark.parametrize("literal", ["''", "' '", "'%'", "'Y'", "0", "1", "1.0", "100"])
def test_a_trivial_literal_is_no_element_that_a_card_could_teach(literal: str) -> None:
    assert elements(f"SELECT state FROM trips WHERE state = {literal}") == {"state", "trips"}


def test_an_empty_element_stands_in_no_text() -> None:
    assert not stands_in("", "SELECT 1")
    assert not stands_in(" ", "SELECT 1")


def test_a_flip_whose_only_new_element_is_the_empty_string_is_traced_to_no_card() -> None:
    pairs = pair_up(
        [Answer(question="q", right=False, sql="SELECT name FROM trips")],
        [Answer(question="q", right=True, sql="SELECT name FROM trips WHERE name <> ''")],
    )
    assert trace(pairs, lambda _: ["Q: which trips?", "SELECT name FROM trips"]).traced == 0


def test_a_flip_that_only_drops_elements_brings_nothing_new() -> None:
    pairs = pair_up(
        [Answer(question="q", right=False, sql="SELECT name FROM people LIMIT 1")],
        [Answer(question="q", right=True, sql="SELECT name FROM people")],
    )
    assert trace(pairs, lambda _: ["people"]).with_new_elements == 0


def test_a_deep_card_is_credited_only_when_no_shallow_one_has_the_element() -> None:
    pairs = pair_up(
        [Answer(question="q", right=False, sql="SELECT name FROM people")],
        [Answer(question="q", right=True, sql="SELECT surname FROM people")],
    )
    assert trace_depth(pairs, lambda _: ["x", "surname"], narrow=1).deep == 1
    assert trace_depth(pairs, lambda _: ["surname", "surname"], narrow=1).shallow == 1


def test_substitution_compares_with_the_rate_over_all_failures() -> None:
    shared = overlap(pair_up(answers("00001"), answers("11001")), answers("10001"))
    assert (shared.share, shared.base_rate, shared.enrichment) == (50.0, 25.0, 2.0)


def test_card_use_counts_windows_fixes_and_idle_cards() -> None:
    first, second, idle = CardId("1"), CardId("2"), CardId("3")
    before = answers("00")
    after = [
        Answer(question="q0", right=True, cards=(first,)),
        Answer(question="q1", right=False, cards=(first, second)),
    ]
    use = card_use(bank=[first, second, idle], answers=after, fixed=fixes(pair_up(before, after)))
    assert use.slots == 3
    assert use.in_fix_windows == pytest.approx(100 / 3)
    assert use.never_retrieved == pytest.approx(100 / 3)
    assert use.top_decile == pytest.approx(30)


@given(st.lists(st.integers(0, 50), min_size=1, max_size=40))
def test_gini_lies_between_equality_and_monopoly(counts: list[int]) -> None:
    value = gini(counts)
    assert value is None if not sum(counts) else -1e-9 <= value <= 1  # type: ignore[operator]


def test_gini_is_zero_for_equals_and_near_one_for_a_monopoly() -> None:
    assert gini([3, 3, 3]) == pytest.approx(0)
    assert gini([0] * 99 + [7]) == pytest.approx(0.99)


def test_drift_is_the_median_and_maximum_of_absolute_differences() -> None:
    runs = [
        rerun("a", pair_up(answers("0011"), answers("0010"))),
        rerun("b", pair_up(answers("0011"), answers("0011"))),
    ]
    drifted = drift(runs)
    assert drifted is not None
    assert (drifted.max_pp, drifted.median_pp, runs[0].flipped) == (25.0, 12.5, 25.0)
    assert drift([]) is None


def test_a_rerun_is_pooled_over_seeds_and_counts_even_when_nothing_flipped() -> None:
    moved = pair_up([*answers("01", seed=1), *answers("10", seed=2)], [*answers("11", seed=1), *answers("00", seed=2)])
    band = observed({"W0": moved, "none": pair_up(answers("01"), answers("01"))})
    assert band is not None
    assert [(run.name, run.difference_pp, run.flipped) for run in band.runs] == [("W0", 0.0, 50.0), ("none", 0.0, 0.0)]


def test_substitution_keeps_the_order_of_the_seeds_it_is_given() -> None:
    before = [*answers("00", seed=42), *answers("00", seed=7), *answers("00", seed=13)]
    after = [*answers("11", seed=42), *answers("10", seed=7), *answers("00", seed=13)]
    other = [*answers("10", seed=42), *answers("11", seed=7), *answers("11", seed=13)]
    assert overlap(pair_up(before, after), other, seeds=(42, 7, 13)).per_seed == (50.0, 100.0, None)


def test_the_top_tenth_is_interpolated_between_cards() -> None:
    cards = [CardId(f"c{index}") for index in range(15)]
    shown = answers("1" * 4)
    windows = [cards[:1], cards[:2], cards[:2], cards[1:3]]
    fixed = [Answer(question=row.question, right=True, cards=tuple(w)) for row, w in zip(shown, windows, strict=True)]
    use = card_use(bank=cards, answers=fixed, fixed=pair_up(answers("0000"), fixed))
    assert use.top_decile == pytest.approx(100 * (3 + 0.5 * 3) / 7)


def test_a_pair_that_cannot_be_judged_is_left_out_of_paired_tests_and_counted() -> None:
    pairs = pair_up(
        [*answers("00"), Answer(question="x", right=False, kind="unevaluable")],
        [*answers("01"), Answer(question="x", right=True)],
    )
    outcomes = to_outcomes(pairs)
    assert (len(outcomes), outcomes.fixed, outcomes.unevaluable) == (2, 1, 1)
