"""Squared kernel calibration error: weighted products of the gaps of row pairs.

The weight is larger the nearer the two predictions are.
"""

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastece import kernels
from fastece.checks.parameters import check_choice
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
from fastece.typing import F64, I32

FORMS = ("biased", "unbiased")
KERNELS = ("exponential", "gaussian")
# Rows among which distances are measured for the width.
MEASURED = 1000
# Products of weights that have lost digits, where a replicate has none of the heavy rows.
UNDERFLOW = 1e-280


@dataclass(frozen=True)
class SKCEPlan(Plan, CopyReadOnlyOnUnpickle):
    """Prepared data of `SKCE` for a sample.

    Attributes
    ----------
    prob : (n, K) float64 array
    gap : (n, K) float64 array
        Unit vector of the class less the probabilities.
    v : (n,) float64 array
        Weights.
    scale : float
        The kernel is ``exp(scale * d)``, -inf where the width is 0.
    is_gaussian : bool
        Whether d is the squared distance.
    is_biased : bool
        Whether each row makes a pair with itself.
    """

    prob: F64
    gap: F64
    v: F64
    scale: float
    is_gaussian: bool
    is_biased: bool

    @cached_property
    def prob_columns(self) -> F64:
        """Probabilities (K, n), class by class."""
        return np.ascontiguousarray(self.prob.T)

    @cached_property
    def gap_columns(self) -> F64:
        """Gaps (K, n), class by class."""
        return np.ascontiguousarray(self.gap.T)

    @cached_property
    def kernel_bands(self) -> Bands:
        """Bands of kernel values times the weights of both rows.

        Of the pairs of some rows with all rows up to them, each pair of two rows twice.
        """
        return Bands(self.prob.shape, self.kernel_band)

    @cached_property
    def gap_bands(self) -> Bands:
        """Bands of `kernel_bands` times the products of the gaps."""
        return Bands(self.prob.shape, self.gap_band)

    def kernel_band(self, rows: slice) -> F64:
        """Compute a band of `kernel_bands`."""
        band = np.empty((rows.stop - rows.start, rows.stop))
        kernels.vectors.fill_kernel(
            self.prob[rows], self.prob_columns, self.v, self.scale, self.is_gaussian, rows.start,
            0, band,
        )  # fmt: skip
        if not self.is_biased:
            band[np.arange(len(band)), np.arange(rows.start, rows.stop)] = 0.0
        return band

    def gap_band(self, rows: slice) -> F64:
        """Compute a band of `gap_bands`."""
        band = self.kernel_band(rows)
        kernels.vectors.multiply_products(self.gap[rows], self.gap_columns, 0, band)
        return band

    @cached_property
    def mean_prob(self) -> F64:
        """Kernel-weighted sums (n, K) of the class vectors of all rows, for each row."""
        mean = np.zeros(self.prob.shape)
        for rows, band in self.kernel_bands:
            # Half of a pair, which is there twice, is of each of its rows.
            band = band / 2
            columns, every = np.ascontiguousarray(band.T), whole(band.shape[1])
            mean[rows] += products_of(band, self.prob, every)[:, 0]
            mean[: rows.stop] += products_of(columns, self.prob[rows], whole(len(band)))[:, 0]
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

    def __post_init__(self) -> None:
        check_choice("form", self.form, FORMS)
        check_choice("kernel", self.kernel, KERNELS)
        object.__setattr__(self, "width", check_width("width", self.width, "median", 0.0))

    def plan(self, sample: Sample, run: Map) -> SKCEPlan:  # noqa: ARG002
        """Prepare a sample: probabilities, gaps and the width."""
        if self.form == "unbiased":
            check_rows(sample.n, "the unbiased kernel calibration error")
        prob, label = vectors_of(sample)
        prob = np.ascontiguousarray(prob)
        width = median_distance(prob[:MEASURED]) if self.width == "median" else self.width
        is_gaussian = self.kernel == "gaussian"
        unit = 2 * width * width if is_gaussian else width
        scale = -1 / unit if unit > 0 else -math.inf
        return SKCEPlan(
            prob, gaps_of(prob, label), weights_of(sample), scale, is_gaussian,
            self.form == "biased",
        )  # fmt: skip

    def value(self, plan: SKCEPlan, run: Map = map) -> float:
        """Compute the value, each row counting as much as its weight."""

        def part(rows: slice, band: F64) -> Any:  # noqa: ARG001
            return sums_of(band, whole(band.shape[1])).sum()

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
            total += (c[rows] * products_of(band, c, whole(band.shape[1]))[:, 0]).sum(axis=0)
        weight = plan.total(plan.v[:, None] * c)
        with np.errstate(invalid="ignore", divide="ignore"):  # of a single row
            values = np.asarray(total / weight)
        for r in np.flatnonzero(weight < UNDERFLOW):
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


def gaps_of(prob: F64, label: NDArray[Any]) -> F64:
    """Compute unit vectors of the classes minus the probabilities."""
    gap = -prob
    gap[np.arange(label.size), label] += 1.0
    return gap


def median_distance(prob: F64) -> float:
    """Compute the median distance between two rows; 0 for a single row."""
    squares = np.empty((len(prob), len(prob)))
    kernels.vectors.fill_squares(prob, np.ascontiguousarray(prob.T), 0, squares)
    pairs = squares[np.tril_indices(len(prob), -1)]
    return float(np.median(np.sqrt(pairs))) if pairs.size else 0.0
