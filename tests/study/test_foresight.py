"""A plan says what its study will be able to tell, and what it will not."""

import pytest

from sqlcrystal.benchmarks.cases import Case, Split
from sqlcrystal.planning.power import foresee
from sqlcrystal.types import Question


def splits(*, databases: int, questions: int, seeds: int) -> dict[int, Split]:
    """The last third of every database held out, the same under each seed."""
    cases = [
        Case(question=Question(id=f"q{place}", database=f"d{database:02d}", text="?"), sql="SELECT 1")
        for database in range(databases)
        for place in range(questions)
    ]
    learn = tuple(case for case in cases if int(case.question.id[1:]) < 2 * questions // 3)
    held = tuple(case for case in cases if case not in learn)
    return {seed: Split(learn=learn, held_out=held) for seed in range(seeds)}


def test_a_larger_study_finds_a_smaller_lift() -> None:
    small, large = (foresee(splits(databases=count, questions=30, seeds=3)) for count in (5, 20))
    assert (small.pairs, large.pairs) == (150, 600)
    assert (large.detectable_pp or 0) < (small.detectable_pp or 0)
    assert large.warnings == ()


def test_the_papers_own_size_finds_the_papers_own_lift() -> None:
    seen = foresee(splits(databases=11, questions=139, seeds=3))
    assert seen.detectable_pp == pytest.approx(4.0, abs=0.4)


@pytest.mark.parametrize(("databases", "warning"), [(1, "one database"), (2, "2 databases")])
def test_too_few_databases_are_warned_of_beforehand(databases: int, warning: str) -> None:
    seen = foresee(splits(databases=databases, questions=30, seeds=3))
    assert seen.detectable_pp is None
    assert warning in seen.warnings[0]


def test_a_study_of_one_seed_is_warned_of_beforehand() -> None:
    assert "preliminary" in foresee(splits(databases=4, questions=30, seeds=1)).warnings[0]
