"""Intervals for the difference of two errors, from the intervals of both models.

The method of variance estimates recovery (MOVER): Zou (2007), "Toward using confidence intervals to
compare correlations", takes the ends of two intervals at one level; here the intervals of all
levels, a confidence distribution of each error (Xie and Singh 2013, "Confidence distribution, the
frequentist distribution estimator of a parameter"), are joined by a normal copula.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np

from fastece.data.samples import Sample
from fastece.display.numbers import ConfidenceInterval
from fastece.estimators.bayes.process import normal_quantiles
from fastece.estimators.bayes.widening import draw_order
from fastece.estimators.binned import Binned
from fastece.inference.binned_cells import noiseless_cells
from fastece.inference.cell_curves import z_scores
from fastece.inference.estimate import curves, posteriors
from fastece.inference.label_curves import BINS
from fastece.inference.score_distance import bound_difference
from fastece.kernels.types import F64
from fastece.resampling.calibration_test import has_cells
from fastece.resampling.call import Call
from fastece.resampling.engine import ranges

# The smallest alpha at which ends are worked out; beyond it neither replicates nor draws know
# anything.
MIN_ALPHA = 1 / 2000
# Alphas that users ask for, which are not interpolated.
USUAL_ALPHAS = [0.5, 0.32, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.001]
# Alphas at which ends are worked out, falling from 1. Between them ends are interpolated along the
# logarithm of alpha.
ALPHAS = np.unique([*np.geomspace(MIN_ALPHA, 1, 100), *USUAL_ALPHAS])[::-1]
# No interval has the level 0.
MAX_ALPHA = 1 - 1e-9
# Replicates that each model's interval is made from.
MAX_RESAMPLES = 1999
# Pairs of errors of the two models.
PAIRS = 4096
# Errors of two curves have this share of the correlation of the rows' influences: each curve is
# uncertain by itself too. With all of it, intervals of a wavy model and a calibrated one cover 40
# to 70 %. Noise is the only uncertainty of bins, so that they have all of it.
SHARE_OF_CURVES = 0.6
SHARE_OF_BINS = 1.0
# The rest of the correlation r is multiplied by ``|r|**8``: models that are much alike are
# uncertain together.
POWER_OF_LIKENESS = 8
# A correlation of exactly 1 would leave nothing of two intervals.
MAX_CORRELATION = 0.999
# Rows whose influences are summed up at once.
ROWS_AT_ONCE = 2**18


class ModelError(NamedTuple):
    """The error of one model: how uncertain it is, and how it changes with each row.

    Attributes
    ----------
    quantiles : callable
        Quantiles (L,) of its confidence distribution at levels (L,).
    influence : (n,) float64 array
        Change of the error with the weight of each row, up to a factor.
    value : float
        Its estimate, as in `fastece.estimate`.
    norm : float or None
        p, where the error is the p-norm of the distance of a curve from the scores, so that the
        distance of two models' scores bounds the difference. None without such a bound: the bins of
        two models are different sets of rows.
    """

    quantiles: Callable[[F64], F64]
    influence: F64
    value: float = math.nan
    norm: float | None = None


@dataclass(frozen=True, eq=False)
class Difference:
    """Intervals of all levels for the difference of two errors.

    Attributes
    ----------
    low, high : (M,) float64 array
        Ends at the levels ``1 - ALPHAS``; every interval holds those before it.
    """

    low: F64
    high: F64

    # Beyond the last level but one the ends are those of all errors.
    smallest_p_value = float(ALPHAS[-2])

    def interval(self, level: float) -> ConfidenceInterval:
        """Return the interval at a level."""
        log_alpha = math.log(max(1 - level, MIN_ALPHA))
        rising = np.log(ALPHAS[::-1])
        low = float(np.interp(log_alpha, rising, self.low[::-1]))
        high = float(np.interp(log_alpha, rising, self.high[::-1]))
        return ConfidenceInterval(low, high)

    @property
    def p_value(self) -> float:
        """P-value of equal errors: the alpha up to which intervals leave out 0."""
        if np.isnan(self.low).any():
            return math.nan
        # How far the end that is nearer to 0 is from it, falling with alpha.
        distance = self.low if self.low[0] > 0 else -self.high
        if distance[0] <= 0:
            return 1.0
        return math.exp(float(np.interp(0.0, distance[::-1], np.log(ALPHAS)[::-1])))

    def within(self, lower: F64, upper: F64) -> "Difference":
        """Return the intervals cut to bounds (M,) that widen with the level.

        An interval that lies beyond the bounds becomes the nearer bound, and every interval still
        holds those before it.
        """
        low = np.minimum.accumulate(np.clip(self.low, lower, upper))
        high = np.maximum.accumulate(np.clip(self.high, lower, upper))
        # The last interval stays, as it stands for all higher levels.
        low[-1] = self.low[-1]
        high[-1] = self.high[-1]
        return Difference(low, high)


# The difference of a model from itself.
NO_DIFFERENCE = Difference(np.zeros(ALPHAS.size), np.zeros(ALPHAS.size))


# --- joining two errors ---------------------------------------------------------------------


def join_errors(
    a: ModelError, b: ModelError, shared: float, counts: F64 | None = None
) -> Difference:
    """Compute intervals for the error of the first model minus the second's.

    Both errors follow their confidence distributions, joined by a normal copula. Its correlation is
    ``r (shared + (1 - shared) |r|**8)``, with the correlation r of the influences of the rows,
    each of which counts `counts` (n,) times.
    """
    r = correlate(a.influence, b.influence, counts)
    r *= shared + (1 - shared) * abs(r) ** POWER_OF_LIKENESS
    normal, other = normal_pairs()
    common = math.sqrt((1 + r) / 2) * normal
    opposite = math.sqrt((1 - r) / 2) * other
    errors_of_a = order_like(a.quantiles, common + opposite)
    errors_of_b = order_like(b.quantiles, common - opposite)
    tails = np.concatenate([ALPHAS / 2, 1 - ALPHAS / 2])
    low, high = np.quantile(errors_of_a - errors_of_b, tails).reshape(2, -1)
    # Beyond the last level nothing is known, except that an error is from 0 to 1.
    if not np.isnan(low[-1]):
        low[-1] = -1.0
        high[-1] = 1.0
    return Difference(low, high)


def order_like(quantiles: Callable[[F64], F64], normal: F64) -> F64:
    """Return errors (P,) at even levels, in the order of normal numbers (P,)."""
    levels = (np.arange(PAIRS) + 0.5) / PAIRS
    ranks = normal.argsort().argsort()
    return quantiles(levels)[ranks]


@lru_cache(maxsize=1)
def normal_pairs() -> tuple[F64, F64]:
    """Return pairs of standard normal numbers (P,), symmetric in the second."""
    count = PAIRS // 2
    second = draw_order(count)
    return np.tile(normal_quantiles(count), 2), np.concatenate([second, -second])


def correlate(x: F64, y: F64, counts: F64 | None = None) -> float:
    """Compute the correlation of two influences (n,); 0 where one is constant.

    Row i counts ``counts[i]`` times, or once.
    """
    if counts is not None and counts.size != x.size:
        counts = None  # influences of groups, each of which counts once
    mean_x = np.average(x, weights=counts)
    mean_y = np.average(y, weights=counts)
    sums = np.zeros(3)
    for start, end in ranges(0, x.size, ROWS_AT_ONCE):
        gap_x = x[start:end] - mean_x
        gap_y = y[start:end] - mean_y
        if counts is not None:
            # Roots of the counts turn sums over the rows of the table into sums over all copies.
            root = np.sqrt(counts[start:end])
            gap_x = gap_x * root
            gap_y = gap_y * root
        sums += gap_x @ gap_x, gap_y @ gap_y, gap_x @ gap_y
    scale = math.sqrt(sums[0] * sums[1])
    if scale <= 0:
        return 0.0
    return float(np.clip(sums[2] / scale, -MAX_CORRELATION, MAX_CORRELATION))


def interval_quantiles(interval: Callable[[float], Any]) -> Callable[[F64], F64]:
    """Make the confidence distribution whose quantiles are the ends of intervals."""
    low, high = np.array([interval(1 - alpha) for alpha in np.minimum(ALPHAS, MAX_ALPHA)]).T
    levels = np.concatenate([ALPHAS[::-1] / 2, 1 - ALPHAS / 2])
    ends = np.concatenate([low[::-1], high])
    return lambda wanted_levels: np.interp(wanted_levels, levels, ends)


# --- the errors of the models of a call -----------------------------------------------------


def errors_of_models(
    call: Call, name: str, values: Sequence[Any], key: int
) -> list[list[ModelError]]:
    """Compute the error of each model of a call, or of each class of each.

    `values` are the values of the estimator of a name for all models; draws depend on the key.
    """
    estimator = call.estimators[name]
    count = min(call.n_resamples, MAX_RESAMPLES)
    errors = []
    for model, value in zip(call.tables, values, strict=True):
        call_on_model = replace(call, tables=[model], n_resamples=count)
        errors.append(model_errors(call_on_model, estimator, value, key))
    return errors


def compute_differences(
    call: Call, name: str, values: Sequence[Any], errors: Sequence[Sequence[ModelError]]
) -> list[Difference]:
    """Compute the difference of the errors of two models, or of each class.

    `values` are the values of the estimator of a name for both models, and `errors` the errors that
    `errors_of_models` computes of them.
    """
    estimator = call.estimators[name]
    shared = SHARE_OF_CURVES if influence_bins(estimator) is None else SHARE_OF_BINS
    if call.clusters is not None:
        # Joined as if the models were independent: with the correlation of their groups, intervals
        # of 100 groups of 10 equal rows hold 62 % where one model is calibrated, now 100.
        errors = [
            [error._replace(influence=np.zeros(1)) for error in of_model] for of_model in errors
        ]
    first_values = np.atleast_1d(values[0])
    parts = zip(first_values, pair_samples(call), *errors, strict=True)
    differences = []
    for value, pairs, error_of_a, error_of_b in parts:
        if are_same_models(pairs) and not math.isnan(value):
            differences.append(NO_DIFFERENCE)
            continue
        difference = join_errors(error_of_a, error_of_b, shared, call.counts)
        # Rows do not show the largest distance of a population.
        if error_of_a.norm is not None and error_of_a.norm < math.inf:
            bounds = bound_difference(pairs, error_of_a.norm, call.clusters, bound_quantiles())
            difference = difference.within(*bounds)
        differences.append(difference)
    return differences


def pair_samples(call: Call) -> list[list[tuple[Sample, Sample]]]:
    """Return the samples of both models for each class, or in one list for their mean."""
    of_a, of_b = (model.samples(reads_only=True) for model in call.uncounted_tables)
    pairs = list(zip(of_a, of_b, strict=True))
    return [[pair] for pair in pairs] if call.per_class else [pairs]


def are_same_models(pairs: list[tuple[Sample, Sample]]) -> bool:
    """Decide whether two models have the same scores and outcomes in all problems."""
    return all(np.array_equal(a.s, b.s) and np.array_equal(a.y, b.y) for a, b in pairs)


@lru_cache(maxsize=1)
def bound_quantiles() -> F64:
    """Return normal quantiles (M,) of the bounds at the levels ``1 - ALPHAS``.

    A bound has a quarter of alpha, half of what an end has: the ends beyond it use up the rest. It
    costs half a percent of width.
    """
    return np.array([NormalDist().inv_cdf(1 - alpha / 4) for alpha in ALPHAS])


def model_errors(call: Call, estimator: Any, value: Any, key: int) -> list[ModelError]:
    """Compute the error of the only model of a call, or the error of each class."""
    if estimator.posterior is None:
        return errors_by_inversion(call, estimator, value, key)
    return errors_by_posterior(call, estimator)


def errors_by_posterior(call: Call, estimator: Any) -> list[ModelError]:
    """Compute the errors of the only model of a call from posteriors."""
    weight = influence_weights(call)
    errors = []
    for posterior in posteriors(call, estimator):
        influence = posterior.influence
        if weight is not None:
            influence = weight * influence
        # A posterior of a caller's estimator may have no other interval for comparisons.
        interval = getattr(posterior, "comparison_interval", posterior.interval)
        quantiles = interval_quantiles(interval)
        norm = getattr(posterior, "norm", None)
        errors.append(ModelError(quantiles, influence, float(posterior.value), norm))
    return errors


def influence_weights(call: Call) -> F64 | None:
    """Return factors (n,) of the influences of rows; None where all are 1."""
    weight = call.uncounted_tables[0].v
    return None if weight is None else weight / weight.max()


def errors_by_inversion(call: Call, estimator: Any, value: Any, key: int) -> list[ModelError]:
    """Compute the errors of the only model of a call from confidence curves."""
    own_bins = influence_bins(estimator)
    influences = compute_influences(call, BINS if own_bins is None else own_bins)
    if not call.per_class:
        influences = influences.mean(0, keepdims=True)
    values = np.atleast_1d(value).tolist()
    parts = zip(values, curves(call, estimator, value, key), influences, strict=True)
    return [ModelError(curve.quantiles, influence, each) for each, curve, influence in parts]


def influence_bins(estimator: Any) -> Binned | None:
    """Return the bins that an estimator's own gaps are of; None without such gaps."""
    population = estimator.of_population()
    return population if has_cells(population) else None


def compute_influences(call: Call, binned: Binned) -> F64:
    """Compute the influence (K, n) of each row on each error, up to a factor.

    It is the gap of the row, times the change of the error with the gap of its bin: for gaps D and
    the norm p, ``sign(D) |D|**(p - 1)``. Where the sign of a gap is not known, both signs count
    with their probabilities, so that the sign becomes ``erf(z / sqrt(2))`` of the gap's z-score.
    """
    cells = noiseless_cells(call, binned)
    change = np.vectorize(math.erf)(z_scores(cells) / math.sqrt(2))
    size = np.abs(cells.gap)
    largest = size.max(1, keepdims=True)
    if math.isinf(binned.norm):
        change = np.where(size == largest, change, 0.0)
    elif binned.norm > 1:
        change = change * (size / np.maximum(largest, 1e-300)) ** (binned.norm - 1)
    share = cells.share
    unit = np.divide(cells.max_gap, share, out=np.zeros(share.shape), where=share > 0)
    influences = []
    weight = influence_weights(call)
    samples = call.tables[0].samples(reads_only=True)
    for sample, of_bin in zip(samples, change * unit, strict=True):
        of_row = binned.place(sample, of_bin.size).means(of_bin) * (sample.y - sample.s)
        if weight is not None:
            of_row = of_row * weight
        influences.append(of_row)
    return np.array(influences)
