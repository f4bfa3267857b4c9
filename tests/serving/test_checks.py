"""Assertions and external checks vouch for answers without a person; nothing else does."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from cardbox import HashingEmbedder
from shop import RIGHT, build, fenced
from sqlcrystal import Crystal
from sqlcrystal.bank import Verdict
from sqlcrystal.config import AssertionEntry, DatabaseEntry, ExpectedValue, TeamFile
from sqlcrystal.models.scripted import ScriptedModel

ASKED = "How many hardware items are there?"
POSITIVE = AssertionEntry(name="positive", sql="SELECT * FROM {answer} WHERE 1 > 0", expect="rows")
NEVER = AssertionEntry(name="never", sql="SELECT count(*) FROM {answer}", expect=ExpectedValue(value=99))
Checked = Callable[..., Crystal]


@pytest.fixture
def over(tmp_path: Path) -> Checked:
    def open_with(*assertions: AssertionEntry, check: str = "") -> Crystal:
        entry = DatabaseEntry(url=str(build(tmp_path / "shop.sqlite")), assertion=assertions, check=check)
        team = TeamFile(databases={"shop": entry}, store=str(tmp_path / "team.db"))
        return Crystal(team, model=ScriptedModel(lambda *_: fenced(RIGHT)), embedder=HashingEmbedder())

    return open_with


def checker(folder: Path, verdict: str) -> str:
    """A command that answers with a fixed verdict."""
    script = folder / "check.py"
    script.write_text(f"import sys\nsys.stdin.read()\nprint({verdict!r})\n")
    return f"{sys.executable} {script}"


def test_an_answer_that_passes_every_assertion_is_a_card_at_once(over: Checked) -> None:
    with over(POSITIVE) as crystal:
        answer = crystal.ask(ASKED)
        (card,) = crystal.cards()
        assert (answer.card, card.admission.signal, card.admission.by) == (card.id, "assertion", "positive")
        assert crystal.queue() == []


def test_one_assertion_that_fails_makes_no_card_and_no_verdict(over: Checked) -> None:
    with over(POSITIVE, NEVER) as crystal:
        answer = crystal.ask(ASKED)
        assert (answer.card, crystal.cards(), crystal.store.decisions.all()) == ("", [], [])
        assert "99" in answer.checked


def test_an_external_check_accepts_and_rejects(over: Checked, tmp_path: Path) -> None:
    with over(check=checker(tmp_path, json.dumps({"accept": True, "by": "ledger"}))) as crystal:
        assert crystal.ask(ASKED).card
        assert crystal.cards()[0].admission.by == "ledger"
        checker(tmp_path, json.dumps({"accept": False, "reason": "not in the ledger"}))
        again = crystal.ask(ASKED)
        assert (again.card, again.checked) == ("", "external: not in the ledger")
        assert [decision.verdict for decision in crystal.store.decisions.all()] == [Verdict.CONFIRMED, Verdict.REJECTED]


def test_a_check_that_gives_no_verdict_decides_nothing(over: Checked, tmp_path: Path) -> None:
    with over(check=checker(tmp_path, "maybe")) as crystal:
        answer = crystal.ask(ASKED)
        assert answer.checked.startswith("no verdict")
        assert (crystal.cards(), crystal.store.decisions.all(), answer.rows) == ([], [], ((2,),))
