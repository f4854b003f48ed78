"""Vector and matrix scaling that stay near temperature scaling where rows are few."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastece.data.containers import row_slices
from fastece.data.errors import InputError
from fastece.recalibration.calibrator import MAX_PARAMETER, Parameter, Probability
from fastece.recalibration.code import Program
from fastece.recalibration.losses import LinesLoss, MatrixLoss, VectorLoss
from fastece.recalibration.outputs import LabelledOutputs, ModelOutputs
from fastece.recalibration.scaling import (
    SoftmaxMap,
    find_temperature,
    matrix_penalty,
    softmax_of,
)

# Up to so many entries (n, K), logits to fit to are float64, and else of the caller's dtype: the
# rounding of so many float32 ones moves a gradient by less than 1e-8.
MAX_EXACT_ENTRIES = 2**24
# The weights of so many classes take half a minute for 10,000 rows.
MAX_MATRIX_CLASSES = 200


@dataclass(kw_only=True, eq=False)
class StructuredMap(SoftmaxMap):
    """Lines of logits after temperature scaling, with penalties that fall with n."""

    SHARED_PARAMETERS = (
        *SoftmaxMap.SHARED_PARAMETERS,
        Parameter("temperature", low=1 / MAX_PARAMETER),
        Probability("uniform"),
    )

    def _fit(self, rows: LabelledOutputs) -> None:
        logits = rows.logits()
        self.temperature_ = find_temperature(logits, rows)
        self.uniform_ = 1 / (rows.n_effective + 1)
        self._fit_lines(self._scaled(logits), rows, 1.0)

    def _map(self, outputs: ModelOutputs) -> NDArray[Any]:
        return softmax_of(self._values(self._scaled(outputs.logits())))

    def _write_code(self, program: Program) -> None:
        program.define(temperature=self.temperature_, uniform=self.uniform_)
        program.add_log_odds(self.clip_)
        program.value("scaled", "z / temperature")
        program.sigmoid("p1", "scaled")
        program.value("log_p0", "log((1 - uniform) * (1 - p1) + uniform / 2)")
        program.value("log_p1", "log((1 - uniform) * p1 + uniform / 2)")
        self._write_line(program)

    def _scaled(self, logits: NDArray[Any]) -> NDArray[Any]:
        """Compute log probabilities after temperature scaling, mixed with 1/K."""
        is_exact = logits.size <= MAX_EXACT_ENTRIES
        scaled = np.empty(logits.shape, np.float64 if is_exact else logits.dtype)
        for start, part in row_slices(logits):
            p = softmax_of(part.astype(np.float64), 1 / self.temperature_)
            mixed = (1 - self.uniform_) * p + self.uniform_ / logits.shape[1]
            scaled[start : start + len(part)] = np.log(mixed)
        return scaled


@dataclass(kw_only=True, eq=False)
class StructuredVectorScaling(StructuredMap):
    """Structured vector scaling: vector scaling near to temperature scaling.

    The map is ``softmax(w * u + b)`` of ``u = log((1 - e) softmax(z / T) + e / K)``, where T is the
    temperature of `TemperatureScaling`, and ``e = 1 / (n + 1)``. For n rows, w and b have the
    smallest sum of the mean log loss and ``K / n sum_k ((w_k - 1)**2 + b_k**2)``.

    Parameters
    ----------
    clip, from_logits
        As in `TemperatureScaling`.

    Attributes
    ----------
    weight_, intercept_ : (K,) float64 arrays
        w and b.
    temperature_ : float
    uniform_ : float
        e, the share of the uniform distribution, which keeps logarithms finite.
    clip_ : float
    n_classes_ : int

    Notes
    -----
    Berta, Holzmüller, Jordan and Bach (2026, "Structured matrix scaling for multi-class
    calibration"), with squares as penalties. For rows with weights v, n is the effective
    size ``sum(v)**2 / sum(v**2)``. The sum has one minimum, whatever the rows are: few rows change
    little more than the temperature, and many make it vector scaling.

    Examples
    --------
    >>> import numpy as np
    >>> from fastece.recalibration import StructuredVectorScaling
    >>> rng = np.random.default_rng(0)
    >>> z = rng.normal(size=(5000, 3))
    >>> y = (z + [1, 0, 0] + rng.gumbel(size=z.shape)).argmax(axis=1)
    >>> model = StructuredVectorScaling(from_logits=True).fit(z, y)
    >>> print((model.intercept_ - model.intercept_.min()).round(1))
    [1.  0.  0.2]
    """

    title = "structured vector scaling"
    PARAMETERS = Parameter("weight", "K"), Parameter("intercept", "K")

    def _write_code_of_classes(self, program: Program) -> None:
        program.define(temperature=self.temperature_, uniform=self.uniform_)
        program.define(share=self.uniform_ / self.n_classes_)
        program.add_logits(self.clip_)
        program.vector("scaled", "z[k] / temperature")
        program.softmax("q", "scaled")
        program.vector("log_q", "log((1 - uniform) * q[k] + share)")
        self._write_lines(program, "log_q")

    def _loss(self, logits: NDArray[Any], rows: LabelledOutputs, factor: float) -> LinesLoss:
        penalty = rows.n_classes / rows.n_effective
        return VectorLoss(logits, rows.label, rows.unit_weight, factor, penalty)


@dataclass(kw_only=True, eq=False)
class StructuredMatrixScaling(StructuredMap):
    """Structured matrix scaling: matrix scaling near to temperature scaling.

    The map is ``softmax(W u + b)``, with u as in `StructuredVectorScaling`. For n rows, W and b
    have the smallest sum of the mean log loss, ``K / n sum_k ((W_kk - 1)**2 + b_k**2)``, and
    ``K (K - 1) / n sum W_jk**2`` over j != k.

    Parameters
    ----------
    clip, from_logits
        As in `TemperatureScaling`.

    Attributes
    ----------
    weight_ : (K, K) float64 array
        W; its first index is the class.
    intercept_ : (K,) float64 array
        b.
    temperature_, uniform_ : float
        As in `StructuredVectorScaling`.
    clip_ : float
    n_classes_ : int

    Raises
    ------
    ValueError, TypeError
        For more than 200 classes, whose K (K + 1) numbers take minutes and more memory than the
        logits; as `fit` and `transform` do.

    Notes
    -----
    Berta, Holzmüller, Jordan and Bach (2026, "Structured matrix scaling for multi-class
    calibration"), with squares as penalties. For rows with weights v, n is the effective
    size ``sum(v)**2 / sum(v**2)``.

    Examples
    --------
    >>> import numpy as np
    >>> from fastece.recalibration import StructuredMatrixScaling
    >>> rng = np.random.default_rng(0)
    >>> z = rng.normal(size=(5000, 3))
    >>> y = (z + z[:, [1, 2, 0]] / 2 + rng.gumbel(size=z.shape)).argmax(axis=1)
    >>> StructuredMatrixScaling(from_logits=True).fit(z, y).weight_.shape
    (3, 3)
    """

    title = "structured matrix scaling"
    PARAMETERS = Parameter("weight", "KK"), Parameter("intercept", "K")

    def _loss(self, logits: NDArray[Any], rows: LabelledOutputs, factor: float) -> LinesLoss:
        k = rows.n_classes
        if k > MAX_MATRIX_CLASSES:
            rule = f"must have at most {MAX_MATRIX_CLASSES} classes for structured matrix scaling"
            raise InputError("X", rule, value=k, hint="structured vector scaling")
        per_row = k / rows.n_effective
        penalty = matrix_penalty(k, (k - 1) * per_row, per_row, per_row)
        return MatrixLoss(logits, rows.label, rows.unit_weight, factor, penalty)
