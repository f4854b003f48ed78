"""Means over rows as estimators: Brier score, log loss, accuracy, sharpness and entropy.

Each row brings one number or two, whatever the other rows are, so a replicate of the bootstrap is a
sum over the rows, and many replicates are the product of two matrices: what the rows bring, and how
often each replicate drew them.
"""

import math
from abc import abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fastece import kernels
from fastece.data.containers import row_slices
from fastece.data.errors import InputError
from fastece.data.parameters import check_real
from fastece.data.reading import TOLERANCE, Map, part_of
from fastece.data.samples import CopyReadOnlyOnUnpickle, Sample, scale_weights
from fastece.data.sources import Problems, Source
from fastece.estimators.base import Counts, Draws, Parameters, Plan, Rows
from fastece.kernels import REPLICATES
from fastece.kernels.types import F64, I32

# Rows that are added up in one piece: with their multiplicities they fit into the first-level
# cache, and sums of few rounded numbers lose less.
TILE = 1024
# Numbers of a single value that are made at once: they stay in the second-level cache.
PART = 2**14


@dataclass(frozen=True)
class MeanPlan(Plan, CopyReadOnlyOnUnpickle):
    """Terms of each row in the sums over rows."""

    # Of each row (Q, n) ``v_i x_i`` for every number x that is averaged, 0 where it is infinite;
    # then its weight, if it has one; then its weight where x is infinite, if that is anywhere.
    terms: F64
    averaged: int  # how many numbers are averaged
    weighted: bool
    has_infinite: bool

    @cached_property
    def tiles(self) -> tuple[I32, I32, I32]:
        """Rows in order, the starts of their tiles, and the only cell of each tile."""
        n = self.terms.shape[1]
        starts = np.append(np.arange(0, n, TILE), n).astype(np.int32)
        return np.arange(n, dtype=np.int32), starts, np.zeros(starts.size - 1, np.int32)

    def means(self, sums: F64, size: float) -> F64:
        """Compute means (averaged, R) from sums (Q, R) of draws of `size` rows."""
        total = sums[self.averaged] if self.weighted else size
        means: F64 = sums[: self.averaged] / total
        # By the count, as 0 times inf is no number.
        return np.where(sums[-1] > 0, math.inf, means) if self.has_infinite else means


class Mean(Parameters):
    """A weighted mean over rows, or a function of some; subclasses define `numbers`.

    Attributes
    ----------
    kind : int or None
        What `kernels.reading.read_terms` makes the number of, if it makes it.
    """

    kind: ClassVar[int | None] = None
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

    def prepare(self, sample: Sample, size: int) -> MeanPlan:  # noqa: ARG002
        """Compute the terms of every row of a sample."""
        sample, _ = scale_weights(sample)
        x = np.atleast_2d(self.numbers(sample))
        infinite = np.isinf(x[0])
        v, has_infinite = sample.v, bool(infinite.any())
        terms = np.where(infinite, 0.0, x) if has_infinite else x
        if v is not None:
            terms = np.concatenate([terms, np.ones((1, sample.n))])
        if has_infinite:
            terms = np.concatenate([terms, infinite[None]])
        terms = terms if v is None else terms * v
        return MeanPlan(terms, len(x), v is not None, has_infinite)

    def point_values(self, source: Source, run: Map = map) -> F64:
        """Compute the value (K,) of each problem of a source, of arrays in parts."""
        if not isinstance(source, Problems):
            return super().point_values(source, run)
        problems, _ = scale_weights(source)

        def value(k: int) -> float:
            return float(self.value(self.means(partial(problems.parts, PART, k))[:, None])[0])

        return np.array(list(run(value, range(problems.n_problems))))

    def common_value(self, p: NDArray[Any], y: NDArray[Any]) -> float:
        """Compute the value of plain arrays in one pass; nan of others."""
        if self.kind is None:
            return math.nan
        total, step = 0.0, max(1, PART * y.size // p.size)
        for start in range(0, y.size, step):
            x = np.empty(min(step, y.size - start))
            prob, label = part_of(p, y, start, step)
            prob = prob.astype(np.float64, copy=False)
            if not kernels.reading.read_terms(self.kind, prob, label, TOLERANCE, x):
                return math.nan
            total += float(self.of_terms(x).sum())
        return total / y.size

    def of_terms(self, x: F64) -> F64:
        """Compute the numbers (n,) from terms of their kind."""
        return x

    def means(self, parts: Callable[[], Iterable[Sample]]) -> F64:
        """Compute the means (Q,) of the numbers of all parts of a sample."""
        return mean_of(parts(), self.numbers)

    def evaluate(self, plan: MeanPlan, c: NDArray[Any]) -> float:
        """Return the value when row i of the sample counts ``c[i]`` times."""
        c = c.astype(np.float64)
        sums = (plan.terms * c).sum(axis=1, keepdims=True)
        return float(self.value(plan.means(sums, float(c.sum())))[0])

    def values(self, plan: MeanPlan, draws: Draws) -> F64:
        """Compute the value of each replicate, of counts in one pass over the rows."""
        match draws:
            case Counts():
                c = draws.blocks(plan.terms.shape[1])
                sums = np.empty((len(plan.terms), 1, REPLICATES * len(c)))
                kernels.replicates.tile_sums(plan.terms, *plan.tiles, 0, c, sums)
                size = float(c[0, :, 0].sum(dtype=np.int64))
                return self.value(plan.means(sums[:, 0], size))
            case Rows(rows):
                sums = np.array([np.take(term, rows).sum(axis=1) for term in plan.terms])
                return self.value(plan.means(sums, float(rows.shape[1])))
        return super().values(plan, draws)


def mean_of(parts: Iterable[Sample], numbers: Callable[[Sample], F64]) -> F64:
    """Compute the weighted means (Q,) of numbers (n,) or (Q, n) of each part."""
    sums, total = np.zeros(1), 0.0
    for part in parts:
        x = np.atleast_2d(numbers(part))
        sums = sums + (x.sum(axis=1) if part.v is None else x @ part.v)
        total += part.n if part.v is None else float(part.v.sum())
    return sums / total


def infinite_rows(source: Problems, mean: Mean) -> list[int]:
    """Find the caller's rows whose number is infinite."""
    samples = source.samples(reads_only=True)
    found = [np.isinf(np.atleast_2d(mean.numbers(x))[0]) for x in samples]
    return sorted({*source.callers[np.any(found, axis=0)].tolist()})


class OfVectors(Mean):
    """A mean over rows with a form of its own for class vectors; defines `of_rows`."""

    needs_vectors = True

    def numbers(self, sample: Sample) -> F64:
        """Compute the numbers (n,) of the class vectors, or of the binary problem."""
        if sample.vectors is None:
            return self.of_rows(sample.s, sample.y)
        prob, label = sample.vectors.prob, sample.vectors.label
        parts = [
            self.of_rows(part.astype(np.float64), label[start : start + len(part)])
            for start, part in row_slices(prob)
        ]
        return np.concatenate(parts)[sample.rows]

    @abstractmethod
    def of_rows(self, p: F64, label: NDArray[Any]) -> F64:
        """Compute the numbers (n,) of scores (n,) or writable class vectors (n, K)."""


@dataclass(frozen=True)
class BrierScore(OfVectors):
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

    def of_rows(self, p: F64, label: NDArray[Any]) -> F64:
        """Compute squared distances (n,) from outcomes, or unit vectors of classes."""
        if p.ndim == 1:
            gap = p - label
            return np.asarray(gap * gap)
        p[np.arange(label.size), label] -= 1.0
        return np.asarray(np.einsum("ik,ik->i", p, p))


@dataclass(frozen=True)
class LogLoss(OfVectors):
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

    def of_rows(self, p: F64, label: NDArray[Any]) -> F64:
        """Compute the loss (n,) from the probability of each label."""
        chance = p[np.arange(label.size), label] if p.ndim > 1 else np.where(label == 1, p, 1 - p)
        return self.of_terms(chance)

    def of_terms(self, x: F64) -> F64:
        """Compute the loss (n,) from the probability of each label."""
        p = x if self.clip is None else x.clip(self.clip, 1 - self.clip)
        with np.errstate(divide="ignore"):  # of 0
            return np.abs(np.log(p))


@dataclass(frozen=True)
class Accuracy(Mean):
    """Share of rows in which the most probable label is the right one; 1 is best.

    Of class vectors, and where the score is that of the top label, the share of hits. Of another
    binary problem a hit is predicted where the score is greater than 1/2.

    Examples
    --------
    >>> from fastece import Accuracy, ece
    >>> ece([0, 1, 1, 1], [0.2, 0.6, 0.5, 0.9], estimator=Accuracy())
    0.75
    """

    greater_is_better = True

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

    def numbers(self, sample: Sample, centre: float | None = None) -> F64:
        """Compute squared distances from a centre, and the distances (2, n).

        Those of a draw from the mean score, the default, have a mean near 0, so that nothing is
        lost when its square is taken off.
        """
        centre = np.average(sample.s, weights=sample.v) if centre is None else centre
        distance = sample.s - centre
        return np.stack([distance * distance, distance])

    def means(self, parts: Callable[[], Iterable[Sample]]) -> F64:
        """Compute the mean squared distance from the mean score, and the mean distance."""
        (centre,) = mean_of(parts(), lambda part: part.s)
        return mean_of(parts(), partial(self.numbers, centre=centre))

    def value(self, means: F64) -> F64:
        """Compute the variance: the mean square minus the square of the mean."""
        return np.asarray(np.maximum(means[0] - means[1] ** 2, 0.0))


@dataclass(frozen=True)
class Entropy(OfVectors):
    """Mean entropy of the predicted probabilities, with the natural logarithm.

    ``-sum_i w_i sum_k p_ik log p_ik / W``; of a binary problem over the two probabilities s and
    1 - s (Shannon 1948, "A mathematical theory of communication", section 6). 0 where all rows are
    certain, log K where they say nothing.

    Examples
    --------
    >>> from fastece import Entropy, ece
    >>> round(ece([0, 1], [0.5, 1.0], estimator=Entropy()), 6)
    0.346574
    """

    def of_rows(self, p: F64, label: NDArray[Any]) -> F64:  # noqa: ARG002
        """Compute the entropy (n,) of the probabilities s and 1 - s, or of class vectors."""
        if p.ndim == 1:
            return surprise(p) + surprise(1 - p)
        return np.asarray(surprise(p).sum(axis=1))


def surprise(p: F64) -> F64:
    """Compute ``-p log p`` of probabilities, which is 0 for 0."""
    return np.asarray(p * np.abs(np.log(p, out=np.zeros_like(p), where=p > 0)))
