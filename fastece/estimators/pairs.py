"""Estimators that look at all pairs of rows of class vectors, band by band.

Time grows with the square of the number of rows, memory does not. A band has the pairs of some rows
with all others; it is computed and forgotten, unless all bands have room in memory.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastece import kernels
from fastece.data.errors import InputError
from fastece.data.samples import CopyReadOnlyOnUnpickle, Sample, scale_weights
from fastece.data.table import RowTable
from fastece.data.threads import Map
from fastece.estimators.base import Parameters, Plan
from fastece.estimators.draws import Counts, Draws, Labels, Rows, TableCounts
from fastece.kernels.types import F64, I64

# Numbers of a band: the second-level cache has room left for the factors that it is multiplied by.
MAX_NUMBERS_OF_BAND = 2**17
# With fewer rows in a band each column is read too often: 8 rows take a third longer.
MIN_ROWS_OF_BAND = 16
# Sums of a band for 32 replicates of all classes.
MAX_SUMS_OF_BAND = 2**14
# Rows of a matrix that is multiplied: with 320 columns they stay in the second-level cache.
MULTIPLIED_ROWS = 128
# Up to this many pairs are kept for the next replicates: 134 MB.
MAX_KEPT_PAIRS = 2**24


class Bands:
    """All pairs of rows of class vectors, in bands.

    Parameters
    ----------
    shape : (int, int)
        Numbers of rows and classes.
    fill : function
        Makes the band (b, m) of the rows of a slice.
    """

    def __init__(self, shape: tuple[int, ...], fill: Callable[[slice], F64]) -> None:
        n, n_classes = shape
        step = min(MAX_NUMBERS_OF_BAND // n, MAX_SUMS_OF_BAND // n_classes)
        step = max(step, MIN_ROWS_OF_BAND)
        self.rows = [slice(first, min(first + step, n)) for first in range(0, n, step)]
        self.fill = fill
        self.is_kept = n * n <= MAX_KEPT_PAIRS
        self.bands: list[F64] = []

    def keep(self) -> "Bands":
        """Keep all bands for the next sums, if they have room."""
        if self.is_kept and not self.bands:
            self.bands = [self.fill(rows) for rows in self.rows]
        return self

    def sum_over(self, function: Callable[[slice, F64], Any], run: Map = map) -> Any:
        """Sum a function of the rows and values of each band, in the order of the bands."""

        def value_of_band(i: int) -> Any:
            band = self.bands[i] if self.bands else self.fill(self.rows[i])
            return function(self.rows[i], band)

        return np.sum(list(run(value_of_band, range(len(self.rows)))), axis=0)


class ClassVectors(NamedTuple):
    """Class vectors of a sample.

    Attributes
    ----------
    prob : (n, K) float64 array
    label : (n,) int64 array
    v : (n,) float64 array
        Weights of the rows.
    """

    prob: F64
    label: I64
    v: F64


def read_vectors(sample: Sample) -> ClassVectors:
    """Return the class vectors of a sample; for scores s the columns 1 - s and s."""
    v = scale_weights(sample)[0].weights
    if sample.vectors is None:
        prob = np.column_stack([1 - sample.s, sample.s])
        return ClassVectors(prob, sample.y.astype(np.int64), v)
    prob = np.ascontiguousarray(sample.vectors.prob[sample.rows], np.float64)
    return ClassVectors(prob, sample.vectors.label[sample.rows], v)


def check_rows(sample: Sample, reader: str, hint: str = "") -> None:
    """Refuse a sample of fewer than two rows, or of several for one soft label."""
    if sample.n < 2:
        rule = f"must have 2 rows of positive weight for {reader}"
        raise InputError("y_prob", rule, value=1, hint=hint)
    if sample.votes > 1:
        rule = f"must not be soft for {reader}, which leaves out single rows"
        raise InputError("y_true", rule, hint=hint)


class PairPlan(Plan, CopyReadOnlyOnUnpickle):
    """Prepared data of a `PairEstimator`.

    Attributes
    ----------
    prob : (n, K) float64 array
    label : (n,) int64 array
    v : (n,) float64 array
        Weights of the rows.
    order : (n,) int64 array or slice
        The position of each row in the sample.
    bands : Bands
        Kernel values of pairs of rows.
    """

    prob: F64
    label: I64
    v: F64
    order: Any
    bands: Any


class PairEstimator(Parameters, ABC):
    """An estimator of class vectors that looks at all pairs of rows."""

    needs = "rows"
    needs_vectors = True
    needs_sorted = False
    reads_pairs = True
    native = (Counts, TableCounts, Labels, Rows)

    @abstractmethod
    def prepare(self, sample: Sample, size: int, run: Map = map) -> Any:
        """Prepare a sample for draws of any size."""

    @abstractmethod
    def value(self, plan: Any, run: Map = map) -> float:
        """Compute the value, each row counting as much as its weight."""

    @abstractmethod
    def evaluate(self, plan: Any, c: NDArray[Any]) -> float:
        """Return the value when row i of the sample counts ``c[i]`` times."""

    @abstractmethod
    def values_of_counts(self, plan: Any, c: F64) -> F64:
        """Compute the values (W,) of rows that count so often (n, W)."""

    @abstractmethod
    def values_of_classes(self, plan: Any, is_class: F64) -> F64:
        """Compute the values (W,) of rows with other classes, one-hot (n, K, W)."""

    @abstractmethod
    def truth(self, plan: Any, q: F64) -> float:
        """Compute the error if the classes have the true probabilities `q` (n, K)."""

    def point_values(self, table: RowTable, run: Map = map) -> F64:
        """Compute the values (K,) of all problems, with bands of pairs on each thread."""
        samples = table.samples()
        plans = (self.prepare(sample, sample.n, run) for sample in samples)
        return np.array([self.value(plan, run) for plan in plans])

    def values(self, plan: Any, draws: Draws) -> F64:
        """Compute the value of each replicate, in one pass over the pairs per block."""
        if isinstance(draws, Rows):  # few of many, whose pairs alone are looked at
            counts = (np.bincount(rows, minlength=plan.v.size) for rows in draws.rows)
            return np.array([self.evaluate(plan, c) for c in counts])
        plan.bands.keep()
        if isinstance(draws, Labels):
            classes = np.arange(plan.prob.shape[1])[:, None]
            blocks = ((y[plan.order][:, None] == classes).astype(np.float64) for y in draws.y)
            return np.concatenate([self.values_of_classes(plan, block) for block in blocks])
        # In this order of memory numpy adds up rows one after the other.
        blocks = (np.ascontiguousarray(c[plan.order], np.float64) for c in draws.c)
        return np.concatenate([self.values_of_counts(plan, block) for block in blocks])


def multiply(a: F64, x: F64) -> F64:
    """Multiply a (b, m) with x (m, W), some rows of x at a time.

    numpy leaves products to a library whose threads wait for each other: on a machine with other
    work a bootstrap took thirty times as long.
    """
    product = np.zeros((len(a), x.shape[1]))
    part = np.empty_like(product)
    for first in range(0, len(x), MULTIPLIED_ROWS):
        rows = slice(first, first + MULTIPLIED_ROWS)
        factors = np.ascontiguousarray(a[:, rows])
        kernels.vectors.fill_pairs(factors, x[rows], kernels.NO_WEIGHTS, False, part)
        product += part
    return product
