"""Maps of one score that are constant in bins: histogram binning and scaling-binning."""

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from fastece.data.parameters import check_choice, check_integer
from fastece.data.samples import Sample, scale_weights
from fastece.data.table import one_problem
from fastece.estimators.binned import MAX_BINS, Binned
from fastece.estimators.binned.layouts import EDGE_RULES
from fastece.kernels.types import F64
from fastece.recalibration.calibrator import LogitMap, Probability
from fastece.recalibration.logistic import PLATT_PARAMETERS, fit_line
from fastece.recalibration.one_vs_rest import BinaryFit, OneVsRest
from fastece.recalibration.outputs import BinaryProblem, Score, sigmoid

# `EDGE_RULES`, as a type.
Edges = Literal["uniform", "quantile"]
STEP_PARAMETERS = (
    Probability("cut", "b", increasing=True),
    Probability("value", "B", may_be_nan=True),
)


class Steps(NamedTuple):
    """A map that is constant in bins.

    Parameters
    ----------
    cut : (B - 1,) float64 array
        Inner edges of the bins; a score on an edge belongs to the bin below.
    value : (B,) float64 array
        The value in each bin; nan in bins without rows, whose scores stay as they are.
    """

    cut: F64
    value: F64

    def at(self, score: F64) -> F64:
        """Map scores (n,) to the values of their bins."""
        value = self.value[np.searchsorted(self.cut, score)]
        return np.where(np.isnan(value), score, value)


@dataclass(kw_only=True, eq=False)
class HistogramBinning(OneVsRest):
    """Histogram binning: the observed frequency in the bin of the score.

    Parameters
    ----------
    n_bins : int, default 15
    edges : {"uniform", "quantile"}, default "uniform"
        Bins of equal width, or of equal weight, as in `fastece.Binned`.
    from_logits : bool, default False
        Whether predictions are log odds or logits.

    Attributes
    ----------
    cut_ : (n_bins - 1,) float64 array, or a list of one for each class
        Inner edges of the bins; a score on an edge belongs to the bin below.
    value_ : (n_bins,) float64 array, or a list of one for each class
        Observed frequency; nan in bins without rows, whose scores stay as they are.
    n_classes_ : int

    Raises
    ------
    ValueError, TypeError
        For parameters outside their range; as `fit` and `transform` do.

    Notes
    -----
    Zadrozny and Elkan (2001, "Obtaining calibrated probability estimates from decision trees and
    naive Bayesian classifiers"); for several classes Guo et al. (2017, section 4.2).

    Examples
    --------
    >>> from fastece.recalibration import HistogramBinning
    >>> model = HistogramBinning(n_bins=2).fit([0.1, 0.3, 0.4, 0.6, 0.7, 0.9], [0, 0, 1, 0, 1, 1])
    >>> print(model.transform([0.2, 0.5, 0.8]).round(3))
    [0.333 0.333 0.667]
    """

    title = "histogram binning"
    PARAMETERS = STEP_PARAMETERS

    n_bins: int = 15
    edges: Edges = "uniform"

    def __post_init__(self) -> None:
        super().__post_init__()
        make_bins(self.n_bins, self.edges)

    def _fit_one(self, problem: BinaryProblem) -> BinaryFit:
        bins = make_bins(self.n_bins, self.edges)
        return BinaryFit(fit_steps(bins, problem.to_sample(), problem.outcome.astype(np.float64)))

    def _map_one(self, score: Score, cut: F64, value: F64) -> F64:
        return Steps(cut, value).at(score.s)


@dataclass(kw_only=True, eq=False)
class ScalingBinning(LogitMap, OneVsRest):
    """Platt scaling, whose probabilities are then averaged in bins of equal weight.

    Parameters
    ----------
    n_bins : int, default 15
    clip : float, optional
        The smallest distance of a score from 0 and 1, as in `TemperatureScaling`.
    from_logits : bool, default False
        Whether predictions are log odds or logits.

    Attributes
    ----------
    slope_, intercept_ : float, or (K,) float64 arrays
        As in `PlattScaling`.
    cut_ : (n_bins - 1,) float64 array, or a list of one for each class
        Inner edges of the bins of the scaled scores.
    value_ : (n_bins,) float64 array, or a list of one for each class
        Means of the scaled scores; nan in bins without rows, whose scores stay as they were scaled.
    clip_ : float
    n_classes_ : int

    Raises
    ------
    ValueError, TypeError
        For parameters outside their range; as `fit` and `transform` do.

    Notes
    -----
    Kumar, Liang and Ma (2019, "Verified uncertainty calibration", section 4): a mean of scaled
    scores varies far less than an observed frequency. All rows are used for both steps, as in their
    program.

    Examples
    --------
    >>> from fastece.recalibration import ScalingBinning
    >>> model = ScalingBinning(n_bins=2).fit([0.1, 0.3, 0.4, 0.6, 0.7, 0.9], [0, 0, 1, 0, 1, 1])
    >>> print(model.transform([0.2, 0.8]).round(3))
    [0.202 0.798]
    """

    title = "scaling-binning"
    PARAMETERS = PLATT_PARAMETERS + STEP_PARAMETERS

    n_bins: int = 15

    def __post_init__(self) -> None:
        super().__post_init__()
        make_bins(self.n_bins, "quantile")

    def _fit_one(self, problem: BinaryProblem) -> BinaryFit:
        logit = problem.score.logit
        platt = fit_line(logit[:, None], problem.outcome.astype(np.float64), problem)
        slope, intercept = platt.theta.tolist()
        scaled = sigmoid(slope * logit + intercept)
        steps = fit_steps(make_bins(self.n_bins, "quantile"), problem.to_sample(scaled), scaled)
        return BinaryFit((slope, intercept, *steps), platt.warning)

    def _map_one(self, score: Score, slope: float, intercept: float, cut: F64, value: F64) -> F64:
        return Steps(cut, value).at(sigmoid(slope * score.logit + intercept))


def make_bins(n_bins: int, edges: Edges) -> Binned:
    """Check the number of bins and the kind of their edges, and build them."""
    n_bins = check_integer("n_bins", n_bins, 1, MAX_BINS)
    check_choice("edges", edges, EDGE_RULES)
    return Binned(n_bins, edges=edges)


def fit_steps(bins: Binned, sample: Sample, target: F64) -> Steps:
    """Find the inner edges of bins, and the weighted mean of a target in each."""
    sample, _ = scale_weights(sample)
    cut = bins.layout(one_problem(sample), int(bins.n_bins)).edges[1:-1]
    bin_of_row = np.searchsorted(cut, sample.s)
    n_bins = cut.size + 1
    weight_of_bin = np.bincount(bin_of_row, sample.weights, n_bins)
    target_of_bin = np.bincount(bin_of_row, sample.weights * target, n_bins)
    mean = np.full(n_bins, np.nan)
    np.divide(target_of_bin, weight_of_bin, out=mean, where=weight_of_bin > 0)
    return Steps(cut, mean)
