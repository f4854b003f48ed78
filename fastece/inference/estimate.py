"""Estimates: a calibration error with an interval that covers the true error."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from inspect import signature
from typing import Any, Literal, Unpack, overload

import numpy as np

from fastece.data.errors import InputError, InputTypeError
from fastece.data.options import GroupKeyword, shows_options
from fastece.data.samples import Sample
from fastece.data.table import SQUARES
from fastece.display.numbers import ConfidenceInterval, smallest_p
from fastece.display.results import Results
from fastece.estimators.base import Estimator
from fastece.inference.binned_cells import binned_cells
from fastece.inference.cell_curves import cell_curve
from fastece.inference.cells import GapCells, join_cells
from fastece.inference.density_cells import density_cells
from fastece.inference.inversion import NO_CURVE, NO_VALUES, ConfidenceCurve
from fastece.inference.label_curves import label_curve
from fastece.inference.mean_gap import mean_gap
from fastece.inference.results import Floor, intervals_of
from fastece.kernels.types import F64
from fastece.resampling.arguments import (
    ResamplingKeywords,
    add_groups,
    read_call,
    require_calibration_error,
)
from fastece.resampling.calibration_test import has_cells
from fastece.resampling.call import (
    Call,
    calls_on_problems,
    collect_results,
    compute_values,
    result_fields,
    with_single_copies,
)
from fastece.resampling.draws import new_key
from fastece.resampling.intervals import as_float
from fastece.resampling.naming import describe
from fastece.resampling.parts import join_results, results_of_parts
from fastece.resampling.results import IntervalResult

# Up to so many rows the prior of a posterior may speak louder than the data.
MAX_PRIOR_ROWS = 30
# The exponential of a larger logarithm of a Bayes factor is no finite number.
MAX_LOG_FACTOR = 700.0
NO_GAP = 0.0, ConfidenceInterval(0.0, 0.0)
POSTERIOR = "posterior"
INVERSION = "test inversion"


@dataclass(frozen=True, eq=False, kw_only=True)
class Estimate(IntervalResult):
    """Calibration error with an interval that has its stated coverage.

    Attributes
    ----------
    value : float or (K,) float64 array
        The error: the posterior mean of an estimator with a posterior, and otherwise the value of
        `fastece.ece`.
    confidence_interval : ConfidenceInterval
        ``(low, high)`` at `confidence_level`.
    confidence_level : float
    p_value : float, (K,) float64 array or None
        P-value of the hypothesis that labels come true as often as the probabilities say. The
        interval begins at 0 exactly where it is more than 1 - `confidence_level`. None for
        "posterior".
    method : {"posterior", "test inversion"}
    n_resamples : int
        How many replicates of a calibrated model the interval and the p-value are made from: fewer
        than the caller's number where cells are many, as with densities of very sharp scores; 0 for
        "posterior".
    floor : Floor
        ``(mean, high)`` of a calibrated model with the same scores, at `confidence_level`: what
        chance alone shows. A property: of a posterior it is worked out when it is read.
    probability_calibrated : float or (K,) float64 array
        Of "posterior": the probability that the model is calibrated, if it was 1/2 before the rows
        were seen, ``1 / (1 + B)`` with the Bayes factor B of a curve; nan of others. A mean over
        classes is calibrated if all are.

    It also has ``n``, ``n_groups``, ``key``, ``estimator`` and ``setting``, as in
    `BootstrapResult`.
    """

    p_value: Any
    n_resamples: int

    # The curve or posterior of each class, or the only one.
    _parts: Sequence[Any] = field(repr=False)
    # The mean gap with its interval at a level, which the error may reach; None where it may not.
    _mean_gap: Callable[[float], Any] | None = field(repr=False, default=None)

    _derived = ("floor", "notes")
    _arrays = ("value", "p_value")
    _lists = ("_parts",)
    _shown = ("value", "confidence_interval", "floor", "p_value", "method")

    def _joined_fields(self, results: Sequence[Any]) -> dict[str, Any]:
        counts = [result.n_resamples for result in results]
        return {"n_resamples": max(counts), "_mean_gap": partial(join_mean_gaps, results)}

    @cached_property
    def floor(self) -> Floor:
        """Mean and high end of the errors of a calibrated model with these scores."""
        nulls = [getattr(part, "null", NO_VALUES) for part in self._parts]  # users' have none
        means = [null.mean() for null in nulls]
        ends = [np.quantile(null, self.confidence_level) for null in nulls]
        if np.ndim(self.value):
            return Floor(np.array(means), np.array(ends))
        return Floor(float(means[0]), float(ends[0]))

    @property
    def probability_calibrated(self) -> Any:
        """Posterior probability that the model is calibrated, with the prior 1/2."""
        log_factors = np.array([getattr(part, "log_bayes_factor", np.nan) for part in self._parts])
        probabilities = 1 / (1 + np.exp(log_factors.clip(-MAX_LOG_FACTOR, MAX_LOG_FACTOR)))
        return as_float(probabilities if np.ndim(self.value) else probabilities[0])

    @property
    def _numbers(self) -> dict[str, Any]:
        return {**super()._numbers, "floor": self.floor.mean}

    def _smallest_p_value(self, name: str) -> float | None:  # noqa: ARG002
        return smallest_p(self.n_resamples) if self.n_resamples else None

    def interval(self, confidence_level: float | None = None) -> ConfidenceInterval:
        """Compute the interval at a level between 0 and 1, by default the result's own."""
        level = self._level(confidence_level)
        interval = intervals_of(self._parts, level, np.ndim(self.value) > 0)
        if self._mean_gap is None:
            return interval
        _, gap = self._mean_gap(level)
        return interval.reaching(np.maximum(-gap.low, gap.high))


# --- gaps of cells --------------------------------------------------------------------------


def gap_cells(call: Call, estimator: Any, key: int) -> GapCells:
    """Compute the cells of an error that is a norm of gaps.

    It is for the only model of a call; draws depend on the key.
    """
    if has_cells(estimator):
        return binned_cells(call, estimator, key)
    return density_cells(call, estimator, key)


# --- posteriors and confidence curves -------------------------------------------------------


def groups_of_samples(call: Call, estimator: Any) -> list[list[Sample]]:
    """Return the samples of each class, or in one list for their mean error."""
    table = call.tables[0]
    if table.stream is not None and table.n_problems > 1 and not call.per_class:
        raise table.lack("the interval of a mean over classes", "average")
    samples = table.seen_by(estimator).samples(estimator.reads_only)
    return [[sample] for sample in samples] if call.per_class else [samples]


def posteriors(call: Call, estimator: Any) -> list[Any]:
    """Compute the posterior of the only model of a call, or of each class."""
    samples_of_parts = groups_of_samples(call, estimator)
    options: dict[str, Any] = {}
    table = call.tables[0]
    if table.has_own_rows:
        options["shares"] = table.problem_shares
    if call.dependence is not None:
        options["effect"] = call.design_effect
    known = signature(estimator.posterior).parameters
    unknown = [name for name in options if name not in known]  # of a user's
    if unknown:
        reason = "groups" if unknown[0] == "effect" else "problems with rows of their own"
        rule = f"must have a posterior that takes the argument {unknown[0]}, for {reason}"
        raise InputTypeError("estimator", rule, value=estimator)
    return [estimator.posterior(samples, **options) for samples in samples_of_parts]


def curves(call: Call, estimator: Any, values: Any, key: int) -> list[ConfidenceCurve]:
    """Compute the confidence curve of the only model of a call, or of each class.

    `values` are the values of the estimator; where one is nan, there is no curve.
    """
    pairs = zip(np.atleast_1d(values), curve_makers(call, estimator, key), strict=True)
    return [NO_CURVE if np.isnan(value) else make_curve() for value, make_curve in pairs]


def curve_makers(call: Call, estimator: Any, key: int) -> list[Callable[[], ConfidenceCurve]]:
    """Return functions that compute the confidence curve of each class, or of all."""
    table = call.tables[0]
    if table.has_own_rows:
        if not estimator.is_norm_of_gaps:
            raise table.lack(f"the interval of the mean of {describe(estimator)}")
        cells = [gap_cells(part, estimator, key) for part in calls_on_problems(call)]
        return [partial(cell_curve, join_cells(cells, table.problem_shares))]
    if estimator.is_norm_of_gaps:
        parts = gap_cells(call, estimator, key).split(call.per_class)
        return [partial(cell_curve, cells) for cells in parts]
    calls = [call]
    if call.per_class:
        calls = [replace(call, tables=[problem]) for problem in call.tables[0].problems()]
    return [partial(label_curve, each, estimator, key) for each in calls]


# --- estimates ------------------------------------------------------------------------------


def estimate_of(call: Call, name: str, key: int) -> Estimate:
    """Compute the estimate of one estimator for the only model of a call."""
    call = with_single_copies(call)
    if call.tables[0].has_own_rows and call.per_class:
        return estimate_each(call, name, key)
    if call.estimators[name].posterior is not None:
        return estimate_by_posterior(call, name, key)
    return estimate_by_inversion(call, name, key)


def estimate_each(call: Call, name: str, key: int) -> Estimate:
    """Compute the estimate of each of several problems with rows of their own."""
    estimates = [estimate_of(part, name, key) for part in calls_on_problems(call)]
    return join_results(estimates, **result_fields(call, name, key))


def estimate_by_posterior(call: Call, name: str, key: int) -> Estimate:
    """Compute the estimate of an estimator that has a posterior."""
    estimator = call.estimators[name]
    parts = posteriors(call, estimator)
    # The posterior of few rows is mostly its prior, which does not know of models that are wrong in
    # every row.
    is_prior = call.n <= MAX_PRIOR_ROWS
    return Estimate(
        value=value_of_parts(call, [part.value for part in parts]),
        p_value=None,
        method=POSTERIOR,
        n_resamples=count_replicates(parts),
        confidence_level=call.level,
        _parts=parts,
        _mean_gap=make_mean_gap(call, estimator, is_prior),
        **result_fields(call, name, key),
    )


def estimate_by_inversion(call: Call, name: str, key: int) -> Estimate:
    """Compute the estimate of an estimator by test inversion."""
    estimator = call.estimators[name]
    table = call.tables[0]
    if table.stream is not None and not has_cells(estimator):
        raise table.lack(f"the interval of {describe(estimator)}", "estimator")
    value = compute_values(call, name)[0]
    parts = curves(call, estimator, value, key)
    return Estimate(
        value=value,
        p_value=value_of_parts(call, [part.p_value for part in parts]),
        method=INVERSION,
        n_resamples=count_replicates(parts),
        confidence_level=call.level,
        _parts=parts,
        _mean_gap=make_mean_gap(call, estimator),
        **result_fields(call, name, key),
    )


def join_mean_gaps(estimates: Sequence[Estimate], level: float) -> tuple[F64, ConfidenceInterval]:
    """Return mean gaps and intervals at a level, 0 where they have no bearing."""
    columns = []
    for result in estimates:
        value, interval = NO_GAP if result._mean_gap is None else result._mean_gap(level)
        columns.append(np.array(np.broadcast_arrays(value, *interval, result.value)[:3]))
    gap, low, high = np.concatenate([column.reshape(3, -1) for column in columns], axis=1)
    return gap, ConfidenceInterval(low, high)


def value_of_parts(call: Call, values: list[Any]) -> Any:
    """Return the values of all classes as an array, or the only one."""
    return as_float(values if call.per_class else values[0])


def count_replicates(parts: Sequence[Any]) -> int:
    """Return how many replicates curves are made from; 0 for posteriors."""
    return max(getattr(part, "replicates", 0) for part in parts)


def make_mean_gap(
    call: Call, estimator: Any, is_prior: bool = False
) -> Callable[[float], Any] | None:
    """Return the function of the mean gap at a level; None where it has no bearing.

    Rows that depend on each other err together, so that an error may cancel in all of them. Neither
    fewer rows nor gaps of independent signs know of that.
    """
    if not (call.dependence is not None or is_prior) or not estimator.bounds_mean_gap:
        return None
    table = call.tables[0]
    samples = table.with_content(SQUARES, "estimator", "the mean gap").samples(reads_only=True)
    shares = table.problem_shares if table.has_own_rows else None
    return partial(mean_gap, samples, call.design_effect, call.per_class, shares=shares)


def estimate_results(call: Call, rng: Any) -> Any:
    """Compute the estimate of a call on one model, or `Results` by estimator name."""
    require_calibration_error(call, "estimate")
    key = new_key(rng)
    return collect_results(call, lambda name: estimate_of(call, name, key))


class EstimateKeywords(ResamplingKeywords, GroupKeyword, total=False):
    """Options of `estimate` beside its own."""


@overload
def estimate(
    y_true: Any, y_prob: Any = ..., *, estimator: list[Any] | tuple[Any, ...],
    n_resamples: int = ..., average: Literal["macro"] | None = ..., rng: Any = ...,
    groups: Any = ..., **options: Unpack[EstimateKeywords],
) -> Results[Estimate]: ...  # fmt: skip
@overload
def estimate(
    y_true: Any, y_prob: Any = ..., *, estimator: str | Estimator = ...,
    n_resamples: int = ..., average: Literal["macro"] | None = ..., rng: Any = ...,
    groups: Any = ..., **options: Unpack[EstimateKeywords],
) -> Estimate: ...  # fmt: skip
@shows_options
def estimate(
    y_true: Any, y_prob: Any = None, *, estimator: Any = "ece_bayes", n_resamples: int = 1999,
    average: Literal["macro"] | None = "macro", rng: Any = 0, groups: Any = None,
    **options: Unpack[EstimateKeywords],
) -> Any:  # fmt: skip
    """Estimate a calibration error with a confidence interval.

    Parameters
    ----------
    y_true, y_prob, average, **options
        As in `fastece.bootstrap`, without `size`, `method` and `keep_distribution`.
    estimator : str or object, or a list of them, default "ece_bayes"
        As in `fastece.ece`. The estimators of a list share every draw.
    n_resamples : int, default 1999
        Number of replicates of a calibrated model; for densities on very fine grids there may be
        fewer, see the notes. Estimators with a posterior need none, so 0 will do for them.
    rng : None, int or numpy.random.Generator, default 0
        Seed: the same seed gives the same result. None: other draws in every call.
    groups : (n,) array_like, optional
        As in `fastece.bootstrap`: rows with the same label belong together, and may depend on each
        other. The interval and the p-value take whole groups as independent, see the notes.

    Returns
    -------
    Estimate, or for a list of estimators a dict of them, which prints as a table

    Raises
    ------
    ValueError, TypeError
        As in `fastece.ece`.

    Notes
    -----
    Binned errors, and densities on their grid, are norms of gaps between outcomes and scores. Their
    noise is known, so the interval inverts a test: it has the true errors under which the error of
    the data is neither too large nor too small (test inversion; Neyman 1937, "Outline of a theory
    of statistical estimation based on the classical theory of probability"). It begins at 0 exactly
    where the p-value is more than 1 - level; for bins this is the p-value of `calibration_test`.
    The interval is for the error of the population *with these bins*, and with a density for the
    smoothed gap ``int |E k_h(x, s) (c(s) - s)| dx`` with the observed frequency c(s), which is 0
    for a calibrated model. Bins hide gaps of different signs, so with the norm 1 the low end is a
    bound for the error without bins too. For other estimators, labels are drawn from hypotheses, at
    the cost of some bootstraps. A caller's object with a method ``posterior(samples)`` answers by
    it. See ``docs/explanation/intervals.md``.

    `floor` is the mean and the quantile `confidence_level` of the errors of the replicates that are
    calibrated; for a posterior, of 99 draws of outcomes in its cells, from binomial laws.

    With `groups`, posteriors take rows for fewer, by the design effect of the dependence within
    groups (Kish 1965, "Survey sampling", section 8.2): the effect on the variance of the number of
    outcomes 1, the largest one of all sums over rows of one sign. Then the value is the posterior
    mean of these fewer rows too, and not the value of `fastece.ece`. In test inversion labels are
    drawn as in `fastece.calibration_test` with groups.

    Cells times replicates are at most 4 million, with at least 199 replicates: with more than 2000
    cells, as densities of very sharp scores have, there are fewer replicates, and an answer takes
    about 2 s. If there is a threshold that no score exceeds, the value is 0 by definition, and the
    interval is [0, 1], since no row bears on it.

    Examples
    --------
    >>> import numpy as np
    >>> from fastece import estimate
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(1000)
    >>> y = rng.random(1000) < p**1.3
    >>> result = estimate(y, p, estimator="ece")
    >>> print(result)
    Binned(n_bins=15), setting binary: 1000 rows
      value         0.060
      95 % CI       [0.010, 0.081]
      chance alone  0.039
      p-value       0.008
      method        test inversion
    >>> estimate(y, p, estimator=["ece", "ece_ac", "ece_kde"])
    setting binary: 1000 rows
      name     value         95 % CI  chance alone   p-value  method
      ece      0.060  [0.010, 0.081]         0.039     0.008  test inversion
      ece_ac   0.058  [0.015, 0.082]         0.032    0.0015  test inversion
      ece_kde  0.051  [0.026, 0.078]         0.023  <=0.0005  test inversion
    """
    call = read_call(
        "estimate", y_true, {"y_prob": y_prob}, 0, estimator=estimator, n_resamples=n_resamples,
        average=average, **options,
    )  # fmt: skip
    by_inversion = [e for e in call.estimators.values() if e.posterior is None]
    if by_inversion and not call.n_resamples:
        rule = f"must be at least 1 for {describe(by_inversion[0])}, which has no posterior"
        raise InputError("n_resamples", rule, value=0)
    call = add_groups(call, groups, y_prob)
    if call.tables[0].by is None:
        return estimate_results(call, rng=rng)
    return results_of_parts(
        call, rng, lambda part, generator: estimate_results(part, rng=generator)
    )
