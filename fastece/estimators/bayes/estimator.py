"""The estimator of a Bayesian calibration curve: the posterior mean of its error."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fastece.data.parameters import check_real
from fastece.data.samples import Sample, scale_weights
from fastece.data.table import RowTable
from fastece.data.threads import Map
from fastece.estimators.base import Parameters
from fastece.estimators.bayes.cells import CellRows, cells_of_problems, cells_of_rows
from fastece.estimators.bayes.curves import Curves
from fastece.estimators.bayes.posterior import Posterior, posteriors_of
from fastece.estimators.curve import Curve, curve_near_rows, rows_near
from fastece.kernels.types import F64

# A curve is evaluated at this many even scores and quantiles. Even scores alone are of no use to a
# network with four fifths of its scores above 0.999: with 501 of them the band held 67 % of its
# bins.
EVEN_SCORES = 501
QUANTILES = 513


@dataclass(frozen=True)
class BayesCurve(Parameters):
    """Calibration error of a Bayesian calibration curve: its posterior mean.

    The probability of a hit is ``logit c(s) = x + b_0 + b_1 (x - mean x) + f(u)``, with x the logit
    of the score, cut at odds of ``2 + 2 n`` or ``2 + n / 2``, and u its mid-rank. Around ``c = s``
    the line b is normal and f a Gaussian process, and their scale and the roughness of f are
    averaged over, weighted by prior and evidence. Beside the process stand curves in pieces, which
    jump. The value is the posterior mean of ``(E |c(s) - s|**p)**(1/p)`` over the scores of the
    rows, for p = inf of the largest ``|c(s) - s|``.

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
    from their mixture. Where rows have weights, they are as many as Kish's effective number. All
    assumptions, with reasons and measurements, are in docs/explanation/bayes.md.

    Examples
    --------
    >>> from fastece import BayesCurve, ece
    >>> print(f"{ece([0, 1, 1, 1], [0.1, 0.4, 0.6, 0.9], estimator=BayesCurve()):.3f}")
    0.085
    >>> print(BayesCurve(norm=2))
    BayesCurve(norm=2.0)
    """

    norm: float = 1.0

    lowest = 0.0
    largest = 1.0
    checks: ClassVar = {"norm": partial(check_real, low=1.0)}

    def __str__(self) -> str:
        return "BayesCurve()" if self.norm == 1 else super().__str__()

    def prepare(self, sample: Sample, size: int) -> Sample:  # noqa: ARG002
        """Return the sorted sample: the cells depend on the draw."""
        return scale_weights(sample)[0]

    def evaluate(self, plan: Sample, c: NDArray[Any]) -> float:
        """Return the value when row i of the sample counts ``c[i]`` times."""
        return self.value(cells_of_rows(plan, c))

    def point_values(self, table: RowTable, run: Map = map) -> F64:
        """Compute the value (K,) of each problem of a table; many rows are not sorted."""
        return np.array(list(run(self.value, cells_of_problems(table, run))))

    def value(self, rows: CellRows) -> float:
        """Compute the posterior mean of the error from rows in cells."""
        return float(Curves(rows).values(self.norm)[0])

    def posterior(
        self, samples: Sequence[Sample], effect: float = 1.0, shares: F64 | None = None
    ) -> Posterior:
        """Compute the posterior of the mean error over some problems.

        Parameters
        ----------
        samples : sequence of Sample
            One problem, or one for each class; of the same rows, in the same order.
        effect : float, default 1.0
            The design effect of rows that depend on each other, at least 1: this many of them are
            worth one independent row (Kish 1965, "Survey sampling", section 8.2).
        shares : (K,) float64 array, optional
            Weights of the problems in their mean, where each has rows of its own.

        Returns
        -------
        Posterior
        """
        return posteriors_of(samples, self.norm, (0,), effect, shares)[0]

    def posterior_parts(self, samples: Sequence[Sample], effect: float = 1.0) -> list[Posterior]:
        """Compute the posteriors of the error, of its over part and of its under part.

        In the over part scores are above the curve. The parameters are as for `posterior`.
        """
        return posteriors_of(samples, self.norm, (0, -1, 1), effect)

    def curve_scores(self, ordered: Sample) -> F64:
        """Return scores (G,) between which a curve may be interpolated.

        They are evenly spaced over the range, and quantiles of the scores, which hold every score
        that many rows have.
        """
        even = np.linspace(ordered.low, ordered.high, EVEN_SCORES)
        return np.unique(np.concatenate([even, ordered.quantiles(np.linspace(0, 1, QUANTILES))]))

    def curve(
        self, ordered: Sample, size: int, confidence_level: float = 0.95, effect: float = 1.0
    ) -> Curve:
        """Compute the probability of a hit, with intervals, at `curve_scores`.

        Parameters
        ----------
        ordered : Sample
            Sorted.
        size : int
            Number of rows.
        confidence_level : float, default 0.95
        effect : float, default 1.0
            The design effect, as in `posterior`.

        Returns
        -------
        Curve
            The posterior mean, and the ends of the interval at each score by itself; nan where no
            row is within 0.025.
        """
        score = self.curve_scores(ordered)
        p = self.curve_draws(ordered, score, effect)
        tail = (1 - confidence_level) / 2
        low, high = np.quantile(p, [tail, 1 - tail], axis=1)
        return curve_near_rows(ordered, size, score, p.mean(axis=1), low, high)

    def curve_draws(self, sample: Sample, score: F64, effect: float = 1.0) -> F64:
        """Draw the curve (G, 128) at some scores; nan where no row is near."""
        ordered, _ = scale_weights(sample)
        if not (ordered.s[1:] >= ordered.s[:-1]).all():
            ordered = ordered.sorted()
        rows = cells_of_rows(ordered, ordered.c).thinned(effect / sample.votes)
        p = Curves(rows).at(score)
        p[rows_near(ordered, score) == 0] = np.nan
        return p
