"""The general calibration error, by the names, arguments and numbers of uncertainty_metrics.

Functions are those of ``uncertainty_metrics.numpy`` (and of robustness_metrics, which took them
over), by the authors of Nixon et al. (2019, "Measuring calibration in deep learning"). Neither is
imported.

Where it departs from `fastece.ece`, and why that matters: bins are closed at the left, there are
30, and scores of 1 have one of their own. ``norm="l2"`` is ``sqrt(sum_b (D_b / n)**2)`` and not the
root mean square of the gaps: a bin counts by the square of its share, so the value gets smaller
with the number of bins. Adaptive bins count by their rows, where the paper's ACE counts them
equally. Class by class, the value is the mean over all classes, those without rows counting 0.

>>> from fastece.compat.robustness_metrics import gce
>>> probs = [[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.3, 0.3, 0.4]]
>>> gce([0, 1, 1], probs, "even", max_prob=True, class_conditional=False, norm="l1").round(4)
np.float64(0.3)
"""

import math
from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fastece.checks.parameters import check_choice, check_flag, check_integer, check_real
from fastece.compat.conventions import CONVENTIONS, check_bins
from fastece.compat.reading import Names, scores_of, without_column
from fastece.data.problems import one_problem
from fastece.data.sample import Sample
from fastece.estimators.binned.single import cell_sums
from fastece.kernels import GAP, WEIGHT

Scheme = Literal["even", "adaptive"]
Norm = Literal["l1", "l2"]
NAMES = Names("labels", "probs", "labels")
SCHEMES = {"even": "robustness_metrics", "adaptive": "robustness_metrics_adaptive"}
POWERS = {"l1": 1, "l2": 2}
MANY = 2**31
BINS = 30


def gce(
    labels: Any, probs: Any, binning_scheme: Scheme, max_prob: bool, class_conditional: bool,
    norm: Norm, num_bins: int = BINS, threshold: float = 0.0, datapoints_per_bin: int | None = None,
) -> np.float64:  # fmt: skip
    """General calibration error, as uncertainty_metrics has it.

    Parameters
    ----------
    labels : (n,) array_like of int
        Classes from 0 to K - 1.
    probs : (n, K) array_like of float
        Probabilities of the classes; (n,) or (n, 1) are those of class 1.
    binning_scheme : {"even", "adaptive"}
        Bins of equal width, or of about as many rows each.
    max_prob : bool
        The largest probability of each row alone.
    class_conditional : bool
        The mean over the classes, each with bins of its own; else all in the same bins.
    norm : {"l1", "l2"}
        ``sum_b |D_b| / n``, or the root of ``sum_b (D_b / n)**2``.
    num_bins : int, default 30
        Number of bins.
    threshold : float, default 0
        Only scores greater than this count.
    datapoints_per_bin : int, optional
        For adaptive bins, in place of `num_bins`: rows of each.

    Returns
    -------
    numpy.float64

    Raises
    ------
    ValueError, TypeError
        As `fastece.ece`; for unknown arguments.

    Notes
    -----
    Unlike `fastece.ece`, bins are closed at the left, and even ones have one more for scores of 1.
    "l2" is not the root mean square of the gaps, and gets smaller the more bins there are. Adaptive
    bins count by their rows. Classes that are never the top label count 0 in the mean over classes.

    Examples
    --------
    >>> gce([0, 1, 1], [0.2, 0.6, 0.9], "adaptive", True, False, "l2", num_bins=2).round(4)
    np.float64(0.2028)
    """
    convention = CONVENTIONS[SCHEMES[check_choice("binning_scheme", binning_scheme, [*SCHEMES])]]
    power = POWERS[check_choice("norm", norm, [*POWERS])]
    threshold = check_real("threshold", threshold, -np.inf)
    prob = without_column(NAMES.scores(probs))
    if prob.ndim == 1:
        prob = NAMES.read(labels, prob).prob.astype(prob.dtype, copy=False)
        prob = np.column_stack([1 - prob, prob])
    if datapoints_per_bin is not None:
        if binning_scheme != "adaptive":
            raise ValueError("datapoints_per_bin: goes with binning_scheme='adaptive' only")
        each = check_integer("datapoints_per_bin", datapoints_per_bin, 1, MANY)
        num_bins = max(1, len(prob) // each)
    num_bins = check_bins("num_bins", num_bins)
    is_common = binning_scheme == "even" and max_prob is True and class_conditional is False
    if is_common and norm == "l1" and threshold <= 0:
        return NAMES.error(labels, prob, convention.binned(num_bins), "confidence")
    flags = check_flag("max_prob", max_prob), check_flag("class_conditional", class_conditional)
    threshold = float(prob.dtype.type(threshold))  # in their precision, as there
    if binning_scheme == "even" and flags == (False, True):  # the same bins for every class
        problems, layout = NAMES.read(labels, prob, "classwise"), convention.layout(num_bins)
        gap, weight = cell_sums(problems, layout, threshold, (GAP, WEIGHT), map)
        values = (np.abs(gap / np.maximum(weight.sum(1, keepdims=True), 1)) ** power).sum(1)
        return np.float64(np.mean(values) ** (1 / power))
    values = []
    for sample in samples_of(labels, prob, *flags):
        sample = sample.where(sample.s > threshold)
        if not sample.n:
            values.append(0.0)
            continue
        layout = convention.layout(num_bins, scores_of(sample, prob))
        (gap,) = cell_sums(one_problem(sample), layout, -math.inf, (GAP,), map)
        values.append(float((np.abs(gap / sample.n) ** power).sum()))
    return np.float64(np.mean(values) ** (1 / power))


def samples_of(
    labels: Any, prob: NDArray[Any], max_prob: bool, class_conditional: bool
) -> Iterator[Sample]:
    """The problem whose error is measured, or that of each class."""
    setting = "confidence" if max_prob else "classwise"
    samples = NAMES.read(labels, prob, setting).samples()
    if not class_conditional:
        s, y = (np.concatenate(parts) for parts in zip(*((x.s, x.y) for x in samples), strict=True))
        yield Sample(s, y, None, 0.0, 1.0, np.arange(s.size))
    elif max_prob:
        top = prob.argmax(axis=1)
        yield from (samples[0].where(top == k) for k in range(prob.shape[1]))
    else:
        yield from samples


general_calibration_error = gce


def ece(labels: Any, probs: Any, num_bins: int = BINS) -> np.float64:
    """Expected calibration error of the top label, as uncertainty_metrics has it.

    Parameters
    ----------
    labels, probs, num_bins
        As in `gce`.

    Returns
    -------
    numpy.float64

    Raises
    ------
    ValueError, TypeError
        As `gce`.

    Notes
    -----
    The even bins of `gce`: closed at the left, thirty of them.

    Examples
    --------
    >>> ece([0, 1, 1], [0.2, 0.6, 0.9], num_bins=2).round(4)
    np.float64(0.2333)
    """
    return gce(labels, probs, "even", True, False, "l1", num_bins)


def rmsce(
    labels: Any, probs: Any, num_bins: int = BINS, datapoints_per_bin: int | None = 100
) -> np.float64:
    """Root mean square calibration error of the top label, as uncertainty_metrics has it.

    Parameters
    ----------
    labels, probs, num_bins, datapoints_per_bin
        As in `gce`; the last one is what counts, unless it is None.

    Returns
    -------
    numpy.float64

    Raises
    ------
    ValueError, TypeError
        As `gce`.

    Notes
    -----
    Bins of 100 rows whatever `num_bins` says, and one bin of fewer; see `gce` for "l2".

    Examples
    --------
    >>> rmsce([0, 1, 1], [0.2, 0.6, 0.9]).round(4)
    np.float64(0.2333)
    """
    return gce(labels, probs, "adaptive", True, False, "l2", num_bins, 0.0, datapoints_per_bin)


def sce(labels: Any, probs: Any, num_bins: int = BINS) -> np.float64:
    """Static calibration error: class by class, as uncertainty_metrics has it.

    Parameters
    ----------
    labels, probs, num_bins
        As in `gce`.

    Returns
    -------
    numpy.float64

    Raises
    ------
    ValueError, TypeError
        As `gce`.

    Notes
    -----
    Scores of exactly 0 are left out, as everywhere in `gce` unless `threshold` is negative.

    Examples
    --------
    >>> sce([0, 1, 1], [0.2, 0.6, 0.9]).round(4)
    np.float64(0.2333)
    """
    return gce(labels, probs, "even", False, True, "l1", num_bins)


def ace(labels: Any, probs: Any, num_bins: int = BINS) -> np.float64:
    """Adaptive calibration error: class by class, as uncertainty_metrics has it.

    Parameters
    ----------
    labels, probs, num_bins
        As in `gce`.

    Returns
    -------
    numpy.float64

    Raises
    ------
    ValueError, TypeError
        As `gce`.

    Notes
    -----
    Bins count by their rows; those of `fastece.ace`, as in the paper, equally.

    Examples
    --------
    >>> ace([0, 1, 1], [0.2, 0.6, 0.9]).round(4)
    np.float64(0.2333)
    """
    return gce(labels, probs, "adaptive", False, True, "l1", num_bins)


def tace(labels: Any, probs: Any, num_bins: int = BINS, threshold: float = 0.01) -> np.float64:
    """Thresholded adaptive calibration error: class by class, as uncertainty_metrics has it.

    Parameters
    ----------
    labels, probs, num_bins, threshold
        As in `gce`.

    Returns
    -------
    numpy.float64

    Raises
    ------
    ValueError, TypeError
        As `gce`.

    Notes
    -----
    Bins count by their rows; those of `fastece.tace`, as in the paper, equally.

    Examples
    --------
    >>> tace([0, 1, 1], [0.2, 0.6, 0.9]).round(4)
    np.float64(0.2333)
    """
    return gce(labels, probs, "adaptive", False, True, "l1", num_bins, threshold)
