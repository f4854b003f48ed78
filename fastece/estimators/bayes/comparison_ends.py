"""Ends of the interval of an error that is compared with another.

The intervals of `fastece.estimate` cover one error. The interval of a difference is made from two
of them, so that whatever is too wide in each adds up. A difference reaches its end only if both
errors reach theirs, so its low ends may lie further in; and its high ends lie further out, as an
error that the rows cannot see, of a rough curve, widens the interval of the other model little.

The constants were chosen among 50 sets on 45 pairs of models with 300, 1000 and 3000 rows, 240
samples of each; ``scripts/evidence/compare_coverage.py`` repeats the measurement on other samples.
"""

import math
from typing import NamedTuple

import numpy as np

# Ends are moved by amounts that depend on the evidence against calibration, the log of the Bayes
# factor. Between two values of the evidence an amount changes in proportion.
HIGH_EVIDENCE = (-2.0, 1.0)
# The high end is moved out by these standard normal units. With 0 the lowest coverage of a pair
# is 77 %, and not 87 %, at a mean width of 1.46 and not 1.58 times the basic interval.
HIGH_SHIFTS = (0.1, 0.3)
LOW_EVIDENCE = (1.0, 10.0)
# The low end is moved in by these standard normal units. With 0 the mean width is 1.78 times the
# basic interval, and the mean coverage 98.3 %, not 96.9 %.
LOW_SHIFTS = (1.3, 0.5)
# The low end is 0 up to this alpha times the Bayes factor. `estimate` has 1: there a Bayes factor
# of 20 is needed at 95 %, here one of 3. With 1 the mean width is 1.68 times the basic interval.
MAX_ALPHA_OF_ZERO = 0.15


class EndShifts(NamedTuple):
    """How far the ends of an interval move for a comparison.

    Attributes
    ----------
    low, high : float
        Standard normal units by which the low end is moved in, and the high end out.
    max_alpha_of_zero : float
        The low end is 0 up to this alpha.
    """

    low: float
    high: float
    max_alpha_of_zero: float


def end_shifts(log_bayes_factor: float) -> EndShifts:
    """Compute the shifts of the ends from the evidence against calibration."""
    doubt = max(log_bayes_factor, math.log(MAX_ALPHA_OF_ZERO))
    return EndShifts(
        low=float(np.interp(log_bayes_factor, LOW_EVIDENCE, LOW_SHIFTS)),
        high=float(np.interp(log_bayes_factor, HIGH_EVIDENCE, HIGH_SHIFTS)),
        max_alpha_of_zero=MAX_ALPHA_OF_ZERO * math.exp(-doubt),
    )
