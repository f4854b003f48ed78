"""The density-based error as a function of the bandwidth."""

from functools import singledispatch
from typing import Any

import numpy as np

from fastece.checks.arrays import as_real, refuse_where
from fastece.checks.errors import InputError, InputTypeError
from fastece.checks.parameters import check_average
from fastece.data.reading import read_source
from fastece.data.sample import Sample
from fastece.estimators.density import KDE
from fastece.estimators.table import find_estimator
from fastece.typing import F64


@singledispatch
def sweep(estimator: Any, sample: Sample, size: int, bandwidths: F64) -> F64:  # noqa: ARG001
    """Compute values (H,) of an estimator on a sorted sample, at bandwidths (H,)."""
    raise InputTypeError("estimator", "must have a bandwidth, as KDE has", value=estimator)


@sweep.register
def _(estimator: KDE, sample: Sample, size: int, bandwidths: F64) -> F64:
    return estimator.sweep(sample, size, bandwidths)


def bandwidth_sweep(
    y_true: Any, y_prob: Any = None, bandwidths: Any = (), *, estimator: Any = "ece_kde",
    setting: Any = "auto", average: Any = "macro", labels: Any = None, pos_label: Any = None,
    sample_weight: Any = None, from_logits: bool = False, **fields: Any,
) -> F64:  # fmt: skip
    """Compute the density-based error for each of some bandwidths.

    Scores are binned once for all, and with beta kernels once for those that differ by less than a
    fifth.

    Parameters
    ----------
    y_true, y_prob, setting, average, labels, pos_label, sample_weight, from_logits
        As in `fastece.ece`.
    bandwidths : (H,) array-like of float
        Standard deviations of the kernel, greater than 0.
    estimator : str or KDE, default "ece_kde"
        Its own bandwidth is not used.
    **fields
        Other parameters of the estimator to replace, such as ``kernel="beta"``.

    Returns
    -------
    (H,) float64 array, or (K, H) for the classes with ``average=None``

    Raises
    ------
    ValueError, TypeError
        As `fastece.ece`; for a bandwidth that is not positive and finite; for an estimator without
        one.

    Examples
    --------
    >>> import numpy as np
    >>> from fastece import bandwidth_sweep
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(500)
    >>> print(bandwidth_sweep(rng.random(500) < p, p, [0.01, 0.05, 0.2]).round(3))
    [0.075 0.028 0.035]
    """
    check_average(average)
    if "bandwidth" in fields:
        raise InputTypeError("bandwidth", "must not be given, as {bandwidths} has them all")
    chosen = find_estimator(estimator, fields)
    h = np.asarray(as_real("bandwidths", bandwidths), np.float64)
    if h.ndim != 1 or not h.size:
        raise InputError("bandwidths", f"must be a list of numbers, got shape {h.shape}")
    refuse_where(
        "bandwidths", "must be positive and finite", h, lambda x: ~((x > 0) & (x < np.inf))
    )
    source = read_source(
        y_true, y_prob, setting=setting, labels=labels, pos_label=pos_label,
        sample_weight=sample_weight, from_logits=from_logits,
    )  # fmt: skip
    samples = source.samples(source.needs_of(chosen))
    values = np.array([sweep(chosen, sample.sorted(), source.n, h) for sample in samples])
    # Of one problem, the mean is its own value.
    per_class = source.setting.per_class and average is None
    return values if per_class else np.asarray(values.mean(0))
