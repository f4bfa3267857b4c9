"""Where a study ran one configuration twice, and by how much the two runs differ."""

from collections.abc import Sequence

from msgspec.structs import replace

from sqlcrystal.measurement.drift import Drift, Rerun, drift, rerun
from sqlcrystal.measurement.flips import pair_up
from sqlcrystal.study.ledger import Outcome
from sqlcrystal.study.report.facts import Facts


def observed_drift(facts: Facts) -> Drift | None:
    """The band over all transfers asked anew, and the repair pass's own floor where it was asked apart."""
    runs: list[Rerun] = []
    for arm in facts.arms.values():
        anew = facts.rows(arm, "again")
        for run in sorted({row.run for row in anew}):
            runs += _by_seed(facts, f"{arm.name}, run {run}", facts.rows(arm), [r for r in anew if r.run == run])
    floor = [replace(row, right=row.first_right) for row in facts.repairs]
    apart = [run for run in _by_seed(facts, "floor of the repair pass", facts.rows(facts.bare), floor) if run.flipped]
    return drift(runs + apart)


def _by_seed(facts: Facts, name: str, first: Sequence[Outcome], second: Sequence[Outcome]) -> list[Rerun]:
    pairs = pair_up(first, second)
    mine = {seed: [pair for pair in pairs if pair.after.seed == seed] for seed in facts.seeds}
    return [rerun(f"{name}, seed {seed}", members) for seed, members in mine.items() if members]
