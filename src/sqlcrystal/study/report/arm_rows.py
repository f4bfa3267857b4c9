"""Rows that tables about arms share: accuracy per seed, lift over none, CR, like beside like; how windows differ."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from sqlcrystal.ledger.records import Arm
from sqlcrystal.measurement.attribution import Windows
from sqlcrystal.measurement.attribution import windows as compare_windows
from sqlcrystal.measurement.comparison import ENOUGH_SEEDS, Comparison
from sqlcrystal.study.report.comparisons import ROSTER, Finding, Planned, contrasts, findings, in_design
from sqlcrystal.study.report.facts import Facts, percent_right
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
    plural,
    points,
    probability,
)
from sqlcrystal.study.report.value_tables import sample

CHOOSING = ("retriever", "k")
"""The factors that decide which cards of a bank are shown."""
ALIKE = ("source", "admission", "writer", "correspondence", "bank", "passes", "solver", "definitions")


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


def label(facts: Facts, arm: Arm) -> str:
    """An arm's one name, and that it is preliminary if it has fewer seeds than a claim takes."""
    seeds = len({row.seed for row in facts.rows(arm)})
    return f"{arm.name} ({plural(seeds, facts.split)}, preliminary)" if 0 < seeds < ENOUGH_SEEDS else arm.name


def grouped(
    facts: Facts, arms: Iterable[Arm | None], row: Callable[[Facts, Arm], Cells], *, beside: Iterable[Arm | None] = ()
) -> tuple[Cells, ...]:
    """The rows of some arms, each made from the seeds that the arm was run under.

    Arms of fewer seeds stand under a heading of their own, after `beside` on the same seeds: no column then compares a
    figure of one seed with one of three.
    """
    groups: dict[tuple[int, ...], list[Arm]] = {}
    for arm in dict.fromkeys(arm.name for arm in arms if arm is not None):
        groups.setdefault(facts.seeds_of(facts.arms[arm]), []).append(facts.arms[arm])
    rows: list[Cells] = []
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


def arm_columns(facts: Facts, first: str = "Arm") -> Cells:
    """The columns of arm_row."""
    seeds = (f"{facts.split[0]}{seed}" for seed in facts.seeds)
    return (first, *seeds, f"All {facts.split}s run", "Δ none (pp)", "CR (%)")


def arm_row(facts: Facts, arm: Arm) -> Cells:
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
