"""The interface of estimators: functions of a weighted binary problem.

A problem is scores in [0, 1], outcomes in {0, 1}, weights and the support of the score (`Sample`).
A setting turns a caller's data into one or K of them, and an estimator turns each into a number.
Resampling only changes how often each row counts, so an estimator *prepares* a sample once and
*evaluates* it under as many draws as needed::

    prepare(sample, size) -> plan      all that does not depend on the draw of `size` rows
    evaluate(plan, c)     -> float     the value when row i counts c[i] times
    values(plan, draws)   -> (R,)      the values of many replicates at once
    point_values(table)   -> (K,)      the value of each problem, every row counting once

The first two are enough: `Estimator` makes the others of them. An estimator that overrides one of
the others computes the same numbers in it, only faster. An ability of some estimators, such as to
give a posterior or a curve, is a method that the others do not have.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fastece.data.errors import InputError
from fastece.data.parameters import check_real
from fastece.data.samples import Sample
from fastece.data.table import RANKS, RowTable
from fastece.data.threads import Map
from fastece.estimators.draws import Counts, Draws, Labels, Rows, TableCounts, columns
from fastece.kernels import REPLICATES
from fastece.kernels.types import F64

# Longer tuples are shown by their ends.
MAX_NUMBERS_SHOWN = 6
# Attributes that an object with `prepare` and `evaluate` may declare.
DECLARATIONS = (
    "needs_sorted",
    "needs_vectors",
    "reads_pairs",
    "needs",
    "is_calibration_error",
    "greater_is_better",
    "lowest",
    "largest",
)
# Abilities that it may have.
ABILITIES = ("posterior", "posterior_parts", "curve", "curve_statistic", "truth")


# --- statistics and estimators --------------------------------------------------------------


class Statistic(ABC):
    """Quantities that the engine resamples: numbers of a sample, in any shape.

    Attributes
    ----------
    needs_sorted : bool
        Whether `prepare` gets the sample sorted by score.
    needs_vectors : bool
        Whether `Sample.vectors` are wanted: the value for class vectors (setting "auto") differs
        from the value for the top label.
    reads_pairs : bool
        Whether a replicate looks at all pairs of rows, so that threads get fewer at a time.
    native : tuple of types
        The kinds of draws that `values` takes at full speed.
    """

    needs_sorted: Any = True
    needs_vectors: Any = False
    reads_pairs: Any = False
    native: tuple[type, ...] = (Counts,)

    @abstractmethod
    def prepare(self, sample: Sample, size: int) -> Any:
        """Compute the parts that do not depend on the draw of `size` rows."""

    @abstractmethod
    def values(self, plan: Any, draws: Any) -> F64:
        """Compute the values (..., R) of all replicates of some draws."""


class Estimator(Statistic):
    """A number computed from a sample: a row of the table, or a caller's own object.

    A subclass must define `prepare` and `evaluate`. It may override `values` and `point_values`,
    with the same numbers, and declare attributes, here and in `Statistic`. Abilities are methods
    that an estimator may have: None is in the place of those that it lacks, and a function that
    needs one refuses the estimator.

    Attributes
    ----------
    is_calibration_error : bool
        Whether a calibrated model has the value 0, except for noise. If not, there is a bootstrap
        and a comparison, but no `estimate` and no `calibration_test`.
    greater_is_better : bool or None
        Whether the best model has the greatest value; None where no model is better by it.
    lowest, largest : float
        The least and the largest value that there can be, of any data: intervals of the bootstrap
        end there. -inf and inf where there is none.
    needs : str
        The data that it needs of a stream: "ranks", "squares" or "rows".
    reads_only : bool
        Whether it leaves the arrays of a sample as they are, and has no use for the rows' numbers.
    is_norm_of_gaps : bool
        Whether the value is the norm `norm` of the gaps of bins, or of the points of a density, and
        of nothing else: intervals and tests then need sums of outcomes, and no drawn labels.
    posterior : callable or None
        Ability to give intervals: ``posterior(samples)`` of the samples of all problems is the
        posterior of their mean error, with `value`, ``interval(level)``, `influence` (n,) of each
        row and `log_bayes_factor`. For groups it takes their design effect as `effect`, and for
        problems with rows of their own their weights in the mean as `shares`. A posterior may have
        `null` (S,), values of calibrated models; and for comparisons ``comparison_interval(level)``
        and, if the error is the p-norm of the distance of a curve from the scores, p as `norm`.
    posterior_parts : callable or None
        Ability to measure the direction: ``posterior_parts(samples, effect)`` are the posteriors of
        the mean error, of its over part and of its under part.
    curve : callable or None
        Ability to give a reliability curve: ``curve(sample, size, confidence_level, effect)`` of a
        sorted sample of `size` rows is a `Curve`; of groups with their design effect.
    curve_statistic : callable or None
        Ability to resample a curve without a band: ``curve_statistic(score)`` is a `Statistic`, the
        curve at some scores (G,).
    bandwidths : callable or None
        Ability to tell how far a kernel averages: ``bandwidths(table)`` (K,) of each problem.
    bins : callable or None
        Ability to add up rows in bins, as `Binned` does, for diagrams and their bands.
    parts : callable or None
        Ability to measure the direction of a norm of gaps: ``parts(table)`` are the error, its
        over part and its under part (3, K) of each problem.
    truth : callable or None
        Ability to give the true error: ``truth(plan, q)`` if the classes of the rows have the
        probabilities q (n, K). Intervals of estimators that take labels or class vectors need it.
    """

    native: tuple[type, ...] = ()
    is_calibration_error: Any = True
    greater_is_better: Any = False
    lowest: Any = -math.inf
    largest: Any = math.inf
    needs: Any = RANKS
    reads_only: ClassVar[bool] = False
    is_norm_of_gaps: Any = False
    posterior: Any = None
    posterior_parts: Any = None
    curve: Any = None
    curve_statistic: Any = None
    bandwidths: Any = None
    bins: Any = None
    parts: Any = None
    truth: Any = None

    @abstractmethod
    def evaluate(self, plan: Any, c: NDArray[Any]) -> float:
        """Compute the value when row i of the sample counts ``c[i]`` times.

        ``sum(c)`` is the size of the draws, except for draws of groups of rows and for problems
        with rows of their own, where all rows have weights. Only `estimate` and streams ask for
        fractions of rows.
        """

    def values(self, plan: Any, draws: Draws) -> F64:
        """Compute the values (R,) of all replicates, one after another."""
        if isinstance(draws, Counts | TableCounts):
            values = map(partial(self.evaluate, plan), columns(draws.c))
        else:
            assert isinstance(draws, Labels | Rows)
            sample = draws.sample
            assert sample is not None
            if isinstance(draws, Labels):
                samples = map(sample.with_labels, columns(draws.y))
            else:
                samples = map(sample.where, np.sort(draws.rows, axis=1))
            values = map(self.evaluate_once, samples)
        return np.array([float(value) for value in values])

    def bounds(self, n_classes: int | None) -> tuple[float, float]:  # noqa: ARG002
        """Return the least and the largest value of class vectors (n, K).

        `n_classes` is K, or None for a binary problem. An override is for estimators in which K
        matters.
        """
        return self.lowest, self.largest

    @property
    def bounds_mean_gap(self) -> bool:
        """Whether the value of a population is at least as large as its mean gap."""
        return self.posterior is not None

    def of_population(self) -> Any:
        """Return the estimator of a population, where there is no chance to correct for.

        An override is for estimators that take off what chance alone shows.
        """
        return self

    def evaluate_once(self, sample: Sample, size: int | None = None) -> float:
        """Compute the value of a sample with its counts, sorted where necessary."""
        plan = self.prepare(sample, sample.n if size is None else size)
        return float(self.evaluate(plan, sample.counts))

    def point_values(self, table: RowTable, run: Map = map) -> F64:
        """Compute the value (K,) of each problem of a table whose rows count once.

        `run` is `map`, or the `map` of a pool of threads. An override gives the arrays of the table
        to a kernel as they are, without a plan, and has the bits of `evaluate` with counts of 1.
        """
        return values_of_samples(self, table, run)


def values_of_samples(estimator: Any, table: RowTable, run: Map = map) -> F64:
    """Compute the value (K,) of each problem by its sample, perhaps with counts."""
    make_sample = table.view if estimator.reads_only else table.sample

    def value(k: int) -> float:
        sample = make_sample(k)
        ordered = sample.sorted() if estimator.needs_sorted else sample
        return float(estimator.evaluate_once(ordered, table.size(k)))

    return np.array(list(run(value, range(table.n_problems))))


def values_of_problems(estimator: Any, table: RowTable, run: Map = map) -> F64:
    """Compute the value (K,) of each problem of a table.

    `ece`, `bootstrap`, `estimate` and `calibration_test` all ask it. `fastece.estimators.plain` has
    the same values of plain rows sooner, and a posterior has a value of its own.
    """
    if table.c is not None:
        return values_of_samples(estimator, table.seen_by(estimator), run)
    if table.has_own_rows:
        return np.concatenate([estimator.point_values(x, run) for x in table.problems()])
    values: F64 = estimator.point_values(table, run)
    return values


class UserEstimator(Estimator):
    """Wrapper of a caller's object with `prepare` and `evaluate`.

    The attributes that it declares are used too, and so are its abilities. A method
    ``block(plan, c)``, if it has one, gives the values (32,) of a block (n, 32) of counts.
    """

    def __init__(self, user: Any) -> None:
        self.user = user
        for name in DECLARATIONS:
            setattr(self, name, getattr(user, name, getattr(Estimator, name)))
        self.native = (Counts,) if hasattr(user, "block") else ()
        for name in ABILITIES:
            ability = getattr(user, name, None)
            setattr(self, name, ability if callable(ability) else None)

    def __str__(self) -> str:
        return str(self.user)

    def __repr__(self) -> str:
        return repr(self.user)

    def prepare(self, sample: Sample, size: int) -> Any:
        """Prepare a sample for draws of `size` rows."""
        return self.user.prepare(sample, size)

    def evaluate(self, plan: Any, c: NDArray[Any]) -> float:
        """Compute the value when row i of the sample counts ``c[i]`` times."""
        return float(self.user.evaluate(plan, c))

    def of_population(self) -> Any:
        """Return the estimator without a correction for chance, if the object has one."""
        if not hasattr(self.user, "of_population"):
            return self
        return UserEstimator(self.user.of_population())

    def values(self, plan: Any, draws: Draws) -> F64:
        """Compute the values (R,) of all replicates, by blocks if the object allows it."""
        if not (isinstance(draws, Counts) and self.native):
            return super().values(plan, draws)
        blocks = [np.asarray(self.user.block(plan, block), np.float64) for block in draws.c]
        for shape in {values.shape for values in blocks} - {(REPLICATES,)}:
            kind = type(self.user).__name__
            raise ValueError(f"{kind}.block: must return {REPLICATES} values, got shape {shape}")
        return np.concatenate(blocks)


# --- what estimators are made of ------------------------------------------------------------


class Parameters(Estimator):
    """Base class of estimators that are frozen dataclasses of parameters.

    It checks the parameters, and gives estimators their text and the range of scores that they
    measure. `checks` has a function of name and value for each parameter, which returns the value
    as it is kept.
    """

    score_range: Any  # "unit", "support" or a pair
    reads_only = True
    checks: ClassVar[Mapping[str, Callable[[str, Any], Any]]] = {}

    def __post_init__(self) -> None:
        for name, check in self.checks.items():
            object.__setattr__(self, name, check(name, getattr(self, name)))

    def __str__(self) -> str:
        return self._text

    @cached_property
    def _text(self: Any) -> str:
        """The class with its parameters that are not the default; written once."""
        parameters = [
            f"{field.name}={shorten(getattr(self, field.name))}"
            for i, field in enumerate(fields(self))
            if i == 0 or getattr(self, field.name) != field.default
        ]
        return f"{type(self).__name__}({', '.join(parameters)})"

    def range_of(self, problems: Any) -> tuple[float, float]:
        """Return the range of scores: [0, 1], the support, or the caller's range."""
        if self.score_range == "support":
            return problems.low, problems.high
        return (0.0, 1.0) if self.score_range == "unit" else self.score_range


def shorten(value: Any) -> str:
    """Write a value as text, with only the ends of a long tuple."""
    if not isinstance(value, tuple) or len(value) <= MAX_NUMBERS_SHOWN:
        return repr(value)
    return f"({value[0]!r}, {value[1]!r}, ..., {value[-1]!r})"


def check_width(name: str, value: Any, word: str | None = None, least: float = 5e-324) -> Any:
    """Check a finite number of at least `least`, or the word of a rule that finds it."""
    if word is not None and isinstance(value, str) and value == word:
        return value
    is_other_word = word is not None and isinstance(value, str)
    number = math.nan if is_other_word else check_real(name, value, -math.inf)
    if not least <= number < math.inf:
        size = "positive and finite" if least > 0 else "finite and at least 0"
        rule = f"must be {size}" if word is None else f"must be {size}, or {word!r}"
        raise InputError(name, rule, value=value)
    return number


class Plan:
    """Base class of dataclasses that an estimator prepares.

    Only its fields are sent to another process, without the numbers cached beside them.
    """

    def __getstate__(self: Any) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}
