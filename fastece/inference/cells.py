"""Cells: gaps whose norm is the error, with their noise under the null.

A cell is a bin, or a point of the grid of a density. With the share a_ib of row i in cell b its gap
is ``D_b = sum_i w_i a_ib (y_i - s_i) / W``, and the error is a norm of the gaps. The scores are
known, so the noise of a gap is known too. A model whose gap has the mean d > 0 is one in which a
part t of the outcomes 0 of a calibrated one become 1 (with d < 0, a part t of the outcomes 1 become
0): so ``d = t m`` with the outcomes 0 ``m = sum_i w_i a_ib (1 - s_i) / W``, and the variance of the
gap is

    ``v(d) = v(0) (1 - 2 t) + u |d| - d^2 / n``, ``u = sum_i w_i^2 a_ib^2 / (W sum_i w_i a_ib)``

with ``v(0) = sum_i w_i^2 a_ib^2 s_i (1 - s_i) / W^2`` and ``n = W^2 / sum_i w_i^2``; the last term
is there because rows are random too. It is never below 0, and equal scores make it the variance of
a binomial law. So the noise of one set of replicates, drawn from the scores, serves every
hypothesis about the gaps: it only has to be stretched by ``sqrt(v(d) / v(0))``, or, where outcomes
of one kind are rare, replaced by noise of a binomial law, in the same order.

`binned_cells.py` and `density_cells.py` make the cells of estimators.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastece import kernels
from fastece.kernels.types import F64, I32, I64
from fastece.resampling.calibration_test import MIN_REPLICATES
from fastece.resampling.call import Call

# Gaps of less variance than this many rows have skewed noise, which cannot be stretched. With it
# one bin of 100 rows or more, in which 90 or 100 % come true, has Clopper-Pearson's width to 1 %.
MIN_STRETCHED_ROWS = 25.0
# Random differences, as fractions of a row, that order replicates with equal gaps.
TIE_BREAKER = 1e-6
# Random numbers of rows make the variance of binomial noise at most so many times as large: where
# nearly all outcomes are equal, that noise is not binomial.
MAX_STRETCH = 2.0
# A binomial law of a smaller probability is treated as a Poisson law.
MIN_CHANCE = 1e-3
# The probability of a binomial law is less than 1 by this.
MAX_CHANCE = 1 - 1e-6
# Gaps are rare if one of those within so many standard errors has too little variance.
RARE_REACH = 3.0
# Gaps of all replicates, of which there are fewer where cells are many: some 60 hypotheses are
# looked at, so these take half a second.
MAX_GAPS = 4 * 10**6


class RareCells(NamedTuple):
    """Cells in which outcomes of one kind are rare under some hypothesis that matters.

    Attributes
    ----------
    line : (K, B) int32 array
        The line of `orders` of each rare cell; -1 for all others.
    orders : (C, R) int32 array
        For each rare cell the replicates in the order of their gaps.
    """

    line: I32
    orders: I32


@dataclass(frozen=True, eq=False)
class GapCells:
    """Gaps of the cells of K problems, with their noise under the null.

    They are in units in which the error of a problem is the plain p-norm of its gaps; the error of
    all is the mean.

    Attributes
    ----------
    gap : (K, B) float64 array
    null : (K, B, R) float64 array
        Gaps of replicates whose labels are drawn from the scores.
    variance : (K, B) float64 array
        Variance of the gaps of a calibrated model, v(0).
    per_row : (K, B) float64 array
        The average amount that a row adds to the gap of a cell, u.
    n : (K, 1) float64 array, or (K, B)
        Kish's number of rows; with groups, divided by the design effect.
    max_gap : (K, B) float64 array
        The gap if all outcomes were 1 and all scores 0.
    expected : (K, B) float64 array
        The sum of the scores: a gap is at least minus this, and at most ``max_gap - expected``.
    norm : float
        p.
    share : (K, B) float64 array
        Fraction of the weight that each cell has.
    group : (K, B) int64 array
        Cells of one number are made by the same rows, so that a rare row comes to all of them.
    seed : int
        Seed of the random order of replicates with equal gaps.
    bias : (K, B) float64 array or None
        The gaps that the estimator itself has where outcomes are what the scores say; None for 0.
    """

    gap: F64
    null: F64
    variance: F64
    per_row: F64
    n: F64
    max_gap: F64
    expected: F64
    norm: float
    share: F64
    group: I64
    seed: int
    bias: F64 | None = None

    # --- the noise of a gap -----------------------------------------------------------------

    def room(self, gaps: F64) -> F64:
        """Compute how far gaps of the same signs may be from 0."""
        return np.where(gaps > 0, self.max_gap - self.expected, self.expected)

    def variance_at(self, gaps: F64) -> F64:
        """Compute the variance v(d) of gaps with given means d."""
        room = self.room(gaps)
        size = np.minimum(np.abs(gaps), room)
        flipped = divide(size, room)
        v = self.variance * (1 - 2 * flipped) + self.per_row * size - size**2 / self.n
        return np.asarray(np.maximum(v, 0.0))

    @cached_property
    def deviation(self) -> F64:
        """Standard error of each gap.

        It is the standard error of a calibrated model, or, if this is larger, the one at the gap of
        the data. Where
        less than one outcome of a kind is expected, one more might have come.
        """
        v = np.maximum(self.variance, self.variance_at(self.gap))
        is_rare = self.variance < self.per_row**2
        for neighbour in (self.gap - self.per_row, self.gap + self.per_row):
            v = np.where(is_rare, np.maximum(v, self.variance_at(neighbour)), v)
        # All of this is 0 for a single row.
        v = np.where(is_rare & (self.n < 2), np.maximum(v, (self.per_row / 2) ** 2), v)
        return np.where(self.max_gap > 0, np.sqrt(v), 0.0)

    # --- rare cells -------------------------------------------------------------------------

    @cached_property
    def rare(self) -> RareCells:
        """Rare cells, with the order of the replicates in each.

        Replicates keep the order that their gaps have in a calibrated model; replicates with equal
        gaps, which are many where scores are extreme, have a random one.
        """
        is_rare = self._is_rare()
        line = np.full(self.gap.shape, -1, np.int32)
        line[is_rare] = np.arange(is_rare.sum())
        ties = TIE_BREAKER * self.per_row[is_rare][:, None] * self._tie_breakers(is_rare)
        orders = (self.null[is_rare] + ties).argsort(axis=1)
        return RareCells(line, orders.astype(np.int32))

    def _is_rare(self) -> NDArray[np.bool_]:
        """Decide which cells (K, B) have too little variance under some hypothesis."""
        reach = RARE_REACH * self.deviation
        variances = [self.variance_at(self.gap + step) for step in (-reach, 0.0, reach)]
        smallest = np.minimum.reduce([self.variance, *variances])
        has_little: NDArray[np.bool_] = smallest < MIN_STRETCHED_ROWS * self.per_row**2
        return has_little & (self.max_gap > 0)

    def _tie_breakers(self, is_rare: NDArray[np.bool_]) -> F64:
        """Draw normal numbers (C, R) for the rare cells; cells of one group share them."""
        groups, group_of_cell = np.unique(self.group[is_rare], return_inverse=True)
        rng = np.random.default_rng(self.seed)
        ties = rng.standard_normal((groups.size, self.null.shape[2]))[group_of_cell]
        is_low = (self.expected < self.max_gap / 2)[is_rare]
        if len(self.gap) == 1 or is_low.all() or not is_low.any():
            return ties
        # A row has one class: where its label is another than expected, there is a 0 too many in a
        # cell of high scores, and a 1 too many in a cell of low scores of another class. So cells
        # of both kinds get the same sum, in standard errors.
        deviation = self.deviation[is_rare]
        low = np.where(is_low, deviation, 0.0)
        high = np.where(is_low, 0.0, deviation)
        low = low / np.linalg.norm(low)
        high = high / np.linalg.norm(high)
        return np.asarray(ties - np.outer(low, (low + high) @ ties))

    def binomial_laws(self, gaps: F64, v: F64) -> "kernels.errors.RareRows":
        """Make the binomial laws of rare cells with gaps (M, K, B) of variances v.

        They count the outcomes 0 that are left where gaps are above 0, and otherwise the outcomes 1
        that are left. With equal scores, and with scores that are all 0 or 1, that is their law,
        except for the random number of rows.
        """
        room = self.room(gaps)
        flipped = np.minimum(divide(np.abs(gaps), room), 1.0)
        left = 1 - flipped
        mean = left * divide(room, self.per_row)
        # The variance with as many rows as there are: over the mean it is 1 minus the probability.
        fixed = left * (left * self.variance + flipped * self.per_row * np.maximum(room, 0.0))
        chance = np.clip(1 - divide(fixed, self.per_row**2 * mean), MIN_CHANCE, MAX_CHANCE)
        count = np.maximum(np.rint(mean / chance), 1.0)
        variance = np.where(mean >= 1, np.minimum(v, MAX_STRETCH * fixed), fixed)
        step = np.sqrt(variance / (count * chance * (1 - chance)))
        count = np.where((self.rare.line >= 0) & (gaps != 0), count, 0.0)
        return kernels.errors.RareRows(
            -np.sign(gaps) * step, count, chance, self.rare.line, self.rare.orders
        )

    # --- errors -----------------------------------------------------------------------------

    def errors(self, gaps: F64, side: float = 0.0) -> F64:
        """Compute the errors (M, R) of replicates of models with gaps (M, K, B).

        All gaps count for side 0, only those above 0 for 1, and only those below 0 for -1.
        """
        v = self.variance_at(gaps)
        # Where nothing varies, nothing is stretched: rounding may leave a little noise there.
        stretch = np.sqrt(np.where(self.variance > 0, divide(v, self.variance), 1.0))
        laws = kernels.errors.NO_RARE_ROWS
        if len(self.rare.orders):
            laws = self.binomial_laws(gaps, v)
        errors = np.empty((len(gaps), self.null.shape[2]))
        kernels.errors.gap_errors(gaps, stretch, self.null, laws, side, self.norm, errors)
        return errors

    def calibrated_values(self) -> F64:
        """Compute the values (R,) of the estimator for replicates of a calibrated model."""
        gaps = np.zeros_like(self.gap) if self.bias is None else self.bias
        values = np.empty((1, self.null.shape[2]))
        kernels.errors.gap_errors(
            gaps[None],
            np.ones_like(gaps)[None],
            self.null,
            kernels.errors.NO_RARE_ROWS,
            0.0,
            self.norm,
            values,
        )
        return np.asarray(values[0])

    def error(self, gaps: F64, side: float = 0.0) -> F64:
        """Compute the errors (M,) of models with gaps (M, K, B), without noise."""
        no_noise = np.zeros((*gaps.shape[1:], 1))
        laws = kernels.errors.NO_RARE_ROWS
        stretch = np.zeros_like(gaps)
        errors = np.empty((len(gaps), 1))
        kernels.errors.gap_errors(gaps, stretch, no_noise, laws, side, self.norm, errors)
        return np.asarray(np.minimum(errors[:, 0], 1.0))  # rounding may carry it beyond

    def split(self, per_class: bool) -> list["GapCells"]:
        """Return the cells of each problem, or of all together."""
        return [self.problem(k) for k in range(len(self.gap))] if per_class else [self]

    def problem(self, k: int) -> "GapCells":
        """Return the cells of problem k alone."""
        values: dict[str, Any] = {x.name: getattr(self, x.name) for x in fields(self)}
        for name, value in values.items():
            if isinstance(value, np.ndarray):
                values[name] = value[k : k + 1]
        return GapCells(**values)


def join_cells(parts: Sequence[GapCells], shares: F64) -> GapCells:
    """Join the cells of problems with rows of their own and shares in a mean (K,).

    The error of all is the plain mean, so gaps are multiplied by K times the share. Problems with
    fewer cells are filled up with cells that have no room for a gap.
    """
    n_cells = max(part.gap.shape[1] for part in parts)
    n_replicates = min(part.null.shape[2] for part in parts)
    padded = []
    n_groups = 0
    for part, share in zip(parts, shares, strict=True):
        factor = len(parts) * share
        n_missing = n_cells - part.gap.shape[1]
        group = np.pad(part.group + n_groups, ((0, 0), (0, n_missing)), mode="edge")
        n_groups = int(group.max()) + 1
        padded.append({
            "gap": fill_up(factor * part.gap, n_missing),
            "null": fill_up(factor * part.null[:, :, :n_replicates], n_missing),
            "variance": fill_up(factor**2 * part.variance, n_missing),
            "per_row": fill_up(factor * part.per_row, n_missing),
            "n": np.broadcast_to(part.n[:, :1], group.shape),
            "max_gap": fill_up(factor * part.max_gap, n_missing),
            "expected": fill_up(factor * part.expected, n_missing),
            "share": fill_up(part.share, n_missing),
            "group": group,
        })  # fmt: skip
        if part.bias is not None:
            padded[-1]["bias"] = fill_up(factor * part.bias, n_missing)
    arrays: dict[str, Any] = {
        name: np.concatenate([fields_of_part[name] for fields_of_part in padded])
        for name in padded[0]
    }
    return GapCells(**arrays, norm=parts[0].norm, seed=parts[0].seed)


def fill_up(array: F64, n_missing: int) -> F64:
    """Add cells of zeros to an array (1, B) or (1, B, R)."""
    zeros = np.zeros((1, n_missing, *array.shape[2:]))
    return np.concatenate([array, zeros], axis=1)


def divide(x: F64, y: F64) -> F64:
    """Divide x by y >= 0; 0 where y is."""
    return np.divide(x, y, out=np.zeros(np.broadcast(x, y).shape), where=y > 0)


# --- from sums over rows to cells -----------------------------------------------------------


@dataclass(frozen=True, eq=False)
class CellSums:
    """Sums over the rows in the cells of K problems, over the total weight W.

    Attributes
    ----------
    gap : (K, B) float64 array
        Sums of ``w a (y - s)``.
    null : (K, B, R) float64 array
        The same sums of replicates whose labels are drawn from the scores.
    variance, squares : (K, B) float64 array
        Sums of ``w^2 a^2 s (1 - s)`` and of ``w^2 a^2``, over W^2.
    share, score : (K, B) float64 array
        Sums of ``w a`` and of ``w a s``.
    group : (K, B) int64 array
        As in `GapCells`.
    n : (K,) float64 array
        Kish's number of rows.
    bias : (K, B) float64 array or None
        Sums of ``w a (s - t)`` with the score t that the estimator has for a cell; None for 0.
    """

    gap: F64
    null: F64
    variance: F64
    squares: F64
    share: F64
    score: F64
    group: I64
    n: F64
    bias: F64 | None = None


def make_cells(call: Call, sums: CellSums, unit: F64, norm: float, seed: int) -> GapCells:
    """Make cells from sums over their rows; the null of the sums is used up.

    `unit` (K, B) multiplies a gap before the norm, and is 0 for cells that do not count.
    """
    effect = design_effects(call, sums.null, sums.variance)
    null = sums.null
    null *= unit[:, :, None]
    return GapCells(
        gap=sums.gap * unit,
        null=null,
        variance=effect * sums.variance * unit**2,
        per_row=effect * divide(sums.squares, sums.share) * unit,
        n=sums.n[:, None] / effect,
        max_gap=sums.share * unit,
        expected=sums.score * unit,
        norm=norm,
        share=sums.share,
        group=sums.group,
        seed=seed,
        bias=None if sums.bias is None else sums.bias * unit,
    )


def design_effects(call: Call, null: F64, variance: F64) -> Any:
    """Compute the design effects (K, B) of groups on cells, as replicates show them.

    Without replicates, and where these hardly vary, it is the effect on the sum of all outcomes.
    """
    if call.dependence is None:
        return 1.0
    effect = np.full(variance.shape, call.design_effect)
    drawn = null.var(axis=2) if null.size else np.zeros_like(variance)
    np.divide(drawn, variance, out=effect, where=(variance > 0) & (drawn > variance / 2))
    return np.maximum(effect, 1.0)


def limit_replicates(call: Call, n_cells: int) -> int:
    """Return the number of replicates for so many cells."""
    return min(call.n_resamples, max(MIN_REPLICATES, MAX_GAPS // max(n_cells, 1)))
