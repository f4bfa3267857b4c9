"""The stages meet: a question is answered, a wrong answer is repaired, and the repair changes the next answer."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from cardbox import card
from shop import QUESTION, RIGHT, WRONG, fenced, repairing, right
from sqlcrystal.acquisition.repair import FirstTry, SelfVote
from sqlcrystal.acquisition.revision import LookFirst, OneBit, Probing, Union
from sqlcrystal.admission.verifiers import Oracle
from sqlcrystal.assembly import (
    REGIMES,
    RETRIEVERS,
    SOLVERS,
    SOURCES,
    WRITERS,
    Bench,
    Named,
    choose,
    regime,
    retriever,
    solver,
    source,
    writer,
)
from sqlcrystal.bank import CardStore
from sqlcrystal.consumption.lexical import Bm25
from sqlcrystal.consumption.memory import BankMemory, NoMemory
from sqlcrystal.consumption.retriever import Reach
from sqlcrystal.databases.symptoms import symptoms
from sqlcrystal.errors import ConfigError, ModelRejected
from sqlcrystal.models.scripted import ScriptedModel
from sqlcrystal.pipeline import Lesson, Served, answer, learn, serve
from sqlcrystal.protocols import Database, Source
from sqlcrystal.solving.fallback import Fallback
from sqlcrystal.solving.solver import SingleShot
from sqlcrystal.types import Admitted, Attempt, Card, Message, Question, Rejected, Retrieved, Rows, Sampling
from sqlcrystal.writing.capsule import CapsuleWriter
from sqlcrystal.writing.card import Verbatim

OTHER = Question(id="shop-2", database="shop", text="How many hardware items are cheap?")


def judge(question: Question, sql: str) -> bool:
    return right(sql)


def attempt(database: Database, sql: str | None) -> Attempt:
    return SingleShot(ScriptedModel([fenced(sql) if sql else "no idea"]), database).solve(QUESTION)


def learned(
    database: Database, first: str | None, source: Source, admission: str = "oracle", rate: float = 0.0
) -> Lesson:
    """What comes of a first attempt in one regime, written verbatim."""
    chosen = regime(admission, bench=Bench(QUESTION, database, judge, rate))
    return learn(
        attempt(database, first),
        trigger=chosen.trigger,
        source=source,
        accept=chosen.accept,
        verifier=chosen.verifier,
        writer=Verbatim(database.fingerprint),
    )


def test_a_verified_repair_changes_the_next_answer(shop: Database, tmp_path: Path) -> None:
    model = ScriptedModel(repairing)
    solver = SingleShot(model, shop)
    with CardStore(tmp_path / "bank.sqlite") as bank:
        memory = BankMemory(bank, Bm25(), k=5)
        before = answer(OTHER, memory=memory, solver=solver, database=shop)
        lesson = learned(shop, WRONG, Probing(model, shop))
        assert lesson.card is not None
        assert lesson.effort.episode is not None
        bank.add(lesson.card, lesson.effort.episode)
        after = answer(OTHER, memory=memory, solver=solver, database=shop)
    assert (before.attempt.sql, before.retrieved) == (WRONG, ())
    assert after.attempt.sql == RIGHT
    assert after.attempt.cards == (lesson.card.id,)
    assert isinstance(after.execution, Rows)
    assert after.execution.rows == ((2,),)


def test_an_answer_without_sql_has_no_execution(shop: Database) -> None:
    model = ScriptedModel(["no idea"])
    empty = answer(QUESTION, memory=NoMemory(), solver=SingleShot(model, shop), database=shop)
    assert (empty.attempt.sql, empty.execution) == (None, None)


def test_a_spent_budget_is_rejected_with_its_rounds_on_the_record(shop: Database) -> None:
    lesson = learned(shop, WRONG, Probing(ScriptedModel(lambda *_: fenced(WRONG)), shop))
    assert isinstance(lesson.verdict, Rejected)
    assert (len(lesson.effort.rounds), lesson.card) == (3, None)
    assert lesson.verdict.episode.rounds == lesson.effort.rounds
    assert len(lesson.calls) == 6


def test_a_right_answer_needs_no_repair_and_success_banks_it(shop: Database) -> None:
    for tried_source, banked in ((Probing(ScriptedModel([]), shop), False), (FirstTry(), True)):
        lesson = learned(shop, RIGHT, tried_source)
        assert lesson.effort.right_at_once
        assert (lesson.card is not None) == banked


def test_an_episode_that_the_writers_model_refuses_stays_without_a_card(shop: Database) -> None:
    def refuse(messages: Sequence[Message], sampling: Sampling) -> str:
        raise ModelRejected("the prompt is too long")

    lesson = learn(
        attempt(shop, WRONG),
        trigger=right,
        source=Probing(ScriptedModel(repairing), shop),
        accept=right,
        verifier=Oracle(judge),
        writer=CapsuleWriter(shop, ScriptedModel(refuse)),
    )
    assert lesson.effort.episode is not None
    assert lesson.card is None


# ── regimes ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("first", [WRONG, None])
def test_the_ungated_arm_stores_the_first_elected_candidate_even_if_wrong(shop: Database, first: str | None) -> None:
    model = ScriptedModel(lambda *_: fenced(WRONG))
    lesson = learned(shop, first, SelfVote(model, shop), "ungated")
    assert lesson.card is not None
    assert (lesson.card.sql, lesson.card.admission.signal) == (WRONG, "ungated")
    assert (len(lesson.effort.rounds), len(model.prompts)) == (1, 5)


def test_the_ungated_arm_still_repairs_only_what_was_wrong(shop: Database) -> None:
    for tried_source in (SelfVote(ScriptedModel([]), shop), Union(SelfVote(ScriptedModel([]), shop))):
        lesson = learned(shop, RIGHT, tried_source, "ungated")
        assert lesson.effort.right_at_once
        assert lesson.effort.rounds == ()


def test_noise_can_let_a_spent_repair_in_and_keep_a_right_one_out(shop: Database) -> None:
    lessons = [
        learned(shop, WRONG, Probing(ScriptedModel(lambda *_, reply=reply: fenced(reply)), shop), "noisy", 1.0)
        for reply in (WRONG, RIGHT)
    ]
    assert [type(lesson.verdict) for lesson in lessons] == [Admitted, Rejected]
    assert lessons[0].card is not None
    assert "flipped" in lessons[0].card.admission.detail


def test_the_engine_repairs_what_looks_wrong_and_banks_what_looks_sound_whatever_is_right(shop: Database) -> None:
    """Neither query is right, and nobody says so: the first shows a symptom, the second shows none."""
    sound = "SELECT name FROM item"
    lesson = learned(shop, WRONG, LookFirst(ScriptedModel([fenced(sound)]), shop), "engine")
    assert lesson.card is not None
    assert (lesson.card.sql, lesson.card.admission.signal) == (sound, "engine")
    assert learned(shop, sound, LookFirst(ScriptedModel([]), shop), "engine").effort.right_at_once


def test_an_answer_that_fell_back_names_no_card(shop: Database) -> None:
    class Remembering:
        def recall(self, question: Question) -> Sequence[Retrieved]:
            return [Retrieved(card(question.id), 0.9)]

        def arrange(self, retrieved: Sequence[Retrieved]) -> Sequence[Card]:
            return [neighbour.card for neighbour in retrieved]

    model = ScriptedModel(lambda messages, _: fenced(WRONG if "[Relevant experience" in messages[1].content else RIGHT))
    fell_back = answer(QUESTION, memory=Remembering(), solver=Fallback(SingleShot(model, shop), shop), database=shop)
    assert (fell_back.attempt.sql, fell_back.retrieved) == (RIGHT, ())
    stood = answer(QUESTION, memory=Remembering(), solver=SingleShot(model, shop), database=shop)
    assert len(stood.retrieved) == 1


# ── the tables ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_every_name_of_the_paper_is_in_the_tables() -> None:
    assert {"single-shot", "chain-of-thought", "explore"} < SOLVERS.keys()
    assert {"T1", "T2", "T3", "T3-look", "T4", "success", "union", "union-look", "explore"} < SOURCES.keys()
    assert {"oracle", "ungated", "noisy", "engine", "round-trip"} == REGIMES.keys()
    assert {"W0", "W1", "W2", "W3", "W3+A", "W4", "W5", "W5-lesson"} < WRITERS.keys()
    assert {"dense", "bm25", "payload", "mmr", "random", "foreign", "schema-similar", "none"} == RETRIEVERS.keys()


@pytest.mark.parametrize(
    "table", [SOLVERS, SOURCES, WRITERS, RETRIEVERS], ids=["solver", "source", "writer", "retriever"]
)
def test_a_stage_bears_the_name_it_is_chosen_by_and_says_in_words_what_it_does(
    table: dict[str, type[Named]],
) -> None:
    assert [kind.name for kind in table.values()] == list(table)
    assert all(kind.summary for kind in table.values())  # type: ignore[attr-defined]


def test_an_unknown_name_lists_the_choices(shop: Database) -> None:
    with pytest.raises(ConfigError, match=r"writer: unknown value 'W9'; choose from W0, .*W1, W2, W3, W3\+A, W4, W5"):
        writer("W9", database=shop, model=ScriptedModel([]))
    with pytest.raises(
        ConfigError, match="admission: unknown value 'user'; choose from engine, noisy, oracle, round-trip, ungated"
    ):
        regime("user", bench=Bench(QUESTION, shop, judge))
    assert choose({"a": 1}, "key", "a") == 1


def test_a_lexical_retriever_opens_no_embedder() -> None:
    def embedder() -> None:
        raise AssertionError("no embedder is needed")

    reach = Reach(embedder=embedder, schema_of=lambda name: "")  # type: ignore[arg-type]
    for name in ("bm25", "random", "none"):
        assert retriever(name, reach=reach) is not None


def test_the_budget_and_the_sampling_are_settings(shop: Database) -> None:
    model = ScriptedModel(lambda *_: fenced(WRONG))
    sampling = Sampling(max_tokens=64)
    attempt = solver("chain-of-thought", model=model, database=shop, sampling=sampling).solve(replace(QUESTION, id="x"))
    assert attempt.call.sampling == sampling
    source("T1", model=model, database=shop, budget=5).acquire(attempt, right=False, accept=right)
    assert [s.max_tokens for s in model.samplings] == [64] * 6


# ── served: the answer as people get it ─────────────────────────────────────────────────────────────────────────────


def served(shop: Database, *replies: str) -> Served:
    model = ScriptedModel([fenced(reply) for reply in replies])
    return serve(
        QUESTION,
        memory=NoMemory(),
        solver=SingleShot(model, shop),
        source=OneBit(model, shop, budget=1),
        database=shop,
        sound=lambda sql: not symptoms(sql, shop),
    )


def test_a_served_answer_without_a_sign_of_trouble_is_not_repaired(shop: Database) -> None:
    given = served(shop, "SELECT COUNT(*) FROM item")
    assert (given.sql, given.effort.rounds) == ("SELECT COUNT(*) FROM item", ())


def test_a_served_answer_is_the_repair_that_shows_no_sign(shop: Database) -> None:
    given = served(shop, WRONG, RIGHT)
    assert (given.answer.attempt.sql, given.sql) == (WRONG, RIGHT)


def test_a_served_answer_that_repair_did_not_mend_stands_if_it_runs_and_gives_way_if_not(shop: Database) -> None:
    empty = "SELECT name FROM item WHERE price > 900"
    assert served(shop, WRONG, empty).sql == WRONG
    assert served(shop, "SELECT nope FROM item", empty).sql == empty
    assert served(shop, "SELECT nope FROM item", "SELECT neither FROM item").sql == "SELECT nope FROM item"


def test_the_draft_is_shown_before_its_repair_begins(shop: Database) -> None:
    told: list[str | None] = []
    replies = iter([WRONG, RIGHT])

    def model(_: Sequence[Message], __: Sampling) -> str:
        told.append("asked")
        return fenced(next(replies))

    scripted = ScriptedModel(model)
    serve(
        QUESTION,
        memory=NoMemory(),
        solver=SingleShot(scripted, shop),
        source=OneBit(scripted, shop, budget=1),
        database=shop,
        sound=lambda sql: not symptoms(sql, shop),
        on_draft=lambda draft: told.append(draft.attempt.sql),
    )
    assert told == ["asked", WRONG, "asked"]
