"""The estimator of the table: the posterior mean of the calibration error."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastece.checks.parameters import check_real
from fastece.data.order import scale_weights
from fastece.data.problems import Problems
from fastece.data.reading import Map
from fastece.data.sample import Sample
from fastece.estimators.base import Estimator
from fastece.estimators.bayes.curves import CellRows, Curves, cells_of_problems, cells_of_rows
from fastece.estimators.bayes.posterior import Posterior, posterior_of
from fastece.typing import F64

# A score has rows to speak of where there is one no further away.
REACH = 0.025


@dataclass(frozen=True)
class BayesCurve(Estimator):
    """Calibration error of a Bayesian calibration curve: its posterior mean.

    The probability of a hit is ``logit c(s) = x + b_0 + b_1 (x - mean x) + f(u)``, with x the logit
    of the score, cut at odds of ``2 + 2 n`` or ``2 + n / 2``, and u its mid-rank. Around ``c = s``
    the line b is normal and f a Gaussian process; their scale and the roughness of f are averaged
    over by what the rows say of them. The value is the posterior mean of ``(E |c(s) -
    s|**p)**(1/p)`` over the scores there are, for p = inf of the largest ``|c(s) - s|``.

    Parameters
    ----------
    norm : float
        p, at least 1; ``inf`` for the maximum calibration error.

    Raises
    ------
    ValueError, TypeError
        For a norm below 1.

    Notes
    -----
    Laplace's approximation for each of some scales and roughnesses (Rasmussen and Williams 2006,
    "Gaussian processes for machine learning", section 3.4), in cells of equal weight, and 128 draws
    from their mixture. Where rows have weights, they are as many as Kish's effective number. What
    is assumed, with reasons and measurements, is in docs/bayes.md.

    Examples
    --------
    >>> from fastece import BayesCurve, ece
    >>> print(f"{ece([0, 1, 1, 1], [0.1, 0.4, 0.6, 0.9], estimator=BayesCurve()):.3f}")
    0.086
    >>> print(BayesCurve(norm=2))
    BayesCurve(norm=2.0)
    """

    norm: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "norm", check_real("norm", self.norm, 1.0))

    def __str__(self) -> str:
        return "BayesCurve()" if self.norm == 1 else f"BayesCurve(norm={self.norm!r})"

    def prepare(self, sample: Sample, size: int) -> Sample:  # noqa: ARG002
        """Return the sorted sample: the cells depend on the draw."""
        return scale_weights(sample)[0]

    def evaluate(self, plan: Sample, c: NDArray[Any]) -> float:
        """Return the value when row i of the sample counts ``c[i]`` times."""
        return self.value(cells_of_rows(plan, c))

    def direct(self, problems: Problems, run: Map = map) -> F64:
        """Compute the value of each problem, every row counting once.

        Many rows are not sorted.
        """
        return np.array(list(run(self.value, cells_of_problems(problems, run))))

    def value(self, rows: CellRows) -> float:
        """Compute the posterior mean of the error from rows in cells."""
        curves = Curves(rows)
        return float(curves.errors(curves.probabilities(curves.value_draws()), self.norm).mean())

    def posterior(self, samples: Sequence[Sample]) -> Posterior:
        """Compute the posterior of the mean error over some problems.

        Parameters
        ----------
        samples : sequence of Sample
            One problem, or one for each class; of the same rows, in the same order.

        Returns
        -------
        Posterior
        """
        return posterior_of([scale_weights(sample)[0] for sample in samples], self.norm)

    def curve(self, sample: Sample, score: F64, confidence_level: float) -> tuple[F64, F64, F64]:
        """Compute the probability of a hit, with intervals, at some scores.

        The values are the posterior mean, and the ends of the interval at each score by itself.

        Where no row is within 0.025 of a score, nothing is known of it: all three are nan.

        Parameters
        ----------
        sample : Sample
        score : (G,) float64 array
            In [0, 1].
        confidence_level : float

        Returns
        -------
        three (G,) float64 arrays
        """
        p, tail = self._draws(sample, score), (1 - confidence_level) / 2
        low, high = np.quantile(p, [tail, 1 - tail], axis=1)
        return p.mean(axis=1), low, high

    def mean_curve(self, sample: Sample, score: F64) -> F64:
        """Compute the posterior mean (G,) of `curve` alone, in a third of the time."""
        return np.asarray(self._draws(sample, score).mean(axis=1))

    def _draws(self, sample: Sample, score: F64) -> F64:
        """Draw the curve (G, 128) at some scores; nan where no row is near."""
        ordered = scale_weights(sample)[0].sorted()
        p = Curves(cells_of_rows(ordered, ordered.c)).at(score)
        p[rows_near(ordered, score) == 0] = np.nan
        return p


def rows_near(ordered: Sample, score: F64) -> F64:
    """Count the rows (G,) of a sorted sample within 0.025 of each score."""
    first = np.searchsorted(ordered.s, score - REACH, "left")
    last = np.searchsorted(ordered.s, score + REACH, "right")
    below = np.append(0.0, np.cumsum(ordered.counts, dtype=np.float64))
    return np.asarray(below[last] - below[first])
