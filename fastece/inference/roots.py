"""The root of a function of one number between two bounds."""

import math
from collections.abc import Callable

# Tolerance relative to the root: four units in the last place of a number.
RELATIVE_TOLERANCE = 2.0**-50
# The same absolute tolerance as the default of scipy.
ABSOLUTE_TOLERANCE = 2e-12
# Most roots take a dozen steps; bisection alone would halve the bracket 53 times.
MAX_STEPS = 100


def find_root(
    function: Callable[[float], float],
    low: float,
    high: float,
    tolerance: float = ABSOLUTE_TOLERANCE,
) -> float:
    """Find where a continuous function is 0, between bounds where its signs differ.

    Brent's method (1973, "Algorithms for minimization without derivatives", chapter 4): a step is
    interpolated from the last values, and replaced by bisection where it is not short enough. Steps
    and bits are the same as in `scipy.optimize.brentq`, whose import takes 0.2 s.

    Raises
    ------
    ValueError
        If the function has the same sign at both bounds.
    RuntimeError
        If 100 steps are too few, as for a function that jumps at a tolerance of 0.
    """
    # Numbers of numpy would warn where an infinite value is interpolated.
    before = float(low)
    root = float(high)
    value_before = float(function(before))
    value = float(function(root))
    if value_before == 0:
        return before
    if value == 0:
        return root
    if (value_before < 0) == (value < 0):
        raise ValueError(f"function has the same sign at both bounds: {value_before}, {value}")
    opposite = before
    value_opposite = value_before
    step = step_before = root - before
    for _ in range(MAX_STEPS):
        if (value_before < 0) != (value < 0):
            # The bracket lies between the last two points.
            opposite = before
            value_opposite = value_before
            step = step_before = root - before
        if abs(value_opposite) < abs(value):
            before, root, opposite = root, opposite, root
            value_before, value, value_opposite = value, value_opposite, value
        shortest = (tolerance + RELATIVE_TOLERANCE * abs(root)) / 2
        half = (opposite - root) / 2
        if value == 0 or abs(half) < shortest:
            return root
        interpolated = math.inf
        if abs(step_before) > shortest and abs(value) < abs(value_before):
            if before == opposite:
                interpolated = -value * (root - before) / (value - value_before)
            else:
                slope_before = (value_before - value) / (before - root)
                slope_opposite = (value_opposite - value) / (opposite - root)
                curvature = slope_opposite * slope_before * (value_opposite - value_before)
                change = value_opposite * slope_opposite - value_before * slope_before
                if curvature != 0:
                    interpolated = -value * change / curvature
        if 2 * abs(interpolated) < min(abs(step_before), 3 * abs(half) - shortest):
            step_before = step
            step = interpolated
        else:
            step_before = step = half
        before = root
        value_before = value
        if abs(step) > shortest:
            root += step
        else:
            root += math.copysign(shortest, half)
        value = float(function(root))
    raise RuntimeError(f"no root was found in {MAX_STEPS} steps")
