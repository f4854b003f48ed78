"""Results with intervals, and the result of a bootstrap."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, NamedTuple, Self, get_args

import numpy as np
from numpy.typing import NDArray

from fastece.data.errors import InputError
from fastece.data.parameters import check_choice
from fastece.display.numbers import ConfidenceInterval, first_of, holds
from fastece.display.results import EstimatorResult
from fastece.kernels.types import F64
from fastece.resampling.intervals import (
    as_float,
    basic_ends,
    bca_ends,
    check_level,
    percentile_ends,
)

Method = Literal["basic", "percentile", "bca"]
METHODS = get_args(Method)
# Why a value may lie outside its interval, by the method of the interval.
OUTSIDE = {
    "basic": "noise shifts the value like the replicates, which the basic interval takes off.",
    "percentile": "noise shifts the replicates once more, which the basic interval takes off.",
    "bca": "noise shifts the replicates once more, for which 'bca' allows.",
    "mover": "noise shifts both errors, which their intervals take off.",
    "test inversion": "noise raises it, which the interval takes off.",
    "posterior": "its posterior is skewed.",
}
OUTSIDE_BY = "Where a value lies outside its interval: {}"
INFINITE_VALUE = "an infinite value has no interval"
NO_ROWS_DRAWN = "{} of {} replicates drew no row of {}; intervals leave them out"
INFINITE_ROWS = "{}: the outcome had probability 0 in {}; clip= makes a log loss finite"


@dataclass(frozen=True, eq=False, kw_only=True)
class IntervalResult(EstimatorResult):
    """A value with an interval at any level; subclasses compute the interval."""

    confidence_interval: ConfidenceInterval = field(init=False)
    confidence_level: float
    method: str

    # Names of the numbers that are shown.
    _shown: ClassVar[tuple[str, ...]]

    def __post_init__(self) -> None:
        object.__setattr__(self, "confidence_interval", self.interval())

    @abstractmethod
    def interval(self, confidence_level: float | None = None) -> ConfidenceInterval:
        """Compute the interval at a level between 0 and 1, by default the result's own."""

    @property
    def notes(self) -> list[str]:
        """Sentences that stand below the numbers."""
        interval = self.confidence_interval
        is_known = np.isfinite(self.value) & ~np.isnan(interval.low) & ~np.isnan(interval.high)
        is_outside = is_known & ~holds(interval, self.value)
        if not is_outside.any():
            return super().notes
        return [*super().notes, OUTSIDE_BY.format(OUTSIDE[self.method])]

    def _level(self, confidence_level: float | None) -> float:
        """Return a checked level, by default the result's own."""
        return self.confidence_level if confidence_level is None else check_level(confidence_level)

    @property
    def _interval_name(self) -> str:
        return f"{100 * self.confidence_level:g} % CI"

    @property
    def _numbers(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self._shown}


class Kept(NamedTuple):
    """Numbers of a distribution that is not kept, for each value.

    Attributes
    ----------
    low, high : (G,) float64 arrays
        Ends of the interval at the level and by the method of the result.
    standard_error, bias : (G,) float64 arrays
    n_replicates : int
    """

    low: F64
    high: F64
    standard_error: F64
    bias: F64
    n_replicates: int


@dataclass(frozen=True, eq=False, kw_only=True)
class BootstrapResult(IntervalResult):
    """A calibration error with its bootstrap distribution.

    Attributes
    ----------
    value : float or (K,) float64 array
        The value of `fastece.ece`.
    bootstrap_distribution : (n_resamples,) or (K, n_resamples) float64 array
        Values in the order of the replicates; empty where nothing was drawn. Where each task or
        predicted class has rows of its own, a replicate without a row of it is nan. Intervals,
        `standard_error` and `bias` leave such replicates out.
    acceleration : float or (K,) float64 array
        How skewed the estimator is, for "bca"; nan with another method, or where draws have another
        size than the data.
    confidence_interval : ConfidenceInterval
        ``(low, high)`` at `confidence_level` by `method`; nan where draws have another
        size than the data.
    confidence_level, method, estimator, setting : float, str, str, str
        As used: the estimator with its parameters, and the setting that "auto" stood for.
    n, size : int
        Number of rows of positive weight, and number of rows per draw; of groups where `size` was
        given with groups.
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

    size: int
    bootstrap_distribution: F64 = field(repr=False)
    acceleration: Any = np.nan
    # Whether draws have as many rows or groups as there are, for each value or for all.
    _is_whole: Any = field(repr=False, default=True)
    _infinite_rows: Sequence[int] = field(repr=False, default=())  # of the caller
    # Whether each replicate has no row of a problem, in the shape of the distribution; None where
    # all problems have the same rows.
    _lacks_rows: NDArray[np.bool_] | None = field(repr=False, default=None)
    # What is left of a distribution that is not kept.
    _kept: Kept | None = field(repr=False, default=None)
    # The least and the largest value that there can be, where the basic interval ends.
    _bounds: tuple[float, float] = field(repr=False, default=(-np.inf, np.inf))

    _derived: ClassVar[tuple[str, ...]] = ("standard_error", "bias", "notes")
    _shown: ClassVar[tuple[str, ...]] = ("value", "confidence_interval", "standard_error", "bias")
    _arrays = ("value", "bootstrap_distribution", "acceleration", "_lacks_rows", "_is_whole")

    def _joined_fields(self, results: Sequence[Any]) -> dict[str, Any]:
        rows = sorted({row for result in results for row in result._infinite_rows})
        sizes = {"size": sum(r.n for r in results)} if np.all(self._is_whole) else {}
        return {"_infinite_rows": rows, "_kept": join_kept([r._kept for r in results]), **sizes}

    def without_distribution(self) -> Self:
        """Return the result with its interval and standard error, and without replicates."""
        n_replicates = self.bootstrap_distribution.shape[-1]
        kept = Kept(*self.interval(), self.standard_error, self.bias, n_replicates)
        nothing = np.empty((*np.shape(self.value), 0))
        return replace(self, bootstrap_distribution=nothing, _lacks_rows=None, _kept=kept)

    @property
    def _distribution(self) -> F64:
        """Distribution; nan where the value is infinite, and so has no spread."""
        is_finite = np.isfinite(self.value)
        if np.all(is_finite):
            return self.bootstrap_distribution
        return np.where(np.asarray(is_finite)[..., None], self.bootstrap_distribution, np.nan)

    @property
    def _all_values(self) -> list[Any]:
        """The values that the result shows; one of them may be infinite."""
        return [self.value]

    @property
    def notes(self) -> list[str]:
        """Sentences that stand below the numbers."""
        notes = [*super().notes, *self._notes_on_lacking_rows]
        if not np.isinf(self._all_values).any():
            return notes
        if not self._infinite_rows:
            return [*notes, INFINITE_VALUE]
        rows = first_of(self._infinite_rows)
        return [*notes, INFINITE_ROWS.format(INFINITE_VALUE, rows)]

    @property
    def _some_lack_rows(self) -> bool:
        """Whether a replicate has no row of a problem."""
        return self._lacks_rows is not None and bool(self._lacks_rows.any())

    @property
    def _notes_on_lacking_rows(self) -> list[str]:
        """Sentences on replicates that drew no row of a problem."""
        if self._lacks_rows is None:
            return []
        counts = np.atleast_1d(self._lacks_rows.sum(-1)).tolist()
        names = self._names if np.ndim(self.value) else ["a task"]
        n_replicates = self._lacks_rows.shape[-1]
        return [
            NO_ROWS_DRAWN.format(count, n_replicates, name)
            for count, name in zip(counts, names, strict=True)
            if count
        ]

    def _of_replicates_with_rows(self, number: Callable[["BootstrapResult"], float]) -> Any:
        """Compute a number of each value, from the replicates that have rows of it."""
        assert self._lacks_rows is not None, "callers make sure"
        n_replicates = self._lacks_rows.shape[-1]
        n_values = np.size(self.value)
        lines = zip(
            np.ravel(self.value),
            np.broadcast_to(np.ravel(self.acceleration), n_values),
            np.broadcast_to(np.ravel(self._is_whole), n_values),
            self.bootstrap_distribution.reshape(-1, n_replicates),
            self._lacks_rows.reshape(-1, n_replicates),
            strict=True,
        )
        numbers = []
        for value, acceleration, is_whole, line, lacks_rows in lines:
            with_rows = line[~lacks_rows] if not lacks_rows.all() else np.array([np.nan])
            part = replace(
                self, value=value, bootstrap_distribution=with_rows, acceleration=acceleration,
                _is_whole=is_whole, _lacks_rows=None,
            )  # fmt: skip
            numbers.append(number(part))
        return as_float(np.reshape(numbers, np.shape(self.value)))

    @property
    def standard_error(self) -> Any:
        """Standard deviation (``ddof=1``) of the distribution; nan for fewer than two."""
        if self._kept is not None:
            return self._kept.standard_error
        if self._some_lack_rows:
            return self._of_replicates_with_rows(lambda part: part.standard_error)
        if self.bootstrap_distribution.shape[-1] < 2:
            return np.nan * self.value
        with np.errstate(invalid="ignore"):  # of infinite replicates
            return as_float(self._distribution.std(-1, ddof=1))

    @property
    def bias(self) -> Any:
        """Mean of the distribution minus the value; nan without replicates."""
        if self._kept is not None:
            return self._kept.bias
        if self._some_lack_rows:
            return self._of_replicates_with_rows(lambda part: part.bias)
        if not self.bootstrap_distribution.shape[-1]:
            return np.nan * self.value
        with np.errstate(invalid="ignore"):  # of infinite replicates
            return as_float(self._distribution.mean(-1) - self.value)

    def interval(
        self, confidence_level: float | None = None, method: Any = None
    ) -> ConfidenceInterval:
        """Compute the interval ``(low, high)`` at another level, or by another method.

        The level is between 0 and 1, the method "basic" or "percentile", or "bca" where that is the
        result's own; by default both are the result's own.
        """
        level = self._level(confidence_level)
        name = self.method if method is None else check_choice("method", method, METHODS)
        if name == "bca" and self.method != "bca":
            rule = "must be that of the bootstrap for 'bca', which needs a jackknife"
            hint = "pass method='bca' to the function that resamples"
            raise InputError("method", rule, value=method, hint=hint)
        if self._kept is not None:
            if (level, name) != (self.confidence_level, self.method):
                rule = "must be that of the call, whose replicates are not kept"
                hint = "keep_distribution=True keeps them"
                raise InputError("confidence_level", rule, value=level, hint=hint)
            return ConfidenceInterval(self._kept.low, self._kept.high)
        if not np.any(self._is_whole):  # the spread of draws of another size is another
            return ConfidenceInterval(np.nan * self.value, np.nan * self.value)
        if self._some_lack_rows:
            low = self._of_replicates_with_rows(lambda part: part.interval(level, name).low)
            high = self._of_replicates_with_rows(lambda part: part.interval(level, name).high)
            return ConfidenceInterval(low, high)
        if name == "bca":
            ends = bca_ends(self.value, self._distribution, self.acceleration, level)
        elif name == "basic":
            ends = basic_ends(self.value, self._distribution, level)
            ends = ends.clip(*self._bounds)
        else:
            ends = percentile_ends(self._distribution, level)
        low, high = np.where(self._is_whole, np.moveaxis(ends, -1, 0), np.nan)
        return ConfidenceInterval(as_float(low), as_float(high))

    @property
    def _interval_name(self) -> str:
        return f"{super()._interval_name} ({self.method})"

    @property
    def _sample(self) -> str:
        n_replicates = self.bootstrap_distribution.shape[-1]
        if self._kept is not None:
            n_replicates = self._kept.n_replicates
        drawn = "" if np.all(self._is_whole) else f", {self.size} drawn"
        return f"{super()._sample}{drawn}, {n_replicates} replicates"


def join_kept(parts: Sequence[Kept | None]) -> Kept | None:
    """Join the rests of the distributions of several results."""
    kept = [part for part in parts if part is not None]
    if not kept:
        return None
    columns = zip(*(part[:4] for part in kept), strict=True)
    low, high, standard_error, bias = (
        np.concatenate([np.atleast_1d(x) for x in column]) for column in columns
    )
    return Kept(low, high, standard_error, bias, kept[0].n_replicates)
