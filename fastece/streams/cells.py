"""Sums over cells of the score, for a problem whose rows were not kept.

Rows whose scores are nearly equal are one row that counts more often, so cells are samples with
counts.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fastece.data.samples import Sample
from fastece.kernels.types import F64, I64

# Cells with more than this part of all weight have two rows.
HEAVY = 0.01
# Scores of a cell whose variance is less, in widths of it, are one score: sums of squares have been
# rounded to 2**-31 for each row.
ONE_SCORE = 2.0**-29


@dataclass(frozen=True, eq=False)
class Cells:
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
    def spread(self) -> tuple[F64, F64, F64]:
        """Means of the distances from the ends of coarse cells, and squares around them.

        The means (2, N') are of either outcome, from the lower end in widths of the cell; then
        come the sum (N',) of w times the squared distance from these means, and the largest that
        it could be.
        """
        weight, middle = self.coarse_weight, np.full_like(self.score, 0.5)
        mean = middle + np.divide(self.score, weight, out=0 * middle, where=weight > 0)
        mean = mean.clip(0.0, 1.0)  # rounding
        around = self.square_score - (weight * (mean - 0.5) ** 2).sum(0)
        return mean, around, (weight * mean * (1 - mean)).sum(0)

    @cached_property
    def by_rank(self) -> Sample:
        """Sorted rows with which the weights of fine cells are right.

        Each fine cell has one for either outcome; sums of w s are right in every coarse cell. Rows
        of one coarse cell are the same part of the way from one end of their fine cells to the
        other, whatever their outcome: if their scores differed, estimators based on ranks would
        separate them. Two rows stand for the rows of a heavy cell, unless all have one score: where
        most scores are in one cell, quartiles of them are two scores or one.
        """
        kinds, ends = self.weight[:, 1:-1], self.weight[:, [0, -1]]
        ratio = kinds.shape[1] // self.square.size  # fine cells of a coarse one
        n_cells, each, sums = kinds.shape[1], kinds.sum(0), self.score.sum(0)
        sums[[0, -1]] += 0.5 * ends.sum(0) * [1, -1]  # without the scores of 0 and 1
        weight = each.reshape(-1, ratio).sum(1)
        begin = (each * (np.arange(n_cells) % ratio)).reshape(-1, ratio).sum(1)
        part = np.full_like(begin, 0.5)
        np.divide((sums + 0.5 * weight) * ratio - begin, weight, out=part, where=weight > 0)
        part = part.clip(0.0, 1.0).repeat(ratio)
        _, around, _ = self.spread
        is_heavy = each > HEAVY * self.weight.sum()
        is_spread = around > ONE_SCORE * self.coarse_weight.sum(0)
        step = np.where(is_heavy & is_spread.repeat(ratio), 0.5 * np.minimum(part, 1 - part), 0.0)
        at = np.stack([part - step, part + step])[None] + np.arange(n_cells)
        second = np.where(step > 0, 0.5 * kinds, 0.0)
        rows = np.stack([kinds - second, second], axis=1)
        return self._sample(at.repeat(2, axis=0) / n_cells, rows, n_cells, ends)

    @cached_property
    def by_square(self) -> Sample:
        """Sorted rows with which sums of squares of scores are right.

        Each coarse cell has two for either outcome, and its sums of w, w y, w s, w s y and w s**2
        are right. A mean m and the ends 0 and 1 of a cell with shares 1 - m and m have the smallest
        and the largest variance that there can be; the rows are the same part of the way from one
        to the other for both outcomes.
        """
        size, (mean, around, largest) = self.square.size, self.spread
        part = np.divide(around, largest, out=np.zeros_like(around), where=largest > 0)
        part = np.sqrt(part.clip(0.0, 1.0))
        at = np.stack([mean - part * mean, mean + part * (1 - mean)], axis=1) + np.arange(size)
        each = self.coarse_weight[:, None] * np.stack([1 - mean, mean], axis=1)
        return self._sample(at / size, each, size, np.zeros((2, 2)))

    def _sample(self, score: F64, weight: F64, n_cells: int, ends: F64) -> Sample:
        """Make a sorted sample of scores and weights (2, rows, cells) of either outcome.

        `ends` are the weights (2, 2) of the scores 0 and 1.
        """
        kind, _, cell = np.nonzero(weight > 0)
        s, w = score[weight > 0], weight[weight > 0]
        # Of rounding: a row stays in its cell, whose lower end is the one before it.
        first = np.nextafter(cell / n_cells, 2.0)
        s = np.minimum(np.maximum(s, np.where(cell > 0, first, 0.0)), (cell + 1) / n_cells)
        end_kind, end = np.nonzero(ends > 0)
        s, w = np.append(s, end.astype(np.float64)), np.append(w, ends[ends > 0])
        kind, cell = np.append(kind, end_kind), np.append(cell, end * (n_cells - 1))
        order = np.argsort(s, kind="stable")
        kind, cell, s, w = kind[order], cell[order], s[order], w[order]
        coarse = cell // (n_cells // self.square.size)
        v = self.mean_weight
        each = None if v is None else v[coarse]
        place: I64 = 2 * coarse + kind
        c = w if each is None else w / each
        return Sample(s, kind.astype(np.uint8), each, self.low, self.high, place, c=c)

    @cached_property
    def mean_weight(self) -> F64 | None:
        """The weight (N',) of the rows of each coarse cell, if all have the same.

        As many rows, in Kish's sense ``(sum w)**2 / sum w**2``, have the sums of its weights and of
        their squares. None where every row counts 1.
        """
        weight = self.coarse_weight.sum(0)
        if np.array_equal(weight, self.square):
            return None
        mean: F64 = np.ones_like(weight)
        np.divide(self.square, weight, out=mean, where=weight > 0)
        return mean


def coarse_sums(x: F64, n_coarse: int) -> F64:
    """Add fine cells (..., N + 2) up to coarse ones (..., N')."""
    sums = np.asarray(x[..., 1:-1].reshape(*x.shape[:-1], n_coarse, -1).sum(-1))
    sums[..., 0] += x[..., 0]
    sums[..., -1] += x[..., -1]
    return sums
