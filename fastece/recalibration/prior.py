"""Probabilities for another base rate, which may be estimated from predictions alone."""

from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from fastece.data import containers as arrays
from fastece.data.errors import InputError, rename_arguments
from fastece.data.scores import two_columns
from fastece.display.numbers import ConfidenceInterval
from fastece.kernels.types import F64
from fastece.recalibration.base import FIT, Calibrator, Parameter, Rows, read_predictions
from fastece.recalibration.scaling import map_logits

# Fitted attributes: rates, and the ends of the interval of an estimate, which may be nan.
RATES = {"old": False, "new": False, "new_low": True, "new_high": True}
# Twice the log likelihood that is lost at the ends of an interval of 95 %.
LIMIT = NormalDist().inv_cdf(0.975) ** 2
# Steps end where no rates have a log likelihood a row that is greater by more; some ten do.
GAIN, STEPS, ROUNDING = 1e-11, 100, 1e-14
# Parts of a step that are tried, and of the curvature, for where classes cannot be told apart.
SIZES, RIDGE, TINY = 0.5 ** np.arange(50), 1e-12, 1e-300


def read_rates(name: str, value: Any, n_classes: int = 0) -> F64:
    """Check base rates (K,), or that of class 1 alone; of any number of classes for 0."""
    given = arrays.as_real(name, np.atleast_1d(value))
    rates = np.append(1.0 - given, given) if given.shape == (1,) else 1.0 * given
    is_known = given.dtype.kind != "b" and rates.ndim == 1 and n_classes in (0, rates.size)
    is_known &= bool((rates >= (TINY if name == "old" else 0.0)).all())
    if not (is_known and abs(rates.sum() - 1) <= arrays.ROW_SUM_TOLERANCE):
        rule = f"must be the rate of class 1, or of all {n_classes or ''} classes with the sum 1"
        raise InputError(name, rule + ", and none of them 0" * (name == "old"), value=value)
    return np.asarray(rates / rates.sum(), np.float64)


def estimate_rates(ratio: F64, w: F64) -> F64:
    """Find the rates x (K,) of the greatest ``sum w log(ratio @ x)``; w sums to 1.

    With ``sum x`` taken off, the greatest is that of rates whose sum is 1; so each step of Newton's
    method is a problem of least squares in numbers that are not negative.
    """
    from scipy.optimize import nnls

    def loss(x: F64) -> float:
        with np.errstate(divide="ignore"):
            return float(x.sum() - w @ np.log(ratio @ x))

    x = np.full(ratio.shape[1], 1 / ratio.shape[1])
    for _ in range(STEPS):
        root = ratio * (np.sqrt(w) / (ratio @ x))[:, None]
        gradient = np.sqrt(w) @ root  # a step of EM is to x * gradient
        lower = np.linalg.cholesky(curvature(root))
        step = nnls(lower.T, np.linalg.solve(lower, 2 * gradient - 1))[0] - x
        most = loss(x) + ROUNDING
        size = next((size for size in SIZES if loss(x + size * step) <= most), 0.0)
        if gradient.max() <= 1 + GAIN or size == 0:
            break
        x = x + size * step
    return np.asarray(x / x.sum())


def curvature(root: F64) -> F64:
    """Compute the second derivatives (K, K) of a log likelihood, with the sign turned."""
    hessian = root.T @ root
    return np.asarray(hessian + RIDGE * np.trace(hessian) * np.eye(len(hessian)))


def rate_interval(ratio: F64, w: F64, x: F64, k: int) -> list[float]:
    """Find the interval of 95 % of the rate of class k; w sums to a number of rows.

    The other rates move with it as the curvature at the maximum x says, among those above 0. Of two
    classes that is the profile likelihood.
    """
    from scipy.optimize import brentq

    free = (x > 0) | (np.arange(x.size) == k)
    free |= free.sum() < 2
    root = ratio[:, free] * (np.sqrt(w) / (ratio @ x))[:, None]
    inverse, at = np.linalg.inv(curvature(root)), int(free[:k].sum())
    change = inverse[at] - inverse.sum(0) * inverse[at].sum() / inverse.sum()
    start, slope = ratio @ x, ratio[:, free] @ (change / change[at])

    def excess(rate: float) -> float:
        share = 1 + (rate - x[k]) * slope / start
        return -2 * float(w @ np.log(share)) - LIMIT if share.min() > 0 else np.inf

    return [end if excess(end) <= 0 else brentq(excess, x[k], end) for end in (0.0, 1.0)]


@dataclass(kw_only=True, eq=False)
class PriorShift(Calibrator):
    """Probabilities for another base rate than the one that a model was made for.

    The map is ``p_k new_k / old_k``, divided by its sum over the classes k. It holds where only the
    rates differ, and rows of one class are of the same kind as before.

    Parameters
    ----------
    old : float or (K,) array_like, optional
        Base rate of class 1, or of every class, that the predictions are for: the one in training.
        None: that of the labels y of `fit`, whose rows are then of the old base rate.
    new : float or (K,) array_like, optional
        Base rate to map to. None: estimated from the predictions X of `fit`, without labels: then
        `old` should be given, as rows that have it are no others.
    from_logits : bool, default False
        Whether predictions are log odds or logits.

    Attributes
    ----------
    old_, new_ : float, or (K,) float64 arrays
        Base rates, of two classes that of class 1.
    new_interval_ : ConfidenceInterval
        Of an estimate of `new_`, at 95 %, two arrays (K,) for more than two classes; nan where
        `new` is given.
    n_classes_ : int

    Raises
    ------
    ValueError, TypeError
        For rates that are not from 0 to 1 with the sum 1, or 0 before; as `fit` and `transform` do.

    Notes
    -----
    Elkan (2001, "The foundations of cost-sensitive learning", theorem 2); for more classes and the
    estimate Saerens, Latinne and Decaestecker (2002, "Adjusting the outputs of a classifier to new
    a priori probabilities", eq. 2.4). Their EM algorithm climbs to the maximum of the concave log
    likelihood ``sum_i w_i log sum_k new_k p_ik / old_k``, which is found here by Newton's method.
    The interval has the rates whose profile likelihood is not less by more than a quantile of
    chi-squared; of more than two classes the other rates move as the curvature at the maximum says.
    It takes `old` and the predictions for right: predictions that are not calibrated for the old
    base rate move the estimate by more than it tells.

    Examples
    --------
    >>> import numpy as np
    >>> from fastece.recalibration import PriorShift
    >>> PriorShift(old=0.5, new=0.1).fit([0.5]).transform([0.2, 0.5, 0.9]).round(3)
    array([0.027, 0.1  , 0.5  ])
    >>> rng = np.random.default_rng(0)
    >>> z = rng.normal(size=2000) + 2 * (rng.random(2000) < 0.1)  # a tenth is of class 1
    >>> p = 1 / (1 + np.exp(2 - 2 * z))  # right where a half is
    >>> model = PriorShift(old=0.5).fit(p)
    >>> print(f"{model.new_:.3f} ({model.new_interval_.low:.3f} to {model.new_interval_.high:.3f})")
    0.096 (0.077 to 0.117)
    """

    title = "prior shift"
    PARAMETERS = tuple(Parameter(x, "", 0.0, 1.0, may_be_nan=is_end) for x, is_end in RATES.items())

    old: Any = None
    new: Any = None

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("old", "new"):
            if getattr(self, name) is not None:
                read_rates(name, getattr(self, name))

    @property
    def new_interval_(self) -> ConfidenceInterval:
        """Interval of the estimated base rate."""
        return ConfidenceInterval(self.new_low_, self.new_high_)

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:  # noqa: N803
        """Set the base rates that are not given, the new one from predictions alone.

        Parameters
        ----------
        X : array_like (n,) or (n, K)
            Predictions where the new base rate holds: probabilities, or logits with `from_logits`.
        y : array_like (n,), optional
            Labels, whose base rate is the old one; not read if `old` is given.
        sample_weight : array_like (n,), optional
            Not negative; rows of weight 0 do not exist.

        Returns
        -------
        The object itself.

        Raises
        ------
        ValueError, TypeError
            As of other maps; without `old` and `y`; for rates of another number of classes.
        """
        if self.old is None:
            if y is None:
                raise InputError("y", "is needed unless {old} is given")
            return super().fit(X, y, sample_weight)
        with rename_arguments(FIT):
            rows = read_predictions(X, self.from_logits, "X")
            v = arrays.as_weights(sample_weight, len(rows.x))
        return self.fit_rows(replace(rows, v=v))

    def _fit(self, rows: Rows) -> None:
        w, n, new = rows.weight, rows.n_classes, self.new
        own, ends = self.old is None, np.full((n, 2), np.nan)
        old: Any = np.bincount(rows.label, w, n) if own else read_rates("old", self.old, n)
        if new is None:
            ratio, w = weighted_vectors(rows, old, np.ones(n))[w > 0], w[w > 0]
            new = estimate_rates(ratio, w)
            # The weights are worth so many rows.
            ends = np.array([rate_interval(ratio, w / (w @ w), new, k) for k in range(n)])
        values = [float(x[1]) if n == 2 else x for x in (old, read_rates("new", new, n), *ends.T)]
        self.old_, self.new_, self.new_low_, self.new_high_ = values

    def _map(self, rows: Rows) -> NDArray[Any]:
        old, new = (read_rates("new", x) for x in (self.old_, self.new_))
        p = weighted_vectors(rows, old, new)
        total = p.sum(axis=1, keepdims=True)
        return np.asarray(np.divide(p, total, out=np.tile(new, (len(p), 1)), where=total > 0))


def weighted_vectors(rows: Rows, old: F64, new: F64) -> F64:
    """Multiply class vectors (n, K) by new over old rates, by 0 where the old is 0."""
    p = map_logits(rows.logits()) if rows.from_logits else rows.x
    p = two_columns(p, from_logits=False) if p.ndim == 1 else p.astype(np.float64)
    return p * np.divide(new, old, out=np.zeros(old.size), where=old > 0)
