"""Windows in the open: for arms that draw on one bank, how far what they show differs at all."""

from collections import Counter

from sqlcrystal.ledger.records import Arm
from sqlcrystal.measurement.windows import Windows
from sqlcrystal.measurement.windows import windows as compare_windows
from sqlcrystal.study.report.comparisons import ROSTER, Finding, contrasts, findings
from sqlcrystal.study.report.facts import Facts
from sqlcrystal.study.report.table import Body
from sqlcrystal.study.report.wording import NONE, number, percent, points

CHOOSING = ("retriever", "k")
"""The factors that decide which cards of a bank are shown."""
ALIKE = ("source", "admission", "writer", "correspondence", "bank", "passes", "solver")


def shown_windows(facts: Facts, finding: Finding) -> Windows | None:
    """Tell what the two arms of a comparison showed; None unless they choose differently from one bank."""
    a, b = facts.arms.get(finding.a), facts.arms.get(finding.b)
    if a is None or b is None or not _choose_from_one_bank(a, b):
        return None
    pairs = facts.pairs(a, b)
    held = {
        seed: Counter(card.database for card in facts.bank(a, seed).values())
        for seed in {pair.after.seed for pair in pairs}
    }
    available = [held[pair.after.seed][pair.after.database] for pair in pairs]
    return compare_windows(pairs, available, widths=(a.k, b.k))


def _choose_from_one_bank(a: Arm, b: Arm) -> bool:
    same = all(getattr(a, factor) == getattr(b, factor) for factor in ALIKE)
    return a.remembers and b.remembers and same and any(getattr(a, one) != getattr(b, one) for one in CHOOSING)


def window_table(facts: Facts) -> Body | None:
    """Compare the windows of all arms that choose differently from one bank."""
    rows, seen = [], set()
    for finding in (*findings(facts, tuple(ROSTER.values())), *contrasts(facts)):
        key = frozenset((finding.a, finding.b))
        compared = shown_windows(facts, finding) if key not in seen else None
        seen.add(key)
        if compared is not None:
            rows.append(_row(finding, compared))
    columns = (
        *("Contrast", "Pairs", "Cards to choose from", "No choice %", "Most shown", "Same window %"),
        *("Δ (pp)", "Reading"),
    )
    note = (
        "Cards to choose from: those of the question's own database in its bank, fewest, median and most; a retriever"
        " of other databases' cards has theirs. No choice: pairs whose bank holds no more than either window takes."
        " Same window: pairs in which both arms show the same cards, in whatever order, so that they can hardly differ."
    )
    return Body(columns=columns, rows=tuple(rows), note=note)


def _row(finding: Finding, compared: Windows) -> tuple[str, ...]:
    fewest, middle, most = compared.available
    status = ", preliminary" if finding.preliminary else ""
    return (
        finding.name,
        number(compared.same.whole),
        f"{fewest}, {middle:g}, {most}",
        percent(compared.forced.percent, 0),
        " and ".join(map(str, reversed(compared.most_shown))),
        percent(compared.same.percent, 0),
        points(finding.result.delta_pp),
        (compared.by_construction or NONE) + status,
    )
