"""Calibration errors, proper scores and canonical errors as single numbers.

`ece` reads the data and asks an estimator for its value; every other function is `ece` with some
options fixed. A new measure is therefore an estimator of `fastece.estimators.table`, which
`bootstrap` and `compare` take as well, and perhaps a function of its own here.

A model that always predicts the base rate is calibrated and useless: proper scores, accuracy,
sharpness and entropy measure how informative a model is. Canonical errors, of all classes together,
may be large although the errors of the top label and of single classes are small.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any, Literal, Protocol, TypedDict, Unpack, cast, overload

import numpy as np

from fastece.data.errors import InputTypeError
from fastece.data.options import (
    GROUPED_NAMES,
    check_names,
    shows_options,
    split_options,
)
from fastece.data.parameters import check_average, check_jobs
from fastece.data.reading import read_table
from fastece.data.table import RowTable
from fastece.data.threads import Map, with_threads
from fastece.estimators.base import values_of_problems
from fastece.estimators.canonical import SKCE, DirichletKDE
from fastece.estimators.parts import values_of_parts
from fastece.estimators.plain import plain_value
from fastece.estimators.table import (
    GroupedEstimatorKeywords,
    RowGroupedEstimatorKeywords,
    find_estimator,
)
from fastece.kernels.types import F64

Values = F64
Macro = Literal["macro"]


class VectorKeywords(TypedDict, total=False):
    """Options of reading for errors of whole class vectors with hard labels."""

    labels: Any
    sample_weight: Any
    counts: Any
    from_logits: bool
    percent: bool
    ignore_label: Any
    class_axis: int | None


class Measure(Protocol):
    """A function that gives a number, or (K,) of them with ``average=None``."""

    @overload
    def __call__(
        self, y_true: Any, y_prob: Any = ..., *, average: Macro = ..., estimator: Any = ...,
        n_jobs: int | None = ..., **options: Unpack[GroupedEstimatorKeywords],
    ) -> float: ...  # fmt: skip
    @overload
    def __call__(
        self, y_true: Any, y_prob: Any = ..., *, average: Macro | None, estimator: Any = ...,
        n_jobs: int | None = ..., **options: Unpack[GroupedEstimatorKeywords],
    ) -> float | Values: ...  # fmt: skip


def measure(function: Callable[..., Any]) -> Measure:
    """Show the options in the signature, and the type `Measure` to type checkers."""
    return cast(Measure, shows_options(function))


@measure
def ece(
    y_true: Any, y_prob: Any = None, *, estimator: Any = "ece", average: Macro | None = "macro",
    n_jobs: int | None = None, **options: Unpack[GroupedEstimatorKeywords],
) -> float | Values:  # fmt: skip
    """Compute the expected calibration error (ECE), or another error by its name.

    The ECE is the average gap between predicted probabilities and observed frequencies: rows are
    put into bins by their predicted probability, and the size of the gap of each bin counts by its
    share of the rows.

    Parameters
    ----------
    y_true : (n,) array_like, or Predictions or an Accumulator
        True class of each row: integers 0 to K - 1 (bools and whole floats too), or, with `labels`
        or for strings, any labels. `Predictions`, which were read before, stand for both arrays,
        and so does an `Accumulator`, which has a setting of its own.
    y_prob : (n,) or (n, K) array_like of float
        Predicted probability of the positive class, or of each class, in [0, 1]; logits with
        `from_logits`. Lists, numpy, pandas, polars, pyarrow, torch, and any object with
        ``__array__`` or ``__dlpack__``. Never modified.
    estimator : str or object, default "ece"
        Name of an estimator in the list below, such as "ece" (equal-width bins), "ece_a"
        (equal-mass bins) or "ece_bayes"; or any object with ``prepare`` and ``evaluate``
        (see `fastece.estimators.protocol`).
    average : {"macro", None}, default "macro"
        With "classwise", "tasks" and "top-label": the mean over the problems, or a value of each.
    n_jobs : int, optional
        Number of threads; -1 for all processors. The result has the same bits for any number.
    setting : {"auto", "binary", "confidence", "classwise", "top-label", "tasks"} or int
        Which probability is compared with which outcome.
    labels : sequence of K labels, optional
        The classes in the order of the columns of `y_prob`.
    pos_label : label, optional
        The class of a 1-d `y_prob`, or of column 1 of two, where labels are not 0 and 1.
    sample_weight : (n,) array_like of float, optional
        Weights, not negative; only their proportions matter.
    counts : (n,) array_like of int, optional
        How many independent rows each row stands for; `y_true` may hold numbers of events.
    from_logits : bool, default False
        Whether `y_prob` holds logits.
    soft : bool, default False
        Whether `y_true` holds shares in [0, 1].
    votes : (n,) array_like of int, optional
        Number of votes for each row, of which `y_true` counts some.
    percent : bool, default False
        Whether `y_prob` holds percents.
    ignore_label : label, optional
        A label whose rows are left out; nan for missing labels.
    class_axis : int, optional
        The axis of `y_prob` that holds the classes; all other axes are rows.
    by : (n,) array_like, or dict or frame of them, optional
        Groups of rows, each with a value of its own.
    **options
        Other values for parameters of the estimator: ``ece(y, p, estimator="ece_a", n_bins=30)``.
        Every function takes the options from `setting` to `class_axis`, which
        ``docs/reference/input.md`` explains one by one, unless it says otherwise.

    Returns
    -------
    float, or (K,) float64 array with ``setting="classwise", average=None``
        0 is best; at most 1 for calibration errors over bins. With `by`: (G,), or (G, K), for the
        groups in the order of their labels.

    Raises
    ------
    ValueError, TypeError
        For anything that cannot be read without a guess. The message names the argument, the rule,
        the first offending index and its value.

    Notes
    -----
    ``sum_b |sum_{i in b} w_i (y_i - s_i)| / sum_i w_i`` over bins b of the score s, with outcomes
    y of 0 and 1 and weights w (Guo et al. 2017, "On calibration of modern neural networks", eq. 3).

    The estimators by name, with the parameters that they have:

    - "ece", Binned(n_bins=15): equal-width bins
    - "ece_a", Binned(n_bins=15, edges='quantile'): equal-mass bins
    - "ece_c", Binned(n_bins=15, mapping='convex'): rows shared by the two nearest bins
    - "ece_ac", Binned(n_bins=15, edges='quantile', mapping='convex'): both of these
    - "ece_kde", KDE(bandwidth='silverman'): kernel densities in place of bins
    - "ece_bayes", BayesCurve(): posterior mean of a Bayesian calibration curve
    - "ece_debiased", Binned(n_bins=15, debias=True): without the gaps that chance makes
    - "ece_sweep", Sweep(norm=1.0): as many equal-mass bins as have nondecreasing hit rates
    - "smooth_ece", SmoothECE(scale='auto'): gaps averaged over nearby scores by a kernel
    - "mmce", MMCE(width=0.4): maximum mean calibration error
    - "ecce_r", CumulativeError(statistic='range'): range of the cumulated gaps
    - "ecce_mad", CumulativeError(statistic='max'): largest size of the cumulated gaps
    - "canonical", DirichletKDE(bandwidth='likelihood'): error of whole class vectors
    - "skce", SKCE(form='unbiased'): squared kernel calibration error of whole class vectors
    - "brier_score", BrierScore(): mean squared distance from the outcomes
    - "ranked_probability_score", RankedProbabilityScore(): the same of classes with an order
    - "log_loss", LogLoss(clip=None): mean negative log probability of the true label
    - "accuracy", Accuracy(): share of rows whose most probable label is right
    - "sharpness", Sharpness(): variance of the score
    - "entropy", Entropy(): mean entropy of the probabilities

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
    >>> ece([0, 1, 1, 0], [0.2, 0.6, 0.9, 0.5], by=["b", "a", "b", "a"])
    array([0.45, 0.15])
    """
    check_average(average)
    jobs = check_jobs(n_jobs)
    reading, fields = split_options(options, GROUPED_NAMES)
    chosen = find_estimator(estimator, fields, GROUPED_NAMES)
    if jobs == 1 and average is not None and reading.are_default:
        value = plain_value(y_true, y_prob, chosen, reading.setting)
        if value == value:  # not nan
            return value

    def values_of(run: Map) -> tuple[RowTable, Values]:
        table = read_table(
            y_true, y_prob, reading, vectors=chosen.needs_vectors, takes_parts=True, run=run
        )  # fmt: skip
        if table.by is not None:
            per_class = average is None and table.setting.per_class
            return table, values_of_parts(chosen, table, per_class, run)
        return table, values_of_problems(chosen, table, run)

    table, values = with_threads(jobs, values_of)
    if table.by is not None or (average is None and table.setting.per_class):
        return values
    # A single value is not averaged, which would take 3 us.
    return float(values[0] if len(values) == 1 else table.average(values))


def fix(name: str, options: Mapping[str, Any], **values: Any) -> dict[str, Any]:
    """Add the options that define a measure; refuse other values from the caller."""
    for option, value in values.items():
        of_caller = options.get(option, value)
        if isinstance(of_caller, np.ndarray) or of_caller != value:
            rule = f"is {value!r} in {name}"
            raise InputTypeError(option, rule, value=of_caller, hint="ece takes any")
    return {**options, **values}


@measure
def mce(y_true: Any, y_prob: Any = None, **options: Unpack[GroupedEstimatorKeywords]) -> Any:
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
def sce(y_true: Any, y_prob: Any = None, **options: Unpack[RowGroupedEstimatorKeywords]) -> Any:
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
def ace(y_true: Any, y_prob: Any = None, **options: Unpack[RowGroupedEstimatorKeywords]) -> Any:
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
    fixed = fix("ace", options, setting="classwise", estimator="ece_a", bin_weights="equal")
    return ece(y_true, y_prob, **fixed)


@measure
def tace(  # type: ignore[misc]  # the threshold is also among the keywords
    y_true: Any, y_prob: Any = None, *, threshold: float | None = 0.01,
    **options: Unpack[RowGroupedEstimatorKeywords],
) -> Any:  # fmt: skip
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


@measure
def brier_score(
    y_true: Any, y_prob: Any = None, **options: Unpack[GroupedEstimatorKeywords]
) -> Any:
    """Compute the Brier score: the mean squared error of the probabilities.

    Parameters
    ----------
    y_true, y_prob, **options
        As in `ece`, but no estimator.

    Returns
    -------
    float, or (K,) float64 array with ``setting="classwise", average=None``
        0 is best. Up to 1 for a binary problem, up to 2 for class vectors.

    Notes
    -----
    ``sum_i w_i (s_i - y_i)^2 / W`` for a binary problem. For class vectors, as long as the setting
    is "auto", it is the sum over the classes: ``sum_i w_i sum_k (p_ik - [k = y_i])^2 / W``
    (Brier 1950, "Verification of forecasts expressed in terms of probability", eq. 2). Another
    setting picks binary problems.

    Examples
    --------
    >>> from fastece import brier_score
    >>> round(brier_score([0, 1, 1], [0.1, 0.6, 0.9]), 6)
    0.06
    >>> round(brier_score([0, 1], [[0.8, 0.1, 0.1], [0.3, 0.6, 0.1]]), 6)
    0.16
    """
    return ece(y_true, y_prob, **fix("brier_score", options, estimator="brier_score"))


@measure
def ranked_probability_score(
    y_true: Any, y_prob: Any = None, **options: Unpack[GroupedEstimatorKeywords]
) -> Any:
    """Compute the ranked probability score of classes whose order has a meaning.

    Parameters
    ----------
    y_true, y_prob, **options
        As in `ece`, but no estimator. Columns, and `labels`, go from the lowest class to the
        highest.

    Returns
    -------
    float, or (K,) float64 array with ``setting="classwise", average=None``
        0 is best, and the number of classes minus 1 is worst.

    Notes
    -----
    ``sum_i w_i sum_k (P_ik - [y_i <= k])^2 / sum_i w_i`` with the probability P_ik of the classes
    up to k (Epstein 1969, "A scoring system for probability forecasts of ranked categories"; Murphy
    1971, "A note on the ranked probability score", eq. 1). Some divide it by K - 1. For
    probabilities of one class it is the Brier score.

    Examples
    --------
    >>> from fastece import ranked_probability_score
    >>> round(ranked_probability_score([2], [[0.2, 0.5, 0.3]]), 6)
    0.53
    >>> round(ranked_probability_score([2], [[0.5, 0.2, 0.3]]), 6)
    0.74
    """
    fixed = fix("ranked_probability_score", options, estimator="ranked_probability_score")
    return ece(y_true, y_prob, **fixed)


@measure
def log_loss(  # type: ignore[misc]  # the limit is also among the keywords
    y_true: Any, y_prob: Any = None, *, clip: float | None = None,
    **options: Unpack[GroupedEstimatorKeywords],
) -> Any:  # fmt: skip
    """Compute the log loss: the mean of -log P of the observed outcome.

    Parameters
    ----------
    y_true, y_prob, **options
        As in `ece`, but no estimator.
    clip : float, optional
        Limits probabilities to ``[clip, 1 - clip]``. Without it, a single row whose observed
        outcome had probability 0 makes the loss infinite.

    Returns
    -------
    float, or (K,) float64 array with ``setting="classwise", average=None``
        In nats; 0 is best.

    Raises
    ------
    ValueError, TypeError
        As in `ece`; for a `clip` that is not from above 0 to 1/2.

    Notes
    -----
    ``-sum_i w_i log P_i / W`` with the probability P of the true class of class vectors, or of hit
    or miss of a binary problem (Good 1952, "Rational decisions").

    Examples
    --------
    >>> from fastece import log_loss
    >>> round(log_loss([0, 1, 1], [0.1, 0.6, 0.9]), 6)
    0.240516
    >>> log_loss([0, 1], [[0.8, 0.1, 0.1], [1.0, 0.0, 0.0]])
    inf
    """
    return ece(y_true, y_prob, **fix("log_loss", options, estimator="log_loss"), clip=clip)


@measure
def accuracy(y_true: Any, y_prob: Any = None, **options: Unpack[GroupedEstimatorKeywords]) -> Any:
    """Compute the accuracy: the share of rows whose most probable label is right.

    Parameters
    ----------
    y_true, y_prob, **options
        As in `ece`, but no estimator.

    Returns
    -------
    float, or (K,) float64 array with ``setting="classwise", average=None``
        1 is best.

    Notes
    -----
    The largest probability of a class vector predicts its class, the first of equal ones. In a
    binary problem a hit is predicted where the score is greater than 1/2.

    Examples
    --------
    >>> from fastece import accuracy
    >>> accuracy([0, 1, 1, 1], [0.1, 0.6, 0.9, 0.4])
    0.75
    >>> accuracy([0, 1], [[0.8, 0.1, 0.1], [0.5, 0.4, 0.1]])
    0.5
    """
    return ece(y_true, y_prob, **fix("accuracy", options, estimator="accuracy"))


@measure
def sharpness(y_true: Any, y_prob: Any = None, **options: Unpack[GroupedEstimatorKeywords]) -> Any:
    """Compute the sharpness: the variance of the score.

    Parameters
    ----------
    y_true, y_prob, **options
        As in `ece`, but no estimator. Labels are checked, though the value is the same for any.

    Returns
    -------
    float, or (K,) float64 array with ``setting="classwise", average=None``
        From 0 to 1/4.

    Notes
    -----
    ``sum_i w_i (s_i - m)^2 / W`` with the weighted mean m of the scores; of class vectors these
    are the largest probabilities. The sharper one of two calibrated models has the better Brier
    score (Gneiting, Balabdaoui and Raftery 2007, "Probabilistic forecasts, calibration and
    sharpness").

    Examples
    --------
    >>> from fastece import sharpness
    >>> round(sharpness([0, 1, 1], [0.1, 0.6, 0.8]), 6)
    0.086667
    """
    return ece(y_true, y_prob, **fix("sharpness", options, estimator="sharpness"))


@measure
def entropy(y_true: Any, y_prob: Any = None, **options: Unpack[GroupedEstimatorKeywords]) -> Any:
    """Compute the mean entropy of the predicted probabilities.

    Parameters
    ----------
    y_true, y_prob, **options
        As in `ece`, but no estimator. Labels are checked, though the value is the same for any.

    Returns
    -------
    float, or (K,) float64 array with ``setting="classwise", average=None``
        In nats, from 0, where every row is certain, to the logarithm of the number of classes.

    Notes
    -----
    ``-sum_i w_i sum_k p_ik log p_ik / W`` over the classes of class vectors, or over s and 1 - s of
    a binary problem (Shannon 1948, "A mathematical theory of communication", section 6). For a
    calibrated model it is the expectation of `log_loss`.

    Examples
    --------
    >>> from fastece import entropy
    >>> round(entropy([0, 1], [[0.5, 0.5, 0.0], [0.0, 1.0, 0.0]]), 6)
    0.346574
    """
    return ece(y_true, y_prob, **fix("entropy", options, estimator="entropy"))


@shows_options
def canonical_error(
    y_true: Any, y_prob: Any = None, *, bandwidth: Any = "likelihood", norm: float = 1.0,
    n_jobs: int | None = None, **options: Unpack[VectorKeywords],
) -> float:  # fmt: skip
    """Compute the canonical calibration error by Dirichlet kernels on the simplex.

    Parameters
    ----------
    y_true, y_prob, n_jobs, **options
        As in `ece`, without `setting`, `pos_label`, `soft`, `votes` and `by`; a 1-d `y_prob` stands
        for the columns 1 - p and p. At least two rows.
    bandwidth : "likelihood" or float, default "likelihood"
        About the variance of the kernel, greater than 0; by default one of ten, by the
        leave-one-out likelihood of the predictions.
    norm : {1, 2}, default 1

    Returns
    -------
    float
        0 is best; at most 2.

    Raises
    ------
    ValueError, TypeError
        As in `ece`; for a bandwidth that is not positive, another norm, and fewer than two rows.

    Notes
    -----
    ``sum_j w_j sum_k |r_jk - p_jk|**norm / W`` with the shares r_j of classes among the other rows,
    weighted by how near they are; no root is taken. See `DirichletKDE`. Popordanoska, Sayer and
    Blaschko (2022, "A consistent and differentiable Lp canonical calibration error estimator").
    Even a calibrated model has more than 0, as the shares are of few rows: `calibration_test` gives
    the value to expect.

    Examples
    --------
    >>> from fastece import canonical_error
    >>> p = [[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.3, 0.3, 0.4]]
    >>> round(canonical_error([0, 1, 1], p, bandwidth=0.1), 6)
    0.992933
    """
    check_names(options, VectorKeywords)
    estimator = DirichletKDE(bandwidth, norm)
    return ece(y_true, y_prob, estimator=estimator, n_jobs=n_jobs, **options)


@shows_options
def kernel_calibration_error(
    y_true: Any, y_prob: Any = None, *, form: Literal["unbiased", "biased"] = "unbiased",
    kernel: Literal["exponential", "gaussian"] = "exponential", width: Any = "median",
    n_jobs: int | None = None, **options: Unpack[VectorKeywords],
) -> float:  # fmt: skip
    """Compute the squared kernel calibration error (SKCE).

    Parameters
    ----------
    y_true, y_prob, n_jobs, **options
        As in `ece`, without `setting`, `pos_label`, `soft`, `votes` and `by`; a 1-d `y_prob` stands
        for the columns 1 - p and p.
    form : {"unbiased", "biased"}, default "unbiased"
        "unbiased" takes all pairs of two different rows; "biased" adds each row paired with itself,
        and is never negative.
    kernel : {"exponential", "gaussian"}, default "exponential"
    width : "median" or float, default "median"
        Width of the kernel in units of the distance of class vectors, at least 0; "median" is the
        median of the distances among the first 1000 rows of positive weight.

    Returns
    -------
    float
        0 is best, and the mean of "unbiased" for a calibrated model.

    Raises
    ------
    ValueError, TypeError
        As in `ece`; for another parameter; for fewer rows than two.

    Notes
    -----
    The mean of ``k(p_i, p_j) (e_(y_i) - p_i) . (e_(y_j) - p_j)`` over pairs of rows. See `SKCE`.
    Widmann, Lindsten and Zachariah (2019, "Calibration tests in multi-class classification: a
    unifying framework").

    Examples
    --------
    >>> from fastece import kernel_calibration_error
    >>> p = [[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.3, 0.3, 0.4]]
    >>> round(kernel_calibration_error([0, 1, 1], p, width=0.5), 6)
    -0.006105
    """
    check_names(options, VectorKeywords)
    estimator = SKCE(form, kernel, width)
    return ece(y_true, y_prob, estimator=estimator, n_jobs=n_jobs, **options)
