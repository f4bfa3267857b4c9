"""Tables across models and benchmarks: one row per run folder."""

from collections.abc import Sequence

from sqlcrystal.study.report.comparisons import finding
from sqlcrystal.study.report.facts import Facts, accuracy
from sqlcrystal.study.report.summary import rerun_rows
from sqlcrystal.study.report.table import Absent, Table
from sqlcrystal.study.report.wording import NONE, per_seed, percent, points

BESIDE = "a second run folder (study report DIR --beside OTHER)"


def cross_sections(runs: Sequence[Facts]) -> Table | Absent:
    """First attempt, repair rate, replay, transfer and CR of every run."""
    title = "Cross-sections"
    rows = tuple(_cross_section(facts) for facts in runs if facts.headline)
    if not rows:
        return Absent(key="cross-sections", title=title, needs="outcomes with and without memory on held-out questions")
    columns = (
        "Model · benchmark",
        "Seeds",
        "First try %",
        "Repair rate %",
        "Replay ∅→memory %",
        "Δ transfer (pp)",
        "CR %",
    )
    note = (
        "Fewer than three seeds is preliminary. Repair rate: share of first-attempt failures that collection repaired."
    )
    return Table(key="cross-sections", title=title, columns=columns, rows=rows, note=note)


def _cross_section(facts: Facts) -> tuple[str, ...]:
    lift, ratio = finding(facts, "transfer"), facts.ratio(facts.default)
    again, replay = accuracy(rerun_rows(facts)), accuracy(facts.rows(facts.default, "replay"))
    return (
        f"{facts.manifest.model} · {facts.manifest.benchmark}",
        str(len(facts.seeds)),
        percent(first_try(facts)),
        percent(repair_rate(facts)),
        f"{percent(again, 0)} → {percent(replay, 0)}",
        points(lift.found.delta_pp, 1) if lift else NONE,
        percent(ratio.ratio.mean) if ratio else NONE,
    )


def first_try(facts: Facts) -> float | None:
    """First-attempt accuracy on the collection questions, else on the held-out ones."""
    rows = facts.rows(facts.default, "collection")
    return 100 * sum(row.first_right for row in rows) / len(rows) if rows else accuracy(facts.rows(facts.bare))


def repair_rate(facts: Facts) -> float | None:
    """Which share of the collection's first-attempt failures repair mended."""
    failed = [row for row in facts.rows(facts.default, "collection") if not row.first_right]
    return 100 * sum(row.right for row in failed) / len(failed) if failed else None


def families(runs: Sequence[Facts]) -> Table | Absent:
    """The family cross-section in full."""
    title = "Model families"
    if len({facts.manifest.model for facts in runs}) < 2:
        return Absent(key="families", title=title, needs=f"runs of two or more models: {BESIDE}")
    rows = tuple(
        (
            facts.manifest.model,
            percent(first_try(facts)),
            percent(repair_rate(facts)),
            percent(accuracy(facts.rows(facts.bare))),
            percent(accuracy(facts.rows(facts.default))),
            percent(accuracy(facts.rows(facts.find(writer="W3+A")))),
            percent(accuracy(rerun_rows(facts))),
            percent(accuracy(facts.rows(facts.default, "replay"))),
            str(len(facts.seeds)),
        )
        for facts in runs
    )
    columns = ("Model", "First try %", "Repair rate %", "None", "Default", "W3+A", "Floor replay", "Replay", "Seeds")
    return Table(key="families", title=title, columns=columns, rows=rows)


def second_model(runs: Sequence[Facts]) -> Table | Absent:
    """Another run's writers, per seed."""
    title = "Second model, per seed"
    if len(runs) < 2:
        return Absent(key="second-model", title=title, needs=BESIDE)
    rows: list[tuple[str, ...]] = []
    for facts in runs[1:]:
        arms = {"none": facts.bare, **{arm.writer: arm for arm in facts.varying("writer")}}
        rows.append(
            (f"{facts.manifest.model} · {facts.manifest.benchmark} · seeds {', '.join(map(str, facts.seeds))}",)
        )
        for name, arm in arms.items():
            ratio = facts.ratio(arm) if arm is not facts.bare else None
            replay = facts.rows(arm, "replay") if arm is not facts.bare else rerun_rows(facts)
            rows.append(
                (
                    name,
                    per_seed(facts.by_seed(facts.rows(arm)).values()),
                    per_seed(ratio.ratio.per_seed) if ratio else NONE,
                    per_seed(facts.by_seed(replay).values()) if replay else NONE,
                )
            )
    columns = ("Writer", "EX % per seed", "CR % per seed", "Replay % per seed")
    return Table(key="second-model", title=title, columns=columns, rows=tuple(rows))
