"""Results with intervals, and the intervals of a bootstrap distribution."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, NamedTuple, get_args

import numpy as np

from fastece.data.errors import InputError
from fastece.data.parameters import check_choice, check_real
from fastece.display.numbers import ConfidenceInterval as ConfidenceInterval
from fastece.display.numbers import first_of
from fastece.display.results import EstimatorResult
from fastece.kernels.types import F64

Method = Literal["basic", "percentile", "bca"]
METHODS = get_args(Method)
# The method of comparisons that joins the intervals of both models, as `estimate` has them.
MOVER = "mover"
INFINITE = "an infinite value has no interval"
OF_ROWS = "{}: the outcome had probability 0 in {}; clip= makes a log loss finite"


def as_float(value: Any) -> Any:
    """Return a float for an array without dimensions, or the array itself."""
    value = np.asarray(value, np.float64)
    return value if value.ndim else float(value)


def check_level(value: Any) -> float:
    """Return a checked confidence level."""
    level = check_real("confidence_level", value, 0.0, 1.0)
    if not 0 < level < 1:
        raise InputError("confidence_level", "must be between 0 and 1", value=value)
    return level


def tails_of(level: float) -> F64:
    """Return the levels of the two quantiles that enclose the share `level`."""
    return np.array([(1 - level) / 2, (1 + level) / 2])


def p_value_of(statistic: Any, values: F64) -> Any:
    """Compute ``(1 + #{T* >= T}) / (R + 1)`` from T and replicates T* (..., R).

    Nan where one of them is.
    """
    statistic = np.asarray(statistic)
    p = (1 + (values >= statistic[..., None]).sum(-1)) / (values.shape[-1] + 1)
    return as_float(np.where(np.isnan(statistic) | np.isnan(values).any(-1), np.nan, p))


def quantiles(distribution: F64, levels: F64) -> F64:
    """Compute quantiles (..., L) of each line (..., R), by numpy's linear rule.

    At the same levels (L,), or each at its own (..., L). nan where a line or a level is.
    """
    if levels.ndim < distribution.ndim:
        return np.moveaxis(np.quantile(distribution, levels, axis=-1), 0, -1)
    out = np.full(levels.shape, np.nan)
    for line in np.ndindex(distribution.shape[:-1]):
        if not np.isnan(levels[line]).any():
            out[line] = np.quantile(distribution[line], levels[line])
    return out


def bca_levels(estimate: Any, distribution: F64, acceleration: Any, tails: F64) -> F64:
    """Compute the quantile levels (..., 2) of the ends of a BCa interval.

    Efron (1987), eq. 2.3.

    Replicates equal to the estimate count half. nan where all are on one side of it.
    """
    from scipy.special import ndtr, ndtri

    estimate, acceleration = np.asarray(estimate)[..., None], np.asarray(acceleration)[..., None]
    below = (distribution < estimate).mean(-1, keepdims=True)
    share = (below + (distribution <= estimate).mean(-1, keepdims=True)) / 2
    share = np.where((share > 0) & (share < 1), share, np.nan)
    z = ndtri(share) + ndtri(tails)
    levels: F64 = ndtr(ndtri(share) + z / (1 - acceleration * z))
    return levels


def intervals_of(parts: Sequence[Any], level: float, per_class: bool) -> ConfidenceInterval:
    """Compute the interval of each part at a level, or of the only one."""
    ends = np.array([part.interval(level) for part in parts], np.float64).reshape(-1, 2)
    return ConfidenceInterval(*(ends.T.copy() if per_class else ends[0].tolist()))


class Floor(NamedTuple):
    """Error of a calibrated model with the same scores, by chance alone.

    Attributes
    ----------
    mean, high : float or (K,) float64 array
        Its mean, and the quantile that it stays below with the probability `confidence_level`; nan
        where it is not known.
    """

    mean: Any
    high: Any


@dataclass(frozen=True, eq=False, kw_only=True)
class IntervalResult(EstimatorResult):
    """A value with an interval at any level."""

    confidence_interval: ConfidenceInterval = field(init=False)
    confidence_level: float
    # Of each class, or of the only value: something with `interval`, and `p_value` of a comparison;
    # None where intervals are made from replicates.
    _parts: Sequence[Any] | None = field(repr=False, default=None)

    # Names of the numbers that are shown.
    _shown: ClassVar[tuple[str, ...]]

    def __post_init__(self) -> None:
        object.__setattr__(self, "confidence_interval", self.interval())

    def interval(self, confidence_level: float | None = None) -> ConfidenceInterval:
        """Compute the interval at a level between 0 and 1, by default the result's own."""
        assert self._parts is not None
        return intervals_of(self._parts, self._level(confidence_level), np.ndim(self.value) > 0)

    def _level(self, confidence_level: float | None) -> float:
        """Return a checked level, by default the result's own."""
        return self.confidence_level if confidence_level is None else check_level(confidence_level)

    @property
    def _interval_name(self) -> str:
        return f"{100 * self.confidence_level:g} % CI"

    @property
    def _numbers(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self._shown}


@dataclass(frozen=True, eq=False, kw_only=True)
class BootstrapResult(IntervalResult):
    """A calibration error with its bootstrap distribution.

    Attributes
    ----------
    value : float or (K,) float64 array
        The value of `fastece.ece`.
    bootstrap_distribution : (n_resamples,) or (K, n_resamples) float64 array
        Values in the order of the replicates; empty where nothing was drawn.
    acceleration : float or (K,) float64 array
        How skewed the estimator is, for "bca"; nan with another method, or where `size` is not `n`.
    confidence_interval : ConfidenceInterval
        ``(low, high)`` at `confidence_level` by `method`; nan where `size` is not `n`.
    confidence_level, method, estimator, setting : float, str, str, str
        As used: the estimator with its parameters, and what "auto" stood for.
    n, size : int
        Number of rows of positive weight, and number of rows per draw.
    n_groups : int or None
        Number of groups of rows that were drawn; None where rows were.
    key : int
        The number that all draws depend on, made from the seed.

    Examples
    --------
    >>> from fastece import bootstrap
    >>> y, p = [0, 0, 1, 1, 1, 1, 0, 1], [0.1, 0.2, 0.3, 0.4, 0.6, 0.7, 0.8, 0.9]
    >>> result = bootstrap(y, p, n_bins=2, rng=0)
    >>> round(result.value, 6)
    0.125
    """

    method: str
    size: int
    bootstrap_distribution: F64 = field(repr=False)
    acceleration: Any = np.nan
    _infinite_rows: Sequence[int] = field(repr=False, default=())  # of the caller

    # Names of the values of models that the value is the difference of, and its least value.
    _models: ClassVar[tuple[str, ...]] = ()
    _lowest: ClassVar[float] = 0.0
    _derived: ClassVar[tuple[str, ...]] = ("standard_error", "bias", "notes")
    _shown: ClassVar[tuple[str, ...]] = ("value", "confidence_interval", "standard_error", "bias")

    @property
    def _values(self) -> F64:
        """Distribution; nan where the value is infinite, and so has no spread."""
        values, finite = self.bootstrap_distribution, np.isfinite(self.value)
        return values if np.all(finite) else np.where(np.asarray(finite)[..., None], values, np.nan)

    @property
    def notes(self) -> list[str]:
        """Sentences that stand below the numbers."""
        values = [getattr(self, name) for name in ("value", *self._models)]
        if not np.isinf(values).any():
            return super().notes
        rows = self._infinite_rows
        return [*super().notes, OF_ROWS.format(INFINITE, first_of(rows)) if rows else INFINITE]

    @property
    def standard_error(self) -> Any:
        """Standard deviation (``ddof=1``) of the distribution; nan for fewer than two."""
        values = self._values
        return as_float(values.std(-1, ddof=1)) if values.shape[-1] > 1 else np.nan * self.value

    @property
    def bias(self) -> Any:
        """Mean of the distribution minus the value; nan without replicates."""
        values = self._values
        return as_float(values.mean(-1) - self.value) if values.shape[-1] else np.nan * self.value

    def interval(
        self, confidence_level: float | None = None, method: Any = None
    ) -> ConfidenceInterval:
        """Compute the interval ``(low, high)`` at another level, or by another method.

        The level is between 0 and 1, the method "basic" or "percentile", or "bca" or "mover" where
        that is the result's own; by default both are the result's own.
        """
        if self._parts is not None:
            if method is not None:
                check_choice("method", method, (self.method,))
            return super().interval(confidence_level)
        level = self._level(confidence_level)
        name = self.method if method is None else check_choice("method", method, METHODS)
        if name == "bca" != self.method:
            rule = "must be that of the bootstrap for 'bca', which needs a jackknife"
            hint = "pass method='bca' to the function that resamples"
            raise InputError("method", rule, value=method, hint=hint)
        if self.size != self.n:  # the spread of draws of another size is another
            return ConfidenceInterval(np.nan * self.value, np.nan * self.value)
        values, levels = self._values, tails_of(level)
        if name == "bca":
            levels = bca_levels(self.value, values, self.acceleration, levels)
        ends = quantiles(values, levels)
        if name == "basic":
            point = np.asarray(self.value)[..., None]
            ends = np.maximum(2 * point - ends[..., ::-1], self._lowest)
        return ConfidenceInterval(as_float(ends[..., 0]), as_float(ends[..., 1]))

    @property
    def _interval_name(self) -> str:
        return f"{super()._interval_name} ({self.method})"

    @property
    def _sample(self) -> str:
        drawn = "" if self.size == self.n else f", {self.size} drawn"
        return f"{super()._sample}{drawn}, {self.bootstrap_distribution.shape[-1]} replicates"


@dataclass(frozen=True, eq=False, kw_only=True)
class ComparisonResult(BootstrapResult):
    """The difference between the calibration errors of two models on the same rows.

    Attributes
    ----------
    value : float or (K,) float64 array
        ``a - b``: above 0 where the second model is better calibrated.
    a, b : float or (K,) float64 array
        The two errors.
    p_value : float or (K,) float64 array
        ``(1 + #{|d* - d| >= |d|}) / (n_resamples + 1)``, two-sided, with d the difference and d*
        the replicates. With the method "mover": less than 1 - level exactly where the interval of
        that level does not hold 0.

    Also those of `BootstrapResult`, of the difference; its basic interval is not clipped at 0.
    """

    a: Any
    b: Any
    _models = ("a", "b")
    _lowest = -np.inf
    _derived = ("standard_error", "bias", "p_value", "notes")
    _shown = ("a", "b", "value", "confidence_interval", "p_value", "standard_error", "bias")

    @property
    def _sample(self) -> str:
        return super()._sample if self._parts is None else f"{self.n} rows"

    def _label(self, name: str) -> str:
        return "a - b" if name == "value" else super()._label(name)

    @property
    def _numbers(self) -> dict[str, Any]:
        hidden = () if self._parts is None else ("standard_error", "bias")
        return {name: x for name, x in super()._numbers.items() if name not in hidden}

    @property
    def p_value(self) -> Any:
        """Two-sided p-value of the hypothesis that both models have the same error."""
        if self._parts is not None:
            p_values = [part.p_value for part in self._parts]
            return as_float(p_values if np.ndim(self.value) else p_values[0])
        d = np.asarray(self.value)[..., None]
        return p_value_of(np.abs(self.value), np.abs(self._values - d))
