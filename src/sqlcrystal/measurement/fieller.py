"""Fieller's theorem over databases: the ratios that a paired comparison cannot rule out.

A ratio r is kept where the sum of lift - r × headroom over databases cannot be told from zero. At r = 0 this is the
test of the lift itself, so the ratio's interval holds zero exactly when the lift's does. Where the headroom itself
cannot be told from zero the answer is unbounded, which is what the data say.
"""

from math import sqrt
from typing import Literal

import numpy as np
from msgspec import Struct

from sqlcrystal.measurement.clusters import Floats

Shape = Literal["bounded", "outside", "unbounded"]


class FiellerSet(Struct, frozen=True):
    """The ratios kept: from low to high; outside low to high; or all of them, when the ends are None."""

    shape: Shape
    low: float | None = None
    high: float | None = None

    def __contains__(self, ratio: float) -> bool:
        if self.low is None or self.high is None:
            return True
        inside = self.low <= ratio <= self.high
        return inside if self.shape == "bounded" else not self.low < ratio < self.high


def fieller(*, lift: float, headroom: float, lift_parts: Floats, headroom_parts: Floats, df: float) -> FiellerSet:
    """The set of ratios r with |lift - r × headroom| within t standard errors, from each database's part of the errors.

    Squared, that is a quadratic in r: a r² - 2 b r + c <= 0.
    """
    from scipy.special import stdtrit

    squared = float(stdtrit(df, 0.975)) ** 2
    a = headroom**2 - squared * float(np.sum(headroom_parts**2))
    b = lift * headroom - squared * float(np.sum(lift_parts * headroom_parts))
    c = lift**2 - squared * float(np.sum(lift_parts**2))
    discriminant = b**2 - a * c
    if a == 0 or discriminant <= 0:
        return FiellerSet("unbounded")
    ends = sorted(((b - sqrt(discriminant)) / a, (b + sqrt(discriminant)) / a))
    return FiellerSet("bounded" if a > 0 else "outside", *ends)
