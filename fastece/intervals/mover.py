"""The difference of two errors on the same rows, from the interval of each."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import singledispatch
from typing import Any, NamedTuple

import numpy as np

from fastece.estimators.binned.estimator import Binned, place_rows
from fastece.intervals.bins import bin_cells
from fastece.intervals.estimate import curves, posterior_maker, posteriors
from fastece.intervals.labels import BINS
from fastece.resampling.arguments import Call
from fastece.resampling.intervals import ConfidenceInterval
from fastece.typing import F64

# Levels 1 - alpha at which ends are worked out, the usual ones among them; in between their
# logarithms tell where an end is. Beyond, neither replicates nor draws know anything.
SMALLEST = 1 / 2000
USUAL = [0.5, 0.32, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.001]
ALPHAS = np.unique([*np.geomspace(SMALLEST, 1, 100), *USUAL])[::-1]
# Replicates that each model's interval is made from.
REPLICATES = 1999
# No interval has the level 0.
LEAST_LEVEL = 1e-9
# A correlation of exactly 1 would leave nothing of two intervals.
MOST = 0.999


class ModelError(NamedTuple):
    """One model's error: its centre, its interval at any level, its change with each row (n,)."""

    centre: float
    interval: Callable[[float], Any]
    influence: F64


@dataclass(frozen=True, eq=False)
class Difference:
    """Intervals of all levels for the difference of two errors.

    Attributes
    ----------
    low, high : (M,) float64 array
        Ends at the levels ``1 - ALPHAS``, of which every one holds those before it.
    """

    low: F64
    high: F64

    def interval(self, level: float) -> ConfidenceInterval:
        """The interval at a level."""
        at = math.log(max(1 - level, SMALLEST))
        x = np.log(ALPHAS[::-1])
        low, high = (float(np.interp(at, x, end[::-1])) for end in (self.low, self.high))
        return ConfidenceInterval(low, high)

    @property
    def p_value(self) -> float:
        """The alpha up to which intervals hold 0: of the hypothesis that both errors are equal."""
        if np.isnan(self.low).any():
            return math.nan
        inner = self.low if self.low[0] > 0 else -self.high
        if inner[0] <= 0:
            return 1.0
        x = np.log(ALPHAS)
        return math.exp(float(np.interp(0.0, inner[::-1], x[::-1])))


# Of one model and itself.
NONE = Difference(np.zeros(ALPHAS.size), np.zeros(ALPHAS.size))


def difference_of(a: ModelError, b: ModelError) -> Difference:
    """Intervals for the error of the first minus that of the second.

    The ends are joined by MOVER with a correlation (Zou 2007, "Toward using confidence intervals to
    compare correlations", eq. 15)::

        low  = d - sqrt((e_a - l_a)^2 - 2 r (e_a - l_a) (u_b - e_b) + (u_b - e_b)^2)
        high = d + sqrt((u_a - e_a)^2 - 2 r (u_a - e_a) (e_b - l_b) + (e_b - l_b)^2)

    with the centres e, intervals [l, u] and the correlation r of the influences of the rows. Where
    an interval begins at 0 that model may be calibrated, so the difference may be as large as the
    other's error: its whole interval belongs to that of the difference.
    """
    x, y = (x.influence - x.influence.mean() for x in (a, b))
    scale = math.sqrt(float(x @ x) * float(y @ y))
    r = float(np.clip(x @ y / scale, -MOST, MOST)) if scale > 0 else 0.0
    ends = np.array([join(a, b, r, max(1 - alpha, LEAST_LEVEL)) for alpha in ALPHAS])
    # What no level that was worked out tells: an error is from 0 to 1.
    ends[-1] = np.where(np.isnan(ends[-1]), np.nan, [-1.0, 1.0])
    ends = np.clip(ends, -1.0, 1.0)
    return Difference(np.minimum.accumulate(ends[:, 0]), np.maximum.accumulate(ends[:, 1]))


def join(a: ModelError, b: ModelError, r: float, level: float) -> tuple[float, float]:
    """The ends at one level."""
    (la, ua), (lb, ub) = a.interval(level), b.interval(level)
    ea, eb = min(max(a.centre, la), ua), min(max(b.centre, lb), ub)
    down, up = (ea - la, ub - eb), (ua - ea, eb - lb)
    low, high = (math.sqrt(max(p * p - 2 * r * p * q + q * q, 0.0)) for p, q in (down, up))
    low, high = ea - eb - low, ea - eb + high
    return (min(low, -ub) if la <= 0 else low), (max(high, ua) if lb <= 0 else high)


def differences(call: Call, name: str, values: list[Any], key: int) -> list[Difference]:
    """The difference of the errors of two models, or that of each class, from the `values` of an
    estimator for both; draws depend on the key."""
    count = min(call.n_resamples, REPLICATES)
    calls = [replace(call, sources=[model], n_resamples=count) for model in call.models]
    estimator = call.estimators[name]
    same = [
        np.array_equal(a.s, b.s) and np.array_equal(a.y, b.y)
        for a, b in zip(*(model.samples() for model in call.models), strict=True)
    ]
    same = [all(same)] if call.average is not None else same
    of_models = [
        model_errors(one, estimator, value, key) for one, value in zip(calls, values, strict=True)
    ]
    return [
        NONE if is_same and not math.isnan(a.centre) else difference_of(a, b)
        for is_same, a, b in zip(same, *of_models, strict=True)
    ]


def model_errors(call: Call, estimator: Any, value: Any, key: int) -> list[ModelError]:
    """Describe the error of the only model of a call, or that of each class."""
    if posterior_maker(estimator) is not None:
        parts, v = posteriors(call, estimator), call.models[0].v
        weight = 1.0 if v is None else v / v.max()
        return [ModelError(part.value, part.interval, weight * part.influence) for part in parts]
    parts = curves(call, estimator, value, key)
    influence = influences(call, influence_bins(estimator))
    influence = influence if call.average is None else influence.mean(0, keepdims=True)
    return [ModelError(c.centre, c.interval, x) for c, x in zip(parts, influence, strict=True)]


@singledispatch
def influence_bins(estimator: Any) -> Binned:  # noqa: ARG001
    """Choose the bins whose gaps tell how an estimator changes with each row."""
    return BINS


@influence_bins.register
def _(estimator: Binned) -> Binned:
    return estimator if type(estimator) is Binned else BINS


def influences(call: Call, binned: Binned) -> F64:
    """How each row changes the error of each problem (K, n), up to a factor: its gap, times how
    much the error changes with the gap of its bin. Where a gap may be of either sign, that is the
    mean of both."""
    (data,) = call.models
    bins = binned.bins(data, moments=3)
    cells = bin_cells(binned, data, bins, np.zeros((*bins.gap.shape, 0)), 0)
    sd, size = cells.deviation, np.abs(cells.gap)
    z = np.divide(cells.gap, sd, out=np.zeros_like(sd), where=sd > 0)
    weight = np.vectorize(math.erf)(z / math.sqrt(2))
    if 1 < binned.norm < math.inf:
        weight = weight * (size / np.maximum(size.max(1, keepdims=True), 1e-300)) ** (
            binned.norm - 1
        )
    elif binned.norm > 1:
        weight = weight * (size == size.max(1, keepdims=True))
    unit = np.divide(cells.max_gap, cells.share, out=np.zeros_like(sd), where=cells.share > 0)
    out = []
    for sample, pull in zip(data.samples(), weight * unit, strict=True):
        x = place_rows(binned, sample, pull.size).rows(pull) * (sample.y - sample.s)
        out.append(x if sample.v is None else x * (sample.v / sample.v.max()))
    return np.array(out)
