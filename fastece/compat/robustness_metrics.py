"""General calibration errors with the names and numbers of uncertainty_metrics.

The functions have the names of ``uncertainty_metrics.numpy`` (and of robustness_metrics, which took
them over), by the authors of Nixon et al. (2019, "Measuring calibration in deep learning"). Neither
is imported.

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

from fastece.compat.conventions import CONVENTIONS, MAX_ROWS, check_bins
from fastece.compat.names import LIBRARIES
from fastece.data.errors import InputError
from fastece.data.parameters import check_choice, check_flag, check_integer, check_real
from fastece.data.samples import Sample
from fastece.data.table import RowTable, one_problem
from fastece.estimators.binned import Bins
from fastece.kernels import GAP, WEIGHT

Scheme = Literal["even", "adaptive"]
Norm = Literal["l1", "l2"]
NAMES = LIBRARIES["uncertainty-metrics"]
SCHEMES = {"even": "robustness_metrics", "adaptive": "robustness_metrics_adaptive"}
POWERS = {"l1": 1, "l2": 2}
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
    max_prob = check_flag("max_prob", max_prob)
    class_conditional = check_flag("class_conditional", class_conditional)
    prob = NAMES.columns(probs)
    if prob.ndim == 1:
        prob = NAMES.read(labels, prob).view().s.astype(prob.dtype, copy=False)
        prob = np.column_stack([1 - prob, prob])
    # Scores are compared in their own precision, as in the package.
    threshold = float(prob.dtype.type(check_real("threshold", threshold, -np.inf)))
    if datapoints_per_bin is not None:
        if binning_scheme == "even":
            raise InputError("datapoints_per_bin", "goes with binning_scheme='adaptive' only")
        size = check_integer("datapoints_per_bin", datapoints_per_bin, 1, MAX_ROWS)
        num_bins = max(1, len(prob) // size)
    num_bins = check_bins("num_bins", num_bins)
    parts: list[Bins] = []
    for table in tables_of(labels, prob, max_prob, class_conditional):
        parts += convention.bins(table, num_bins, prob.dtype, threshold, (GAP, WEIGHT))
    if not parts:
        return np.float64(0.0)
    gap = np.concatenate([bins.gap for bins in parts])
    n_rows = np.concatenate([bins.total for bins in parts])
    values = (np.abs(gap / np.maximum(n_rows, 1)[:, np.newaxis]) ** power).sum(axis=1)
    n_values = prob.shape[1] if class_conditional else 1
    return np.float64((values.sum() / n_values) ** (1 / power))


def tables_of(
    labels: Any, prob: NDArray[Any], max_prob: bool, class_conditional: bool
) -> list[RowTable]:
    """List tables of the problems whose errors are averaged, without empty ones."""
    table = NAMES.read(labels, prob, "confidence" if max_prob else "classwise")
    if max_prob and class_conditional:
        predicted_class = prob.argmax(axis=1)
        return [table.where(predicted_class == k) for k in np.unique(predicted_class)]
    if max_prob or class_conditional:
        return [table]
    samples = table.samples(reads_only=True)
    scores = np.concatenate([sample.s for sample in samples])
    hits = np.concatenate([sample.y for sample in samples])
    return [one_problem(Sample(scores, hits, None, 0.0, 1.0, np.arange(scores.size)))]


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
    return gce(
        labels,
        probs,
        binning_scheme="even",
        max_prob=True,
        class_conditional=False,
        norm="l1",
        num_bins=num_bins,
    )


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
    return gce(
        labels,
        probs,
        binning_scheme="adaptive",
        max_prob=True,
        class_conditional=False,
        norm="l2",
        num_bins=num_bins,
        datapoints_per_bin=datapoints_per_bin,
    )


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
    return gce(
        labels,
        probs,
        binning_scheme="even",
        max_prob=False,
        class_conditional=True,
        norm="l1",
        num_bins=num_bins,
    )


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
    return gce(
        labels,
        probs,
        binning_scheme="adaptive",
        max_prob=False,
        class_conditional=True,
        norm="l1",
        num_bins=num_bins,
        threshold=threshold,
    )
