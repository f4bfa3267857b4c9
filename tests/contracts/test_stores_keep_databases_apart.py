"""Two databases with look-alike questions in one store: whatever is done, nothing of one is given for the other."""

import itertools
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cardbox import HashingEmbedder, card
from sqlcrystal.bank import AnswerRecord, CardUse, Store, Verdict
from sqlcrystal.consumption.dense import Dense
from sqlcrystal.consumption.indexed import Indexed
from sqlcrystal.consumption.lexical import Bm25
from sqlcrystal.types import CardStatus, Question

DATABASES = ("shop", "shop ", "Shop", "bar")
QUESTIONS = ("How many items?", "how many ITEMS", "How many items cost 5?", "")
_RUNS = itertools.count()

databases = st.sampled_from(DATABASES)
questions = st.sampled_from(QUESTIONS)
steps = st.lists(st.tuples(databases, questions, st.sampled_from(["ask", "confirm", "reject", "disable"])), max_size=12)


def act(store: Store, number: int, database: str, text: str, step: str) -> None:
    """One step of a team's day, under ids that say which database they belong to."""
    name = f"{database}|{number}"
    near = [
        neighbour.card.id for neighbour in Dense(HashingEmbedder()).retrieve(asked(database, text), store.bank, k=3)
    ]
    store.answers.save(
        AnswerRecord(
            id=name,
            database=database,
            question=text,
            at="2026-03-01",
            asked_by="ada",
            cards=tuple(CardUse(card_id, 0.5) for card_id in near),
        )
    )
    if step == "confirm":
        banked = card(number, text=text, database=database, sql=f"SELECT '{database}', {number}")
        store.decisions.decide(name, Verdict.CONFIRMED, by="ada", signal="user", bank=lambda: store.bank.add(banked))
    elif step == "reject":
        store.decisions.decide(name, Verdict.REJECTED, by="ada", signal="user")
    elif step == "disable" and near:
        store.bank.set_status(near[0], CardStatus.DISABLED, by="ada")


def asked(database: str, text: str) -> Question:
    return Question(id="q", database=database, text=text)


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(day=steps, text=questions)
def test_nothing_of_one_database_is_given_for_another(place: str, day: list[tuple[str, str, str]], text: str) -> None:
    run = next(_RUNS)  # examples share a store, which then holds other days, too
    with Store(place) as store:
        for number, (database, question, step) in enumerate(day):
            act(store, run * 1000 + number, database, question, step)
        for database in DATABASES:
            given_out: list[Any] = [
                *store.bank.cards(database),
                *store.bank.find(database=database, question=text),
                *store.answers.recent(database=database, question=text),
                *(waiting.answer for waiting in store.answers.waiting(database=database)),
                *store.answers.judged(database=database),
                *store.answers.traffic(database=database),
                *store.decisions.all(database=database),
            ]
            for retriever in (Dense(HashingEmbedder()), Bm25(), Indexed(HashingEmbedder())):
                neighbours = retriever.retrieve(asked(database, text), store.bank, k=5)
                given_out += [neighbour.card for neighbour in neighbours]
            assert {getattr(record, "database", None) for record in given_out} <= {database}
            leaned = {use.card for answer in store.answers.recent(database=database) for use in answer.cards}
            assert all(card_id.rpartition("-")[0] == database for card_id in leaned)
