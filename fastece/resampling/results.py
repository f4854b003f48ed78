"""Results of a bootstrap: a value, its distribution, and intervals from it."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from fastece.checks.parameters import check_choice
from fastece.document.numbers import ConfidenceInterval
from fastece.document.result import EstimatorResult
from fastece.resampling import intervals
from fastece.resampling.intervals import Method, as_float
from fastece.typing import F64

INFINITE = "an infinite value has no interval; clip= makes a log loss finite"
# The method of comparisons that joins the intervals of both models, as `estimate` has them.
HONEST = "honest"


@dataclass(frozen=True, eq=False, kw_only=True)
class ReplicatedResult(EstimatorResult):
    """A value with its bootstrap distribution: `BootstrapResult` documents what it holds."""

    value: Any
    confidence_interval: ConfidenceInterval = field(init=False)
    confidence_level: float
    method: str
    size: int
    # The values in the order of the replicates, or what draws them.
    _distribution: F64 | Callable[[], F64] = field(repr=False)
    # Gives the values without each part of the rows, of the data, which it holds, if the value on
    # them is `_point`. None in what was pickled.
    _jackknife: Callable[[Any], F64] | None = field(repr=False)

    # Names of the values of models that the value is the difference of, and its least value.
    _models: ClassVar[tuple[str, ...]] = ()
    _lowest = 0.0
    _methods: ClassVar[tuple[str, ...]] = intervals.METHODS
    _derived: ClassVar[tuple[str, ...]] = (
        "bootstrap_distribution", "acceleration", "standard_error", "bias"
    )  # fmt: skip

    def __post_init__(self) -> None:
        object.__setattr__(self, "confidence_interval", self.interval())

    def __getstate__(self) -> dict[str, Any]:
        acceleration = np.nan
        with suppress(ValueError):  # the data have changed
            acceleration = self.acceleration
        known = {"acceleration": acceleration, "_jackknife": None}
        return {**vars(self), **known, "_distribution": self.bootstrap_distribution}

    @property
    def _values(self) -> F64:
        """The distribution; nan where the value is infinite, and so has no spread."""
        values, finite = self.bootstrap_distribution, np.isfinite(self.value)
        return values if np.all(finite) else np.where(np.asarray(finite)[..., None], values, np.nan)

    @property
    def _notes(self) -> list[str]:
        values = [getattr(self, name) for name in ("value", *self._models)]
        return [INFINITE] if np.isinf(values).any() else []

    @cached_property
    def bootstrap_distribution(self) -> F64:
        """Values (n_resamples,), or (K, n_resamples) of classes, in the order of the replicates.

        Those of an "honest" comparison, which does without, are drawn when they are first needed,
        also for `standard_error` and `bias`; until then the result refers to the data, which must
        not change.
        """
        values = self._distribution
        return values() if callable(values) else values

    @cached_property
    def acceleration(self) -> Any:
        """How skewed the estimator is, for BCa intervals: a float or (K,) float64 array, nan where
        `size` is not `n`.

        It is worked out when it is first needed, from the values without each of up to 200 parts
        of the rows, or of their groups. Until then the result refers to the data, which must not
        change; a pickled result does not, as it is worked out before.
        """
        if self._jackknife is None or not self.size == self.n > 1:
            return np.nan
        with np.errstate(invalid="ignore"):  # of an infinite estimate
            return as_float(intervals.acceleration_of(self._jackknife(self.value)))

    @property
    def standard_error(self) -> Any:
        """Standard deviation of the distribution (``ddof=1``); nan for a single replicate."""
        values = self._values
        return as_float(values.std(-1, ddof=1)) if values.shape[-1] > 1 else np.nan * self.value

    @property
    def bias(self) -> Any:
        """Mean of the distribution minus the value."""
        return as_float(self._values.mean(-1) - self.value)

    def interval(
        self, confidence_level: float | None = None, method: Method | None = None
    ) -> ConfidenceInterval:
        """A confidence interval ``(low, high)`` from the distribution that is there, at another
        level between 0 and 1, or by another method: "basic", "percentile" or "bca". By default
        both are the result's own."""
        level, name = self.confidence_level, self.method
        if confidence_level is not None:
            level = intervals.check_level(confidence_level)
        if method is not None:
            name = check_choice("method", method, intervals.METHODS)
        if self.size != self.n:  # the spread of draws of another size is another
            return ConfidenceInterval(np.nan * self.value, np.nan * self.value)
        point, values = np.asarray(self.value)[..., None], self._values
        levels = tails = intervals.tails_of(level)
        if name == "bca":
            levels = intervals.bca_levels(self.value, values, self.acceleration, tails)
        ends = intervals.quantiles(values, levels)
        if name == "basic":
            ends = np.maximum(2 * point - ends[..., ::-1], self._lowest)
        return ConfidenceInterval(as_float(ends[..., 0]), as_float(ends[..., 1]))

    @property
    def _interval_name(self) -> str:
        return f"{100 * self.confidence_level:g} % CI ({self.method})"

    @property
    def _sample(self) -> str:
        drawn = "" if self.size == self.n else f", {self.size} drawn"
        return f"{super()._sample}{drawn}, {self.bootstrap_distribution.shape[-1]} replicates"

    @property
    def _numbers(self) -> dict[str, Any]:
        names = ("value", "confidence_interval", "standard_error", "bias")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True, eq=False, kw_only=True)
class BootstrapResult(ReplicatedResult):
    """A calibration error with its bootstrap distribution.

    Attributes
    ----------
    value : float or (K,) float64 array
        The value of `fastece.ece`.
    bootstrap_distribution : (n_resamples,) or (K, n_resamples) float64 array
        Values in the order of the replicates.
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


@dataclass(frozen=True, eq=False, kw_only=True)
class ComparisonResult(ReplicatedResult):
    """The difference between the calibration errors of two models on the same rows.

    Attributes
    ----------
    value : float or (K,) float64 array
        ``a - b``: above 0 where the second model is better calibrated.
    a, b : float or (K,) float64 array
        The two errors.
    p_value : float or (K,) float64 array
        ``(1 + #{|d* - d| >= |d|}) / (n_resamples + 1)``, two-sided, with d the difference and d*
        the replicates. With the method "honest": less than 1 - level exactly where the interval of
        that level does not hold 0.

    Also those of `BootstrapResult`, of the difference; its basic interval is not clipped at 0.
    """

    a: Any
    b: Any
    # The intervals "honest" of each class, or of the only value: something with `interval` and
    # `p_value`.
    _honest: Sequence[Any] | None = field(repr=False, default=None)

    _models = ("a", "b")
    _lowest = -np.inf
    _methods = (*intervals.METHODS, HONEST)
    _derived = (*ReplicatedResult._derived, "p_value")

    @property
    def _sample(self) -> str:
        return super()._sample if self._honest is None else f"{self.n} rows"

    def _label(self, name: str) -> str:
        return "a - b" if name == "value" else super()._label(name)

    @property
    def _numbers(self) -> dict[str, Any]:
        names = ["a", "b", "value", "confidence_interval", "p_value"]
        names += ["standard_error", "bias"] if self._honest is None else []
        return {name: getattr(self, name) for name in names}

    def interval(
        self, confidence_level: float | None = None, method: Any = None
    ) -> ConfidenceInterval:
        """As of `BootstrapResult`; "honest" too, where that is the result's own method."""
        if self._honest is None or (method or self.method) != HONEST:
            return super().interval(confidence_level, method)
        level = self.confidence_level
        if confidence_level is not None:
            level = intervals.check_level(confidence_level)
        return intervals.of_parts(self._honest, level, np.ndim(self.value) > 0)

    @property
    def p_value(self) -> Any:
        """Two-sided p-value of the hypothesis that both models have the same error."""
        if self._honest is not None:
            p_values = [part.p_value for part in self._honest]
            return as_float(p_values if np.ndim(self.value) else p_values[0])
        d = np.asarray(self.value)[..., None]
        return intervals.p_value_of(np.abs(self.value), np.abs(self._values - d))
