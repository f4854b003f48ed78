"""A test of calibration: the error beside the errors that chance alone gives."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, Unpack, overload

import numpy as np

from fastece.data.doubts import impossible_rows
from fastece.data.errors import InputError, InputTypeError
from fastece.data.options import GroupKeyword, shows_options
from fastece.data.samples import Sample
from fastece.display.numbers import smallest_p
from fastece.display.results import EstimatorResult, Record, Results
from fastece.estimators.base import Estimator, Statistic
from fastece.estimators.binned import Binned, Bins
from fastece.estimators.draws import Counts, TableCounts, columns
from fastece.estimators.table import change, find_estimator
from fastece.kernels.types import F64
from fastece.resampling.adaptive import (
    ADAPTIVE,
    COMPONENTS,
    AdaptiveTest,
    Component,
    compute_components,
    min_p_statistics,
)
from fastece.resampling.arguments import (
    ResamplingKeywords,
    add_groups,
    read_call,
    require_calibration_error,
)
from fastece.resampling.call import (
    Call,
    average_classes,
    calls_on_problems,
    collect_results,
    compute_values,
    result_fields,
    with_single_copies,
)
from fastece.resampling.draws import ReplicateDraws, new_key
from fastece.resampling.engine import evaluate, plan_replicates, ranges
from fastece.resampling.hosmer_lemeshow import HosmerLemeshow, chi_squared_p_value
from fastece.resampling.intervals import as_float, p_value_of, quantiles, tails_of
from fastece.resampling.labels import make_label_model
from fastece.resampling.outcome_sums import NullModel, make_outcome_sums, rows_or_cells
from fastece.resampling.parts import join_results, results_of_parts
from fastece.resampling.problem import Problem

# Replicates that a band is made of, as the gaps of all bins of all classes are kept.
BAND_REPLICATES = 1999
# Gaps that are kept at most, 400 MB, unless there were fewer replicates than the next number.
MAX_GAPS = 5 * 10**7
# The fewest replicates whose quantiles are of use at the usual levels.
MIN_REPLICATES = 199
# The value of `n_resamples` for which replicates are drawn until a p-value is known.
AUTO = "auto"
# Numbers of replicates after which such a test may stop. Each makes small p-values four times as
# small, and the last one takes 64 times as long as the first.
ROUNDS = (1999, 7999, 31999, 127999)
# It stops when so many replicates are as extreme as the data. Their number has a standard deviation
# of 18 % then, so that the p-value is within a factor of 1.5 of its limit in 97 of 100 tests.
MIN_EXTREME = 30
# Estimators of tests alone.
TESTS = {"adaptive": ADAPTIVE, "hosmer_lemeshow": HosmerLemeshow()}
# Errors closer than this are equal: sums in another order round otherwise.
ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class ConsistencyBand(Record):
    """Expected range of the observed frequency in each bin for a calibrated model.

    Attributes
    ----------
    low, high : (B,) float64 array
        Ends of the central range that has the share `confidence_level` of the replicates, for each
        bin by itself; nan where it is empty.
    confidence_level : float
    """

    low: F64 = field(repr=False)
    high: F64 = field(repr=False)
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
        ``T* <= T``, and it is ``1 / (n_resamples + 1)`` if an outcome had the probability 0.
    null_distribution : (n_resamples,) or (K, n_resamples) float64 array
        The statistic for labels that are drawn with the predicted probabilities.
    band : ConsistencyBand, list of K of them, or None
        The band of the reliability diagram of the estimator, or of each class; with "adaptive" the
        estimator is "ece". None without bins.
    components : tuple, list of K tuples, or None
        Of "adaptive" a row (name, statistic, p_value) for each of its statistics; else None.

    Also ``n``, ``n_groups``, ``key``, ``estimator`` and ``setting``, as in `BootstrapResult`.
    """

    p_value: Any
    null_distribution: F64 = field(repr=False)
    band: Any = field(repr=False)
    components: Any = None

    _arrays: ClassVar[tuple[str, ...]] = ("value", "p_value", "null_distribution")
    _lists = ("band", "components")

    @property
    def _sample(self) -> str:
        return f"{super()._sample}, {self.null_distribution.shape[-1]} replicates"

    @property
    def _numbers(self) -> dict[str, Any]:
        if self.components is None:
            mean = as_float(self.null_distribution.mean(-1))
            return {"value": self.value, "if_calibrated": mean, "p_value": self.p_value}
        return {"p_value": self.p_value, **self._p_values_of_components()}

    def _smallest_p_value(self, name: str) -> float | None:  # noqa: ARG002
        return smallest_p(self.null_distribution.shape[-1])

    def _p_values_of_components(self) -> dict[str, Any]:
        """Return the p-value, or the p-values of all classes, of each component by name."""
        if not np.ndim(self.value):
            return {f"{x.name}_p_value": x.p_value for x in self.components}
        return {
            f"{name}_p_value": np.array([of_class[i].p_value for of_class in self.components])
            for i, name in enumerate(COMPONENTS)
        }


@dataclass(frozen=True, eq=False, kw_only=True)
class HosmerLemeshowResult(CalibrationTestResult):
    """Test of Hosmer and Lemeshow, with the chi-squared law beside the draws.

    Attributes
    ----------
    df : int or (K,) int64 array
        Degrees of freedom: the groups that have rows, less 2 with ``fitted_here=True``; nan for a
        mean over classes.
    asymptotic_p_value : float or (K,) float64 array
        Probability that a chi-squared variable exceeds the value; nan without degrees of freedom,
        and where rows depend on each other, in groups or as votes.

    All else is as in `CalibrationTestResult`.
    """

    df: Any
    asymptotic_p_value: Any

    _arrays = (*CalibrationTestResult._arrays, "df", "asymptotic_p_value")

    @property
    def _numbers(self) -> dict[str, Any]:
        return {**super()._numbers, "df": self.df, "chi_squared_p_value": self.asymptotic_p_value}

    def _smallest_p_value(self, name: str) -> float | None:
        return None if name == "chi_squared_p_value" else super()._smallest_p_value(name)


# --- estimators with bins -------------------------------------------------------------------


def has_cells(estimator: Any) -> bool:
    """Decide whether an error is a norm of the gaps of bins."""
    return estimator.bins is not None and estimator.is_norm_of_gaps


class WithGaps(Statistic):
    """The value of a binned estimator and, after it, the gap of each bin."""

    def __init__(self, binned: Any) -> None:
        self.binned = binned
        self.needs_sorted = binned.needs_sorted

    def prepare(self, sample: Sample, size: int) -> Any:
        """Prepare the estimator on a sample."""
        return self.binned.prepare(sample, size)

    def values(self, plan: Any, draws: Counts | TableCounts) -> F64:
        """Compute values and gaps (1 + B, R) of replicates."""
        if isinstance(draws, TableCounts):
            sums = [self.binned.bins_of_counts(plan, c) for c in columns(draws.c)]
            errors = [self.binned.errors(bins) for bins in sums]
            return np.vstack([np.concatenate(errors), np.concatenate([x.gap for x in sums]).T])
        bins = plan.bins(draws)
        return np.vstack([self.binned.errors(bins), bins.gap.T])


# --- the null distribution ------------------------------------------------------------------


@dataclass(frozen=True)
class NullDistribution:
    """Values (K, R) of a statistic of a calibrated model, and gaps of bins for a band.

    The gaps (K, B, R') belong to the first replicates, as many as a band is made of; None without
    bins.
    """

    values: F64
    gaps: F64 | None


def draw_null(call: Call, estimator: Any, bins: Bins | None, key: int) -> NullDistribution:
    """Draw labels from the predicted probabilities, and compute a statistic of each."""
    model = make_label_model(call, estimator, key)
    draws = model.draws(model.scores)
    end = call.n_resamples
    if bins is None:
        return NullDistribution(
            null_values(call, estimator, model.problems, draws, range(end)), None
        )
    n_band = min(end, max(MIN_REPLICATES, min(BAND_REPLICATES, MAX_GAPS // bins.gap.size)))
    with_gaps = null_values(call, WithGaps(estimator), model.problems, draws, range(n_band))
    values = with_gaps[:, 0]
    gaps = with_gaps[:, 1:]
    if n_band < end:
        others = null_values(call, estimator, model.problems, draws, range(n_band, end))
        values = np.concatenate([values, others], axis=-1)
    return NullDistribution(values, gaps)


def null_values(
    call: Call, statistic: Any, problems: Sequence[Problem], draws: ReplicateDraws, numbers: range
) -> F64:
    """Compute the values (K, ..., R) of a statistic on replicates of some numbers."""
    plan = plan_replicates([statistic], problems, draws, [call.n] * len(problems))
    return evaluate(plan, numbers.start, numbers.stop, call.workers)


def draw_binned_null(
    call: Call, binned: Binned, bins: Bins, key: int, formula: Binned | HosmerLemeshow
) -> NullDistribution:
    """Compute the distribution as `draw_null` does, from sums of the outcomes in bins.

    `formula` computes the errors from the gaps of the bins.
    """
    data = rows_or_cells(call, "the test")
    model = NullModel(call, data, make_outcome_sums(binned, data, bins.gap.shape[1]), key)
    step = max(MIN_REPLICATES, MAX_GAPS // bins.gap.size)
    values: list[F64] = []
    gaps_of_band: F64 | None = None
    for first, last in ranges(0, call.n_resamples, step):
        gaps = model.draw(first, last) - bins.score[:, :, None]
        if gaps_of_band is None:
            gaps_of_band = gaps[:, :, :BAND_REPLICATES]
        values.append(errors_of_gaps(formula, bins, gaps))
    return NullDistribution(np.concatenate(values, axis=1), gaps_of_band)


def errors_of_gaps(formula: Binned | HosmerLemeshow, bins: Bins, gaps: F64) -> F64:
    """Compute the errors (K, R) of replicates with gaps (K, B, R) in the same bins."""
    n_replicates = gaps.shape[2]
    errors = []
    for k, gap in enumerate(gaps.swapaxes(1, 2)):
        replicates = Bins(
            edges=[],
            unit=bins.unit,
            total=np.full(n_replicates, bins.total[k]),
            gap=gap,
            weight=np.tile(bins.weight[k], (n_replicates, 1)),
            score=np.tile(bins.score[k], (n_replicates, 1)),
            square=None if bins.square is None else np.tile(bins.square[k], (n_replicates, 1)),
        )
        errors.append(formula.errors(replicates))
    return np.array(errors)


# --- results --------------------------------------------------------------------------------


def calibration_result(call: Call, name: str, key: int) -> CalibrationTestResult:
    """Test the only model of a call with one estimator."""
    estimator = call.estimators[name]
    if call.tables[0].has_own_rows:
        return separate_result(call, name, key)
    if isinstance(estimator, AdaptiveTest):
        return adaptive_result(call, name, key)
    if isinstance(estimator, HosmerLemeshow):
        return hosmer_lemeshow_result(call, name, key)
    data = rows_or_cells(call, "the test") if has_cells(estimator) else call.rows
    bins = None if estimator.bins is None else estimator.bins(data)
    if bins is not None and has_cells(estimator):
        null = draw_binned_null(call, estimator, bins, key, formula=estimator)
    else:
        null = draw_null(call, estimator, bins, key)
    value = compute_values(call, name)[0]
    return CalibrationTestResult(
        **null_fields(call, value, null),
        band=make_bands(bins, null.gaps, call.level, data.setting.per_class),
        **result_fields(call, name, key),
    )


def separate_result(call: Call, name: str, key: int) -> CalibrationTestResult:
    """Test problems with rows of their own: each by itself, or their mean error.

    The adaptive test of all has the smallest of their statistics, under the same draws.
    """
    call = with_single_copies(call)
    table = call.tables[0]
    estimator = call.estimators[name]
    if isinstance(estimator, HosmerLemeshow) and not call.per_class:
        raise table.lack("the mean of tests of Hosmer and Lemeshow")
    results = [calibration_result(part, name, key) for part in calls_on_problems(call)]
    values = np.array([result.value for result in results])
    distributions = np.array([result.null_distribution for result in results])
    bands = [result.band for result in results]
    fields: dict[str, Any] = {
        **result_fields(call, name, key),
        "band": None if bands[0] is None else bands,
    }
    if call.per_class:
        return join_results(results, **result_fields(call, name, key))
    if isinstance(estimator, AdaptiveTest):
        p_value_of_each = [result.p_value for result in results]
        names = [table.name(k) for k in range(len(results))]
        fields["components"] = tuple(map(Component, names, values.tolist(), p_value_of_each))
        value = float(values.min())
        distribution = distributions.min(axis=0)
        p_value = smallest_if_impossible(call, p_value_of(-values.min(), -distribution))
    else:
        value = float(table.average(values))
        distribution = table.average(distributions)
        p_value = p_value_of(value - ROUNDING, distribution)
    return CalibrationTestResult(
        value=value, p_value=p_value, null_distribution=distribution, **fields
    )


def null_fields(call: Call, value: Any, null: NullDistribution) -> dict[str, Any]:
    """Return the fields of a result that compare a value with the null distribution."""
    distribution = average_classes(call, null.values)
    return {
        "value": value,
        "p_value": p_value_of(np.asarray(value) - ROUNDING, distribution),
        "null_distribution": distribution,
    }


def adaptive_result(call: Call, name: str, key: int) -> CalibrationTestResult:
    """Test the only model of a call with several statistics under the same draws."""
    test_of_ece = calibration_result(call.with_estimator(call.estimators[name].ece), "", key)
    components = compute_components(call, key, test_of_ece.value, test_of_ece.null_distribution)
    smallest = min_p_statistics(components)
    value = smallest[..., 0]
    distribution = smallest[..., 1:]
    return replace(
        test_of_ece,
        value=as_float(value),
        p_value=smallest_if_impossible(call, p_value_of(-value, -distribution)),
        null_distribution=distribution,
        components=components.of_data(),
        **result_fields(call, name, key),
    )


def smallest_if_impossible(call: Call, p_value: Any) -> Any:
    """Return a p-value, or the smallest one if an outcome had the probability 0.

    No draw has such an outcome, so the data are more extreme than all of them.
    """
    smallest = 1 / (call.n_resamples + 1)
    return as_float(np.where(find_impossible(call), np.minimum(p_value, smallest), p_value))


def find_impossible(call: Call) -> Any:
    """Decide for each class, or for all, whether an outcome had the probability 0."""
    of_problem = np.array([rows.any() for rows in impossible_rows(call.tables[0])])
    return of_problem if call.per_class else of_problem.any()


def hosmer_lemeshow_result(call: Call, name: str, key: int) -> HosmerLemeshowResult:
    """Test the only model of a call with the statistic of Hosmer and Lemeshow."""
    test: HosmerLemeshow = call.estimators[name]
    data = rows_or_cells(call, "the test")
    bins = test.binned.bins(data, kinds=test.kinds)
    null = draw_binned_null(call, test.binned, bins, key, formula=test)
    statistics = test.errors(bins)
    # A mean over classes has no chi-squared law.
    df: Any = math.nan
    asymptotic: Any = math.nan
    if call.per_class or statistics.size == 1:
        degrees_of_freedom = test.degrees_of_freedom(bins)
        df = degrees_of_freedom if call.per_class else int(degrees_of_freedom[0])
        if call.clusters is None:
            p_values = chi_squared_p_value(statistics, degrees_of_freedom)
            asymptotic = as_float(average_classes(call, p_values))
    value = as_float(average_classes(call, statistics))
    return HosmerLemeshowResult(
        **null_fields(call, value, null),
        band=make_bands(bins, null.gaps, call.level, data.setting.per_class),
        df=df,
        asymptotic_p_value=asymptotic,
        **result_fields(call, name, key),
    )


def make_bands(bins: Bins | None, gaps: F64 | None, level: float, per_class: bool) -> Any:
    """Make the band of each problem, or of the only one; None without bins."""
    if bins is None or gaps is None:
        return None
    bands = [make_band(bins, k, gap, level) for k, gap in enumerate(gaps)]
    return bands if per_class else bands[0]


def make_band(bins: Bins, k: int, gaps: F64, level: float) -> ConsistencyBand:
    """Compute the band of problem k from its bins and the gaps (B, R) of replicates."""
    weight = np.where(bins.weight[k] > 0, bins.weight[k], np.nan)
    ends = (quantiles(gaps, tails_of(level)) + bins.score[k][:, None]) / weight[:, None]
    low, high = ends.clip(0.0, 1.0).T  # rounding may carry an end beyond
    return ConsistencyBand(low, high, level)


def find_test(estimator: Any, fields: dict[str, Any], reader_options: Sequence[str]) -> Any:
    """Find an estimator, or a test by its name."""
    test = TESTS.get(estimator) if isinstance(estimator, str) else None
    if test is None:
        return find_estimator(estimator, fields, reader_options)
    return change(test, fields, reader_options)


def calibration_results(call: Call, rng: Any) -> Any:
    """Compute the result of a call on one model, or `Results` by estimator name."""
    require_calibration_error(call, "calibration_test")
    key = new_key(rng)
    return collect_results(call, lambda name: calibration_result(call, name, key))


def sequential_results(call: Call, rng: Any) -> Any:
    """Compute results with replicates until p-values are known, by estimator name."""
    require_calibration_error(call, "calibration_test")
    key = new_key(rng)
    return collect_results(call, lambda name: sequential_result(call, name, key))


def sequential_result(call: Call, name: str, key: int) -> CalibrationTestResult:
    """Test with more replicates until enough of them are as extreme as the data.

    The result is the one that as many replicates would give from the beginning.
    """
    is_impossible = find_impossible(call)
    for n_resamples in ROUNDS:
        result = calibration_result(replace(call, n_resamples=n_resamples), name, key)
        n_extreme = np.rint(np.asarray(result.p_value) * (n_resamples + 1)) - 1
        is_known = ~(n_extreme < MIN_EXTREME)  # so is nan
        if (is_known | is_impossible).all():
            break
    return result


class CalibrationTestKeywords(ResamplingKeywords, GroupKeyword, total=False):
    """The keywords of `calibration_test`, with a parameter of a test."""

    fitted_here: bool


@overload
def calibration_test(
    y_true: Any, y_prob: Any = ..., *, estimator: list[Any] | tuple[Any, ...],
    n_resamples: int | Literal["auto"] = ..., average: Literal["macro"] | None = ...,
    rng: Any = ..., groups: Any = ..., **options: Unpack[CalibrationTestKeywords],
) -> Results[CalibrationTestResult]: ...  # fmt: skip
@overload
def calibration_test(
    y_true: Any, y_prob: Any = ..., *, estimator: str | Estimator = ...,
    n_resamples: int | Literal["auto"] = ..., average: Literal["macro"] | None = ...,
    rng: Any = ..., groups: Any = ..., **options: Unpack[CalibrationTestKeywords],
) -> CalibrationTestResult: ...  # fmt: skip
@shows_options
def calibration_test(
    y_true: Any, y_prob: Any = None, *, estimator: Any = "adaptive",
    n_resamples: int | Literal["auto"] = 1999, average: Literal["macro"] | None = "macro",
    rng: Any = 0, groups: Any = None, **options: Unpack[CalibrationTestKeywords],
) -> Any:  # fmt: skip
    """Test whether a model is calibrated, by labels drawn as if it were.

    Parameters
    ----------
    y_true, y_prob, average, **options
        As in `fastece.bootstrap`, without `size` and `method`; `confidence_level` is the level of
        the band.
    estimator : str or object, or a list of them, default "adaptive"
        As in `fastece.ece`: a calibration error; or "adaptive", which looks for miscalibration of
        several shapes, and takes `n_bins`; or "hosmer_lemeshow", which takes `n_bins`, 10 by
        default, and `fitted_here`. The estimators of a list share every draw.
    n_resamples : int or "auto", default 1999
        Number of replicates. "auto" draws 1999 of them, and more only if the p-value is so small
        that fewer than 30 are as extreme as the data: 7999, 31 999 or at most 127 999.
    rng : None, int or numpy.random.Generator, default 0
        Seed: the same seed gives the same result. None: other draws in every call.
    groups : (n,) array_like, optional
        Rows with the same label here belong together, so that their labels are not independent:
        as in `fastece.bootstrap`.

    Returns
    -------
    CalibrationTestResult, or for a list of estimators a dict of them, as in `fastece.bootstrap`
        Of "hosmer_lemeshow" it also has `df` and `asymptotic_p_value`.

    Raises
    ------
    ValueError, TypeError
        As in `fastece.bootstrap`.

    Notes
    -----
    ``p = (1 + #{T* >= T}) / (n_resamples + 1)`` with the error T of the data and the errors T* of
    the replicates: the level is exact. Under the hypothesis a label is drawn with the predicted
    probabilities: an outcome 1 with the probability s, or, for the classes of a class vector
    together, a class with its probability. The scores stay as they are, so bins do too.

    "adaptive" takes the smallest p-value of three statistics, and its own p-value is the share of
    draws, the data among them, whose smallest p-value is as small: exact whatever the three have in
    common (Westfall and Young 1993, "Resampling-based multiple testing", section 2.3). They are

    - *slope*: the score test of intercept and slope of a logistic recalibration (Cox 1958, "Two
      further applications of a model for binary regression"), with 2 degrees of freedom;
    - *smooth*: a smooth test (Neyman 1937, "Smooth test for goodness of fit") of intercept, logit,
      its square and 13 cosines of the share of the variance below a score, made orthogonal:
      ``sum_k q_k**2 / k**0.75``;
    - *ece*: the error of `n_bins` equal-width bins, 15 by default.

    With ``n_resamples="auto"`` replicates are drawn in rounds, until 30 of them are as extreme as
    the data (after Besag and Clifford 1991, "Sequential Monte Carlo p-values", who draw one at a
    time). The result is the one of so many replicates from the beginning. The test keeps its level:
    it reports a p-value of at most alpha only if one round, the first whose
    ``31 / (n_resamples + 1)`` is at most alpha or else the last, has such a p-value by itself. A
    p-value is known to a factor of 1.5, in 97 of 100 tests, if it is at least 0.00024. A smaller
    one takes all rounds, 85 times as long as the first alone, and is at least 1 / 128 000. After an
    outcome that had the probability 0 there is one round, as no number of replicates is enough.

    An outcome that had the predicted probability 0 refutes the hypothesis: the p-value is then
    ``1 / (n_resamples + 1)``, whatever the three show.

    For the first two the scores are summed up in 256 equal-mass bins, with tied scores together.
    With several classes each statistic is the mean over the classes.

    "hosmer_lemeshow" is ``sum_g (O_g - E_g)**2 / (E_g (1 - E_g / n_g))`` over ten groups of equal
    size, with the rows n_g, the events O_g and the expected events E_g of each (Hosmer and Lemeshow
    1980, "Goodness of fit tests for the multiple logistic regression model"). Its p-value comes
    from draws and is exact; `asymptotic_p_value` comes from the chi-squared law with `df` degrees
    of freedom: 10 for rows that the model was not fitted to, and 8 with ``fitted_here=True``, for a
    logistic regression that was fitted to these rows. Draws are not fitted again, so their p-value
    is then too large. It is here because journals require it: it depends on where the groups are
    cut, says nothing of the direction, and finds a wrong slope less often than the adaptive test.

    With another estimator the test follows Vaicenavicius et al. (2019, "Evaluating model
    calibration in classification", section 5), and the band follows Bröcker and Smith (2007,
    "Increasing the reliability of reliability diagrams"). "canonical" and "skce" test whole class
    vectors: with setting "auto" a label is one of all classes.

    With `groups` the hypothesis is that outcomes are 1 as often as the scores predict, however the
    outcomes of one group depend on each other; groups are independent. Then a label is decided by
    the random number of its group with a probability, and otherwise by one of its own, so it comes
    as often as without groups, and the covariance of two labels of a group is a part of the largest
    one that their probabilities allow. That part is estimated from products of residuals of two
    rows of one group, rather too large than too small: with it, three quarters of all samples show
    more dependence than the data. ``docs/evidence/coverage.md`` has the rate of false alarms.
    Groups of one row each are the test without groups. The votes of a soft label are such a group.

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
    >>> y = rng.random(1000) < p**1.2
    >>> result = calibration_test(y, p, n_resamples="auto")
    >>> result.null_distribution.size, f"{result.p_value:.2g}"
    (31999, '0.0012')
    """
    is_sequential = isinstance(n_resamples, str) and n_resamples == AUTO
    if isinstance(n_resamples, str) and not is_sequential:
        raise InputTypeError("n_resamples", f"must be an integer or {AUTO!r}", value=n_resamples)
    call = read_call(
        "calibration_test", y_true, {"y_prob": y_prob}, 1, find_test, estimator=estimator,
        n_resamples=ROUNDS[0] if is_sequential else n_resamples, average=average, **options,
    )  # fmt: skip
    call = add_groups(call, groups, y_prob)
    if call.tables[0].by is None:
        return sequential_results(call, rng) if is_sequential else calibration_results(call, rng)
    if is_sequential:
        rule = "must be an integer with {by}, as all groups have so many"
        raise InputError("n_resamples", rule, value=AUTO)
    return results_of_parts(call, rng, calibration_results)
