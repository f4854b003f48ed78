"""Calibration errors with the names and arguments of relplot.

The functions have the names of ``relplot.metrics`` (Blasiok and Nakkiran 2023, "Smooth ECE:
principled reliability diagrams via kernel smoothing"), which is not imported.

Notes
-----
- `binnedECE`: Ten bins, closed at the left. Rounding puts scores of 1 into the last bin for some B,
  as 93, or 7 in float32, and for others the float below 1 into their own. A float32 score of 1 is
  an error there for 93 bins.
- `smECE`, `smECE_sigma`: fastece's own estimator, `"smooth_ece"`, and not relplot's arithmetic,
  which finds the scale to 1/1024 only, looks at 200 points, cuts the kernel off at a distance of
  1/2 and counts a score of exactly 0 or 1 half.
"""

from typing import Any

import numpy as np

from fastece.compat.conventions import CONVENTIONS, check_bins
from fastece.compat.names import LIBRARIES
from fastece.data.parameters import check_flag, check_real
from fastece.estimators.smooth import SmoothECE

NAMES = LIBRARIES["relplot"]
# A smaller scale needs a grid of more than 2**22 cells.
MIN_SCALE = 5e-6
MAX_SCALE = 1e6


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
    prob = NAMES.vector(NAMES.scores(f))
    nbins = check_bins("nbins", nbins)
    return np.float64(CONVENTIONS["relplot"].errors(y, prob, nbins)[0])


def smECE(  # noqa: N802
    f: Any, y: Any, eps: float = 0.001, return_width: bool = False
) -> np.float64 | tuple[np.float64, float]:
    """Compute the smooth calibration error at the scale that it equals.

    Parameters
    ----------
    f, y
        As in `binnedECE`, which has the errors too.
    eps : float, default 0.001
        The smallest scale, from 5e-6 to 1e6; less counts as 5e-6.
    return_width : bool, default False
        Whether the scale is returned as well.

    Returns
    -------
    numpy.float64, or (numpy.float64, float)

    Notes
    -----
    ``fastece.ece(y, f, estimator="smooth_ece")``, or where that is less than `eps` the value at the
    scale `eps`. relplot's values are a little smaller.

    Examples
    --------
    >>> smECE([0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1]).round(4)
    np.float64(0.1423)
    """
    eps = max(check_real("eps", eps, 0.0, MAX_SCALE), MIN_SCALE)
    return_width = check_flag("return_width", return_width)
    value = smooth_error(f, y, "auto")
    width = max(float(value), eps)
    if value < eps:
        value = smooth_error(f, y, width)
    return (value, width) if return_width else value


def smECE_sigma(f: Any, y: Any, sigma: float = 0.05) -> np.float64:  # noqa: N802
    """Compute the smooth calibration error at a scale.

    Parameters
    ----------
    f, y
        As in `binnedECE`, which has the errors too.
    sigma : float, default 0.05
        Standard deviation of the kernel, from 5e-6 to 1e6.

    Notes
    -----
    ``fastece.ece(y, f, estimator=SmoothECE(scale=sigma))``. At scales above 0.1 relplot's value is
    another one: it divides by a density that is smoothed too, and cuts the kernel off.

    Examples
    --------
    >>> smECE_sigma([0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1]).round(4)
    np.float64(0.3357)
    """
    return smooth_error(f, y, check_real("sigma", sigma, MIN_SCALE, MAX_SCALE))


def smooth_error(f: Any, y: Any, scale: Any) -> np.float64:
    """Compute the smooth calibration error at a scale, or at its own with "auto"."""
    problems = NAMES.read(y, NAMES.vector(NAMES.scores(f)))
    return np.float64(SmoothECE(scale=scale).point_values(problems)[0])
