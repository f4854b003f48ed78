"""Maps of one score that are constant in bins: histogram binning and scaling-binning."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from fastece.data.parameters import check_choice, check_integer
from fastece.data.samples import Sample, scale_weights
from fastece.data.table import one_problem
from fastece.estimators.binned import MAX_BINS, Binned
from fastece.estimators.binned.layouts import EDGE_RULES
from fastece.kernels.types import F64
from fastece.recalibration.calibrator import LogitMap, Probability
from fastece.recalibration.code import Program
from fastece.recalibration.inverse import smallest_numbers
from fastece.recalibration.logistic import (
    PLATT_PARAMETERS,
    fit_line,
    refuse_negative_slope,
    write_line,
)
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
class StepMap(OneVsRest):
    """A map whose last two parameters are steps of a monotone function of the score.

    A subclass writes this function as `_scale`, and as code that returns its name.
    """

    @abstractmethod
    def _scale(self, score: Score, *parameters: Any) -> F64:
        """Compute the numbers (n,) whose bins are looked up."""

    @abstractmethod
    def _write_scale(self, program: Program) -> str:
        """Write the number whose bin is looked up, and return its name."""

    def _map_one(self, score: Score, *parameters: Any) -> F64:
        *scale, cut, value = parameters
        return Steps(cut, value).at(self._scale(score, *scale))

    def _write_code(self, program: Program) -> None:
        steps = self._steps_of_input()
        is_empty = np.isnan(steps.value)
        _, largest = self._input_range()
        program.define(ends=np.append(steps.cut, largest), value=np.nan_to_num(steps.value))
        formula = "value[k]"
        if is_empty.any():
            program.define(is_empty=is_empty)
            formula = f"value[k] + is_empty[k] * {self._write_scale(program)}"
        program.piece("recalibrated", formula, ends="ends", variable=program.input)

    def _steps_of_input(self) -> Steps:
        """Find the edges of bins among predictions of class 1 of two, before `_scale`.

        A score at an edge then is in the same bin in every language, though exponentials differ in
        their last bit.
        """
        *scale, cut, value = self._fitted_parameters()

        def scaled(values: F64) -> F64:
            return self._scale(self._column(values).score(1), *scale)

        low, high = self._input_range()
        at_low, at_high = scaled(np.array([low, high]))
        if at_low <= at_high:
            beyond = smallest_numbers(lambda x: scaled(x) > cut, low, high, cut.size)
        else:
            cut = cut[::-1]
            value = value[::-1]
            beyond = smallest_numbers(lambda x: scaled(x) <= cut, low, high, cut.size)
        return Steps(np.nextafter(beyond, -np.inf), value)


@dataclass(kw_only=True, eq=False)
class HistogramBinning(StepMap):
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

    def _scale(self, score: Score) -> F64:
        return score.s

    def _write_scale(self, program: Program) -> str:
        program.add_probability()
        return "p"


@dataclass(kw_only=True, eq=False)
class ScalingBinning(LogitMap, StepMap):
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

    def _scale(self, score: Score, slope: float, intercept: float) -> F64:
        return sigmoid(slope * score.logit + intercept)

    def _check_increasing(self) -> None:
        slope, *_ = self._fitted_parameters()
        refuse_negative_slope(slope)

    def _write_scale(self, program: Program) -> str:
        slope, intercept, *_ = self._fitted_parameters()
        write_line(program, slope, intercept, self.clip_)
        program.sigmoid("scaled", "line")
        return "scaled"


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
