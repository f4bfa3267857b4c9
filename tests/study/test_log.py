"""The source `log` in a study: gold SQL is the log, its questions are nowhere, and the report tells what came back."""

import re
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from logged_quarry import QUERY
from sqlcrystal.benchmarks.query_log import logged
from sqlcrystal.config import parse_study, read_study
from sqlcrystal.errors import ConfigError
from sqlcrystal.ledger.records import Ledger, read_ledger
from sqlcrystal.study.design import design
from sqlcrystal.study.opening import run_study
from sqlcrystal.study.report.facts import Facts
from sqlcrystal.study.report.team_tables import log_lift, log_lifts, log_sentences
from sqlcrystal.study.report.write import write_report
from sqlcrystal.types import Message, Sampling
from study_player import Player, draw

ROOT = Path(__file__).resolve().parents[2]
ARMS = {
    "none": {"retriever": "none"},
    "log by oracle": {"source": "log"},
    "log": {"base": "log by oracle", "admission": "round-trip"},
    "log unchecked": {"base": "log by oracle", "admission": "ungated"},
    "hard log": {"base": "log", "source": "log:30%"},
}
WRITTEN = "written for query "


class Wording(Player):
    """Writes a numbered question for a query, and reads three of four such questions as they were meant."""

    def __init__(self) -> None:
        super().__init__()
        self.queries: list[str] = []

    def reply(self, messages: Sequence[Message], sampling: Sampling) -> str:
        """Write or read such a question; play as usual where a person's is asked."""
        user = messages[1].content
        if messages[0].content.startswith("You read"):
            query = QUERY.search(user)
            assert query is not None
            if query[1] not in self.queries:
                self.queries.append(query[1])
            return f"What was {WRITTEN}{self.queries.index(query[1])}?"
        asked = re.findall(rf"{WRITTEN}(\d+)\?\n(?:Write)", user)
        if not asked:
            return super().reply(messages, sampling)
        sql = self.queries[int(asked[-1])]
        return f"```sql\n{sql if draw(sql) < 75 else 'SELECT 1'}\n```"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Wording, Ledger]:
    folder = tmp_path_factory.mktemp("log") / "run"
    study = parse_study(
        {
            "name": "log",
            "benchmark": {"name": "quarry-1", "only": ["clinic"]},
            "seeds": [42],
            "budget": 1,
            "default": {"name": "W0", "source": "T3-look", "settings": ["transfer"]},
            "arm": [{"name": name, **factors} for name, factors in ARMS.items()],
            "contrast": [{"a": "none", "b": "log", "confirmatory": True}],
        }
    )
    model = Wording()
    run_study(study, folder, model=model)
    write_report(folder)
    return folder, model, read_ledger(folder)


def test_the_round_trip_alone_decides_which_queries_become_cards(run: tuple[Path, Wording, Ledger]) -> None:
    _, _, ledger = run
    asked = [row for row in ledger.outcomes if (row.arm, row.setting) == ("log", "collection")]
    cards = {arm: [card for card in ledger.cards if card.arm == arm] for arm in ARMS}
    assert all(row.first_right for row in asked)
    assert 0 < len(cards["log"]) < len(asked)
    assert len(cards["log unchecked"]) == len(asked)
    assert {card.question_id for card in cards["log"]} <= {row.question for row in asked if row.accepted}
    for arm in ("log", "log unchecked"):
        assert {(card.source, card.right) for card in cards[arm]} == {("log", True)}
    assert {card.signal for card in cards["log"]} == {"round-trip"}


def test_of_a_hard_log_stale_queries_never_come_back_and_wrong_ones_are_counted(
    run: tuple[Path, Wording, Ledger],
) -> None:
    _, _, ledger = run
    hard = [card for card in ledger.cards if card.arm == "hard log"]
    rows = [row for row in ledger.outcomes if (row.arm, row.setting) == ("hard log", "collection")]
    assert 0 < sum(not row.first_right for row in rows) < len(rows) / 2
    assert not [card for card in hard if "_before_2020" in card.sql]
    assert any(not card.right for card in hard)


def test_no_prompt_of_a_log_holds_a_question_of_the_benchmark_that_was_to_be_learned(
    run: tuple[Path, Wording, Ledger],
) -> None:
    _, model, ledger = run
    wording = [prompt[1].content for prompt in model.prompts if prompt[0].content.startswith("You read")]
    hidden = {row.question for row in ledger.outcomes if (row.arm, row.setting) == ("log", "collection")}
    texts = [case.question.text for case in model.clinic_and_telecom() if case.question.id in hidden]
    assert wording
    assert texts
    assert not [text for text in texts if any(text in prompt for prompt in wording)]
    assert all(WRITTEN in card.question for card in ledger.cards if card.source == "log")


def test_no_query_of_a_log_is_the_gold_of_a_held_out_question(run: tuple[Path, Wording, Ledger]) -> None:
    _, model, ledger = run
    held_out = {row.question for row in ledger.outcomes if (row.arm, row.setting) == ("log", "transfer")}
    golds = {case.sql for case in model.clinic_and_telecom() if case.question.id in held_out}
    learned = {case.sql for case in model.clinic_and_telecom() if case.question.id not in held_out}
    assert held_out
    assert not (golds - learned) & set(model.queries)


def test_the_report_tells_how_many_came_back_and_how_right_they_are(run: tuple[Path, Wording, Ledger]) -> None:
    folder, _, _ = run
    report = (folder / "report" / "report.md").read_text(encoding="utf-8")
    table = report.partition("Query logs")[2].partition("\n\n#")[0]
    assert re.search(r"^\| log \(.*?\) \| (\d+) \| 100\.0 .*? \| \d+\.\d \(\d+ of \1\) \| 100\.0 ", table, re.M), table
    assert "hard log" in table


@pytest.mark.parametrize(
    ("arms", "said"),
    [
        ([{"name": "y", "admission": "round-trip"}], "round-trip needs a log"),
        ([{"name": "y", "source": "log:130%"}], "choose from .*log, log:30%"),
        ([{"name": "y", "source": "log"}, {"name": "z", "base": "y", "passes": 2}], "a log is read once"),
    ],
)
def test_an_arm_that_no_log_can_feed_is_one_line(arms: list[dict[str, object]], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        design(parse_study({"name": "x", "arm": arms}))


def test_the_bundled_study_of_logs_changes_one_factor_at_a_time() -> None:
    study = read_study(ROOT / "studies" / "log.toml")
    assert {planned.name for planned in design(study).arms} >= {"W0", "none", "success", "log", "hard log"}
    assert msgspec.to_builtins(study)["frozen"] == ""


def test_a_larger_share_only_adds_wrong_queries_and_a_log_without_one_is_gold() -> None:
    cases = Player().clinic_and_telecom()
    changed = [
        {case.question.id for case in cases if logged(case, "sqlite", share=share) != case.sql}
        for share in (0, 0.3, 0.6)
    ]
    assert changed[0] == set()
    assert changed[0] < changed[1] < changed[2]


RIGHT_OF_TEN = {"none": 3, "W0": 7, "log by oracle": 6, "log": 6, "log unchecked": 3, "hard log": 4}
"""Of ten held-out questions of a made-up database; on every other database an arm with cards has one more."""


def made_up(ledger: Ledger) -> Facts:
    """Give the run's arms made-up answers on four databases of ten questions."""
    row = next(row for row in ledger.outcomes if row.setting == "transfer")
    outcomes = tuple(
        replace(
            row, arm=arm, database=f"db{n}", question=f"{n}-{i}", kind="", right=i < right + (n % 2) * (arm != "none")
        )
        for arm, right in RIGHT_OF_TEN.items()
        for n in range(4)
        for i in range(10)
    )
    return Facts(replace(ledger, outcomes=outcomes))


def test_the_report_holds_a_logs_lift_against_half_of_an_oracles(run: tuple[Path, Wording, Ledger]) -> None:
    facts = made_up(run[2])
    table = log_lift(facts)
    assert table is not None
    lifts = {lift.arm.name: lift for lift in log_lifts(facts)}
    # W0 lifts 45 points, the log 35, the hard log 15: 12.5 beyond half of 45, and 7.5 short of it
    beyond = {name: lift.beyond_half.delta_pp for name, lift in lifts.items()}
    assert beyond == pytest.approx({"log by oracle": 12.5, "log": 12.5, "log unchecked": -17.5, "hard log": -7.5})
    shares = {name: lift.share.value for name, lift in lifts.items()}
    assert shares == pytest.approx({name: (22.5 + points) / 0.45 for name, points in beyond.items()})
    shown = {row[0].partition(" (")[0]: row[2:] for row in table.rows}
    assert list(shown)[:2] == ["none", "W0"]
    assert shown["log"][0] == "65.0"
    assert shown["log"][1].startswith("+35.00 [")
    assert shown["log"][2].startswith("78 (95% interval ")
    assert shown["log"][3].startswith("+12.50 [")


def test_the_report_says_by_how_much_a_round_trip_alone_misses_half_of_what_an_oracle_gives(
    run: tuple[Path, Wording, Ledger],
) -> None:
    log, hard = log_sentences(made_up(run[2]))
    assert "(log) lift +35.0 points over no memory, those that an oracle checked (W0) +45.0: half as much or" in log
    assert "by 12.5 points beyond half (95% interval [" in log
    assert "(hard log) lift +15.0" in hard
    assert "less than half as much, 7.5 points short of half (95% interval [" in hard


def test_where_an_oracles_cards_lift_nothing_there_is_nothing_to_halve(run: tuple[Path, Wording, Ledger]) -> None:
    folder, _, ledger = run
    said = list(log_sentences(Facts(ledger)))
    assert [sentence.rpartition(": ")[2] for sentence in said] == ["nothing to halve."] * 2
    assert said[0] in (folder / "report" / "report.md").read_text(encoding="utf-8")
