"""Is a model calibrated at all? Its error beside those that chance alone gives."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import NDArray

from fastece.binned.estimator import Binned, BinnedPlan, Bins
from fastece.estimators import direct_values
from fastece.protocol import Estimator, Sample
from fastece.resampling.arguments import Call, read_call, samples_of
from fastece.resampling.draws import ClassDraws, HitDraws, new_key
from fastece.resampling.engine import Problem, Work, evaluate, plan_replicates
from fastece.resampling.intervals import p_value_of, quantiles, tails_of
from fastece.resampling.results import as_float, listed, shown

__all__ = ["CalibrationTestResult", "ConsistencyBand", "calibration_test"]

F64 = NDArray[np.float64]

# Replicates that a band is made of: the gaps of all bins of all classes are kept, up to 400 MB, or
# of the fewest replicates whose quantiles say anything.
BAND_REPLICATES, LEAST_REPLICATES, MOST_GAPS = 1999, 199, 5 * 10**7
# Errors closer than this are equal: one is rounded otherwise than the other.
ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class ConsistencyBand:
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

    def to_dict(self) -> dict[str, Any]:
        """Plain Python values."""
        return {name: listed(getattr(self, name)) for name in self.__dataclass_fields__}


@dataclass(frozen=True, eq=False)
class CalibrationTestResult:
    """Test of the hypothesis that labels come true as often as the probabilities say.

    Attributes
    ----------
    statistic : float or (K,) float64 array
        The value of `fastece.ece`.
    p_value : float or (K,) float64 array
        ``(1 + #{T* >= T}) / (n_resamples + 1)``, with errors that differ by no more than 1e-12
        being equal; nan where the statistic or a replicate is.
    null_distribution : (n_resamples,) or (K, n_resamples) float64 array
        The statistic for labels that are drawn with the predicted probabilities.
    band : ConsistencyBand, list of K of them, or None
        For the reliability diagram of the estimator, or of each class; None without bins.
    n : int
        Number of rows of positive weight.
    key : int
        Key of the draws.
    estimator : str
        The estimator with its parameters.
    setting : str
        The setting it used.
    """

    statistic: Any
    p_value: Any
    null_distribution: F64
    band: Any
    n: int
    key: int
    estimator: str
    setting: str

    def __str__(self) -> str:
        count = self.null_distribution.shape[-1]
        values = {
            "statistic": self.statistic,
            "if calibrated": self.null_distribution.mean(-1),
            "p-value": self.p_value,
        }
        head = f"{self.estimator}, setting {self.setting}: {self.n} rows, {count} replicates"
        return "\n".join([head, *(f"  {name:<14} {shown(x)}" for name, x in values.items())])

    def to_dict(self) -> dict[str, Any]:
        """Plain Python values."""
        values = {name: listed(getattr(self, name)) for name in self.__dataclass_fields__}
        bands = self.band if isinstance(self.band, list) else [self.band]
        plain = [None if band is None else band.to_dict() for band in bands]
        return {**values, "band": plain if isinstance(self.band, list) else plain[0]}


@dataclass(frozen=True)
class WithGaps:
    """A binned estimator that says the gap of each bin after its value."""

    binned: Binned

    @property
    def needs_sorted(self) -> bool:
        """As the estimator."""
        return self.binned.needs_sorted

    def prepare(self, sample: Sample, size: int) -> BinnedPlan:
        """As the estimator."""
        return self.binned.prepare(sample, size)

    def blocks(self, plan: BinnedPlan, c: NDArray[np.uint8]) -> F64:
        """(1 + B, 32 G) values and gaps."""
        bins = self.binned.block_bins(plan, c)
        return np.vstack([self.binned.values(bins), bins.gap.T])


def hits_and_misses(sample: Sample) -> Sample:
    """Every row twice, as a hit and as a miss: `HitDraws` draws one of the two."""
    twice = sample.where(np.tile(np.arange(sample.n), 2))
    return replace(twice, y=np.repeat(np.array([1, 0], np.uint8), sample.n))


def null_draws(call: Call, samples: Sequence[Sample], key: int) -> Any:
    """Labels drawn from the probabilities."""
    if call.models[0].setting.per_class:
        return ClassDraws(key, np.column_stack([sample.s for sample in samples]))
    return HitDraws(key, samples[0].s)


def kept_replicates(bins: Bins) -> int:
    """How many replicates a band is made of."""
    return max(LEAST_REPLICATES, min(BAND_REPLICATES, MOST_GAPS // bins.gap.size))


def band_of(bins: Bins, k: int, gaps: F64, level: float) -> ConsistencyBand:
    """The band of problem k, from its bins and the gaps (B, R) of the replicates."""
    weight = np.where(bins.weight[k] > 0, bins.weight[k], np.nan)
    ends = (quantiles(gaps, tails_of(level)) + bins.score[k][:, None]) / weight[:, None]
    low, high = ends.clip(0.0, 1.0).T  # rounding
    return ConsistencyBand(low, high, level)


def result_of(call: Call, name: str, samples: Sequence[Sample], key: int) -> CalibrationTestResult:
    """The result of one estimator."""
    estimator, problems = call.estimators[name], call.models[0]
    draws = null_draws(call, samples, key)
    twice = [Problem(hits_and_misses(sample)) for sample in samples]
    bins = estimator.bins(problems) if isinstance(estimator, Binned) else None
    begun = 0 if bins is None else min(call.n_resamples, kept_replicates(bins))
    works = []
    if begun:
        asked = plan_replicates([WithGaps(estimator)], twice, draws, call.n)
        works.append(Work(asked, 0, begun))
    if begun < call.n_resamples:
        rest = plan_replicates([estimator], twice, draws, call.n)
        works.append(Work(rest, begun, call.n_resamples))
    parts = evaluate(works, call.jobs, call.executor, call.progress)
    bands = None
    if bins is not None:
        gaps = parts[0][:, 1:]
        bands = [band_of(bins, k, gap, call.level) for k, gap in enumerate(gaps)]
        parts[0] = parts[0][:, 0]
    null = call.averaged(np.concatenate(parts, axis=-1))
    statistic = as_float(call.averaged(direct_values(estimator, problems)))
    point = np.asarray(statistic)
    p_value = p_value_of(null >= point[..., None] - ROUNDING, null)
    return CalibrationTestResult(
        statistic=statistic,
        p_value=as_float(np.where(np.isnan(point), np.nan, p_value)),
        null_distribution=null,
        band=bands if bands is None or problems.setting.per_class else bands[0],
        n=call.n,
        key=key,
        estimator=str(estimator),
        setting=call.setting,
    )


@overload
def calibration_test(
    y_true: Any, y_prob: Any, *, estimator: list[Any] | tuple[Any, ...], **options: Any
) -> dict[str, CalibrationTestResult]: ...
@overload
def calibration_test(
    y_true: Any, y_prob: Any, *, estimator: str | Estimator = ..., **options: Any
) -> CalibrationTestResult: ...
def calibration_test(
    y_true: Any,
    y_prob: Any,
    *,
    estimator: Any = "ece",
    n_resamples: int = 9999,
    confidence_level: float = 0.95,
    setting: Any = "auto",
    average: Literal["macro"] | None = "macro",
    labels: Any = None,
    pos_label: Any = None,
    sample_weight: Any = None,
    from_logits: bool = False,
    rng: Any = None,
    n_jobs: int | None = None,
    executor: Any = None,
    **fields: Any,
) -> Any:
    """Test whether a model is calibrated, by labels drawn as if it were.

    Parameters
    ----------
    y_true, y_prob, estimator, setting, average, labels, pos_label, sample_weight, from_logits, n_resamples,
    rng, n_jobs, executor, **fields
        As in `fastece.bootstrap`.
    confidence_level : float, default 0.95
        Of the band.

    Returns
    -------
    CalibrationTestResult, or for a list of estimators a dict of them by their names

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
    (2007, "Increasing the reliability of reliability diagrams").

    Examples
    --------
    >>> import numpy as np
    >>> from fastece import calibration_test
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(1000)
    >>> result = calibration_test(rng.random(1000) < p, p, n_resamples=999, rng=0)
    >>> print(result)
    Binned(n_bins=15), setting binary: 1000 rows, 999 replicates
      statistic      0.03737
      if calibrated  0.03844
      p-value        0.54100
    >>> calibration_test(rng.random(1000) < p**2, p, n_resamples=999, rng=0).p_value
    0.001
    """
    call = read_call(
        y_true, {"y_prob": y_prob}, estimator=estimator, fields=fields, n_resamples=n_resamples,
        least=1, confidence_level=confidence_level, method="basic", setting=setting,
        average=average, labels=labels, pos_label=pos_label, sample_weight=sample_weight, from_logits=from_logits,
        n_jobs=n_jobs, executor=executor,
    )  # fmt: skip
    key = new_key(rng)
    samples = samples_of(call.models[0])
    results = {name: result_of(call, name, samples, key) for name in call.estimators}
    return results.get("", results)
