"""Dialogues in studies: loaded, drawn whole, read turn after turn, and reported by question, dialogue and turn."""

import json
import re
import sqlite3
from collections.abc import Sequence
from pathlib import Path

import pytest

from cardbox import HashingEmbedder
from shop import fenced
from sqlcrystal.benchmarks.cases import split
from sqlcrystal.benchmarks.catalogue import load_benchmark
from sqlcrystal.config import StudyFile, read_study
from sqlcrystal.ledger.records import Ledger
from sqlcrystal.models.scripted import ScriptedModel
from sqlcrystal.planning.plan import plan_study
from sqlcrystal.solving.following import FOLLOW_SYSTEM
from sqlcrystal.study.design import SETTINGS
from sqlcrystal.study.opening import run_study
from sqlcrystal.study.report.facts import Facts
from sqlcrystal.study.report.table import NONE
from sqlcrystal.study.report.team_tables import dialogue_effects, dialogue_sentences
from sqlcrystal.study.report.value_tables import dialogue_table
from sqlcrystal.types import Message, Sampling

STUDY = Path(__file__).parents[2] / "studies" / "sparc.toml"
DATABASES = ("north", "south", "east")
DIALOGUES = 4


def write_dialogues(folder: Path) -> Path:
    """Write three databases with four dialogues each: a count, the same of one kind, and of that the dear ones."""
    dialogues = []
    for name in DATABASES:
        place = folder / "database" / name
        place.mkdir(parents=True)
        with sqlite3.connect(place / f"{name}.sqlite") as connection:
            connection.execute("CREATE TABLE item (kind TEXT, price INTEGER)")
            connection.executemany("INSERT INTO item VALUES (?, ?)", [(f"k{n % 4}", n) for n in range(50)])
        connection.close()
        for number in range(DIALOGUES):
            count, kind = "SELECT COUNT(*) FROM item", f"k{number}"
            turns = [
                (f"How many items are in list {number} of {name}?", count),
                (f"And of kind {kind}?", f"{count} WHERE kind = '{kind}'"),
                ("Only those over 20?", f"{count} WHERE kind = '{kind}' AND price > 20"),
            ]
            dialogues.append({"db_id": name, "turns": [{"question": one, "query": sql} for one, sql in turns]})
    (folder / "sparc_dev.json").write_text(json.dumps(dialogues))
    return folder


def reading(messages: Sequence[Message], _: Sampling) -> str:
    """Right about all that the question tells, but for prices where no card and no repair shows how."""
    asked = messages[-1].content
    if messages[0].content == FOLLOW_SYSTEM:
        kinds = re.findall(r"\bk\d", asked)
        over = " over 20" if "[Last message]\nOnly" in asked else ""
        return f"How many items of kind {kinds[-1]}{over} are there?"
    if "debugging" in messages[0].content or "Explore first" in messages[0].content:
        return fenced("SELECT DISTINCT kind FROM item")
    question = asked.rpartition("[Question]\n")[2].splitlines()[0]
    if question.startswith("Only") or question.startswith("And"):
        return fenced("SELECT 'of what?'")
    kind = "".join(re.findall(r"\bk\d", question)[:1])
    knows = "correcting" in messages[0].content or "price > 20" in asked
    dear = [f"price > {20 if knows else 25}"] if "over 20" in question else []
    where = [*([f"kind = '{kind}'"] if kind else []), *dear]
    return fenced(" WHERE ".join(filter(None, ["SELECT COUNT(*) FROM item", " AND ".join(where)])))


def study_of(folder: Path) -> StudyFile:
    """Give the shipped study over those dialogues."""
    return read_study(STUDY, [f"benchmark.data={folder}", "recordings=[]"])


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> Ledger:
    folder = tmp_path_factory.mktemp("dialogues")
    study = study_of(write_dialogues(folder))
    model, embedder = ScriptedModel(reading), HashingEmbedder()
    finished = run_study(study, folder / "run", model=model, embedder=embedder)
    assert not finished.left_out
    plan = plan_study(study, folder / "run" / "recording.sqlite", model=model, embedder=embedder)
    assert plan.calls == 0
    assert {(work.arm, work.setting) for work in plan.work} >= {("W0", "dialogue"), ("none", "dialogue")}
    return finished.ledger


def test_a_dialogue_is_never_torn_apart_by_the_draw(tmp_path: Path) -> None:
    cases = load_benchmark("sparc", write_dialogues(tmp_path)).cases
    drawn = split(cases, seed=42)
    sides = [{case.opening.key for case in side} for side in (drawn.learn, drawn.held_out)]
    assert not sides[0] & sides[1]
    assert (len(drawn.learn), len(drawn.held_out)) == (27, 9)
    assert [question.text for question in cases[2].earlier] == [cases[0].question.text, cases[1].question.text]


def test_the_official_layout_of_a_dialogue_is_read_as_well(tmp_path: Path) -> None:
    write_dialogues(tmp_path)
    ours = json.loads((tmp_path / "sparc_dev.json").read_text())
    official = [
        {
            "database_id": dialogue["db_id"],
            "interaction": [{"utterance": turn["question"], "query": turn["query"]} for turn in dialogue["turns"]],
        }
        for dialogue in ours
    ]
    before = load_benchmark("sparc", tmp_path).digest
    (tmp_path / "sparc_dev.json").write_text(json.dumps(official))
    assert load_benchmark("sparc", tmp_path).digest == before


def test_with_what_came_before_follow_ups_are_answered_and_without_it_first_questions_only(ledger: Ledger) -> None:
    table = dialogue_table(Facts(ledger))
    assert table is not None
    figures = {row[:2]: row[2:] for row in table.rows}
    stands, read = "as it stands", "read after the turns before"
    assert figures["none", stands] == ("9", "3", "33.3", "0.0", "100.0", "0.0", "0.0", NONE)
    assert figures["none", read] == ("9", "3", "66.7", "0.0", "100.0", "100.0", "0.0", NONE)
    assert figures["W0", read] == ("9", "3", "100.0", "100.0", "100.0", "100.0", "100.0", NONE)


def test_what_context_and_cards_change_is_told_of_first_and_later_turns_and_whole_dialogues(ledger: Ledger) -> None:
    table = dialogue_effects(Facts(ledger))
    assert table is not None
    figures = {row[:2]: (*row[2:5], row[5].split(";")[0], *row[6:]) for row in table.rows}
    context, cards = "none (1 seed, preliminary): in context − as it stands", "W0 − none, in context"
    assert figures[context, "all"] == ("9", "33.3", "66.7", "+33.33", "3", "0")
    assert figures[context, "first of a dialogue"] == ("3", "100.0", "100.0", "0.00", "0", "0")
    assert figures[context, "after the first"] == ("6", "0.0", "50.0", "+50.00", "3", "0")
    assert figures[context, "whole dialogues"] == ("3", "0.0", "0.0", "0.00", "0", "0")
    assert figures[cards, "after the first"] == ("6", "50.0", "100.0", "+50.00", "3", "0")
    assert figures[cards, "whole dialogues"] == ("3", "0.0", "100.0", "+100.00", "3", "0")


def test_the_report_says_what_context_does_to_first_and_later_questions(ledger: Ledger) -> None:
    (said,) = dialogue_sentences(Facts(ledger))
    assert "right 0.0% of the time as they stand and 50.0% read after the turns before them (none): +50.0" in said
    assert said.endswith("first ones 100.0% and 100.0%.")


def test_reading_a_follow_up_is_counted_in_its_answers_calls(ledger: Ledger) -> None:
    calls = {ledger.turns[row.question][1]: row.calls for row in ledger.of("none", "dialogue")}
    assert calls == {1: 1, 2: 2, 3: 2}
    assert {row.calls for row in ledger.of("none", "transfer")} == {1}


def test_a_card_of_a_dialogue_is_of_the_question_that_stands_alone(ledger: Ledger) -> None:
    cards = [card.text.splitlines()[0] for card in ledger.cards]
    assert len(cards) == 9
    assert all(" over 20 are there?" in words for words in cards)


def test_a_setting_of_plain_questions_reads_nothing_before_them() -> None:
    assert [name for name, setting in SETTINGS.items() if setting.in_context] == ["collection", "dialogue"]


@pytest.mark.shared_data
@pytest.mark.parametrize(("name", "dialogues", "turns"), [("sparc", 211, 606), ("cosql", 293, 1007)])
def test_real_dialogues_load_over_spiders_databases(shared_data: Path, name: str, dialogues: int, turns: int) -> None:
    benchmark = load_benchmark(name, shared_data / "dialogues", [str(shared_data / "spider" / "database")])
    assert (len({case.opening.id for case in benchmark.cases}), len(benchmark.cases)) == (dialogues, turns)
    assert not benchmark.missing
