"""Calibration errors with the names and numbers of uncertainty-calibration.

The functions have the names of its module ``calibration`` (Kumar, Liang and Ma 2019, "Verified
uncertainty calibration"), which is not imported.

Notes
-----
- `get_ece`: With `debias=False` this is `fastece.ece`. With `debias=True` the package draws normal
  variables, and raises an error if a bin has fewer than two rows; here the expected value of what
  it draws is computed, which is `fastece.ece(..., debias=True)`.
- `get_ece_em`, `get_calibration_error`: A tie at the end of a group is one edge, which all its rows
  are below.
- `get_calibration_error` is of norm 2, debiased, class by class and in equal-mass bins unless told
  otherwise: another quantity than the ECE. Where every column has fewer distinct scores than n / 4,
  each score has a bin of its own, so the value may jump with the number of rows.
"""

import math
from typing import Any, Literal

import numpy as np

from fastece.compat.conventions import CONVENTIONS, check_bins
from fastece.compat.names import LIBRARIES
from fastece.data.errors import InputError
from fastece.data.parameters import check_choice, check_flag, check_real

Mode = Literal["top-label", "marginal"]
NAMES = LIBRARIES["uncertainty-calibration"]
SETTINGS = {"top-label": "auto", "marginal": "classwise"}
BINS = 15


def get_ece(
    probs: Any, labels: Any, debias: bool = False, num_bins: int = BINS, mode: Mode = "top-label"
) -> np.float64:
    """Compute the ECE in bins of equal width, as uncertainty-calibration does.

    Parameters
    ----------
    probs : (n,) or (n, K) array_like of float
        Probabilities of class 1, or of each class.
    labels : (n,) array_like of int
        Classes from 0 to K - 1.
    debias : bool, default False
        Whether to subtract the part of the error that is due to chance.
    num_bins : int, default 15
        Number of bins.
    mode : {"top-label", "marginal"}
        For (n, K): the top label, or the mean over the classes.

    Raises
    ------
    ValueError, TypeError
        As `fastece.ece`.

    Notes
    -----
    This is the definition: ``fastece.ece(labels, probs)``, and with `debias` ``fastece.ece(labels,
    probs, debias=True)``, where the package draws at random.

    Examples
    --------
    >>> get_ece([[0.7, 0.3], [0.2, 0.8], [0.4, 0.6]], [0, 1, 1])
    np.float64(0.3)
    """
    return binned_error(
        "uncertainty_calibration",
        probs,
        labels,
        p=1.0,
        debias=debias,
        num_bins=num_bins,
        mode=mode,
    )


def get_ece_em(
    probs: Any, labels: Any, debias: bool = False, num_bins: int = BINS, mode: Mode = "top-label"
) -> np.float64:
    """Compute the ECE in equal-mass bins, as uncertainty-calibration does.

    Parameters
    ----------
    probs, labels, debias, num_bins, mode
        As in `get_ece`, which has the errors too; there are at most n bins.

    Notes
    -----
    Unlike the quantile edges of `fastece.ece`, an edge is the middle between two groups of rows in
    order; tied scores at the end of a group are all below it, so bins may be of unlike mass.

    Examples
    --------
    >>> get_ece_em([0.25, 0.25, 0.55, 0.75, 0.75], [0, 0, 1, 1, 1], num_bins=2)
    np.float64(0.11000000000000001)
    """
    return binned_error(
        "uncertainty_calibration_quantile",
        probs,
        labels,
        p=1.0,
        debias=debias,
        num_bins=num_bins,
        mode=mode,
    )


def get_calibration_error(
    probs: Any, labels: Any, p: float = 2, debias: bool = True, mode: Mode = "marginal"
) -> np.float64:
    """Compute the calibration error of norm p, as uncertainty-calibration does.

    Parameters
    ----------
    probs, labels, debias
        As in `get_ece`.
    p : float, default 2
        Norm of the gaps, and of the errors of classes; 1 or 2 with `debias`.
    mode : {"marginal", "top-label"}
        For (n, K): ``(1/K sum_k error_k**p)**(1/p)`` over the classes, or the top label.

    Raises
    ------
    ValueError, TypeError
        As `get_ece`; for another p with `debias`.

    Notes
    -----
    Unlike `fastece.ece` it is a root mean square, debiased and over classes by default, so a value
    cannot be compared with an ECE: it is larger by the spread of the gaps, and smaller by the
    classes that hardly ever occur. With few distinct scores the bins change from 15 to one for
    each score.

    Examples
    --------
    >>> probs = [0.1, 0.2, 0.3, 0.4, 0.6, 0.7, 0.8, 0.9]
    >>> get_calibration_error(probs, [0, 0, 1, 0, 1, 1, 0, 1], p=1, debias=False).round(4)
    np.float64(0.375)
    """
    prob = NAMES.scores(probs)
    columns = np.atleast_2d(prob.T)
    is_discrete = prob.ndim in (1, 2) and all(np.unique(x).size < x.size / 4 for x in columns)
    rule = "discrete" if is_discrete else "quantile"
    return binned_error(
        f"uncertainty_calibration_{rule}",
        prob,
        labels,
        p=p,
        debias=debias,
        num_bins=BINS,
        mode=mode,
    )


def binned_error(
    convention: str,
    probs: Any,
    labels: Any,
    *,
    p: float,
    debias: bool,
    num_bins: int,
    mode: Mode,
) -> np.float64:
    """Compute the error of norm p in the bins of one of the conventions, by its name."""
    p = check_real("p", p, 1.0)
    debias = check_flag("debias", debias)
    num_bins = check_bins("num_bins", num_bins)
    if debias and p not in (1.0, 2.0):
        words = f"draws normal variables for p = {p:g}, and has no formula"
        raise InputError("debias", words, hint="p must be 1 or 2, or debias=False")
    prob = NAMES.scores(probs)
    setting = SETTINGS[check_choice("mode", mode, tuple(SETTINGS))]
    if prob.ndim != 2:
        setting = "auto"
    errors = CONVENTIONS[convention].errors(labels, prob, num_bins, setting, norm=p, debias=debias)
    if errors.size == 1 or p == math.inf:
        return np.float64(errors.max())
    return np.float64(np.mean(errors**p) ** (1 / p))
