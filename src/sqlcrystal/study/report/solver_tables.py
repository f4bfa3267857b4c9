"""Tables on the solver: what it sees and chooses, with memory and without."""

from sqlcrystal.ledger.records import Arm
from sqlcrystal.study.report.arm_rows import grouped, label, told
from sqlcrystal.study.report.facts import Facts, percent_right
from sqlcrystal.study.report.glossary import WORDS
from sqlcrystal.study.report.table import Body
from sqlcrystal.study.report.value_tables import sample
from sqlcrystal.study.report.wording import NONE, percent

REPAIRED = "engine-repair"


def solvers(facts: Facts) -> Body | None:
    """Tabulate every solver without memory and with the default's cards: accuracy, lifts, repair on signs, calls."""
    arms = [arm for arm in facts.arms.values() if not arm.remembers and facts.rows(arm)]
    arms += [arm for arm in facts.varying("solver") if arm not in arms]
    if facts.bare is None or len({arm.solver for arm in arms}) < 2:
        return None
    columns = (
        *("Arm", "In words", "EX %", "Δ none (pp)", "Fixed/broke"),
        *("Δ without its cards (pp)", "After repair on signs, %", "Calls", "Prompt tokens"),
    )
    note = (
        f"{sample(facts)} Without its cards: against the same solver without memory. Calls and prompt tokens are means"
        " over questions, before any repair."
    )
    return Body(columns=columns, rows=grouped(facts, arms, _row, beside=(facts.bare, facts.default)), note=note)


def _row(facts: Facts, arm: Arm) -> tuple[str, ...]:
    rows = facts.rows(arm)
    lift = facts.compare(facts.bare, arm) if arm is not facts.bare else None
    unaided = facts.bare_with(arm.solver.removesuffix("-fallback").replace("fallback", "single-shot"))
    by_cards = facts.compare(unaided, arm) if arm.remembers else None
    return (
        label(facts, arm),
        WORDS["solver"](arm.solver) + ("" if arm.remembers else ", without cards"),
        percent(percent_right(rows)),
        told(lift),
        f"{lift.fixed}/{lift.broke}" if lift else NONE,
        told(by_cards),
        percent(percent_right(facts.rows(arm, REPAIRED))),
        f"{sum(row.calls for row in rows) / len(rows):.2f}",
        f"{sum(row.prompt_tokens for row in rows) / len(rows):,.0f}",
    )
