"""The verdict on the lift, in the same few words wherever it stands: tile, text, terminal, summary.json."""

from sqlcrystal.study.report.comparisons import Finding, headline
from sqlcrystal.study.report.facts import Facts
from sqlcrystal.study.report.wording import plural

NOTHING_BANKED = "nothing to compare: no card was banked"
NOT_MEASURED = "not measured: memory or no memory is not recorded"
NOT_JUDGED = "not measured: no pair of answers could be judged"
UNKNOWN = (NOT_MEASURED, NOT_JUDGED)


def verdict(facts: Facts) -> str:
    """What the study says of memory on new questions, and no more."""
    lift = headline(facts)
    if lift is None:
        return NOT_JUDGED if facts.headline else NOT_MEASURED
    if not any(row.cards for row in facts.rows(facts.default)):
        return NOTHING_BANKED
    if lift.result.p_value is None:
        return "cannot be judged over databases"
    change = _change(lift)
    if lift.preliminary:
        return f"preliminary, {plural(lift.result.n_seeds, lift.split)}: {change}"
    return change


def _change(lift: Finding) -> str:
    claimed = lift.family.supported if lift.family else lift.told_from_zero
    if not claimed:
        return "no clear change"
    return "memory raises accuracy" if lift.result.delta_pp > 0 else "memory lowers accuracy"
