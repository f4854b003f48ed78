"""A test of calibration: the error beside the errors that chance alone gives."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import singledispatch
from typing import Any, NamedTuple, overload

import numpy as np

from fastece.checks.arrays import contiguous
from fastece.data.sample import Sample, scale_weights
from fastece.data.source import Problems, one_problem
from fastece.document.result import EstimatorResult, Record, Results
from fastece.estimators.base import Counts, Estimator, Labels, Statistic
from fastece.estimators.binned import MAX_SUMS, Binned, Bins, Placement
from fastece.estimators.bins import Layout, Tiles
from fastece.kernels import MOMENTS, REPLICATES
from fastece.resampling import engine
from fastece.resampling.arguments import Call, add_groups, read_call, require_calibration_error
from fastece.resampling.draws import ClassDraws, HitDraws, LabelDraws, new_key
from fastece.resampling.engine import Problem
from fastece.resampling.results import as_float, p_value_of, quantiles, tails_of
from fastece.typing import F64

# Replicates that a band is made of: the gaps of all bins of all classes are kept, up to 400 MB, or
# of the fewest replicates whose quantiles say anything.
BAND_REPLICATES, LEAST_REPLICATES, MOST_GAPS = 1999, 199, 5 * 10**7
# Rows whose labels are drawn at once: 64 bytes each, for a block of replicates.
PART = 2**18
# Errors closer than this are equal: one is rounded otherwise than the other.
ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class ConsistencyBand(Record):
    """Expected range of the hit rate in each bin for a calibrated model.

    Attributes
    ----------
    low, high : (B,) float64 array
        Ends of the central range that has the share `confidence_level` of the replicates, for each
        bin by itself; nan where it is empty.
    confidence_level : float
    """

    low: F64
    high: F64
    confidence_level: float


@dataclass(frozen=True, eq=False, kw_only=True)
class CalibrationTestResult(EstimatorResult):
    """Test of the hypothesis that a model is calibrated.

    Attributes
    ----------
    value : float or (K,) float64 array
        The value of `fastece.ece`.
    p_value : float or (K,) float64 array
        ``(1 + #{T* >= T}) / (n_resamples + 1)``, with errors that differ by no more than 1e-12
        being equal; nan where the value or a replicate is.
    null_distribution : (n_resamples,) or (K, n_resamples) float64 array
        The statistic for labels that are drawn with the predicted probabilities.
    band : ConsistencyBand, list of K of them, or None
        For the reliability diagram of the estimator, or of each class; None without bins.

    Also ``n``, ``n_groups``, ``key``, ``estimator`` and ``setting``, as of `BootstrapResult`.
    """

    p_value: Any
    null_distribution: F64 = field(repr=False)
    band: Any = field(repr=False)

    @property
    def _sample(self) -> str:
        return f"{super()._sample}, {self.null_distribution.shape[-1]} replicates"

    @property
    def _numbers(self) -> dict[str, Any]:
        mean = as_float(self.null_distribution.mean(-1))
        return {"value": self.value, "if_calibrated": mean, "p_value": self.p_value}


# --- labels from their probabilities --------------------------------------------------------


def hits_and_misses(sample: Sample) -> Sample:
    """Return a sample with every row twice, as a hit and as a miss, for `HitDraws`."""
    twice = sample.where(np.tile(np.arange(sample.n), 2))
    return replace(twice, y=np.repeat(np.array([1, 0], np.uint8), sample.n))


def label_draws(call: Call, prob: list[F64], key: int, row: int = 0) -> ClassDraws | HitDraws:
    """Make draws of labels, from number `row` on: of all classes, or of one's hits."""
    dependence = call.dependence and call.dependence.rows(row, len(prob[0]))
    if call.sources[0].setting.per_class:
        return ClassDraws(key, np.column_stack(prob), row, dependence)
    return HitDraws(key, prob[0], row, dependence)


def drawn_hits(
    call: Call, data: Problems, sums: Sequence[Statistic], key: int, first: int, last: int
) -> Iterator[tuple[list[Sample], F64]]:
    """Yield parts of all problems, with sums (K, C, R) over the hits drawn in them.

    `sums` has the statistic of each problem: it takes counts of hits, then of misses.
    """
    problems = range(data.n_problems)
    for start in range(0, data.n, step := max(1, PART // data.n_problems)):
        samples = [data.view(k, slice(start, start + step)) for k in problems]
        if first == last:
            yield samples, np.zeros((1, 1, 0))
            continue
        draws = label_draws(call, [sample.s for sample in samples], key, start)
        plans = [sums[k].prepare(samples[k], call.n) for k in problems]
        drawn = [engine.PreparedStatistic(k, None, None, sums[k], plans[k]) for k in problems]
        some = engine.Replicates(draws, drawn)
        yield samples, engine.evaluate(some, first, last, call.jobs, call.executor)


@dataclass(frozen=True)
class HitSums(Statistic):
    """Weight of the hits in bins of each draw of labels; rows that miss add nothing."""

    binned: Binned
    layout: Layout

    needs_sorted = False

    def prepare(self, sample: Sample, size: int) -> Tiles:  # noqa: ARG002
        """Arrange the rows of a sample with their weights in tiles."""
        tiles = Tiles.of(sample, self.layout, self.binned._threshold, MOMENTS[:2])
        return tiles._replace(terms=np.ascontiguousarray(tiles.terms[1::2]))

    def values(self, tiles: Tiles, draws: Counts) -> F64:
        """Compute weights (B, 32 G) for counts (G, 2 n, 32) of hits, then of misses."""
        hits = draws.c[:, : tiles.order.size]
        step = max(1, MAX_SUMS // (REPLICATES * self.layout.cells))
        parts = [contiguous(hits[g : g + step], np.uint8) for g in range(0, len(hits), step)]
        return np.concatenate([tiles.sums(part)[0] for part in parts], axis=1)

    def noise(self, sample: Sample) -> F64:
        """Sum ``w^2 a^2 s (1 - s)``, ``w^2 a^2`` and all w^2: (3, B)."""
        places = Placement(self.layout, *self.layout.place(sample.s))
        s, v = sample.s, 1.0 if sample.v is None else sample.v
        w = np.where(s > self.binned._threshold, v, 0.0)
        sums = [places.sums(x, w, 2) for x in (s * (1 - s), np.ones(s.size))]
        return np.stack([*sums, np.full(sums[0].size, w @ w)])


class LabelModel(NamedTuple):
    """A model whose labels are drawn for an estimator, in the form that it takes.

    Most estimators take labels as multiplicities: every row stands there as a hit and as a miss,
    and one of the two is drawn. Those that take `Labels`, and those of whole class vectors, take
    the labels themselves.

    Attributes
    ----------
    problems : list of Problem
    scores : list of (n,) float64 arrays
        Predicted probabilities of hits in each problem, or of each class of whole class vectors.
    draws : callable
        Makes the draws of labels with such probabilities.
    """

    problems: list[Problem]
    scores: list[F64]
    draws: Callable[[list[F64]], Any]


def label_model(call: Call, estimator: Any, key: int) -> LabelModel:
    """Return the only model of a call, for draws of labels that depend on a key."""
    (data,) = call.models
    samples, are_classes = data.samples(), call.uses_class_vectors(estimator)
    takes_labels = are_classes or Labels in estimator.native
    scores = [sample.s for sample in samples]
    if are_classes:
        assert data.vectors is not None
        scores = list(data.vectors.prob[data.positions].astype(np.float64).T)

    def draws(prob: list[F64]) -> Any:
        if are_classes:
            whole = ClassDraws(key, np.column_stack(prob), 0, call.dependence)
            return LabelDraws(whole, are_classes=True)
        drawn = label_draws(call, prob, key)
        return LabelDraws(drawn, are_classes=False) if takes_labels else drawn

    forms = samples if takes_labels else map(hits_and_misses, samples)
    return LabelModel([*map(Problem, forms)], scores, draws)


# --- the test ------------------------------------------------------------------------------


class WithGaps(Statistic):
    """The value of a binned estimator and, after it, the gap of each bin."""

    def __init__(self, binned: Any) -> None:
        self.binned, self.needs_sorted = binned, binned.needs_sorted

    def prepare(self, sample: Sample, size: int) -> Any:
        """Prepare the estimator on a sample."""
        return self.binned.prepare(sample, size)

    def values(self, plan: Any, draws: Counts) -> F64:
        """Compute values and gaps (1 + B, 32 G) of replicates."""
        bins = self.binned.bins_of(plan, draws)
        return np.vstack([self.binned.errors(bins), bins.gap.T])


@singledispatch
def bins_of(estimator: Any, problems: Problems) -> Bins | None:  # noqa: ARG001
    """Return the bins of a band; None for an estimator without bins."""
    return None


@bins_of.register
def _(estimator: Binned, problems: Problems) -> Bins | None:
    return estimator.bins(problems)


def null_values(
    call: Call, statistic: Any, draws: Any, problems: Sequence[Problem], bins: Bins | None
) -> tuple[F64, F64]:
    """Compute the values (problems, R) of a statistic under the null.

    Labels are drawn, or gaps of groups. Of as many of the replicates as a band is made of, also the
    gaps (problems, B, R') of its bins.
    """
    values, gaps, begun, end = [], np.empty(0), 0, call.n_resamples
    if bins is not None:
        begun = min(end, max(LEAST_REPLICATES, min(BAND_REPLICATES, MOST_GAPS // bins.gap.size)))
        both = call.replicates([WithGaps(statistic)], problems, draws, call.n, 0, begun)
        values, gaps = [both[:, 0]], both[:, 1:]
    if begun < end:
        values.append(call.replicates([statistic], problems, draws, call.n, begun, end))
    return np.concatenate(values, axis=-1), gaps


def binned_null(call: Call, binned: Binned, bins: Bins, key: int) -> tuple[F64, F64]:
    """Compute values and gaps as `null_values` does, of the hits in bins alone."""
    data, gaps = scale_weights(call.models[0])[0], np.empty(0)
    values: list[list[F64]] = []
    n_bins, step = bins.gap.shape[1], max(LEAST_REPLICATES, MOST_GAPS // bins.gap.size)
    layouts = [binned.layout(one_problem(data.view(k)), n_bins) for k in range(data.n_problems)]
    sums = [HitSums(binned, layout) for layout in layouts]
    for first in range(0, call.n_resamples, step):
        last = min(first + step, call.n_resamples)
        hits = sum(drawn for _, drawn in drawn_hits(call, data, sums, key, first, last))
        gap = (hits - bins.score[:, :, None]).swapaxes(1, 2)
        gaps = gaps if values else gap[:, :BAND_REPLICATES].swapaxes(1, 2)
        weight = np.broadcast_to(bins.weight[:, None], gap.shape)
        total = np.broadcast_to(bins.total[:, None], gap.shape[:2])
        each = zip(total, gap, weight, strict=True)
        values.append([binned.errors(Bins([], bins.unit, *one)) for one in each])
    return np.concatenate(values, axis=1), gaps


def calibration_result(call: Call, name: str, key: int) -> CalibrationTestResult:
    """Test the only model of a call with one estimator."""
    data, estimator = call.models[0], call.estimators[name]
    bins = bins_of(estimator, data)
    if bins is not None and type(estimator) is Binned and not estimator.debias:
        null, gaps = binned_null(call, estimator, bins, key)
    else:
        model = label_model(call, estimator, key)
        null, gaps = null_values(call, estimator, model.draws(model.scores), model.problems, bins)
    bands = bins and [band_of(bins, k, gap, call.level) for k, gap in enumerate(gaps)]
    (value,), null = call.values(name), call.average_of(null)
    band = bands if bands is None or data.setting.per_class else bands[0]
    p_value = p_value_of(np.asarray(value) - ROUNDING, null)
    return CalibrationTestResult(
        value=value, p_value=p_value, null_distribution=null, band=band, **call.facts(name, key)
    )


def band_of(bins: Bins, k: int, gaps: F64, level: float) -> ConsistencyBand:
    """Compute the band of problem k from its bins and the gaps (B, R) of replicates."""
    weight = np.where(bins.weight[k] > 0, bins.weight[k], np.nan)
    ends = (quantiles(gaps, tails_of(level)) + bins.score[k][:, None]) / weight[:, None]
    low, high = ends.clip(0.0, 1.0).T  # rounding
    return ConsistencyBand(low, high, level)


def calibration_results(call: Call, rng: Any) -> Any:
    """Compute the result of a call on one model, or `Results` by estimator name."""
    require_calibration_error(call, "calibration_test")
    key = new_key(rng)
    return call.results(lambda name: calibration_result(call, name, key))


@overload
def calibration_test(
    y_true: Any, y_prob: Any, *, estimator: list[Any] | tuple[Any, ...], **options: Any
) -> Results[CalibrationTestResult]: ...
@overload
def calibration_test(
    y_true: Any, y_prob: Any, *, estimator: str | Estimator = ..., **options: Any
) -> CalibrationTestResult: ...
def calibration_test(
    y_true: Any, y_prob: Any, *, estimator: Any = "ece", n_resamples: int = 1999, rng: Any = 0,
    groups: Any = None, **options: Any,
) -> Any:  # fmt: skip
    """Test whether a model is calibrated, by labels drawn as if it were.

    Parameters
    ----------
    y_true, y_prob, **options
        As in `fastece.bootstrap`, but no `size` and `method`; `confidence_level` is that of the
        band.
    estimator : str or object, or a list of them, default "ece"
        As in `fastece.ece`: a calibration error. Several share every draw.
    n_resamples : int, default 1999
        Number of replicates.
    rng : None, int or numpy.random.Generator, default 0
        Seed: the same seed gives the same result. None: other draws in every call.
    groups : (n,) array_like, optional
        Rows with the same label here belong together, so that their labels are not independent:
        as in `fastece.bootstrap`.

    Returns
    -------
    CalibrationTestResult, or for a list of estimators a dict of them, as of `fastece.bootstrap`

    Raises
    ------
    ValueError, TypeError
        As in `fastece.bootstrap`.

    Notes
    -----
    ``p = (1 + #{T* >= T}) / (n_resamples + 1)`` with the error T and that of the replicates T*.
    Under the hypothesis a label is drawn with the predicted probabilities: a hit with the
    probability s, or, for the classes of a class vector together, a class with its probability. The
    scores stay as they are, so bins do too. The test is that of Vaicenavicius et al. (2019,
    "Evaluating model calibration in classification", section 5), the band that of Bröcker and Smith
    (2007, "Increasing the reliability of reliability diagrams"). Of "canonical" and "skce" whole
    class vectors are tested: with setting "auto" a label is one of all classes.

    With `groups` the hypothesis is that hits come as often as the scores say, however those of one
    group depend on each other; groups are independent. Then a label is decided by the random number
    of its group with a probability, and else by one of its own, so it comes as often as without,
    and the covariance of two labels of a group is a part of the largest that their probabilities
    allow. That part is estimated from products of residuals of two rows of one group, rather too
    large than too small: with it, three quarters of all samples show more dependence than the data.
    ``docs/intervals.md`` has the rate of false alarms. Groups of one row each are the test without
    groups.

    Examples
    --------
    >>> import numpy as np
    >>> from fastece import calibration_test
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(1000)
    >>> result = calibration_test(rng.random(1000) < p, p, n_resamples=999)
    >>> print(result)
    Binned(n_bins=15), setting binary: 1000 rows, 999 replicates
      value          0.0374
      if calibrated  0.0384
      p-value        0.54
    >>> calibration_test(rng.random(1000) < p**2, p, n_resamples=999).p_value
    0.001
    """
    options |= {"estimator": estimator, "n_resamples": n_resamples}
    call = read_call("calibration_test", y_true, {"y_prob": y_prob}, **options)
    return calibration_results(add_groups(call, groups, y_prob), rng)
