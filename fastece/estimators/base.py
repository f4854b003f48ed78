"""The interface of estimators: functions of a weighted binary problem.

A problem is scores in [0, 1], outcomes in {0, 1}, weights and the support of the score (`Sample`).
A setting turns a caller's data into one or K of them, and an estimator turns each into a number.
Whatever resamples the rows only changes how often each of them counts, so an estimator *prepares* a
sample once and *evaluates* it under as many draws as needed::

    prepare(sample, size) -> plan      whatever does not depend on the draw of `size` rows
    evaluate(plan, c)     -> float     the value when row i counts c[i] times
    values(plan, draws)   -> (R,)      the values of many replicates at once

The first two are enough: `Estimator` makes the third of them, for every kind of draws.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fastece.data.containers import as_blocks
from fastece.data.errors import InputError, InputTypeError
from fastece.data.parameters import check_real
from fastece.data.reading import Map
from fastece.data.samples import Sample
from fastece.data.sources import RANKS, Problems, Source
from fastece.kernels import REPLICATES
from fastece.kernels.types import F64, I32, U8

# As many numbers of a tuple are shown.
MOST_SHOWN = 6


# --- draws ----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Counts:
    """How often each row of the sample counts in each replicate.

    Parameters
    ----------
    c : (G, n, 32) uint8 array
        Replicates side by side, in blocks.
    """

    c: U8

    def blocks(self, n: int) -> U8:
        """Return the counts of `n` rows in the block layout of the kernels."""
        return as_blocks(self.c, n, REPLICATES)


@dataclass(frozen=True, eq=False)
class Labels:
    """Drawn labels in place of a sample's own, with the weights of its rows.

    Parameters
    ----------
    y : (G, n, 32) int32 array
        Outcomes, or classes of class vectors.
    sample : Sample or None
        Whose labels they replace; None for an estimator that takes them by its plan alone.
    """

    y: I32
    sample: Sample | None = None


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of the sample that make up each replicate, each counting once.

    Parameters
    ----------
    rows : (R, size) int32 array
        Positions in the sample.
    sample : Sample or None
        As of `Labels`.
    """

    rows: I32
    sample: Sample | None = None


@dataclass(frozen=True, eq=False)
class Chances:
    """Hypothetical probabilities of the labels, at which the true error is evaluated.

    Parameters
    ----------
    prob : (n, K) float64 array
        Of every class, two for a binary problem.
    """

    prob: F64


Draws = Counts | Labels | Rows | Chances


def columns(x: NDArray[Any]) -> NDArray[Any]:
    """Turn blocks (G, n, W) into one line (n,) per replicate."""
    return np.ascontiguousarray(x.swapaxes(1, 2)).reshape(-1, x.shape[1])


# --- statistics and estimators --------------------------------------------------------------


class Statistic(ABC):
    """Quantities that the engine resamples: numbers of a sample, in any shape.

    Attributes
    ----------
    needs_sorted : bool
        Whether `prepare` gets the sample sorted by score.
    needs_vectors : bool
        Whether `Sample.vectors` are wanted: the value for class vectors (setting "auto") is not
        that of the top label.
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

    Attributes
    ----------
    is_calibration_error : bool
        Whether 0 is what a calibrated model has but for noise. Of anything else there is a
        bootstrap and a comparison, but no `estimate` and no `calibration_test`.
    greater_is_better : bool or None
        Whether the best model has the greatest value; None where no model is better by it.
    needs : str
        What it needs of the source of its samples: "ranks", "squares" or "rows".
    largest : float
        The largest value that there can be.
    reads_only : bool
        Whether it leaves the arrays of a sample as they are, and has no use for the rows' numbers.

    The others are those of `Statistic`.
    """

    native: tuple[type, ...] = ()
    is_calibration_error: Any = True
    greater_is_better: Any = False
    needs: Any = RANKS
    largest: ClassVar[float] = np.inf
    reads_only: ClassVar[bool] = False

    def __init_subclass__(cls) -> None:
        """Leave the short path to classes that evaluate rows as it does."""
        if "evaluate" in vars(cls) and "common_value" not in vars(cls):
            cls.common_value = Estimator.common_value  # type: ignore[method-assign]

    @abstractmethod
    def evaluate(self, plan: Any, c: NDArray[Any]) -> float:
        """Compute the value when row i of the sample counts ``c[i]`` times.

        ``sum(c)`` is the size of the draws, but for draws of groups of rows, where all rows have
        weights. Only `estimate` and streams ask for fractions of rows.
        """

    def values(self, plan: Any, draws: Draws) -> F64:
        """Compute the values (R,) of all replicates, one after another."""
        if isinstance(draws, Counts):
            found = map(partial(self.evaluate, plan), columns(draws.c))
        else:
            assert isinstance(draws, Labels | Rows)
            whole = draws.sample
            assert whole is not None
            if isinstance(draws, Labels):
                samples = map(whole.with_labels, columns(draws.y))
            else:
                samples = map(whole.where, np.sort(draws.rows, axis=1))
            found = map(self.evaluate_once, samples)
        return np.array([float(value) for value in found])

    def evaluate_once(self, sample: Sample, size: int | None = None) -> float:
        """Compute the value of a sample with its counts, sorted where necessary."""
        plan = self.prepare(sample, sample.n if size is None else size)
        return float(self.evaluate(plan, sample.counts))

    def common_value(self, p: NDArray[Any], y: NDArray[Any]) -> float:  # noqa: ARG002
        """Compute the value of plain arrays in one pass; nan of others."""
        return math.nan

    def common_bins(self, p: Any, y: Any) -> Any:  # noqa: ARG002
        """Sum up the `Bins` of plain arrays; None of others, and without bins."""
        return None

    def point_values(self, source: Source, run: Map = map) -> F64:
        """Compute the value (K,) of each problem of a source.

        `run` is `map`, or the `map` of a pool of threads. Estimators override it where the values
        of all problems of arrays are found without a sort or a copy of the scores.
        """
        needs = source.needs_of(self)
        own = source if self.reads_only and isinstance(source, Problems) else None
        size = source.count()

        def value(k: int) -> float:
            sample = source.sample(k, needs) if own is None else own.view(k)
            return self.evaluate_once(sample.sorted() if self.needs_sorted else sample, size)

        return np.array(list(run(value, range(source.n_problems))))

    def sweep(self, sample: Sample, size: int, bandwidths: F64) -> F64:  # noqa: ARG002
        """Compute the value (H,) of a sorted sample with each of some bandwidths."""
        raise InputTypeError("estimator", "must have a bandwidth, as KDE has", value=self)

    def of_population(self) -> "Estimator":
        """Return the estimator without a correction for chance.

        A population has no chance that could be taken off.
        """
        return self


class UserEstimator(Estimator):
    """Wrapper of a caller's object with `prepare` and `evaluate`.

    Whatever else of an estimator the object has is used too.

    A method ``block(plan, c)``, if it has one, gives the values (32,) of a block (n, 32) of counts.
    """

    def __init__(self, user: Any) -> None:
        self.user = user
        for name in ("needs_sorted", "needs_vectors", "reads_pairs", "needs",
                     "is_calibration_error", "greater_is_better"):  # fmt: skip
            setattr(self, name, getattr(user, name, getattr(Estimator, name)))
        self.native = (Counts,) if hasattr(user, "block") else ()

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
    measure. `checks` has a function of name and value for each parameter that returns it as it is
    kept.
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
        shown = [
            f"{field.name}={shorten(getattr(self, field.name))}"
            for i, field in enumerate(fields(self))
            if i == 0 or getattr(self, field.name) != field.default
        ]
        return f"{type(self).__name__}({', '.join(shown)})"

    def range_of(self, problems: Any) -> tuple[float, float]:
        """Return the range of scores: [0, 1], the support, or the caller's range."""
        if self.score_range == "support":
            return problems.low, problems.high
        return (0.0, 1.0) if self.score_range == "unit" else self.score_range


def shorten(value: Any) -> str:
    """Write a value as text, with only the ends of a long tuple."""
    if not isinstance(value, tuple) or len(value) <= MOST_SHOWN:
        return repr(value)
    return f"({value[0]!r}, {value[1]!r}, ..., {value[-1]!r})"


def check_width(name: str, value: Any, word: str | None = None, least: float = 5e-324) -> Any:
    """Return a finite number of at least `least`, or the word of a rule that finds it."""
    if word is not None and isinstance(value, str) and value == word:
        return value
    number = math.nan if isinstance(value, str) and word else check_real(name, value, -math.inf)
    if not least <= number < math.inf:
        size = "positive and finite" if least > 0 else "finite and at least 0"
        rule = f"must be {size}" if word is None else f"must be {size}, or {word!r}"
        raise InputError(name, rule, value=value)
    return number


class Plan:
    """Base class of dataclasses that an estimator prepares.

    What it computes and caches is not sent to another process, only its fields are.
    """

    def __getstate__(self: Any) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}
