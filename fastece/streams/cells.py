"""Sums over cells of the score, for a problem whose rows were not kept.

Rows whose scores are nearly equal are one row that counts more often, so cells are samples with
counts.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastece.data.samples import Sample
from fastece.kernels.types import F64, I64

# Cells with more than this share of all weight have two rows.
HEAVY_SHARE = 0.01
# Scores of a cell with a smaller variance, in squared widths of the cell, are one score: sums of
# squares have been rounded to 2**-31 for each row.
MIN_VARIANCE = 2.0**-29


class Spread(NamedTuple):
    """How scores are spread in coarse cells, in widths of the cell.

    Attributes
    ----------
    mean : (2, N') float64 array
        Mean distance of the scores of either outcome from the lower end of their cell.
    square : (N',) float64 array
        Sum of w times the squared distance from these means.
    max_square : (N',) float64 array
        The largest that this sum could be.
    """

    mean: F64
    square: F64
    max_square: F64


@dataclass(frozen=True, eq=False)
class ScoreCells:
    """Sums over the rows of a problem in cells ``(j / N, (j + 1) / N]`` of the score.

    N' coarse cells, each of N / N' fine ones, have more sums.

    Attributes
    ----------
    n : int
        Number of rows of positive weight.
    low, high : float
        Support of the score.
    weight : (2, N + 2) float64 array
        Weights of the outcomes 0 and 1 in the fine cells; the first belongs to the
        score 0 alone, the last to 1.
    score : (2, N') float64 array
        Sums of w r of either outcome, with the distance r of the score from the middle of the
        cell, in widths of it.
    square_score : (N',) float64 array
        Sums of w r**2.
    square : (N',) float64 array
        Sums of w**2.
    """

    n: int
    low: float
    high: float
    weight: F64
    score: F64
    square_score: F64
    square: F64

    @cached_property
    def coarse_weight(self) -> F64:
        """Weights (2, N') of either outcome in the coarse cells."""
        return coarse_sums(self.weight, self.square.size)

    @cached_property
    def spread(self) -> Spread:
        """How scores are spread in the coarse cells."""
        weight = self.coarse_weight
        mean = np.full_like(self.score, 0.5)
        mean += np.divide(self.score, weight, out=np.zeros_like(weight), where=weight > 0)
        mean = mean.clip(0.0, 1.0)  # against rounding
        square = self.square_score - (weight * (mean - 0.5) ** 2).sum(0)
        return Spread(mean, square, (weight * mean * (1 - mean)).sum(0))

    @cached_property
    def by_rank(self) -> Sample:
        """Sorted rows with the right weights of fine cells.

        Each fine cell has one row for either outcome; sums of w s are right in every coarse cell.
        Rows of one coarse cell are the same share of the way from one end of their fine cells to
        the other, whatever their outcome: if their scores differed, estimators based on ranks would
        separate them. Two rows stand for the rows of a heavy cell, unless all have one score: where
        most scores are in one cell, quartiles of them are two scores or one.
        """
        weight_of_outcomes = self.weight[:, 1:-1]
        weight_of_ends = self.weight[:, [0, -1]]
        n_cells = weight_of_outcomes.shape[1]
        place = self._place_in_fine_cells()
        step = np.where(self._has_two_rows(), 0.5 * np.minimum(place, 1 - place), 0.0)
        scores = np.stack([place - step, place + step])[None] + np.arange(n_cells)
        second = np.where(step > 0, 0.5 * weight_of_outcomes, 0.0)
        weights = np.stack([weight_of_outcomes - second, second], axis=1)
        return self._sample(scores.repeat(2, axis=0) / n_cells, weights, n_cells, weight_of_ends)

    def _place_in_fine_cells(self) -> F64:
        """Compute the place of the rows of each fine cell (N,), from 0 to 1.

        It is the same in all fine cells of a coarse one, and gives the coarse cell its sum of w s.
        """
        weight_of_cells = self.weight[:, 1:-1].sum(0)
        weight_of_ends = self.weight[:, [0, -1]].sum(0)
        n_cells = weight_of_cells.size
        ratio = n_cells // self.square.size  # fine cells of a coarse one
        sums = self.score.sum(0)
        # Without the scores of 0 and 1, which are half a width from the middle of their cells.
        sums[[0, -1]] += 0.5 * weight_of_ends * [1, -1]
        weight = weight_of_cells.reshape(-1, ratio).sum(1)
        lower_ends = (weight_of_cells * (np.arange(n_cells) % ratio)).reshape(-1, ratio).sum(1)
        place = np.full_like(lower_ends, 0.5)
        distances = (sums + 0.5 * weight) * ratio - lower_ends
        np.divide(distances, weight, out=place, where=weight > 0)
        return np.asarray(place.clip(0.0, 1.0).repeat(ratio))

    def _has_two_rows(self) -> NDArray[np.bool_]:
        """Return whether each fine cell (N,) is heavy, and its scores differ."""
        weight_of_cells = self.weight[:, 1:-1].sum(0)
        is_heavy = weight_of_cells > HEAVY_SHARE * self.weight.sum()
        is_spread = self.spread.square > MIN_VARIANCE * self.coarse_weight.sum(0)
        return np.asarray(is_heavy & is_spread.repeat(weight_of_cells.size // self.square.size))

    @cached_property
    def by_square(self) -> Sample:
        """Sorted rows with the right sums of squares of scores.

        Each coarse cell has two rows for either outcome, and its sums of w, w y, w s, w s y and
        w s**2 are right. A mean m alone, and the ends 0 and 1 of a cell with shares 1 - m and m,
        have the smallest and the largest variance that there can be; the rows are the same share of
        the way from one to the other for both outcomes.
        """
        mean, square, max_square = self.spread
        share = np.divide(square, max_square, out=np.zeros_like(square), where=max_square > 0)
        share = np.sqrt(share.clip(0.0, 1.0))
        n_cells = self.square.size
        places = np.stack([mean - share * mean, mean + share * (1 - mean)], axis=1)
        scores = (places + np.arange(n_cells)) / n_cells
        weights = self.coarse_weight[:, None] * np.stack([1 - mean, mean], axis=1)
        return self._sample(scores, weights, n_cells, np.zeros((2, 2)))

    def _sample(self, score: F64, weight: F64, n_cells: int, weight_of_ends: F64) -> Sample:
        """Make a sorted sample of scores and weights (2, rows, cells) of either outcome.

        `weight_of_ends` has the weights (2, 2) of the scores 0 and 1, by outcome.
        """
        outcome, _, cell = np.nonzero(weight > 0)
        s = score[weight > 0]
        w = weight[weight > 0]
        # Against rounding: a row stays in its cell, which begins after its lower end.
        lowest = np.where(cell > 0, np.nextafter(cell / n_cells, 2.0), 0.0)
        s = np.minimum(np.maximum(s, lowest), (cell + 1) / n_cells)
        outcome_at_end, end = np.nonzero(weight_of_ends > 0)
        s = np.append(s, end.astype(np.float64))
        w = np.append(w, weight_of_ends[weight_of_ends > 0])
        outcome = np.append(outcome, outcome_at_end)
        cell = np.append(cell, end * (n_cells - 1))
        order = np.argsort(s, kind="stable")
        outcome = outcome[order]
        cell = cell[order]
        s = s[order]
        w = w[order]
        coarse_cell = cell // (n_cells // self.square.size)
        rows: I64 = 2 * coarse_cell + outcome
        v = None
        c = w
        if self.mean_weight is not None:
            v = self.mean_weight[coarse_cell]
            c = w / v
        return Sample(s, outcome.astype(np.uint8), v, self.low, self.high, rows, c=c)

    @cached_property
    def mean_weight(self) -> F64 | None:
        """The weight (N',) of the rows of each coarse cell if all of them had the same.

        Kish's number of rows, ``(sum w)**2 / sum w**2``, with this weight gives the sums of weights
        and of their squares. None where every row counts 1.
        """
        weight = self.coarse_weight.sum(0)
        if np.array_equal(weight, self.square):
            return None
        mean: F64 = np.ones_like(weight)
        np.divide(self.square, weight, out=mean, where=weight > 0)
        return mean


def coarse_sums(x: NDArray[Any], n_coarse: int) -> NDArray[Any]:
    """Add fine cells (..., N + 2) up to coarse ones (..., N')."""
    sums: NDArray[Any] = np.asarray(x[..., 1:-1].reshape(*x.shape[:-1], n_coarse, -1).sum(-1))
    sums[..., 0] += x[..., 0]
    sums[..., -1] += x[..., -1]
    return sums
