"""Calibration errors as single numbers."""

import math
from collections.abc import Callable
from typing import Any, Literal, Protocol, cast, overload

from fastece.calls.common import common_value
from fastece.checks.errors import InputTypeError
from fastece.checks.parameters import check_average, check_jobs
from fastece.data.reading import read_source
from fastece.estimators.table import find_estimator, with_threads
from fastece.typing import F64

Values = F64
Macro = Literal["macro"]


class Measure(Protocol):
    """A function that gives a number, or (K,) of them with ``average=None``."""

    @overload
    def __call__(
        self, y_true: Any, y_prob: Any = ..., *, average: Macro = ..., **options: Any
    ) -> float: ...
    @overload
    def __call__(
        self, y_true: Any, y_prob: Any = ..., *, average: Macro | None, **options: Any
    ) -> float | Values: ...


def measure(function: Callable[..., Any]) -> Measure:
    """Return the function itself, with the type `Measure` for type checkers."""
    return cast(Measure, function)


@measure
def ece(
    y_true: Any, y_prob: Any = None, *, estimator: Any = "ece", setting: Any = "auto",
    average: Macro | None = "macro", labels: Any = None, pos_label: Any = None,
    sample_weight: Any = None, from_logits: bool = False, n_jobs: int | None = None, **fields: Any,
) -> float | Values:  # fmt: skip
    """Compute the expected calibration error, or another one by its name.

    Parameters
    ----------
    y_true : (n,) array_like, or an Accumulator
        Class of each row: integers 0 to K - 1 (bool or whole floats too), or, with `labels` or for
        strings, any labels. An `Accumulator` stands for both arrays and has its own setting.
    y_prob : (n,) or (n, K) array_like of float
        Probability of the positive class, or of each class, in [0, 1]; logits with `from_logits`.
        Lists, numpy, pandas, polars, pyarrow, torch and whatever offers ``__array__`` or
        ``__dlpack__``. Never modified.
    estimator : str or object, default "ece"
        A name of `ESTIMATORS`, such as "ece" (equal-width bins), "ece_a" (equal-mass bins) or
        "ece_bayes", or any object with ``prepare`` and ``evaluate`` (see `fastece.protocol`).
    setting : {"auto", "binary", "confidence", "classwise"} or int, default "auto"
        The score: the probability of the positive class; the largest probability; every
        class against the rest; one class against the rest. "auto" is "binary" for (n,) and
        "confidence" for (n, K).
    average : {"macro", None}, default "macro"
        For "classwise": the mean over classes, or the K values.
    labels : sequence of K labels, optional
        Classes in the order of the columns of `y_prob`. Without it, the names of the columns if
        every label is one of them; else, of columns without names, the sorted distinct strings if
        there are K of them. A 1-d `y_prob` needs it for strings, or `pos_label`.
    pos_label : label, optional
        The class of a 1-d `y_prob`, or of column 1 of two, where labels are not 0 and 1.
    sample_weight : (n,) array_like of float, optional
        Weights, not negative. Rows of weight 0 are dropped; scaling all weights changes nothing.
    from_logits : bool, default False
        `y_prob` holds logits: sigmoid for (n,), softmax for (n, K).
    n_jobs : int, optional
        Threads; -1 for all processors. The result has the same bits for any number.
    **fields
        Replace parameters of the estimator: ``ece(y, p, estimator="ece_a", n_bins=30)``.

    Returns
    -------
    float, or (K,) float64 array with ``setting="classwise", average=None``

    Raises
    ------
    ValueError, TypeError
        For anything that cannot be read without a guess. The message names the argument, the rule,
        the first offending index and its value.

    Notes
    -----
    ``sum_b |sum_{i in b} w_i (y_i - s_i)| / sum_i w_i`` over bins b of the score s, with y = 1 for
    a hit (Guo et al. 2017, eq. 3); see `Binned` for the other estimators.

    Examples
    --------
    >>> from fastece import ece
    >>> ece([0, 0, 1, 1, 1], [0.25, 0.25, 0.55, 0.75, 0.75], n_bins=2)
    0.29
    >>> p = [[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.3, 0.3, 0.4]]
    >>> ece(["ant", "bee", "bee"], p, labels=["ant", "bee", "cow"])
    0.3
    >>> ece([0, 1, 1], p, setting="classwise", average=None).round(3)
    array([0.233, 0.367, 0.2  ])
    """
    check_average(average)
    chosen = find_estimator(estimator, fields)
    if labels is pos_label is sample_weight is n_jobs is None and from_logits is False:
        value = common_value(chosen, y_true, y_prob, setting)
        if value == value:
            return value

    def values_of(run: Any) -> tuple[bool, Values]:
        source = read_source(
            y_true, y_prob, setting=setting, labels=labels, pos_label=pos_label,
            sample_weight=sample_weight, from_logits=from_logits,
            vectors=chosen.needs_vectors, run=run,
        )  # fmt: skip
        return source.setting.per_class, chosen.point_values(source, run)

    per_class, values = with_threads(check_jobs(n_jobs), values_of)
    if average is None and per_class:
        return values
    return float(values[0] if len(values) == 1 else values.mean())


def fix(name: str, options: dict[str, Any], **values: Any) -> dict[str, Any]:
    """Add the options that define a measure; refuse other values from the caller."""
    for option, value in values.items():
        if options.get(option, value) != value:
            raise InputTypeError(
                option, f"is {value!r} in {name}", value=options[option], hint="ece takes any"
            )
    return {**options, **values}


@measure
def mce(y_true: Any, y_prob: Any = None, **options: Any) -> Any:
    """Compute the maximum calibration error: `ece` with ``norm=inf``.

    Parameters
    ----------
    y_true, y_prob, **options
        As in `ece`. ``min_count=`` leaves out bins of less weight.

    Returns
    -------
    float or (K,) float64 array
        The largest ``|D_b / W_b|`` over bins; nan if no bin has enough weight. Class-wise, the
        mean of the K values.

    Notes
    -----
    Naeini, Cooper and Hauskrecht (2015, "Obtaining well calibrated probabilities using Bayesian
    binning", section on measures).

    Examples
    --------
    >>> from fastece import mce
    >>> round(mce([0, 0, 1, 1, 1], [0.25, 0.25, 0.55, 0.75, 0.75], n_bins=2), 6)
    0.316667
    """
    return ece(y_true, y_prob, **fix("mce", options, norm=math.inf))


@measure
def sce(y_true: Any, y_prob: Any = None, **options: Any) -> Any:
    """Compute the static calibration error: `ece` class by class, uniform bins.

    Parameters
    ----------
    y_true, y_prob, **options
        As in `ece`; the setting is "classwise".

    Returns
    -------
    float or (K,) float64 array

    Notes
    -----
    Nixon et al. (2019, "Measuring calibration in deep learning", eq. 3).

    Examples
    --------
    >>> from fastece import sce
    >>> round(sce([0, 1, 1], [[0.7, 0.3], [0.2, 0.8], [0.4, 0.6]]), 6)
    0.3
    """
    return ece(y_true, y_prob, **fix("sce", options, setting="classwise", estimator="ece"))


@measure
def ace(y_true: Any, y_prob: Any = None, **options: Any) -> Any:
    """Compute the adaptive calibration error: class by class, equal-mass ranges.

    Parameters
    ----------
    y_true, y_prob, **options
        As in `ece`; the setting is "classwise", the estimator "ece_a" with
        ``bin_weights="equal"``.

    Returns
    -------
    float or (K,) float64 array

    Notes
    -----
    Nixon et al. (2019, "Measuring calibration in deep learning", eq. 4). Equal scores stay in one
    range; ranges left empty by ties count 0.

    Examples
    --------
    >>> from fastece import ace
    >>> round(ace([0, 1, 1], [[0.7, 0.3], [0.2, 0.8], [0.4, 0.6]], n_bins=3), 6)
    0.3
    """
    options = fix("ace", options, setting="classwise", estimator="ece_a", bin_weights="equal")
    return ece(y_true, y_prob, **options)


@measure
def tace(y_true: Any, y_prob: Any = None, *, threshold: float | None = 0.01, **options: Any) -> Any:
    """Compute the thresholded adaptive calibration error: `ace` of large scores.

    Parameters
    ----------
    y_true, y_prob, **options
        As in `ace`.
    threshold : float, default 0.01
        Rows of a class with a score up to this do not exist for that class; a class without any
        row counts 0.

    Returns
    -------
    float or (K,) float64 array

    Notes
    -----
    Nixon et al. (2019, "Measuring calibration in deep learning", section 4.2).

    Examples
    --------
    >>> from fastece import tace
    >>> p = [[0.995, 0.005], [0.2, 0.8], [0.4, 0.6]]
    >>> round(tace([0, 1, 1], p, n_bins=2), 6)
    0.22625
    """
    return ace(y_true, y_prob, threshold=threshold, **options)
