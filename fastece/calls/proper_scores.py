"""Proper scores, accuracy, sharpness and entropy as single numbers.

A model that always predicts the base rate is calibrated and useless: these numbers measure how
informative a model is. Each is an estimator of the table too (`fastece.estimators.losses`), so
`bootstrap` and `compare` take it.
"""

from typing import Any

from fastece.calls.scores import ece, fix, measure


@measure
def brier_score(y_true: Any, y_prob: Any = None, **options: Any) -> Any:
    """Compute the Brier score: the mean squared error of the probabilities.

    Parameters
    ----------
    y_true, y_prob, **options
        As in `ece`, but no estimator.

    Returns
    -------
    float, or (K,) float64 array with ``setting="classwise", average=None``
        0 is best. Up to 1 for a binary problem, up to 2 for class vectors.

    Raises
    ------
    ValueError, TypeError
        As in `ece`.

    Notes
    -----
    ``sum_i w_i (s_i - y_i)^2 / W`` of a binary problem. Of class vectors, as long as the setting
    is "auto", the sum over the classes: ``sum_i w_i sum_k (p_ik - [k = y_i])^2 / W`` (Brier 1950,
    "Verification of forecasts expressed in terms of probability", eq. 2); another setting picks
    binary problems.

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
def log_loss(y_true: Any, y_prob: Any = None, *, clip: float | None = None, **options: Any) -> Any:
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
def accuracy(y_true: Any, y_prob: Any = None, **options: Any) -> Any:
    """Compute the accuracy: the share of rows whose most probable label is right.

    Parameters
    ----------
    y_true, y_prob, **options
        As in `ece`, but no estimator.

    Returns
    -------
    float, or (K,) float64 array with ``setting="classwise", average=None``
        1 is best.

    Raises
    ------
    ValueError, TypeError
        As in `ece`.

    Notes
    -----
    Of class vectors the largest probability predicts, the first of equal ones; of a binary problem
    a hit is predicted where the score is greater than 1/2.

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
def sharpness(y_true: Any, y_prob: Any = None, **options: Any) -> Any:
    """Compute the sharpness: the variance of the score.

    Parameters
    ----------
    y_true, y_prob, **options
        As in `ece`, but no estimator. Labels are checked, though the value is the same for any.

    Returns
    -------
    float, or (K,) float64 array with ``setting="classwise", average=None``
        From 0 to 1/4.

    Raises
    ------
    ValueError, TypeError
        As in `ece`.

    Notes
    -----
    ``sum_i w_i (s_i - m)^2 / W`` with the weighted mean m of the scores; of class vectors these
    are the largest probabilities. Of two calibrated models the sharper one has the better Brier
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
def entropy(y_true: Any, y_prob: Any = None, **options: Any) -> Any:
    """Compute the mean entropy of the predicted probabilities.

    Parameters
    ----------
    y_true, y_prob, **options
        As in `ece`, but no estimator. Labels are checked, though the value is the same for any.

    Returns
    -------
    float, or (K,) float64 array with ``setting="classwise", average=None``
        In nats, from 0, where every row is certain, to the logarithm of the number of classes.

    Raises
    ------
    ValueError, TypeError
        As in `ece`.

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
