"""The power of a study's held-out questions, said before anything is sent."""

from collections import Counter
from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from sqlcrystal.benchmarks.split import Split
from sqlcrystal.measurement.clusters import FEWEST_DATABASES
from sqlcrystal.measurement.comparison import ENOUGH_SEEDS
from sqlcrystal.measurement.power import PlannedStudy, forecast
from sqlcrystal.measurement.truth import without_noise
from sqlcrystal.planning.pilot import published_truth


class Foresight(Struct, frozen=True, kw_only=True):
    """The size of a study's evidence, and the lift it can tell from zero, planned by the paper's databases."""

    databases: int
    seeds: int
    pairs: int
    """Held-out question–seed pairs."""
    detectable_pp: float | None
    """The lift found with 80 % power; None where databases will give no interval."""
    warnings: tuple[str, ...]


def foresee(splits: Mapping[int, Split], *, folds: bool = False) -> Foresight:
    """Hold the splits against what is known of floors, breaks and churn; folds together are one split of everything."""
    held_out = [case.question for split in splits.values() for case in split.held_out]
    asked = {case.question.key for split in splits.values() for case in (*split.learn, *split.held_out)}
    sizes = Counter(database for database, _ in asked)
    databases = sorted({question.database for question in held_out})
    return Foresight(
        databases=len(databases),
        seeds=len(splits),
        pairs=len(held_out),
        detectable_pp=_detectable(
            [sizes[name] for name in databases], 1 if folds else len(splits), len(held_out) / max(1, len(asked))
        ),
        warnings=_warnings(len(databases), len(splits)),
    )


def _detectable(sizes: list[int], seeds: int, held_out: float) -> float | None:
    if len(sizes) < FEWEST_DATABASES:
        return None
    paper = published_truth()
    like = tuple(
        replace(paper.databases[place % len(paper.databases)], questions=size) for place, size in enumerate(sizes)
    )
    design = PlannedStudy(
        databases=len(sizes),
        questions=None,
        seeds=seeds,
        held_out=held_out / seeds,
        lift_pp=100 * paper.lift,
        spread_pp=100 * without_noise(paper)[1],
    )
    return forecast(replace(paper, databases=like), design).detectable_pp


def _warnings(databases: int, seeds: int) -> tuple[str, ...]:
    warnings = []
    if databases < FEWEST_DATABASES:
        count = "one database" if databases == 1 else f"{databases} databases"
        warnings.append(
            f"{count}: the report will have an interval over questions, none over databases, which takes three"
        )
    if seeds < ENOUGH_SEEDS:
        warnings.append(f"{seeds} {'seed' if seeds == 1 else 'seeds'}: every figure will be preliminary below three")
    return tuple(warnings)
