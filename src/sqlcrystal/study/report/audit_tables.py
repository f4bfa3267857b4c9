"""Audit tables: every claim with its evidence, leakage, rerun drift, adoption, substitution and card use."""

from collections import defaultdict
from collections.abc import Sequence

from sqlcrystal.measurement import leakage as leakage_audit
from sqlcrystal.measurement.adoption import Traced, Window, trace, trace_depth
from sqlcrystal.measurement.card_use import CardUse, card_use
from sqlcrystal.measurement.flips import Pair, breaks, fixes
from sqlcrystal.measurement.substitution import Substitution, overlap
from sqlcrystal.study.ledger import Arm
from sqlcrystal.study.report.comparisons import ROSTER, Finding, contrasts, findings
from sqlcrystal.study.report.facts import Facts
from sqlcrystal.study.report.reruns import observed_drift
from sqlcrystal.study.report.summary import MULTIPLICITY
from sqlcrystal.study.report.table import Absent, Table
from sqlcrystal.study.report.value_tables import NO_MEMORY
from sqlcrystal.study.report.wording import NONE, interval, number, percent, points, probability

EVIDENCE = (
    "Δ (pp)",
    "95% CI, CR2",
    "95% CI, two-stage",
    "p",
    "p (Holm)",
    "p, two-stage",
    "Fixed/broke",
    "McNemar p",
    "Role",
    "Status",
)


def evidence(found: Finding) -> tuple[str, ...]:
    """Everything a comparison rests on."""
    one, two = found.found, found.two_stage
    return (
        points(one.delta_pp),
        interval(one.ci_low_pp, one.ci_high_pp),
        interval(two.ci_low_pp, two.ci_high_pp),
        probability(one.p_value),
        probability(found.holm_p),
        probability(two.p_value),
        f"{one.fixed}/{one.broke}",
        probability(one.mcnemar_p),
        found.status,
        found.verdict,
    )


def contrast_table(facts: Facts) -> Table | Absent:
    """The contrasts the study file names."""
    title, made = "The study's contrasts", contrasts(facts)
    if not made:
        return Absent(key="contrasts", title=title, needs="contrasts in the study file whose arms were run")
    rows = tuple((_contrast(found), *evidence(found)) for found in made)
    return Table(key="contrasts", title=title, columns=("Contrast", *EVIDENCE), rows=rows, note=f"{MULTIPLICITY}.")


def _contrast(found: Finding) -> str:
    """The two arms, after the contrast's name if the study gave it one."""
    arms = f"{found.b} − {found.a}"
    return arms if found.name == f"{found.b} vs {found.a}" else f"{found.name}: {arms}"


def claims(facts: Facts) -> Table | Absent:
    """The claim audit: every comparison the study has arms for."""
    title, made = "Claim audit", findings(facts, ROSTER)
    if not made:
        return Absent(key="claim-audit", title=title, needs=NO_MEMORY)
    absent = [plan.name for plan in ROSTER if plan.key not in {found.key for found in made}]
    note = f"{MULTIPLICITY}." + (f" Without arms in this study: {'; '.join(absent)}." if absent else "")
    rows = tuple((found.factor, found.name, *evidence(found)) for found in made)
    return Table(key="claim-audit", title=title, columns=("Factor", "Comparison", *EVIDENCE), rows=rows, note=note)


def leakage(facts: Facts) -> Table | Absent:
    """Does the lift rest on twins of held-out questions in the bank?"""
    title, pairs = "Leakage audit", facts.headline
    if not pairs:
        return Absent(key="leakage", title=title, needs=NO_MEMORY)
    right: defaultdict[str, set[str]] = defaultdict(set)
    for row in facts.ledger.outcomes:
        if row.right and row.sql:
            right[row.question].add(row.sql)
    cards = [card for seed in facts.seeds for card in facts.bank(facts.default, seed).values()]
    found = leakage_audit.audit(pairs=pairs, cards=cards, questions=facts.ledger.questions, right_sql=right)
    share = f"{found.same_template} of {found.with_sql}"
    rows = (
        ("Held-out questions whose id is in the bank", f"{found.shared_ids} of {found.n}", NONE),
        (
            f"Paraphrase in the bank (word Jaccard ≥ {found.threshold:g})",
            f"{found.paraphrases} of {found.with_text}",
            points(found.lift_without_paraphrases_pp),
        ),
        ("Same SQL template in the bank (literals masked)", share, points(found.lift_without_templates_pp)),
        ("Either", NONE, points(found.lift_without_both_pp)),
    )
    return Table(
        key="leakage",
        title=title,
        columns=("Twin of a held-out question", "Pairs", "Lift without them (pp)"),
        rows=rows,
        note=f"Lift over all pairs: {points(found.lift_pp)} pp. A held-out question's templates are those of every"
        " right answer to it, under any arm, so that memory's own fixes are covered.",
    )


def drift_table(facts: Facts) -> Table | Absent:
    """Identical configurations run twice."""
    title, band = "Rerun drift", observed_drift(facts)
    if band is None:
        return Absent(
            key="drift",
            title=title,
            needs="the setting again: transfer asked anew under one configuration",
        )
    rows = tuple((run.name, number(run.n), points(run.difference_pp), percent(run.flipped)) for run in band.runs)
    return Table(
        key="drift",
        title=title,
        columns=("Identical runs", "n", "Difference (pp)", "Answers that flip %"),
        rows=rows,
        note=f"Absolute difference: median {band.median_pp:.2f} pp, maximum {band.max_pp:.2f} pp.",
    )


def adoption(facts: Facts) -> Table | Absent:
    """New SQL elements of changed answers, traced to window cards."""
    title, pairs = "Adoption and seepage", facts.headline
    if not pairs or not facts.ledger.cards:
        return Absent(key="adoption", title=title, needs="held-out outcomes with their cards")
    windows = _windows(facts, facts.default)
    rows = [
        _traced("fixes", trace(fixes(pairs), windows)),
        _traced("breaks", trace(breaks(pairs), windows)),
    ]
    wide = facts.find(k=10)
    note = "A verbatim match is an upper bound, since identifiers also stand in the schema: read fixes against breaks."
    if wide and facts.default.k < 10:
        gained = fixes(facts.pairs(facts.default, wide))
        deep = trace_depth(gained, _windows(facts, wide), narrow=facts.default.k)
        note += (
            f" Of {deep.fixes} questions right at k=10 and wrong at k={facts.default.k}, {deep.deep} trace to a card"
            f" beyond rank {facts.default.k} only, {deep.shallow} to one already shown, {deep.untraced} to none."
        )
    columns = ("Flips", "n", "With a new element", "Traced to a card", "Share of all %", "Share of changed %")
    return Table(key="adoption", title=title, columns=columns, rows=tuple(rows), note=note)


def _windows(facts: Facts, arm: Arm) -> Window:
    rows = {(row.seed, row.question): row for row in facts.rows(arm)}
    return lambda pair: [card.text for card in facts.window(arm, rows[pair.key])]


def _traced(name: str, found: Traced) -> tuple[str, ...]:
    shares = percent(found.share, 0), percent(found.share_of_changed, 0)
    return name, str(found.flips), str(found.with_new_elements), str(found.traced), *shares


def substitution(facts: Facts) -> Table | Absent:
    """Do repair and chain of thought solve what memory fixes?"""
    title, pairs = "Substitution, question by question", facts.headline
    others = {"repair without memory": facts.repairs}
    for solver in {arm.solver: None for arm in facts.arms.values() if arm.solver != facts.default.solver}:
        others[f"{solver} without memory"] = facts.rows(facts.bare_with(solver))
    found = {name: overlap(pairs, rows) for name, rows in others.items() if rows and pairs}
    kept = {name: one for name, one in found.items() if one.failures}
    if not kept:
        return Absent(
            key="substitution",
            title=title,
            needs="the held-out repair pass or an arm without memory under chain of thought",
        )
    return Table(
        key="substitution",
        title=title,
        columns=("Other method", "Memory's fixes it solves", "%", "% per seed", "Base rate %", "Enrichment"),
        rows=tuple(_substituted(name, one) for name, one in kept.items()),
        note="Base rate: the share of all failures of the bare solver that the method solves. An enrichment near 1"
        " would speak against substitution.",
    )


def _substituted(name: str, one: Substitution) -> tuple[str, ...]:
    seeds = "/".join(percent(value, 0) for value in one.per_seed) or NONE
    times = f"{one.enrichment:.1f}×" if one.enrichment == one.enrichment else NONE
    return name, f"{one.also_solved} of {one.fixes}", percent(one.share, 0), seeds, percent(one.base_rate), times


def card_usage(facts: Facts) -> Table | Absent:
    """How broadly the bank is used, by width."""
    title = "Card-level use, by width"
    rows = []
    for arm in sorted(facts.varying("k"), key=lambda arm: arm.k):
        fixed = fixes(facts.pairs(facts.bare, arm))
        used = [one for seed in facts.seeds if (one := _used(facts, arm, seed, fixed)).cards]
        if used:
            rows.append(
                (
                    f"k={arm.k}",
                    str(sum(one.cards for one in used)),
                    number(sum(one.slots for one in used)),
                    *_ranges(used),
                )
            )
    if not rows:
        return Absent(key="card-use", title=title, needs="cards and the windows of the default arm")
    return Table(
        key="card-use",
        title=title,
        columns=("Width", "Cards", "Slots", "In a fix window %", "Top tenth's share %", "Gini", "Never retrieved %"),
        rows=tuple(rows),
        note="Ranges over seeds. A window shows co-occurrence, not what a single card caused.",
    )


def _used(facts: Facts, arm: Arm, seed: int, fixed: Sequence[Pair]) -> CardUse:
    answers = [row for row in facts.rows(arm) if row.seed == seed]
    mine = [pair for pair in fixed if pair.after.seed == seed]
    return card_use(bank=list(facts.bank(arm, seed)), answers=answers, fixed=mine)


def _ranges(used: Sequence[CardUse]) -> tuple[str, ...]:
    def span(values: Sequence[float | None], digits: int) -> str:
        known = sorted(value for value in values if value is not None)
        low, high = (f"{value:.{digits}f}" for value in (known[0], known[-1])) if known else (NONE, NONE)
        return low if low == high else f"{low}–{high}"

    return (
        span([one.in_fix_windows for one in used], 0),
        span([one.top_decile for one in used], 0),
        span([one.gini for one in used], 2),
        span([one.never_retrieved for one in used], 0),
    )
