"""Tables on what a team has already: cards of its query log held against an oracle's, and its dialogues by turn."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from sqlcrystal.acquisition.repair import FirstTry
from sqlcrystal.admission.verifiers import Oracle, RoundTrip
from sqlcrystal.assembly import log_share
from sqlcrystal.ledger.records import Arm, Outcome, Side
from sqlcrystal.measurement import settings
from sqlcrystal.measurement.comparison import Comparison, compare
from sqlcrystal.measurement.flips import Pair, to_outcomes
from sqlcrystal.measurement.outcomes import paired
from sqlcrystal.measurement.settings import RatioEstimate, ratio_estimate
from sqlcrystal.study.report.arm_rows import cards_per_seed, label, told
from sqlcrystal.study.report.facts import Facts, percent_right
from sqlcrystal.study.report.table import NONE, Body, Cells, judged, kept_ratios, number, percent, points
from sqlcrystal.study.report.value_tables import sample

# ── a query log ──────────────────────────────────────────────────────────────────────────────────────────────────────


class LogLift(NamedTuple):
    """One arm's lift over no memory, held against that of the default arm's cards, which an oracle checked."""

    arm: Arm
    lift: Comparison
    share: RatioEstimate
    """The lift over the default's, in percent."""
    beyond_half: Comparison
    """Against the middle between no memory and the default: below zero, it lifts less than half as much."""


def log_lifts(facts: Facts) -> list[LogLift]:
    """Hold every arm that learns from a log, and first-try successes, against the default; none without a log."""
    if facts.bare is None or facts.default.admission != Oracle.signal or log_share(facts.default.source) is not None:
        return []
    arms = [arm for arm in facts.arms.values() if arm.remembers and facts.rows(arm)]
    logs = [arm for arm in arms if log_share(arm.source) is not None]
    beside = [arm for arm in arms if arm.source == FirstTry.name and logs]
    return [found for arm in (*beside, *logs) if (found := _log_lift(facts, facts.bare, arm)) is not None]


def _log_lift(facts: Facts, bare: Arm, arm: Arm) -> LogLift | None:
    passes = (_by_key(facts.rows(bare)), _by_key(facts.rows(facts.default)), _by_key(facts.rows(arm)))
    shared = [key for key in passes[2] if all(key in rows and _judged(rows[key]) for rows in passes)]
    lift = facts.compare(bare, arm)
    if not shared or lift is None:
        return None
    floor, oracle, log = ([rows[key] for key in shared] for rows in passes)
    half = paired(
        (row.database, row.question, str(row.seed), (low.right + high.right) / 2, row.right)
        for low, high, row in zip(floor, oracle, log, strict=True)
    )
    held_out = settings.held_out(floor=floor, memory=log, repaired=_from(floor, oracle))
    share = ratio_estimate(outcomes=held_out, rng=np.random.default_rng(0), method=facts.method)
    return LogLift(arm, lift, share, compare(half, method=facts.method))


def _from(floor: Sequence[Outcome], oracle: Sequence[Outcome]) -> list[Outcome]:
    """Tell the oracle's cards as a pass that begins at the answers without memory: its gain is what we divide by."""
    return [replace(high, first_right=low.right) for low, high in zip(floor, oracle, strict=True)]


def _by_key(rows: Iterable[Outcome]) -> dict[tuple[int, str, str], Outcome]:
    return {(row.seed, row.database, row.question): row for row in rows}


def _judged(row: Outcome) -> bool:
    return Pair(row, row).evaluable


def log_lift(facts: Facts) -> Body | None:
    """Tabulate what the cards of a log lift on held-out questions, beside an oracle's and verified successes."""
    lifts = log_lifts(facts)
    if not lifts or facts.bare is None:
        return None
    both = [
        (facts.bare.name, NONE, percent(percent_right(facts.rows(facts.bare))), NONE, NONE, NONE),
        (
            facts.default.name,
            cards_per_seed(facts, facts.default),
            percent(percent_right(facts.rows(facts.default))),
            told(facts.compare(facts.bare, facts.default)),
            *("100", NONE),
        ),
    ]
    rows = [*both, *(_lift_row(facts, lift) for lift in lifts)]
    columns = (
        "Arm",
        f"Cards, {facts.split} by {facts.split}",
        "Held-out right %",
        "Over no memory (pp) [95% CI]; p",
        f"Of the lift of {facts.default.name} %",
        f"Beyond half of {facts.default.name}'s lift (pp) [95% CI]; p",
    )
    note = (
        f"{sample(facts)} {facts.default.name}: an oracle checked its cards. Beyond half: the arm against the middle"
        f" between no memory and {facts.default.name}, question by question; below zero it lifts less than half as"
        " much. The share is a ratio of two lifts, with Fieller's interval where databases give one."
    )
    return Body(columns=columns, rows=tuple(rows), note=note)


def _lift_row(facts: Facts, lift: LogLift) -> Cells:
    share = NONE if lift.share.value is None else f"{percent(lift.share.value, 0)} ({kept_ratios(lift.share)})"
    return (
        label(facts, lift.arm),
        cards_per_seed(facts, lift.arm),
        percent(percent_right(facts.rows(lift.arm))),
        told(lift.lift),
        share,
        told(lift.beyond_half),
    )


def log_sentences(facts: Facts) -> Iterator[str]:
    """Say of every arm whose cards a round trip alone let in if they lift half as much as an oracle's, or how short."""
    for lift in log_lifts(facts):
        if lift.arm.admission != RoundTrip.signal or log_share(lift.arm.source) is None:
            continue
        oracle = facts.compare(facts.bare, facts.default)
        said = (
            f"Cards of a query log that only their round trip let in ({lift.arm.name}) lift"
            f" {points(lift.lift.delta_pp, 1)} points over no memory, those that an oracle checked"
            f" ({facts.default.name}) {points(oracle.delta_pp if oracle else None, 1)}"
        )
        yield f"{said}: {_against_half(lift.beyond_half) if oracle and oracle.delta_pp > 0 else 'nothing to halve'}."


def _against_half(half: Comparison) -> str:
    """Say on which side of half the oracle's lift an arm lies, by how much and how surely."""
    if half.delta_pp >= 0:
        return f"half as much or more, by {percent(half.delta_pp, 1)} points beyond half ({judged(half)})"
    return f"less than half as much, {percent(-half.delta_pp, 1)} points short of half ({judged(half)})"


# ── dialogues ────────────────────────────────────────────────────────────────────────────────────────────────────────

AS_IT_STANDS, IN_CONTEXT = "transfer", "dialogue"
ALL, FIRST, LATER, WHOLE = "all", "first of a dialogue", "after the first", "whole dialogues"


def dialogue_effects(facts: Facts) -> Body | None:
    """Tabulate what reading in context changes, and what cards do in context, on first and later turns apart."""
    rows: list[Cells] = []
    for name, a, b in _dialogue_sides(facts):
        pairs = facts.pairs_of(a, b)
        for part in (ALL, FIRST, LATER, WHOLE):
            result = turn_effect(facts, pairs, part)
            if result is not None:
                shares = (number(result.n), percent(result.a), percent(result.b), told(result))
                rows.append((name, part, *shares, number(result.fixed), number(result.broke)))
    columns = ("After − before", "Questions", "Pairs", "Before %", "After %", "pp [95% CI]; p", "Fixed", "Broken")
    note = (
        "Right by execution, of what could be judged on both sides. A whole dialogue counts once, and is right where"
        " all of its questions are. In context: read after the turns before, without gold."
    )
    return Body(columns=columns, rows=tuple(rows), note=note) if rows else None


def _dialogue_sides(facts: Facts) -> Iterator[tuple[str, Side, Side]]:
    """Give each arm in context against itself without, then each arm with memory in context against the one without."""
    if not facts.ledger.turns:
        return
    arms = [arm for arm in facts.arms.values() if facts.rows(arm, IN_CONTEXT)]
    for arm in arms:
        if facts.rows(arm):
            name = f"{label(facts, arm)}: in context − as it stands"
            yield name, Side(arm.name, AS_IT_STANDS), Side(arm.name, IN_CONTEXT)
    bare = next((arm for arm in arms if arm is facts.bare), None)
    for arm in arms if bare else ():
        if bare is not None and arm.remembers:
            yield f"{arm.name} − {bare.name}, in context", Side(bare.name, IN_CONTEXT), Side(arm.name, IN_CONTEXT)


def turn_effect(facts: Facts, pairs: Sequence[Pair], part: str) -> Comparison | None:
    """Compare the questions of one kind, or whole dialogues; None where none could be judged on both sides."""
    turns = facts.ledger.turns
    is_later = {FIRST: False, LATER: True}.get(part)
    kept = [pair for pair in pairs if pair.evaluable and pair.after.question in turns]
    if is_later is not None:
        kept = [pair for pair in kept if (turns[pair.after.question][1] > 1) == is_later]
    if not kept:
        return None
    if part != WHOLE:
        return compare(to_outcomes(kept), method=facts.method)
    whole: dict[tuple[str, str, str], list[Pair]] = {}
    for pair in kept:
        opening = turns[pair.after.question][0]
        whole.setdefault((pair.after.database, opening, str(pair.after.seed)), []).append(pair)
    rows = (
        (*key, all(pair.before.right for pair in each), all(pair.after.right for pair in each))
        for key, each in whole.items()
    )
    return compare(paired(rows), method=facts.method)


def dialogue_sentences(facts: Facts) -> Iterator[str]:
    """Say what reading in context does to questions after the first, and to first ones, without memory."""
    bare = "" if facts.bare is None else facts.bare.name
    for a, b in ((a, b) for _, a, b in _dialogue_sides(facts) if a.arm == b.arm == bare):
        pairs = facts.pairs_of(a, b)
        later, first = (turn_effect(facts, pairs, part) for part in (LATER, FIRST))
        if later is not None and first is not None:
            yield (
                f"Questions after the first of a dialogue are right {percent(later.a, 1)}% of the time as they stand"
                f" and {percent(later.b, 1)}% read after the turns before them ({a.arm}):"
                f" {points(later.delta_pp, 1)} points, {judged(later)}; first ones {percent(first.a, 1)}% and"
                f" {percent(first.b, 1)}%."
            )
