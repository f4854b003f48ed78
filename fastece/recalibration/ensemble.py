"""Ensemble temperature scaling: a mixture of predictions before and after temperature scaling."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastece.data.containers import row_slices
from fastece.data.errors import InputError
from fastece.kernels.types import F64, I64
from fastece.recalibration.calibrator import MAX_PARAMETER, LogitMap, Parameter, Probability
from fastece.recalibration.code import Program
from fastece.recalibration.mixture import mixture_shares
from fastece.recalibration.outputs import LabelledOutputs, ModelOutputs
from fastece.recalibration.scaling import find_temperature, softmax_of


@dataclass(kw_only=True, eq=False)
class EnsembleTemperatureScaling(LogitMap):
    """Ensemble temperature scaling: a mixture with no map, and with 1/K.

    The map is ``scaled softmax(z / T) + unscaled softmax(z) + uniform / K``, where T is the
    temperature of `TemperatureScaling`, and the three shares have the smallest log loss.

    Parameters
    ----------
    clip, from_logits
        As in `TemperatureScaling`.

    Attributes
    ----------
    temperature_ : float
        T.
    scaled_, unscaled_, uniform_ : float
        The shares, with the sum 1.
    clip_ : float
    n_classes_ : int

    Notes
    -----
    Zhang, Kailkhura and Han (2020, "Mix-n-match: ensemble and compositional methods for uncertainty
    calibration in deep learning", equation 12). The classes of a row keep their order. The log
    likelihood is concave in the shares.

    Examples
    --------
    >>> import numpy as np
    >>> from fastece.recalibration import EnsembleTemperatureScaling
    >>> rng = np.random.default_rng(0)
    >>> z = 3 * rng.normal(size=(5000, 3))
    >>> y = (z + rng.gumbel(size=z.shape)).argmax(axis=1)
    >>> y[:1000] = rng.integers(0, 3, 1000)  # a fifth of the labels are noise
    >>> model = EnsembleTemperatureScaling(from_logits=True).fit(z, y)
    >>> print(f"{model.uniform_:.1f}")
    0.2
    """

    title = "ensemble temperature scaling"
    PARAMETERS = (
        Parameter("temperature", low=1 / MAX_PARAMETER),
        *map(Probability, ("scaled", "unscaled", "uniform")),
    )
    keeps_argmax = True
    needs = "logits"

    def _fit(self, rows: LabelledOutputs) -> None:
        logits = rows.logits()
        self.temperature_ = find_temperature(logits, rows)
        parts = [
            label_probabilities(logits, rows.label, 1 / self.temperature_),
            label_probabilities(logits, rows.label, 1.0),
            np.full(rows.n_rows, 1 / rows.n_classes),
        ]
        shares = mixture_shares(np.column_stack(parts), rows.unit_weight)
        self.scaled_, self.unscaled_, self.uniform_ = shares.tolist()

    def _map(self, outputs: ModelOutputs) -> NDArray[Any]:
        logits = outputs.logits()
        scaled = softmax_of(logits, 1 / self.temperature_)
        constant = self.uniform_ / outputs.n_classes
        return np.asarray(self.scaled_ * scaled + self.unscaled_ * softmax_of(logits) + constant)

    def _check_increasing(self) -> None:
        """Accept the map, a mixture of increasing ones, unless it is all 1/K."""
        if self.uniform_ == 1:
            raise InputError("uniform_", "must be below 1 for an inverse", value=self.uniform_)

    def _write_code(self, program: Program) -> None:
        program.define(scaled_share=self.scaled_, unscaled_share=self.unscaled_)
        program.define(temperature=self.temperature_, constant=self.uniform_ / 2)
        program.add_log_odds(self.clip_)
        program.value("scaled", "z / temperature")
        program.sigmoid("q", "scaled")
        program.sigmoid("unscaled", "z")
        program.value("recalibrated", "scaled_share * q + unscaled_share * unscaled + constant")

    def _write_code_of_classes(self, program: Program) -> None:
        program.define(scaled_share=self.scaled_, unscaled_share=self.unscaled_)
        program.define(temperature=self.temperature_, constant=self.uniform_ / self.n_classes_)
        program.add_logits(self.clip_)
        program.vector("scaled", "z[k] / temperature")
        program.softmax("q", "scaled")
        program.softmax("unscaled", "z")
        program.vector(
            "recalibrated", "scaled_share * q[k] + unscaled_share * unscaled[k] + constant"
        )


def label_probabilities(logits: NDArray[Any], label: I64, factor: float) -> F64:
    """Compute the softmax (n,) of logits times a factor, for each row's label."""
    probability = np.empty(label.size)
    for start, part in row_slices(logits):
        rows = slice(start, start + len(part))
        p = softmax_of(part.astype(np.float64), factor)
        probability[rows] = p[np.arange(len(p)), label[rows]]
    return probability
