"""Canonical calibration: estimators of all classes together, from pairs of rows.

Time grows with the square of the number of rows, memory does not: pairs are computed in bands,
those of a few rows with all others, and forgotten; of so few rows that they have room, they are
kept.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fastece import kernels
from fastece.data.errors import InputError
from fastece.data.parameters import check_choice, check_real
from fastece.data.samples import CopyReadOnlyOnUnpickle, Sample, scale_weights
from fastece.data.sources import Source
from fastece.data.threads import Map
from fastece.estimators.base import Parameters, Plan, check_width
from fastece.estimators.draws import Chances, Counts, Draws, Labels, Rows
from fastece.kernels import REPLICATES
from fastece.kernels.types import F64, I32, I64, U32

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


def vectors_of(sample: Sample) -> tuple[F64, I64, F64]:
    """Return class vectors (n, K), classes (n,) and weights (n,) of a sample.

    Of a binary problem, the columns 1 - s and s.
    """
    v = scale_weights(sample)[0].v
    v = np.ones(sample.n) if v is None else v
    if sample.vectors is None:
        return np.column_stack([1 - sample.s, sample.s]), sample.y.astype(np.int64), v
    prob = np.ascontiguousarray(sample.vectors.prob[sample.rows], np.float64)
    return prob, sample.vectors.label[sample.rows], v


def check_rows(sample: Sample, what: str) -> None:
    """Refuse a sample of fewer than two rows, or of several for one soft label."""
    if sample.n < 2:
        raise InputError("y_prob", f"must have 2 rows of positive weight for {what}", value=1)
    if sample.votes > 1:
        raise InputError("y_true", f"must not be soft for {what}, which leaves out single rows")


class PairEstimator(Parameters, ABC):
    """An estimator of class vectors that looks at all pairs of rows."""

    needs = "rows"
    needs_vectors = True
    needs_sorted = False
    reads_pairs = True
    native = (Counts, Labels, Rows, Chances)

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

    def point_values(self, source: Source, run: Map = map) -> F64:
        """Compute the values (K,) of all problems, with bands of pairs on each thread."""
        samples = source.samples(source.needs_of(self))
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
            case Chances(prob):
                return np.array([self.truth(plan, prob)])
        counts = (np.bincount(row, minlength=plan.v.size) for row in draws.rows)
        return np.array([self.evaluate(plan, c) for c in counts])


def products_of(band: F64, x: F64, starts: I64 | None = None) -> F64:
    """Compute products (b, S, W) of a band with x (n, W), over runs of columns."""
    starts = np.array([0, band.shape[1]]) if starts is None else starts
    out = np.empty((len(band), starts.size - 1, x.shape[1]))
    kernels.vectors.run_products(band, x, starts, out)
    return out


def places_of(y: I32) -> U32:
    """Return the place of each label (n, 32) among all replicates' labels (K, 32)."""
    return (y * REPLICATES + np.arange(REPLICATES)).astype(np.uint32)


def label_sums_of(band: F64, place: U32, n_classes: int) -> F64:
    """Sum a band over the columns of each class (b, K, 32), at their `places_of`."""
    out = np.empty((len(band), n_classes * REPLICATES))
    kernels.vectors.place_sums(band, place, out)
    return out.reshape(len(band), n_classes, REPLICATES)


# The bandwidths that the likelihood chooses from.
BANDWIDTHS = tuple(np.logspace(-5, -1, 10).tolist())
# Exponents of less are infinite.
LEAST_BANDWIDTH = 1e-300
# Logarithms of smaller probabilities are those of this.
FLOOR = 1e-5
# A density of less than this part of the largest kernel value has lost digits, as where a replicate
# has none of the rows that are near: it is computed anew.
DENSITY_UNDERFLOW = 1e-200


@dataclass(frozen=True)
class DirichletPlan(Plan, CopyReadOnlyOnUnpickle):
    """Prepared data of `DirichletKDE`, with rows sorted by class."""

    prob: F64  # (n, K)
    label: I64  # (n,)
    v: F64  # (n,) weights
    order: I64  # (n,) where each row is in the sample
    bandwidth: float

    @cached_property
    def columns(self) -> F64:
        """Probabilities (K, n), class by class."""
        return np.ascontiguousarray(self.prob.T)

    @cached_property
    def log_prob(self) -> F64:
        """Logarithms (n, K) of the probabilities, floored at `FLOOR`."""
        return np.asarray(np.log(np.maximum(self.prob, FLOOR)))

    @cached_property
    def starts(self) -> I64:
        """First row of each class (K + 1,)."""
        return np.asarray(np.searchsorted(self.label, np.arange(self.prob.shape[1] + 1)))

    @cached_property
    def bands(self) -> Bands:
        """Bands of weighted kernel values of all pairs of rows.

        For each row j the values ``v_i K(p_j; p_i)`` of the other rows i, over the largest of K.
        """
        constant = log_factor(self.prob, self.bandwidth)
        factors = kernels.weights(None if (self.v == 1).all() else self.v)

        def fill(rows: slice) -> F64:
            band = self.exponents(rows, constant, 1 / self.bandwidth)
            kernels.vectors.exponentiate(band, factors)
            return band

        return Bands(self.prob.shape, fill)

    def exponents(self, rows: slice, constant: F64, inverse: float) -> F64:
        """Compute the exponents of the kernels of some rows with all others.

        ``constant[i] + inverse * sum_k p_ik log p_jk`` of the rows j and all others i.
        """
        band = np.empty((rows.stop - rows.start, self.v.size))
        scaled = self.log_prob[rows] * inverse
        kernels.vectors.fill_pairs(scaled, self.columns, constant, False, False, band)
        band[np.arange(len(band)), np.arange(rows.start, rows.stop)] = -np.inf
        return band

    def where(self, c: F64) -> "DirichletPlan":
        """Return the plan of the rows that count, their weights multiplied by counts."""
        rows = np.flatnonzero(c)
        prob, label, v = self.prob[rows], self.label[rows], self.v[rows] * c[rows]
        return replace(self, prob=prob, label=label, v=v, order=np.arange(rows.size))


def log_factor(prob: F64, bandwidth: float) -> F64:
    """Compute the log normalizing constants (n,) of Dirichlet(p / bandwidth + 1)."""
    from scipy.special import gammaln

    alpha = prob / bandwidth + 1
    factor: F64 = gammaln(alpha.sum(axis=1)) - gammaln(alpha).sum(axis=1)
    return factor


def likeliest_bandwidth(plan: DirichletPlan, run: Map) -> float:
    """Find the bandwidth with the largest leave-one-out likelihood."""
    constants = np.array([log_factor(plan.prob, h) + np.log(plan.v) for h in BANDWIDTHS])
    inverse = 1 / np.array(BANDWIDTHS)
    zeros = np.zeros(plan.v.size)
    bands = Bands(plan.prob.shape, lambda rows: plan.exponents(rows, zeros, 1.0))

    def part(rows: slice, band: F64) -> Any:
        density = np.empty((len(BANDWIDTHS), len(band)))
        kernels.vectors.log_sums(band, constants, inverse, density)
        return (density * plan.v[rows]).sum(axis=1)

    likelihood: F64 = bands.add(part, run)
    return float(BANDWIDTHS[int(likelihood.argmax())])


@dataclass(frozen=True)
class DirichletKDE(PairEstimator):
    """Canonical calibration error.

    What a prediction of all classes is off by from how often they come true among rows with nearly
    the same prediction.

    ``sum_j w_j sum_k |r_jk - p_jk|**norm / W``, without a root, where r_j are the shares of the
    classes near p_j: ``r_j = sum_i w_i K(p_j; p_i) e_(y_i) / sum_i w_i K(p_j; p_i)`` over all rows
    i but j, with the density ``K(.; p_i)`` of Dirichlet(p_i / bandwidth + 1) and unit vectors e.

    Parameters
    ----------
    bandwidth : "likelihood" or float, default "likelihood"
        Greater than 0; about the variance of the kernel. "likelihood": of ten from 1e-5 to 1e-1,
        evenly spaced in their logarithm, that with the largest leave-one-out likelihood of the
        predictions, ``sum_j w_j log sum_i w_i K(p_j; p_i)``; replicates keep it.
    norm : {1.0, 2.0}, default 1.0

    Raises
    ------
    ValueError, TypeError
        For another bandwidth or norm; for fewer than two rows.

    Notes
    -----
    Popordanoska, Sayer and Blaschko (2022, "A consistent and differentiable Lp canonical
    calibration error estimator", eq. 8 and 9). Probabilities up to 1e-5 count as 1e-5 in
    logarithms, so those of 0 have one. In a replicate i and j are rows of the data, not copies of
    one; of a replicate with a single row of the data the value is nan, so that there is no interval
    of a bootstrap of some five rows. The time grows with the
    square of the number of rows.

    A binary problem, as any setting but "auto" makes, has the two columns 1 - s and s.

    Examples
    --------
    >>> from fastece import DirichletKDE, ece
    >>> p = [[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.3, 0.3, 0.4]]
    >>> round(ece([0, 1, 1], p, estimator=DirichletKDE(bandwidth=0.1)), 6)
    0.992933
    """

    bandwidth: Any = "likelihood"
    norm: float = 1.0

    checks: ClassVar = {
        "bandwidth": partial(check_width, word="likelihood", least=LEAST_BANDWIDTH),
        "norm": partial(check_real, low=1.0, high=2.0),
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.norm not in (1.0, 2.0):
            raise InputError("norm", "must be 1 or 2", value=self.norm)

    def prepare(self, sample: Sample, size: int, run: Map = map) -> DirichletPlan:  # noqa: ARG002
        """Prepare a sample: rows sorted by class, and the bandwidth."""
        check_rows(sample, "the canonical error")
        prob, label, v = vectors_of(sample)
        order = np.argsort(label, kind="stable")
        plan = DirichletPlan(prob[order], label[order], v[order], order, 1.0)
        is_given = self.bandwidth != "likelihood"
        bandwidth = self.bandwidth if is_given else likeliest_bandwidth(plan, run)
        return replace(plan, bandwidth=bandwidth)

    def errors(self, plan: DirichletPlan, rows: slice, hits: F64) -> F64:
        """Compute errors (b, R) of some rows from class densities (b, K, R) near them.

        They are nan where no row is near.
        """
        with np.errstate(invalid="ignore"):
            gap = np.abs(hits / hits.sum(axis=1, keepdims=True) - plan.prob[rows][:, :, None])
        return np.asarray((gap**self.norm).sum(axis=1))

    def value(self, plan: DirichletPlan, run: Map = map) -> float:
        """Compute the value, each row counting as much as its weight."""

        def part(rows: slice, band: F64) -> Any:
            hits = [band[:, a:b].sum(axis=1) for a, b in pairwise(plan.starts)]
            return plan.v[rows] @ self.errors(plan, rows, np.stack(hits, axis=1)[:, :, None])[:, 0]

        return float(plan.bands.add(part, run) / plan.v.sum())

    def evaluate(self, plan: DirichletPlan, c: NDArray[Any]) -> float:
        """Return the value when row i of the sample counts ``c[i]`` times."""
        c = c[plan.order].astype(np.float64)
        return self.value(plan.where(c)) if np.count_nonzero(c) > 1 else np.nan

    def replicates(self, plan: DirichletPlan, c: F64) -> F64:
        """Compute the value for each column of counts (n, 32), in one pass over the pairs."""
        counts = c[plan.order]
        total, is_faint = np.zeros(c.shape[1]), np.zeros(c.shape[1], np.bool_)
        for rows, band in plan.bands:
            hits, count = products_of(band, counts, plan.starts), counts[rows]
            is_faint |= ((hits.sum(axis=1) < DENSITY_UNDERFLOW) & (count > 0)).any(axis=0)
            errors = self.errors(plan, rows, hits)
            total += np.where(count > 0, plan.v[rows][:, None] * count * errors, 0.0).sum(axis=0)
        values = total / (plan.v[:, None] * counts).sum(axis=0)
        for r in np.flatnonzero(is_faint):
            values[r] = self.evaluate(plan, c[:, r])
        return np.asarray(values)

    def label_values(self, plan: DirichletPlan, y: I32) -> F64:
        """Compute the values (32,) with other labels (n, 32), rows having their weights."""
        place, total = places_of(y[plan.order]), np.zeros(y.shape[1])
        for rows, band in plan.bands:
            hits = label_sums_of(band, place, plan.prob.shape[1])
            total += (plan.v[rows][:, None] * self.errors(plan, rows, hits)).sum(axis=0)
        return np.asarray(total / plan.v.sum())

    def truth(self, plan: DirichletPlan, q: F64) -> float:
        """Compute the error if the classes have the true probabilities `q` (n, K).

        Of the smoothed difference of both, so that of a calibrated model it is 0.
        """
        gap, total = q[plan.order] - plan.prob, 0.0
        for rows, band in plan.bands:
            mean = np.abs(products_of(band, gap)[:, 0] / band.sum(axis=1, keepdims=True))
            total += float(plan.v[rows] @ (mean**self.norm).sum(axis=1))
        return float(total / plan.v.sum())


# Rows among which distances are measured for the width.
MEASURED = 1000
# Products of weights that have lost digits, where a replicate has none of the heavy rows.
WEIGHT_UNDERFLOW = 1e-280


@dataclass(frozen=True)
class SKCEPlan(Plan, CopyReadOnlyOnUnpickle):
    """Prepared data of `SKCE` for a sample."""

    prob: F64  # (n, K)
    gap: F64  # (n, K) unit vector of the class less the probabilities
    v: F64  # (n,) weights
    scale: float  # the kernel is ``exp(scale * d)``, -inf where the width is 0
    is_gaussian: bool  # whether d is the squared distance
    is_biased: bool  # whether each row makes a pair with itself

    @cached_property
    def kernel_bands(self) -> Bands:
        """Bands of kernel values times the weights of both rows.

        Of the pairs of some rows with all rows up to them, each pair of two rows twice.
        """
        columns = np.ascontiguousarray(self.prob.T)

        def fill(rows: slice) -> F64:
            band = np.empty((rows.stop - rows.start, rows.stop))
            kernels.vectors.fill_kernel(
                self.prob[rows], columns, self.v, self.scale, self.is_gaussian, rows.start, band
            )
            if not self.is_biased:
                band[np.arange(len(band)), np.arange(rows.start, rows.stop)] = 0.0
            return band

        return Bands(self.prob.shape, fill)

    @cached_property
    def gap_bands(self) -> Bands:
        """Bands of `kernel_bands` times the products of the gaps."""
        columns, kernel_bands = np.ascontiguousarray(self.gap.T), self.kernel_bands

        def fill(rows: slice) -> F64:
            band = kernel_bands.fill(rows)
            kernels.vectors.fill_pairs(self.gap[rows], columns, np.empty(0), False, True, band)
            return band

        return Bands(self.prob.shape, fill)

    @cached_property
    def mean_prob(self) -> F64:
        """Kernel-weighted sums (n, K) of the class vectors of all rows, for each row."""
        mean = np.zeros(self.prob.shape)
        for rows, band in self.kernel_bands:
            # Half of a pair, which is there twice, is of each of its rows.
            band = band / 2
            mean[rows] += products_of(band, self.prob)[:, 0]
            columns = np.ascontiguousarray(band.T)
            mean[: rows.stop] += products_of(columns, self.prob[rows])[:, 0]
        return mean

    def total(self, w: F64) -> F64:
        """Compute the total weight of all pairs, for weights (n, R) of the rows."""
        if self.is_biased:
            return np.asarray(w.sum(axis=0) ** 2)
        # Less the squares of the weights, a square would have lost all digits of small ones.
        return np.asarray(2 * (w[1:] * np.cumsum(w[:-1], axis=0)).sum(axis=0))


@dataclass(frozen=True)
class SKCE(PairEstimator):
    """Squared kernel calibration error.

    Whether rows with nearly the same prediction are off in the same direction.

    With the gaps ``e_(y_i) - p_i`` of class vectors from what came true, ``h_ij = k(p_i, p_j)
    (e_(y_i) - p_i) . (e_(y_j) - p_j)`` and the kernel ``k(p, q) = exp(-|p - q| / width)``, or
    ``exp(-|p - q|**2 / (2 width**2))``. A calibrated model has 0; it is a square, so that half of a
    gap is a fourth of it.

    Parameters
    ----------
    form : {"biased", "unbiased"}, default "biased"
        "biased": ``sum_ij w_i w_j h_ij / W**2``, never negative. "unbiased": the same without pairs
        of a row with itself, over the weights of the others: its expectation is the true value, so
        it may be negative.
    kernel : {"exponential", "gaussian"}, default "exponential"
    width : "median" or float, default "median"
        At least 0; with 0 only equal predictions are near. "median": of the distances among the
        first 1000 rows of positive weight; replicates keep it. Where rows are in an order, such as
        that of their classes, choose a width.

    Raises
    ------
    ValueError, TypeError
        For another parameter; for too few rows.

    Notes
    -----
    Widmann, Lindsten and Zachariah (2019, "Calibration tests in multi-class classification: a
    unifying framework", table 1; 2021, "Calibration tests beyond classification"). In a replicate
    copies of a row are one row that counts more: to "unbiased" they are no pair. The time grows
    with the square of the number of rows.

    A binary problem, as any setting but "auto" makes, has the two columns 1 - s and s.

    Examples
    --------
    >>> from fastece import SKCE, ece
    >>> p = [[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.3, 0.3, 0.4]]
    >>> round(ece([0, 1, 1], p, estimator=SKCE(width=0.5)), 6)
    0.100374
    >>> print(SKCE(form="unbiased"))
    SKCE(form='unbiased')
    """

    form: str = "biased"
    kernel: str = "exponential"
    width: Any = "median"

    checks: ClassVar = {
        "form": partial(check_choice, choices=("biased", "unbiased")),
        "kernel": partial(check_choice, choices=("exponential", "gaussian")),
        "width": partial(check_width, word="median", least=0.0),
    }

    def prepare(self, sample: Sample, size: int, run: Map = map) -> SKCEPlan:  # noqa: ARG002
        """Prepare a sample: probabilities, gaps and the width."""
        if self.form == "unbiased":
            check_rows(sample, "the unbiased kernel calibration error")
        prob, label, v = vectors_of(sample)
        gap = -prob
        gap[np.arange(label.size), label] += 1.0
        width = median_distance(prob[:MEASURED]) if self.width == "median" else self.width
        is_gaussian = self.kernel == "gaussian"
        unit = 2 * width * width if is_gaussian else width
        scale = -1 / unit if unit > 0 else -math.inf
        return SKCEPlan(prob, gap, v, scale, is_gaussian, self.form == "biased")

    def value(self, plan: SKCEPlan, run: Map = map) -> float:
        """Compute the value, each row counting as much as its weight."""

        def part(rows: slice, band: F64) -> Any:  # noqa: ARG001
            return band.sum(axis=1).sum()

        with np.errstate(invalid="ignore"):  # of a single row
            return float(plan.gap_bands.add(part, run) / plan.total(plan.v))

    def evaluate(self, plan: SKCEPlan, c: NDArray[Any]) -> float:
        """Return the value when row i of the sample counts ``c[i]`` times."""
        w = plan.v * c
        rows, w = np.flatnonzero(c), w / w.max()
        return self.value(replace(plan, prob=plan.prob[rows], gap=plan.gap[rows], v=w[rows]))

    def replicates(self, plan: SKCEPlan, c: F64) -> F64:
        """Compute the value for each column of counts (n, 32), in one pass over the pairs."""
        total = np.zeros(c.shape[1])
        for rows, band in plan.gap_bands:
            total += (c[rows] * products_of(band, c)[:, 0]).sum(axis=0)
        weight = plan.total(plan.v[:, None] * c)
        with np.errstate(invalid="ignore", divide="ignore"):  # of a single row
            values = np.asarray(total / weight)
        for r in np.flatnonzero(weight < WEIGHT_UNDERFLOW):
            values[r] = self.evaluate(plan, c[:, r])
        return values

    def label_values(self, plan: SKCEPlan, y: I32) -> F64:
        """Compute the values (32,) with other labels (n, 32), rows having their weights.

        A product of two gaps is ``[y_i = y_j] - p_i[y_j] - p_j[y_i] + p_i . p_j``: only the first
        part needs all pairs.
        """
        mean, place, same = plan.mean_prob, places_of(y), np.zeros(y.shape[1])
        for rows, band in plan.kernel_bands:
            sums = label_sums_of(band, place[: rows.stop], plan.prob.shape[1])
            same += np.take_along_axis(sums, y[rows][:, None, :], axis=1).sum(axis=(0, 1))
        crossed = np.take_along_axis(mean, y, axis=1).sum(axis=0)
        constant = (mean * plan.prob).sum()
        return np.asarray((same - 2 * crossed + constant) / plan.total(plan.v[:, None]))

    def truth(self, plan: SKCEPlan, q: F64) -> float:
        """Compute the error if the classes have the true probabilities `q` (n, K).

        Over all pairs in every form, which makes it a square.
        """
        return self.value(replace(plan, gap=q - plan.prob, is_biased=True))


def median_distance(prob: F64) -> float:
    """Compute the median distance between two rows; 0 for a single row."""
    squares = np.empty((len(prob), len(prob)))
    columns = np.ascontiguousarray(prob.T)
    kernels.vectors.fill_pairs(prob, columns, np.empty(0), True, False, squares)
    pairs = squares[np.tril_indices(len(prob), -1)]
    return float(np.median(np.sqrt(pairs))) if pairs.size else 0.0
