"""Estimators that look at all pairs of rows of class vectors, band by band.

Time grows with the square of the number of rows, memory does not. A band has the pairs of some rows
with all others; it is computed and forgotten, unless all bands have room in memory.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from fastece import kernels
from fastece.data.errors import InputError
from fastece.data.samples import Sample, scale_weights
from fastece.data.table import RowTable
from fastece.data.threads import Map
from fastece.estimators.base import Parameters
from fastece.estimators.draws import Counts, Draws, Labels, Rows, TableCounts
from fastece.kernels import REPLICATES
from fastece.kernels.types import F64, I32, I64, U32

# Numbers of a band: the second-level cache has room left for the factors that it is multiplied by.
MAX_NUMBERS_OF_BAND = 2**17
# With fewer rows in a band each column is read too often: 8 rows take a third longer.
MIN_ROWS_OF_BAND = 16
# Sums of a band for 32 replicates of all classes.
MAX_SUMS_OF_BAND = 2**14
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

    def __iter__(self) -> Iterator[tuple[slice, F64]]:
        if self.is_kept and not self.bands:
            self.bands = [self.fill(rows) for rows in self.rows]
        return zip(self.rows, self.bands or map(self.fill, self.rows), strict=True)

    def sum_over(self, function: Callable[[slice, F64], Any], run: Map = map) -> Any:
        """Sum a function of the rows and values of each band, in the order of the bands."""
        return np.sum(list(run(lambda rows: function(rows, self.fill(rows)), self.rows)), axis=0)


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


class PairEstimator(Parameters, ABC):
    """An estimator of class vectors that looks at all pairs of rows."""

    needs = "rows"
    needs_vectors = True
    needs_sorted = False
    reads_pairs = True
    native = (Counts, Labels, Rows)

    @abstractmethod
    def prepare(self, sample: Sample, size: int, run: Map = map) -> Any:
        """Prepare a sample for draws of any size."""

    @abstractmethod
    def value(self, plan: Any, run: Map = map) -> float:
        """Compute the value, each row counting as much as its weight."""

    @abstractmethod
    def replicates(self, plan: Any, c: F64) -> F64:
        """Compute the value for each column of counts `c` (n, 32)."""

    @abstractmethod
    def truth(self, plan: Any, q: F64) -> float:
        """Compute the error if the classes have the true probabilities `q` (n, K)."""

    @abstractmethod
    def label_values(self, plan: Any, y: I32) -> F64:
        """Compute the values (32,) with other labels (n, 32), rows having their weights."""

    def point_values(self, table: RowTable, run: Map = map) -> F64:
        """Compute the values (K,) of all problems, with bands of pairs on each thread."""
        samples = table.samples()
        plans = (self.prepare(sample, sample.n, run) for sample in samples)
        return np.array([self.value(plan, run) for plan in plans])

    def values(self, plan: Any, draws: Draws) -> F64:
        """Compute the value of each replicate, in one pass over the pairs per block."""
        match draws:
            case Counts(c):
                blocks = draws.blocks(c.shape[1])
                return np.concatenate([self.replicates(plan, c.astype(np.float64)) for c in blocks])
            case Labels(y):
                return np.concatenate([self.label_values(plan, block) for block in y])
            case TableCounts():
                return super().values(plan, draws)
        counts = (np.bincount(rows, minlength=plan.v.size) for rows in draws.rows)
        return np.array([self.evaluate(plan, c) for c in counts])


def multiply_band(band: F64, x: F64) -> F64:
    """Multiply a band (b, m) with x (n, W) into products (b, W)."""
    return multiply_runs(band, x, np.array([0, band.shape[1]]))[:, 0]


def multiply_runs(band: F64, x: F64, starts: I64) -> F64:
    """Multiply runs of columns of a band (b, m) with x (n, W) into products (b, S, W).

    The runs begin at `starts` (S + 1,).
    """
    products = np.empty((len(band), starts.size - 1, x.shape[1]))
    kernels.vectors.run_products(band, x, starts, products)
    return products


def label_places(y: I32) -> U32:
    """Return the place of each label (n, 32) among labels (K, 32) of all replicates."""
    return (y * REPLICATES + np.arange(REPLICATES)).astype(np.uint32)


def sum_by_label(band: F64, place: U32, n_classes: int) -> F64:
    """Sum a band (b, m) over the columns of each class, by replicate: (b, K, 32)."""
    sums = np.empty((len(band), n_classes * REPLICATES))
    kernels.vectors.place_sums(band, place, sums)
    return sums.reshape(len(band), n_classes, REPLICATES)
