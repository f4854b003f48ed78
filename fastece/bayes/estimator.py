"""The estimator of the table: the calibration error's posterior mean."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastece.bayes.curves import CellRows, Curves, cells_of_problems, cells_of_rows
from fastece.bayes.posterior import Posterior, posterior_of
from fastece.inputs.parameters import check_real
from fastece.problems.problems import Problems
from fastece.problems.reading import Map
from fastece.protocol import Sample

__all__ = ["BayesCurve"]

F64 = NDArray[np.float64]


@dataclass(frozen=True)
class BayesCurve:
    """Calibration error of a Bayesian calibration curve: its posterior mean."""

    norm: float = 1.0

    needs_sorted = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "norm", check_real("norm", self.norm, 1.0))

    def prepare(self, sample: Sample, size: int) -> Sample:
        """The sorted sample."""
        return sample

    def evaluate(self, plan: Sample, c: NDArray[Any]) -> float:
        """The value when row i of the sample counts ``c[i]`` times."""
        return self.value(cells_of_rows(plan, c))

    def direct(self, problems: Problems, run: Map = map) -> F64:
        """The value of each problem, every row counting once; many rows are not sorted."""
        return np.array(list(run(self.value, cells_of_problems(problems, run))))

    def value(self, rows: CellRows) -> float:
        """The posterior mean of the error."""
        curves = Curves(rows)
        return float(curves.errors(curves.probabilities(curves.value_draws()), self.norm).mean())

    def posterior(self, samples: Sequence[Sample]) -> Posterior:
        """What the rows say of the error."""
        return posterior_of(samples, self.norm)
