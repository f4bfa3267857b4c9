"""Rows that tables about arms share: accuracy per seed, lift over none, CR, like beside like; and readings."""

from collections.abc import Callable, Iterable, Sequence

from sqlcrystal.ledger.records import Arm
from sqlcrystal.measurement.comparison import ENOUGH_SEEDS, Comparison
from sqlcrystal.study.report.comparisons import ROSTER, Finding, Planned, findings, in_design
from sqlcrystal.study.report.facts import Facts, percent_right
from sqlcrystal.study.report.table import Body
from sqlcrystal.study.report.value_tables import sample
from sqlcrystal.study.report.window_tables import shown_windows
from sqlcrystal.study.report.wording import (
    METHOD_NAMES,
    NONE,
    interval,
    listed,
    number,
    per_seed,
    percent,
    plural,
    points,
    probability,
)

Row = tuple[str, ...]


def label(facts: Facts, arm: Arm) -> str:
    """An arm's one name, and that it is preliminary if it has fewer seeds than a claim takes."""
    seeds = len({row.seed for row in facts.rows(arm)})
    return f"{arm.name} ({plural(seeds, facts.split)}, preliminary)" if 0 < seeds < ENOUGH_SEEDS else arm.name


def grouped(
    facts: Facts, arms: Iterable[Arm | None], row: Callable[[Facts, Arm], Row], *, beside: Iterable[Arm | None] = ()
) -> tuple[Row, ...]:
    """The rows of some arms, each made from the seeds that the arm was run under.

    Arms of fewer seeds stand under a heading of their own, after `beside` on the same seeds: no column then compares a
    figure of one seed with one of three.
    """
    groups: dict[tuple[int, ...], list[Arm]] = {}
    for arm in dict.fromkeys(arm.name for arm in arms if arm is not None):
        groups.setdefault(facts.seeds_of(facts.arms[arm]), []).append(facts.arms[arm])
    rows: list[Row] = []
    for seeds in sorted(groups, key=lambda seeds: -len(seeds)):
        here, members = facts.on(seeds), groups[seeds]
        if rows:
            rows.append((f"{_only(facts, seeds)}; what they are compared with is that of the same {facts.split}s",))
            baseline = dict.fromkeys(arm.name for arm in beside if arm is not None and arm not in members)
            members = [
                *(facts.arms[name] for name in baseline if set(seeds) <= set(facts.seeds_of(facts.arms[name]))),
                *members,
            ]
        rows += [row(here, arm) for arm in members]
    return tuple(rows)


def _only(facts: Facts, seeds: Sequence[int]) -> str:
    """So many seeds and no more, and that they are too few for a claim."""
    word = facts.split.capitalize() + ("s" if len(seeds) != 1 else "")
    few = ", preliminary" if len(seeds) < ENOUGH_SEEDS else ""
    return f"{word} {listed(map(str, seeds))} alone{few}"


def arm_columns(facts: Facts, first: str = "Arm") -> Row:
    """The columns of arm_row."""
    seeds = (f"{facts.split[0]}{seed}" for seed in facts.seeds)
    return (first, *seeds, f"All {facts.split}s run", "Δ none (pp)", "CR (%)")


def arm_row(facts: Facts, arm: Arm) -> Row:
    """Accuracy per seed and over all seeds, lift over none and CR of one arm."""
    rows = facts.rows(arm)
    ratio, lift = facts.ratio(arm), facts.compare(facts.bare, arm)
    return (
        label(facts, arm),
        *(percent(value) for value in facts.by_seed(rows).values()),
        percent(percent_right(rows)),
        points(lift.delta_pp) if lift and arm.remembers else NONE,
        percent(ratio.ratio.pooled) if ratio and arm.remembers else NONE,
    )


def ratio_per_seed(facts: Facts, arm: Arm) -> str:
    """CR of each seed, in the study's order of seeds."""
    ratio = facts.ratio(arm)
    if ratio is None or not arm.remembers:
        return NONE
    by_seed = dict(zip(ratio.counts, ratio.ratio.per_seed, strict=True))
    return per_seed(by_seed.get(seed) for seed in facts.seeds)


def cards_per_seed(facts: Facts, arm: Arm) -> str:
    """Tell how many cards each seed's bank holds; a seed that was not run has no bank."""
    run = facts.seeds_of(arm)
    return "/".join(number(len(facts.bank(arm, seed))) if seed in run else NONE for seed in facts.seeds)


def told(result: Comparison | None) -> str:
    """A difference with interval and p, as a table cell."""
    if result is None:
        return NONE
    if result.p_value is None:
        return f"{points(result.delta_pp)}; {result.undefined}"
    ends = interval(result.ci_low_pp, result.ci_high_pp)
    return f"{points(result.delta_pp)} {ends}; p {probability(result.p_value)}"


def effect(finding: Finding) -> str:
    """The same of a finding, with that it is preliminary where it is."""
    return told(finding.result) + (" (preliminary)" if finding.preliminary else "")


def not_shown(facts: Facts, planned: Sequence[Planned]) -> str:
    """Sentences on how many comparisons a table lacks: not recorded yet, or not in the study at all."""
    compared = {finding.key for finding in findings(facts, planned)}
    left = [plan for plan in planned if plan.key not in compared]
    waiting = sum(in_design(facts, plan) for plan in left)
    unrecorded = f" {plural(waiting, 'comparison')} not recorded yet." if waiting else ""
    absent = len(left) - waiting
    return unrecorded + (f" {plural(absent, 'comparison')} not in this study." if absent else "")


def readings(facts: Facts, planned: Sequence[Planned]) -> Body | None:
    """One row per controlled comparison with its status and reading."""
    tested = findings(facts, planned)
    if not tested:
        return None
    rows = tuple(
        (finding.factor, finding.asks, finding.name, effect(finding), finding.verdict, _reading(facts, finding))
        for finding in tested
    )
    columns = ("Factor", "Question", "Contrast", "Δ transfer pp [95% CI]; p", "Status", "Reading")
    note = (
        f"{sample(facts)} Intervals by {METHOD_NAMES[facts.method]}, clustered by database.{not_shown(facts, planned)}"
    )
    return Body(columns=columns, rows=rows, note=note)


def _reading(facts: Facts, finding: Finding) -> str:
    claim, windows = ROSTER[finding.key].reading, shown_windows(facts, finding)
    if windows is not None and windows.by_construction and not finding.supported:
        return f"{windows.by_construction.capitalize()} ({percent(windows.same.percent, 0)}%)."
    if not claim:
        return NONE
    if finding.supported and finding.result.delta_pp > 0:
        return f"In line with: {claim}."
    return "The difference is negative." if finding.supported else f"Does not show that {claim}."
