"""The controls change what they say and nothing else."""

from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cardbox import HashingEmbedder, card, render
from sqlcrystal.bank import FrozenBank
from sqlcrystal.consumption.controls import (
    Foreign,
    Mispaired,
    Random,
    SchemaSimilar,
    counts_of,
    fraction,
    matched,
    mispair,
)
from sqlcrystal.consumption.dense import Dense, Mmr, Payload
from sqlcrystal.consumption.lexical import Bm25
from sqlcrystal.errors import ConfigError
from sqlcrystal.protocols import Retriever
from sqlcrystal.types import Question

seeds = st.integers(0, 2**32)
cards_of_one_database = st.lists(st.integers(0, 6), min_size=2, max_size=30)
databases = st.dictionaries(st.sampled_from(["shop", "bar", "zoo"]), cards_of_one_database, min_size=1)


def bank_of(sqls: dict[str, list[int]]) -> FrozenBank:
    return FrozenBank(
        card(number, text=f"question {number % 4} of {number % 3}", sql=f"SELECT {sql}", database=database)
        for database, drawn in sqls.items()
        for number, sql in enumerate(drawn)
    )


@given(databases, seeds)
@settings(deadline=None)
def test_as_few_cards_as_possible_keep_their_own_sql_and_each_is_named(sqls: dict[str, list[int]], seed: int) -> None:
    bank = bank_of(sqls)
    mispaired = mispair(bank, seed=seed, render=render)
    for database in bank.databases():
        before, after = bank.cards(database), mispaired.bank.cards(database)
        fixed = {a.id for a, b in zip(before, after, strict=True) if a.sql == b.sql}
        most = max(Counter(c.sql for c in before).values())
        assert len(fixed) == max(0, 2 * most - len(before))
        assert fixed == {kept.card for kept in mispaired.kept if kept.database == database}
        assert Counter(c.sql for c in after) == Counter(c.sql for c in before)
        assert [(c.id, c.question) for c in after] == [(c.id, c.question) for c in before]
        assert all(c.text == render(c.question.text, c.sql) for c in after)


@given(st.lists(st.integers(), min_size=2, max_size=40, unique=True), seeds)
@settings(deadline=None)
def test_no_card_keeps_its_sql_where_every_sql_is_its_own(numbers: list[int], seed: int) -> None:
    bank = bank_of({"shop": numbers})
    mispaired = mispair(bank, seed=seed, render=render)
    assert mispaired.kept == ()
    assert all(giver != taker for taker, giver in mispaired.donors.items())
    assert len(set(mispaired.donors.values())) == len(numbers)


QUESTION_KEYED: dict[str, Callable[[], Retriever]] = {
    "dense": lambda: Dense(HashingEmbedder()),
    "bm25": Bm25,
    "mmr": lambda: Mmr(HashingEmbedder()),
    "random": lambda: Random(seed=4),
    "foreign": lambda: Foreign(HashingEmbedder()),
    "schema-similar": lambda: SchemaSimilar(HashingEmbedder(), str),
}


@pytest.mark.parametrize("name", QUESTION_KEYED)
@given(databases, seeds, st.integers(1, 12))
@settings(max_examples=25, deadline=None)
def test_retrieval_order_and_scores_are_those_of_the_aligned_bank(
    name: str, sqls: dict[str, list[int]], seed: int, k: int
) -> None:
    bank, retriever = bank_of(sqls), QUESTION_KEYED[name]()
    asked = Question(id="a", database="shop", text="question 2 of 1")
    aligned = retriever.retrieve(asked, bank, k=k)
    permuted = retriever.retrieve(asked, mispair(bank, seed=seed, render=render).bank, k=k)
    assert [(neighbour.card.id, neighbour.score) for neighbour in permuted] == [
        (neighbour.card.id, neighbour.score) for neighbour in aligned
    ]


@pytest.mark.parametrize("name", [*QUESTION_KEYED, "payload"])
@given(databases, seeds, st.integers(1, 12))
@settings(max_examples=25, deadline=None)
def test_swapping_after_retrieval_keeps_order_and_scores_for_any_retriever(
    name: str, sqls: dict[str, list[int]], seed: int, k: int
) -> None:
    bank, retriever = bank_of(sqls), (QUESTION_KEYED | {"payload": lambda: Payload(HashingEmbedder())})[name]()
    asked = Question(id="a", database="shop", text="question 2 of 1")
    mispaired = mispair(bank, seed=seed, render=render)
    twins = {c.id: c for database in mispaired.bank.databases() for c in mispaired.bank.cards(database)}
    aligned = retriever.retrieve(asked, bank, k=k)
    permuted = Mispaired(retriever, mispaired).retrieve(asked, bank, k=k)
    assert [(neighbour.card, neighbour.score) for neighbour in permuted] == [
        (twins[neighbour.card.id], neighbour.score) for neighbour in aligned
    ]


def test_a_lone_card_keeps_its_sql_and_the_report_says_why() -> None:
    (kept,) = mispair(FrozenBank([card(1)]), seed=1, render=render).kept
    assert kept.reason == "it is the only card of its database"


def test_a_majority_sql_is_named_as_the_reason() -> None:
    mispaired = mispair(bank_of({"shop": [1, 1, 1, 2]}), seed=1, render=render)
    assert [kept.reason for kept in mispaired.kept] == ["3 of the database's 4 cards have this SQL, more than half"] * 2


def test_another_seed_mispairs_otherwise() -> None:
    bank = bank_of({"shop": list(range(20))})
    assert mispair(bank, seed=1, render=render).donors != mispair(bank, seed=2, render=render).donors


def test_tokens_are_counted_again_when_a_counter_is_given() -> None:
    mispaired = mispair(bank_of({"shop": [1, 200]}), seed=1, render=render, count_tokens=len)
    assert all(c.tokens == len(c.text) for c in mispaired.bank.cards("shop"))


@given(databases, seeds)
@settings(deadline=None)
def test_fractions_nest_keep_the_order_and_have_their_size_in_every_database(
    sqls: dict[str, list[int]], seed: int
) -> None:
    bank = bank_of(sqls)
    smaller: FrozenBank = FrozenBank()
    for percent in (25, 50, 75, 100):
        larger = fraction(bank, percent, seed=seed)
        for database in bank.databases():
            whole, part = bank.cards(database), larger.cards(database)
            assert len(part) == len(whole) * percent // 100
            assert {c.id for c in smaller.cards(database)} <= {c.id for c in part}
            assert list(part) == [c for c in whole if c in part]
        smaller = larger
    assert smaller.digest() == bank.digest()


@pytest.mark.parametrize("percent", [-1, 101])
def test_a_fraction_outside_0_to_100_percent_is_a_mistake(percent: int) -> None:
    with pytest.raises(ConfigError, match="bank fraction"):
        fraction(FrozenBank(), percent, seed=1)


@given(databases, st.dictionaries(st.sampled_from(["shop", "bar", "zoo"]), st.integers(0, 40)), st.integers(0, 1))
@settings(deadline=None)
def test_a_matched_bank_has_the_other_banks_counts_in_file_order(
    sqls: dict[str, list[int]], counts: dict[str, int], draw: int
) -> None:
    bank = bank_of(sqls)
    reduced = matched(bank, counts, draw=draw)
    for database in bank.databases():
        whole, part = bank.cards(database), reduced.cards(database)
        assert len(part) == min(len(whole), counts.get(database, 0))
        assert list(part) == [c for c in whole if c in part]
    assert matched(bank, counts, draw=draw).digest() == reduced.digest()


def test_the_two_draws_of_a_matched_bank_differ() -> None:
    bank = bank_of({"shop": list(range(40))})
    counts = counts_of(bank_of({"shop": list(range(20))}))
    assert counts == {"shop": 20}
    assert matched(bank, counts, draw=0).digest() != matched(bank, counts, draw=1).digest()
