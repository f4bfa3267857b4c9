"""How each retriever ranks, and that it embeds and indexes no more than it must."""

import hashlib
import os
import random
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

from cardbox import HashingEmbedder, card
from sqlcrystal.bank import CardStore, FrozenBank
from sqlcrystal.consumption.controls import Foreign, Random, SchemaSimilar
from sqlcrystal.consumption.dense import Dense, Mmr, Payload, Vectors
from sqlcrystal.consumption.lexical import Bm25
from sqlcrystal.consumption.retriever import GENERATIONS, Snapshots
from sqlcrystal.types import Card, CardId, CardStatus, Question, Retrieved

WORDS = ("cheap", "items", "animals", "orders", "late", "paid")
QUESTION = Question(id="asked", database="shop", text="how many cheap items")


def ids(neighbours: Sequence[Retrieved]) -> list[str]:
    return [neighbour.card.id for neighbour in neighbours]


@pytest.fixture
def bank() -> FrozenBank:
    return FrozenBank(
        [
            card(1, text="list the animals"),
            card(2, text="how many items", sql="SELECT cheap FROM items"),
            card(3, text="how many cheap items"),
            card(4, text="how many cheap items", sql="SELECT 44"),
            card(1, text="how many cheap items", database="zoo"),
            card(2, text="how many cheap items are there", database="store"),
        ]
    )


def test_dense_ranks_by_the_cosine_of_question_to_question(bank: FrozenBank) -> None:
    neighbours = Dense(HashingEmbedder()).retrieve(QUESTION, bank, k=4)
    assert ids(neighbours) == ["shop-3", "shop-4", "shop-2", "shop-1"]
    vectors = HashingEmbedder().embed([QUESTION.text, "how many items"])
    assert neighbours[0].score == 1.0
    assert neighbours[2].score == pytest.approx(float(vectors[0] @ vectors[1]), abs=1e-6)


def test_equal_questions_tie_whatever_their_row_and_neighbours() -> None:
    rng = np.random.default_rng(0)

    class Noise:
        name = digest = "noise"

        def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
            seeds = [int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big") for text in texts]
            rows = np.stack([np.random.default_rng(seed).normal(size=257) for seed in seeds]).astype(np.float32)
            unit: NDArray[np.float32] = rows / np.linalg.norm(rows, axis=1, keepdims=True)
            return unit

        def close(self) -> None:
            pass

    numbers = rng.permutation(300)
    bank = FrozenBank(card(f"{n:03}", text="twin" if n % 50 == 0 else f"other {n}") for n in numbers)
    neighbours = Dense(Noise()).retrieve(Question(id="q", database="shop", text="something else"), bank, k=300)
    twins = [neighbour for neighbour in neighbours if neighbour.card.question.text == "twin"]
    assert len({neighbour.score for neighbour in twins}) == 1
    assert ids(twins) == sorted(ids(twins))


def test_each_text_is_embedded_once_however_many_retrievers_questions_and_changes(tmp_path: Path) -> None:
    embedder = HashingEmbedder()
    vectors = Vectors(embedder)
    dense, mmr, foreign = Dense(vectors), Mmr(vectors), Foreign(vectors)
    with CardStore(tmp_path / "bank.sqlite") as store:
        for number in range(5):
            store.add(card(number))
            store.add(card(number, database="bar"))
            for retriever in (dense, mmr, foreign):
                retriever.retrieve(QUESTION, store, k=3)
    assert len(embedder.embedded) == len(set(embedder.embedded)) == 6


def test_an_index_is_built_once_per_snapshot_and_again_when_the_bank_changes(tmp_path: Path) -> None:
    built: list[int] = []
    snapshots = Snapshots(lambda cards: built.append(len(cards)))
    with CardStore(tmp_path / "bank.sqlite") as store:
        store.add(card(1))
        for _ in range(3):
            snapshots.index(store.cards("shop"))
        store.add(card(1, database="bar"))
        snapshots.index(store.cards("shop"))
        assert built == [1]
        store.add(card(2))
        snapshots.index(store.cards("shop"))
    assert built == [1, 2]


def test_old_indexes_are_forgotten_before_they_fill_the_memory() -> None:
    built: list[int] = []
    snapshots = Snapshots(lambda cards: built.append(len(cards)), cards_kept=10)
    small, large = (card(1),), tuple(card(n) for n in range(10))
    for cards in (small, large, large, small):
        snapshots.index(cards)
    assert built == [1, 10, 1]


def test_of_indexes_that_grew_from_each_other_only_the_last_are_kept() -> None:
    built: list[int] = []

    def build(cards: Sequence[Card]) -> int:
        built.append(len(cards))
        return len(cards)

    snapshots = Snapshots(build, extend=lambda _, cards: len(cards))
    cards = tuple(card(number) for number in range(GENERATIONS + 1))
    grown = [cards[:size] for size in range(1, len(cards) + 1)]
    for each in grown:
        assert snapshots.index(each) == len(each)
    assert built == [1]
    snapshots.index(grown[1])  # of a thread that looked a moment before
    assert built == [1]
    snapshots.index(grown[0])
    assert built == [1, 1]


def test_bm25_needs_no_embedder_and_ranks_by_shared_words(bank: FrozenBank) -> None:
    neighbours = Bm25().retrieve(QUESTION, bank, k=4)
    assert ids(neighbours) == ["shop-3", "shop-4", "shop-2", "shop-1"]
    assert neighbours[3].score == 0.0


def test_bm25_gives_the_scores_of_bm25s(bank: FrozenBank) -> None:
    import bm25s

    texts = [c.question.text for c in bank.cards("shop")]
    model = bm25s.BM25(method="lucene", k1=1.5, b=0.75)
    model.index(bm25s.tokenize(texts, show_progress=False), show_progress=False)
    _, scores = model.retrieve(bm25s.tokenize([QUESTION.text], show_progress=False), k=4, show_progress=False)
    assert [neighbour.score for neighbour in Bm25().retrieve(QUESTION, bank, k=4)] == pytest.approx(
        scores[0].tolist(), abs=1e-5
    )


@pytest.mark.parametrize("text", ["", "the of", "表", "zebra"])
def test_bm25_falls_back_to_the_order_of_ids_where_no_word_is_shared(bank: FrozenBank, text: str) -> None:
    neighbours = Bm25().retrieve(msgspec.structs.replace(QUESTION, text=text), bank, k=2)
    assert [(neighbour.card.id, neighbour.score) for neighbour in neighbours] == [("shop-1", 0.0), ("shop-2", 0.0)]


def test_a_payload_key_lets_the_cards_content_count(bank: FrozenBank) -> None:
    asked = msgspec.structs.replace(QUESTION, text="SQL: SELECT cheap FROM items")
    assert ids(Payload(HashingEmbedder()).retrieve(asked, bank, k=1)) == ["shop-2"]


def test_mmr_prefers_a_new_card_to_a_repetition() -> None:
    bank = FrozenBank(
        [card(1, text="red items"), card(2, text="red items", sql="SELECT 22"), card(3, text="blue pots")]
    )
    asked = msgspec.structs.replace(QUESTION, text="red items beside blue pots of red clay")
    assert ids(Dense(HashingEmbedder()).retrieve(asked, bank, k=2)) == ["shop-1", "shop-2"]
    assert ids(Mmr(HashingEmbedder()).retrieve(asked, bank, k=2)) == ["shop-1", "shop-3"]


def test_mmr_that_weighs_relevance_alone_is_dense(bank: FrozenBank) -> None:
    assert ids(Mmr(HashingEmbedder(), balance=1.0).retrieve(QUESTION, bank, k=4)) == (
        ids(Dense(HashingEmbedder()).retrieve(QUESTION, bank, k=4))
    )


def test_foreign_pools_every_other_database(bank: FrozenBank) -> None:
    assert ids(Foreign(HashingEmbedder()).retrieve(QUESTION, bank, k=5)) == ["zoo-1", "store-2"]


def test_schema_similar_draws_from_the_one_nearest_schema(bank: FrozenBank) -> None:
    schemas = {"shop": "item name price", "store": "item name cost", "zoo": "animal species"}
    retriever = SchemaSimilar(HashingEmbedder(), schemas.__getitem__)
    assert ids(retriever.retrieve(QUESTION, bank, k=5)) == ["store-2"]


def test_random_draws_differ_by_question_and_seed_and_repeat_otherwise() -> None:
    bank = FrozenBank(card(n) for n in range(200))
    other = msgspec.structs.replace(QUESTION, id="another")
    draw = ids(Random(seed=1).retrieve(QUESTION, bank, k=5))
    assert draw == ids(Random(seed=1).retrieve(QUESTION, bank, k=5))
    assert draw != ids(Random(seed=2).retrieve(QUESTION, bank, k=5))
    assert draw != ids(Random(seed=1).retrieve(other, bank, k=5))


def test_random_draws_every_card_about_equally_often() -> None:
    bank = FrozenBank(card(n) for n in range(20))
    counts: dict[str, int] = {}
    for number in range(2000):
        for name in ids(Random(seed=3).retrieve(msgspec.structs.replace(QUESTION, id=f"q{number}"), bank, k=5)):
            counts[name] = counts.get(name, 0) + 1
    assert len(counts) == 20
    assert sum((count - 500) ** 2 / 375 for count in counts.values()) < 50  # χ² with 19 degrees of freedom, p < 0.001


def test_random_draws_the_same_questions_from_banks_of_different_writers() -> None:
    plain = [card(n) for n in range(50)]
    rich = [msgspec.structs.replace(c, id=CardId(f"x-{c.id[::-1]}"), writer="W5", text="…") for c in plain]
    drawn = [
        [neighbour.card.question.id for neighbour in Random(seed=1).retrieve(QUESTION, FrozenBank(cards), k=5)]
        for cards in (plain, rich)
    ]
    assert drawn[0] == drawn[1]


PUBLISHED = "07ad44eeb694f4c2c38f81bcf125570f49117200efa2c49bcae08c79d3b6fb16"
SCRIPT = """
from cardbox import HashingEmbedder, card, render
from sqlcrystal.bank import FrozenBank
from sqlcrystal.consumption.controls import Random, fraction, matched, mispair
from sqlcrystal.consumption.dense import Dense, Mmr, Payload
from sqlcrystal.consumption.lexical import Bm25
from sqlcrystal.types import Question
bank = FrozenBank(card(n, text=f"how many {n % 7} items {n % 3}", sql=f"SELECT {n % 5}") for n in range(40))
asked = Question(id="a", database="shop", text="how many 3 items")
e = HashingEmbedder()
for r in (Dense(e), Bm25(), Payload(e), Mmr(e), Random(seed=5)):
    print([(f.card.id, round(f.score, 4)) for f in r.retrieve(asked, bank, k=9)])
for drawn in (fraction(bank, 25, seed=1), matched(bank, {"shop": 7}, draw=1)):
    print([c.id for c in drawn.cards("shop")])
print(mispair(bank, seed=9, render=render).donors)
"""


def test_another_process_with_another_hash_seed_retrieves_draws_and_mispairs_the_same() -> None:
    tests = Path(__file__).resolve().parent.parent
    path = f"{tests.parent / 'src'}{os.pathsep}{tests}"
    printed = {
        subprocess.run(
            [sys.executable, "-c", SCRIPT],
            env={"PYTHONPATH": path, "PYTHONHASHSEED": seed, "OPENBLAS_NUM_THREADS": threads},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed, threads in (("1", "1"), ("2", "2"))
    }
    assert len(printed) == 1
    digest = hashlib.sha256(printed.pop().encode()).hexdigest()
    assert digest == PUBLISHED, "the draws of published studies would change"


def test_an_index_grows_with_a_bank_in_use_and_answers_as_one_built_anew(tmp_path: Path) -> None:
    vectors = Vectors(HashingEmbedder())
    dense = Dense(vectors)
    with CardStore(tmp_path / "bank.sqlite") as store:
        for number in range(100):
            store.add(card(number, text=f"How many of kind {number % 30} cost {number}?" if number % 7 else "the same"))
            assert dense.retrieve(QUESTION, store, k=5) == Dense(vectors).retrieve(QUESTION, store, k=5)
        store.set_status(card(3).id, CardStatus.DISABLED, by="ada")
        assert dense.retrieve(QUESTION, store, k=100) == Dense(vectors).retrieve(QUESTION, store, k=100)


def test_an_index_that_two_banks_grew_from_serves_each_its_own() -> None:
    dense = Dense(HashingEmbedder())
    start = tuple(card(number) for number in range(3))
    with_seven, with_eight = FrozenBank((*start, card(7))), FrozenBank((*start, card(8)))
    dense.retrieve(QUESTION, FrozenBank(start), k=9)
    for bank, last in ((with_seven, "shop-7"), (with_eight, "shop-8"), (with_seven, "shop-7")):
        assert sorted(ids(dense.retrieve(QUESTION, bank, k=9)))[-1] == last


@pytest.mark.parametrize("retriever", [Dense, Mmr, Payload])
def test_an_index_made_from_an_earlier_one_finds_what_a_new_one_finds(retriever: type[Dense]) -> None:
    rng = random.Random(5)
    pool = [card(number, text=f"{rng.choice(WORDS)} {rng.choice(WORDS)} {number % 90}") for number in range(120)]
    kept, lasting = pool[:60], retriever(HashingEmbedder())
    for turn in range(40):
        kept = [kept_card for kept_card in kept if rng.random() > 0.05] + rng.sample(pool[60:], 3)
        kept = list({kept_card.id: kept_card for kept_card in kept}.values())
        bank, asked = FrozenBank(kept), msgspec.structs.replace(QUESTION, text=f"{rng.choice(WORDS)} {turn % 9}")
        assert lasting.retrieve(asked, bank, k=5) == retriever(HashingEmbedder()).retrieve(asked, bank, k=5)
