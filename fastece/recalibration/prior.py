"""Probabilities for another base rate, which may be estimated from predictions alone."""

from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from fastece.data import containers as arrays
from fastece.data.errors import InputError, rename_arguments
from fastece.data.scores import two_columns
from fastece.display.numbers import ConfidenceInterval
from fastece.kernels.types import F64
from fastece.recalibration.calibrator import Calibrator, Probability
from fastece.recalibration.code import Program
from fastece.recalibration.mixture import curvature, mixture_shares
from fastece.recalibration.outputs import (
    NAMES_IN_FIT,
    LabelledOutputs,
    ModelOutputs,
    read_outputs,
    scale_to_unit_sum,
)
from fastece.recalibration.scaling import softmax_of

# Twice the log likelihood that is lost at the ends of an interval of 95 %, by Wilks' theorem: a
# quantile of chi-squared with one degree of freedom.
LOST_LIKELIHOOD = NormalDist().inv_cdf(0.975) ** 2
# A base rate by which predictions are divided is at least this.
MIN_OLD_RATE = 1e-300


@dataclass(kw_only=True, eq=False)
class PriorShift(Calibrator):
    """Probabilities for another base rate than the one that a model was made for.

    The map is ``p_k new_k / old_k``, divided by its sum over the classes k. It holds where only the
    rates differ, and rows of one class are of the same kind as before.

    Parameters
    ----------
    old : float or (K,) array_like, optional
        Base rate of class 1, or of every class, that the predictions are for: the one in training.
        None: the rate of the labels y of `fit`, whose rows then have the old base rate.
    new : float or (K,) array_like, optional
        Base rate to map to. None: it is estimated from the predictions X of `fit`, without labels.
        Then `old` should be given, as the rows of `fit` cannot show another rate than their own.
    from_logits : bool, default False
        Whether predictions are log odds or logits.

    Attributes
    ----------
    old_, new_ : float, or (K,) float64 arrays
        Base rates; for two classes the one of class 1.
    new_interval_ : ConfidenceInterval
        Interval of 95 % of an estimate of `new_`, with two arrays (K,) for more than two classes;
        nan where `new` is given.
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
    chi-squared; with more than two classes, the other rates move by the curvature at the maximum.
    It takes `old` and the predictions for right: predictions that are not calibrated for the old
    base rate move the estimate by more than its interval shows.

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
    PARAMETERS = (
        Probability("old"),
        Probability("new"),
        Probability("new_low", may_be_nan=True),
        Probability("new_high", may_be_nan=True),
    )
    has_parameters_per_class = True

    old: Any = None
    new: Any = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.old is not None:
            read_old_rates(self.old)
        if self.new is not None:
            read_new_rates(self.new)

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
            Without `old` and `y`; for rates of another number of classes; as the `fit` of other
            maps does.
        """
        if self.old is None:
            if y is None:
                raise InputError("y", "is needed unless {old} is given")
            return super().fit(X, y, sample_weight)
        with rename_arguments(NAMES_IN_FIT):
            outputs = read_outputs(X, self.from_logits, "X")
            weight = arrays.as_weights(sample_weight, outputs.n_rows)
        self._fit_rates(outputs, weight, read_old_rates(self.old, outputs.n_classes))
        self.n_classes_ = outputs.n_classes
        self.classes_ = None
        return self

    def _fit(self, rows: LabelledOutputs) -> None:
        """Set the fitted attributes; the old rates are those in the labels."""
        old: Any = np.bincount(rows.label, rows.unit_weight, rows.n_classes)
        self._fit_rates(rows, rows.sample_weight, old)

    def _fit_rates(self, outputs: ModelOutputs, sample_weight: F64 | None, old: F64) -> None:
        """Set the fitted attributes, given the old rates (K,)."""
        n_classes = outputs.n_classes
        low = np.full(n_classes, np.nan)
        high = np.full(n_classes, np.nan)
        if self.new is None:
            weight = scale_to_unit_sum(sample_weight, outputs.n_rows)
            has_weight = weight > 0
            weight = weight[has_weight]
            ratio = change_rates(outputs, old, np.ones(n_classes))[has_weight]
            estimate = mixture_shares(ratio, weight)
            # Weights that sum to 1 are worth ``1 / sum w**2`` rows, by Kish's formula.
            row_weight = weight / (weight @ weight)
            for k in range(n_classes):
                low[k], high[k] = rate_interval(ratio, row_weight, estimate, k)
            new = read_new_rates(estimate, n_classes)
        else:
            new = read_new_rates(self.new, n_classes)
        self.old_ = attribute_of(old)
        self.new_ = attribute_of(new)
        self.new_low_ = attribute_of(low)
        self.new_high_ = attribute_of(high)

    def _map(self, outputs: ModelOutputs) -> NDArray[Any]:
        new = read_new_rates(self.new_)
        # Labels of `fit` may be without a class, whose old rate is then 0.
        old = read_new_rates(self.old_)
        p = change_rates(outputs, old, new)
        total = p.sum(axis=1, keepdims=True)
        impossible_rows = np.tile(new, (len(p), 1))
        return np.asarray(np.divide(p, total, out=impossible_rows, where=total > 0))

    def _check_increasing(self) -> None:
        """Accept the map, as rates are positive."""

    def _write_code(self, program: Program) -> None:
        if self.new_ in (0.0, 1.0):
            program.define(new=self.new_)
            program.value("recalibrated", "new")
            return
        program.define(ratio0=(1 - self.new_) / (1 - self.old_), ratio1=self.new_ / self.old_)
        program.add_probability()
        program.value("recalibrated", "ratio1 * p / (ratio0 * (1 - p) + ratio1 * p)")


def attribute_of(rates: F64) -> float | F64:
    """Return the rate of class 1 of two classes, or the rates (K,) of more."""
    return float(rates[1]) if rates.size == 2 else rates


def change_rates(outputs: ModelOutputs, old: F64, new: F64) -> F64:
    """Multiply class vectors (n, K) by ``new / old``, or by 0 where the old rate is 0."""
    p = softmax_of(outputs.logits()) if outputs.from_logits else outputs.values
    p = two_columns(p, from_logits=False) if p.ndim == 1 else p.astype(np.float64)
    return p * np.divide(new, old, out=np.zeros(old.size), where=old > 0)


# --- base rates -----------------------------------------------------------------------------


def read_old_rates(value: Any, n_classes: int | None = None) -> F64:
    """Check the base rates (K,) that predictions are for; none may be 0."""
    return read_rates("old", value, n_classes, min_rate=MIN_OLD_RATE, rule=", and none of them 0")


def read_new_rates(value: Any, n_classes: int | None = None) -> F64:
    """Check the base rates (K,) that predictions are mapped to."""
    return read_rates("new", value, n_classes, min_rate=0.0, rule="")


def read_rates(name: str, value: Any, n_classes: int | None, *, min_rate: float, rule: str) -> F64:
    """Check the base rate of class 1, or of every class, and return all of them (K,).

    Parameters
    ----------
    name : str
        The argument.
    value : array_like
    n_classes : int or None
        K; None for any number.
    min_rate : float
    rule : str
        Text that messages add, about `min_rate`.
    """
    rates = arrays.as_real(name, np.atleast_1d(value))
    are_numbers = rates.dtype.kind != "b"
    if rates.shape == (1,):
        rates = np.append(1.0 - rates, rates)
    is_vector = rates.ndim == 1 and n_classes in (None, rates.size)
    sums_to_one = abs(rates.sum() - 1) <= arrays.ROW_SUM_TOLERANCE
    if not (are_numbers and is_vector and (rates >= min_rate).all() and sums_to_one):
        classes = "classes" if n_classes is None else f"{n_classes} classes"
        text = f"must be the rate of class 1, or of all {classes} with the sum 1{rule}"
        raise InputError(name, text, value=value)
    return np.asarray(rates / rates.sum(), np.float64)


def rate_interval(ratio: F64, weight: F64, x: F64, k: int) -> tuple[float, float]:
    """Find the interval of 95 % of the rate of class k.

    Parameters
    ----------
    ratio : (n, K) float64 array
        Predictions divided by old rates.
    weight : (n,) float64 array
        Sums to the number of rows that the weights are worth.
    x : (K,) float64 array
        The rates of the greatest log likelihood.
    k : int

    Notes
    -----
    The interval has the rates that lose at most `LOST_LIKELIHOOD`. As the rate of class k moves,
    the other rates above 0 move with it on a straight line, by the curvature at the maximum. With
    two classes that is the profile likelihood.
    """
    from scipy.optimize import brentq

    moves = (x > 0) | (np.arange(x.size) == k)
    if moves.sum() < 2:  # All rows are of class k: any other class may take a share.
        moves = np.ones(x.size, bool)
    place_of_k = int(moves[:k].sum())
    root = ratio[:, moves] * (np.sqrt(weight) / (ratio @ x))[:, None]
    inverse = np.linalg.inv(curvature(root))
    # The direction of the smallest loss for a change of class k, along which rates sum to 0.
    change = inverse[place_of_k] - inverse.sum(0) * inverse[place_of_k].sum() / inverse.sum()
    likelihood = ratio @ x
    slope = ratio[:, moves] @ (change / change[place_of_k])

    def excess(rate: float) -> float:
        relative = 1 + (rate - x[k]) * slope / likelihood
        if relative.min() <= 0:
            return np.inf
        return -2 * float(weight @ np.log(relative)) - LOST_LIKELIHOOD

    def end_towards(bound: float) -> float:
        return bound if excess(bound) <= 0 else float(brentq(excess, x[k], bound))

    return end_towards(0.0), end_towards(1.0)
