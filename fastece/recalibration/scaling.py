"""Maps of all logits of a row together: temperature, vector and matrix scaling."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastece.data.containers import refuse_where
from fastece.data.errors import warn
from fastece.data.parameters import check_real
from fastece.data.scores import MAX_ENTRIES_READ, softmax
from fastece.kernels.types import F64, I64
from fastece.recalibration.calibrator import MAX_PARAMETER, LogitMap, Parameter
from fastece.recalibration.code import Program
from fastece.recalibration.losses import (
    MIN_SCALE,
    Minimum,
    SoftmaxLoss,
    TemperatureLoss,
    minimise,
)
from fastece.recalibration.outputs import MAX_LOGIT, LabelledOutputs, ModelOutputs

# A mean log loss this near to log K, the loss of the constant prediction 1/K, is no better.
MIN_GAIN = 1e-6
# Logarithms of predictions may be so far below the clip by rounding.
LOG_ROUNDING = 1e-12
NO_TEMPERATURE = (
    "no temperature makes predictions better than none at all, so it is as good as infinite, and "
    "probabilities become 1/K"
)


def fit_temperature(logits: NDArray[Any], label: I64, weight: F64) -> Minimum:
    """Find ``-log T`` of the temperature T of the smallest log loss."""
    loss = TemperatureLoss(logits, label, weight)
    spread = float(weight @ (loss.largest - logits.min(axis=1)))
    if spread < MIN_SCALE:  # All logits of a row are equal, so any temperature will do.
        return Minimum(np.zeros(1), float(np.log(logits.shape[1])), "")
    return minimise(loss, np.array([-np.log(spread)]))


def softmax_of(logits: NDArray[Any], factor: float = 1.0) -> NDArray[Any]:
    """Compute the softmax of logits (n, K) times a positive factor, in their dtype."""
    n_rows, n_classes = logits.shape
    p = np.empty_like(logits)
    step = max(1, MAX_ENTRIES_READ // n_classes)
    for start in range(0, n_rows, step):
        rows = slice(start, start + step)
        scaled = logits[rows].astype(np.float64) * factor
        p[rows] = softmax(scaled, scaled.max(axis=1), n_classes)
    return p


@dataclass(kw_only=True, eq=False)
class TemperatureScaling(LogitMap):
    """Temperature scaling: one parameter for all classes.

    The map is ``softmax(z / T)`` with the T of the smallest log loss.

    Parameters
    ----------
    clip : float, optional
        The smallest probability, and with one column also the smallest distance from 1, before
        logarithms z are taken. None: for n rows to fit to, some of whose probabilities are exactly
        0 or 1, ``1 / (2 n + 2)``, or less where another one is nearer to 0 or 1; else 2**-52.
    from_logits : bool, default False
        Whether predictions are logits z, which are only clipped where they are -inf.

    Attributes
    ----------
    temperature_ : float
        T: above 1 for an over-confident model.
    clip_ : float
    n_classes_ : int

    Notes
    -----
    Guo, Pleiss, Sun and Weinberger (2017, "On calibration of modern neural networks", section 4.2).
    The classes of a row keep their order. Logits are not copied: each step of the search is
    one pass over them, with the loss and both derivatives.

    Examples
    --------
    >>> import numpy as np
    >>> from fastece.recalibration import TemperatureScaling
    >>> rng = np.random.default_rng(0)
    >>> z = rng.normal(size=(5000, 3))
    >>> y = (z + rng.gumbel(size=z.shape)).argmax(axis=1)
    >>> model = TemperatureScaling(from_logits=True).fit(3 * z, y)
    >>> print(f"{model.temperature_:.2f}")
    2.99
    """

    title = "temperature scaling"
    PARAMETERS = (Parameter("temperature", low=1 / MAX_PARAMETER),)
    keeps_argmax = True
    needs = "logits"

    def _fit(self, rows: LabelledOutputs) -> None:
        logits = rows.logits()
        minimum = fit_temperature(logits, rows.label, rows.unit_weight)
        self.temperature_ = float(np.exp(-minimum.theta[0]))
        if minimum.loss > np.log(rows.n_classes) - MIN_GAIN:
            warn("X", NO_TEMPERATURE)
        elif minimum.warning:
            warn("X", minimum.warning)

    def _map(self, outputs: ModelOutputs) -> NDArray[Any]:
        return softmax_of(outputs.logits(), 1 / self.temperature_)

    def _check_increasing(self) -> None:
        """Accept the map, as a temperature is positive."""

    def _invert_classes(self, outputs: ModelOutputs) -> F64:
        # A smaller score would be clipped, and a logit of -inf as well.
        lowest = -MAX_LOGIT if self.from_logits else np.log(self.clip_) - LOG_ROUNDING
        rule = "is mapped to by no predictions, as one of them would have to be below clip_"
        refuse_where("p", rule, outputs.values, lambda p: self._log_scores(p) < lowest)
        log_score = self._log_scores(outputs.values)
        return log_score if self.from_logits else np.exp(log_score)

    def _log_scores(self, p: NDArray[Any]) -> F64:
        """Compute the logarithms (n, K) of the predictions behind probabilities."""
        from scipy.special import log_softmax

        with np.errstate(divide="ignore"):
            log_p = np.log(p.astype(np.float64))
        return np.asarray(log_softmax(self.temperature_ * log_p, axis=1))

    def _write_code(self, program: Program) -> None:
        program.define(temperature=self.temperature_)
        program.add_log_odds(self.clip_)
        program.value("scaled", "z / temperature")
        program.sigmoid("recalibrated", "scaled")

    def _write_code_of_classes(self, program: Program) -> None:
        program.define(temperature=self.temperature_)
        program.add_logits(self.clip_)
        program.vector("scaled", "z[k] / temperature")
        program.softmax("recalibrated", "scaled")


@dataclass(kw_only=True, eq=False)
class SoftmaxMap(LogitMap):
    """A map that is the softmax of linear functions of logits.

    The functions are those of the smallest log loss. A subclass says which weights and intercepts
    there are, and may penalise them.
    """

    needs = "logits"

    @abstractmethod
    def _free_entries(self, n_classes: int) -> NDArray[np.bool_]:
        """Return which entries (K, K + 1) of the weights and the intercepts are fitted."""

    def _penalty(self, n_classes: int) -> F64:
        """Return the factor of the square of each entry (K, K + 1)."""
        return np.zeros((n_classes, n_classes + 1))

    @abstractmethod
    def _lines(self) -> tuple[F64, F64]:
        """Return the weights (K, K) and the intercepts (K,) of the fitted functions."""

    def _write_code(self, program: Program) -> None:
        weights, intercepts = self._lines()
        slope0, slope1 = weights[1] - weights[0]
        program.define(slope1=slope1, intercept=intercepts[1] - intercepts[0])
        if self.from_logits:  # The logit of class 0 is 0.
            program.value("line", "slope1 * z + intercept")
        else:
            program.define(slope0=slope0)
            program.add_log_probabilities(self.clip_)
            program.value("line", "slope0 * log_p0 + slope1 * log_p1 + intercept")
        program.sigmoid("recalibrated", "line")

    def _fit_lines(self, rows: LabelledOutputs) -> tuple[F64, F64]:
        """Find weights (K, K) and intercepts (K,) of the smallest loss; warn of none."""
        logits = rows.logits()
        k = rows.n_classes
        loss = SoftmaxLoss(
            logits, rows.label, rows.unit_weight, self._free_entries(k), self._penalty(k)
        )
        # The best temperature is near to the best map.
        temperature = fit_temperature(logits, rows.label, rows.unit_weight)
        minimum = minimise(loss, loss.theta_of(float(np.exp(temperature.theta[0]))))
        has_all_classes = np.bincount(rows.label, minlength=k).all()
        # Where a class has no label there is no best map, and `rows_to_fit` has warned of it.
        if minimum.warning and has_all_classes:
            warn("X", minimum.warning)
        lines = loss.for_logits(loss.lines_of(minimum.theta))
        intercepts = lines[:, -1]
        # A constant changes no probability.
        return lines[:, :-1], intercepts - intercepts.mean()


@dataclass(kw_only=True, eq=False)
class VectorScaling(SoftmaxMap):
    """Vector scaling: a weight and an intercept for each class.

    The map is ``softmax(w * z + b)`` with the smallest log loss.

    Parameters
    ----------
    clip, from_logits
        As in `TemperatureScaling`.

    Attributes
    ----------
    weight_, intercept_ : (K,) float64 arrays
        w and b.
    clip_ : float
    n_classes_ : int

    Notes
    -----
    Guo et al. (2017, section 4.2). Predictions of one column count as two: logits 0 and z, or the
    logarithms of 1 - p and p. A constant added to all intercepts changes nothing: they are chosen
    to add up to 0.

    Examples
    --------
    >>> import numpy as np
    >>> from fastece.recalibration import VectorScaling
    >>> rng = np.random.default_rng(0)
    >>> z = rng.normal(size=(5000, 3))
    >>> y = (z + [1, 0, 0] + rng.gumbel(size=z.shape)).argmax(axis=1)
    >>> model = VectorScaling(from_logits=True).fit(z, y)
    >>> print((model.intercept_ - model.intercept_.min()).round(1))
    [0.9 0.  0. ]
    """

    title = "vector scaling"
    PARAMETERS = Parameter("weight", "K"), Parameter("intercept", "K")

    def _free_entries(self, n_classes: int) -> NDArray[np.bool_]:
        return np.column_stack([np.eye(n_classes, dtype=bool), np.ones(n_classes, bool)])

    def _fit(self, rows: LabelledOutputs) -> None:
        weights, self.intercept_ = self._fit_lines(rows)
        self.weight_ = weights.diagonal().copy()

    def _map(self, outputs: ModelOutputs) -> NDArray[Any]:
        return softmax_of(outputs.logits() * self.weight_ + self.intercept_)

    def _lines(self) -> tuple[F64, F64]:
        return np.diag(self.weight_), self.intercept_

    def _write_code_of_classes(self, program: Program) -> None:
        program.define(weight=self.weight_, intercept=self.intercept_)
        program.add_logits(self.clip_)
        program.vector("line", "weight[k] * z[k] + intercept[k]")
        program.softmax("recalibrated", "line")


@dataclass(kw_only=True, eq=False)
class MatrixScaling(SoftmaxMap):
    """Matrix scaling: a weight for every logit in every class, and intercepts.

    The map is ``softmax(W z + b)`` with the smallest log loss.

    Parameters
    ----------
    off_diagonal, intercept : float, default 0
        Penalties added to the mean loss: ``off_diagonal / (K (K - 1)) sum W_ij**2`` over i != j,
        and ``intercept / K sum b_j**2``.
    clip, from_logits
        As in `TemperatureScaling`.

    Attributes
    ----------
    weight_ : (K, K) float64 array
        W; its first index is the class.
    intercept_ : (K,) float64 array
        b.
    clip_ : float
    n_classes_ : int

    Raises
    ------
    ValueError, TypeError
        For a penalty below 0; as `fit` and `transform` do.

    Notes
    -----
    Guo et al. (2017, section 4.2). With penalties it is the matrix scaling with off-diagonal and
    intercept regularisation of Kull et al. (2019, "Beyond temperature scaling", section 3), on the
    logarithms of probabilities their Dirichlet calibration. It has K (K + 1) parameters: without
    penalties it overfits few rows.

    Examples
    --------
    >>> import numpy as np
    >>> from fastece.recalibration import MatrixScaling
    >>> rng = np.random.default_rng(0)
    >>> z = rng.normal(size=(5000, 3))
    >>> y = (z + rng.gumbel(size=z.shape)).argmax(axis=1)
    >>> MatrixScaling(from_logits=True, off_diagonal=1.0).fit(z, y).weight_.shape
    (3, 3)
    """

    title = "matrix scaling"
    PARAMETERS = Parameter("weight", "KK"), Parameter("intercept", "K")

    off_diagonal: float = 0.0
    intercept: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_real("off_diagonal", self.off_diagonal, 0.0, MAX_LOGIT)
        check_real("intercept", self.intercept, 0.0, MAX_LOGIT)

    def _free_entries(self, n_classes: int) -> NDArray[np.bool_]:
        return np.ones((n_classes, n_classes + 1), bool)

    def _penalty(self, n_classes: int) -> F64:
        weights = self.off_diagonal / (n_classes * (n_classes - 1)) * (1 - np.eye(n_classes))
        return np.column_stack([weights, np.full(n_classes, self.intercept / n_classes)])

    def _fit(self, rows: LabelledOutputs) -> None:
        self.weight_, self.intercept_ = self._fit_lines(rows)

    def _map(self, outputs: ModelOutputs) -> NDArray[Any]:
        return softmax_of(outputs.logits() @ self.weight_.T + self.intercept_)

    def _lines(self) -> tuple[F64, F64]:
        return self.weight_, self.intercept_
