"""Gold never reaches a stage: a marker planted in every gold field is in no card, prompt, trace or log."""

import contextlib
import io
import logging
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from cardbox import HashingEmbedder
from shop import PROBE, QUESTION, RIGHT, WRONG, build, fenced, repairing
from sqlcrystal.assembly import RETRIEVERS, SOURCES, WRITERS, Reach, gate, retriever, solver, source, writer
from sqlcrystal.bank import FrozenBank
from sqlcrystal.benchmarks.cases import Case
from sqlcrystal.databases import open_database
from sqlcrystal.models.scripted import ScriptedModel
from sqlcrystal.pipeline import answer, collect
from sqlcrystal.protocols import Check, Database, Writer
from sqlcrystal.scoring.verdicts import compare
from sqlcrystal.types import Admitted, Card, Message, Question, Sampling
from sqlcrystal.writing import Verbatim

MARKERS = st.text(alphabet="abcdefghijklmnop", min_size=6, max_size=10).map(lambda text: f"sentinel_{text}")
CAPSULE = '{"trigger": "kind is filtered", "lesson": "kind holds codes such as HW"}'
REPLIES = st.lists(
    st.sampled_from([fenced(RIGHT), fenced(WRONG), fenced(PROBE), fenced("SELECT nope FROM item"), "no idea", CAPSULE]),
    max_size=12,
)


def plant(marker: str, database: str) -> Case:
    """A case whose gold carries the marker as a column name, a value and a comment, and still returns the answer."""
    gold = f"SELECT COUNT(*) AS \"{marker}\" FROM item WHERE kind = 'HW' AND '{marker}' <> '' -- {marker}"
    question = replace(QUESTION, id=f"{database}-1", database=database)
    return Case(question=question, sql=gold, wrong=(f"SELECT '{marker}'",))


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Database]]:
    folder: Path = tmp_path_factory.mktemp("stores")
    opened = {name: open_database(str(build(folder / f"{name}.sqlite")), name=name) for name in ("shop", "store")}
    yield opened
    for database in opened.values():
        database.close()


@contextlib.contextmanager
def overheard() -> Iterator[Callable[[], str]]:
    """Everything printed or logged, at every level."""
    heard = io.StringIO()
    handler = logging.StreamHandler(heard)
    root = logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    try:
        with contextlib.redirect_stdout(heard), contextlib.redirect_stderr(heard):
            yield heard.getvalue
    finally:
        root.removeHandler(handler)
        root.setLevel(level)


def deal(replies: Sequence[str]) -> Callable[[Sequence[Message], Sampling], str]:
    """The drawn replies first; then a model that can be led to the right answer, so that cards do get made."""
    waiting = list(replies)
    return lambda messages, sampling: waiting.pop(0) if waiting else repairing(messages, sampling)


def checker(cases: Sequence[Case], stores: dict[str, Database]) -> Callable[[Question], Check]:
    """The oracle: it alone holds gold, and says one bit."""
    gold = {case.question: case.sql for case in cases}

    def check(question: Question) -> Check:
        database = stores[question.database]
        return lambda sql: compare(database.execute(gold[question]), database.execute(sql)).correct

    return check


def evidence(
    stores: dict[str, Database],
    marker: str,
    *,
    source_name: str,
    admission: str,
    replies: Sequence[str],
    write: Callable[[Database, ScriptedModel], Writer],
) -> tuple[str, list[Card]]:
    """Run collection and then every retriever; return all that any stage saw, made or said, and the cards."""
    cases = [plant(marker, name) for name in stores]
    check = checker(cases, stores)
    model = ScriptedModel(deal(replies))
    cards: list[Card] = []
    seen: list[object] = []
    with overheard() as heard:
        for case in cases:
            database = stores[case.question.database]
            seen.extend(
                collect(
                    [case.question],
                    solver=solver("single-shot", model=model, database=database),
                    source=source(source_name, model=model, database=database),
                    check=check,
                    verifier=gate(admission, judge=lambda question, sql: check(question)(sql), rate=0.2),
                    writer=write(database, model),
                    keep=lambda card, episode: cards.append(card),
                    passes=2,
                    recall=lambda question: tuple(cards),
                )
            )
        reach = Reach(embedder=HashingEmbedder, schema_of=lambda name: stores[name].schema())
        seen.extend(
            answer(
                Question(id="new", database="shop", text="How many food items are there?"),
                solver=solver("single-shot", model=model, database=stores["shop"]),
                database=stores["shop"],
                retriever=retriever(name, reach=reach),
                bank=FrozenBank({card.id: card for card in cards}.values()),
            )
            for name in RETRIEVERS
        )
    return "\n".join([repr(seen), repr(cards), repr(model.prompts), heard()]), cards


@pytest.mark.parametrize("writer_name", WRITERS)
@pytest.mark.parametrize("source_name", SOURCES)
@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(marker=MARKERS, admission=st.sampled_from(["oracle", "noisy", "ungated"]), replies=REPLIES)
def test_no_stage_ever_sees_gold(
    stores: dict[str, Database], source_name: str, writer_name: str, marker: str, admission: str, replies: list[str]
) -> None:
    seen, _ = evidence(
        stores,
        marker,
        source_name=source_name,
        admission=admission,
        replies=replies,
        write=lambda database, model: writer(writer_name, database=database, model=model),
    )
    assert marker not in seen


@pytest.mark.parametrize("source_name", ["T3", "union", "explore"])
def test_the_search_covers_runs_that_do_bank_cards_and_use_them(stores: dict[str, Database], source_name: str) -> None:
    seen, cards = evidence(
        stores,
        "sentinel_x",
        source_name=source_name,
        admission="oracle",
        replies=[],
        write=lambda database, model: Verbatim(database),
    )
    assert {card.database for card in cards} == {"shop", "store"}
    assert seen.count("[Similar solved questions and their final SQL]") >= 6


def test_a_writer_that_leaks_gold_would_be_caught(stores: dict[str, Database]) -> None:
    class Leaky(Verbatim):
        def write(self, admitted: Admitted) -> Card:
            gold = plant("sentinel_leak", "shop").sql
            return replace(super().write(admitted), text=gold)

    seen, _ = evidence(
        stores,
        "sentinel_leak",
        source_name="T3",
        admission="oracle",
        replies=[],
        write=lambda database, model: Leaky(database),
    )
    assert "sentinel_leak" in seen


def test_a_stage_that_logs_gold_would_be_caught(stores: dict[str, Database]) -> None:
    class Chatty(Verbatim):
        def write(self, admitted: Admitted) -> Card:
            logging.getLogger("sqlcrystal").debug("gold is sentinel_log")
            return super().write(admitted)

    seen, _ = evidence(
        stores,
        "sentinel_log",
        source_name="T3",
        admission="oracle",
        replies=[],
        write=lambda database, model: Chatty(database),
    )
    assert "sentinel_log" in seen
