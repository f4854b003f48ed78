"""A test of calibration: the error beside the errors that chance alone gives."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import singledispatch
from typing import Any, overload

import numpy as np

from fastece.data.samples import Sample
from fastece.data.sources import Source
from fastece.display.results import EstimatorResult, Record, Results
from fastece.estimators.base import Counts, Estimator, Statistic
from fastece.estimators.binned import Binned, Bins
from fastece.estimators.table import change, find_estimator
from fastece.kernels.types import F64
from fastece.resampling.adaptive import ADAPTIVE, COMPONENTS, AdaptiveTest, adaptive_values
from fastece.resampling.arguments import Call, add_groups, read_call, require_calibration_error
from fastece.resampling.draws import new_key
from fastece.resampling.engine import Problem
from fastece.resampling.labels import drawn_hits, hit_sums, label_model, rows_or_cells
from fastece.resampling.results import as_float, p_value_of, quantiles, tails_of

# Replicates that a band is made of: the gaps of all bins of all classes are kept, up to 400 MB, or
# of the fewest replicates whose quantiles say anything.
BAND_REPLICATES, LEAST_REPLICATES, MOST_GAPS = 1999, 199, 5 * 10**7
# Estimators of tests alone.
TESTS = {"adaptive": ADAPTIVE, "hosmer_lemeshow": Binned(10, edges="quantile", norm=2)}
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
        The value of `fastece.ece`; of "adaptive" the smallest p-value of the components.
    p_value : float or (K,) float64 array
        ``(1 + #{T* >= T}) / (n_resamples + 1)``, with errors that differ by no more than 1e-12
        being equal; nan where the value or a replicate is. Of "adaptive" small values count:
        ``T* <= T``.
    null_distribution : (n_resamples,) or (K, n_resamples) float64 array
        The statistic for labels that are drawn with the predicted probabilities.
    band : ConsistencyBand, list of K of them, or None
        For the reliability diagram of the estimator, or of each class; of "adaptive" for that of
        "ece". None without bins.
    components : tuple, list of K tuples, or None
        Of "adaptive" a row (name, statistic, p_value) for each of its statistics; else None.

    Also ``n``, ``n_groups``, ``key``, ``estimator`` and ``setting``, as of `BootstrapResult`.
    """

    p_value: Any
    null_distribution: F64 = field(repr=False)
    band: Any = field(repr=False)
    components: Any = None

    @property
    def _sample(self) -> str:
        return f"{super()._sample}, {self.null_distribution.shape[-1]} replicates"

    @property
    def _numbers(self) -> dict[str, Any]:
        if self.components is not None:
            of_classes = np.ndim(self.value) > 0
            each: Any = zip(*self.components, strict=True) if of_classes else self.components
            numbers = {"p_value": self.p_value}
            for name, x in zip(COMPONENTS, each, strict=True):
                p = np.array([one.p_value for one in x]) if of_classes else x.p_value
                numbers[f"{name}_p_value"] = p
            return numbers
        mean = as_float(self.null_distribution.mean(-1))
        return {"value": self.value, "if_calibrated": mean, "p_value": self.p_value}


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
        bins = plan.bins(draws)
        return np.vstack([self.binned.errors(bins), bins.gap.T])


@singledispatch
def bins_of(estimator: Any, problems: Source) -> Bins | None:  # noqa: ARG001
    """Return the bins of a band; None for an estimator without bins."""
    return None


@bins_of.register
def _(estimator: Binned, problems: Source) -> Bins | None:
    return estimator.bins(problems)


def has_cells(estimator: Any) -> bool:
    """Decide whether an error is a norm of the gaps of bins, of which hits are enough."""
    return type(estimator) is Binned and not estimator.debias


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
    data, gaps = rows_or_cells(call, "the test"), np.empty(0)
    values: list[list[F64]] = []
    n_bins, step = bins.gap.shape[1], max(LEAST_REPLICATES, MOST_GAPS // bins.gap.size)
    sums = hit_sums(binned, data, n_bins)
    for first in range(0, call.n_resamples, step):
        last = min(first + step, call.n_resamples)
        hits = sum(drawn for _, drawn in drawn_hits(call, data, sums, key, first, last))
        gap = (hits - bins.score[:, :, None]).swapaxes(1, 2)
        gaps = gaps if values else gap[:, :BAND_REPLICATES].swapaxes(1, 2)
        weight = np.broadcast_to(bins.weight[:, None], gap.shape)
        total = np.broadcast_to(bins.total[:, None], gap.shape[:2])
        each = zip(total, gap, weight, strict=True)
        values.append([binned.errors(Bins([], bins.unit, t, g, w)) for t, g, w in each])
    return np.concatenate(values, axis=1), gaps


def calibration_result(call: Call, name: str, key: int) -> CalibrationTestResult:
    """Test the only model of a call with one estimator."""
    estimator = call.estimators[name]
    if isinstance(estimator, AdaptiveTest):
        return adaptive_result(call, name, key)
    data = rows_or_cells(call, "the test") if has_cells(estimator) else call.models[0]
    bins = bins_of(estimator, data)
    if bins is not None and has_cells(estimator):
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


def adaptive_result(call: Call, name: str, key: int) -> CalibrationTestResult:
    """Test the only model of a call with several statistics under the same draws."""
    found = calibration_result(call.only(call.estimators[name].ece), "", key)
    value, null, components = adaptive_values(call, key, found.value, found.null_distribution)
    p_value = p_value_of(-np.asarray(value), -null)
    return replace(
        found, value=as_float(value), p_value=p_value, null_distribution=null,
        components=components, **call.facts(name, key),
    )  # fmt: skip


def band_of(bins: Bins, k: int, gaps: F64, level: float) -> ConsistencyBand:
    """Compute the band of problem k from its bins and the gaps (B, R) of replicates."""
    weight = np.where(bins.weight[k] > 0, bins.weight[k], np.nan)
    ends = (quantiles(gaps, tails_of(level)) + bins.score[k][:, None]) / weight[:, None]
    low, high = ends.clip(0.0, 1.0).T  # rounding
    return ConsistencyBand(low, high, level)


def find_test(estimator: Any, fields: dict[str, Any], function: str) -> Any:
    """Find an estimator, or a test by its name."""
    known = TESTS.get(estimator) if isinstance(estimator, str) else None
    if known is None:
        return find_estimator(estimator, fields, function)
    return change(known, fields, function)


def calibration_results(call: Call, rng: Any) -> Any:
    """Compute the result of a call on one model, or `Results` by estimator name."""
    require_calibration_error(call, "calibration_test")
    key = new_key(rng)
    return call.results(lambda name: calibration_result(call, name, key))


@overload
def calibration_test(
    y_true: Any, y_prob: Any = ..., *, estimator: list[Any] | tuple[Any, ...], **options: Any
) -> Results[CalibrationTestResult]: ...
@overload
def calibration_test(
    y_true: Any, y_prob: Any = ..., *, estimator: str | Estimator = ..., **options: Any
) -> CalibrationTestResult: ...
def calibration_test(
    y_true: Any, y_prob: Any = None, *, estimator: Any = "adaptive", n_resamples: int = 1999,
    rng: Any = 0, groups: Any = None, **options: Any,
) -> Any:  # fmt: skip
    """Test whether a model is calibrated, by labels drawn as if it were.

    Parameters
    ----------
    y_true, y_prob, **options
        As in `fastece.bootstrap`, but no `size` and `method`; `confidence_level` is that of the
        band.
    estimator : str or object, or a list of them, default "adaptive"
        As in `fastece.ece`: a calibration error; or "adaptive", which looks for miscalibration of
        several shapes, and takes `n_bins`; or "hosmer_lemeshow", ten equal-mass bins with squared
        gaps. Several share every draw.
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
    scores stay as they are, so bins do too.

    "adaptive" takes the smallest p-value of three statistics, and its own p-value is the share of
    draws, the data among them, whose smallest p-value is as small: exact whatever the three have in
    common (Westfall and Young 1993, "Resampling-based multiple testing", section 2.3). They are

    - *slope*: the score test of intercept and slope of a logistic recalibration (Cox 1958, "Two
      further applications of a model for binary regression"), with 2 degrees of freedom;
    - *smooth*: a smooth test (Neyman 1937, "Smooth test for goodness of fit") of intercept, logit,
      its square and 13 cosines of the share of the variance below a score, made orthogonal:
      ``sum_k q_k**2 / k**0.75``;
    - *ece*: the error of `n_bins` equal-width bins, 15 by default.

    For the first two the scores are summed up in 256 equal-mass bins, with tied scores together.
    Of several classes each statistic is the mean over the classes.

    "hosmer_lemeshow" is ``"ece_a"`` with 10 bins and `norm` 2, the statistic of Hosmer and Lemeshow
    (1980, "Goodness of fit tests for the multiple logistic regression model") without its division
    by binomial variances, here with an exact level. It is there because journals ask for it: it
    depends on the bins, and finds slopes less often than the adaptive test.

    With another estimator the test is that of Vaicenavicius et al. (2019,
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
    groups. The votes of a soft label are such a group.

    Examples
    --------
    >>> import numpy as np
    >>> from fastece import calibration_test
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(1000)
    >>> y = rng.random(1000) < p
    >>> print(calibration_test(y, p, n_resamples=999))
    adaptive, setting binary: 1000 rows, 999 replicates
      p-value         0.77
      slope p-value   0.67
      smooth p-value  0.53
      ece p-value     0.54
    >>> print(calibration_test(y, p, estimator="ece", n_resamples=999))
    Binned(n_bins=15), setting binary: 1000 rows, 999 replicates
      value          0.0374
      if calibrated  0.0384
      p-value        0.54
    >>> result = calibration_test(rng.random(1000) < p**1.2, p, n_resamples=999)
    >>> [(x.name, round(x.p_value, 3)) for x in result.components]
    [('slope', 0.001), ('smooth', 0.001), ('ece', 0.005)]
    """
    options |= {"estimator": estimator, "n_resamples": n_resamples}
    call = read_call("calibration_test", y_true, {"y_prob": y_prob}, 1, find_test, **options)
    return calibration_results(add_groups(call, groups, y_prob), rng)
