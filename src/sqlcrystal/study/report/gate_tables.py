"""Tables on acquisition and admission: votes, exploration, a second pass, and the engine as a detector."""

from collections.abc import Sequence

from sqlcrystal.assembly import log_share
from sqlcrystal.ledger.records import Arm, Outcome
from sqlcrystal.measurement.collecting import (
    Detector,
    Share,
    detector,
    headroom_reached,
    later_pass,
    repair_yield,
    vote_precision,
)
from sqlcrystal.study.report.arm_rows import effect, grouped, label
from sqlcrystal.study.report.comparisons import finding
from sqlcrystal.study.report.facts import Facts, percent_right
from sqlcrystal.study.report.table import Body
from sqlcrystal.study.report.wording import NONE, number, percent

Row = tuple[str, ...]


def share_cell(share: Share) -> str:
    """A share with its counts."""
    return f"{percent(share.percent)} ({share.part} of {share.whole})" if share.whole else NONE


def _collections(facts: Facts, **wanted: str) -> list[tuple[Arm, tuple[Outcome, ...]]]:
    """The arms with these factors that collect, each with the outcomes of its collection."""
    fitting = [arm for arm in facts.arms.values() if all(getattr(arm, key) == value for key, value in wanted.items())]
    return [(arm, rows) for arm in fitting if arm.remembers and (rows := facts.rows(arm, "collection"))]


def votes(facts: Facts) -> Body | None:
    """Tell how often the candidate that a vote elects is right, and how right a bank is that stores it unchecked."""
    rows = grouped(facts, [arm for arm, _ in _collections(facts, source="T4")], _vote_row)
    columns = ("Arm", *(f"s{seed}" for seed in facts.seeds), "Elected candidates right %", "Cards in the bank right %")
    note = "Each round of the self-vote elects one candidate; under a check the rounds go on until one is right."
    return Body(columns=columns, rows=rows, note=note)


def _vote_row(facts: Facts, arm: Arm) -> Row:
    collected, cards = facts.rows(arm, "collection"), facts.cards(arm)
    seeds = (percent(vote_precision(part).percent) for part in _by_seed(facts, collected))
    audited = Share(sum(card.right for card in cards), len(cards))
    return (label(facts, arm), *seeds, share_cell(vote_precision(collected)), share_cell(audited))


def _by_seed(facts: Facts, rows: tuple[Outcome, ...]) -> list[list[Outcome]]:
    return [[row for row in rows if row.seed == seed] for seed in facts.seeds]


def exploration(facts: Facts) -> Body | None:
    """Show how much of the repair headroom exploring first reaches, on collection and held-out questions."""
    repaired = facts.rows(facts.default, "collection")
    rows: list[Row] = []
    for arm, exploring in _collections(facts, source="explore"):
        if repaired:
            seeds = zip(_by_seed(facts, exploring), _by_seed(facts, repaired), strict=True)
            shares = (percent(headroom_reached(part, base).percent, 0) for part, base in seeds)
            rows.append(
                (f"{arm.name}, collection questions", *shares, share_cell(headroom_reached(exploring, repaired)))
            )
    first = facts.bare_with("explore")
    ratio = facts.ratio(first)
    if first and ratio:
        by_seed = dict(zip(ratio.counts, ratio.ratio.per_seed, strict=True))
        seeds_shown = (percent(by_seed.get(seed), 0) for seed in facts.seeds)
        rows.append((f"{first.name}, held-out questions", *seeds_shown, percent(ratio.ratio.pooled)))
    columns = (
        "Exploring before the first answer",
        *(f"s{seed}" for seed in facts.seeds),
        "Share of the repair headroom %",
    )
    return Body(
        columns=columns, rows=tuple(rows), note="Repair knows that its first attempt was wrong; exploration does not."
    )


def logs(facts: Facts) -> Body | None:
    """Count the queries of a log that became cards, the right ones among these, and the arm's answers."""
    rows = [
        _log_row(facts, arm, collected) for arm, collected in _collections(facts) if log_share(arm.source) is not None
    ]
    columns = (
        "Arm",
        "Queries in the log",
        "Right ones %",
        "Became cards %",
        "Cards right %",
        "Calls per query",
        "Transfer %",
    )
    note = (
        "Right: the query answers the question that was hidden, by gold. A query that is wrong for it may be right for"
        " the question that the model wrote, so that this is a strict reading. Contrasts say what the cards lift."
    )
    return Body(columns=columns, rows=tuple(rows), note=note) if rows else None


def _log_row(facts: Facts, arm: Arm, collected: Sequence[Outcome]) -> Row:
    cards = facts.cards(arm)
    right = Share(sum(row.first_right for row in collected), len(collected))
    audited = Share(sum(card.right for card in cards), len(cards))
    calls = number(sum(row.calls for row in collected) / len(collected), 2)
    shares = map(share_cell, (right, Share(len(cards), len(collected)), audited))
    return (
        label(facts, arm),
        number(len(collected)),
        *shares,
        calls,
        percent(percent_right(facts.rows(arm, "transfer"))),
    )


def second_pass(facts: Facts) -> Body | None:
    """Tell what a second collection pass adds."""
    first = facts.rows(facts.default, "collection")
    arm = facts.planned(passes=2)
    again = later_pass(facts.rows(arm, "collection"), first)
    if arm is None or not first or not again:
        return None
    rows: list[Row] = []
    for name, part in (
        ("first pass", list(first)),
        ("second pass", [row for row in again if isinstance(row, Outcome)]),
    ):
        seeds = (percent(repair_yield([row for row in part if row.seed == seed]).percent) for seed in facts.seeds)
        rows.append((name, *seeds, share_cell(repair_yield(part))))
    moved = finding(facts, "second-pass")
    note = f"Transfer, {moved.name}: {effect(moved)}." if moved else ""
    columns = ("Pass", *(f"s{seed}" for seed in facts.seeds), "Failures that were repaired %")
    return Body(columns=columns, rows=tuple(rows), note=note)


def engine(facts: Facts) -> Body | None:
    """Trigger and gate without an oracle, as detectors."""
    passes: dict[str, tuple[tuple[Outcome, ...], tuple[Outcome, ...]]] = {}
    for arm in facts.arms.values():
        if rows := facts.rows(arm, "engine-repair"):
            passes[f"{label(facts, arm)}, held-out repair"] = rows, facts.rows(arm, "repair")
    for arm, rows in _collections(facts, admission="engine"):
        passes[f"{arm.name}, collection"] = rows, facts.rows(facts.default, "collection")
    detectors = {name: watched for name, both in passes.items() if (watched := detector(*both))}
    oracle = percent(percent_right(facts.repairs))
    columns = (
        "Where",
        "n",
        "Trigger: wrong answers caught %",
        "False alarms %",
        "Precision %",
        "Gate: candidates accepted %",
        "Accepted ones right %",
        "Of an oracle's repairs %",
        "Broken",
        "First attempt %",
        "Reached %",
        "Calls per question",
    )
    note = (
        "The trigger is a sign that the engine gives of a wrong answer (an error, no rows, …), the gate that the sign"
        " is gone; neither sees gold. False alarms: right answers that it rang for."
        " Of an oracle's repairs: those that were accepted without one, too."
        + (f" With the oracle for both, repair reaches P_K = {oracle}%." if facts.repairs else "")
    )
    return Body(
        columns=columns, rows=tuple(_detector_row(name, watched) for name, watched in detectors.items()), note=note
    )


def _detector_row(name: str, watched: Detector) -> Row:
    trigger = watched.sensitivity, watched.false_alarms, watched.precision
    gate = watched.accepted, watched.accepted_right, watched.shared
    reached = percent(watched.first.percent), percent(watched.reached.percent), number(watched.calls, 2)
    return name, number(watched.n), *map(share_cell, (*trigger, *gate)), str(watched.broken), *reached
