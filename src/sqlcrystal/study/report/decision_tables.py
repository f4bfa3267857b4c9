"""RQ3 tables: which memory choices matter: format, source, verification, width, bank size."""

import numpy as np

from sqlcrystal.measurement.flips import to_outcomes
from sqlcrystal.measurement.statistics import equivalence
from sqlcrystal.study.ledger import Arm
from sqlcrystal.study.report.comparisons import DECISIONS, ROSTER, findings, resolve
from sqlcrystal.study.report.facts import Facts, accuracy
from sqlcrystal.study.report.mechanism_tables import arm_columns, arm_row, effect, readings
from sqlcrystal.study.report.reruns import observed_drift
from sqlcrystal.study.report.table import Absent, Table
from sqlcrystal.study.report.wording import NONE, interval, number, per_seed, percent, points, probability

SUPPORTING = tuple(planned for planned in ROSTER if planned.group == "supporting" and planned.factor == "Retriever")
WRITER_NAMES = {
    "W0": "W0 verbatim",
    "W1": "W1 full trace",
    "W2": "W2 bare diff",
    "W3": "W3 diff+mode",
    "W3+A": "W3+A anchor",
    "W4": "W4 diff+guard",
    "W5": "W5 capsule",
    "W5-lesson": "W5 lesson only",
}


def rq3(facts: Facts) -> Table | Absent:
    """The decision comparisons, retrievers included."""
    return readings(facts, (*DECISIONS, *SUPPORTING), key="rq3-decisions", title="RQ3: memory choices")


def writers(facts: Facts) -> Table | Absent:
    """The complete writer ladder: transfer, replay, retention, and equivalence with the default."""
    title, found = "Writer ladder", sorted(facts.varying("writer"), key=lambda arm: arm.writer)
    if len(found) < 2:
        return Absent(key="writers", title=title, needs="arms with writer W1 … W5")
    band = observed_drift(facts)
    margin = band.max_pp if band and band.max_pp > 0 else None
    rows = tuple(_writer_row(facts, arm, margin) for arm in found)
    left = [name for key, name in WRITER_NAMES.items() if key not in {arm.writer for arm in found}]
    drawn = (
        f"Equivalent: hierarchical TOST at ±{margin:.2f} pp, the largest rerun drift observed."
        if margin
        else "Equivalence is not tested: identical reruns of this study do not drift, so there is no margin to take."
    )
    absent = f" Not in this study: {', '.join(left)}." if left else ""
    return Table(
        key="writers",
        title=title,
        columns=("Writer", "Transfer EX %", "Δ default (pp)", "95% CI", "p", "Equivalent", "Replay %", "Retention %"),
        rows=rows,
        note=drawn + absent,
    )


def _writer_row(facts: Facts, arm: Arm, margin: float | None) -> tuple[str, ...]:
    versus = facts.compare(facts.default, arm) if arm is not facts.default else None
    same = NONE
    if versus and margin:
        outcomes = to_outcomes(facts.pairs(facts.default, arm))
        found = equivalence(outcomes=outcomes, margin_pp=margin, rng=np.random.default_rng(0))
        same = f"{'yes' if found.equivalent else 'no'} (p {probability(found.p_value)})"
    return (
        WRITER_NAMES.get(arm.writer, arm.writer),
        percent(accuracy(facts.rows(arm))),
        points(versus.delta_pp) if versus else NONE,
        interval(versus.ci_low_pp, versus.ci_high_pp) if versus else NONE,
        probability(versus.p_value) if versus else NONE,
        same,
        percent(accuracy(facts.rows(arm, "replay"))),
        percent(accuracy(facts.rows(arm, "retention"))),
    )


def sources(facts: Facts) -> Table | Absent:
    """Sources with banks of equal size, per seed."""
    title = "Episode sources at equal card counts, per seed"
    names = {"resample": "T1 resample", "one-bit": "T2 one bit", "self-vote": "T4 self-vote"}
    rows = []
    for plan in ROSTER:
        if plan.key not in names:
            continue
        matched, source = resolve(facts, plan)
        if source is not None:
            rows.append(_source_row(facts, names[plan.key], source))
        if matched is not None:
            rows.append(_source_row(facts, f"T3 cut to {names[plan.key].split()[0]}", matched))
    if not rows:
        return Absent(key="sources", title=title, needs="arms with source T1, T2, T4 and T3 banks matched to them")
    rows.append(_source_row(facts, f"{facts.default.source} full (default)", facts.default))
    seeds = "/".join(str(seed) for seed in facts.seeds)
    return Table(
        key="sources",
        title=title,
        columns=("Source", f"Cards ({seeds})", f"EX % ({seeds})", f"CR % ({seeds})", f"Replay % ({seeds})"),
        rows=tuple(rows),
    )


def _source_row(facts: Facts, name: str, arm: Arm) -> tuple[str, ...]:
    ratio, replay = facts.ratio(arm), facts.rows(arm, "replay")
    return (
        name,
        cards_per_seed(facts, arm),
        per_seed(facts.by_seed(facts.rows(arm)).values()),
        per_seed(ratio.ratio.per_seed) if ratio else NONE,
        per_seed(facts.by_seed(replay).values()) if replay else NONE,
    )


def cards_per_seed(facts: Facts, arm: Arm) -> str:
    """How many cards each seed's bank holds."""
    return "/".join(number(len(facts.bank(arm, seed))) for seed in facts.seeds)


def width_by_writer(facts: Facts) -> Table | Absent:
    """The writer × width grid."""
    title, found = "Writer × retrieval width", facts.varying("writer", "k")
    widths = {writer: sorted(a.k for a in found if a.writer == writer) for writer in sorted({a.writer for a in found})}
    kept = {writer: ks for writer, ks in widths.items() if len(ks) > 1}
    if not kept:
        return Absent(key="width-writer", title=title, needs="arms with k = 1, 3, 10 for one writer or more")
    by_place = {(arm.writer, arm.k): arm for arm in found}
    rows = tuple(
        (WRITER_NAMES.get(w, w) if k == ks[0] else "", str(k), *arm_row(facts, w, by_place[w, k])[1:])
        for w, ks in kept.items()
        for k in ks
    )
    ends = next(iter(findings(facts, [plan for plan in ROSTER if plan.key == "width"])), None)
    note = f"k=10 − k=1: {effect(ends)} ({ends.status})." if ends else ""
    return Table(
        key="width-writer", title=title, columns=("Writer", "k", *arm_columns(facts)[1:]), rows=rows, note=note
    )


def bank_fraction(arm: Arm) -> float | None:
    """The share of the bank an arm keeps, in percent; None for banks cut by count."""
    if arm.bank == "full":
        return 100.0
    return float(arm.bank[:-1]) if arm.bank.endswith("%") else None


def bank_by_width(facts: Facts) -> Table | Absent:
    """The bank size × width grid."""
    title = "Bank size × retrieval width"
    grid = {(size, arm.k): arm for arm in facts.varying("bank", "k") if (size := bank_fraction(arm)) is not None}
    sizes = sorted({size for size, _ in grid})
    if len(sizes) < 2:
        return Absent(key="bank-width", title=title, needs="arms with bank 25%, 50% or 75%")
    widths = sorted({k for size, k in grid if size < 100})
    rows = []
    for size in sizes:
        present = [k for k in widths if (size, k) in grid]
        for k in present:
            arm, first = grid[size, k], k == present[0]
            cards = cards_per_seed(facts, arm) if first else ""
            rows.append((f"{size:g}%" if first else "", cards, str(k), *arm_row(facts, "", arm)[1:]))
    return Table(
        key="bank-width",
        title=title,
        columns=("Bank", "Cards per seed", "k", *arm_columns(facts)[1:]),
        rows=tuple(rows),
        note="Smaller banks are nested in larger ones.",
    )


def origin(facts: Facts) -> Table | Absent:
    """Where episodes come from: successes, repairs, their union."""
    title = "Episode origin, per seed"
    named = {
        "first-try successes": facts.find(source="success"),
        "repaired (default)": facts.default,
        "union": facts.find(source="union"),
    }
    present = {name: arm for name, arm in named.items() if arm}
    if len(present) < 2 or facts.bare is None:
        return Absent(key="origin", title=title, needs="arms with source success and union")
    rows = [arm_row(facts, "none", facts.bare), *(arm_row(facts, name, arm) for name, arm in present.items())]
    success = named["first-try successes"]
    versus = facts.compare(success, facts.default) if success else None
    note = (
        f"Right only with repairs: {versus.fixed}; only with successes: {versus.broke};"
        f" McNemar p {probability(versus.mcnemar_p)}."
        if versus
        else ""
    )
    return Table(key="origin", title=title, columns=arm_columns(facts), rows=tuple(rows), note=note)


def matched_admission(facts: Facts) -> Table | Absent:
    """Origin at matched counts, and the verification boundary."""
    title = "Matched-count origin and the verification boundary"
    plans = {plan.key: plan for plan in ROSTER}
    draws = [resolve(facts, plans[f"origin-{draw}"])[0] for draw in (0, 1)]
    gates = [
        (proposer, *resolve(facts, plans[key]))
        for proposer, key in (("self-vote", "verification"), ("repair", "storage"))
    ]
    ungated = [arm for _, arm, _ in gates if arm]
    noisy = [arm for arm in facts.varying("admission") if arm.admission.startswith("noisy")]
    if facts.bare is None or not (any(draws) or ungated or noisy):
        return Absent(
            key="matched-admission",
            title=title,
            needs="success banks matched to the default, or arms with admission ungated or noisy",
        )
    rows: list[tuple[str, ...]] = [arm_row(facts, "none", facts.bare)]
    if any(draws):
        rows.append(("Matched-count episode source",))
        rows += [arm_row(facts, f"successes matched, draw {index}", arm) for index, arm in enumerate(draws) if arm]
        rows.append(arm_row(facts, "repairs (default)", facts.default))
    for proposer, unchecked, checked in gates:
        if unchecked:
            rows.append((f"{proposer.capitalize()} verification",))
            rows.append(arm_row(facts, f"{proposer}, ungated", unchecked))
            rows += [arm_row(facts, f"{proposer}, verified", checked)] if checked else []
    if noisy:
        rows.append(("Synthetic verification noise",))
        rows += [arm_row(facts, arm.name, arm) for arm in noisy]
    note = " ".join(_audited(facts, arm) for arm in ungated)
    return Table(key="matched-admission", title=title, columns=arm_columns(facts), rows=tuple(rows), note=note)


def _audited(facts: Facts, arm: Arm) -> str:
    """How much of a bank that nobody checked is right after all."""
    right = [card.right for seed in facts.seeds for card in facts.bank(arm, seed).values()]
    return (
        f"The bank of {arm.name} is {percent(100 * sum(right) / len(right))}% right ({len(right)} cards)."
        if right
        else ""
    )
