"""Means over rows as estimators: proper scores, accuracy, sharpness and entropy.

Each row brings one number or two, whatever the other rows are, so a replicate of the bootstrap is a
sum over the rows, and many replicates are the product of two matrices: the numbers of the rows, and
how often each replicate drew them. A new mean is a subclass of `Mean` that defines `numbers`.
"""

import math
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fastece import kernels
from fastece.data.containers import contiguous
from fastece.data.errors import InputError
from fastece.data.parameters import check_real
from fastece.data.samples import ALL, CopyReadOnlyOnUnpickle, Sample, scale_weights
from fastece.data.scores import as_scores, float64_parts
from fastece.data.table import RowTable
from fastece.data.threads import Map
from fastece.estimators.base import Parameters, Plan
from fastece.estimators.draws import Counts, Draws, Rows
from fastece.kernels import REPLICATES
from fastece.kernels.types import F64, I32, U8

# Rows that are added up in one piece: with their multiplicities they fit into the first-level
# cache, and sums of few rounded numbers lose less.
TILE = 1024
# Rows whose numbers are made and added up at once: 512 KB, which stay in the second-level cache.
# The Brier score of 1e6 rows takes 1.4 times as long in parts of 2**14 rows. Every sum over the
# rows of a sample is made of sums of these parts, so that all have the same bits.
ROWS_OF_SUM = 2**16
# Entries of class vectors that are read at once: 1 MB.
MAX_ENTRIES = 2**17


class SumPlan(Plan, CopyReadOnlyOnUnpickle):
    """Rows with their terms in sums over the rows that were drawn.

    A plan keeps all terms, or makes them part by part each time that they are added up.
    """

    @property
    @abstractmethod
    def n(self) -> int:
        """Number of rows."""

    @abstractmethod
    def terms_of(self, rows: slice) -> F64:
        """Return the terms (Q, m) of some rows."""

    @abstractmethod
    def sums_of(self, drawn: I32) -> F64:
        """Sum the terms (Q, R) of lists of rows (R, size)."""

    @abstractmethod
    def means(self, sums: F64, size: float) -> F64:
        """Compute means (averaged, R) from sums (Q, R) of draws of `size` rows."""


@dataclass(frozen=True)
class MeanPlan(SumPlan):
    """Terms of each row in the sums over rows.

    Attributes
    ----------
    terms : (Q, n) float64 array
        ``v_i x_i`` for every number x that is averaged, 0 where it is infinite; then the weight of
        each row, if rows have one; then its weight where x is infinite, if that is anywhere.
    averaged : int
        How many numbers are averaged.
    weighted, has_infinite : bool
        Whether the terms have weights, and infinite numbers.
    """

    terms: F64
    averaged: int
    weighted: bool
    has_infinite: bool

    @property
    def n(self) -> int:
        """Number of rows."""
        return int(self.terms.shape[1])

    def terms_of(self, rows: slice) -> F64:
        """Return the terms (Q, m) of some rows."""
        return self.terms[:, rows]

    def sums_of(self, drawn: I32) -> F64:
        """Sum the terms (Q, R) of lists of rows (R, size)."""
        return np.array([np.take(term, drawn).sum(axis=1) for term in self.terms])

    def means(self, sums: F64, size: float) -> F64:
        """Compute means (averaged, R) from sums (Q, R) of draws of `size` rows."""
        total = sums[self.averaged] if self.weighted else size
        means: F64 = sums[: self.averaged] / total
        # Infinite numbers are counted, as 0 times inf is no number.
        return np.where(sums[-1] > 0, math.inf, means) if self.has_infinite else means


class Mean(Parameters):
    """A weighted mean over rows, or a function of some; subclasses define `numbers`."""

    needs_sorted = False
    is_calibration_error = False
    native = (Counts, Rows)
    greater_is_better: Any = None  # no model is better by it

    @abstractmethod
    def numbers(self, sample: Sample) -> F64:
        """Compute the numbers (n,) to average, which may be inf, or several (Q, n)."""

    def value(self, means: F64) -> F64:
        """Compute the values (R,) from the means (Q, R)."""
        return np.asarray(means[0])

    def prepare(self, sample: Sample, size: int) -> SumPlan:  # noqa: ARG002
        """Compute the terms of every row of a sample."""
        sample, _ = scale_weights(sample)
        numbers = np.atleast_2d(self.numbers(sample))
        is_infinite = np.isinf(numbers[0])
        has_infinite = bool(is_infinite.any())
        terms = np.where(is_infinite, 0.0, numbers) if has_infinite else numbers
        if sample.v is not None:
            terms = np.concatenate([terms, np.ones((1, sample.n))])
        if has_infinite:
            terms = np.concatenate([terms, is_infinite[None]])
        if sample.v is not None:
            terms = terms * sample.v
        return MeanPlan(terms, len(numbers), sample.v is not None, has_infinite)

    def point_values(self, table: RowTable, run: Map = map) -> F64:
        """Compute the value (K,) of each problem of a table in parts."""
        problems, _ = scale_weights(table)

        def value(k: int) -> float:
            means = self.means(partial(problems.parts, ROWS_OF_SUM, k))
            return float(self.value(means[:, None])[0])

        return np.array(list(run(value, range(problems.n_problems))))

    def means(self, parts: Callable[[], Iterable[Sample]]) -> F64:
        """Compute the means (Q,) of the numbers of all parts of a sample."""
        return mean_of(parts(), self.numbers)

    def evaluate(self, plan: SumPlan, c: NDArray[Any]) -> float:
        """Return the value when row i of the sample counts ``c[i]`` times."""
        c = c.astype(np.float64)
        sums = sum_rows(plan.terms_of(ALL) * c)
        return float(self.value(plan.means(sums[:, None], float(c.sum())))[0])

    def values(self, plan: SumPlan, draws: Draws) -> F64:
        """Compute the value of each replicate, of counts in one pass over the rows."""
        match draws:
            case Counts():
                c = draws.blocks(plan.n)
                size = float(c[0, :, 0].sum(dtype=np.int64))
                return self.value(plan.means(sum_counted_rows(plan, c), size))
            case Rows(rows):
                return self.value(plan.means(plan.sums_of(rows), float(rows.shape[1])))
        return super().values(plan, draws)


def sum_counted_rows(plan: SumPlan, c: U8) -> F64:
    """Sum the terms (Q, 32 G) of the rows in each replicate, given counts (G, n, 32).

    Sums of tiles are added up one after another, whatever the parts are.
    """
    sums: Any = 0.0
    for start in range(0, plan.n, ROWS_OF_SUM):
        rows = slice(start, start + ROWS_OF_SUM)
        terms = contiguous(plan.terms_of(rows), np.float64)
        order, starts, cells = tiles_of(terms.shape[1])
        # Cell 0 has the sums of the parts before, and every tile of this part has a cell.
        sums_of_cells = np.empty((len(terms), 1 + cells.size, REPLICATES * len(c)))
        counts = contiguous(c[:, rows], np.uint8)
        kernels.replicates.tile_sums(terms, order, starts, cells, 0, counts, sums_of_cells)
        sums_of_cells[:, 0] = sums
        sums = np.add.reduce(sums_of_cells, axis=1)
    return np.asarray(sums)


@lru_cache(maxsize=8)
def tiles_of(n: int) -> tuple[I32, I32, I32]:
    """Return `n` rows in order, where their tiles start, and the cell of each tile."""
    starts = np.append(np.arange(0, n, TILE), n).astype(np.int32)
    return np.arange(n, dtype=np.int32), starts, np.arange(1, starts.size, dtype=np.int32)


def sum_rows(terms: F64) -> F64:
    """Sum terms (Q, n) over the rows, part by part."""
    sums = np.zeros(len(terms))
    for start in range(0, terms.shape[1], ROWS_OF_SUM):
        sums += np.add.reduce(terms[:, start : start + ROWS_OF_SUM], axis=1)
    return sums


def mean_of(parts: Iterable[Sample], numbers: Callable[[Sample], F64]) -> F64:
    """Compute the weighted means (Q,) of numbers (n,) or (Q, n) of each part."""
    sums = np.zeros(1)
    total = 0.0
    for part in parts:
        terms = np.atleast_2d(numbers(part))
        if part.v is None:
            total += part.n
        else:
            terms = terms * part.v
            total += float(np.add.reduce(part.v))
        sums = sums + np.add.reduce(terms, axis=1)
    return sums / total


def infinite_rows(table: RowTable, mean: Mean) -> list[int]:
    """Find the caller's rows whose number is infinite."""
    is_infinite = [
        np.isinf(np.atleast_2d(mean.numbers(sample))[0]) for sample in table.samples(True)
    ]
    if table.has_own_rows:
        return sorted({*table.callers[np.concatenate(is_infinite)].tolist()})
    return sorted({*table.callers[np.any(is_infinite, axis=0)].tolist()})


def vectors_of(sample: Sample) -> Iterator[tuple[slice, NDArray[Any], NDArray[Any]]]:
    """Yield rows of a sample with their class vectors and classes, a part at a time."""
    assert sample.vectors is not None
    step = max(1, MAX_ENTRIES // sample.vectors.prob.shape[1])
    for start in range(0, sample.n, step):
        rows = slice(start, start + step)
        chosen = sample.rows[rows]
        yield rows, sample.vectors.prob[chosen], sample.vectors.label[chosen]


def vector_terms(kind: int, prob: NDArray[Any], label: NDArray[Any], x: F64) -> None:
    """Fill x (n,) with terms of class vectors (n, K), float64 or float32."""
    for rows, vectors in float64_parts(prob):
        kernels.reading.vector_terms(kind, vectors, label[rows], x[rows])


def row_terms(kind: int, prob: NDArray[Any], label: NDArray[Any], first: int, x: F64) -> None:
    """Fill x (K', n) with terms of problems from `first` on, float64 or float32."""
    if prob.dtype == np.float64:
        kernels.reading.row_terms(kind, prob, label, first, x)
    else:
        columns = as_scores(prob[:, first : first + len(x)])
        kernels.reading.row_terms(kind, columns, label - first, 0, x)


class MeanOfTerms(Mean):
    """A mean of a function of one term per row, which a kernel makes.

    The term is the squared distance of a score from its outcome, or the probability of what came
    true; or the same of class vectors as a whole.

    Attributes
    ----------
    kind : int
        The term: `DISTANCE` or `CHANCE` of `fastece.kernels`.
    """

    kind: ClassVar[int]
    needs_vectors = True

    def of_terms(self, x: F64) -> F64:
        """Compute numbers from their terms, of any shape, which may be overwritten."""
        return x

    def numbers(self, sample: Sample) -> F64:
        """Compute the numbers (n,) of the class vectors, or of the binary problem."""
        x = np.empty(sample.n)
        if sample.vectors is None:
            kernels.reading.row_terms(self.kind, sample.s, sample.y, 0, x[None])
        else:
            for rows, prob, label in vectors_of(sample):
                vector_terms(self.kind, prob, label, x[rows])
        return self.of_terms(x)

    def point_values(self, table: RowTable, run: Map = map) -> F64:
        """Compute the value (K,) of each problem by a kernel for all classes."""
        problems, _ = scale_weights(table)
        parts = range(0, problems.n, ROWS_OF_SUM)
        if len(parts) == 1:
            sums, total = self.sum_part(problems, 0)
        else:
            sums_of_parts, totals = zip(*run(partial(self.sum_part, problems), parts), strict=True)
            sums = np.add.accumulate(sums_of_parts)[-1]
            total = sum(totals)
        return sums / total

    def sum_part(self, problems: RowTable, start: int) -> tuple[F64, float]:
        """Sum the numbers (K,) of the rows from `start` on, and their weight."""
        n_rows = min(ROWS_OF_SUM, problems.n - start)
        rows = ALL if n_rows == problems.n else slice(start, start + n_rows)
        weights = None if problems.v is None else problems.v[rows]
        total = float(n_rows if weights is None else np.add.reduce(weights))
        if problems.vectors is not None:
            prob, label = problems.read_vectors(rows)
            x = np.empty((1, n_rows))
            vector_terms(self.kind, prob, label, x[0])
            return self.sum_terms(x, weights), total
        prob, label = problems.read_kept(rows)
        n_problems = problems.n_problems
        step = max(1, ROWS_OF_SUM // n_rows)
        sums = []
        for first in range(0, n_problems, step):
            x = np.empty((min(step, n_problems - first), n_rows))
            row_terms(self.kind, prob, label, first, x)
            sums.append(self.sum_terms(x, weights))
        return sums[0] if len(sums) == 1 else np.concatenate(sums), total

    def sum_terms(self, x: F64, weights: F64 | None) -> F64:
        """Sum the weighted numbers (K,) of terms (K, n)."""
        numbers = self.of_terms(x)
        if weights is not None:
            numbers = numbers * weights
        sums: F64 = np.add.reduce(numbers, axis=1)
        return sums


@dataclass(frozen=True)
class BrierScore(MeanOfTerms):
    """Mean squared distance between probabilities and outcomes; 0 is best.

    ``sum_i w_i (s_i - y_i)^2 / W`` of a binary problem; of class vectors (setting "auto")
    ``sum_i w_i sum_k (p_ik - [k = y_i])^2 / W``, which is from 0 to 2 (Brier 1950, "Verification of
    forecasts expressed in terms of probability", eq. 2).

    Examples
    --------
    >>> from fastece import BrierScore, ece
    >>> round(ece([0, 1], [0.2, 0.6], estimator=BrierScore()), 6)
    0.1
    """

    kind = kernels.DISTANCE
    needs = "squares"
    greater_is_better = False
    lowest = 0.0
    largest = 2.0

    def bounds(self, n_classes: int | None) -> tuple[float, float]:
        """Return the least and the largest value: 1 for a binary problem."""
        return self.lowest, 1.0 if n_classes is None else self.largest


@dataclass(frozen=True)
class RankedProbabilityScore(Mean):
    """Mean squared distance between cumulative probabilities and outcomes; 0 is best.

    ``sum_i w_i sum_k (P_ik - [y_i <= k])^2 / W`` of class vectors (setting "auto") with the
    probability ``P_ik = p_i0 + ... + p_ik`` of the classes up to k, whose order has a meaning
    (Epstein 1969, "A scoring system for probability forecasts of ranked categories"; Murphy 1971,
    "A note on the ranked probability score", eq. 1). A near miss costs less than a far one. It is
    from 0 to K - 1, and ``sum_i w_i (s_i - y_i)^2 / W`` of a binary problem.

    Examples
    --------
    >>> from fastece import RankedProbabilityScore, ece
    >>> near = [[0.2, 0.5, 0.3]]
    >>> far = [[0.5, 0.2, 0.3]]
    >>> [round(ece([2], p, estimator=RankedProbabilityScore()), 6) for p in (near, far)]
    [0.53, 0.74]
    """

    needs = "squares"
    needs_vectors = True
    greater_is_better = False
    lowest = 0.0

    def bounds(self, n_classes: int | None) -> tuple[float, float]:
        """Return the least and the largest value: 1 for a binary problem."""
        return self.lowest, 1.0 if n_classes is None else n_classes - 1.0

    def numbers(self, sample: Sample) -> F64:
        """Compute the score (n,) of class vectors, or of a binary problem."""
        if sample.vectors is None:
            return np.asarray((sample.s - sample.y) ** 2)
        scores = np.empty(sample.n)
        for rows, prob, label in vectors_of(sample):
            cumulative = prob.astype(np.float64).cumsum(axis=1)
            has_come = label[:, None] <= np.arange(prob.shape[1])
            # The last term is the rounding of the sum of all probabilities.
            scores[rows] = ((cumulative - has_come)[:, :-1] ** 2).sum(axis=1)
        return scores


@dataclass(frozen=True)
class LogLoss(MeanOfTerms):
    """Mean negative log probability of the true label; 0 is best.

    ``-sum_i w_i log P_i / W`` with the natural logarithm and the probability P of the true class,
    or of the true one of hit and miss (Good 1952, "Rational decisions").

    Parameters
    ----------
    clip : float or None
        None: one row with P = 0 makes the loss infinite. Else P is limited to ``[clip, 1 - clip]``;
        greater than 0 and at most 1/2.

    Raises
    ------
    ValueError, TypeError
        For another `clip`.

    Examples
    --------
    >>> from fastece import LogLoss, ece
    >>> ece([0, 1], [0.2, 0.0], estimator=LogLoss())
    inf
    >>> round(ece([0, 1], [0.2, 0.0], estimator=LogLoss(clip=0.001)), 6)
    3.565449
    """

    clip: float | None = None

    kind = kernels.CHANCE
    needs = "rows"
    greater_is_better = False

    def __post_init__(self) -> None:
        if self.clip is not None:
            clip = check_real("clip", self.clip, 0.0, 0.5)
            if clip == 0:
                raise InputError("clip", "must be greater than 0; None clips nothing", value=0)
            object.__setattr__(self, "clip", clip)

    @property
    def lowest(self) -> float:
        """The least value: the loss of a row whose label had the largest probability."""
        return 0.0 if self.clip is None else -math.log(1 - self.clip)

    @property
    def largest(self) -> float:
        """The largest value: the loss of a row whose label had the least probability."""
        return math.inf if self.clip is None else -math.log(self.clip)

    def of_terms(self, x: F64) -> F64:
        """Compute losses from the probabilities of the labels, in their place."""
        if self.clip is not None:
            x = x.clip(self.clip, 1 - self.clip)
        with np.errstate(divide="ignore"):  # the loss of a probability of 0 is infinite
            np.log(x, out=x)
        return np.abs(x, out=x)


@dataclass(frozen=True)
class Accuracy(Mean):
    """Share of rows in which the most probable label is the right one; 1 is best.

    For class vectors, and where the score is the largest probability, it is the share of hits. In
    another binary problem a hit is predicted where the score is greater than 1/2.

    Examples
    --------
    >>> from fastece import Accuracy, ece
    >>> ece([0, 1, 1, 1], [0.2, 0.6, 0.5, 0.9], estimator=Accuracy())
    0.75
    """

    greater_is_better = True
    lowest = 0.0
    largest = 1.0

    def numbers(self, sample: Sample) -> F64:
        """Return 1.0 for each row (n,) whose prediction is right, otherwise 0.0."""
        is_top = sample.low > 0  # the support of the largest of K probabilities
        return (sample.y if is_top else (sample.s > 0.5) == sample.y).astype(np.float64)


@dataclass(frozen=True)
class Sharpness(Mean):
    """Weighted variance of the score: how much predictions differ between rows.

    ``sum_i w_i (s_i - m)^2 / W`` with the mean m; of class vectors, of the largest probability. It
    tells nothing of what came true: among calibrated models the sharper one knows more (Gneiting,
    Balabdaoui and Raftery 2007, "Probabilistic forecasts, calibration and sharpness").

    Examples
    --------
    >>> from fastece import Sharpness, ece
    >>> round(ece([0, 1], [0.2, 0.6], estimator=Sharpness()), 6)
    0.04
    """

    needs = "squares"
    lowest = 0.0
    largest = 0.25  # half of the scores are 0, the others 1

    def numbers(self, sample: Sample) -> F64:
        """Compute squared distances from the mean score, and the distances (2, n).

        The distances of a draw have a mean near 0, so that nothing is lost when its square is taken
        off.
        """
        (centre,) = mean_of(sample.parts(ROWS_OF_SUM), lambda part: part.s)
        return squares_and_distances(sample, centre)

    def means(self, parts: Callable[[], Iterable[Sample]]) -> F64:
        """Compute the mean squared distance from the mean score, and the mean distance."""
        (centre,) = mean_of(parts(), lambda part: part.s)
        return mean_of(parts(), partial(squares_and_distances, centre=centre))

    def value(self, means: F64) -> F64:
        """Compute the variance: the mean square minus the square of the mean."""
        return np.asarray(np.maximum(means[0] - means[1] ** 2, 0.0))


def squares_and_distances(sample: Sample, centre: float) -> F64:
    """Compute squared distances of the scores from a centre, and the distances (2, n)."""
    numbers = np.empty((2, sample.n))
    square, distance = numbers
    np.subtract(sample.s, centre, out=distance)
    np.multiply(distance, distance, out=square)
    return numbers


@dataclass(frozen=True)
class Entropy(Mean):
    """Mean entropy of the predicted probabilities, with the natural logarithm.

    ``-sum_i w_i sum_k p_ik log p_ik / W``; of a binary problem over the two probabilities s and
    1 - s (Shannon 1948, "A mathematical theory of communication", section 6). 0 where all rows are
    certain, log K where all classes are equally probable.

    Examples
    --------
    >>> from fastece import Entropy, ece
    >>> round(ece([0, 1], [0.5, 1.0], estimator=Entropy()), 6)
    0.346574
    """

    needs_vectors = True
    lowest = 0.0

    def bounds(self, n_classes: int | None) -> tuple[float, float]:
        """Return the least and the largest value, of equally probable classes."""
        return self.lowest, math.log(n_classes or 2)

    def numbers(self, sample: Sample) -> F64:
        """Compute the entropy (n,) of class vectors, or of probabilities s and 1 - s."""
        if sample.vectors is None:
            return surprise(sample.s) + surprise(1 - sample.s)
        entropies = np.empty(sample.n)
        for rows, prob, _ in vectors_of(sample):
            entropies[rows] = surprise(prob.astype(np.float64)).sum(axis=1)
        return entropies


def surprise(p: F64) -> F64:
    """Compute ``-p log p`` of probabilities, which is 0 for 0."""
    surprises = np.zeros_like(p)
    np.log(p, out=surprises, where=p > 0)
    np.abs(surprises, out=surprises)
    surprises *= p
    return surprises
