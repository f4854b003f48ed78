"""Comparison of the calibration errors of two models on the same rows."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache, singledispatch
from typing import Any, Literal, NamedTuple, overload

import numpy as np

from fastece.data.containers import as_probabilities
from fastece.data.errors import InputError
from fastece.data.parameters import check_choice
from fastece.data.sources import Source, class_count, need_rows
from fastece.display.results import Results
from fastece.estimators.base import Estimator
from fastece.estimators.bayes.estimator import draw_order
from fastece.estimators.bayes.pieces import normal_quantiles
from fastece.estimators.binned import Binned
from fastece.inference.cells import binned_cells
from fastece.inference.estimate import curves, posterior_maker, posteriors
from fastece.inference.inversion import BINS, z_scores
from fastece.kernels.types import F64
from fastece.resampling.arguments import Call, add_groups, read_call, require_calibration_error
from fastece.resampling.bootstrap import check_size, resample
from fastece.resampling.draws import new_key
from fastece.resampling.results import METHODS, MOVER, ComparisonResult, ConfidenceInterval, Method

# Levels 1 - alpha at which ends are worked out, the usual ones among them; in between their
# logarithms tell where an end is. Beyond, neither replicates nor draws know anything.
SMALLEST = 1 / 2000
USUAL = [0.5, 0.32, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.001]
ALPHAS = np.unique([*np.geomspace(SMALLEST, 1, 100), *USUAL])[::-1]
# Replicates that each model's interval is made from.
REPLICATES = 1999
# No interval has the level 0.
LARGEST = 1 - 1e-9
# Pairs of errors of the two models.
PAIRS = 4096
# Share of the correlation of influences that errors of two curves have: what neither knows of its
# curve is not shared, unless the models are so much alike that it is the same. With all of it,
# intervals of a wavy model and a calibrated one cover 40 to 70 %. Of bins, noise is all there is.
SHARED, ALIKE = 0.6, 8
# Rows whose influences are summed up at once.
PART = 2**18
# A correlation of exactly 1 would leave nothing of two intervals.
MOST = 0.999


class ModelError(NamedTuple):
    """Error of one model: its confidence distribution, and its influence by row (n,)."""

    quantiles: Callable[[F64], F64]
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
        """Return the interval at a level."""
        at = math.log(max(1 - level, SMALLEST))
        x = np.log(ALPHAS[::-1])
        low, high = (float(np.interp(at, x, end[::-1])) for end in (self.low, self.high))
        return ConfidenceInterval(low, high)

    @property
    def p_value(self) -> float:
        """P-value of equal errors: the alpha up to which intervals contain 0."""
        if np.isnan(self.low).any():
            return math.nan
        inner = self.low if self.low[0] > 0 else -self.high
        if inner[0] <= 0:
            return 1.0
        x = np.log(ALPHAS)
        return math.exp(float(np.interp(0.0, inner[::-1], x[::-1])))


# Of one model and itself.
NONE = Difference(np.zeros(ALPHAS.size), np.zeros(ALPHAS.size))


@lru_cache(maxsize=1)
def normal_pairs() -> tuple[F64, F64]:
    """Return pairs of standard normal numbers (P,), symmetric in the second."""
    count = PAIRS // 2
    other = draw_order(count)
    return np.tile(normal_quantiles(count), 2), np.concatenate([other, -other])


def difference_of(a: ModelError, b: ModelError, shared: float) -> Difference:
    """Compute intervals for the error of the first model minus the second's.

    Both errors follow their confidence distributions (Xie and Singh 2013, "Confidence distribution,
    the frequentist distribution estimator of a parameter"), joined by a normal copula. Its
    correlation is that of the influences of the rows, r, times ``shared + (1 - shared) |r|**8``.
    """
    sums, pair = np.zeros(3), [(x.influence, x.influence.mean()) for x in (a, b)]
    for start in range(0, a.influence.size, PART):
        x, y = (influence[start : start + PART] - mean for influence, mean in pair)
        sums += x @ x, y @ y, x @ y
    scale = math.sqrt(sums[0] * sums[1])
    r = float(np.clip(sums[2] / scale, -MOST, MOST)) if scale > 0 else 0.0
    r *= shared + (1 - shared) * abs(r) ** ALIKE
    normal, other = normal_pairs()
    common, own = math.sqrt((1 + r) / 2) * normal, math.sqrt((1 - r) / 2) * other
    levels = (np.arange(PAIRS) + 0.5) / PAIRS
    errors = [
        model.quantiles(levels)[z.argsort().argsort()]
        for model, z in ((a, common + own), (b, common - own))
    ]
    tails = np.concatenate([ALPHAS / 2, 1 - ALPHAS / 2])
    low, high = np.quantile(errors[0] - errors[1], tails).reshape(2, -1)
    # What no level that was worked out tells: an error is from 0 to 1.
    low[-1], high[-1] = (np.nan, np.nan) if np.isnan(low[-1]) else (-1.0, 1.0)
    return Difference(low, high)


def interval_quantiles(interval: Callable[[float], Any]) -> Callable[[F64], F64]:
    """Make the confidence distribution whose quantiles are the ends of intervals."""
    low, high = np.array([interval(1 - alpha) for alpha in np.minimum(ALPHAS, LARGEST)]).T
    places, ends = [ALPHAS[::-1] / 2, 1 - ALPHAS / 2], [low[::-1], high]
    return lambda levels: np.interp(levels, np.concatenate(places), np.concatenate(ends))


def differences(call: Call, name: str, values: list[Any], key: int) -> list[Difference]:
    """Compute the difference of the errors of two models, or of each class.

    `values` are the values of an estimator for both models; draws depend on the key.
    """
    count, estimator = min(call.n_resamples, REPLICATES), call.estimators[name]
    calls = [replace(call, sources=[model], n_resamples=count) for model in call.models]
    pairs = zip(calls, values, strict=True)
    errors = [model_errors(one, estimator, value, key) for one, value in pairs]
    if call.clusters is not None:
        # Joined as if the models were independent: with the correlation of their groups, intervals
        # of 100 groups of 10 equal rows hold 62 % where one model is calibrated, now 100.
        errors = [[x._replace(influence=np.zeros(1)) for x in found] for found in errors]
    shared = 1.0 if influence_bins(estimator) is estimator else SHARED
    samples = zip(*(model.samples(reads_only=True) for model in call.models), strict=True)
    same = [np.array_equal(a.s, b.s) and np.array_equal(a.y, b.y) for a, b in samples]
    same = same if call.per_class else [all(same)]
    parts = zip(np.atleast_1d(values[0]), same, *errors, strict=True)
    return [
        NONE if is_same and not math.isnan(value) else difference_of(a, b, shared)
        for value, is_same, a, b in parts
    ]


def model_errors(call: Call, estimator: Any, value: Any, key: int) -> list[ModelError]:
    """Compute the error of the only model of a call, or the error of each class."""
    if posterior_maker(estimator) is not None:
        parts, v = posteriors(call, estimator), call.models[0].v
        weight = None if v is None else v / v.max()
        found = [(interval_quantiles(part.interval), part.influence) for part in parts]
        return [ModelError(e, x if weight is None else weight * x) for e, x in found]
    parts = curves(call, estimator, value, key)
    influence = influences(call, influence_bins(estimator))
    influence = influence if call.per_class else influence.mean(0, keepdims=True)
    return [ModelError(c.quantiles, x) for c, x in zip(parts, influence, strict=True)]


@singledispatch
def influence_bins(estimator: Any) -> Binned:  # noqa: ARG001
    """Choose the bins whose gaps show how an estimator changes with each row."""
    return BINS


@influence_bins.register
def _(estimator: Binned) -> Binned:
    return estimator if type(estimator) is Binned else BINS


def influences(call: Call, binned: Binned) -> F64:
    """Compute the influence (K, n) of each row on each error, up to a factor.

    It is the gap of the row, times the change of the error with the gap of its bin. Where a gap may
    be of either sign, it is the mean of both.
    """
    cells = binned_cells(call, binned, has_noise=False)
    sd, size, z = cells.deviation, np.abs(cells.gap), z_scores(cells)
    weight = np.vectorize(math.erf)(z / math.sqrt(2))
    largest = size.max(1, keepdims=True)
    if math.isinf(binned.norm):
        weight = weight * (size == largest)
    elif binned.norm > 1:
        weight = weight * (size / np.maximum(largest, 1e-300)) ** (binned.norm - 1)
    unit = np.divide(cells.max_gap, cells.share, out=np.zeros_like(sd), where=cells.share > 0)
    out = []
    samples = call.models[0].samples(reads_only=True)
    for sample, pull in zip(samples, weight * unit, strict=True):
        x = binned.place(sample, pull.size).means(pull) * (sample.y - sample.s)
        out.append(x if sample.v is None else x * (sample.v / sample.v.max()))
    return np.array(out)


# --- the call -------------------------------------------------------------------------------


def check_same_classes(call: Call) -> None:
    """Check that both models of a call have the same classes, in the same setting."""
    models = call.models
    kinds = [f"{x.n_classes} and {x.setting.name!r}" for x in models]
    orders = [str([str(label) for label in x.labels or range(x.n_classes)]) for x in models]
    same = {"the classes and the setting": kinds, "its classes in the order": orders}
    for rule, (a, b) in same.items():
        if a != b:
            raise InputError("y_prob_b", f"must have {rule} of {{y_prob_a}}, {a}, got {b}")


def method_for(call: Call, method: Any, size: Any, name: str) -> str:
    """Choose the method for one estimator, or check the given one."""
    if method is None:
        return MOVER if call.estimators[name].is_calibration_error and size is None else "basic"
    chosen: str = check_choice("method", method, (MOVER, *METHODS))
    if chosen == MOVER:
        require_calibration_error(call.only(call.estimators[name]), f"method={MOVER!r}")
        if size is not None:
            rule = "must draw rows for size=, which 'mover' does not"
            hint = f"with it: {', '.join(map(repr, METHODS))}"
            raise InputError("method", rule, value=chosen, hint=hint)
    return chosen


def comparison_results(call: Call, *, method: Any = None, size: Any = None, rng: Any = None) -> Any:
    """Compute the result of a call on two models, or `Results` by estimator name.

    Each model may have hits of its own.
    """
    check_same_classes(call)
    rows, key = check_size(call, size), new_key(rng)
    methods = {name: method_for(call, method, size, name) for name in call.estimators}
    drawn: dict[str, dict[str, Any]] = {}
    for kind in sorted({*methods.values()} - {MOVER}):
        own = {name: call.estimators[name] for name in methods if methods[name] == kind}
        drawn |= resample(replace(call, estimators=own), kind, rows, key)

    def result_of(name: str) -> ComparisonResult:
        a, b = values = call.values(name)
        fields = drawn.get(name) or {
            **call.facts(name, key), "_parts": differences(call, name, values, key),
            "bootstrap_distribution": np.empty((*np.shape(a), 0)), "method": MOVER, "size": call.n,
        }  # fmt: skip
        value = call.quantity(values)
        own = {**fields, "_infinite_rows": call.infinite_rows(name, values)}
        return ComparisonResult(value=value, a=a, b=b, confidence_level=call.level, **own)

    return call.results(result_of)


@overload
def compare(
    y_true: Any, y_prob_a: Any, y_prob_b: Any, *, estimator: list[Any] | tuple[Any, ...],
    **options: Any,
) -> Results[ComparisonResult]: ...  # fmt: skip
@overload
def compare(
    y_true: Any, y_prob_a: Any, y_prob_b: Any, *, estimator: str | Estimator = ..., **options: Any
) -> ComparisonResult: ...
def compare(
    y_true: Any, y_prob_a: Any, y_prob_b: Any, *, estimator: Any = "ece_bayes",
    method: Method | Literal["mover"] | None = None, n_resamples: int = 1999, rng: Any = 0,
    size: int | None = None, groups: Any = None, **options: Any,
) -> Any:  # fmt: skip
    """Compare the calibration errors of two models on the same rows.

    Parameters
    ----------
    y_true, size, groups, **options
        As in `bootstrap`. "mover" draws no rows, so `size` goes with the other methods only; with
        `groups` it joins both models as if they were independent.
    estimator : str or object, or a list of them, default "ece_bayes"
        As in `fastece.ece`. Several share every draw.
    method : {"mover", "basic", "percentile", "bca"} or None, default None
        "mover": joined from what `estimate` has for both models, with a p-value that is less than 1
        - level exactly where the interval does not hold 0. It holds the true difference of
        calibration errors where the others often miss it, and is wider. The others
        as in `bootstrap`; the basic interval of a difference is not clipped at 0. None: "mover" for
        calibration errors, "basic" for means such as the Brier score, and with `size`.
    n_resamples : int, default 1999
        Number of replicates.
    rng : None, int or numpy.random.Generator, default 0
        Seed: the same seed gives the same result. None: other draws in every call.
    y_prob_a, y_prob_b : (n,) or (n, K) array_like of float
        Probabilities of the two models, row by row for the same labels.

    Returns
    -------
    ComparisonResult, or for a list of estimators a dict of them, as of `bootstrap`

    Raises
    ------
    ValueError, TypeError
        As in `bootstrap`; for `size` with "mover"; for models that differ in their setting or
        their number of classes.

    Notes
    -----
    Both models are evaluated on the same draws, so what they have in common cancels:
    ``p = (1 + #{|d* - d| >= |d|}) / (n_resamples + 1)`` with the difference d and its replicates
    d* (Efron and Tibshirani 1993, section 16.4; the 1 as in Davison and Hinkley 1997, "Bootstrap
    methods and their application", eq. 4.11). Intervals of "mover" have quantiles of the difference
    of two errors that follow the confidence distributions of both models, joined by a normal copula
    with the correlation of what each row changes. They recover the variance of a difference from
    the two answers, as Zou (2007, "Toward using confidence intervals to compare correlations") does
    from ends alone; each is made of at most 1999 replicates, or of a posterior.
    ``docs/intervals.md`` has the coverage of "basic" and "mover", and how often they tell equal
    models apart.

    Examples
    --------
    >>> import numpy as np
    >>> from fastece import compare
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(1000)
    >>> y = rng.random(1000) < p
    >>> print(compare(y, p**2, p))
    BayesCurve(), setting binary: 1000 rows
      a                0.170
      b                0.027
      a - b            0.142
      95 % CI (mover)  [0.097, 0.192]
      p-value          0.00054
    >>> print(compare(y, p**2, p, estimator="brier_score"))
    BrierScore(), setting binary: 1000 rows, 1999 replicates
      a                0.202
      b                0.166
      a - b            0.036
      95 % CI (basic)  [0.025, 0.047]
      p-value          0.0005
      standard error   0.005
      bias             0.000
    """
    if isinstance(y_true, Source):
        need_rows(y_true, "compare")
    models = {"y_prob_a": y_prob_a, "y_prob_b": y_prob_b}
    a, b = (class_count(as_probabilities(p, name).shape) for name, p in models.items())
    if a != b:  # labels would be out of range for one of them
        raise InputError("y_prob_b", f"must have the classes of y_prob_a, {a}", value=b)
    options |= {"estimator": estimator, "n_resamples": n_resamples}
    call = read_call("compare", y_true, models, **options)
    call = add_groups(call, groups, y_prob_a, "y_prob_a")
    return comparison_results(call, method=method, size=size, rng=rng)
