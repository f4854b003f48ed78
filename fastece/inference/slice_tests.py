"""The adaptive test of many slices on shared draws.

The outcomes of all rows are drawn once, as if the model were calibrated, and every slice is tested
on its part of each draw. So slices depend on each other among the draws as they do in the data.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fastece.data.doubts import impossible_rows
from fastece.data.samples import Sample
from fastece.data.table import RowTable
from fastece.estimators.base import Statistic
from fastece.estimators.binned import Binned, Bins
from fastece.estimators.draws import Counts, TableCounts
from fastece.inference.joint import joint_p_values
from fastece.inference.selections import Selection
from fastece.kernels import REPLICATES
from fastece.kernels.types import F64, I64
from fastece.resampling.adaptive import (
    ADAPTIVE,
    ScoreTest,
    make_score_test,
    rank_p_values,
    score_cells,
)
from fastece.resampling.calibration_test import errors_of_gaps
from fastece.resampling.call import Call
from fastece.resampling.engine import PreparedStatistic, Replicates, evaluate, ranges
from fastece.resampling.intervals import p_value_of
from fastece.resampling.labels import make_null_draws
from fastece.resampling.outcome_sums import (
    ROWS_AT_ONCE,
    OutcomeSums,
    make_outcome_sums,
    rows_or_cells,
)

# Sums of outcomes of all slices that are in memory at once, 16 MB.
MAX_SUMS = 2 * 10**6


# --- slices ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class SliceTest:
    """A slice whose test is a function of the outcomes in its bins.

    Attributes
    ----------
    rows : (m,) int64 array
        Positions of its rows among all rows, in increasing order.
    problems : range
        Numbers of its K problems among all problems.
    score_test : ScoreTest
    score_sums : list of OutcomeSums
        Sum up the outcomes of each problem in the C cells of the score test.
    ece_bins : Bins
    ece_sums : list of OutcomeSums
        Sum up the outcomes of each problem in the B bins of the error "ece".
    has_impossible_outcome : bool
        Whether an outcome had the predicted probability 0.
    """

    rows: I64
    problems: range
    score_test: ScoreTest
    score_sums: list[OutcomeSums]
    ece_bins: Bins
    ece_sums: list[OutcomeSums]
    has_impossible_outcome: bool

    @property
    def n_cells(self) -> int:
        """Number of cells of the score test."""
        return int(self.score_test.bins.gap.shape[1])

    def sums_of(self, k: int) -> list[OutcomeSums]:
        """Return the sums over cells and bins of problem `k` of all problems."""
        number = k - self.problems.start
        return [self.score_sums[number], self.ece_sums[number]]

    def statistics_of_data(self) -> F64:
        """Compute the statistics (3, 1) of the data: means over the problems."""
        score_statistics = np.mean(self.score_test.of_data(), axis=0)
        error = ADAPTIVE.ece.errors(self.ece_bins).mean()
        return np.concatenate([score_statistics, [[error]]])

    def statistics_of_outcomes(self, weights: F64) -> F64:
        """Compute the statistics (3, R) from weights (K, C + B, R) of outcomes 1."""
        of_cells, of_bins = np.split(weights, [self.n_cells], axis=1)
        score_statistics = np.mean(self.score_test.of_outcomes(of_cells), axis=0)
        gaps = of_bins - self.ece_bins.score[:, :, None]
        errors = errors_of_gaps(ADAPTIVE.ece, self.ece_bins, gaps).mean(0)
        return np.concatenate([score_statistics, errors[None]])


def make_slice_test(data: RowTable, selection: Selection) -> SliceTest:
    """Prepare the test of a selection of rows."""
    rows = selection.rows
    table: Any = data
    problems = range(data.n_problems)
    if selection.problem is not None:
        table = data.problem(selection.problem)
        problems = range(selection.problem, selection.problem + 1)
    if rows is None:
        rows = np.arange(data.n)
    else:
        table = table.where(rows)
    cells = score_cells(len(problems))
    bins = cells.bins(table)
    score_sums = make_sums(cells, table, bins)
    samples = table.samples(reads_only=True)
    pairs = zip(score_sums, samples, strict=True)
    variance = np.array([sums.noise(sample)[0] for sums, sample in pairs])
    ece = ADAPTIVE.ece
    ece_bins = ece.bins(table)
    return SliceTest(
        rows=rows,
        problems=problems,
        score_test=make_score_test(bins, variance, table.count()),
        score_sums=score_sums,
        ece_bins=ece_bins,
        ece_sums=make_sums(ece, table, ece_bins),
        has_impossible_outcome=any(x.any() for x in impossible_rows(table)),
    )


def make_sums(binned: Binned, table: Any, bins: Bins) -> list[OutcomeSums]:
    """Make the sums of outcomes in the bins of each problem."""
    return make_outcome_sums(binned, table, bins.gap.shape[1])


# --- draws of all rows ----------------------------------------------------------------------


@dataclass(frozen=True)
class SumsOfSlice(Statistic):
    """Weights of the outcomes 1 in cells and bins, for one problem of a slice.

    Attributes
    ----------
    sums : sequence of OutcomeSums
    rows : (m,) int64 array
        Positions of the rows of the slice among the rows that are drawn.
    """

    sums: Sequence[OutcomeSums]
    rows: I64

    needs_sorted = False
    native = (Counts, TableCounts)

    def prepare(self, sample: Sample, size: int) -> list[Any]:
        """Arrange the rows of the slice; rows of a table are taken as they are."""
        if sample.c is not None:
            return [sample for _ in self.sums]
        all_tiles = [sums.prepare(sample, size) for sums in self.sums]
        return [
            tiles._replace(order=self.rows[tiles.order].astype(np.int32)) for tiles in all_tiles
        ]

    def values(self, plan: list[Any], draws: Counts | TableCounts) -> F64:
        """Compute weights (C + B, 32 G) for the outcomes of all rows that are drawn."""
        pairs = zip(self.sums, plan, strict=True)
        if isinstance(draws, TableCounts):
            hits = draws.c[:, self.rows]
            return np.concatenate([sums.of_table(sample, hits) for sums, sample in pairs])
        return np.concatenate([sums.add_up(tiles, draws.c) for sums, tiles in pairs])


@dataclass(frozen=True)
class SharedDraws:
    """Draws of the outcomes of all rows, on which every slice is tested.

    Attributes
    ----------
    call : Call
        A call on all rows.
    data : RowTable
        These rows, with scaled weights.
    slices : sequence of SliceTest
    key : int
    """

    call: Call
    data: RowTable
    slices: Sequence[SliceTest]
    key: int

    @property
    def members(self) -> list[tuple[int, int]]:
        """Numbers of the problem and the slice of each member, problem by problem."""
        return [
            (k, number)
            for k in range(self.data.n_problems)
            for number, each in enumerate(self.slices)
            if k in each.problems
        ]

    def statistics(self) -> F64:
        """Compute the statistics (S, 3, R) of all slices on all replicates."""
        parts = self._arrange_parts()
        n_bins = self.slices[0].ece_bins.gap.shape[1]
        n_sums = len(parts[0].members) * (self.slices[0].n_cells + n_bins)
        # A block of replicates is drawn once.
        step = REPLICATES * max(1, MAX_SUMS // (n_sums * REPLICATES))
        statistics = []
        for first, last in ranges(0, self.call.n_resamples, step):
            weights = evaluate(parts[0], first, last, self.call.workers)
            for part in parts[1:]:
                weights += evaluate(part, first, last, self.call.workers)
            statistics.append(self._statistics_of_outcomes(weights))
        return np.concatenate(statistics, axis=-1)

    def _statistics_of_outcomes(self, weights: F64) -> F64:
        """Compute statistics (S, 3, R) from the weights of all members."""
        by_slice: list[list[F64]] = [[] for _ in self.slices]
        for (_, number), weights_of_member in zip(self.members, weights, strict=True):
            by_slice[number].append(weights_of_member)
        pairs = zip(self.slices, by_slice, strict=True)
        return np.array([each.statistics_of_outcomes(np.array(x)) for each, x in pairs])

    def _arrange_parts(self) -> list[Replicates]:
        """Prepare the sums of some rows at a time, whose draws stay in the cache."""
        if self.data.c is not None:
            # A block of replicates has one generator for the whole table.
            return [self._arrange(0, self.data.n)]
        return [self._arrange(start, end) for start, end in ranges(0, self.data.n, ROWS_AT_ONCE)]

    def _arrange(self, start: int, end: int) -> Replicates:
        """Prepare the sums of every problem of every slice over consecutive rows."""
        all_rows = slice(start, end)
        scores = [self.data.view(k, all_rows).s for k in range(self.data.n_problems)]
        draws = make_null_draws(self.call, scores, self.key, start)
        members = []
        for k, number in self.members:
            each = self.slices[number]
            first, last = np.searchsorted(each.rows, [start, end])
            rows = each.rows[first:last]
            statistic = SumsOfSlice(each.sums_of(k), rows - start)
            plan = statistic.prepare(self.data.view(k, rows), self.call.n)
            members.append(PreparedStatistic(k, None, None, statistic, plan))
        return Replicates(draws, members)


# --- the test -------------------------------------------------------------------------------


def p_values_of_slices(call: Call, selections: Sequence[Selection], key: int) -> tuple[F64, F64]:
    """Test on shared draws whether each of S selections of rows is calibrated.

    Returns
    -------
    alone : (S,) float64 array
        P-value of each slice by itself, as `fastece.calibration_test` defines it.
    joint : (S,) float64 array
        P-value of each slice that holds for all of them together.
    """
    data = rows_or_cells(call, "the test")
    slices = [make_slice_test(data, selection) for selection in selections]
    of_data = np.array([each.statistics_of_data() for each in slices])
    of_draws = SharedDraws(call, data, slices, key).statistics()
    p_values = rank_p_values(np.concatenate([of_data, of_draws], axis=-1))
    smallest = p_values.min(axis=1)
    evidence = break_ties(p_values)
    alone = p_value_of(-smallest[:, 0], -smallest[:, 1:])
    alone_without_ties = p_value_of(evidence[:, 0], evidence[:, 1:])
    # No draw has such an outcome, so the data are more extreme than all of them.
    has_impossible_outcome = [each.has_impossible_outcome for each in slices]
    alone[has_impossible_outcome] = 1 / (call.n_resamples + 1)
    alone_without_ties[has_impossible_outcome] = 0.0
    return alone, np.maximum(alone, joint_p_values(alone_without_ties, evidence[:, 1:]))


def break_ties(p_values: F64) -> F64:
    """Compute the evidence (S, R) of draws from their p-values by C statistics.

    The smaller the smallest p-value of a draw, the more evidence there is. Draws whose smallest one
    is the same are ordered by the geometric mean of all. Without it C draws share the smallest
    p-value that there is, and a joint p-value of many slices could not fall below C times their
    number over the number of draws.

    Parameters
    ----------
    p_values : (S, C, R) float64 array
        Multiples of ``1 / R``.
    """
    ranks = np.rint(p_values.shape[-1] * p_values.min(axis=1))
    return np.asarray(-ranks - np.exp(np.log(p_values).mean(axis=1)) / 2)
