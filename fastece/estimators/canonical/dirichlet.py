"""Canonical calibration error by densities on the simplex, with Dirichlet kernels."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastece import kernels
from fastece.checks.errors import InputError
from fastece.checks.parameters import check_real
from fastece.data.reading import Map
from fastece.data.sample import CopyReadOnlyOnUnpickle, Sample
from fastece.estimators.base import Plan
from fastece.estimators.canonical.pairs import (
    Bands,
    PairEstimator,
    check_rows,
    check_width,
    label_sums_of,
    places_of,
    products_of,
    sums_of,
    vectors_of,
    weights_of,
    whole,
)
from fastece.typing import F64, I32, I64

# The bandwidths that the likelihood chooses from.
BANDWIDTHS = tuple(np.logspace(-5, -1, 10).tolist())
# Exponents of less are infinite.
LEAST_BANDWIDTH = 1e-300
# Logarithms of smaller probabilities are those of this.
FLOOR = 1e-5
# A density of less than this part of the largest kernel value has lost digits, as where a replicate
# has none of the rows that are near: it is computed anew.
UNDERFLOW = 1e-200


@dataclass(frozen=True)
class DirichletPlan(Plan, CopyReadOnlyOnUnpickle):
    """Prepared data of `DirichletKDE`, with rows sorted by class.

    Attributes
    ----------
    prob : (n, K) float64 array
    label : (n,) int64 array
    v : (n,) float64 array
        Weights.
    order : (n,) int64 array
        Where each row is in the sample.
    bandwidth : float
    """

    prob: F64
    label: I64
    v: F64
    order: I64
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
    def constant(self) -> F64:
        """Log normalizing constant (n,) of each row's kernel."""
        return log_factor(self.prob, self.bandwidth)

    @cached_property
    def factors(self) -> F64:
        """The weights, as kernels take them."""
        return kernels.weights(None if (self.v == 1).all() else self.v)

    @cached_property
    def bands(self) -> Bands:
        """Bands of weighted kernel values of all pairs of rows.

        For each row j the values ``v_i K(p_j; p_i)`` of the other rows i, over the largest of K.
        """
        return Bands(self.prob.shape, self.band)

    def band(self, rows: slice) -> F64:
        """Compute the kernel values of some rows with all others."""
        band = self.exponents(rows, self.constant, 1 / self.bandwidth)
        kernels.vectors.exponentiate(band, self.factors)
        return band

    def exponents(self, rows: slice, constant: F64, inverse: float) -> F64:
        """Compute the exponents of the kernels of some rows with all others.

        ``constant[i] + inverse * sum_k p_ik log p_jk`` of the rows j and all others i.
        """
        band = np.empty((rows.stop - rows.start, self.v.size))
        log_prob = self.log_prob[rows]
        kernels.vectors.fill_exponents(log_prob, self.columns, constant, inverse, rows.start, band)
        return band

    def where(self, c: F64) -> "DirichletPlan":
        """Return the plan of the rows that count, their weights multiplied by counts."""
        rows = np.flatnonzero(c)
        return replace(
            self, prob=self.prob[rows], label=self.label[rows], v=self.v[rows] * c[rows],
            order=np.arange(rows.size),
        )  # fmt: skip


def log_factor(prob: F64, bandwidth: float) -> F64:
    """Compute the log normalizing constants (n,) of the kernels of rows (n, K).

    The density is that of Dirichlet(p / bandwidth + 1).
    """
    from scipy.special import gammaln

    alpha = prob / bandwidth + 1
    factor: F64 = gammaln(alpha.sum(axis=1)) - gammaln(alpha).sum(axis=1)
    return factor


def likeliest_bandwidth(plan: DirichletPlan, run: Map) -> float:
    """Find the bandwidth with the largest leave-one-out likelihood.

    The plan may have any bandwidth.
    """
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

    def __post_init__(self) -> None:
        norm = check_real("norm", self.norm, 1.0, 2.0)
        if norm not in (1.0, 2.0):
            raise InputError("norm", "must be 1 or 2", value=self.norm)
        object.__setattr__(self, "norm", norm)
        bandwidth = check_width("bandwidth", self.bandwidth, "likelihood", LEAST_BANDWIDTH)
        object.__setattr__(self, "bandwidth", bandwidth)

    def plan(self, sample: Sample, run: Map) -> DirichletPlan:
        """Prepare a sample: rows sorted by class, and the bandwidth."""
        check_rows(sample.n, "the canonical error")
        prob, label = vectors_of(sample)
        order = np.argsort(label, kind="stable")
        v = weights_of(sample)[order]
        plan = DirichletPlan(prob[order], label[order], v, order, 1.0)
        is_given = self.bandwidth != "likelihood"
        return replace(
            plan, bandwidth=self.bandwidth if is_given else likeliest_bandwidth(plan, run)
        )

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
            hits = sums_of(band, plan.starts)[:, :, None]
            return plan.v[rows] @ self.errors(plan, rows, hits)[:, 0]

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
            is_faint |= ((hits.sum(axis=1) < UNDERFLOW) & (count > 0)).any(axis=0)
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
        gap, every = q[plan.order] - plan.prob, whole(plan.v.size)
        total = 0.0
        for rows, band in plan.bands:
            mean = np.abs(products_of(band, gap, every)[:, 0] / sums_of(band, every))
            total += float(plan.v[rows] @ (mean**self.norm).sum(axis=1))
        return float(total / plan.v.sum())
