"""Sums over the outcomes drawn in cells of the scores, as if the model were calibrated.

An error that is a norm of the gaps of bins needs no drawn labels, only the weight of the outcomes 1
in each bin. So rows are drawn some at a time, and a stream, which has no single rows, has the same
sums with normal noise.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastece.data.containers import contiguous
from fastece.data.samples import Sample, scale_weights
from fastece.data.table import SQUARES, RowTable, one_problem
from fastece.estimators.base import Statistic
from fastece.estimators.binned import Binned
from fastece.estimators.binned.layouts import Layout, Placement, layout_of
from fastece.estimators.binned.replicates import MAX_SUMS, Tiles
from fastece.estimators.draws import Counts
from fastece.kernels import REPLICATES, WEIGHT
from fastece.kernels.types import F64
from fastece.resampling.call import Call
from fastece.resampling.engine import PreparedStatistic, Replicates, evaluate, ranges
from fastece.resampling.labels import make_null_draws

# Rows whose labels are drawn at once, over all problems: 64 bytes each for a block of replicates.
ROWS_AT_ONCE = 2**16
# Numbers of hits of a table with counts that are drawn at once: 32 MB.
MAX_TABLE_HITS = 2**22


def rows_or_cells(call: Call, reader: str) -> RowTable:
    """Return the only model of a call as rows, or as cells with squares.

    `reader` is named where that is refused. Classes of a stream are taken one by one: how their
    labels go together is in none of its sums.
    """
    table = call.tables[0]
    if table.stream is None:
        scaled, _ = scale_weights(table)
        return scaled
    if table.n_problems > 1 and not call.per_class:
        raise table.lack(f"{reader} of a mean over classes", "average")
    return table.with_content(SQUARES, "estimator", reader)


# --- the sums of one problem ----------------------------------------------------------------


@dataclass(frozen=True)
class OutcomeSums(Statistic):
    """Weight of the outcomes 1 in bins, for each draw of labels."""

    layout: Layout
    threshold: float

    needs_sorted = False

    def prepare(self, sample: Sample, size: int) -> Tiles:  # noqa: ARG002
        """Arrange the rows of a sample with their weights in tiles."""
        return Tiles.of(sample, self.layout, self.threshold, (WEIGHT,))

    def values(self, tiles: Tiles, draws: Counts) -> F64:
        """Compute weights (B, 32 G) for the counts (G, 2 n, 32) of `LabelDraws`."""
        return self.add_up(tiles, draws.c[:, : tiles.order.size])

    def add_up(self, tiles: Tiles, ones: NDArray[Any]) -> F64:
        """Compute weights (B, 32 G) of outcomes 1, which are given as (G, n, 32)."""
        step = max(1, MAX_SUMS // (REPLICATES * self.layout.cells))
        weights = [
            tiles.sums(contiguous(ones[start:end], np.uint8))[0]
            for start, end in ranges(0, len(ones), step)
        ]
        return np.concatenate(weights, axis=1)

    def noise(self, sample: Sample) -> F64:
        """Sum ``w^2 a^2 s (1 - s)``, ``w^2 a^2`` and all w^2: (3, B).

        A row has the weight w, the score s and the share a in a bin.
        """
        places = self.layout.place(sample.s)
        s = sample.s
        w = sample.weights_above(self.threshold)
        count = 1.0 * sample.counts
        variance = places.sums(count * s * (1 - s), w, 2)
        squares = places.sums(count, w, 2)
        return np.stack([variance, squares, np.full(squares.size, (count * w) @ w)])

    def of_table(self, sample: Sample, hits: NDArray[Any]) -> F64:
        """Compute weights (B, 32 G) of hits (G, n, 32): copies of rows with the outcome 1."""
        w = sample.weights_above(self.threshold)
        shares = self.matrix_of_shares(self.layout.place(sample.s), w)
        weights = np.concatenate([shares @ block for block in hits], axis=1)
        return self.layout.spread(weights.T).T.copy()

    def matrix_of_shares(self, places: Placement, x: F64) -> Any:
        """Make the sparse matrix (C, n) of numbers (n,) of rows, shared by two cells each."""
        from scipy.sparse import csr_array

        cells = np.concatenate([places.lower, places.upper])
        columns = np.tile(np.arange(x.size), 2)
        parts = np.concatenate([x * places.share, x * (1 - places.share)])
        return csr_array((parts, (cells, columns)), (self.layout.cells, x.size))

    def of_cells(self, sample: Sample, key: int, first: int, last: int) -> F64:
        """Draw weights (B, R) in cells of a stream, with normal noise.

        A row of the sample stands for many rows of the stream, so the weight of its outcomes 1 is
        nearly normal, with the mean ``c w s`` and the variance ``c w^2 s (1 - s)``.
        """
        places = self.layout.place(sample.s)
        s = sample.s
        w = sample.weights_above(self.threshold)
        count = sample.counts
        deviations = self.matrix_of_shares(places, w * np.sqrt(count * s * (1 - s)))
        blocks = range(first // REPLICATES, -(-last // REPLICATES))
        noise = np.concatenate([
            deviations @ np.random.default_rng((key, block)).standard_normal((s.size, REPLICATES))
            for block in blocks
        ], axis=1)  # fmt: skip
        first_drawn = blocks.start * REPLICATES
        noise = noise[:, first - first_drawn : last - first_drawn]
        weights = places.sums(count * w * s) + self.layout.spread(noise.T)
        return weights.T.copy()


def make_outcome_sums(binned: Binned, data: RowTable, n_bins: int) -> list[OutcomeSums]:
    """Make the statistic of the outcomes in the bins of each problem."""
    rule = binned.rule(data, n_bins)
    problems = map(one_problem, data.samples(reads_only=True))
    return [OutcomeSums(layout_of(rule, problem), rule.threshold) for problem in problems]


# --- a model as sums over cells -------------------------------------------------------------


@dataclass(frozen=True)
class NullModel:
    """A model whose outcomes are drawn from its scores and summed up in cells.

    Attributes
    ----------
    call : Call
        A call on the model.
    data : RowTable
        The model, as `rows_or_cells` gives it.
    sums : sequence of Statistic
        For each problem the statistic that sums up the outcomes 1 in its C cells. It takes the
        counts of `LabelDraws`; for a stream it has a method ``of_cells``. A method ``noise`` of a
        sample sums up Q quantities of the noise in each cell: (Q, C).
    key : int
        The number that the draws depend on.
    """

    call: Call
    data: RowTable
    sums: Sequence[Any]
    key: int

    def noise(self) -> F64:
        """Sum up the noise (Q, K, C) of the cells."""
        total: Any = 0.0
        for _, samples in self._parts():
            pairs = zip(self.sums, samples, strict=True)
            total = total + np.array([sums.noise(sample) for sums, sample in pairs])
        return np.asarray(total.swapaxes(0, 1))

    def draw(self, first: int, last: int) -> F64:
        """Draw the weights (K, C, R) of the outcomes 1 in a range of replicates.

        Without replicates they are an empty array (1, 1, 0).
        """
        if first == last:
            return np.empty((1, 1, 0))
        total: Any = 0.0
        for first_row, samples in self._parts():
            total = total + self._draw_part(first_row, samples, first, last)
        return np.asarray(total)

    def _parts(self) -> Iterator[tuple[int, list[Sample]]]:
        """Yield some rows of all problems at a time, with the number of the first one."""
        if self.data.c is not None:
            yield 0, self.data.samples()
            return
        problems = range(self.data.n_problems)
        step = max(1, ROWS_AT_ONCE // len(problems))
        for start, end in ranges(0, self.data.n, step):
            yield start, [self.data.view(k, slice(start, end)) for k in problems]

    def _draw_part(self, first_row: int, samples: list[Sample], first: int, last: int) -> F64:
        """Draw the weights (K, C, R) in some rows of all problems."""
        if self.data.stream is not None:
            pairs = zip(self.sums, samples, strict=True)
            return np.array([sums.of_cells(x, self.key, first, last) for sums, x in pairs])
        if self.data.c is not None:
            return self._draw_table(samples, first, last)
        scores = [sample.s for sample in samples]
        draws = make_null_draws(self.call, scores, self.key, first_row)
        members = [
            PreparedStatistic(k, None, None, sums, sums.prepare(samples[k], self.call.n))
            for k, sums in enumerate(self.sums)
        ]
        return evaluate(Replicates(draws, members), first, last, self.call.workers)

    def _draw_table(self, samples: list[Sample], first: int, last: int) -> F64:
        """Draw the weights (K, C, R) of a table with counts."""
        draws = make_null_draws(self.call, [sample.s for sample in samples], self.key)
        blocks = range(first // REPLICATES, -(-last // REPLICATES))
        step = max(1, MAX_TABLE_HITS // (samples[0].n * len(samples) * REPLICATES))
        weights = []
        for start, end in ranges(blocks.start, blocks.stop, step):
            drawn = draws.make(start, end - start)
            pairs = zip(self.sums, samples, strict=True)
            weights.append([
                sums.of_table(sample, draws.outcomes(drawn, k))
                for k, (sums, sample) in enumerate(pairs)
            ])  # fmt: skip
        first_drawn = blocks.start * REPLICATES
        return np.concatenate(weights, axis=2)[:, :, first - first_drawn : last - first_drawn]
