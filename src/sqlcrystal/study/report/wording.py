"""How figures are spelled: one place, so that a number reads the same in the page, the Markdown, LaTeX and CSV."""

from collections.abc import Iterable
from math import isfinite

from sqlcrystal.measurement.comparison import Comparison
from sqlcrystal.measurement.ratio import RatioEstimate

NONE = "—"
METHOD_NAMES = {"cr2": "CR2", "jackknife": "jackknife", "two-stage": "two-stage bootstrap"}


def percent(value: float | None, digits: int = 1) -> str:
    """An accuracy or share, in percent, without the sign."""
    return NONE if value is None or not isfinite(value) else f"{value:.{digits}f}".replace("-", "−")


def points(value: float | None, digits: int = 2) -> str:
    """A difference in percentage points, always signed."""
    if value is None or not isfinite(value):
        return NONE
    shown = f"{value:+.{digits}f}"
    return shown.replace("-", "−") if float(shown) else shown.lstrip("+-")


def interval(low: float | None, high: float | None, digits: int = 2) -> str:
    """A signed interval."""
    if low is None or high is None or not (isfinite(low) and isfinite(high)):
        return NONE
    return f"[{points(low, digits)}, {points(high, digits)}]"


def judged(result: Comparison) -> str:
    """The interval and p of a difference; where databases give none, the reason, and what the questions alone say."""
    if result.p_value is not None:
        return f"95% interval {interval(result.ci_low_pp, result.ci_high_pp)}, p {probability(result.p_value)}"
    alone = result.question_level
    if alone is None or alone.p_value is None:
        return f"{result.undefined}; {alone.undefined}" if alone else result.undefined
    ends = f"{interval(alone.low, alone.high)}, p {probability(alone.p_value)}"
    return f"{result.undefined}; question-level, for these databases only: {ends}"


def kept_ratios(estimate: RatioEstimate) -> str:
    """The interval of a ratio, which may be unbounded, and how many resamples had no ratio at all."""
    between = interval(estimate.low, estimate.high, 1)
    words = {
        "bounded": f"95% interval {between}",
        "outside": f"95% interval unbounded: anything outside {between}",
        "unbounded": "95% interval unbounded: the headroom cannot be told from zero",
    }.get(estimate.shape, estimate.undefined)
    share = estimate.undefined_share
    return f"{words}; undefined in {100 * share:.1f}% of resamples" if share else words


def probability(value: float | None) -> str:
    """A p-value as journals print it: no leading zero, never zero."""
    if value is None or not isfinite(value):
        return NONE
    if value < 0.0001:
        return "<.0001"
    return f"{value:.4f}".lstrip("0") if value < 0.01 else f"{value:.3f}".lstrip("0") if value < 0.9995 else "1"


def number(value: float | None, digits: int = 0) -> str:
    """A count, with thin groups of thousands."""
    return NONE if value is None or not isfinite(value) else f"{value:,.{digits}f}"


def per_seed(values: Iterable[float | None], digits: int = 1) -> str:
    """One figure per seed, separated by slashes, in the order of the seeds."""
    return "/".join(
        percent(value, digits) if value is None or value >= 0 else points(value, digits) for value in values
    )


def plural(count: int, word: str) -> str:
    """A count with its noun."""
    return f"{count:,} {word}" if count == 1 else f"{count:,} {word}s"


def listed(items: Iterable[str]) -> str:
    """Items as a sentence lists them."""
    words = list(items)
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}" if words else ""
