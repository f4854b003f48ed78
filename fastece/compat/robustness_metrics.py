"""General calibration errors with the names and numbers of uncertainty_metrics.

Functions are those of ``uncertainty_metrics.numpy`` (and of robustness_metrics, which took them
over), by the authors of Nixon et al. (2019, "Measuring calibration in deep learning"). Neither is
imported.

Notes
-----
- Thirty bins, closed at the left. `norm="l2"` is `sqrt(sum_b (D_b / n)^2)`, not the root mean
  square of the gaps: a bin counts by the square of its share, so that many bins make the value
  small. Class by class, the value is the mean over all classes, those without rows counting 0.
- `gce`, `rmsce`, `ace`, `tace`: Adaptive bins count by their rows, not equally as the ACE and TACE
  of the paper have it (`fastece.ace`, `fastece.tace`). A bin begins with the score at its position,
  so tied scores may empty the bin before.
"""

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fastece.compat.conventions import CONVENTIONS, LIBRARIES, check_bins
from fastece.data.errors import InputError
from fastece.data.parameters import check_choice, check_flag, check_integer, check_real
from fastece.data.samples import Sample
from fastece.kernels import GAP, WEIGHT

Scheme = Literal["even", "adaptive"]
Norm = Literal["l1", "l2"]
NAMES = LIBRARIES["uncertainty-metrics"]
SCHEMES = {"even": "robustness_metrics", "adaptive": "robustness_metrics_adaptive"}
POWERS = {"l1": 1, "l2": 2}
MANY = 2**31
BINS = 30


def gce(
    labels: Any, probs: Any, binning_scheme: Scheme, max_prob: bool, class_conditional: bool,
    norm: Norm, num_bins: int = BINS, threshold: float = 0.0, datapoints_per_bin: int | None = None,
) -> np.float64:  # fmt: skip
    """Compute the general calibration error, as uncertainty_metrics does.

    Parameters
    ----------
    labels : (n,) array_like of int
        Classes from 0 to K - 1.
    probs : (n, K) array_like of float
        Probabilities of the classes; (n,) or (n, 1) hold class 1 alone.
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
    flags = check_flag("max_prob", max_prob), check_flag("class_conditional", class_conditional)
    prob, is_even = NAMES.columns(probs), binning_scheme == "even"
    if prob.ndim == 1:
        prob = NAMES.read(labels, prob).view().s.astype(prob.dtype, copy=False)
        prob = np.column_stack([1 - prob, prob])
    # In their precision, as there.
    threshold = float(prob.dtype.type(check_real("threshold", threshold, -np.inf)))
    if datapoints_per_bin is not None:
        if is_even:
            raise InputError("datapoints_per_bin", "goes with binning_scheme='adaptive' only")
        each = check_integer("datapoints_per_bin", datapoints_per_bin, 1, MANY)
        num_bins = max(1, len(prob) // each)
    num_bins = check_bins("num_bins", num_bins)
    if is_even and flags == (True, False) and norm == "l1" and threshold <= 0:
        return np.float64(convention.errors(labels, prob, num_bins, "confidence")[0])
    if is_even and flags == (False, True):  # the same bins for every class
        binned = convention.binned(num_bins, threshold=threshold)
        bins = binned.bins(NAMES.read(labels, prob, "classwise"), kinds=(GAP, WEIGHT))
        values = (np.abs(bins.gap / np.maximum(bins.total, 1)[:, None]) ** power).sum(1)
        return np.float64(np.mean(values) ** (1 / power))
    values = np.zeros(prob.shape[1] if class_conditional else 1)
    for k, sample in enumerate(samples_of(labels, prob, *flags)):
        exists = sample.s > threshold
        s, y = sample.s[exists], sample.y[exists]
        if s.size:
            gap = convention.bins(num_bins, s, y, prob.dtype).gap
            values[k] = (np.abs(gap / s.size) ** power).sum()
    return np.float64(np.mean(values) ** (1 / power))


def samples_of(labels: Any, prob: NDArray[Any], max_prob: bool, by_class: bool) -> list[Sample]:
    """List the problem whose error is measured, or that of each class."""
    problems = NAMES.read(labels, prob, "confidence" if max_prob else "classwise")
    samples = list(map(problems.view, range(problems.n_problems)))
    if not by_class:
        s, y = (np.concatenate(parts) for parts in zip(*((x.s, x.y) for x in samples), strict=True))
        return [Sample(s, y, None, 0.0, 1.0, np.arange(s.size))]
    if max_prob:
        top = prob.argmax(axis=1)
        return [samples[0].where(top == k) for k in range(prob.shape[1])]
    return samples


general_calibration_error = gce


def ece(labels: Any, probs: Any, num_bins: int = BINS) -> np.float64:
    """Compute the ECE of the top label in even bins, as uncertainty_metrics does.

    Parameters
    ----------
    labels, probs, num_bins
        As in `gce`, which has the errors too.

    Examples
    --------
    >>> ece([0, 1, 1], [0.2, 0.6, 0.9], num_bins=2).round(4)
    np.float64(0.2333)
    """
    return gce(labels, probs, "even", True, False, "l1", num_bins)


def rmsce(
    labels: Any, probs: Any, num_bins: int = BINS, datapoints_per_bin: int | None = 100
) -> np.float64:
    """Compute the RMS calibration error of the top label, as uncertainty_metrics.

    Parameters
    ----------
    labels, probs, num_bins, datapoints_per_bin
        As in `gce`, which has the errors too: bins of 100 rows whatever `num_bins` is, and one bin
        of fewer, unless the last one is None.

    Examples
    --------
    >>> rmsce([0, 1, 1], [0.2, 0.6, 0.9]).round(4)
    np.float64(0.2333)
    """
    return gce(labels, probs, "adaptive", True, False, "l2", num_bins, 0.0, datapoints_per_bin)


def sce(labels: Any, probs: Any, num_bins: int = BINS) -> np.float64:
    """Compute the static (class-wise) calibration error, as uncertainty_metrics does.

    Parameters
    ----------
    labels, probs, num_bins
        As in `gce`, which has the errors too. Scores of exactly 0 are left out, as everywhere in it
        unless its `threshold` is negative.

    Examples
    --------
    >>> sce([0, 1, 1], [0.2, 0.6, 0.9]).round(4)
    np.float64(0.2333)
    """
    return gce(labels, probs, "even", False, True, "l1", num_bins)


def ace(labels: Any, probs: Any, num_bins: int = BINS) -> np.float64:
    """Compute the adaptive (class-wise) error, as uncertainty_metrics does.

    Parameters
    ----------
    labels, probs, num_bins
        As in `gce`, which has the errors too.

    Examples
    --------
    >>> ace([0, 1, 1], [0.2, 0.6, 0.9]).round(4)
    np.float64(0.2333)
    """
    return tace(labels, probs, num_bins, 0.0)


def tace(labels: Any, probs: Any, num_bins: int = BINS, threshold: float = 0.01) -> np.float64:
    """Compute the thresholded adaptive error by class, as uncertainty_metrics.

    Parameters
    ----------
    labels, probs, num_bins, threshold
        As in `gce`, which has the errors too.

    Examples
    --------
    >>> tace([0, 1, 1], [0.2, 0.6, 0.9]).round(4)
    np.float64(0.2333)
    """
    return gce(labels, probs, "adaptive", False, True, "l1", num_bins, threshold)
