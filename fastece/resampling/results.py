"""Results of a bootstrap: an estimate, its distribution, and intervals from it."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from typing import Any, ClassVar, TypeVar

import numpy as np

from fastece.checks.parameters import check_choice
from fastece.resampling import intervals
from fastece.resampling.intervals import ConfidenceInterval, Method, as_float
from fastece.typing import F64

INFINITE = "an infinite value has no interval; clip= makes a log loss finite"
# The method of comparisons that joins the intervals of both models, as `estimate` has them.
HONEST = "honest"


def as_python(value: Any) -> Any:
    """Plain Python values of arrays, intervals and results."""
    if isinstance(value, list | tuple):
        return [as_python(part) for part in value]
    if isinstance(value, np.ndarray):
        return value.tolist()
    return value.to_dict() if hasattr(value, "to_dict") else value


@dataclass(frozen=True, eq=False)
class Plain:
    """What can be told in plain values: the fields, and properties of these names."""

    _derived: ClassVar[tuple[str, ...]] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain Python values by name; nan in empty bins."""
        fields = [name for name in self.__dataclass_fields__ if not name.startswith("_")]
        return {name: as_python(getattr(self, name)) for name in (*fields, *self._derived)}


def digits(value: Any) -> str:
    """Digits of a number, of an interval, or of several."""
    if isinstance(value, ConfidenceInterval):
        ends = zip(*map(np.atleast_1d, value), strict=True)
        return " ".join(f"[{low:.5f}, {high:.5f}]" for low, high in ends)
    return " ".join(f"{x:.5f}" for x in np.atleast_1d(value))


def cell(value: Any) -> str:
    """A value of a table as text."""
    return f"{value:.5f}" if isinstance(value, float) else "-" if value is None else str(value)


def aligned(rows: Sequence[Sequence[str]], last: str = ">") -> list[str]:
    """Rows as lines with aligned columns: the first to the left, the others to the right, but the
    last to the side `last`."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    sides = ["<", *">" * (len(widths) - 2), last]
    form = "  ".join(f"{{:{side}{width}}}" for side, width in zip(sides, widths, strict=True))
    return [form.format(*row).rstrip() for row in rows]


class Tabular(ABC):
    """What prints as a line and a table below it; in a notebook as a table of HTML."""

    @abstractmethod
    def _table(self) -> tuple[str, list[list[str]]]:
        """The line, and the cells of the table, its head first."""

    @property
    def _notes(self) -> list[str]:
        """What is printed below the numbers, if they need a word."""
        return []

    def _repr_html_(self) -> str:
        title, (head, *rows) = self._table()
        lines = [f"<table><caption>{escape(title)}</caption>", html_row("th", head)]
        lines += [html_row("td", row) for row in rows]
        wide = f'<tr><td colspan="{len(head)}">'
        lines += [f"{wide}{escape(note)}</td></tr>" for note in self._notes]
        return "\n".join([*lines, "</table>"])


def html_row(tag: str, cells: Sequence[str]) -> str:
    """A row of a table of HTML; what is in its cells is text."""
    return f"<tr>{''.join(f'<{tag}>{escape(cell.strip())}</{tag}>' for cell in cells)}</tr>"


R = TypeVar("R", bound="Result")


class Results(dict[str, R], Tabular):
    """Results by the names of their estimators: a dict that prints as a table.

    Examples
    --------
    >>> import numpy as np
    >>> from fastece import bootstrap
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(1000)
    >>> y = rng.random(1000) < p
    >>> results = bootstrap(y, p, estimator=["ece", "ece_ac"], n_resamples=99, rng=0)
    >>> results
    setting binary: 1000 rows, 99 replicates; 95 % interval (basic)
      name    estimate      low     high  standard_error     bias
      ece      0.03737  0.00506  0.03614         0.00903  0.01457
      ece_ac   0.03368  0.00909  0.03852         0.00757  0.01051
    >>> results["ece"].estimate == results.to_dict()["estimate"][0]
    True
    """

    def to_dict(self) -> dict[str, list[Any]]:
        """The columns of the table by name, as `pandas.DataFrame` takes them: a line for each
        estimator, or for each class of each."""
        lines = [{"name": name, **line} for name, result in self.items() for line in result._lines]
        return {key: [line[key] for line in lines] for key in (lines[0] if lines else ())}

    def to_frame(self) -> Any:
        """The table as a `pandas.DataFrame`; needs pandas."""
        try:
            from pandas import DataFrame
        except ImportError as error:
            raise ImportError(
                "to_frame: needs pandas: pip install pandas; to_dict() gives the same columns"
            ) from error
        return DataFrame(self.to_dict())

    def _table(self) -> tuple[str, list[list[str]]]:
        if not self:
            return "no results", [[]]
        columns = [[key, *(cell(x) for x in values)] for key, values in self.to_dict().items()]
        first = next(iter(self.values()))
        ranges = [key for key, x in first._numbers.items() if isinstance(x, ConfidenceInterval)]
        # Some estimators may be of whole class vectors, and others of the top label.
        settings = dict.fromkeys(result.setting for result in self.values())
        named = f"setting{'s' * (len(settings) > 1)} {' and '.join(settings)}"
        head = first._head.replace(f"setting {first.setting}", named, 1)
        return "; ".join([head, *ranges]), [list(row) for row in zip(*columns, strict=True)]

    @property
    def _notes(self) -> list[str]:
        return list(dict.fromkeys(note for result in self.values() for note in result._notes))

    def __str__(self) -> str:
        title, rows = self._table()
        return "\n  ".join([title, *(aligned(rows) if self else ()), *self._notes])

    __repr__ = __str__


@dataclass(frozen=True, eq=False, kw_only=True)
class Result(Plain, Tabular):
    """What every result of a function that resamples has: `BootstrapResult` tells what it is."""

    n: int
    key: int = field(repr=False)
    estimator: str
    setting: str
    n_groups: int | None = None

    # Names of the field of replicates, and of the numbers that are printed first.
    _replicates: ClassVar[str]
    _shown: ClassVar[tuple[str, ...]]

    @property
    def _head(self) -> str:
        """What was done."""
        size, count = vars(self).get("size", self.n), getattr(self, self._replicates).shape[-1]
        groups = "" if self.n_groups is None else f" in {self.n_groups} groups"
        drawn = "" if size == self.n else f", {size} drawn"
        return f"setting {self.setting}: {self.n} rows{groups}{drawn}, {count} replicates"

    @property
    def _numbers(self) -> dict[str, Any]:
        """What is printed, by what it is called."""
        return {name: getattr(self, name) for name in self._shown}

    @property
    def _lines(self) -> list[dict[str, Any]]:
        """The numbers as lines of a table, one for each class; None for what there is not."""
        numbers: dict[str, Any] = {}
        for name, value in self._numbers.items():
            numbers |= value._asdict() if isinstance(value, ConfidenceInterval) else {name: value}
        count = max(map(np.size, numbers.values()))
        columns = (
            np.broadcast_to(np.asarray(x).astype(object), count).tolist() for x in numbers.values()
        )
        lines = [dict(zip(numbers, line, strict=True)) for line in zip(*columns, strict=True)]
        has_classes = any(map(np.ndim, numbers.values()))
        return [{"class": k, **line} for k, line in enumerate(lines)] if has_classes else lines

    def _table(self) -> tuple[str, list[list[str]]]:
        known = [(name, x) for name, x in self._numbers.items() if x is not None]
        numbers = [[name.replace("_", " "), digits(x)] for name, x in known]
        return f"{self.estimator}, {self._head}", numbers

    def __str__(self) -> str:
        title, rows = self._table()
        return "\n  ".join([title, *aligned(rows, last="<"), *self._notes])


@dataclass(frozen=True, eq=False, kw_only=True)
class Replicated(Result):
    """What every result of a bootstrap has: `BootstrapResult` tells what it is."""

    confidence_interval: ConfidenceInterval = field(init=False)
    confidence_level: float
    method: str
    size: int
    # The values in the order of the replicates, or what draws them.
    _distribution: F64 | Callable[[], F64] = field(repr=False)
    # Gives the values without each part of the rows, of the data, which it holds, if the value on
    # them is `_point`. None in what was pickled.
    _jackknife: Callable[[Any], F64] | None = field(repr=False)

    # The name of what is estimated, those of the values of models it is the difference of, and the
    # smallest value that it may have.
    _estimated: ClassVar[str]
    _models: ClassVar[tuple[str, ...]] = ()
    _lowest = 0.0
    _methods: ClassVar[tuple[str, ...]] = intervals.METHODS
    _replicates = "bootstrap_distribution"
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
    def _point(self) -> Any:
        return getattr(self, self._estimated)

    @property
    def _values(self) -> F64:
        """The distribution; nan where the estimate is infinite, and so has no spread."""
        values, finite = self.bootstrap_distribution, np.isfinite(self._point)
        return values if np.all(finite) else np.where(np.asarray(finite)[..., None], values, np.nan)

    @property
    def _notes(self) -> list[str]:
        values = [getattr(self, name) for name in (self._estimated, *self._models)]
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
            return as_float(intervals.acceleration_of(self._jackknife(self._point)))

    @property
    def standard_error(self) -> Any:
        """Standard deviation of the distribution (``ddof=1``); nan for a single replicate."""
        values = self._values
        return as_float(values.std(-1, ddof=1)) if values.shape[-1] > 1 else np.nan * self._point

    @property
    def bias(self) -> Any:
        """Mean of the distribution minus the estimate."""
        return as_float(self._values.mean(-1) - self._point)

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
            return ConfidenceInterval(np.nan * self._point, np.nan * self._point)
        point, values = np.asarray(self._point)[..., None], self._values
        levels = tails = intervals.tails_of(level)
        if name == "bca":
            levels = intervals.bca_levels(self._point, values, self.acceleration, tails)
        ends = intervals.quantiles(values, levels)
        if name == "basic":
            ends = np.maximum(2 * point - ends[..., ::-1], self._lowest)
        return ConfidenceInterval(as_float(ends[..., 0]), as_float(ends[..., 1]))

    @property
    def _numbers(self) -> dict[str, Any]:
        range_name = f"{100 * self.confidence_level:g} % interval ({self.method})"
        numbers = {**super()._numbers, range_name: self.confidence_interval}
        if self.method != HONEST:
            numbers |= {"standard_error": self.standard_error, "bias": self.bias}
        return numbers


@dataclass(frozen=True, eq=False, kw_only=True)
class BootstrapResult(Replicated):
    """A calibration error with its bootstrap distribution.

    Attributes
    ----------
    estimate : float or (K,) float64 array
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
    >>> round(result.estimate, 6)
    0.125
    """

    estimate: Any

    _estimated = "estimate"
    _shown = ("estimate",)


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
        the replicates. With the method "honest": less than 1 - level exactly where the interval of
        that level does not hold 0.

    Also those of `BootstrapResult`, of the difference; its basic interval is not clipped at 0.
    """

    difference: Any
    a: Any
    b: Any
    # The intervals "honest" of each class, or of the only value: something with `interval` and
    # `p_value`.
    _honest: Sequence[Any] | None = field(repr=False, default=None)

    _estimated = "difference"
    _models = ("a", "b")
    _lowest = -np.inf
    _methods = (*intervals.METHODS, HONEST)
    _shown = ("a", "b", "difference", "p_value")
    _derived = (*Replicated._derived, "p_value")

    @property
    def _head(self) -> str:
        made = f"setting {self.setting}: {self.n} rows"
        return super()._head if self._honest is None else made

    def interval(
        self, confidence_level: float | None = None, method: Any = None
    ) -> ConfidenceInterval:
        """As of `BootstrapResult`; "honest" too, where that is the result's own method."""
        if self._honest is None or (method or self.method) != HONEST:
            return super().interval(confidence_level, method)
        level = self.confidence_level
        if confidence_level is not None:
            level = intervals.check_level(confidence_level)
        return intervals.of_parts(self._honest, level, np.ndim(self.difference) > 0)

    @property
    def p_value(self) -> Any:
        """Two-sided p-value of the hypothesis that both models have the same error."""
        if self._honest is not None:
            p_values = [part.p_value for part in self._honest]
            return as_float(p_values if np.ndim(self.difference) else p_values[0])
        d = np.asarray(self.difference)[..., None]
        return intervals.p_value_of(np.abs(self.difference), np.abs(self._values - d))
