"""Learning from a query log: what leads back is proposed with its evidence, and nothing is a card before a person."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from cardbox import HashingEmbedder
from serving.test_privacy import kept_bytes
from serving_commands import run_command
from serving_endpoint import model_at, scripted_endpoint
from shop import RIGHT, build, fenced
from sqlcrystal import Crystal
from sqlcrystal.bank import Scope
from sqlcrystal.config import DatabaseEntry, TeamFile
from sqlcrystal.errors import BadReply, Forbidden, UserError
from sqlcrystal.models.scripted import ScriptedModel, prompt_text
from sqlcrystal.querylog.readers import Reason
from sqlcrystal.serving import Caller
from sqlcrystal.serving.learning import Upload
from sqlcrystal.types import Message, Sampling

KINDS = "SELECT kind, COUNT(*) FROM item GROUP BY kind"
DEAR = "SELECT name FROM item WHERE price > 100"
LOG = f"{RIGHT};\n" * 3 + f"{DEAR};\nSELECT name FROM item WHERE price > 300;\n{KINDS};\n"
HOSTILE = """
DELETE FROM item;
SELECT name FROM item WHERE name = 'sk-proj-abcdefghijklmnop1234';
SELECT name FROM gone;
SELECT name FROM item WHERE kind = 'hardware';
SELECT TOP 3 [name] FROM item;
"""


def told(messages: Sequence[Message], _: Sampling) -> str:
    """Write the query itself into the question, as words, and read it there again; one query leads elsewhere."""
    system, user = messages[0].content, messages[1].content
    if system.startswith("You read"):
        query = re.search(r"\[Query\]\n```sql\n(.*?)\n```", user, re.DOTALL)
        assert query is not None
        return f"Which rows come by {query[1].removeprefix('SELECT ')}?"
    asked = re.findall(r"Which rows come by (.*?)\?", user)
    assert asked, user
    return fenced("SELECT 1" if "GROUP BY" in asked[-1] else f"SELECT {asked[-1]}")


def team(folder: Path, script: Any = told, **entry: Any) -> Crystal:
    url = str(build(folder / "shop.sqlite")) if not (folder / "shop.sqlite").exists() else str(folder / "shop.sqlite")
    settings = TeamFile(databases={"shop": DatabaseEntry(url=url, **entry)}, store=str(folder / "team.db"), budget=1)
    return Crystal(settings, model=ScriptedModel(script), embedder=HashingEmbedder())


def log(folder: Path, text: str = LOG) -> Path:
    path = folder / "log.sql"
    path.write_text(text)
    return path


def test_what_leads_back_waits_in_the_queue_with_its_evidence_and_is_no_card(tmp_path: Path) -> None:
    with team(tmp_path) as crystal:
        steps: list[tuple[int, int]] = []
        report = crystal.learn(log(tmp_path), watch=lambda step: steps.append((step.done, step.whole)))
        assert (report.read, report.shapes, report.proposed, report.lost) == (6, 3, 2, 1)
        assert steps == [(1, 3), (2, 3), (3, 3)]
        assert crystal.cards() == []
        waiting = crystal.queue()
        assert [(entry.sql, entry.uses) for entry in waiting] == [(RIGHT, 3), (DEAR, 2)]
        learned = crystal.answer_story(waiting[0].id).record.learned
        assert learned is not None
        assert (learned.uses, learned.places, learned.tries, learned.model) == (
            3,
            ("log.sql:1", "log.sql:2", "log.sql:3"),
            1,
            "scripted",
        )


def test_a_confirmed_query_is_a_card_that_later_questions_see_and_undo_takes_it_back(tmp_path: Path) -> None:
    with team(tmp_path) as crystal:
        crystal.learn(log(tmp_path))
        rulings = crystal.confirm_all([entry.id for entry in crystal.queue()], by="ada")
        cards = crystal.cards()
        assert [(card.sql, card.source, card.admission.signal, card.admission.by) for card in cards] == [
            (RIGHT, "log", "user", "ada"),
            (DEAR, "log", "user", "ada"),
        ]
        assert crystal.queue() == []
        answer = crystal.ask("Which rows come by name FROM item WHERE price > 400?")
        assert {card.id for card in answer.cards} == {ruling.card for ruling in rulings}
        crystal.undo(rulings[0].id, by="ada")
        assert [str(card.status) for card in crystal.cards()] == ["disabled", "active"]


def test_confirming_many_is_all_or_none(tmp_path: Path) -> None:
    with team(tmp_path) as crystal:
        crystal.learn(log(tmp_path))
        with pytest.raises(UserError):
            crystal.confirm_all([crystal.queue()[0].id, "no-such-answer"])
        assert (crystal.cards(), len(crystal.queue())) == ([], 2)


def test_a_team_may_let_the_round_trip_admit_and_a_card_says_so(tmp_path: Path) -> None:
    with team(tmp_path, learn="round-trip") as crystal:
        report = crystal.learn(log(tmp_path))
        assert (report.proposed, report.banked) == (0, 2)
        assert {(card.admission.signal, card.admission.by) for card in crystal.cards()} == {("round-trip", "scripted")}
        assert crystal.queue() == []
        crystal.revoke(signal="round-trip", revoked_by="ada")
        assert {str(card.status) for card in crystal.cards()} == {"disabled"}


def test_a_hostile_log_is_refused_with_a_count_and_a_reason_each_and_asks_no_model(tmp_path: Path) -> None:
    with team(tmp_path, script=[]) as crystal:
        report = crystal.learn(log(tmp_path, HOSTILE))
        assert {(refused.reason, refused.count) for refused in report.refused} == {
            (str(reason), 1) for reason in (Reason.WRITES, Reason.SECRET, Reason.FAILS, Reason.EMPTY, Reason.UNREADABLE)
        }
        assert [refused.places for refused in report.refused if refused.reason == Reason.WRITES] == [("log.sql:2",)]
    assert "sk-proj" not in kept_bytes(tmp_path)


def test_learning_that_was_ended_goes_on_where_it_stood_and_loses_nothing(tmp_path: Path) -> None:
    calls = 0

    def dies(messages: Sequence[Message], sampling: Sampling) -> str | None:
        nonlocal calls
        calls += 1
        return None if calls == 3 else told(messages, sampling)

    with team(tmp_path, script=dies) as crystal, pytest.raises(BadReply):
        crystal.learn(log(tmp_path))
    with team(tmp_path) as crystal:
        report = crystal.learn(log(tmp_path))
        assert (report.known, report.proposed, report.lost) == (1, 1, 1)
        assert [entry.sql for entry in crystal.queue()] == [RIGHT, DEAR]
        assert crystal.learn(log(tmp_path)).known == 3
        assert (crystal.learn(log(tmp_path), again=True).known, len(crystal.queue())) == (2, 2)


def test_a_limit_leaves_the_rest_for_the_next_time(tmp_path: Path) -> None:
    with team(tmp_path) as crystal:
        first = crystal.learn(log(tmp_path), most=1)
        assert (first.proposed, first.left, crystal.queue()[0].sql) == (1, 2, RIGHT)
        assert crystal.learn(log(tmp_path), most=1).left == 1


def test_no_account_counts_what_nobody_asked(tmp_path: Path) -> None:
    with team(tmp_path) as crystal:
        crystal.learn(log(tmp_path))
        crystal.confirm(crystal.queue()[0].id)
        assert crystal.history() == []
        assert crystal.value() == []
        assert crystal.judged() == []


def test_where_no_value_is_kept_neither_the_store_nor_a_prompt_sees_one(tmp_path: Path) -> None:
    with team(tmp_path, values="never") as crystal:
        report = crystal.learn(log(tmp_path, f"{RIGHT};\nSELECT price FROM item WHERE name = 'Bolt' AND price > 7;"))
        assert report.proposed == 2
        assert {entry.sql for entry in crystal.queue()} == {
            "SELECT COUNT(*) FROM item WHERE kind = '«1»'",
            "SELECT price FROM item WHERE name = '«1»' AND price > '«n2»'",
        }
        crystal.confirm_all([entry.id for entry in crystal.queue()])
        assert len(crystal.cards()) == 2
        model = crystal.workspace.model
        assert isinstance(model, ScriptedModel)
        prompts = " ".join(prompt_text(prompt) for prompt in model.prompts)
    assert not [value for value in ("HW", "Bolt") if value in prompts]
    assert not [value for value in ("'HW'", "Bolt", "log.sql") if value in kept_bytes(tmp_path)]


def test_two_queries_that_are_one_question_once_their_values_are_gone_are_proposed_once(tmp_path: Path) -> None:
    def numbered(messages: Sequence[Message], sampling: Sampling) -> str:
        system, user = messages[0].content, messages[1].content
        if system.startswith("You read"):
            return f"What is asked in query {11 if 'COUNT' in user.partition('[Query]')[2] else 22} of the log?"
        return fenced("SELECT COUNT(*) FROM item" if "query 11" in user else "SELECT name FROM item")

    with team(tmp_path, script=numbered, values="never") as crystal:
        report = crystal.learn(log(tmp_path, "SELECT COUNT(*) FROM item;\nSELECT name FROM item;"))
        assert (report.proposed, report.lost) == (1, 1)
        assert [entry.question for entry in crystal.queue()] == ["What is asked in query «n1» of the log?"]


def test_what_another_process_proposed_in_the_meantime_is_not_proposed_again(tmp_path: Path) -> None:
    calls = 0

    def slow(messages: Sequence[Message], sampling: Sampling) -> str:
        nonlocal calls
        calls += 1
        if calls == 1:  # the other process is faster, and words the query differently
            with team(tmp_path, reworded) as other:
                assert other.learn(log(tmp_path, f"{RIGHT};")).proposed == 1
        return told(messages, sampling)

    def reworded(messages: Sequence[Message], sampling: Sampling) -> str:
        worded = messages[0].content.startswith("You read")
        return f"In other words: {told(messages, sampling)}" if worded else told(messages, sampling)

    with team(tmp_path, slow) as crystal:
        assert crystal.learn(log(tmp_path, f"{RIGHT};")).proposed == 1
        assert len(crystal.queue()) == 1


def test_a_bound_parameter_gets_the_commonest_value_of_its_column(tmp_path: Path) -> None:
    with team(tmp_path) as crystal:
        crystal.learn(
            log(tmp_path, "SELECT name FROM item WHERE kind = :kind LIMIT :n;SELECT name FROM item WHERE :x;")
        )
        assert [entry.sql for entry in crystal.queue()] == ["SELECT name FROM item WHERE kind = 'HW' LIMIT 10"]


def test_only_a_manager_learns_and_only_the_owner_of_the_machine_names_a_file(tmp_path: Path) -> None:
    with team(tmp_path) as crystal:
        for scope, error in ((Scope.JUDGE, Forbidden), (Scope.MANAGE, UserError)):
            caller = Caller(person="ada", scopes=frozenset({("shop", Scope.ASK), ("shop", scope)}))
            with pytest.raises(error):
                crystal.acting_for(caller).learn(log(tmp_path))
        assert crystal.acting_for(caller).learn(Upload("log.sql", LOG)).proposed == 2
        assert [entry.uses for entry in crystal.queue()] == [3, 2]


def test_the_command_tells_what_a_log_came_to_and_its_progress_on_standard_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with scripted_endpoint(told) as server:
        arguments = (log(tmp_path, LOG + HOSTILE), "--db", build(tmp_path / "shop.sqlite"), "--model", model_at(server))
        common = (*arguments, "--store", tmp_path / "team.db")
        first = run_command(capsys, monkeypatch, "learn", *common, "--limit", 1, "--json")
        second = run_command(capsys, monkeypatch, "learn", *common)
        queue = run_command(capsys, monkeypatch, "queue", "--store", tmp_path / "team.db")
    assert (first.code, first.document["proposed"], first.document["left"]) == (0, 1, 4)
    assert "1 of 1 queries tried" in first.err
    assert "shop: 11 statements, 5 queries that differ" in second.out
    assert f"1\t{Reason.WRITES}\tlog.sql:8" in second.out
    assert "     1  tried before" in second.out
    assert [line.split("\t")[3:5] for line in queue.out.splitlines()[1:]] == [["0", "3"], ["0", "2"]]
