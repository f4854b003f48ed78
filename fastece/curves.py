"""Reliability curves: how often a score comes true, from densities, at any score."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fastece.intervals import ConfidenceInterval
from fastece.results import as_float, listed, shown
from fastece.validation import as_real, refuse_where

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["ReliabilityCurve"]

F64 = NDArray[np.float64]
SHOWN = np.linspace(0, 1, 11)


@dataclass(frozen=True, eq=False, kw_only=True)
class ReliabilityCurve:
    """The probability of a hit as a function of the score, on a grid.

    Attributes
    ----------
    score : (G,) float64 array
        Evenly spaced scores, the centres of G cells of the range.
    posterior : (G,) float64 array
        ``P(y = 1 | s)``; the score itself where the curve has no support.
    lce : (G,) float64 array
        Local calibration error, ``posterior - score``.
    density : (G,) float64 array
        Density of the scores.
    supported : (G,) bool array
        Whether there are scores to speak of: ``density >= 0.01 / (high - low)``, a hundredth of its
        mean over the range.
    low, high : (G,) float64 array or None
        Ends of the bootstrap percentile interval of the posterior at each score by itself; None
        without resamples.
    median : (G,) float64 array or None
        Median of the bootstrap distribution.
    confidence_level : float
        Of the band.
    n_resamples : int
    value : float
        The calibration error, as `fastece.ece` gives it.
    bandwidth : float
        The standard deviation of the kernel.
    score_range : tuple of float
        Ends of the range.
    n : int
        Number of rows of positive weight.
    key : int or None
        Key of the draws; None without resamples.
    estimator : str
        The estimator with its parameters.
    setting : str
        The setting it used.
    """

    score: F64
    posterior: F64
    lce: F64
    density: F64
    supported: NDArray[np.bool_]
    low: F64 | None
    high: F64 | None
    median: F64 | None
    confidence_level: float
    n_resamples: int
    value: float
    bandwidth: float
    score_range: tuple[float, float]
    n: int
    key: int | None
    estimator: str
    setting: str

    def __call__(self, s: Any) -> Any:
        """Probability of a hit at a score, or at an array of them, interpolated linearly.

        Parameters
        ----------
        s : float or array-like of float
            Scores in [0, 1]; those outside the range count as its nearest end.

        Returns
        -------
        float or float64 array
        """
        return self._at(s, self.posterior)

    def interval(self, s: Any) -> ConfidenceInterval:
        """Confidence interval of the probability of a hit at a score, or at an array of them.

        Parameters
        ----------
        s : float or array-like of float
            As for the curve itself.

        Returns
        -------
        ConfidenceInterval
            ``(low, high)`` at the `confidence_level` of the curve.

        Raises
        ------
        ValueError
            For a curve without resamples.
        """
        if self.low is None or self.high is None:
            raise ValueError("interval: the curve has no resamples; ask for them by n_resamples=")
        return ConfidenceInterval(self._at(s, self.low), self._at(s, self.high))

    def _at(self, s: Any, values: F64) -> Any:
        """Values on the grid, interpolated."""
        at = np.asarray(as_real("s", s), np.float64)
        refuse_where("s", np.atleast_1d(at), lambda x: ~((x >= 0) & (x <= 1)), "must be in [0, 1]")
        return as_float(np.interp(at, self.score, values))

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draw the curve with its band, and the density underneath; needs matplotlib.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; without it, on a new figure.

        Returns
        -------
        matplotlib Axes
        """
        from fastece.plot import plot_curve

        return plot_curve(self, ax)

    def to_dict(self) -> dict[str, Any]:
        """Plain Python values."""
        return {name: listed(getattr(self, name)) for name in self.__dataclass_fields__}

    def __str__(self) -> str:
        head = f"{self.estimator}, setting {self.setting}: {self.value:.5f}, {self.n} rows"
        band = self.low is not None
        wide = f"  {100 * self.confidence_level:g} % interval" if band else ""
        lines = [f"{head}, bandwidth {self.bandwidth:.4g}", f"  score  P(hit)  density{wide}"]
        low, high = self.score_range
        for s in low + (high - low) * SHOWN:
            line = f"  {s:.3f}  {self(s):.4f}  {self._at(s, self.density):7.3f}"
            if band:
                line += "  [{:.4f}, {:.4f}]".format(*self.interval(s))
            supported = self._at(s, self.supported.astype(np.float64)) == 1
            lines.append(line if supported else f"{line}  no support")
        return "\n".join(lines)
