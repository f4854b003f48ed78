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
    LinesLoss,
    MatrixLoss,
    Minimum,
    TemperatureLoss,
    VectorLoss,
    minimise,
)
from fastece.recalibration.outputs import MAX_LOGIT, LabelledOutputs, ModelOutputs

# A mean log loss this near to log K, the loss of the constant prediction 1/K, is no better.
MIN_GAIN = 1e-6
# Logarithms of predictions may be so far below the clip by rounding.
LOG_ROUNDING = 1e-12
NO_TEMPERATURE = (
    "no temperature makes predictions better than none at all, so it is as good as infinite, and "
    "predictions no longer play a part"
)


def fit_temperature(logits: NDArray[Any], label: I64, weight: F64) -> Minimum:
    """Find ``-log T`` of the temperature T of the smallest log loss."""
    loss = TemperatureLoss(logits, label, weight)
    loss_of_none = float(np.log(logits.shape[1]))
    spread = float(weight @ (loss.largest - logits.min(axis=1)))
    if spread < MIN_SCALE:  # All logits of a row are equal, so any temperature will do.
        return Minimum(np.zeros(1), loss_of_none, NO_TEMPERATURE)
    minimum = minimise(loss, np.array([-np.log(spread)]))
    if minimum.loss > loss_of_none - MIN_GAIN:
        return minimum._replace(warning=NO_TEMPERATURE)
    return minimum


def find_temperature(logits: NDArray[Any], rows: LabelledOutputs) -> float:
    """Find the temperature of the smallest log loss; warn where there is none."""
    minimum = fit_temperature(logits, rows.label, rows.unit_weight)
    if minimum.warning:
        warn("X", minimum.warning)
    return float(np.exp(-minimum.theta[0]))


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
        self.temperature_ = find_temperature(rows.logits(), rows)

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
    """A map that is the softmax of the linear functions with the smallest log loss.

    A subclass writes `_loss`, and names the weights and the intercepts in `PARAMETERS`.
    """

    needs = "logits"

    @abstractmethod
    def _loss(self, logits: NDArray[Any], rows: LabelledOutputs, factor: float) -> LinesLoss:
        """Return the loss of lines, whose search begins at the logits times a factor."""

    def _fit(self, rows: LabelledOutputs) -> None:
        logits = rows.logits()
        # The best temperature is near to the best map.
        temperature = fit_temperature(logits, rows.label, rows.unit_weight)
        self._fit_lines(logits, rows, float(np.exp(temperature.theta[0])))

    def _fit_lines(self, logits: NDArray[Any], rows: LabelledOutputs, factor: float) -> None:
        """Find the lines of the smallest loss; warn where there are none."""
        loss = self._loss(logits, rows, factor)
        minimum = minimise(loss, loss.start)
        has_all_classes = np.bincount(rows.label, minlength=rows.n_classes).all()
        # Where a class has no label there is no best map, and `rows_to_fit` has warned of it.
        if minimum.warning and has_all_classes:
            warn("X", minimum.warning)
        self.weight_, intercept = loss.lines_at(minimum.theta)
        # A constant changes no probability.
        self.intercept_ = intercept - intercept.mean()

    def _map(self, outputs: ModelOutputs) -> NDArray[Any]:
        return softmax_of(self._values(outputs.logits()))

    def _values(self, logits: NDArray[Any]) -> NDArray[Any]:
        """Compute the values (n, K) of lines of one logit each, or of all."""
        weighted = logits * self.weight_ if self.weight_.ndim == 1 else logits @ self.weight_.T
        return np.asarray(weighted + self.intercept_)

    def _write_code(self, program: Program) -> None:
        if self.from_logits:  # A constant in both logits would change the lines.
            program.value("log_p0", "0")
            program.value("log_p1", "z")
        else:
            program.add_log_probabilities(self.clip_)
        self._write_line(program)

    def _write_line(self, program: Program) -> None:
        """Write the difference of both lines of log_p0 and log_p1, and its sigmoid."""
        weight = np.diag(self.weight_) if self.weight_.ndim == 1 else self.weight_
        slope0, slope1 = weight[1] - weight[0]
        intercept0, intercept1 = self.intercept_
        program.define(slope0=slope0, slope1=slope1, intercept=intercept1 - intercept0)
        program.value("line", "slope0 * log_p0 + slope1 * log_p1 + intercept")
        program.sigmoid("recalibrated", "line")

    def _write_lines(self, program: Program, logits: str) -> None:
        """Write the softmax of lines of one logit each, from the name of their vector."""
        program.define(weight=self.weight_, intercept=self.intercept_)
        program.vector("line", f"weight[k] * {logits}[k] + intercept[k]")
        program.softmax("recalibrated", "line")


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

    def _loss(self, logits: NDArray[Any], rows: LabelledOutputs, factor: float) -> LinesLoss:
        return VectorLoss(logits, rows.label, rows.unit_weight, factor, penalty=0.0)

    def _write_code_of_classes(self, program: Program) -> None:
        program.add_logits(self.clip_)
        self._write_lines(program, "z")


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

    def _loss(self, logits: NDArray[Any], rows: LabelledOutputs, factor: float) -> LinesLoss:
        k = rows.n_classes
        penalty = matrix_penalty(k, self.off_diagonal / (k * (k - 1)), 0.0, self.intercept / k)
        return MatrixLoss(logits, rows.label, rows.unit_weight, factor, penalty)


def matrix_penalty(n_classes: int, off_diagonal: float, diagonal: float, intercept: float) -> F64:
    """Arrange the factors of penalties (K, K + 1) as the entries of lines."""
    weights = np.full((n_classes, n_classes), off_diagonal)
    np.fill_diagonal(weights, diagonal)
    return np.column_stack([weights, np.full(n_classes, intercept)])
