"""A test of calibration: the error beside the errors that chance alone gives."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import singledispatch
from typing import Any, NamedTuple, overload

import numpy as np

from fastece import kernels
from fastece.checks.arrays import contiguous
from fastece.checks.errors import InputError
from fastece.data.sample import Sample, scale_weights
from fastece.data.source import Problems, one_problem
from fastece.document.result import EstimatorResult, Record, Results
from fastece.estimators.base import Counts, Estimator, Labels, Statistic
from fastece.estimators.binned import Binned, Bins, place_rows
from fastece.estimators.bins import Layout, spread
from fastece.kernels import REPLICATES
from fastece.resampling.arguments import Call, add_groups, read_call, require_calibration_error
from fastece.resampling.draws import ClassDraws, CountDraws, Groups, HitDraws, LabelDraws, new_key
from fastece.resampling.engine import Problem
from fastece.resampling.results import as_float, p_value_of, quantiles, tails_of
from fastece.typing import F64, I32, U8

# Replicates that a band is made of: the gaps of all bins of all classes are kept, up to 400 MB, or
# of the fewest replicates whose quantiles say anything.
BAND_REPLICATES, LEAST_REPLICATES, MOST_GAPS = 1999, 199, 5 * 10**7
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
        The statistic for labels that are drawn with the predicted probabilities; with groups, for
        gaps of each group that are drawn.
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
    per_class = call.sources[0].setting.per_class
    return ClassDraws(key, np.column_stack(prob), row) if per_class else HitDraws(key, prob[0], row)


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
            return LabelDraws(ClassDraws(key, np.column_stack(prob)), are_classes=True)
        drawn = label_draws(call, prob, key)
        return LabelDraws(drawn, are_classes=False) if takes_labels else drawn

    forms = samples if takes_labels else map(hits_and_misses, samples)
    return LabelModel([*map(Problem, forms)], scores, draws)


# --- gaps of groups -------------------------------------------------------------------------


class GapPlan(NamedTuple):
    """Prepared data of `GroupGaps` for one sample.

    Attributes
    ----------
    bins : Bins
        The bins of the sample; in replicates the gaps alone are others.
    layout : Layout
        Their cells.
    gap : (M,) float64 array
        What a group adds to the gap of a cell, wherever it has rows, cell by cell.
    group : (M,) int32 array
        Which group that is.
    starts, cells : (S + 1,) and (S,) int32 arrays
        Where the gaps of each cell begin, and which cell it is.
    """

    bins: Bins
    layout: Layout
    gap: F64
    group: I32
    starts: I32
    cells: I32

    def sums(self, c: U8) -> F64:
        """Compute the gaps (B, 32 G) of the bins for counts (G, groups, 32)."""
        out = np.empty((1, self.layout.cells, REPLICATES * len(c)))
        kernels.replicates.tile_sums(self.gap[None], self.group, self.starts, self.cells, 0, c, out)
        sums: F64 = spread(self.layout, out)[0]
        return sums


@dataclass(frozen=True, eq=False)
class GroupGaps(Statistic):
    """A binned estimator, for draws of counts k_g of the groups.

    Where a bin has the gap ``D_b = sum_g D_gb``, a replicate has ``sum_g (k_g - 1) D_gb``. Weights
    and edges stay.
    """

    binned: Any
    groups: Groups

    needs_sorted = False

    def prepare(self, sample: Sample, size: int) -> GapPlan:  # noqa: ARG002
        """Sum the gaps of each cell of a sample, group by group."""
        binned, count = self.binned, self.groups.count
        sample, _ = scale_weights(sample)
        bins = binned.bins(one_problem(sample), moments=2)
        layout, lower, share = place_rows(binned, sample, bins.gap.shape[1])
        gap = sample.y - sample.s if sample.v is None else sample.v * (sample.y - sample.s)
        if binned.threshold is not None:
            gap = np.where(sample.s > binned.threshold, gap, 0.0)
        cell, of_row = lower.astype(np.int64), self.groups.of_row
        if layout.grid.convex:
            cell = np.concatenate([cell, np.minimum(cell + 1, layout.cells - 1)])
            gap, of_row = np.concatenate([gap * share, gap * (1 - share)]), np.tile(of_row, 2)
        pair, place = np.unique(cell * count + of_row, return_inverse=True)
        cells, starts = np.unique(pair // count, return_index=True)
        sums = np.bincount(place, gap, pair.size).astype(np.float64)
        starts = np.append(starts, pair.size)
        indices = (x.astype(np.int32) for x in (pair % count, starts, cells))
        return GapPlan(bins, layout, sums, *indices)

    def bins_of(self, plan: GapPlan, counts: Counts) -> Bins:
        """Sum up the bins (32 G, B) of replicates with counts (G, groups, 32)."""
        once = plan.sums(np.ones((1, self.groups.count, REPLICATES), np.uint8))[:, :1]
        gap = (plan.sums(contiguous(counts.c, np.uint8)) - once).T
        bins = plan.bins
        weight = np.broadcast_to(bins.weight, gap.shape)
        return Bins([], bins.unit, np.broadcast_to(bins.total, len(gap)), gap, weight)

    def errors(self, bins: Bins) -> F64:
        """Compute the value of each replicate from its bins."""
        errors: F64 = self.binned.errors(bins)
        return errors

    def values(self, plan: GapPlan, draws: Counts) -> F64:
        """Compute the values (32 G,) of the replicates."""
        return self.errors(self.bins_of(plan, draws))


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


# --- the test -------------------------------------------------------------------------------


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


def calibration_result(call: Call, name: str, key: int) -> CalibrationTestResult:
    """Test the only model of a call with one estimator."""
    data, clusters, estimator = call.models[0], call.clusters, call.estimators[name]
    bins = bins_of(estimator, data)
    if clusters is None:
        model = label_model(call, estimator, key)
        draws = model.draws(model.scores)
        null, gaps = null_values(call, estimator, draws, model.problems, bins)
    elif bins is None or estimator.debias:
        rule = "must be a binned error without debias in a test with groups"
        reason = "that depends on labels by the gaps of its bins alone"
        raise InputError("estimator", f"{rule}: {reason}", value=estimator)
    else:
        statistic, draws = GroupGaps(estimator, clusters), CountDraws(key, clusters.count)
        problems = [Problem(sample) for sample in data.samples()]
        null, gaps = null_values(call, statistic, draws, problems, bins)
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
        as in `fastece.bootstrap`. For binned errors without `debias` only.

    Returns
    -------
    CalibrationTestResult, or for a list of estimators a dict of them, as of `fastece.bootstrap`

    Raises
    ------
    ValueError, TypeError
        As in `fastece.bootstrap`; for another estimator with `groups`.

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
    group depend on each other; groups are independent. Then the gap of a bin ``D_b = sum_g D_gb``
    is a sum over groups g of numbers with mean 0, and a replicate has ``sum_g m_g D_gb`` with
    random m_g of mean 0 and variance 1, one for all bins and classes: the wild cluster bootstrap
    (Cameron, Gelbach and Miller 2008, "Bootstrap-based improvements for inference with clustered
    errors"). They are Poisson counts less 1, whose third moment is 1 as well (Mammen 1993,
    "Bootstrap and wild bootstrap for high dimensional linear models"), since gaps are skewed: who
    is sure is seldom wrong, but then by much. Edges and weights of bins stay as they are.
    ``docs/intervals.md`` has the rate of false alarms: about 5 %, and with 20 groups of rows that
    are much alike up to 8 %. Groups of one row each are the test without groups.

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
