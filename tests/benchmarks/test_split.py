"""The 70/30 split: seeded, disjoint, the same whatever the order."""

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from sqlcrystal.benchmarks.cases import SEEDS, Case, split, split_into_folds
from sqlcrystal.benchmarks.catalogue import load_benchmark
from sqlcrystal.types import Question

PAPER_HELD_OUT_OVER_THREE_SEEDS = {
    "card_games": 171,
    "codebase_community": 168,
    "formula_1": 156,
    "thrombosis_prediction": 147,
    "student_club": 141,
    "toxicology": 132,
    "european_football_2": 117,
    "superhero": 117,
    "financial": 96,
    "california_schools": 81,
    "debit_card_specializing": 57,
}

drawn_cases = st.lists(
    st.builds(
        lambda database, text, number: Case(
            question=Question(id=str(number), database=database, text=text), sql="SELECT 1"
        ),
        st.sampled_from(["zoo", "mall"]),
        st.text(max_size=3),
        st.integers(0, 10_000),
    ),
    unique_by=lambda case: (case.question.database, case.question.id),
    max_size=40,
)


@given(drawn_cases, st.integers(0, 50), st.randoms(use_true_random=False))
def test_the_split_parts_all_cases_and_ignores_their_order(cases: list[Case], seed: int, draw: object) -> None:
    parts = split(cases, seed=seed)
    key = lambda case: (case.question.database, case.question.id)  # noqa: E731
    assert sorted(map(key, parts.learn + parts.held_out)) == sorted(map(key, cases))
    for database in ("zoo", "mall"):
        size = sum(case.question.database == database for case in cases)
        assert sum(case.question.database == database for case in parts.held_out) == round(0.3 * size)
    shuffled = list(cases)
    draw.shuffle(shuffled)  # type: ignore[attr-defined]
    assert split(shuffled, seed=seed) == parts


def test_seeds_differ_and_one_database_does_not_touch_another() -> None:
    cases = [
        Case(question=Question(id=str(n), database=name, text=f"q{n}"), sql="")
        for name in ("zoo", "mall")
        for n in range(50)
    ]
    assert len({split(cases, seed=seed).held_out for seed in SEEDS}) == 3
    alone = split([case for case in cases if case.question.database == "zoo"], seed=42)
    assert alone.held_out == tuple(case for case in split(cases, seed=42).held_out if case.question.database == "zoo")


def test_the_draw_of_a_seed_never_changes() -> None:
    cases = [Case(question=Question(id=str(n), database="zoo", text=f"question {n}"), sql="") for n in range(10)]
    assert [case.question.id for case in split(cases, seed=42).held_out] == ["3", "5", "7"]


@pytest.mark.shared_data
@pytest.mark.parametrize("seed", SEEDS)
def test_bird_dev_holds_out_the_papers_counts(shared_data: Path, seed: int) -> None:
    held_out = split(load_benchmark("bird", shared_data / "bird").cases, seed=seed).held_out
    assert len(held_out) == 461
    counts = Counter(case.question.database for case in held_out)
    assert {name: 3 * count for name, count in counts.items()} == PAPER_HELD_OUT_OVER_THREE_SEEDS


@pytest.mark.shared_data
def test_spider_dev_holds_out_311_also_when_its_file_is_reordered(shared_data: Path) -> None:
    cases = load_benchmark("spider", shared_data / "spider").cases
    words = Counter((case.question.database, case.question.text) for case in split(cases, seed=7).held_out)
    assert sum(words.values()) == 311
    renumbered = [replace(case, question=replace(case.question, id=str(n))) for n, case in enumerate(reversed(cases))]
    assert Counter((c.question.database, c.question.text) for c in split(renumbered, seed=7).held_out) == words


@given(drawn_cases, st.integers(2, 6), st.integers(0, 3))
def test_folds_hold_every_question_out_exactly_once_and_never_mix_it_with_the_cards_it_sees(
    cases: list[Case], folds: int, seed: int
) -> None:
    splits = split_into_folds(cases, folds=folds, seed=seed)
    held_out = Counter(case.question.key for part in splits.values() for case in part.held_out)
    assert held_out == Counter(case.question.key for case in cases)
    for part in splits.values():
        assert not {case.question.key for case in part.learn} & {case.question.key for case in part.held_out}
        assert len(part.learn) + len(part.held_out) == len(cases)
    assert split_into_folds(cases[::-1], folds=folds, seed=seed) == splits


def test_folds_of_a_database_differ_by_at_most_one_question() -> None:
    sizes = Counter(
        (number, case.question.database)
        for number, part in split_into_folds(load_benchmark("quarry-1").cases, folds=5, seed=42).items()
        for case in part.held_out
    )
    assert set(sizes.values()) == {5, 6}
