"""The report in words: its first screen says what a reader must know before any table."""

import re

import msgspec
import pytest

from sqlcrystal.ledger.records import Ledger, Side
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
