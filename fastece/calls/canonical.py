"""Canonical calibration errors, of all classes together, as single numbers.

They may be large although the errors of the top label and of single classes are small. Both are
estimators of the table too, so `bootstrap`, `compare`, `estimate` and `calibration_test` take them.
"""

from typing import Any, Literal

from fastece.calls.scores import ece
from fastece.estimators.canonical import SKCE, DirichletKDE


def canonical_error(
    y_true: Any, y_prob: Any = None, *, bandwidth: Any = "likelihood", norm: float = 1.0,
    labels: Any = None, sample_weight: Any = None, from_logits: bool = False,
    n_jobs: int | None = None,
) -> float:  # fmt: skip
    """Compute the canonical calibration error by Dirichlet kernels on the simplex.

    Parameters
    ----------
    y_true, y_prob, labels, sample_weight, from_logits, n_jobs
        As in `ece`; a 1-d `y_prob` stands for the columns 1 - p and p. At least two rows.
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
    return ece(
        y_true, y_prob, estimator=DirichletKDE(bandwidth, norm), labels=labels,
        sample_weight=sample_weight, from_logits=from_logits, n_jobs=n_jobs,
    )  # fmt: skip


def kernel_calibration_error(
    y_true: Any, y_prob: Any, *, form: Literal["unbiased", "biased"] = "unbiased",
    kernel: Literal["exponential", "gaussian"] = "exponential", width: Any = "median",
    labels: Any = None, sample_weight: Any = None, from_logits: bool = False,
    n_jobs: int | None = None,
) -> float:  # fmt: skip
    """Compute the squared kernel calibration error (SKCE).

    Parameters
    ----------
    y_true, y_prob, labels, sample_weight, from_logits, n_jobs
        As in `ece`; a 1-d `y_prob` stands for the columns 1 - p and p.
    form : {"unbiased", "biased"}, default "unbiased"
        "unbiased" takes all pairs of two different rows; "biased" adds each row paired with itself,
        and is never negative.
    kernel : {"exponential", "gaussian"}, default "exponential"
    width : "median" or float, default "median"
        Of the kernel, in units of the distance of class vectors, at least 0; "median" is that of
        the distances among the first 1000 rows of positive weight.

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
    return ece(
        y_true, y_prob, estimator=SKCE(form, kernel, width), labels=labels,
        sample_weight=sample_weight, from_logits=from_logits, n_jobs=n_jobs,
    )  # fmt: skip
