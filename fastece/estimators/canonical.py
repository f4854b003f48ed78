"""Canonical calibration: two estimators of all classes, from pairs of rows."""

import math
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fastece import kernels
from fastece.data.errors import InputError
from fastece.data.parameters import check_choice, check_real
from fastece.data.samples import ALL, Sample
from fastece.data.threads import Map
from fastece.estimators.base import check_width
from fastece.estimators.pairs import (
    Bands,
    PairEstimator,
    PairPlan,
    check_rows,
    multiply,
    read_vectors,
)
from fastece.kernels.types import F64, I64

# The bandwidths that the likelihood chooses from.
BANDWIDTHS = tuple(np.logspace(-5, -1, 10).tolist())
# Smaller bandwidths have infinite exponents.
MIN_BANDWIDTH = 1e-300
# Smaller probabilities have the logarithm of this one.
MIN_PROBABILITY = 1e-5
# A density of less than this part of the largest kernel value has lost digits, as where a replicate
# has none of the rows that are near: it is computed anew.
DENSITY_UNDERFLOW = 1e-200
# Rows among which distances are measured for the width.
MAX_MEASURED_ROWS = 1000


# --- from densities: how often classes come true near a prediction ----------------------------


@dataclass(frozen=True)
class DirichletPlan(PairPlan):
    """Prepared data of `DirichletKDE`, with rows sorted by class."""

    prob: F64
    label: I64
    v: F64
    order: Any
    bandwidth: float

    @cached_property
    def columns(self) -> F64:
        """Probabilities (K, n), class by class."""
        return np.ascontiguousarray(self.prob.T)

    @cached_property
    def log_prob(self) -> F64:
        """Logarithms (n, K) of the probabilities, of at least `MIN_PROBABILITY`."""
        return np.asarray(np.log(np.maximum(self.prob, MIN_PROBABILITY)))

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
        weights = kernels.weights(None if (self.v == 1).all() else self.v)

        def fill(rows: slice) -> F64:
            band = self.exponents(rows, constant, 1 / self.bandwidth)
            kernels.vectors.exponentiate(band, weights)
            return band

        return Bands(self.prob.shape, fill)

    def exponents(self, rows: slice, constant: F64, inverse: float) -> F64:
        """Compute exponents ``constant[i] + inverse sum_k p_ik log p_jk`` of the kernels.

        For the rows j of a slice and all rows i; -inf for a row with itself.
        """
        band = np.empty((rows.stop - rows.start, self.v.size))
        scaled = self.log_prob[rows] * inverse
        kernels.vectors.fill_pairs(scaled, self.columns, constant, False, band)
        band[np.arange(len(band)), np.arange(rows.start, rows.stop)] = -np.inf
        return band

    def where(self, c: F64) -> "DirichletPlan":
        """Return the plan of the rows that count, their weights multiplied by counts."""
        rows = np.flatnonzero(c)
        v = self.v[rows] * c[rows]
        return replace(self, prob=self.prob[rows], label=self.label[rows], v=v, order=ALL)


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

    def log_likelihood(rows: slice, band: F64) -> Any:
        log_density = np.empty((len(BANDWIDTHS), len(band)))
        kernels.vectors.log_sums(band, constants, inverse, log_density)
        return (log_density * plan.v[rows]).sum(axis=1)

    likelihood: F64 = bands.sum_over(log_likelihood, run)
    return float(BANDWIDTHS[int(likelihood.argmax())])


@dataclass(frozen=True)
class DirichletKDE(PairEstimator):
    """Canonical calibration error.

    It compares the probabilities of all classes with the frequencies of the classes among rows with
    nearly the same probabilities.

    ``sum_j w_j sum_k |r_jk - p_jk|**norm / W``, without a root, where r_j are the frequencies of
    the classes near p_j: ``r_j = sum_i w_i K(p_j; p_i) e_(y_i) / sum_i w_i K(p_j; p_i)`` over all
    rows i except j, with the density ``K(.; p_i)`` of Dirichlet(p_i / bandwidth + 1) and unit
    vectors e.

    Parameters
    ----------
    bandwidth : "likelihood" or float, default "likelihood"
        Greater than 0; about the variance of the kernel. "likelihood": the one of ten, evenly
        spaced in their logarithm from 1e-5 to 1e-1, with the largest leave-one-out likelihood of
        the predictions, ``sum_j w_j log sum_i w_i K(p_j; p_i)``; replicates keep it.
    norm : {1.0, 2.0}, default 1.0

    Raises
    ------
    ValueError, TypeError
        For another bandwidth or norm; for fewer than two rows.

    Notes
    -----
    Popordanoska, Sayer and Blaschko (2022, "A consistent and differentiable Lp canonical
    calibration error estimator", eq. 8 and 9). Probabilities up to 1e-5 count as 1e-5 in
    logarithms, so that a probability of 0 has one. In a replicate i and j are rows of the data, not
    copies of one; the value of a replicate with a single row of the data is nan, so that a
    bootstrap of some five rows has no interval. The time grows with the square of the number of
    rows.

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

    lowest = 0.0
    largest = 2.0  # the distance of two classes
    checks: ClassVar = {
        "bandwidth": partial(check_width, word="likelihood", least=MIN_BANDWIDTH),
        "norm": partial(check_real, low=1.0, high=2.0),
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.norm not in (1.0, 2.0):
            raise InputError("norm", "must be 1 or 2", value=self.norm)

    def prepare(self, sample: Sample, size: int, run: Map = map) -> DirichletPlan:  # noqa: ARG002
        """Prepare a sample: rows sorted by class, and the bandwidth."""
        check_rows(sample, "the canonical error")
        prob, label, v = read_vectors(sample)
        order = np.argsort(label, kind="stable")
        plan = DirichletPlan(prob[order], label[order], v[order], order, bandwidth=1.0)
        bandwidth = self.bandwidth
        if bandwidth == "likelihood":
            bandwidth = likeliest_bandwidth(plan, run)
        return replace(plan, bandwidth=bandwidth)

    def errors(self, plan: DirichletPlan, rows: slice, hits: F64) -> F64:
        """Compute errors (b, W) of some rows from class densities (b, K, W) near them.

        An error is nan where no row is near.
        """
        with np.errstate(invalid="ignore"):
            gap = np.abs(hits / hits.sum(axis=1, keepdims=True) - plan.prob[rows][:, :, None])
        return np.asarray((gap**self.norm).sum(axis=1))

    def value(self, plan: DirichletPlan, run: Map = map) -> float:
        """Compute the value, each row counting as much as its weight."""

        def weighted_errors(rows: slice, band: F64) -> Any:
            hits = [band[:, first:last].sum(axis=1) for first, last in pairwise(plan.starts)]
            return plan.v[rows] @ self.errors(plan, rows, np.stack(hits, axis=1)[:, :, None])[:, 0]

        return float(plan.bands.sum_over(weighted_errors, run) / plan.v.sum())

    def evaluate(self, plan: DirichletPlan, c: NDArray[Any]) -> float:
        """Return the value when row i of the sample counts ``c[i]`` times."""
        return self.value_of_rows(plan, c[plan.order].astype(np.float64))

    def value_of_rows(self, plan: DirichletPlan, c: F64) -> float:
        """Compute the value of the rows of the plan that count, from pairs of them alone."""
        return self.value(plan.where(c)) if np.count_nonzero(c) > 1 else np.nan

    def values_of_counts(self, plan: DirichletPlan, c: F64) -> F64:
        """Compute the values (W,) of rows that count so often (n, W)."""

        def sums(rows: slice, band: F64) -> Any:
            hits = [multiply(band[:, i:j], c[i:j]) for i, j in pairwise(plan.starts)]
            density = np.stack(hits, axis=1)
            is_drawn = c[rows] > 0
            is_tiny = is_drawn & (density.sum(axis=1) < DENSITY_UNDERFLOW)
            errors = np.where(is_drawn, self.errors(plan, rows, density), 0.0)
            return plan.v[rows] @ (c[rows] * errors), is_tiny.sum(axis=0)

        total, n_tiny = plan.bands.sum_over(sums)
        values = total / (plan.v @ c)
        for r in np.flatnonzero(n_tiny):
            values[r] = self.value_of_rows(plan, c[:, r])
        return np.asarray(values)

    def values_of_classes(self, plan: DirichletPlan, is_class: F64) -> F64:
        """Compute the values (W,) of rows with other classes, one-hot (n, K, W)."""
        n, n_classes, width = is_class.shape
        flat = is_class.reshape(n, -1)

        def sums(rows: slice, band: F64) -> Any:
            hits = multiply(band, flat).reshape(-1, n_classes, width)
            return plan.v[rows] @ self.errors(plan, rows, hits)

        return np.asarray(plan.bands.sum_over(sums) / plan.v.sum())

    def truth(self, plan: DirichletPlan, q: F64) -> float:
        """Compute the error if the classes have the true probabilities `q` (n, K).

        It is the error of the smoothed difference between both, which is 0 for a calibrated model.
        """
        gap = q[plan.order] - plan.prob

        def sizes(rows: slice, band: F64) -> Any:
            mean = np.abs(multiply(band, gap) / band.sum(axis=1, keepdims=True))
            return plan.v[rows] @ (mean**self.norm).sum(axis=1)

        return float(plan.bands.keep().sum_over(sizes) / plan.v.sum())


# --- from pairs of gaps: whether neighbours are off in the same direction ---------------------


@dataclass(frozen=True)
class SKCEPlan(PairPlan):
    """Prepared data of `SKCE`.

    The kernel is ``exp(scale * d)``, with the distance d of two rows or, if `is_gaussian`, its
    square; the scale is -inf where the width is 0.
    """

    prob: F64
    label: I64
    v: F64
    scale: float
    is_gaussian: bool

    order = ALL

    @cached_property
    def gap(self) -> F64:
        """Gaps (n, K) between the class, as a unit vector, and the class vector."""
        gap = -self.prob
        gap[np.arange(self.label.size), self.label] += 1.0
        return gap

    @cached_property
    def bands(self) -> Bands:
        """Bands of kernel values of pairs of two rows.

        A band has pairs of its rows with all rows before them. A pair stands there once, and counts
        twice.
        """
        columns = np.ascontiguousarray(self.prob.T)

        def fill(rows: slice) -> F64:
            band = np.empty((rows.stop - rows.start, rows.stop))
            kernels.vectors.fill_kernel(
                self.prob[rows], columns, self.scale, self.is_gaussian, rows.start, band
            )
            return band

        return Bands(self.prob.shape, fill)


@dataclass(frozen=True)
class SKCE(PairEstimator):
    """Squared kernel calibration error.

    It is large where rows with nearly the same prediction are off in the same direction.

    ``h_ij = k(p_i, p_j) (e_(y_i) - p_i) . (e_(y_j) - p_j)`` with the gaps ``e_(y_i) - p_i`` between
    the class, as a unit vector, and the class vector, and the kernel ``k(p, q) = exp(-|p - q| /
    width)``, or ``exp(-|p - q|**2 / (2 width**2))``. A calibrated model has 0. The error is a
    square, so that half of a gap makes a fourth of it.

    Parameters
    ----------
    form : {"unbiased", "biased"}, default "unbiased"
        "biased": ``sum_ij w_i w_j h_ij / W**2``, never negative. "unbiased": the same without pairs
        of a row with itself, over the weights of the others: its expectation is the true value, so
        it may be negative. It needs two rows, and no soft labels, which "biased" takes.
    kernel : {"exponential", "gaussian"}, default "exponential"
    width : "median" or float, default "median"
        At least 0; with 0 only equal predictions are near. "median": the median distance among the
        first 1000 rows of positive weight; replicates keep it. Where rows are in an order, such as
        by class, choose a width.

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
    -0.006105
    >>> round(ece([0, 1, 1], p, estimator=SKCE("biased", width=0.5)), 6)
    0.100374
    >>> print(SKCE())
    SKCE(form='unbiased')
    """

    form: str = "unbiased"
    kernel: str = "exponential"
    width: Any = "median"

    largest = 2.0  # the square of the distance of two classes
    checks: ClassVar = {
        "form": partial(check_choice, choices=("unbiased", "biased")),
        "kernel": partial(check_choice, choices=("exponential", "gaussian")),
        "width": partial(check_width, word="median", least=0.0),
    }

    @property
    def lowest(self) -> float:
        """The least value; without the pairs of a row with itself it may be negative."""
        return 0.0 if self.form == "biased" else -self.largest

    def prepare(self, sample: Sample, size: int, run: Map = map) -> SKCEPlan:  # noqa: ARG002
        """Prepare a sample: probabilities, gaps and the width."""
        if self.form == "unbiased":
            reader = "the unbiased kernel calibration error"
            check_rows(sample, reader, hint="form='biased' takes them")
        prob, label, v = read_vectors(sample)
        width = self.width
        if width == "median":
            width = median_distance(prob[:MAX_MEASURED_ROWS])
        is_gaussian = self.kernel == "gaussian"
        unit = 2 * width * width if is_gaussian else width
        scale = -1 / unit if unit > 0 else -math.inf
        return SKCEPlan(prob, label, v, scale, is_gaussian)

    def value(self, plan: SKCEPlan, run: Map = map) -> float:
        """Compute the value, each row counting as much as its weight."""
        return float(self.value_of_gaps(plan, plan.gap, plan.v, run))

    def value_of_gaps(self, plan: SKCEPlan, gap: F64, w: F64, run: Map = map) -> Any:
        """Compute the value of rows with gaps (n, K) and weights (n,)."""
        w = (w / w.max())[:, None]  # so that no product is too small
        gap = gap * w
        columns = np.ascontiguousarray(gap.T)

        def products(rows: slice, band: F64) -> Any:
            return (band * inner(gap[rows], columns[:, : rows.stop])).sum(axis=1).sum()

        squares = plan.bands.sum_over(products, run)
        return self.mean_of_pairs(squares + self.own_pairs((gap**2).sum()), w)[0]

    def evaluate(self, plan: SKCEPlan, c: NDArray[Any]) -> float:
        """Return the value when row i of the sample counts ``c[i]`` times."""
        rows = np.flatnonzero(c)
        v = plan.v[rows] * c[rows]
        return self.value(replace(plan, prob=plan.prob[rows], label=plan.label[rows], v=v))

    def values_of_counts(self, plan: SKCEPlan, c: F64) -> F64:
        """Compute the values (W,) of rows that count so often (n, W)."""
        w = plan.v[:, None] * c
        w /= w.max(axis=0)  # so that no product is too small
        columns = np.ascontiguousarray(plan.gap.T)

        def products(rows: slice, band: F64) -> Any:
            pairs = band * inner(plan.gap[rows], columns[:, : rows.stop])
            return (w[rows] * multiply(pairs, w[: rows.stop])).sum(axis=0)

        own = (plan.gap**2).sum(axis=1) @ w**2
        return self.mean_of_pairs(plan.bands.sum_over(products) + self.own_pairs(own), w)

    def values_of_classes(self, plan: SKCEPlan, is_class: F64) -> F64:
        """Compute the values (W,) of rows with other classes, one-hot (n, K, W)."""
        w = plan.v[:, None] / plan.v.max()
        gap = (is_class - plan.prob[:, :, None]) * w[:, None]
        flat_gap = gap.reshape(len(gap), -1)

        def products(rows: slice, band: F64) -> Any:
            return (flat_gap[rows] * multiply(band, flat_gap[: rows.stop])).sum(axis=0)

        squares = plan.bands.sum_over(products).reshape(gap.shape[1:]).sum(axis=0)
        return self.mean_of_pairs(squares + self.own_pairs((gap**2).sum(axis=(0, 1))), w)

    def own_pairs(self, squares: Any) -> Any:
        """Return the squares of gaps where each row makes a pair with itself, or else 0."""
        return squares if self.form == "biased" else 0.0

    def mean_of_pairs(self, total: Any, w: F64) -> F64:
        """Divide totals (W,) over all pairs by the weights of these; nan without a pair."""
        with np.errstate(invalid="ignore"):
            return np.asarray(total / self.weight_of_pairs(w))

    def weight_of_pairs(self, w: F64) -> F64:
        """Compute the weight (W,) of all pairs, for weights (n, W) of the rows."""
        if self.form == "biased":
            return np.asarray(w.sum(axis=0) ** 2)
        # A square minus the squares of the weights would lose all digits of small weights.
        return np.asarray(2 * (w[1:] * np.cumsum(w[:-1], axis=0)).sum(axis=0))

    def truth(self, plan: SKCEPlan, q: F64) -> float:
        """Compute the error if the classes have the true probabilities `q` (n, K).

        It is the biased form, over all pairs, whatever `form` is: so it is a square.
        """
        plan.bands.keep()
        biased = replace(self, form="biased")
        return float(biased.value_of_gaps(plan, q - plan.prob, plan.v))


def inner(rows: F64, columns: F64) -> F64:
    """Multiply rows (b, K) with columns (K, m)."""
    products = np.empty((len(rows), columns.shape[1]))
    columns = np.ascontiguousarray(columns)
    kernels.vectors.fill_pairs(rows, columns, kernels.NO_WEIGHTS, False, products)
    return products


def median_distance(prob: F64) -> float:
    """Compute the median distance between two rows; 0 for a single row."""
    squares = np.empty((len(prob), len(prob)))
    columns = np.ascontiguousarray(prob.T)
    kernels.vectors.fill_pairs(prob, columns, np.empty(0), True, squares)
    pairs = squares[np.tril_indices(len(prob), -1)]
    return float(np.median(np.sqrt(pairs))) if pairs.size else 0.0
