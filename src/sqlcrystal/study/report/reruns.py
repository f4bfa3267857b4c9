"""Where a study ran one configuration twice, and by how much the two runs differ."""

from sqlcrystal.measurement.drift import Drift, observed
from sqlcrystal.measurement.flips import Pair, pair_up
from sqlcrystal.study.report.facts import Facts


def observed_drift(facts: Facts) -> Drift | None:
    """The band over all transfers asked anew; a repair pass starts from the recorded attempt, and so is no rerun."""
    reruns: dict[str, tuple[Pair, ...]] = {}
    for arm in facts.arms.values():
        anew = facts.rows(arm, "again")
        for run in sorted({row.run for row in anew}):
            again = [row for row in anew if row.run == run]
            reruns[f"{arm.name}, run {run}"] = pair_up(facts.rows(arm), again)
    return observed(reruns)


def equivalence_margin(facts: Facts) -> float:
    """The study's margin of equivalence in points: its own, or the largest observed drift; 0 where it has none."""
    if not facts.manifest.margin_from_drift:
        return facts.manifest.equivalence_margin
    band = observed_drift(facts)
    return band.max_pp if band else 0.0
