"""How pairs are shared among workers."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from sqlcrystal.scoring.judge import Chunk, PredictedPair, chunks_of

STATEMENTS = [f"SELECT {number}" for number in range(40)]
pairs = st.builds(
    PredictedPair, st.sampled_from(["a", "b", "c"]), st.sampled_from(STATEMENTS), st.sampled_from(STATEMENTS)
)
LOCATIONS = {name: f"/nowhere/{name}.sqlite" for name in "abc"}


def chunked(some: list[PredictedPair], jobs: int) -> list[Chunk]:
    return chunks_of({pair: place for place, pair in enumerate(dict.fromkeys(some))}, LOCATIONS, jobs)


@given(st.lists(pairs, min_size=1, max_size=150), st.integers(1, 8))
def test_every_pair_is_in_one_chunk_of_its_database(some: list[PredictedPair], jobs: int) -> None:
    tasks = [(database, place, pair) for database, tasks in chunked(some, jobs) for place, pair in tasks]
    assert sorted(place for _, place, _ in tasks) == list(range(len(set(some))))
    assert all(database == pair.database for database, _, pair in tasks)


@given(st.lists(pairs, min_size=1, max_size=150), st.integers(1, 8))
def test_no_statement_is_in_two_chunks_whatever_its_layout(some: list[PredictedPair], jobs: int) -> None:
    spaced = [pair._replace(predicted=pair.predicted.replace(" ", "\n").lower()) for pair in some]
    statements = [
        {(database, " ".join(sql.upper().split())) for _, pair in tasks for sql in (pair.gold, pair.predicted)}
        for database, tasks in chunked([*some, *spaced], jobs)
    ]
    assert sum(map(len, statements)) == len(set().union(*statements))


def test_a_large_file_is_split_and_comes_first_and_small_ones_stay_whole(tmp_path: Path) -> None:
    locations = {}
    for name, size in {"large": 4 * 2**20, "b": 1, "c": 1, "d": 1}.items():
        locations[name] = str(tmp_path / name)
        (tmp_path / name).write_bytes(bytes(size))
    some = [PredictedPair(name, f"SELECT {n}", f"SELECT {n}, 1") for name in locations for n in range(64)]
    chunks = chunks_of({pair: place for place, pair in enumerate(some)}, locations, 2)
    assert [database for database, _ in chunks] == ["large"] * 4 + ["b", "c", "d"]
