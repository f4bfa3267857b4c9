"""summary.json: the study's headline in one flat document."""

from msgspec import Struct

from sqlcrystal.measurement.comparison import Comparison
from sqlcrystal.measurement.intervals import DEFAULT_METHOD
from sqlcrystal.measurement.ratio import RatioEstimate
from sqlcrystal.study.ledger import Outcome
from sqlcrystal.study.report.comparisons import HEADLINE, Finding, contrasts, findings
from sqlcrystal.study.report.facts import METHODS, Facts, accuracy, evaluable

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
    mcnemar_p: float
    fixed: int
    broke: int
    n: int
    status: str
    supported: bool


class Summary(Struct, frozen=True, kw_only=True):
    """Accuracies in percent, differences in percentage points; None where the study lacks the arm."""

    study: str
    digest: str
    version: str
    benchmark: str
    model: str
    rule: str
    method: str
    p0: float | None
    pm: float | None
    pk: float | None
    lift_pp: float | None
    lift_ci_pp: Interval | None
    lift_p: float | None
    lift_ci_two_stage_pp: Interval | None
    cr: float | None
    cr_ci: Interval | None
    cr_ci_two_stage: Interval | None
    cr_per_seed: dict[int, float | None]
    cr_alternative: float | None
    p0_evaluable: float | None
    pm_evaluable: float | None
    replay: float | None
    retention: float | None
    rerun_floor: float | None
    fixed: int
    broke: int
    n_heldout: int
    n_heldout_per_seed: dict[int, int]
    n_questions: int
    n_banked: int
    n_databases: int
    seeds: tuple[int, ...]
    cards: int
    cards_per_seed: dict[int, int]
    contrasts: tuple[ContrastSummary, ...]
    multiplicity: str


MULTIPLICITY = (
    "Memory against none is the primary contrast, tested first and unadjusted; Holm's step-down adjustment over the"
    " other confirmatory contrasts; p-values of exploratory contrasts are unadjusted diagnostics"
)


def summarize(facts: Facts) -> Summary:
    """The headline of a study."""
    lift = next(iter(findings(facts, HEADLINE)), None)
    ratio = facts.ratio(facts.default)
    bare, memory = facts.rows(facts.bare), facts.rows(facts.default)
    cards = {seed: len(facts.bank(facts.default, seed)) for seed in facts.seeds}
    estimates = ratio.estimates() if ratio else {}
    manifest = facts.manifest
    return Summary(
        study=manifest.study,
        digest=manifest.digest,
        version=manifest.version,
        benchmark=manifest.benchmark,
        model=manifest.model,
        rule=manifest.rule,
        method=DEFAULT_METHOD,
        p0=accuracy(bare),
        pm=accuracy(memory),
        pk=accuracy(facts.repairs),
        lift_pp=lift.found.delta_pp if lift else None,
        lift_ci_pp=_interval(lift.found) if lift else None,
        lift_p=lift.found.p_value if lift else None,
        lift_ci_two_stage_pp=_interval(lift.two_stage) if lift else None,
        cr=ratio.ratio.mean if ratio else None,
        cr_ci=_ends(estimates.get(METHODS[0])),
        cr_ci_two_stage=_ends(estimates.get(METHODS[1])),
        cr_per_seed=dict(zip(ratio.counts, ratio.ratio.per_seed, strict=True)) if ratio else {},
        cr_alternative=ratio.ratio.against_own_floor if ratio else None,
        p0_evaluable=accuracy(evaluable(bare)),
        pm_evaluable=accuracy(evaluable(memory)),
        replay=accuracy(facts.rows(facts.default, "replay")),
        retention=accuracy(facts.rows(facts.default, "retention")),
        rerun_floor=accuracy(rerun_rows(facts)),
        fixed=lift.found.fixed if lift else 0,
        broke=lift.found.broke if lift else 0,
        n_heldout=len(memory),
        n_heldout_per_seed={seed: sum(row.seed == seed for row in memory) for seed in facts.seeds},
        n_questions=len({row.question for row in memory}),
        n_banked=len(facts.rows(facts.default, "replay")),
        n_databases=len({row.database for row in memory}),
        seeds=manifest.seeds,
        cards=sum(cards.values()),
        cards_per_seed=cards,
        contrasts=tuple(_contrast(finding) for finding in contrasts(facts)),
        multiplicity=MULTIPLICITY,
    )


def rerun_rows(facts: Facts) -> tuple[Outcome, ...]:
    """Banked questions answered again without memory."""
    own = facts.rows(facts.default, "rerun")
    return own or facts.rows(facts.bare, "rerun")


def _ends(estimate: RatioEstimate | None) -> Interval | None:
    """The ends of a ratio's interval where it lies between them."""
    if estimate is None or estimate.shape != "bounded" or estimate.low is None or estimate.high is None:
        return None
    return estimate.low, estimate.high


def _interval(found: Comparison) -> Interval | None:
    return None if found.ci_low_pp is None or found.ci_high_pp is None else (found.ci_low_pp, found.ci_high_pp)


def _contrast(finding: Finding) -> ContrastSummary:
    found, bootstrapped = finding.found, finding.two_stage
    return ContrastSummary(
        name=finding.name,
        a=finding.a,
        b=finding.b,
        delta_pp=found.delta_pp,
        ci_pp=_interval(found),
        ci_two_stage_pp=_interval(bootstrapped),
        p_value=found.p_value,
        p_holm=finding.holm_p,
        p_two_stage=bootstrapped.p_value,
        mcnemar_p=found.mcnemar_p,
        fixed=found.fixed,
        broke=found.broke,
        n=found.n,
        status=finding.status,
        supported=finding.supported and found.n_seeds >= 3,
    )
