"""Audit tables: contrasts and claims with their evidence, leakage, rerun drift, adoption, substitution and card use."""

from collections import defaultdict
from collections.abc import Sequence

from sqlcrystal.ledger.records import Arm
from sqlcrystal.measurement import attribution
from sqlcrystal.measurement.attribution import BankUse, Traced, Window, card_use, trace, trace_depth
from sqlcrystal.measurement.comparison import Comparison
from sqlcrystal.measurement.flips import Pair, Substitution, breaks, fixes, overlap
from sqlcrystal.study.report.arm_rows import grouped, label, not_shown
from sqlcrystal.study.report.comparisons import ROSTER, Finding, designated, findings, observed_drift, oriented
from sqlcrystal.study.report.facts import Facts
from sqlcrystal.study.report.table import (
    METHOD_NAMES,
    NONE,
    Body,
    Cells,
    interval,
    listed,
    number,
    per_seed,
    percent,
    points,
    probability,
)

MULTIPLICITY = (
    "Memory against none is the primary contrast, tested first and unadjusted; Holm's step-down adjustment over the"
    " other confirmatory contrasts, run or not; p-values of exploratory contrasts are unadjusted diagnostics"
)


def _run_name(facts: Facts) -> str:
    return f"{facts.manifest.model} · {facts.manifest.benchmark}"


def _evidence(finding: Finding) -> Cells:
    """Tell what a comparison rests on, with the paper's reading and ours."""
    result = finding.result
    holm = finding.family.holm_p if finding.family else None
    return (
        points(result.delta_pp),
        interval(result.ci_low_pp, result.ci_high_pp),
        probability(result.p_value),
        probability(holm),
        f"{result.fixed}/{result.broke}",
        finding.role,
        finding.papers_verdict,
        finding.verdict,
    )


def _evidence_columns(facts: Facts) -> Cells:
    ends = f"95% CI ({METHOD_NAMES[facts.method]})"
    return ("Δ (pp)", ends, "p", "p (Holm)", "Fixed/broke", "Role", "Alone, as in the paper", "Status")


def contrast_table(runs: Sequence[Facts]) -> Body | None:
    """The contrasts the study files name, run by run."""
    rows: list[Cells] = []
    for facts in runs:
        tested = oriented(facts)
        rows += [(_run_name(facts),)] if tested and len(runs) > 1 else []
        rows += [(_title_of(finding), *_evidence(finding)) for finding in tested]
    waiting = {contrast.name for contrast in designated(runs[0])} - {finding.key for finding in oriented(runs[0])}
    papers = " Alone, as in the paper: by its two-stage bootstrap, unadjusted."
    note = f"{MULTIPLICITY}.{papers}" + (f" Designated and not run yet: {listed(sorted(waiting))}." if waiting else "")
    return Body(columns=("Contrast", *_evidence_columns(runs[0])), rows=tuple(rows), note=note + _crossed(runs))


def _crossed(runs: Sequence[Facts]) -> str:
    """Name the contrasts whose answers were not all given by one runtime."""
    crossing = [finding for facts in runs for finding in oriented(facts) if len(finding.runtimes) > 1]
    if not crossing:
        return ""
    runtimes = sorted({runtime for finding in crossing for runtime in finding.runtimes})
    names = listed(_title_of(finding) for finding in crossing)
    return f" Answered by more than one runtime ({'; '.join(runtimes)}), which adds drift: {names}."


def _title_of(finding: Finding) -> str:
    """The two arms, after the contrast's name if the study gave it one."""
    unnamed = (f"{finding.b} vs {finding.a}", f"{finding.a} vs {finding.b}")
    return finding.name if finding.key in unnamed else f"{finding.key}: {finding.name}"


def strength(facts: Facts) -> Body | None:
    """Beside every contrast: other tests of it, and what the design could have seen."""
    name = METHOD_NAMES[facts.beside]
    columns = (
        *("Contrast", "Δ (pp)", f"95% CI ({name})", f"p ({name})", "p (sign flip)", "p (McNemar)"),
        *("Detectable (pp)", "Pairs left out"),
    )
    note = (
        "Detectable: the smallest true difference that a study like this one finds with 80% power, and its own 95%"
        " interval. Sign flip: exact over databases, at best 2^(1 − databases). McNemar's p treats pairs as"
        " independent, which clustered pairs are not. Left out: pairs that could not be judged on both sides."
    )
    return Body(columns=columns, rows=tuple(map(_strength_row, oriented(facts))), note=note)


def _strength_row(finding: Finding) -> Cells:
    result, other = finding.result, finding.beside
    return (
        _named(finding),
        points(result.delta_pp),
        interval(other.ci_low_pp, other.ci_high_pp),
        probability(other.p_value),
        probability(result.sign_flip_p),
        probability(result.mcnemar_p),
        _detected(result),
        str(result.unevaluable),
    )


def _named(finding: Finding) -> str:
    return _title_of(finding) + (" (preliminary)" if finding.preliminary else "")


def over_databases(facts: Facts) -> Body | None:
    """Beside every contrast: how its databases differ, and what a new one may expect."""
    columns = (
        *("Contrast", "Δ (pp)", "Without one database (pp)", "SD between databases"),
        *("Mean over databases, 95%", "New database, 95%"),
    )
    note = (
        "Mean over databases: each counts once. New database: where the true difference of a database outside the study"
        " is expected, from that mean."
    )
    warned = dict.fromkeys(finding.result.uneven for finding in oriented(facts) if finding.result.uneven)
    note = " ".join([note, *(f"{warning[:1].upper()}{warning[1:]}." for warning in warned)])
    return Body(columns=columns, rows=tuple(map(_spread_row, oriented(facts))), note=note)


def _spread_row(finding: Finding) -> Cells:
    result, left = finding.result, finding.result.leave_one_out
    mean = points(result.macro_pp)
    return (
        _named(finding),
        points(result.delta_pp),
        f"{points(left.low_pp)} to {points(left.high_pp)}" if left else NONE,
        percent(result.between_sd_pp, 2),
        f"{mean} {interval(*result.macro_ci_pp)}" if result.macro_ci_pp else mean,
        interval(*result.new_database_pp) if result.new_database_pp else NONE,
    )


def _detected(result: Comparison) -> str:
    """Tell what could be detected, and how sure that figure itself is."""
    ends = result.detectable_ci_pp
    shown = percent(result.detectable_pp, 2)
    return f"{shown} ({percent(ends[0], 1)} to {percent(ends[1], 1)})" if ends else shown


def claims(runs: Sequence[Facts]) -> Body | None:
    """The claim audit: every comparison of the roster that a run has arms for."""
    rows: list[Cells] = []
    for facts in runs:
        tested = findings(facts, tuple(ROSTER.values()))
        rows += [(_run_name(facts),)] if tested and len(runs) > 1 else []
        rows += [
            (finding.factor, finding.asks, finding.name, *_without_the_papers_reading(_evidence(finding)))
            for finding in tested
        ]
    note = f"{MULTIPLICITY}.{not_shown(runs[0], tuple(ROSTER.values()))}"
    columns = ("Factor", "Question", "Contrast", *_without_the_papers_reading(_evidence_columns(runs[0])))
    return Body(columns=columns, rows=tuple(rows), note=note)


def _without_the_papers_reading(evidence: Cells) -> Cells:
    """The evidence without the paper's own reading, which the table of contrasts has."""
    return (*evidence[:-2], evidence[-1])


def leakage(facts: Facts) -> Body | None:
    """Does the lift rest on twins of held-out questions in the bank?"""
    if not facts.headline:
        return None
    right: defaultdict[str, set[str]] = defaultdict(set)
    for row in facts.ledger.outcomes:
        if row.right and row.sql:
            right[row.question].add(row.sql)
    audit = attribution.audit(
        pairs=facts.headline, cards=facts.cards(facts.default), questions=facts.ledger.questions, right_sql=right
    )
    rows = (
        ("Held-out questions whose id is in the bank", f"{audit.shared_ids} of {audit.n}", NONE),
        (
            f"Paraphrase in the bank (word Jaccard ≥ {audit.threshold:g})",
            f"{audit.paraphrases} of {audit.with_text}",
            points(audit.lift_without_paraphrases_pp),
        ),
        (
            "Same SQL template in the bank (literals masked)",
            f"{audit.same_template} of {audit.with_sql}",
            points(audit.lift_without_templates_pp),
        ),
        ("Either", NONE, points(audit.lift_without_both_pp)),
    )
    return Body(
        columns=("Twin of a held-out question", "Pairs", "Lift without them (pp)"),
        rows=rows,
        note=f"Lift over all pairs: {points(audit.lift_pp)} pp. A held-out question's templates are those of every"
        " right answer to it, under any arm, so that memory's own fixes are covered.",
    )


def drift(facts: Facts) -> Body | None:
    """Identical configurations run twice."""
    band = observed_drift(facts)
    if band is None:
        return None
    rows = tuple((run.name, number(run.n), points(run.difference_pp), percent(run.flipped)) for run in band.runs)
    return Body(
        columns=("Identical runs", "n", "Difference (pp)", "Answers that flip %"),
        rows=rows,
        note=f"{facts.split.capitalize()}s pooled, as in a contrast. Absolute difference: median"
        f" {band.median_pp:.2f} pp, maximum {band.max_pp:.2f} pp.",
    )


def adoption(facts: Facts) -> Body | None:
    """New SQL elements of changed answers, traced to window cards."""
    if not facts.headline or not facts.ledger.cards:
        return None
    windows = _windows(facts, facts.default)
    rows = (
        _traced("fixes", trace(fixes(facts.headline), windows)),
        _traced("breaks", trace(breaks(facts.headline), windows)),
    )
    wide = facts.find(k=10)
    note = "A verbatim match is an upper bound, since identifiers also stand in the schema: read fixes against breaks."
    if wide and facts.default.k < wide.k:
        gained = fixes(facts.pairs(facts.default, wide))
        deep = trace_depth(gained, _windows(facts, wide), narrow=facts.default.k)
        note += (
            f" Of {deep.fixes} questions right at k=10 and wrong at k={facts.default.k}, {deep.deep} trace to a card"
            f" beyond rank {facts.default.k} only, {deep.shallow} to one already shown, {deep.untraced} to none."
        )
    columns = ("Flips", "n", "With a new element", "Traced to a card", "Share of all %", "Share of changed %")
    return Body(columns=columns, rows=rows, note=note)


def _windows(facts: Facts, arm: Arm) -> Window:
    rows = {(row.seed, row.question): row for row in facts.rows(arm)}
    return lambda pair: [card.text for card in facts.window(arm, rows[pair.key])]


def _traced(name: str, traced: Traced) -> Cells:
    shares = percent(traced.share, 0), percent(traced.share_of_changed, 0)
    return name, str(traced.flips), str(traced.with_new_elements), str(traced.traced), *shares


def substitution(facts: Facts) -> Body | None:
    """Do repair and other solvers solve what memory fixes?"""
    others = {"repair without memory": facts.repairs}
    for solver in {arm.solver: None for arm in facts.arms.values() if arm.solver != facts.default.solver}:
        if arm := facts.bare_with(solver):
            others[label(facts, arm)] = facts.rows(arm)
    solved = {name: overlap(facts.headline, rows, seeds=facts.seeds) for name, rows in others.items() if rows}
    seeds = "/".join(str(seed) for seed in facts.seeds)
    return Body(
        columns=("Other method", "Memory's fixes it solves", "%", f"% ({seeds})", "Base rate %", "Enrichment"),
        rows=tuple(_substitution_row(name, shared) for name, shared in solved.items() if shared.failures),
        note="Base rate: the share of all failures of the bare solver that the method solves. An enrichment near 1"
        " would speak against substitution.",
    )


def _substitution_row(name: str, shared: Substitution) -> Cells:
    times = f"{shared.enrichment:.1f}×" if shared.enrichment == shared.enrichment else NONE
    shares = percent(shared.share, 0), per_seed(shared.per_seed, 0), percent(shared.base_rate), times
    return name, f"{shared.also_solved} of {shared.fixes}", *shares


def card_usage(facts: Facts) -> Body | None:
    """Tell how broadly the bank is used, by width."""
    arms = [arm for arm in sorted(facts.varying("k"), key=lambda arm: arm.k) if facts.cards(arm)]
    return Body(
        columns=("Width", "Cards", "Slots", "In a fix window %", "Top tenth's share %", "Gini", "Never retrieved %"),
        rows=grouped(facts, arms, _use_row, beside=(facts.default,)),
        note=f"Ranges over the {facts.split}s that were run. A window shows co-occurrence, not what a single card"
        " caused.",
    )


def _use_row(facts: Facts, arm: Arm) -> Cells:
    fixed = fixes(facts.pairs(facts.bare, arm))
    used = [use for seed in facts.seeds_of(arm) if (use := _bank_use(facts, arm, seed, fixed)).cards]
    total = str(sum(use.cards for use in used)), number(sum(use.slots for use in used))
    return (f"k={arm.k}", *total, *_ranges(used))


def _bank_use(facts: Facts, arm: Arm, seed: int, fixed: Sequence[Pair]) -> BankUse:
    answers = [row for row in facts.rows(arm) if row.seed == seed]
    of_seed = [pair for pair in fixed if pair.after.seed == seed]
    return card_use(bank=list(facts.bank(arm, seed)), answers=answers, fixed=of_seed)


def _ranges(used: Sequence[BankUse]) -> Cells:
    def span(values: Sequence[float | None], digits: int) -> str:
        defined = sorted(value for value in values if value is not None)
        low, high = (f"{value:.{digits}f}" for value in (defined[0], defined[-1])) if defined else (NONE, NONE)
        return low if low == high else f"{low}–{high}"

    return (
        span([use.in_fix_windows for use in used], 0),
        span([use.top_decile for use in used], 0),
        span([use.gini for use in used], 2),
        span([use.never_retrieved for use in used], 0),
    )
