"""The stages meet: a question is answered, a wrong answer is repaired, and the repair changes the next answer."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from shop import PROBE, QUESTION, RIGHT, WRONG, fenced, repairing, right
from sqlcrystal.acquisition import FirstTry, OneBit, Probing, SelfVote, Union
from sqlcrystal.admission import Oracle, Ungated
from sqlcrystal.assembly import (
    GATES,
    RETRIEVERS,
    SOLVERS,
    SOURCES,
    VERIFIERS,
    WRITERS,
    Reach,
    choose,
    gate,
    retriever,
    solver,
    source,
    writer,
)
from sqlcrystal.bank import CardStore, FrozenBank
from sqlcrystal.consumption import Bm25, Nothing
from sqlcrystal.errors import ConfigError
from sqlcrystal.models.scripted import ScriptedModel
from sqlcrystal.pipeline import answer, collect, learn
from sqlcrystal.protocols import Check, Database
from sqlcrystal.solving import SingleShot
from sqlcrystal.types import Admitted, Attempt, Card, Message, Question, Rejected, Rows, Sampling
from sqlcrystal.writing import Verbatim

OTHER = Question(id="shop-2", database="shop", text="How many hardware items are cheap?")


def judge(question: Question, sql: str) -> bool:
    return right(sql)


def check_of(question: Question) -> Check:
    return right


def attempt(database: Database, sql: str | None) -> Attempt:
    return SingleShot(ScriptedModel([fenced(sql) if sql else "no idea"]), database).solve(QUESTION)


def test_a_verified_repair_changes_the_next_answer(shop: Database, tmp_path: Path) -> None:
    model = ScriptedModel(repairing)
    with CardStore(tmp_path / "bank.sqlite") as bank:
        before = answer(OTHER, solver=SingleShot(model, shop), database=shop, retriever=Bm25(), bank=bank)
        learned = learn(
            SingleShot(model, shop).solve(QUESTION),
            source=Probing(model, shop),
            check=right,
            verifier=Oracle(judge),
            writer=Verbatim(shop),
            keep=bank.add,
        )
        after = answer(OTHER, solver=SingleShot(model, shop), database=shop, retriever=Bm25(), bank=bank)
        assert learned.card is not None
        assert bank.cards("shop") == (learned.card,)
        assert bank.episode(learned.card.id) is not None
    assert (before.attempt.sql, before.retrieved) == (WRONG, ())
    assert after.attempt.sql == RIGHT
    assert after.attempt.cards == (learned.card.id,)
    assert isinstance(after.execution, Rows)
    assert after.execution.rows == ((2,),)


def test_an_answer_without_sql_has_no_execution(shop: Database) -> None:
    model = ScriptedModel(["no idea"])
    found = answer(QUESTION, solver=SingleShot(model, shop), database=shop, retriever=Nothing(), bank=FrozenBank())
    assert (found.attempt.sql, found.execution) == (None, None)


def test_a_spent_budget_is_rejected_with_its_rounds_on_the_record(shop: Database) -> None:
    model = ScriptedModel(lambda *_: fenced(WRONG))
    cards: list[Card] = []
    learned = learn(
        attempt(shop, WRONG),
        source=Probing(model, shop),
        check=right,
        verifier=Oracle(judge),
        writer=Verbatim(shop),
        keep=lambda card, episode: cards.append(card),
    )
    assert isinstance(learned.verdict, Rejected)
    assert (len(learned.rounds), learned.card, cards) == (3, None, [])
    assert learned.verdict.episode.rounds == learned.rounds


def test_a_right_answer_needs_no_repair_and_success_banks_it(shop: Database) -> None:
    for made, banked in ((Probing(ScriptedModel([]), shop), False), (FirstTry(), True)):
        learned = learn(
            attempt(shop, RIGHT),
            source=made,
            check=right,
            verifier=Oracle(judge),
            writer=Verbatim(shop),
            keep=lambda card, episode: None,
        )
        assert learned.right_at_once
        assert (learned.card is not None) == banked


# ── without a gate ──────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("first", [WRONG, None])
def test_the_ungated_arm_stores_the_first_elected_candidate_even_if_wrong(shop: Database, first: str | None) -> None:
    model = ScriptedModel(lambda *_: fenced(WRONG))
    learned = learn(
        attempt(shop, first),
        source=SelfVote(model, shop),
        check=right,
        verifier=Ungated(),
        writer=Verbatim(shop),
        keep=lambda card, episode: None,
    )
    assert learned.card is not None
    assert (learned.card.sql, learned.card.admission.signal) == (WRONG, "ungated")
    assert (len(learned.rounds), len(model.prompts)) == (1, 5)


def test_the_ungated_arm_still_repairs_only_what_was_wrong(shop: Database) -> None:
    for made in (SelfVote(ScriptedModel([]), shop), Union(SelfVote(ScriptedModel([]), shop))):
        learned = learn(
            attempt(shop, RIGHT),
            source=made,
            check=right,
            verifier=Ungated(),
            writer=Verbatim(shop),
            keep=lambda card, episode: None,
        )
        assert learned.right_at_once
        assert learned.rounds == ()


def test_noise_can_let_a_spent_repair_in_and_keep_a_right_one_out(shop: Database) -> None:
    always = gate("noisy", judge=judge, rate=1.0)
    outcomes = [
        learn(
            attempt(shop, WRONG),
            source=Probing(ScriptedModel(lambda *_, said=said: fenced(said)), shop),
            check=right,
            verifier=always,
            writer=Verbatim(shop),
            keep=lambda card, episode: None,
        )
        for said in (WRONG, RIGHT)
    ]
    assert [type(learned.verdict) for learned in outcomes] == [Admitted, Rejected]
    assert outcomes[0].card is not None
    assert "flipped" in outcomes[0].card.admission.detail


# ── collecting ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_second_pass_takes_up_what_is_still_wrong_with_what_memory_recalls(shop: Database) -> None:
    """The first question can be repaired only once a card has led its first attempt half of the way."""
    halfway = "SELECT name FROM item WHERE kind = 'HW'"

    def reply(messages: Sequence[Message], sampling: Sampling) -> str:
        system, user = (message.content for message in messages)
        if "debugging" in system:
            return fenced(PROBE)
        if "correcting" in system:
            return fenced(WRONG if "cheap" in user and halfway not in user else RIGHT)
        return fenced(halfway if RIGHT in user else WRONG)

    model = ScriptedModel(reply)
    cards: list[Card] = []
    outcomes = list(
        collect(
            [OTHER, QUESTION],
            solver=SingleShot(model, shop),
            source=OneBit(model, shop),
            check=check_of,
            verifier=Oracle(judge),
            writer=Verbatim(shop),
            keep=lambda card, episode: cards.append(card),
            passes=2,
            recall=lambda question: cards,
        )
    )
    assert [learned.attempt.question.id for learned in outcomes] == ["shop-2", "shop-1", "shop-2"]
    assert [learned.card is not None for learned in outcomes] == [False, True, True]
    assert outcomes[0].attempt.cards == ()
    assert outcomes[2].attempt.cards == (cards[0].id,)


def test_one_pass_asks_every_question_once_and_recalls_nothing(shop: Database) -> None:
    model = ScriptedModel(repairing)

    def recall(question: Question) -> list[Card]:
        raise AssertionError("the first pass is without memory")

    outcomes = collect(
        [QUESTION, OTHER],
        solver=SingleShot(model, shop),
        source=Probing(model, shop),
        check=check_of,
        verifier=Oracle(judge),
        writer=Verbatim(shop),
        keep=lambda card, episode: None,
        recall=recall,
    )
    assert [learned.attempt.question for learned in outcomes] == [QUESTION, OTHER]


# ── the tables ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_every_name_of_the_paper_is_in_the_tables() -> None:
    assert {"single-shot", "chain-of-thought", "explore"} == SOLVERS.keys()
    assert {"T1", "T2", "T3", "T3-look", "T4", "success", "union", "union-look", "explore"} == SOURCES.keys()
    assert {"oracle", "ungated", "noisy", "user", "assertion", "external", "engine"} == VERIFIERS.keys()
    assert {"W0", "W1", "W2", "W3", "W3+A", "W4", "W5", "W5-lesson"} == WRITERS.keys()
    assert {"dense", "bm25", "payload", "mmr", "random", "foreign", "schema-similar", "none"} == RETRIEVERS.keys()
    assert VERIFIERS.keys() > GATES.keys()


def test_a_source_and_a_writer_bear_the_name_they_are_chosen_by(shop: Database) -> None:
    model = ScriptedModel([])
    assert [source(name, model=model, database=shop).name for name in SOURCES] == list(SOURCES)
    assert [writer(name, database=shop, model=model).name for name in WRITERS] == list(WRITERS)  # type: ignore[attr-defined]


def test_an_unknown_name_lists_the_choices(shop: Database) -> None:
    with pytest.raises(ConfigError, match=r"writer: unknown value 'W9'; choose from W0, W1, W2, W3, W3\+A, W4, W5"):
        writer("W9", database=shop, model=ScriptedModel([]))
    with pytest.raises(ConfigError, match="admission: unknown value 'user'; choose from noisy, oracle, ungated"):
        gate("user", judge=judge)
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
    made = solver("chain-of-thought", model=model, database=shop, sampling=sampling).solve(replace(QUESTION, id="x"))
    assert made.call.sampling == sampling
    source("T1", model=model, database=shop, budget=5).acquire(made, right)
    assert [s.max_tokens for s in model.samplings] == [64] * 6
