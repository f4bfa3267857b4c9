"""Many comparisons at once: one primary contrast, tested first and unadjusted, and Holm's adjustment over the others.

The family is what a study designates before it runs. A contrast that was not run, or whose p is undefined, still counts
towards its size: leaving it out afterwards would make the others look better than they are.
"""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from sqlcrystal.errors import ConfigError
from sqlcrystal.measurement.statistics import ALPHA


class FamilyReading(Struct, frozen=True, kw_only=True):
    """One designated contrast, read both ways."""

    name: str
    primary: bool
    p_value: float | None
    """As tested; None where the contrast was not run or has no p."""
    holm_p: float | None
    """Adjusted within the family; None for the primary contrast, which is not adjusted, and where p is undefined."""
    supported_alone: bool
    """The paper's reading: p below 5 %, unadjusted."""
    supported: bool
    """Ours: the primary contrast by its own p; another by Holm's, and only once the primary contrast is supported."""


def holm(p_values: Sequence[float | None]) -> tuple[float | None, ...]:
    """Adjusted p-values in the given order, over all of them; an undefined p stays undefined and counts as 1."""
    ranked = [1.0 if p_value is None else p_value for p_value in p_values]
    order = sorted(range(len(ranked)), key=lambda index: ranked[index])
    adjusted: list[float | None] = [None] * len(ranked)
    floor = 0.0
    for rank, index in enumerate(order):
        floor = max(floor, min(1.0, (len(ranked) - rank) * ranked[index]))
        if p_values[index] is not None:
            adjusted[index] = floor
    return tuple(adjusted)


def read_family(p_values: Mapping[str, float | None], *, primary: str | None = None) -> dict[str, FamilyReading]:
    """Read every designated contrast of a study; without a primary contrast Holm's adjustment covers them all.

    Testing the primary contrast first at 5 %, and the others only after it, keeps the chance of any false claim at 5 %.
    """
    if primary is not None and primary not in p_values:
        raise ConfigError.unknown("primary contrast", primary, p_values)
    others = [name for name in p_values if name != primary]
    adjusted = dict(zip(others, holm([p_values[name] for name in others]), strict=True))
    opened = primary is None or _below(p_values[primary])
    return {
        name: FamilyReading(
            name=name,
            primary=name == primary,
            p_value=p_value,
            holm_p=adjusted.get(name),
            supported_alone=_below(p_value),
            supported=opened and _below(p_value if name == primary else adjusted[name]),
        )
        for name, p_value in p_values.items()
    }


def _below(p_value: float | None) -> bool:
    return p_value is not None and p_value < ALPHA
