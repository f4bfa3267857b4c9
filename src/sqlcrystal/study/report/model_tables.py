"""Tables across models and benchmarks: every run folder that the report was given, side by side."""

from collections.abc import Sequence

from sqlcrystal.measurement.collecting import first_try, repair_yield
from sqlcrystal.measurement.comparison import ENOUGH_SEEDS
from sqlcrystal.study.report.arm_rows import label, ratio_per_seed
from sqlcrystal.study.report.comparisons import headline
from sqlcrystal.study.report.facts import Facts, percent_right
from sqlcrystal.study.report.table import Body, Cells
from sqlcrystal.study.report.value_tables import split_word
from sqlcrystal.study.report.wording import NONE, per_seed, percent, points

BESIDE = "a second run folder (study report DIR --beside OTHER)"


def cross_sections(runs: Sequence[Facts]) -> Body | None:
    """First attempt, repair rate, replay, transfer and CR of every run; a second benchmark seed by seed as well."""
    rows: list[Cells] = [_cross_section(facts) for facts in runs if facts.headline]
    for facts in runs[1:]:
        if facts.manifest.benchmark != runs[0].manifest.benchmark and facts.headline:
            rows += _seed_by_seed(facts)
    columns = (
        "Model",
        "Benchmark",
        f"{split_word(runs).capitalize()}s",
        "First try %",
        "Repair rate %",
        "Replay ∅→memory %",
        "Δ transfer (pp)",
        "CR %",
    )
    note = f"{_preliminary(runs)} Repair rate: share of first-attempt failures that collection repaired."
    return Body(columns=columns, rows=tuple(rows), note=note)


def _cross_section(facts: Facts) -> Cells:
    lift, ratio = headline(facts), facts.ratio(facts.default)
    again, replay = percent_right(facts.reruns), percent_right(facts.rows(facts.default, "replay"))
    return (
        facts.manifest.model,
        facts.manifest.benchmark,
        _seeds(facts),
        percent(_first_try(facts)),
        percent(repair_yield(facts.rows(facts.default, "collection")).percent),
        f"{percent(again, 0)} → {percent(replay, 0)}",
        points(lift.result.delta_pp, 1) if lift else NONE,
        percent(ratio.ratio.pooled) if ratio else NONE,
    )


def _seeds(facts: Facts) -> str:
    few = len(facts.seeds) < ENOUGH_SEEDS
    return f"{len(facts.seeds)}, preliminary" if few else str(len(facts.seeds))


def _seed_by_seed(facts: Facts) -> list[Cells]:
    """The same figures of one run on each of its seeds; transfer and retention of every writer have their own table."""
    rows: list[Cells] = [(f"{facts.manifest.model} · {facts.manifest.benchmark}, per {facts.split}, each preliminary",)]
    for seed in facts.seeds:
        _, benchmark, _, *figures = _cross_section(facts.on([seed]))
        rows.append((f"{facts.split} {seed}", benchmark, "1, preliminary", *figures))
    return rows


def _first_try(facts: Facts) -> float | None:
    """First-attempt accuracy on the collection questions, else on the held-out ones."""
    collected = facts.rows(facts.default, "collection")
    return first_try(collected).percent if collected else percent_right(facts.rows(facts.bare))


def families(runs: Sequence[Facts]) -> Body | None:
    """The family cross-section in full."""
    if len({(facts.manifest.model, facts.manifest.benchmark) for facts in runs}) < 2:
        return None
    rows = tuple(
        (
            facts.manifest.model,
            facts.manifest.benchmark,
            percent(_first_try(facts)),
            percent(repair_yield(facts.rows(facts.default, "collection")).percent),
            percent(percent_right(facts.rows(facts.bare))),
            percent(percent_right(facts.rows(facts.default))),
            _anchored(facts),
            percent(percent_right(facts.reruns)),
            percent(percent_right(facts.rows(facts.default, "replay"))),
            _seeds(facts),
        )
        for facts in runs
    )
    none, default = (runs[0].bare.name if runs[0].bare else "none"), runs[0].default.name
    columns = (
        *("Model", "Benchmark", "First try %", "Repair rate %", none, default, "W3+A"),
        *("Floor replay %", f"{default} replay %", f"{split_word(runs).capitalize()}s"),
    )
    return Body(columns=columns, rows=rows, note=_preliminary(runs))


def _anchored(facts: Facts) -> str:
    """The anchored writer's accuracy, with its seeds where it has fewer than the run."""
    arm = facts.find(writer="W3+A")
    shown = percent(percent_right(facts.rows(arm)))
    seeds = facts.seeds_of(arm) if arm else facts.seeds
    return shown if len(seeds) == len(facts.seeds) else f"{shown} ({facts.split}s {', '.join(map(str, seeds))} alone)"


def _preliminary(runs: Sequence[Facts]) -> str:
    return f"Fewer than three {split_word(runs)}s is preliminary."


def second_model(runs: Sequence[Facts]) -> Body | None:
    """The other runs' writers, per seed."""
    rows: list[Cells] = []
    for facts in runs[1:]:
        seeds = ", ".join(map(str, facts.seeds))
        rows.append((f"{facts.manifest.model} · {facts.manifest.benchmark} · {facts.split}s {seeds}",))
        arms = [*([facts.bare] if facts.bare else []), *facts.varying("writer")]
        for arm in arms:
            again = [facts.rows(arm, setting) if arm.remembers else facts.reruns for setting in ("replay", "retention")]
            rows.append(
                (
                    label(facts, arm),
                    per_seed(facts.by_seed(facts.rows(arm)).values()),
                    ratio_per_seed(facts, arm),
                    *(per_seed(facts.by_seed(part).values()) if part else NONE for part in again),
                )
            )
    word = split_word(runs[1:])
    columns = ("Writer", *(f"{name} % per {word}" for name in ("EX", "CR", "Replay", "Retention")))
    return Body(
        columns=columns, rows=tuple(rows), note=f"Banked questions of no memory are its reruns. {_preliminary(runs)}"
    )
