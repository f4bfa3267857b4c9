"""What every retriever promises, whichever way it ranks."""

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cardbox import HashingEmbedder, card
from sqlcrystal import assembly
from sqlcrystal.bank import FrozenBank
from sqlcrystal.consumption.controls import SchemaSimilar
from sqlcrystal.consumption.memory import own_cards
from sqlcrystal.consumption.retriever import Reach
from sqlcrystal.errors import ConfigError
from sqlcrystal.protocols import Retriever
from sqlcrystal.types import Card, CardId, Question

SCHEMAS = {
    "shop": "CREATE TABLE item ( name , price )",
    "store": "CREATE TABLE item ( name , cost )",
    "zoo": "CREATE TABLE animal ( species )",
}
REACH = Reach(embedder=HashingEmbedder, schema_of=SCHEMAS.__getitem__, seed=42)
RETRIEVERS: dict[str, Callable[[], Retriever]] = {
    name: partial(kind.of, REACH) for name, kind in assembly.RETRIEVERS.items()
}
CROSSING = {name for name, kind in assembly.RETRIEVERS.items() if kind.crosses_databases}

every = pytest.mark.parametrize("name", RETRIEVERS)

texts = st.sampled_from(
    ["how many items", "how many cheap items", "list the animals", "list items by price", "the", "", "ÄÖ 表 items"]
)
banks = st.lists(st.tuples(texts, st.sampled_from(sorted(SCHEMAS))), max_size=12).map(
    lambda drawn: FrozenBank(card(n, text=text, database=database) for n, (text, database) in enumerate(drawn))
)
questions = st.builds(lambda text: Question(id="q0", database="shop", text=text), texts)


def bank_of(*pairs: tuple[str, str]) -> FrozenBank:
    return FrozenBank(card(n, text=text, database=database) for n, (text, database) in enumerate(pairs))


@every
@settings(max_examples=40, deadline=None)
@given(bank=banks, question=questions, k=st.integers(0, 15))
def test_at_most_k_distinct_cards_come_best_first_and_ties_by_id(
    name: str, bank: FrozenBank, question: Question, k: int
) -> None:
    neighbours = RETRIEVERS[name]().retrieve(question, bank, k=k)
    order = [(-neighbour.score, neighbour.card.id) for neighbour in neighbours]
    assert len({neighbour.card.id for neighbour in neighbours}) == len(neighbours) <= k
    assert order == sorted(order)


@every
@settings(max_examples=40, deadline=None)
@given(bank=banks, question=questions, k=st.integers(0, 15))
def test_databases_are_crossed_only_by_those_whose_name_says_so(
    name: str, bank: FrozenBank, question: Question, k: int
) -> None:
    seen = {neighbour.card.database for neighbour in RETRIEVERS[name]().retrieve(question, bank, k=k)}
    assert ("shop" not in seen) if name in CROSSING else seen <= {"shop"}


@pytest.mark.parametrize("name", sorted(set(RETRIEVERS) - {"none"}))
@settings(max_examples=40, deadline=None)
@given(bank=banks, question=questions, k=st.integers(0, 15))
def test_every_card_in_scope_comes_up_when_k_is_wide_enough(
    name: str, bank: FrozenBank, question: Question, k: int
) -> None:
    retriever = RETRIEVERS[name]()
    scope: list[Card] = list(bank.cards("shop"))
    if name == "foreign":
        scope = [c for database in bank.databases() if database != "shop" for c in bank.cards(database)]
    elif isinstance(retriever, SchemaSimilar):
        nearest = retriever.neighbour("shop", bank)
        scope = list(bank.cards(nearest[0])) if nearest else []
    assert len(retriever.retrieve(question, bank, k=k)) == min(k, len(scope))


@every
@settings(max_examples=40, deadline=None)
@given(bank=banks, question=questions, k=st.integers(1, 15), data=st.data())
def test_excluded_cards_are_as_if_they_were_not_banked(
    name: str, bank: FrozenBank, question: Question, k: int, data: st.DataObject
) -> None:
    ids = [c.id for database in bank.databases() for c in bank.cards(database)]
    out = data.draw(st.frozensets(st.sampled_from(ids))) if ids else frozenset[CardId]()
    neighbours = RETRIEVERS[name]().retrieve(question, bank, k=k, exclude=out)
    assert not out & {neighbour.card.id for neighbour in neighbours}
    if name not in {"bm25", "schema-similar"}:  # word statistics, and which database is nearest, stay those of the bank
        rest = FrozenBank(c for database in bank.databases() for c in bank.cards(database) if c.id not in out)
        assert neighbours == RETRIEVERS[name]().retrieve(question, rest, k=k)


@every
@settings(max_examples=30, deadline=None)
@given(bank=banks, question=questions, k=st.integers(1, 15), data=st.data())
def test_the_order_of_banking_does_not_matter(
    name: str, bank: FrozenBank, question: Question, k: int, data: st.DataObject
) -> None:
    cards = [c for database in bank.databases() for c in bank.cards(database)]
    shuffled = FrozenBank(data.draw(st.permutations(cards)))
    assert RETRIEVERS[name]().retrieve(question, bank, k=k) == RETRIEVERS[name]().retrieve(question, shuffled, k=k)


@every
def test_one_id_can_be_excluded_by_itself(name: str) -> None:
    bank = bank_of(("how many items", "shop"), ("how many items", "store"))
    question = Question(id="q", database="shop", text="how many items")
    assert RETRIEVERS[name]().retrieve(question, bank, k=5, exclude=CardId("nobody")) == (
        RETRIEVERS[name]().retrieve(question, bank, k=5)
    )
    for neighbour in RETRIEVERS[name]().retrieve(question, bank, k=5):
        assert not RETRIEVERS[name]().retrieve(question, bank, k=5, exclude=neighbour.card.id)


@every
def test_a_negative_k_is_a_mistake_that_names_the_key(name: str) -> None:
    bank = bank_of(("a b", "shop"), ("a b", "store"))
    with pytest.raises(ConfigError, match=r"^k: must be 0 or more"):
        RETRIEVERS[name]().retrieve(Question(id="q", database="shop", text="a b"), bank, k=-1)


@every
def test_a_bank_without_the_database_gives_nothing(name: str) -> None:
    assert not RETRIEVERS[name]().retrieve(Question(id="q", database="shop", text="a"), FrozenBank(), k=3)


@every
def test_a_retriever_notices_that_the_bank_it_serves_has_changed(name: str) -> None:
    class Growing:
        """A bank that hands out its own list, which then grows."""

        def __init__(self) -> None:
            self.lists: dict[str, list[Card]] = {"shop": [], "store": []}

        def databases(self) -> list[str]:
            return sorted(self.lists)

        def cards(self, database: str) -> list[Card]:
            return self.lists[database]

    retriever, bank = RETRIEVERS[name](), Growing()
    question = Question(id="q", database="shop", text="how many items")
    for number in range(3):
        for database in bank.lists:
            bank.lists[database].append(card(number, database=database))
        assert len(retriever.retrieve(question, bank, k=5)) == (0 if name == "none" else number + 1)


def test_own_cards_are_all_that_came_from_the_question_in_its_database() -> None:
    mine = [card(n, question_id="asked") for n in range(2)]
    bank = FrozenBank([*mine, card(5), card(6, database="zoo", question_id="asked")])
    assert own_cards(mine[0].question, bank) == {"shop-0", "shop-1"}


def test_the_embedder_used_here_gives_unit_vectors() -> None:
    assert np.allclose(np.linalg.norm(HashingEmbedder().embed(["a", "b c", ""]), axis=1), 1)
