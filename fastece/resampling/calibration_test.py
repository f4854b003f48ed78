"""Is a model calibrated at all? Its error beside those that chance alone gives."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, overload

import numpy as np

from fastece.checks.parameters import check_choice
from fastece.document.result import EstimatorResult, Record, Results
from fastece.estimators.base import Estimator
from fastece.estimators.binned.estimator import Binned, BinnedPlan, Bins
from fastece.estimators.canonical.skce import SKCE
from fastece.resampling.arguments import (
    Call,
    add_groups,
    check_can_be_null,
    describe,
    read_call,
)
from fastece.resampling.draws import CountDraws, new_key
from fastece.resampling.engine import Problem
from fastece.resampling.intervals import as_float, p_value_of, quantiles, tails_of
from fastece.resampling.labels import draws_for, probabilities_for, problems_for
from fastece.resampling.multipliers import GapPlan, GroupGaps
from fastece.typing import F64, U8

# Replicates that a band is made of: the gaps of all bins of all classes are kept, up to 400 MB, or
# of the fewest replicates whose quantiles say anything.
BAND_REPLICATES, LEAST_REPLICATES, MOST_GAPS = 1999, 199, 5 * 10**7
# Ways to a p-value.
LABELS, ASYMPTOTIC = "labels", "asymptotic"
# With so many blocks a test at 5 % rejects 3 to 6 % of calibrated models.
FEWEST_BLOCKS = 30
# Errors closer than this are equal: one is rounded otherwise than the other.
ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class ConsistencyBand(Record):
    """Where the frequency of hits in each bin of a diagram is to be expected of a calibrated model.

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
    """Test of the hypothesis that labels come true as often as the probabilities say.

    Attributes
    ----------
    value : float or (K,) float64 array
        The value of `fastece.ece`.
    p_value : float or (K,) float64 array
        ``(1 + #{T* >= T}) / (n_resamples + 1)``, with errors that differ by no more than 1e-12
        being equal; nan where the value or a replicate is. For "asymptotic", the tail of the
        normal law beyond the value.
    null_distribution : (n_resamples,) or (K, n_resamples) float64 array
        The statistic for labels that are drawn with the predicted probabilities; with groups, for
        gaps of each group that are drawn. For "asymptotic" there is none, so it is empty.
    band : ConsistencyBand, list of K of them, or None
        For the reliability diagram of the estimator, or of each class; None without bins.
    method : {"labels", "asymptotic"}
    standard_error : float, (K,) float64 array or None
        Of the statistic, by the variance of its blocks; None for "labels".
    n_blocks : int
        Number of blocks; 0 for "labels".

    Also ``n``, ``n_groups``, ``key``, ``estimator`` and ``setting``, as of `BootstrapResult`.
    """

    value: Any
    p_value: Any
    null_distribution: F64 = field(repr=False)
    band: Any = field(repr=False)
    method: str
    standard_error: Any = None
    n_blocks: int = 0

    @property
    def _sample(self) -> str:
        count = self.null_distribution.shape[-1]
        return super()._sample + (
            f", {count} replicates" if self.method == LABELS else ", by blocks"
        )

    @property
    def _notes(self) -> list[str]:
        few = self.method == ASYMPTOTIC and self.n_blocks < FEWEST_BLOCKS
        return [f"of {self.n_blocks} blocks: the normal law needs {FEWEST_BLOCKS}"] * few

    @property
    def _numbers(self) -> dict[str, Any]:
        if self.method == ASYMPTOTIC:
            names = ("value", "standard_error", "p_value")
            return {name: getattr(self, name) for name in names}
        mean = as_float(self.null_distribution.mean(-1))
        return {"value": self.value, "if_calibrated": mean, "p_value": self.p_value}


class WithGaps:
    """A binned estimator that says the gap of each bin after its value."""

    def __init__(self, binned: Binned | GroupGaps) -> None:
        self.binned: Any = binned
        self.needs_sorted, self.prepare = binned.needs_sorted, binned.prepare

    def blocks(self, plan: BinnedPlan | GapPlan, c: U8) -> F64:
        """(1 + B, 32 G) values and gaps."""
        bins = self.binned.block_bins(plan, c)
        return np.vstack([self.binned.values(bins), bins.gap.T])


def band_of(bins: Bins, k: int, gaps: F64, level: float) -> ConsistencyBand:
    """The band of problem k, from its bins and the gaps (B, R) of the replicates."""
    weight = np.where(bins.weight[k] > 0, bins.weight[k], np.nan)
    ends = (quantiles(gaps, tails_of(level)) + bins.score[k][:, None]) / weight[:, None]
    low, high = ends.clip(0.0, 1.0).T  # rounding
    return ConsistencyBand(low, high, level)


def check_gaps(call: Call) -> None:
    """Other gaps of bins are all that a test with groups draws."""
    for estimator in call.estimators.values():
        if not isinstance(estimator, Binned) or estimator.debias:
            raise ValueError(
                f"estimator: with groups the test takes binned errors without debias, which depend "
                f"on labels by the gaps of their bins alone, not {describe(estimator)}"
            )


def null_values(
    call: Call, estimator: Any, draws: Any, problems: Sequence[Problem], bins: Bins | None
) -> tuple[F64, F64]:
    """The values (problems, R) of an estimator for labels, or gaps of groups, that are drawn, and,
    of as many of the replicates as a band is made of, the gaps (problems, B, R') of its bins."""
    values, gaps, begun = [], np.empty(0), 0
    if bins is not None:
        most = max(LEAST_REPLICATES, min(BAND_REPLICATES, MOST_GAPS // bins.gap.size))
        begun = min(call.n_resamples, most)
        both = call.replicates([WithGaps(estimator)], problems, draws, call.n, 0, begun)
        values, gaps = [both[:, 0]], both[:, 1:]
    if begun < (end := call.n_resamples):
        values.append(call.replicates([estimator], problems, draws, call.n, begun, end))
    return np.concatenate(values, axis=-1), gaps


def calibration_results(call: Call, rng: Any) -> Any:
    """The result of a call on one model, or `Results` by the names of its estimators."""
    check_can_be_null(call, "calibration_test")
    data, key, clusters = call.models[0], new_key(rng), call.clusters
    if clusters is not None:
        check_gaps(call)
    results: Results[Any] = Results()
    for name, estimator in call.estimators.items():
        bins = estimator.bins(data) if isinstance(estimator, Binned) else None
        if clusters is None:
            drawn, problems = estimator, problems_for(call, estimator)
            draws: Any = draws_for(call, estimator, probabilities_for(call, estimator), key)
        else:
            drawn, problems = GroupGaps(estimator, clusters), [*map(Problem, data.samples())]
            draws = CountDraws(key, clusters.count)
        values, gaps = null_values(call, drawn, draws, problems, bins)
        bands = bins and [band_of(bins, k, gap, call.level) for k, gap in enumerate(gaps)]
        (statistic,), null = call.values(name), call.average_of(values)
        results[name] = CalibrationTestResult(
            value=statistic,
            p_value=p_value_of(np.asarray(statistic) - ROUNDING, null),
            null_distribution=null,
            band=bands if bands is None or data.setting.per_class else bands[0],
            n=call.n,
            n_groups=call.n_groups,
            key=key,
            estimator=describe(estimator),
            setting=call.setting_of(name),
            method=LABELS,
        )
    return results.get("", results)


def asymptotic_result(call: Call, name: str, estimator: SKCE) -> CalibrationTestResult:
    """The test of the means of blocks of rows, which are independent: their mean is normal."""
    from scipy.special import erfc

    block = replace(estimator, form="block")
    found = []
    for sample in call.models[0].samples():
        plan = block.plan(sample, map)
        values = block.block_values(plan, plan.v)
        if values.size < 2:
            raise ValueError(
                f'method: "asymptotic" needs at least 2 blocks, got {values.size} of '
                f"{block.block_size} rows; a smaller block_size makes more"
            )
        found.append((values.mean(), values.std(ddof=1) / math.sqrt(values.size)))
    mean, error = np.array(found).T
    with np.errstate(invalid="ignore", divide="ignore"):  # where all blocks are the same
        p_value = np.where(error == 0, mean <= 0, erfc(mean / error / math.sqrt(2)) / 2)
    per_class = call.models[0].setting.per_class
    return CalibrationTestResult(
        value=mean if per_class else float(mean[0]),
        p_value=p_value if per_class else float(p_value[0]),
        standard_error=error if per_class else float(error[0]),
        null_distribution=np.empty((*mean.shape, 0) if per_class else 0),
        band=None,
        n=call.n,
        key=0,
        estimator=describe(block),
        setting=call.setting_of(name),
        method=ASYMPTOTIC,
        n_blocks=call.n // block.block_size,
    )


def block_form(options: dict[str, Any]) -> dict[str, Any]:
    """The options of a call, with the form of "skce" whose law is known."""
    named = options.get("estimator")
    names = named if isinstance(named, list | tuple) else [named]
    if any(name != "skce" for name in names):
        return options
    if options.get("form", "block") != "block":
        raise ValueError(
            f"form: method=\"asymptotic\" is of the form 'block', not of {options['form']!r}"
        )
    return {**options, "form": "block"}


def asymptotic_results(call: Call) -> Any:
    """The result of a call on one model by its blocks, or `Results` by estimators' names."""
    results: Results[Any] = Results()
    for name, estimator in call.estimators.items():
        if not isinstance(estimator, SKCE):
            raise ValueError(
                'method: "asymptotic" is of the block form of "skce", whose law is known, not of '
                f"{describe(estimator)}"
            )
        if call.models[0].setting.per_class and call.average is not None:
            raise ValueError(
                'average: method="asymptotic" has a value of each class, whose mean has no known '
                "law: average=None"
            )
        results[name] = asymptotic_result(call, name, estimator)
    return results.get("", results)


@overload
def calibration_test(
    y_true: Any, y_prob: Any, *, estimator: list[Any] | tuple[Any, ...], **options: Any
) -> Results[CalibrationTestResult]: ...
@overload
def calibration_test(
    y_true: Any, y_prob: Any, *, estimator: str | Estimator = ..., **options: Any
) -> CalibrationTestResult: ...
def calibration_test(
    y_true: Any, y_prob: Any, *, method: Literal["labels", "asymptotic"] = "labels",
    rng: Any = None, groups: Any = None, **options: Any,
) -> Any:  # fmt: skip
    """Test whether a model is calibrated, by labels drawn as if it were.

    Parameters
    ----------
    y_true, y_prob, rng, **options
        As in `fastece.bootstrap`, with the same defaults, but no `size` and `bootstrap_result`;
        `confidence_level` is that of the band.
    method : {"labels", "asymptotic"}, default "labels"
        "labels": replicates. "asymptotic", for "skce" only: no replicates, but the normal law of
        the mean of its block form, ``block_size=`` rows a block. Rows have to be in an order that
        says nothing of them, and the law needs some 30 blocks: of calibrated models, 13 % are
        rejected with two blocks. It is quick, and finds less: of all pairs of rows it looks at
        those within blocks.
    groups : (n,) array_like, optional
        Rows with the same label here belong together, so that their labels are not independent:
        as in `fastece.bootstrap`. For binned errors without `debias` only.

    Returns
    -------
    CalibrationTestResult, or for a list of estimators a dict of them, as of `fastece.bootstrap`

    Raises
    ------
    ValueError, TypeError
        As in `fastece.bootstrap`; for another estimator with `groups`, or "asymptotic".

    Notes
    -----
    ``p = (1 + #{T* >= T}) / (n_resamples + 1)`` with the error T and that of the replicates T*.
    Under the hypothesis a label is drawn with the predicted probabilities: a hit with the
    probability s, or, for the classes of a class vector together, a class with its probability. The
    scores stay as they are, so bins do too. The test is that of Vaicenavicius et al. (2019,
    "Evaluating model calibration in classification", section 5), the band that of Bröcker and Smith
    (2007, "Increasing the reliability of reliability diagrams"). Of "canonical" and "skce" whole
    class vectors are tested: with setting "auto" a label is one of all classes.

    "asymptotic": unbiased values of blocks of rows are independent, with the mean 0 if the model is
    calibrated, so ``p = 1 - Phi(mean sqrt(B) / sd)`` of B blocks (Widmann, Lindsten and Zachariah
    2019, "Calibration tests in multi-class classification: a unifying framework", section 5).

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
    >>> result = calibration_test(rng.random(1000) < p, p, n_resamples=999, rng=0)
    >>> print(result)
    Binned(n_bins=15), setting binary: 1000 rows, 999 replicates
      value          0.0374
      if calibrated  0.0384
      p-value        0.54
    >>> calibration_test(rng.random(1000) < p**2, p, n_resamples=999, rng=0).p_value
    0.001
    """
    check_choice("method", method, (LABELS, ASYMPTOTIC))
    if method == LABELS:
        call = read_call(y_true, {"y_prob": y_prob}, **options)
        return calibration_results(add_groups(call, groups, y_prob), rng)
    if groups is not None:
        raise ValueError('groups: method="asymptotic" takes rows for independent of each other')
    if rng is not None or "n_resamples" in options:
        name = "n_resamples" if rng is None else "rng"
        raise ValueError(f'{name}: is not for method="asymptotic", which draws nothing')
    return asymptotic_results(read_call(y_true, {"y_prob": y_prob}, **block_form(options)))
