"""Tables on the answer as people get it: what each part adds, what it costs, and how well its confidence keeps word."""

from collections.abc import Sequence
from statistics import fmean

from sqlcrystal.ledger.records import Arm, Outcome, Side
from sqlcrystal.measurement.confidence import Example, calibration, cross_fitted
from sqlcrystal.study.report.arm_rows import label, told
from sqlcrystal.study.report.facts import Facts, percent_right
from sqlcrystal.study.report.table import Body
from sqlcrystal.study.report.value_tables import sample
from sqlcrystal.study.report.wording import NONE, described, number, percent

SERVED = "served"
MOST_GROUPS = 10


def as_served(facts: Facts) -> Body | None:
    """Every arm that was answered by the service's own code, beside one shot without memory."""
    arms = [arm for arm in facts.arms.values() if facts.rows(arm, SERVED)]
    if not arms or facts.bare is None:
        return None
    bare = facts.rows(facts.bare)
    rows = [_row("one shot, no memory", bare, NONE, NONE, NONE), *(_served_row(facts, arm) for arm in arms)]
    columns = (
        "Answered by",
        "Right %",
        "Over one shot (pp) [95% CI]; p",
        "Fixed",
        "Broken",
        "Calls",
        "Prompt tokens",
        "To read with a prefix cache",
        "Reply tokens",
        "Model seconds",
    )
    note = (
        f"{sample(facts)} Answered, chosen and repaired by the code of the service, without an oracle. Calls, tokens"
        " and seconds are means a question. A prefix cache that holds the database's schema and the answer's earlier"
        " prompts must read the tokens after them, estimated by characters."
    )
    return Body(columns=columns, rows=tuple(rows), note=note)


def _served_row(facts: Facts, arm: Arm) -> tuple[str, ...]:
    assert facts.bare is not None
    result = facts.compare_sides(Side(facts.bare.name), Side(arm.name, SERVED))
    fixed, broke = (number(result.fixed), number(result.broke)) if result else (NONE, NONE)
    name = f"{label(facts, arm)}: {described(facts, arm)}"
    return _row(name, facts.rows(arm, SERVED), told(result), fixed, broke)


def _row(name: str, rows: Sequence[Outcome], lift: str, fixed: str, broke: str) -> tuple[str, ...]:
    def mean(field: str) -> float:
        return fmean(getattr(row, field) for row in rows)

    read = number(mean("read_tokens"), 0) if any(row.read_tokens for row in rows) else NONE
    prompt, reply = (number(mean(field), 0) for field in ("prompt_tokens", "completion_tokens"))
    cost = (prompt, read, reply, number(mean("seconds"), 2))
    return name, percent(percent_right(rows)), lift, fixed, broke, number(mean("calls"), 2), *cost


def readings(facts: Facts) -> Body | None:
    """Count how often a served answer would be given as two readings, and which of the two is right."""
    arms = [arm for arm in facts.arms.values() if any(row.other_sql for row in facts.rows(arm, SERVED))]
    if not arms:
        return None
    body = []
    for arm in arms:
        rows = facts.rows(arm, SERVED)
        asked = [row for row in rows if row.other_sql]
        first = sum(row.right for row in asked)
        second = sum(row.other_right and not row.right for row in asked)
        shares = (first, second, len(asked) - first - second)
        name = f"{label(facts, arm)}: {described(facts, arm)}"
        each = (percent(100 * count / len(asked)) for count in shares)
        body.append((name, number(len(rows)), number(len(asked)), percent(100 * len(asked) / len(rows)), *each))
    columns = (
        "Answered by",
        "Answers",
        "With two readings",
        "Share %",
        "First right %",
        "Only second right %",
        "Neither %",
    )
    note = (
        "Two views run without a sign of trouble, give other rows, and no two views agree: then people pick one. The"
        " first is the answer that stands otherwise."
    )
    return Body(columns=columns, rows=tuple(body), note=note)


def confidence(facts: Facts) -> Body | None:
    """Show how often answers are right that are called so sure; each by a model that never saw its database."""
    served = [arm for arm in facts.arms.values() if all(row.traits for row in facts.rows(arm, SERVED))]
    arm = max(served, key=lambda arm: len(facts.rows(arm, SERVED)), default=None)
    rows = facts.rows(arm, SERVED)
    databases = {row.database for row in rows}
    if arm is None or len(databases) < 2 or len({row.right for row in rows}) < 2:
        return None
    right = [row.right for row in rows]
    held = calibration(cross_fitted([Example(row.traits, row.right, row.database) for row in rows]), right)
    body = [
        (number(part.n), percent(100 * part.n / held.n), percent(100 * part.said), percent(100 * part.right))
        for part in held.bins
    ]
    note = (
        f"Served answers of {arm.name}. Every probability is of a model fitted on other databases, in"
        f" {min(MOST_GROUPS, len(databases))} groups. Expected calibration error {number(held.error, 3)}, Brier score"
        f" {number(held.brier, 3)}; of the surest third {percent(100 * held.surest_third)}% are right."
    )
    return Body(columns=("Answers", "Share of all %", "Said to be right %", "Right %"), rows=tuple(body), note=note)
