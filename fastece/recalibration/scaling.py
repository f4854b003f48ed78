"""Maps of all logits of a row together: temperature, vector and matrix scaling."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastece.data.errors import warn
from fastece.data.parameters import check_real
from fastece.data.scores import MAX_ENTRIES_READ, softmax
from fastece.kernels.types import F64, I64
from fastece.recalibration import regression
from fastece.recalibration.base import LARGEST, LARGEST_PARAMETER, LogitMap, Parameter, Rows

# A mean log loss this near to log K, the loss without predictions, is no better.
NO_GAIN = 1e-6
NO_TEMPERATURE = (
    "no temperature makes predictions better than none at all, so it is as good as infinite, and "
    "probabilities become 1/K"
)


def fit_temperature(z: NDArray[Any], label: I64, weight: F64) -> regression.Minimum:
    """Find ``-log T`` of the temperature of the least loss."""
    loss = regression.TemperatureLoss(z, label, weight)
    spread = float(weight @ (loss.top - z.min(axis=1)))
    if spread < regression.SMALLEST:  # any temperature will do
        return regression.Minimum(np.zeros(1), float(np.log(z.shape[1])), "")
    return regression.minimise(loss, np.array([-np.log(spread)]))


@dataclass(kw_only=True, eq=False)
class TemperatureScaling(LogitMap):
    """Temperature scaling: one parameter for all classes.

    The map is ``softmax(z / T)`` with the T of the least log loss.

    Parameters
    ----------
    clip : float, optional
        The least probability, and with one column also the least distance from 1, before z are its
        logarithms. None: for n rows to fit to, some of whose probabilities are exactly 0 or 1,
        ``1 / (2 n + 2)``, or less where another one is nearer to 0 or 1; else 2**-52.
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
    The classes of a row keep their order. Logits are not copied: each step of Newton's method is
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
    PARAMETERS = (Parameter("temperature", low=1 / LARGEST_PARAMETER),)
    keeps_argmax = True
    needs = "logits"

    def _fit(self, rows: Rows) -> None:
        z = rows.logits()
        found = fit_temperature(z, rows.label, rows.weight)
        self.temperature_ = float(np.exp(-found.theta[0]))
        if found.loss > np.log(z.shape[1]) - NO_GAIN:
            warn("X", NO_TEMPERATURE)
        elif found.warning:
            warn("X", found.warning)

    def _map(self, rows: Rows) -> NDArray[Any]:
        return map_logits(rows.logits(), 1 / self.temperature_)


def fit_classes(rows: Rows, **options: Any) -> tuple[F64, F64]:
    """Fit weights and intercepts by the least loss, starting at a temperature."""
    z, label, weight = rows.logits(), rows.label, rows.weight
    near = fit_temperature(z, label, weight)
    loss = regression.SoftmaxLoss(z, label, weight, float(np.exp(near.theta[0])), **options)
    found = regression.minimise(loss, loss.start)
    if found.warning and np.bincount(label, minlength=z.shape[1]).all():  # else it was given
        warn("X", found.warning)
    w, b = loss.parameters(found.theta)
    return w, b - b.mean()  # a constant changes nothing


def map_logits(z: NDArray[Any], inverse: float = 1.0) -> NDArray[Any]:
    """Compute the softmax of logits (n, K) times a positive number, in their dtype."""
    p = np.empty_like(z)
    step = max(1, MAX_ENTRIES_READ // z.shape[1])
    for start in range(0, len(z), step):
        part = z[start : start + step].astype(np.float64) * inverse
        p[start : start + step] = softmax(part, part.max(axis=1), z.shape[1])
    return p


@dataclass(kw_only=True, eq=False)
class VectorScaling(LogitMap):
    """Vector scaling: a weight and an intercept for each class.

    The map is ``softmax(w * z + b)`` with the least log loss.

    Parameters
    ----------
    clip, from_logits
        As for `TemperatureScaling`.

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
    needs = "logits"

    def _fit(self, rows: Rows) -> None:
        weight, self.intercept_ = fit_classes(rows, is_diagonal=True)
        self.weight_ = weight[:, 0]

    def _map(self, rows: Rows) -> NDArray[Any]:
        return map_logits(rows.logits() * self.weight_ + self.intercept_)


@dataclass(kw_only=True, eq=False)
class MatrixScaling(LogitMap):
    """Matrix scaling: a weight for every logit in every class, and intercepts.

    The map is ``softmax(W z + b)`` with the least log loss.

    Parameters
    ----------
    off_diagonal, intercept : float, default 0
        Penalties added to the mean loss: ``off_diagonal / (K (K - 1)) sum W_ij**2`` over i != j,
        and ``intercept / K sum b_j**2``.
    clip, from_logits
        As for `TemperatureScaling`.

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
    needs = "logits"

    off_diagonal: float = 0.0
    intercept: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_real("off_diagonal", self.off_diagonal, 0.0, LARGEST)
        check_real("intercept", self.intercept, 0.0, LARGEST)

    def _fit(self, rows: Rows) -> None:
        penalties = {x: float(getattr(self, x)) for x in ("off_diagonal", "intercept")}
        self.weight_, self.intercept_ = fit_classes(rows, **penalties)

    def _map(self, rows: Rows) -> NDArray[Any]:
        return map_logits(rows.logits() @ self.weight_.T + self.intercept_)
