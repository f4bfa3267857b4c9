"""One rule for each action, through every door and for every kind of caller."""

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from five_doors import CALLERS, DOORS, Given, PythonDoor, team_of_ada
from running_service import ASKED, Service
from shop import RIGHT
from sqlcrystal.bank import Verdict

pytest.importorskip("mcp")

RULES = {
    "judging": {
        "known": "done",
        "asks only": "forbidden",
        "of another database": "missing",
        "not of the team": "refused",
    },
    # It proposes what others confirmed, and vouches for nothing.
    "looking": {"known": "done", "asks only": "forbidden", "of another database": "missing", "not of the team": "done"},
    "reading": {"known": "done", "asks only": "done", "of another database": "missing", "not of the team": "done"},
}
KIND = {action: "reading" if action in {"run", "look", "terms"} else "judging" for action in PythonDoor.actions}
KIND["propose"] = "looking"
CASES = [
    pytest.param(door, action, caller, id=f"{action} by {door}, {caller}")
    for door, kind in DOORS.items()
    for action in sorted(kind.actions)
    for caller in CALLERS
    if door != "command" or caller in {"known", "not of the team"}  # everything is open to the owner of the machine
]
SECRET = "Xylograph-7731"
CHANGING = ("redefine", "remove")
DEFINING = ("define", "import", *CHANGING)
numbers = count()


def doors_with(*actions: str) -> list[tuple[str, str]]:
    """Pair each of the actions with the doors that have it."""
    return [(name, action) for name, door in DOORS.items() for action in actions if action in door.actions]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with team_of_ada(tmp_path_factory.mktemp("doors")) as running:
        yield running


def given(service: Service, action: str, database: str = "shop", **texts: str) -> Given:
    """Ask a question of its own, with the verdict and the card that the action needs."""
    answer = service.crystal.ask(f"{ASKED} Number {next(numbers)}.", database, by="ada", memory=False)
    card = ""
    if action in {"edit", "disable", "delete", "undo"}:
        card = service.crystal.confirm(answer, by="ada").card
    sql = texts.pop("sql", f"{RIGHT} -- {next(numbers)}")
    if action in DEFINING:
        term = "".join(chr(ord("a") + int(digit)) for digit in str(next(numbers)))
        old = service.crystal.define(f"old {term}", "price IS NULL", database, by="ada") if action in CHANGING else None
        texts = {"text": f"term {term}", **texts}
        sql = sql if "SELECT" not in sql else "price IS NOT NULL"
        return Given(database=database, sql=sql, definition=old.id if old else "", **texts)
    return Given(database=database, answer=answer.id, card=card, sql=sql, **texts)


@pytest.mark.parametrize(("door", "action", "caller"), CASES)
def test_every_door_has_the_same_rule(
    service: Service, monkeypatch: pytest.MonkeyPatch, door: str, action: str, caller: str
) -> None:
    outcome, words = DOORS[door](service, caller, monkeypatch).act(action, given(service, action))
    assert outcome == RULES[KIND[action]][caller], words


@pytest.mark.parametrize("sql", ["THIS IS NOT SQL", "DELETE FROM item", "SELECT no_such FROM item"])
@pytest.mark.parametrize(("door", "action"), doors_with("correct", "edit"))
def test_no_door_stores_sql_that_may_not_or_does_not_run(
    service: Service, monkeypatch: pytest.MonkeyPatch, door: str, action: str, sql: str
) -> None:
    meant = given(service, action, sql=sql)
    before = service.crystal.card(meant.card) if meant.card else None
    outcome, words = DOORS[door](service, "known", monkeypatch).act(action, meant)
    assert (outcome, "nothing was changed" in words) == ("refused", True)
    if before is not None:
        assert service.crystal.card(meant.card) == before
    else:
        assert service.crystal.answer(meant.answer).verdict == ""


@pytest.mark.parametrize(("door", "action"), doors_with("edit"))
def test_every_door_writes_new_sql_into_the_text_and_counts_its_tokens(
    service: Service, monkeypatch: pytest.MonkeyPatch, door: str, action: str
) -> None:
    sql = f"SELECT name FROM item WHERE price > {next(numbers)} AND kind = 'a kind with a long name'"
    meant = given(service, action, sql=sql)
    before = service.crystal.card(meant.card).card
    outcome, words = DOORS[door](service, "known", monkeypatch).act(action, meant)
    card = service.crystal.card(meant.card).card
    assert (outcome, card.sql, sql in card.text) == ("done", sql, True), words
    assert card.tokens > before.tokens
    assert (card.admission.signal, card.admission.by) == ("edited", "ada")


@pytest.mark.parametrize(("door", "action"), doors_with("correct", "edit", "reject", "confirm", "disable", "delete"))
def test_no_door_keeps_a_value_of_a_database_whose_values_are_never_kept(
    service: Service, monkeypatch: pytest.MonkeyPatch, door: str, action: str
) -> None:
    sql = f"SELECT price FROM item WHERE name = '{SECRET}' -- {SECRET} {next(numbers)}"
    meant = given(
        service, action, "vault", sql=sql, text=f"{SECRET} is the text" if action == "edit" else "", note=SECRET
    )
    outcome, words = DOORS[door](service, "known", monkeypatch).act(action, meant)
    assert outcome == "done", words
    store = Path(service.crystal.workspace.team.store)
    kept = b"".join(path.read_bytes() for path in store.parent.glob(f"{store.name}*"))
    assert SECRET.encode() not in kept


@pytest.mark.parametrize("sql", ["THIS IS NOT SQL", "(DELETE FROM item)", "no_such = 1", "1 FROM item; SELECT 2"])
@pytest.mark.parametrize(("door", "action"), doors_with("define", "redefine", "import"))
def test_no_door_stores_a_definition_that_is_none_or_does_not_run(
    service: Service, monkeypatch: pytest.MonkeyPatch, door: str, action: str, sql: str
) -> None:
    meant = given(service, action, sql=sql)
    before = [service.crystal.definition(card.id) for card in service.crystal.definitions("shop")]
    outcome, words = DOORS[door](service, "known", monkeypatch).act(action, meant._replace(sql=sql))
    assert outcome == "refused", words
    assert [service.crystal.definition(card.id) for card in service.crystal.definitions("shop")] == before


@pytest.mark.parametrize(("door", "action"), doors_with(*DEFINING))
def test_no_door_keeps_a_value_in_a_definition_where_values_are_never_kept(
    service: Service, monkeypatch: pytest.MonkeyPatch, door: str, action: str
) -> None:
    meant = given(service, action, "vault", note=SECRET)
    come_in = DOORS[door](service, "known", monkeypatch)
    done = [come_in.act(action, meant)]
    refused = [come_in.act(action, meant._replace(sql=f"name = '{SECRET}'"))] if action != "remove" else []
    assert [outcome for outcome, _ in (*done, *refused)] == ["done", *(["refused"] if refused else [])], (done, refused)
    store = Path(service.crystal.workspace.team.store)
    kept = b"".join(path.read_bytes() for path in store.parent.glob(f"{store.name}*"))
    assert SECRET.encode() not in kept


def test_a_model_sees_no_cell_of_a_database_whose_values_are_never_kept(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    door = DOORS["MCP"](service, "known", monkeypatch)
    shown = [door.act("run", Given(database="vault", sql="SELECT name FROM item"))]
    shown.append(door.act("correct", given(service, "correct", "vault", sql="SELECT name FROM item")))
    assert [outcome for outcome, _ in shown] == ["done", "done"]
    assert not [words for _, words in shown if "Saw" in words or "Hammer" in words]
    assert "'row_count': 1," in shown[0][1]  # there are three: a count of one's choice could spell a cell out


def test_a_verdict_through_any_door_is_kept_under_the_callers_name(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    for kind in DOORS.values():
        meant = given(service, "confirm")
        assert kind(service, "known", monkeypatch).act("confirm", meant)[0] == "done"
        standing = service.crystal.store.decisions.standing(meant.answer)
        assert standing is not None
        assert (standing.verdict, standing.by) == (Verdict.CONFIRMED, "ada")
