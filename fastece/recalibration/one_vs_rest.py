"""Maps of one score: class vectors are mapped class by class, each against all others."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastece.data.errors import warn
from fastece.kernels.types import F64
from fastece.recalibration.calibrator import Calibrator
from fastece.recalibration.outputs import (
    BinaryProblem,
    LabelledOutputs,
    ModelOutputs,
    Score,
    list_classes,
)


class BinaryFit(NamedTuple):
    """Fitted parameters of the map of one score.

    Parameters
    ----------
    parameters : sequence of float or array
        In the order of the `PARAMETERS` of the map.
    warning : str
        A sentence, or "" where there is nothing to warn of.
    """

    parameters: Sequence[float | F64]
    warning: str = ""


@dataclass(kw_only=True, eq=False)
class OneVsRest(Calibrator):
    """A method for binary problems, applied to each class against all others.

    A subclass writes `_fit_one` and `_map_one`. With two classes, only class 1 is fitted, and its
    parameters become the fitted attributes. With more, each attribute holds one entry for every
    class: a list of arrays, or an array of numbers. The mapped scores of a row are divided by their
    sum; where all are 0, each class gets 1/K.
    """

    has_parameters_per_class = True

    def _fit(self, rows: LabelledOutputs) -> None:
        is_binary = rows.n_classes == 2
        classes = [1] if is_binary else list(range(rows.n_classes))
        fits = [self._fit_one(rows.problem(k)) for k in classes]
        warn_of_fits(fits)
        for i, parameter in enumerate(self.PARAMETERS):
            values: Any = [fit.parameters[i] for fit in fits]
            if is_binary:
                attribute = values[0]
            elif parameter.shape:
                attribute = values
            else:
                attribute = np.array(values)
            setattr(self, f"{parameter.name}_", attribute)

    def _map(self, outputs: ModelOutputs) -> NDArray[Any]:
        fitted = self._fitted_parameters()
        if outputs.n_classes == 2:
            return self._map_one(outputs.score(1), *fitted)
        p: NDArray[Any] = np.empty(outputs.values.shape)
        for k in range(outputs.n_classes):
            p[:, k] = self._map_one(outputs.score(k), *(values[k] for values in fitted))
        total = p.sum(axis=1, keepdims=True)
        uniform = np.full(p.shape, 1 / outputs.n_classes)
        return np.asarray(np.divide(p, total, out=uniform, where=total > 0))

    def _fitted_parameters(self) -> list[Any]:
        """Return the fitted attributes in the order of `PARAMETERS`."""
        return [getattr(self, f"{parameter.name}_") for parameter in self.PARAMETERS]

    @abstractmethod
    def _fit_one(self, problem: BinaryProblem) -> BinaryFit:
        """Fit the map to one class against all others."""

    @abstractmethod
    def _map_one(self, score: Score, *parameters: Any) -> F64:
        """Map the scores of one class to probabilities (n,)."""


def warn_of_fits(fits: Sequence[BinaryFit]) -> None:
    """Issue each warning of fits once, with the classes that it is about."""
    for text in dict.fromkeys(fit.warning for fit in fits if fit.warning):
        classes = [k for k, fit in enumerate(fits) if fit.warning == text]
        name = "X" if len(fits) == 1 else f"X, {list_classes(classes)}"
        warn(name, text)
