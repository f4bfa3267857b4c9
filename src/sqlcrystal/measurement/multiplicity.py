"""Many comparisons at once: Holm's step-down adjustment for a family of tests."""

from collections.abc import Sequence


def holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """Adjusted p-values in the given order; controls the chance of any false claim in the family."""
    order = sorted(range(len(p_values)), key=lambda index: p_values[index])
    adjusted, floor = [0.0] * len(p_values), 0.0
    for rank, index in enumerate(order):
        floor = max(floor, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = floor
    return tuple(adjusted)
