"""Results of a bootstrap: a value, its distribution, and intervals from it."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from fastece.checks.errors import InputError
from fastece.checks.parameters import check_choice
from fastece.document.numbers import ConfidenceInterval
from fastece.document.result import EstimatorResult
from fastece.resampling import intervals
from fastece.resampling.intervals import Method, as_float
from fastece.typing import F64

INFINITE = "an infinite value has no interval; clip= makes a log loss finite"
# The method of comparisons that joins the intervals of both models, as `estimate` has them.
MOVER = "mover"


@dataclass(frozen=True, eq=False, kw_only=True)
class ReplicatedResult(EstimatorResult):
    """A value with its bootstrap distribution, as `BootstrapResult` documents it."""

    confidence_interval: ConfidenceInterval = field(init=False)
    confidence_level: float
    method: str
    size: int
    bootstrap_distribution: F64 = field(repr=False)
    acceleration: Any = np.nan

    # Names of the values of models that the value is the difference of, and its least value.
    _models: ClassVar[tuple[str, ...]] = ()
    _lowest = 0.0
    _methods: ClassVar[tuple[str, ...]] = intervals.METHODS
    _derived: ClassVar[tuple[str, ...]] = ("standard_error", "bias")

    def __post_init__(self) -> None:
        object.__setattr__(self, "confidence_interval", self.interval())

    @property
    def _values(self) -> F64:
        """Distribution; nan where the value is infinite, and so has no spread."""
        values, finite = self.bootstrap_distribution, np.isfinite(self.value)
        return values if np.all(finite) else np.where(np.asarray(finite)[..., None], values, np.nan)

    @property
    def _notes(self) -> list[str]:
        values = [getattr(self, name) for name in ("value", *self._models)]
        return [INFINITE] if np.isinf(values).any() else []

    @property
    def standard_error(self) -> Any:
        """Standard deviation of the distribution; nan for fewer than two replicates.

        With ``ddof=1``.
        """
        values = self._values
        return as_float(values.std(-1, ddof=1)) if values.shape[-1] > 1 else np.nan * self.value

    @property
    def bias(self) -> Any:
        """Mean of the distribution minus the value; nan without replicates."""
        if not self._values.shape[-1]:
            return np.nan * self.value
        return as_float(self._values.mean(-1) - self.value)

    def interval(
        self, confidence_level: float | None = None, method: Method | None = None
    ) -> ConfidenceInterval:
        """Compute the interval ``(low, high)`` at another level, or by another method.

        The level is between 0 and 1, the method "basic" or "percentile", or "bca" where that is the
        result's own; by default both are the result's own.
        """
        level, name = self.confidence_level, self.method
        if confidence_level is not None:
            level = intervals.check_level(confidence_level)
        if method is not None:
            name = check_choice("method", method, intervals.METHODS)
        if name == "bca" != self.method:
            raise InputError(
                "method", "must be that of the bootstrap for 'bca', which needs a jackknife",
                value=method, hint="pass method='bca' to the function that resamples",
            )  # fmt: skip
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
        the replicates. With the method "mover": less than 1 - level exactly where the interval of
        that level does not hold 0.

    Also those of `BootstrapResult`, of the difference; its basic interval is not clipped at 0.
    """

    a: Any
    b: Any
    # The joined intervals of each class, or of the only value: something with `interval` and
    # `p_value`; None for another method than "mover".
    _joined: Sequence[Any] | None = field(repr=False, default=None)

    _models = ("a", "b")
    _lowest = -np.inf
    _methods = (*intervals.METHODS, MOVER)
    _derived = (*ReplicatedResult._derived, "p_value")

    @property
    def _sample(self) -> str:
        return super()._sample if self._joined is None else f"{self.n} rows"

    def _label(self, name: str) -> str:
        return "a - b" if name == "value" else super()._label(name)

    @property
    def _numbers(self) -> dict[str, Any]:
        names = ["a", "b", "value", "confidence_interval", "p_value"]
        names += ["standard_error", "bias"] if self._joined is None else []
        return {name: getattr(self, name) for name in names}

    def interval(
        self, confidence_level: float | None = None, method: Any = None
    ) -> ConfidenceInterval:
        """Compute the interval as `BootstrapResult` does; "mover" only where it was used."""
        if self._joined is None:
            return super().interval(confidence_level, method)
        if method is not None:
            check_choice("method", method, (MOVER,))
        level = self.confidence_level
        if confidence_level is not None:
            level = intervals.check_level(confidence_level)
        return intervals.of_parts(self._joined, level, np.ndim(self.value) > 0)

    @property
    def p_value(self) -> Any:
        """Two-sided p-value of the hypothesis that both models have the same error."""
        if self._joined is not None:
            p_values = [part.p_value for part in self._joined]
            return as_float(p_values if np.ndim(self.value) else p_values[0])
        d = np.asarray(self.value)[..., None]
        return intervals.p_value_of(np.abs(self.value), np.abs(self._values - d))
