"""The report in words: its first screen says what a reader must know before any table."""

import re

import msgspec
import pytest

from sqlcrystal.ledger.records import Ledger, Side
from sqlcrystal.study.report import audit_tables
from sqlcrystal.study.report.facts import Facts
from sqlcrystal.study.report.sentences import sentences
from sqlcrystal.study.report.summary import summarize
from synthetic_ledger import synthetic_ledger

FEW = ("none", "W0", "k=1")


def with_engine_repair() -> Ledger:
    """The small study with its repair pass taken for one that the engine begins and accepts."""
    ledger = synthetic_ledger(only=FEW)
    repaired = [row for row in ledger.outcomes if (row.arm, row.setting) == ("none", "repair")]
    rows = [msgspec.structs.replace(row, setting="engine-repair") for row in repaired]
    return msgspec.structs.replace(ledger, outcomes=(*ledger.outcomes, *rows))


def more(ledger: Ledger) -> str:
    facts = Facts(ledger)
    return " ".join(sentences(facts, summarize(facts)).more)


def test_the_first_screen_says_how_memory_does_against_repair_without_an_oracle() -> None:
    ledger = with_engine_repair()
    versus = Facts(ledger).compare_sides(Side("none", "engine-repair"), Side("W0"))
    assert versus is not None
    said = re.search(r"\(P_M − P_E\): ([+−][\d.]+) points, 95% interval \[.+?\], p ", more(ledger))
    assert said is not None
    assert float(said.group(1).replace("−", "-")) == round(versus.delta_pp, 1)


def test_the_summary_has_memory_against_repair_without_an_oracle() -> None:
    summary = summarize(Facts(with_engine_repair()))
    assert summary.against_pe_pp is not None
    assert summary.against_pe_pp == pytest.approx((summary.pm or 0) - (summary.pe or 0))
    assert summary.against_pe_ci_pp is not None
    assert summary.against_pe_ci_pp[0] < summary.against_pe_pp < summary.against_pe_ci_pp[1]


def test_nothing_is_said_against_a_rival_that_was_not_run() -> None:
    assert "P_M − P_E" not in more(synthetic_ledger(only=FEW))


def test_answers_that_one_side_lacks_are_named_in_the_first_lines() -> None:
    ledger = synthetic_ledger(only=FEW)
    kept = tuple(row for row in ledger.outcomes if row.arm != "none" or row.setting != "transfer" or row.seed != 13)
    facts = Facts(msgspec.structs.replace(ledger, outcomes=kept))
    said = sentences(facts, summarize(facts))
    assert "Of 180 answers" in said.found
    assert "90 held-out answers of one side have no answer of the other" in said.missing
    assert ("What is missing", said.missing) in said.opening


def test_accuracies_are_those_of_the_questions_that_both_sides_answered() -> None:
    ledger = synthetic_ledger(only=FEW)
    kept = tuple(row for row in ledger.outcomes if row.arm != "none" or row.setting != "transfer" or row.seed != 13)
    summary = summarize(Facts(msgspec.structs.replace(ledger, outcomes=kept)))
    assert (summary.pm or 0) - (summary.p0 or 0) == pytest.approx(summary.lift_pp)


def test_databases_that_were_not_there_are_named_in_the_first_lines() -> None:
    ledger = synthetic_ledger(only=FEW)
    manifest = msgspec.structs.replace(ledger.manifest, missing_databases=("db_mill", "db_quay"))
    facts = Facts(msgspec.structs.replace(ledger, manifest=manifest))
    said = sentences(facts, summarize(facts))
    assert said.missing == "2 databases of the benchmark were not there: db_mill and db_quay."


def test_a_database_that_holds_most_pairs_is_named_in_the_first_lines_and_beside_its_interval() -> None:
    ledger = synthetic_ledger(only=FEW)
    large, *others = dict.fromkeys(row.database for row in ledger.outcomes)
    one = {large, *others[:-3]}
    rows = (msgspec.structs.replace(row, database=large) if row.database in one else row for row in ledger.outcomes)
    facts = Facts(msgspec.structs.replace(ledger, outcomes=tuple(rows)))
    lift = facts.compare(facts.bare, facts.default)
    assert lift is not None
    warned = f"he database {large} holds 70 % of the pairs"
    assert warned in lift.uneven
    assert warned in sentences(facts, summarize(facts)).sure
    beside = audit_tables.over_databases(facts)
    assert beside is not None
    assert warned in beside.note


def test_a_whole_study_has_three_first_lines() -> None:
    facts = Facts(synthetic_ledger(only=FEW))
    assert len(sentences(facts, summarize(facts)).opening) == 3
