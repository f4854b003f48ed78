"""A problem as sums over cells of its score: what is left of rows that were not kept.

Rows whose scores are nearly equal are one row that counts more often, so cells are a sample with
multiplicities, and every estimator has a value on them: `prepare` and `evaluate` of the protocol.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from fastece.protocol import Sample
from fastece.typing import F64, I64


class Counted(NamedTuple):
    """A sorted sample of which row i counts ``c[i]`` times.

    Attributes
    ----------
    sample : Sample
        Its `rows` say which cell each row is of, twice the number, and one more for hits.
    c : (n,) float64 array
    """

    sample: Sample
    c: F64

    @property
    def weighted(self) -> Sample:
        """The sample, each row of which has all the weight of its copies."""
        v = self.sample.v
        return replace(self.sample, v=self.c if v is None else self.c * v)


@dataclass(frozen=True, eq=False)
class Cells:
    """Sums over the rows of one problem in cells ``(j / N, (j + 1) / N]`` of the score; N' coarse
    cells, each of N / N' fine ones, have more of them.

    Attributes
    ----------
    n : int
        Number of rows of positive weight.
    low, high : float
        Support of the score.
    weight, hits : (N,) float64 arrays
        Sums of w and of w y.
    score, hit_score, square_score : (N',) float64 arrays
        Sums of w r, w r y and w r**2, with the distance r of the score from the middle of the cell,
        in widths of it.
    square : (N',) float64 array
        Sums of w**2.
    """

    n: int
    low: float
    high: float
    weight: F64
    hits: F64
    score: F64
    hit_score: F64
    square_score: F64
    square: F64

    @property
    def ratio(self) -> int:
        """Fine cells of a coarse one."""
        return self.weight.size // self.score.size

    def coarse(self, x: F64) -> F64:
        """Sums of the coarse cells from those of the fine ones."""
        return np.asarray(x.reshape(-1, self.ratio).sum(1))

    @cached_property
    def kinds(self) -> F64:
        """Weight of the misses and of the hits (2, N) of each fine cell."""
        return np.stack([np.maximum(self.weight - self.hits, 0.0), self.hits])

    @cached_property
    def means(self) -> F64:
        """Mean distance (2, N') of misses and of hits from the lower end of their coarse cell, in
        widths of it; one half where there are none."""
        sums = np.stack([self.score - self.hit_score, self.hit_score])
        weight = np.stack([self.coarse(kind) for kind in self.kinds])
        mean = np.divide(sums, weight, out=np.zeros_like(sums), where=weight > 0)
        return (0.5 + mean).clip(0.0, 1.0)  # rounding

    @cached_property
    def rows(self) -> Counted:
        """The misses and the hits of each fine cell as rows: weights are right in every fine cell,
        and sums of w s and w s y in every coarse one.

        Rows of one coarse cell are the same part of the way from one end of their fine cells to the
        other.
        """
        ratio, n_cells = self.ratio, self.weight.size
        inside = np.arange(n_cells) % ratio
        begin = np.stack([self.coarse(kind * inside) for kind in self.kinds])
        weight = np.stack([self.coarse(kind) for kind in self.kinds])
        part = np.full_like(begin, 0.5)
        np.divide(self.means * weight * ratio - begin, weight, out=part, where=weight > 0)
        score = (np.arange(n_cells) + part.clip(0.0, 1.0).repeat(ratio, axis=1)) / n_cells
        return self._counted(score[:, None], self.kinds[:, None], n_cells)

    @cached_property
    def points(self) -> Counted:
        """Two points for the misses and two for the hits of each coarse cell, with which sums of w,
        w y, w s, w s y and w s**2 are right in every coarse cell.

        A mean m and the ends 0 and 1 of a cell with shares 1 - m and m have the smallest and the
        largest variance that there can be; points are the same part of the way from one to the
        other for misses and hits.
        """
        weight = np.stack([self.coarse(kind) for kind in self.kinds])
        mean, size = self.means, self.score.size
        largest = (weight * mean * (1 - mean)).sum(0)
        spread = self.square_score - (weight * (mean - 0.5) ** 2).sum(0)
        part = np.divide(spread, largest, out=np.zeros_like(spread), where=largest > 0)
        part = np.sqrt(part.clip(0.0, 1.0))
        ends = np.stack([mean - part * mean, mean + part * (1 - mean)], axis=1)
        score = (np.arange(size) + ends) / size
        return self._counted(score, weight[:, None] * np.stack([1 - mean, mean], axis=1), size)

    def _counted(self, score: F64, weight: F64, n_cells: int) -> Counted:
        """Rows with scores and weights (2, points, cells) of misses and of hits."""
        kind, _, cell = np.nonzero(weight > 0)
        s, w = score[weight > 0], weight[weight > 0]
        # Of rounding: a row stays in its cell, whose lower end is the one before it.
        first = np.nextafter(cell / n_cells, 2.0)
        s = np.minimum(np.maximum(s, np.where(cell > 0, first, 0.0)), (cell + 1) / n_cells)
        order = np.argsort(s, kind="stable")
        kind, cell, s, w = kind[order], cell[order], s[order], w[order]
        coarse = cell // (n_cells // self.score.size)
        v = self.mean_weight
        each = None if v is None else v[coarse]
        place: I64 = 2 * coarse + kind
        sample = Sample(s, kind.astype(np.uint8), each, self.low, self.high, place)
        return Counted(sample, w if each is None else w / each)

    @cached_property
    def mean_weight(self) -> F64 | None:
        """The weight (N',) of the rows of each coarse cell, if all have the same: as many rows as
        that, in Kish's sense, ``(sum w)**2 / sum w**2``, have the sums of its weights and of their
        squares. None where every row counts 1."""
        weight = self.coarse(self.weight)
        if np.array_equal(weight, self.square):
            return None
        return np.divide(self.square, weight, out=np.ones_like(weight), where=weight > 0)
