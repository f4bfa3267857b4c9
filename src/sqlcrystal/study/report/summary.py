"""summary.json: the study's headline in one flat document."""

from typing import Any

from msgspec import Struct

from sqlcrystal.measurement import settings
from sqlcrystal.measurement.comparison import Comparison
from sqlcrystal.measurement.settings import RatioEstimate
from sqlcrystal.study.report.audit_tables import MULTIPLICITY
from sqlcrystal.study.report.comparisons import Finding, contrasts, headline, verdict
from sqlcrystal.study.report.facts import Facts, completeness, percent_right

Interval = tuple[float, float]


class ContrastSummary(Struct, frozen=True, kw_only=True):
    """One contrast: b - a in percentage points."""

    name: str
    a: str
    b: str
    delta_pp: float
    ci_pp: Interval | None
    ci_two_stage_pp: Interval | None
    p_value: float | None
    p_holm: float | None
    p_two_stage: float | None
    p_sign_flip: float
    mcnemar_p: float
    detectable_pp: float | None
    between_sd_pp: float | None
    leave_one_out_pp: Interval | None
    new_database_pp: Interval | None
    macro_pp: float | None
    macro_ci_pp: Interval | None
    uneven: str
    fixed: int
    broke: int
    n: int
    unevaluable: int
    status: str
    primary: bool
    supported: bool
    supported_alone: bool
    undefined: str


class Summary(Struct, frozen=True, kw_only=True):
    """Accuracies in percent, differences in percentage points; None where the study lacks the arm."""

    study: str
    digest: str
    version: str
    benchmark: str
    model: str
    rule: str
    method: str
    verdict: str
    interim: bool
    arms_recorded: int
    arms_planned: int
    p0: float | None
    pm: float | None
    pk: float | None
    pe: float | None
    lift_pp: float | None
    lift_ci_pp: Interval | None
    lift_p: float | None
    lift_ci_two_stage_pp: Interval | None
    lift_ci_question_level_pp: Interval | None
    lift_undefined: str
    against_pe_pp: float | None
    against_pe_ci_pp: Interval | None
    against_pe_p: float | None
    cr: float | None
    cr_ci: Interval | None
    cr_interval: str
    cr_ci_two_stage: Interval | None
    cr_per_seed: dict[int, float | None]
    cr_mean_of_seeds: float | None
    cr_all_questions: float | None
    pk_all_questions: float | None
    n_all_questions: int | None
    budget: int
    p0_evaluable: float | None
    pm_evaluable: float | None
    replay: float | None
    retention: float | None
    rerun_floor: float | None
    fixed: int
    broke: int
    n_heldout: int
    n_pairs: int
    one_sided: int
    missing_databases: tuple[str, ...]
    n_heldout_per_seed: dict[int, int]
    n_questions: int
    n_banked: int
    n_databases: int
    seeds: tuple[int, ...]
    cards: int
    cards_per_seed: dict[int, int]
    contrasts: tuple[ContrastSummary, ...]
    multiplicity: str


def summarize(facts: Facts) -> Summary:
    """The headline of a study."""
    manifest, count = facts.manifest, completeness(facts)
    return Summary(
        study=manifest.study,
        digest=manifest.digest,
        version=manifest.version,
        benchmark=manifest.benchmark,
        model=manifest.model,
        rule=manifest.rule,
        method=facts.method,
        verdict=verdict(facts),
        interim=count.interim,
        arms_recorded=count.recorded,
        arms_planned=len(count.arms),
        seeds=manifest.seeds,
        contrasts=tuple(_contrast(finding) for finding in contrasts(facts)),
        multiplicity=MULTIPLICITY,
        **_accuracies(facts),
        **_lift(headline(facts)),
        **_against_engine_repair(facts.against_engine_repair),
        **_ratio(facts),
        **_sizes(facts),
    )


def _accuracies(facts: Facts) -> dict[str, Any]:
    """Tell how often each side was right."""
    bare, memory = facts.both
    return {
        "p0": percent_right(bare),
        "pm": percent_right(memory),
        "pk": percent_right(facts.repairs),
        "pe": percent_right(facts.engine_repairs),
        "p0_evaluable": settings.accuracy(bare).percent_evaluable,
        "pm_evaluable": settings.accuracy(memory).percent_evaluable,
        "replay": percent_right(facts.rows(facts.default, "replay")),
        "retention": percent_right(facts.rows(facts.default, "retention")),
        "rerun_floor": percent_right(facts.reruns),
    }


def _lift(lift: Finding | None) -> dict[str, Any]:
    """Memory against none."""
    return {
        "lift_pp": lift.result.delta_pp if lift else None,
        "lift_ci_pp": _interval(lift.result) if lift else None,
        "lift_p": lift.result.p_value if lift else None,
        "lift_ci_two_stage_pp": _interval(lift.two_stage) if lift else None,
        "lift_ci_question_level_pp": _question_level(lift) if lift else None,
        "lift_undefined": lift.result.undefined if lift else "",
        "fixed": lift.result.fixed if lift else 0,
        "broke": lift.result.broke if lift else 0,
    }


def _against_engine_repair(result: Comparison | None) -> dict[str, Any]:
    """Memory against repair that has no oracle."""
    return {
        "against_pe_pp": result.delta_pp if result else None,
        "against_pe_ci_pp": _interval(result) if result else None,
        "against_pe_p": result.p_value if result else None,
    }


def _ratio(facts: Facts) -> dict[str, Any]:
    """Tell how much of the repair's gain memory keeps."""
    ratio, whole = facts.ratio(facts.default), facts.whole_headroom
    estimates = ratio.estimates if ratio else {}
    decided, two_stage = estimates.get(facts.method), estimates.get("two-stage")
    return {
        "cr": ratio.ratio.pooled if ratio else None,
        "cr_ci": _ends(decided),
        "cr_interval": decided.shape or decided.undefined if decided else "",
        "cr_ci_two_stage": _ends(two_stage),
        "cr_per_seed": dict(zip(ratio.counts, ratio.ratio.per_seed, strict=True)) if ratio else {},
        "cr_mean_of_seeds": ratio.ratio.mean if ratio else None,
        "cr_all_questions": whole.share(ratio.ratio.lift_pp) if ratio and whole else None,
        "pk_all_questions": 100 * whole.repaired / whole.n if whole else None,
        "n_all_questions": whole.n if whole else None,
        "budget": facts.manifest.budget,
    }


def _sizes(facts: Facts) -> dict[str, Any]:
    """Tell how much was asked, and how much was kept."""
    memory = facts.rows(facts.default)
    cards = {seed: len(facts.bank(facts.default, seed)) for seed in facts.seeds}
    return {
        "n_heldout": len(memory),
        "n_pairs": len(facts.headline),
        "one_sided": facts.one_sided,
        "missing_databases": facts.manifest.missing_databases,
        "n_heldout_per_seed": {seed: sum(row.seed == seed for row in memory) for seed in facts.seeds},
        "n_questions": len({(row.database, row.question) for row in memory}),
        "n_banked": len(facts.rows(facts.default, "replay")),
        "n_databases": len({row.database for row in memory}),
        "cards": sum(cards.values()),
        "cards_per_seed": cards,
    }


def _ends(estimate: RatioEstimate | None) -> Interval | None:
    """The ends of a ratio's interval where it lies between them."""
    if estimate is None or estimate.shape != "bounded" or estimate.low is None or estimate.high is None:
        return None
    return estimate.low, estimate.high


def _interval(result: Comparison) -> Interval | None:
    return None if result.ci_low_pp is None or result.ci_high_pp is None else (result.ci_low_pp, result.ci_high_pp)


def _question_level(lift: Finding) -> Interval | None:
    alone = lift.result.question_level
    return None if alone is None or alone.low is None or alone.high is None else (alone.low, alone.high)


def _contrast(finding: Finding) -> ContrastSummary:
    result, bootstrapped, left = finding.result, finding.two_stage, finding.result.leave_one_out
    return ContrastSummary(
        name=finding.key,
        a=finding.a,
        b=finding.b,
        delta_pp=result.delta_pp,
        ci_pp=_interval(result),
        ci_two_stage_pp=_interval(bootstrapped),
        p_value=result.p_value,
        p_holm=finding.family.holm_p if finding.family else None,
        p_two_stage=bootstrapped.p_value,
        p_sign_flip=result.sign_flip_p,
        mcnemar_p=result.mcnemar_p,
        detectable_pp=result.detectable_pp,
        between_sd_pp=result.between_sd_pp,
        leave_one_out_pp=(left.low_pp, left.high_pp) if left else None,
        new_database_pp=result.new_database_pp,
        macro_pp=result.macro_pp,
        macro_ci_pp=result.macro_ci_pp,
        uneven=result.uneven,
        fixed=result.fixed,
        broke=result.broke,
        n=result.n,
        unevaluable=result.unevaluable,
        status=finding.status,
        primary=finding.primary,
        supported=finding.supported,
        supported_alone=finding.supported_in_the_paper,
        undefined=result.undefined,
    )
