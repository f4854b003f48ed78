"""Results of a bootstrap: what was found, and intervals from its distribution."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fastece.resampling.intervals import (
    ConfidenceInterval,
    check_level,
    check_method,
    interval,
    p_value_of,
)

__all__ = ["BootstrapResult", "ComparisonResult", "Replicated", "as_float", "listed", "shown"]

F64 = NDArray[np.float64]


def as_float(value: Any) -> Any:
    """A float of an array without dimensions."""
    value = np.asarray(value, np.float64)
    return value if value.ndim else float(value)


def listed(value: Any) -> Any:
    """Plain Python values of arrays and intervals."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    return [listed(end) for end in value] if isinstance(value, tuple) else value


def shown(value: Any) -> str:
    """Digits of a number, or of several."""
    return " ".join(f"{x:.5f}" for x in np.atleast_1d(value))


@dataclass(frozen=True, eq=False, kw_only=True)
class Replicated(ABC):
    """What every result of a bootstrap has.

    Attributes
    ----------
    bootstrap_distribution : (n_resamples,) or (K, n_resamples) float64 array
        Values in the order of the replicates.
    confidence_interval : ConfidenceInterval
        ``(low, high)`` at `confidence_level` by `method`; nan where `size` is not `n`.
    confidence_level : float
    method : str
    n : int
        Number of rows of positive weight.
    size : int
        Number of rows per draw.
    key : int
        Key of the draws.
    acceleration : float or (K,) float64 array
        Of the delete-block jackknife, for BCa intervals.
    estimator : str
        The estimator with its parameters.
    setting : str
        The setting it used.
    """

    bootstrap_distribution: F64
    confidence_interval: ConfidenceInterval
    confidence_level: float
    method: str
    n: int
    size: int
    key: int
    acceleration: Any
    estimator: str
    setting: str

    # The smallest value that the quantity may have.
    _lowest = 0.0

    @property
    @abstractmethod
    def _point(self) -> Any:
        """What is estimated."""

    @property
    def standard_error(self) -> Any:
        """Standard deviation of the distribution (``ddof=1``); nan for a single replicate."""
        values = self.bootstrap_distribution
        if values.shape[-1] < 2:
            return as_float(np.full(values.shape[:-1], np.nan))
        return as_float(values.std(-1, ddof=1))

    @property
    def bias(self) -> Any:
        """Mean of the distribution minus the estimate."""
        return as_float(self.bootstrap_distribution.mean(-1) - self._point)

    def interval(
        self,
        confidence_level: float = 0.95,
        method: Literal["basic", "percentile", "bca"] = "basic",
    ) -> ConfidenceInterval:
        """A confidence interval from the distribution that is there.

        Parameters
        ----------
        confidence_level : float
            Between 0 and 1.
        method : {"basic", "percentile", "bca"}

        Returns
        -------
        ConfidenceInterval
            ``(low, high)``.
        """
        level, name = check_level(confidence_level), check_method(method)
        if self.size != self.n:  # the spread of draws of another size is another
            nothing = as_float(np.full(self.bootstrap_distribution.shape[:-1], np.nan))
            return ConfidenceInterval(nothing, nothing)
        return interval(
            self._point, self.bootstrap_distribution, level, name, self.acceleration,
            self._lowest,
        )  # fmt: skip

    def to_dict(self) -> dict[str, Any]:
        """Plain Python values."""
        values = {name: listed(getattr(self, name)) for name in self.__dataclass_fields__}
        more = ("standard_error", "bias")
        return {**values, **{name: listed(getattr(self, name)) for name in more}}

    def _lines(self, rows: Sequence[tuple[str, str]]) -> str:
        """The result as text: what was done, and a line for each number."""
        low, high = self.confidence_interval
        drawn = "" if self.size == self.n else f", {self.size} drawn"
        count = self.bootstrap_distribution.shape[-1]
        head = f"{self.estimator}, setting {self.setting}: {self.n} rows{drawn}, {count} replicates"
        ends = [
            f"[{a:.5f}, {b:.5f}]"
            for a, b in zip(np.atleast_1d(low), np.atleast_1d(high), strict=True)
        ]
        table = [
            *rows,
            (f"{100 * self.confidence_level:g} % interval", f"{' '.join(ends)} ({self.method})"),
            ("standard error", shown(self.standard_error)),
            ("bias", shown(self.bias)),
        ]
        return "\n".join([head, *(f"  {name:<16} {text}" for name, text in table)])


@dataclass(frozen=True, eq=False, kw_only=True)
class BootstrapResult(Replicated):
    """A calibration error with its bootstrap distribution.

    Attributes
    ----------
    estimate : float or (K,) float64 array
        The value of `fastece.ece`.

    Also those of every result: ``bootstrap_distribution``, ``standard_error``, ``bias``,
    ``confidence_interval``, ``confidence_level``, ``method``, ``n``, ``size``, ``key``,
    ``acceleration``, ``estimator``, ``setting``, and the method ``interval``.

    Examples
    --------
    >>> from fastece import bootstrap
    >>> y, p = [0, 0, 1, 1, 1, 1, 0, 1], [0.1, 0.2, 0.3, 0.4, 0.6, 0.7, 0.8, 0.9]
    >>> result = bootstrap(y, p, n_bins=2, rng=0)
    >>> round(result.estimate, 6)
    0.125
    """

    estimate: Any

    @property
    def _point(self) -> Any:
        return self.estimate

    def __str__(self) -> str:
        return self._lines([("estimate", shown(self.estimate))])


@dataclass(frozen=True, eq=False, kw_only=True)
class ComparisonResult(Replicated):
    """The difference between the calibration errors of two models on the same rows.

    Attributes
    ----------
    difference : float or (K,) float64 array
        ``a - b``: above 0 where the second model is better calibrated.
    a, b : float or (K,) float64 array
        The two errors.
    p_value : float or (K,) float64 array
        ``(1 + #{|d* - d| >= |d|}) / (n_resamples + 1)``, two-sided, with d the difference and d*
        the replicates.

    Also those of `BootstrapResult`, of the difference; its basic interval is not clipped at 0.
    """

    difference: Any
    a: Any
    b: Any

    _lowest = -np.inf

    @property
    def _point(self) -> Any:
        return self.difference

    @property
    def p_value(self) -> Any:
        """Two-sided p-value of the hypothesis that both models have the same error."""
        point = np.asarray(self.difference)[..., None]
        values = self.bootstrap_distribution
        p = p_value_of(np.abs(values - point) >= np.abs(point), values)
        return as_float(np.where(np.isnan(self.difference), np.nan, p))

    def to_dict(self) -> dict[str, Any]:
        """Plain Python values."""
        return {**super().to_dict(), "p_value": listed(self.p_value)}

    def __str__(self) -> str:
        rows = [("a", self.a), ("b", self.b), ("a - b", self.difference), ("p-value", self.p_value)]
        return self._lines([(name, shown(value)) for name, value in rows])
