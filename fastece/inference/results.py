"""Results of comparisons, floors, and the intervals of results that draw no rows."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np

from fastece.data.parameters import check_choice
from fastece.display.numbers import ConfidenceInterval, count_of, holds, smallest_p
from fastece.resampling.intervals import as_float, p_value_of
from fastece.resampling.results import BootstrapResult

# Why a p-value and an interval may disagree on whether there is a difference.
TWO_SIDED = (
    "Where p-value and interval disagree on a difference of 0: the p-value counts deviations to "
    "both sides alike, the interval each side by itself."
)
STEP_BY_STEP = (
    "Where p-value and interval disagree on a difference of 0: p-values are adjusted step by step "
    "on shared draws, intervals all alike."
)
JOINT = (
    "Intervals (Bonferroni) and p-values (step-down min-p) hold for all {} comparisons together."
)


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


def intervals_of(parts: Sequence[Any], level: float, per_class: bool) -> ConfidenceInterval:
    """Compute the intervals of all classes at a level, or the only one.

    `parts` have a method `interval(level)`: confidence curves, posteriors or differences.
    """
    ends = np.array([part.interval(level) for part in parts], np.float64).reshape(-1, 2)
    if per_class:
        low, high = ends.T.copy()
        return ConfidenceInterval(low, high)
    return ConfidenceInterval(*ends[0].tolist())


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

    It also has the attributes of `BootstrapResult`, for the difference.
    """

    a: Any
    b: Any
    # The difference of each class, or the only one, with the method "mover"; otherwise None.
    _differences: Sequence[Any] | None = field(repr=False, default=None)

    _derived: ClassVar[tuple[str, ...]] = ("standard_error", "bias", "p_value", "notes")
    _shown = ("a", "b", "value", "confidence_interval", "p_value", "standard_error", "bias")

    # Why p-value and interval may disagree.
    _disagreement: ClassVar[str] = TWO_SIDED

    @property
    def _all_values(self) -> list[Any]:
        return [self.value, self.a, self.b]

    @property
    def notes(self) -> list[str]:
        """Sentences that stand below the numbers."""
        interval = self.confidence_interval
        is_known = ~np.isnan(interval.low) & ~np.isnan(interval.high) & ~np.isnan(self.p_value)
        # Without rounding, 1 - 0.95 is greater than a p-value of 0.05.
        rejects = np.less(self.p_value, round(1 - self.confidence_level, 12))
        disagree = is_known & (rejects == holds(interval, 0.0))
        return [*super().notes, self._disagreement] if disagree.any() else super().notes

    @property
    def _sample(self) -> str:
        return super()._sample if self._differences is None else count_of(self.n, "row")

    def _label(self, name: str) -> str:
        return "a - b" if name == "value" else super()._label(name)

    @property
    def _numbers(self) -> dict[str, Any]:
        numbers = super()._numbers
        if self._differences is not None:  # there are no replicates
            del numbers["standard_error"], numbers["bias"]
        return numbers

    @property
    def smallest_p_value(self) -> float:
        """The smallest p-value that the replicates, or levels, of this result can give."""
        if self._differences is not None:
            return float(self._differences[0].smallest_p_value)
        return smallest_p(self._distribution.shape[-1])

    def _smallest_p_value(self, name: str) -> float | None:  # noqa: ARG002
        return self.smallest_p_value

    def interval(
        self, confidence_level: float | None = None, method: Any = None
    ) -> ConfidenceInterval:
        """Compute the interval ``(low, high)`` at another level, or by another method.

        The level is between 0 and 1, the method "basic" or "percentile", or "bca" or "mover" where
        that is the result's own; by default both are the result's own.
        """
        if self._differences is None:
            return super().interval(confidence_level, method)
        if method is not None:
            check_choice("method", method, (self.method,))
        level = self._level(confidence_level)
        return intervals_of(self._differences, level, np.ndim(self.value) > 0)

    @property
    def p_value(self) -> Any:
        """Two-sided p-value of the hypothesis that both models have the same error."""
        if self._differences is not None:
            p_values = [difference.p_value for difference in self._differences]
            return as_float(p_values if np.ndim(self.value) else p_values[0])
        deviations = np.abs(self._distribution - np.asarray(self.value)[..., None])
        return p_value_of(np.abs(self.value), deviations)


@dataclass(frozen=True, eq=False, kw_only=True)
class JointComparisonResult(ComparisonResult):
    """The comparison of one of several models with the first, by a joint test.

    Attributes
    ----------
    p_value : float or (K,) float64 array
        P-value of equal errors, adjusted for all comparisons: the probability that any model whose
        error equals the first one's has a p-value of at most alpha is at most alpha.
    raw_p_value : float or (K,) float64 array
        The p-value of this comparison alone.
    confidence_interval : ConfidenceInterval
        The intervals of all comparisons cover all differences together at `confidence_level`. The
        p-value may be below 1 - `confidence_level` where the interval still includes 0, since it is
        adjusted step by step.
    n_comparisons : int
        Number of models that are compared with the first.

    Each class that has a value of its own is adjusted by itself. All else is as in
    `ComparisonResult`.
    """

    n_comparisons: int
    _joint_p_value: Any = field(repr=False)

    _derived: ClassVar[tuple[str, ...]] = (*ComparisonResult._derived, "raw_p_value")
    _disagreement = STEP_BY_STEP

    @property
    def notes(self) -> list[str]:
        """Sentences that stand below the numbers."""
        return [*super().notes, JOINT.format(self.n_comparisons)]

    @property
    def _interval_name(self) -> str:
        return f"joint {super()._interval_name}"

    def _label(self, name: str) -> str:
        return "joint p-value" if name == "p_value" else super()._label(name)

    def interval(
        self, confidence_level: float | None = None, method: Any = None
    ) -> ConfidenceInterval:
        """Compute the interval ``(low, high)`` at another joint level or method.

        The arguments are as in `ComparisonResult.interval`.
        """
        alpha = 1 - self._level(confidence_level)
        return super().interval(1 - alpha / self.n_comparisons, method)

    @property
    def p_value(self) -> Any:
        """Two-sided p-value of equal errors, adjusted for all comparisons."""
        return self._joint_p_value

    @property
    def raw_p_value(self) -> Any:
        """Two-sided p-value of equal errors of this comparison alone."""
        return super().p_value

    @property
    def smallest_p_value(self) -> float:
        """The p-value of this comparison if draws give no smaller one; 0 if they do.

        For classes it is the smallest p-value of one of them alone.
        """
        smallest = super().smallest_p_value
        if np.ndim(self.value):
            return smallest
        return float(self.p_value) if self.raw_p_value <= smallest else 0.0
