"""Calibration errors with the names, arguments and numbers of the package uncertainty-calibration.

Functions are those of its module ``calibration`` (Kumar, Liang and Ma 2019, "Verified uncertainty
calibration"), which is not imported.

Where it departs from `fastece.ece`, and why that matters: `get_ece` does not, but for the edges of
class-wise means. `get_calibration_error` is by default of norm 2, debiased, class by class and in
equal-mass bins, or in one bin for each score if scores are few, so its values are not to be
compared with an ECE. With ``debias=True`` and p = 1 the package draws normal variables, and raises
if a bin has fewer than two rows; here the expected value of what it draws is computed.

>>> from fastece.compat.uncertainty_calibration import get_ece
>>> get_ece([0.25, 0.25, 0.55, 0.75, 0.75], [0, 0, 1, 1, 1], num_bins=2)
np.float64(0.29)
"""

import math
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fastece.checks.parameters import check_choice, check_flag, check_real
from fastece.compat.conventions import CONVENTIONS, Convention, check_bins
from fastece.compat.reading import Names, scores_of
from fastece.data.problems import one_problem

Mode = Literal["top-label", "marginal"]
NAMES = Names("labels", "probs", "probs")
SETTINGS = {"top-label": "auto", "marginal": "classwise"}
BINS = 15


def get_ece(
    probs: Any, labels: Any, debias: bool = False, num_bins: int = BINS, mode: Mode = "top-label"
) -> np.float64:
    """Expected calibration error in bins of equal width, as uncertainty-calibration has it.

    Parameters
    ----------
    probs : (n,) or (n, K) array_like of float
        Probabilities of class 1, or of each class.
    labels : (n,) array_like of int
        Classes from 0 to K - 1.
    debias : bool, default False
        Whether what chance adds is taken off.
    num_bins : int, default 15
        Number of bins.
    mode : {"top-label", "marginal"}
        For (n, K): the top label, or the mean over the classes.

    Returns
    -------
    numpy.float64

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
    convention = CONVENTIONS["uncertainty_calibration"]
    return error_of(convention, probs, labels, 1.0, debias, num_bins, mode)


def get_ece_em(
    probs: Any, labels: Any, debias: bool = False, num_bins: int = BINS, mode: Mode = "top-label"
) -> np.float64:
    """Expected calibration error in equal-mass bins, as uncertainty-calibration has it.

    Parameters
    ----------
    probs, labels, debias, num_bins, mode
        As in `get_ece`; there are at most n bins.

    Returns
    -------
    numpy.float64

    Raises
    ------
    ValueError, TypeError
        As `get_ece`.

    Notes
    -----
    Unlike the quantile edges of `fastece.ece`, an edge is the middle between two groups of rows in
    order; tied scores at the end of a group are all below it, so bins may be of unlike mass.

    Examples
    --------
    >>> get_ece_em([0.25, 0.25, 0.55, 0.75, 0.75], [0, 0, 1, 1, 1], num_bins=2)
    np.float64(0.11000000000000001)
    """
    convention = CONVENTIONS["uncertainty_calibration_quantile"]
    return error_of(convention, probs, labels, 1.0, debias, num_bins, mode)


def get_calibration_error(
    probs: Any, labels: Any, p: float = 2, debias: bool = True, mode: Mode = "marginal"
) -> np.float64:
    """Calibration error of norm p, as uncertainty-calibration has it.

    Parameters
    ----------
    probs, labels, debias
        As in `get_ece`.
    p : float, default 2
        Norm of the gaps, and of the errors of classes; 1 or 2 with `debias`.
    mode : {"marginal", "top-label"}
        For (n, K): ``(1/K sum_k error_k**p)**(1/p)`` over the classes, or the top label.

    Returns
    -------
    numpy.float64

    Raises
    ------
    ValueError, TypeError
        As `get_ece`; for another p with `debias`.

    Notes
    -----
    Unlike `fastece.ece` it is a root mean square, debiased and over classes by default, so a value
    is not to be compared with an ECE: it is larger by the spread of the gaps, and smaller by the
    classes that nearly never come true. With few distinct scores the bins change from 15 to one for
    each score.

    Examples
    --------
    >>> probs = [0.1, 0.2, 0.3, 0.4, 0.6, 0.7, 0.8, 0.9]
    >>> get_calibration_error(probs, [0, 0, 1, 0, 1, 1, 0, 1], p=1, debias=False).round(4)
    np.float64(0.375)
    """
    prob = NAMES.scores(probs)
    is_discrete = prob.ndim in (1, 2) and all(
        np.unique(column).size < column.size / 4 for column in np.atleast_2d(prob.T)
    )
    name = "uncertainty_calibration_" + ("discrete" if is_discrete else "quantile")
    return error_of(CONVENTIONS[name], prob, labels, p, debias, BINS, mode)


def error_of(
    convention: Convention, probs: Any, labels: Any, p: float, debias: bool, num_bins: int,
    mode: Mode,
) -> np.float64:  # fmt: skip
    """The error of norm p in the bins of a convention."""
    p, debias = check_real("p", p, 1.0), check_flag("debias", debias)
    num_bins = check_bins("num_bins", num_bins)
    if debias and p not in (1.0, 2.0):
        raise ValueError(
            f"debias: the value of p = {p:g} is drawn at random by uncertainty-calibration, and "
            "has no formula; p must be 1 or 2, or debias=False"
        )
    prob: NDArray[Any] = NAMES.scores(probs)
    setting = SETTINGS[check_choice("mode", mode, tuple(SETTINGS))]
    setting = setting if prob.ndim == 2 else "auto"
    fields: dict[str, Any] = {"norm": p, "debias": debias}
    if setting == "auto" and not convention.needs_scores:
        return NAMES.error(labels, prob, convention.binned(num_bins, **fields))
    problems = NAMES.read(labels, prob, setting)
    errors = []
    for sample in problems.samples():
        binned = convention.binned(num_bins, scores_of(sample, prob), **fields)
        errors.append(binned.direct(one_problem(sample))[0])
    if len(errors) == 1 or p == math.inf:
        return np.float64(max(errors))
    return np.float64(np.mean(np.array(errors) ** p) ** (1 / p))
