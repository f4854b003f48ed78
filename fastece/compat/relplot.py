"""The binned calibration error with the name, arguments and numbers of relplot.

The function has its name in ``relplot.metrics`` (Blasiok and Nakkiran 2023, "Smooth ECE: principled
reliability diagrams via kernel smoothing"), which is not imported. Their smooth error is
``fastece.ece(y, f, estimator="smooth_ece")``, whose digits are other ones.

Notes
-----
- `binnedECE`: Ten bins, closed at the left. Rounding puts scores of 1 into the last bin for some B,
  as 93, or 7 in float32, and for others the float below 1 into their own. A float32 score of 1 is
  an error there for 93 bins.
"""

from typing import Any

import numpy as np

from fastece.compat.conventions import CONVENTIONS, check_bins
from fastece.compat.names import LIBRARIES

NAMES = LIBRARIES["relplot"]


def binnedECE(f: Any, y: Any, nbins: int = 10) -> np.float64:  # noqa: N802
    """Compute the calibration error in bins of equal width, as relplot does.

    Parameters
    ----------
    f : (n,) array_like of float
        Probabilities of class 1.
    y : (n,) array_like of int
        0 or 1.
    nbins : int, default 10
        Number of bins.

    Raises
    ------
    ValueError, TypeError
        As `fastece.ece`.

    Notes
    -----
    Unlike `fastece.ece`, bins are closed at the left, with edges where ``int(f / (1 / nbins))``
    changes, and a score of 1 is in a bin of its own or, for some `nbins`, in the last: with rounded
    scores the second digit may differ.

    Examples
    --------
    >>> binnedECE([0.25, 0.25, 0.55, 0.75, 1.0], [0, 0, 1, 1, 0]).round(4)
    np.float64(0.44)
    """
    prob = NAMES.vector(f)
    nbins = check_bins("nbins", nbins)
    return CONVENTIONS["relplot"].value(y, prob, nbins)
