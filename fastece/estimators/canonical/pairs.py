"""Class vectors and bands of pairs, for estimators over all pairs of rows.

Time grows with the square of the number of rows, memory does not: pairs are computed in bands,
those of a few rows with all others, and forgotten; of so few rows that they have room, they are
kept.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from fastece import kernels
from fastece.checks.errors import InputError
from fastece.checks.parameters import check_real
from fastece.data.order import scale_weights
from fastece.data.problems import Problems
from fastece.data.reading import Map
from fastece.data.sample import Sample
from fastece.estimators.base import Chances, Counts, Draws, Labels, Parameters, Rows
from fastece.kernels import REPLICATES
from fastece.typing import F64, I32, I64, U32

# Numbers of a band: as many as leave the second-level cache room for what they are multiplied with.
# Fewer rows than `LEAST` make each column be read too often: 8 take a third longer.
BAND, LEAST = 2**17, 16
# Sums of a band for 32 replicates of all classes.
MOST_SUMS = 2**14
# Pairs that are kept for the next replicates: 134 MB.
MOST_KEPT = 2**24


class Bands:
    """All pairs of rows of class vectors of some shape (n, K), in bands.

    `fill` makes that of the rows of a slice. They are made anew each time, unless they are few
    enough to be kept.
    """

    def __init__(self, shape: tuple[int, ...], fill: Callable[[slice], F64]) -> None:
        n, n_classes = shape
        step = max(min(BAND // n, MOST_SUMS // n_classes), LEAST)
        self.rows = [slice(first, min(first + step, n)) for first in range(0, n, step)]
        self.is_kept, self.fill = n * n <= MOST_KEPT, fill
        self.kept: list[F64] = []

    def __iter__(self) -> Iterator[tuple[slice, F64]]:
        if self.is_kept and not self.kept:
            self.kept = [self.fill(rows) for rows in self.rows]
        return zip(self.rows, self.kept or map(self.fill, self.rows), strict=True)

    def add(self, part: Callable[[slice, F64], Any], run: Map = map) -> Any:
        """Sum a function of the rows and values of each band, in the order of the bands."""
        return np.sum(list(run(lambda rows: part(rows, self.fill(rows)), self.rows)), axis=0)


def vectors_of(sample: Sample) -> tuple[F64, I64]:
    """Return class vectors (n, K) and classes (n,) of a sample.

    Of a binary problem, the columns 1 - s and s.
    """
    if sample.vectors is None:
        return np.column_stack([1 - sample.s, sample.s]), sample.y.astype(np.int64)
    prob, label = sample.vectors.prob, sample.vectors.label
    return prob[sample.rows].astype(np.float64, copy=False), label[sample.rows]


def weights_of(sample: Sample) -> F64:
    """Return weights (n,) with finite products, 1 where there are none."""
    v = scale_weights(sample)[0].v
    return np.ones(sample.n) if v is None else v


def check_rows(n: int, what: str) -> None:
    """Refuse a sample of fewer than two rows."""
    if n < 2:
        raise InputError("y_prob", f"must have 2 rows of positive weight for {what}", value=n)


def check_width(name: str, value: Any, rule: str, least: float) -> Any:
    """Return the width of a kernel, or the name of the rule that finds it."""
    if isinstance(value, str):
        if value == rule:
            return value
        raise InputError(name, f"must be {rule!r} or a number", value=value)
    number = check_real(name, value, -math.inf)
    if not least <= number < math.inf:
        known = f"must be a finite number of at least {least:g}, or {rule!r}"
        raise InputError(name, known, value=value)
    return number


class PairEstimator(Parameters, ABC):
    """An estimator of class vectors that looks at all pairs of rows.

    A kind of it says how to prepare a sample, and its values: once, for multiplicities, for labels.
    """

    needs = "rows"
    needs_vectors = True
    needs_sorted = False
    reads_pairs = True
    native = (Counts, Labels, Rows, Chances)

    @abstractmethod
    def plan(self, sample: Sample, run: Map) -> Any:
        """Compute the parts that do not depend on the counts.

        `run` is `map`, or that of threads.
        """

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

    def direct(self, problems: Problems, run: Map = map) -> F64:
        """Compute the values (K,) of all problems."""
        return np.array([self.value(self.plan(sample, run), run) for sample in problems.samples()])

    def prepare(self, sample: Sample, size: int) -> Any:  # noqa: ARG002
        """Prepare a sample; nothing depends on how many rows are drawn."""
        return self.plan(sample, map)

    def values(self, plan: Any, draws: Draws) -> F64:
        """Compute the value of each replicate, in one pass over the pairs per block."""
        match draws:
            case Counts(c):
                blocks = draws.blocks(c.shape[1])
                return np.concatenate([self.replicates(plan, c.astype(np.float64)) for c in blocks])
            case Labels(y):
                return np.concatenate([self.label_values(plan, block) for block in y])
            case Chances(prob):
                return np.array([self.truth(plan, prob)])
        counts = (np.bincount(row, minlength=plan.v.size) for row in draws.rows)
        return np.array([self.evaluate(plan, c) for c in counts])


def sums_of(band: F64, starts: I64) -> F64:
    """Compute sums (b, S) of a band over runs of its columns."""
    return np.stack([band[:, a:b].sum(axis=1) for a, b in pairwise(starts)], axis=1)


def products_of(band: F64, x: F64, starts: I64) -> F64:
    """Compute products (b, S, W) of a band with x (n, W), over runs of its columns."""
    out = np.empty((len(band), starts.size - 1, x.shape[1]))
    kernels.vectors.run_products(band, x, starts, out)
    return out


def places_of(y: I32) -> U32:
    """Return the place of each label (n, 32) among all replicates' labels (K, 32)."""
    return (y * REPLICATES + np.arange(REPLICATES)).astype(np.uint32)


def label_sums_of(band: F64, place: U32, n_classes: int) -> F64:
    """Sum a band over the columns of each class: (b, K, 32).

    `place` has the places of the labels of the columns.
    """
    out = np.empty((len(band), n_classes * REPLICATES))
    kernels.vectors.place_sums(band, place, out)
    return out.reshape(len(band), n_classes, REPLICATES)


def whole(columns: int) -> I64:
    """Return one run of all columns."""
    return np.array([0, columns])
