"""Retrieval inside PostgreSQL finds what retrieval in memory finds, and keeps up with the cards."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from cardbox import HashingEmbedder, card
from servers import new_postgres_database, running_postgres
from shop import build, fenced
from sqlcrystal import Crystal
from sqlcrystal.bank import CardStore, Entry, FrozenBank
from sqlcrystal.consumption.dense import Dense
from sqlcrystal.consumption.indexed import Indexed
from sqlcrystal.models.scripted import ScriptedModel
from sqlcrystal.types import CardId, CardStatus, Question

pytestmark = pytest.mark.xdist_group("stores")
WORDS = ["orders", "items", "boats", "trees", "clinics", "loans", "flights"]


def asked(text: str) -> Question:
    return Question(id="q", database="shop", text=text)


QUESTIONS = [asked(f"how many {first} have {second}") for first in WORDS for second in WORDS]


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with running_postgres() as url:
        yield url


@pytest.fixture
def store(server: str, request: pytest.FixtureRequest) -> Iterator[CardStore]:
    with CardStore(new_postgres_database(server, f"s{abs(hash(request.node.name))}")) as opened:
        texts = [f"{a} of {b} without {c} in {n}" for a in WORDS for b in WORDS for n, c in enumerate(WORDS)]
        opened.add_all(Entry(card=card(number, text=text)) for number, text in enumerate(texts))
        opened.add_all(Entry(card=card(number, text=text, database="bar")) for number, text in enumerate(texts[:9]))
        yield opened


def test_the_index_finds_what_exact_search_finds(store: CardStore) -> None:
    exact, indexed = Dense(HashingEmbedder()), Indexed(HashingEmbedder(), indexed_from=100)
    for question in QUESTIONS:
        wanted = [neighbour.score for neighbour in exact.retrieve(question, store, k=5)]
        neighbours = indexed.retrieve(question, store, k=5)
        assert [neighbour.score for neighbour in neighbours] == pytest.approx(wanted, abs=2e-6)
        assert {neighbour.card.database for neighbour in neighbours} == {"shop"}


def test_a_large_database_gets_an_index_of_its_own(store: CardStore) -> None:
    Indexed(HashingEmbedder(), indexed_from=100).retrieve(QUESTIONS[0], store, k=5)
    with store.backend.reading() as connection:
        rows = connection.exec_driver_sql(
            "SELECT indexdef FROM pg_indexes WHERE indexname LIKE 'card_vectors_%%'"
        ).all()
    assert any("hnsw" in definition and "'shop'" in definition for (definition,) in rows)


def test_what_was_banked_disabled_or_deleted_counts_at_once(store: CardStore) -> None:
    indexed = Indexed(HashingEmbedder(), indexed_from=100)
    question = asked("a question of its own kind")

    def first() -> bool:
        return indexed.retrieve(question, store, k=1)[0].card.id == "shop-new"

    assert not first()
    store.add(card("new", text=question.text))
    assert first()
    store.set_status("shop-new", CardStatus.DISABLED, by="ada")
    assert not first()
    store.set_status("shop-new", CardStatus.ACTIVE, by="ada")
    assert first()
    store.delete("shop-new", by="ada")
    assert not first()


def test_excluded_cards_never_come_and_as_many_others_do(store: CardStore) -> None:
    indexed = Indexed(HashingEmbedder(), indexed_from=100)
    best = indexed.retrieve(QUESTIONS[0], store, k=5)
    others = indexed.retrieve(QUESTIONS[0], store, k=5, exclude=frozenset(neighbour.card.id for neighbour in best))
    assert len(others) == 5
    assert not {neighbour.card.id for neighbour in best} & {neighbour.card.id for neighbour in others}
    assert indexed.retrieve(QUESTIONS[0], store, k=0) == []


def test_a_small_database_and_a_frozen_bank_are_searched_in_memory(store: CardStore) -> None:
    indexed = Indexed(HashingEmbedder(), indexed_from=100)
    question = Question(id="q", database="bar", text="orders of items")
    wanted = Dense(HashingEmbedder()).retrieve(question, store, k=3)
    assert indexed.retrieve(question, store, k=3) == wanted
    assert indexed.retrieve(question, FrozenBank.of(store), k=3, exclude=CardId("nobody")) == wanted
    with store.backend.reading() as connection:
        assert not connection.exec_driver_sql("SELECT to_regclass('card_vectors')").scalar()


def test_a_service_over_a_large_bank_asks_the_index(
    store: CardStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Indexed.__init__, "__kwdefaults__", {"indexed_from": 100})
    place = build(tmp_path / "shop.sqlite")
    url = store.backend.engine.sqlalchemy.url.set(drivername="postgresql").render_as_string(hide_password=False)
    model = ScriptedModel(lambda *_: fenced("SELECT 1"))
    with Crystal.over(place, model=model, store=url, embedder=HashingEmbedder()) as crystal:
        assert len(crystal.ask(QUESTIONS[0].text, by="ada").cards) == 5
    with store.backend.reading() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM card_vectors").scalar() == len(store.cards("shop"))
