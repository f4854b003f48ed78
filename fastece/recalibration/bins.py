"""Maps that are constant in bins: histogram binning, and scaling-binning."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from fastece.checks.parameters import check_choice, check_integer
from fastece.data.order import scale_weights
from fastece.data.problems import one_problem
from fastece.data.sample import Sample
from fastece.estimators.binned.estimator import MAX_BINS, Binned
from fastece.recalibration.base import Parameter
from fastece.recalibration.logistic import LINE, fit_platt
from fastece.recalibration.one_vs_rest import OneVsRest, Say
from fastece.recalibration.rows import Score, sigmoid
from fastece.typing import F64

BINS = {
    "cut": Parameter("b", each=True, low=0.0, high=1.0, increasing=True),
    "value": Parameter("B", each=True, low=0.0, high=1.0, may_be_nan=True),
}


def bin_means(bins: Binned, sample: Sample, target: F64) -> tuple[F64, F64]:
    """Inner edges (B - 1,) of bins of the scores, and the weighted mean (B,) of a number of each
    row in them; nan in a bin without rows."""
    sample, _ = scale_weights(sample)
    cut = bins.layout(one_problem(sample), int(bins.n_bins)).edges[1:-1]
    where = np.searchsorted(cut, sample.s)
    v = np.ones(sample.n) if sample.v is None else sample.v
    weight, total = (np.bincount(where, x, cut.size + 1) for x in (v, v * target))
    return cut, np.divide(total, weight, out=np.full_like(total, np.nan), where=weight > 0)


def step(score: F64, cut: F64, value: F64) -> F64:
    """The value of the bin of each score; the score itself in bins that had no rows."""
    p = value[np.searchsorted(cut, score)]
    return np.where(np.isnan(p), score, p)


@dataclass(kw_only=True, eq=False)
class HistogramBinning(OneVsRest):
    """The share of hits in the bin of the score.

    Parameters
    ----------
    n_bins : int, default 15
    edges : {"uniform", "quantile"}, default "uniform"
        Bins of equal width, or of equal weight, as those of `fastece.Binned`.
    from_logits : bool, default False
        Whether predictions are log odds or logits.

    Attributes
    ----------
    cut_ : (n_bins - 1,) float64 array, or a list of one for each class
        Inner edges of the bins; a score on an edge belongs to the bin below.
    value_ : (n_bins,) float64 array, or a list of one for each class
        Share of hits; nan in bins without rows, whose scores stay as they are.
    n_classes_ : int

    Raises
    ------
    ValueError, TypeError
        For parameters outside their range; as `fit` and `transform` say.

    Notes
    -----
    Zadrozny and Elkan (2001, "Obtaining calibrated probability estimates from decision trees and
    naive Bayesian classifiers"); of several classes Guo et al. (2017, section 4.2).

    Examples
    --------
    >>> from fastece.recalibration import HistogramBinning
    >>> model = HistogramBinning(n_bins=2).fit([0.1, 0.3, 0.4, 0.6, 0.7, 0.9], [0, 0, 1, 0, 1, 1])
    >>> print(model.transform([0.2, 0.5, 0.8]).round(3))
    [0.333 0.333 0.667]
    """

    title: ClassVar[str] = "histogram binning"
    PARAMETERS: ClassVar[dict[str, Parameter]] = BINS

    n_bins: int = 15
    edges: Literal["uniform", "quantile"] = "uniform"

    def __post_init__(self) -> None:
        super().__post_init__()
        make_bins(self.n_bins, self.edges)

    def _fit_one(self, score: Score, sample: Sample, say: Say) -> Sequence[F64]:  # noqa: ARG002
        return bin_means(make_bins(self.n_bins, self.edges), sample, sample.y.astype(np.float64))

    def _map_one(self, score: Score, cut: F64, value: F64) -> F64:
        return step(score.s, cut, value)


@dataclass(kw_only=True, eq=False)
class ScalingBinning(OneVsRest):
    """Platt scaling, whose probabilities are then averaged in bins of equal weight.

    Parameters
    ----------
    n_bins : int, default 15
    from_logits : bool, default False
        Whether predictions are log odds or logits.

    Attributes
    ----------
    slope_, intercept_ : float, or (K,) float64 arrays
        As of `PlattScaling`.
    cut_ : (n_bins - 1,) float64 array, or a list of one for each class
        Inner edges of the bins of the scaled scores.
    value_ : (n_bins,) float64 array, or a list of one for each class
        Means of the scaled scores; nan in bins without rows, whose scores stay as they were scaled.
    n_classes_ : int

    Raises
    ------
    ValueError, TypeError
        For parameters outside their range; as `fit` and `transform` say.

    Notes
    -----
    Kumar, Liang and Ma (2019, "Verified uncertainty calibration", section 4): the variance of a
    mean of scaled scores is far below that of a share of hits. All rows are used for both steps, as
    in their program.

    Examples
    --------
    >>> from fastece.recalibration import ScalingBinning
    >>> model = ScalingBinning(n_bins=2).fit([0.1, 0.3, 0.4, 0.6, 0.7, 0.9], [0, 0, 1, 0, 1, 1])
    >>> print(model.transform([0.2, 0.8]).round(3))
    [0.202 0.798]
    """

    title: ClassVar[str] = "scaling-binning"
    PARAMETERS: ClassVar[dict[str, Parameter]] = LINE | BINS

    n_bins: int = 15

    def __post_init__(self) -> None:
        super().__post_init__()
        make_bins(self.n_bins, "quantile")

    def _fit_one(self, score: Score, sample: Sample, say: Say) -> Sequence[float | F64]:
        slope, intercept = fit_platt(score.logit, sample, say)
        p = sigmoid(slope * score.logit + intercept)
        scaled = Sample(p, sample.y, sample.v, 0.0, 1.0, sample.rows)
        return slope, intercept, *bin_means(make_bins(self.n_bins, "quantile"), scaled, p)

    def _map_one(self, score: Score, slope: float, intercept: float, cut: F64, value: F64) -> F64:
        return step(sigmoid(slope * score.logit + intercept), cut, value)


def make_bins(n_bins: int, edges: Literal["uniform", "quantile"]) -> Binned:
    """Bins whose number is known beforehand."""
    n_bins = check_integer("n_bins", n_bins, 1, MAX_BINS)
    check_choice("edges", edges, ("uniform", "quantile"))
    return Binned(n_bins, edges=edges)
