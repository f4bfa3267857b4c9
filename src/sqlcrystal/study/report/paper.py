"""The paper's published figures as data: what a study's own figures are printed beside."""

from functools import cached_property, lru_cache
from importlib import resources

import msgspec
from msgspec import Struct

from sqlcrystal.study.report.comparisons import HEADLINE_KEY, ROSTER, findings
from sqlcrystal.study.report.facts import Facts
from sqlcrystal.study.report.summary import Summary
from sqlcrystal.study.report.table import METHOD_NAMES, NONE, ReportTable, interval, percent, points, probability


class Published(Struct, frozen=True, kw_only=True):
    """A comparison as the paper reports it; None where it gives no such figure."""

    key: str
    delta_pp: float | None = None
    low_pp: float | None = None
    high_pp: float | None = None
    p: str = ""
    fixed: int | None = None
    broke: int | None = None


class SeedFigures(Struct, frozen=True, kw_only=True):
    """The counts of one seed behind the headline."""

    seed: int
    n: int
    floor: int
    memory: int
    headroom: int


class Headline(Struct, frozen=True, kw_only=True):
    """The paper's headline; accuracies in percent."""

    benchmark: str
    model: str
    n_databases: int
    n_heldout: int
    seeds: tuple[int, ...]
    p0: float
    pm: float
    pk: float
    lift_pp: float
    lift_ci_pp: tuple[float, float]
    lift_p: float
    cr: float
    """The mean of the seeds' ratios; its counts pooled give the same."""
    cr_ci: tuple[float, float]
    budget: int
    replay: float
    retention: float
    rerun_floor: float
    fixed: int
    broke: int
    cards: int


class PublishedTable(Struct, frozen=True, kw_only=True):
    """A table of the paper: its figures, in its order."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


class Paper(Struct, frozen=True, kw_only=True, dict=True):
    """Every figure the paper reports about its own system."""

    source: str
    headline: Headline
    seed: tuple[SeedFigures, ...]
    comparison: tuple[Published, ...]
    table: dict[str, PublishedTable]

    @cached_property
    def by_key(self) -> dict[str, Published]:
        """The comparisons by their key in the roster."""
        return {published.key: published for published in self.comparison}

    def tables(self) -> tuple[ReportTable, ...]:
        """The paper's tables, ready to render."""
        return tuple(
            ReportTable(key=f"paper-{key}", title=f"Paper: {table.title}", columns=table.columns, rows=table.rows)
            for key, table in self.table.items()
        )


@lru_cache(maxsize=1)
def published() -> Paper:
    """Read the published figures."""
    return msgspec.toml.decode(
        resources.files("sqlcrystal.study.report").joinpath("paper.toml").read_bytes(), type=Paper
    )


def beside_the_paper(facts: Facts, summary: Summary) -> ReportTable:
    """The study's headline and comparisons beside the published ones."""
    theirs = published().headline
    return ReportTable(
        key="against-paper",
        title="This study beside the paper",
        columns=(
            "Quantity",
            f"This study ({summary.model}, {summary.benchmark})",
            f"Paper ({theirs.model}, {theirs.benchmark})",
        ),
        rows=(("Headline",), *_headline_rows(summary, theirs), ("Comparisons, pp [95% CI]",), *_comparison_rows(facts)),
        note="Different models, benchmarks, splits and repair budgets: read directions, not differences."
        f" This study's intervals are {METHOD_NAMES[facts.method]} with databases for clusters, the paper's two-stage"
        " bootstrap.",
    )


def _headline_rows(ours: Summary, theirs: Headline) -> tuple[tuple[str, ...], ...]:
    return (
        ("No memory, P_0 %", percent(ours.p0, 2), percent(theirs.p0, 2)),
        ("Memory, P_M %", percent(ours.pm, 2), percent(theirs.pm, 2)),
        ("On-demand repair, P_K %", percent(ours.pk, 2), percent(theirs.pk, 2)),
        ("Lift (pp)", _range(ours.lift_pp, ours.lift_ci_pp), _range(theirs.lift_pp, theirs.lift_ci_pp)),
        ("p", probability(ours.lift_p), probability(theirs.lift_p)),
        ("CR %", _share(ours.cr, ours.cr_ci), _share(theirs.cr, theirs.cr_ci)),
        ("CR %, mean of the seeds", percent(ours.cr_mean_of_seeds), percent(theirs.cr)),
        ("Most rounds of a repair, K", str(ours.budget or NONE), str(theirs.budget)),
        ("Exact-query replay %", percent(ours.replay), percent(theirs.replay)),
        ("Cross-question retention %", percent(ours.retention), percent(theirs.retention)),
        ("Bare rerun %", percent(ours.rerun_floor), percent(theirs.rerun_floor)),
        ("Fixed / broke", f"{ours.fixed} / {ours.broke}", f"{theirs.fixed} / {theirs.broke}"),
        ("Cards, all seeds", str(ours.cards), str(theirs.cards)),
        (
            "Held-out pairs / databases",
            f"{ours.n_heldout} / {ours.n_databases}",
            f"{theirs.n_heldout} / {theirs.n_databases}",
        ),
    )


def _comparison_rows(facts: Facts) -> list[tuple[str, ...]]:
    our_findings = {finding.key: finding for finding in findings(facts, tuple(ROSTER.values()))}
    rows: list[tuple[str, ...]] = []
    for key, plan in ROSTER.items():
        own, other = our_findings.get(key), published().by_key.get(key)
        if key == HEADLINE_KEY or (own is None and other is None):
            continue
        ours = _range(own.result.delta_pp, (own.result.ci_low_pp, own.result.ci_high_pp)) if own else "not run"
        rows.append((f"{plan.asks} {own.name}" if own else plan.asks, ours, _published(other)))
    return rows


def _published(other: Published | None) -> str:
    if other is None:
        return NONE
    if other.delta_pp is None:
        return f"fixed {other.fixed}, broke {other.broke}" if other.fixed is not None else NONE
    return _range(other.delta_pp, None if other.low_pp is None else (other.low_pp, other.high_pp))


def _range(value: float | None, ends: tuple[float | None, float | None] | None) -> str:
    return f"{points(value)} {interval(*ends)}" if value is not None and ends else points(value)


def _share(value: float | None, ends: tuple[float, float] | None) -> str:
    return f"{percent(value)} {interval(*ends, 0)}" if value is not None and ends else percent(value)
