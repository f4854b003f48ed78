"""The adaptive test of many slices on shared draws, and p-values that know what slices share.

The outcomes of all rows are drawn once, as if the model were calibrated, and every slice is tested
on its part of each draw. So slices depend on each other among the draws as they do in the data,
and the smallest p-value of all slices has its own law, whatever rows they share: step-down min-p,
Westfall and Young (1993), "Resampling-based multiple testing", algorithm 2.8.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from fastece.data.doubts import impossible_rows
from fastece.data.samples import Sample
from fastece.data.table import RowTable
from fastece.estimators.base import Statistic
from fastece.estimators.binned import Binned, Bins
from fastece.estimators.draws import Counts, TableCounts
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
from fastece.resampling.labels import make_null_draws
from fastece.resampling.outcome_sums import (
    ROWS_AT_ONCE,
    OutcomeSums,
    make_outcome_sums,
    rows_or_cells,
)

# Sums of outcomes of all slices that are in memory at once, 16 MB.
MAX_SUMS = 2 * 10**6


class JointPValues(NamedTuple):
    """P-values of S slices that share draws.

    Attributes
    ----------
    alone : (S,) float64 array
        P-value of each slice by itself.
    joint : (S,) float64 array
        P-value of each slice that holds for all of them together.
    """

    alone: F64
    joint: F64


# --- p-values -------------------------------------------------------------------------------


def step_down_min_p(p_values: F64) -> F64:
    """Adjust the p-values (S,) of S slices for the smallest p-value of all.

    The slices are taken from the smallest p-value on. Each has the share of draws, the data among
    them, in which a slice that is not before it has as small a p-value; and at least the adjusted
    p-value of the slice before.

    Parameters
    ----------
    p_values : (S, 1 + R) float64 array
        Those of the data, and of R draws.
    """
    order = np.argsort(p_values[:, 0], kind="stable")
    # Line j has the smallest p-value of the slices that are not before the j-th.
    smallest = np.minimum.accumulate(p_values[order[::-1]], axis=0)[::-1]
    share = np.mean(smallest <= p_values[order, :1], axis=1)
    joint = np.empty(order.size)
    joint[order] = np.maximum.accumulate(share)
    return joint


def holm(p_values: F64) -> F64:
    """Adjust p-values (S,) whatever they have in common.

    The j-th smallest is multiplied by ``S - j + 1``: Holm (1979), "A simple sequentially rejective
    multiple test procedure". Where a p-value is nan, so is the adjusted one.
    """
    order = np.argsort(p_values, kind="stable")
    factors = np.arange(order.size, 0, -1)
    joint = np.empty(order.size)
    joint[order] = np.maximum.accumulate(np.minimum(factors * p_values[order], 1.0))
    return joint


def adjust_on_draws(alone: F64, p_values: F64) -> F64:
    """Adjust p-values (S,) for the smallest of all, whose law comes from shared draws.

    The p-values may come from any test. The draws give the dependence of the hypotheses alone:
    each has p-values that are evenly spread over the draws. The adjusted p-values lie between the
    given ones and Holm's. A hypothesis whose p-value is nan is not tested, and counts for none.

    Parameters
    ----------
    alone : (S,) float64 array
        P-value of each hypothesis by itself.
    p_values : (S, R) float64 array
        P-values of R draws among themselves, multiples of ``1 / R``.
    """
    joint = np.full(alone.size, np.nan)
    is_tested = ~np.isnan(alone)
    if not is_tested.any():
        return joint
    tested = alone[is_tested]
    n_draws = p_values.shape[1]
    # The smallest p-value that there is has one draw of each hypothesis.
    of_draws = p_values[is_tested] * (n_draws / (n_draws + 1))
    with_data = step_down_min_p(np.column_stack([tested, of_draws]))
    # The p-values alone have counted the data among their draws already.
    joint[is_tested] = np.clip(with_data - 1 / (n_draws + 1), tested, holm(tested))
    return joint


def share_as_small(values: F64) -> F64:
    """Compute the share (..., R) of values (..., R) that are as small as each."""
    lines = values.reshape(-1, values.shape[-1])
    ranks = [np.searchsorted(np.sort(line), line, side="right") for line in lines]
    return np.reshape(np.array(ranks) / values.shape[-1], values.shape)


def break_ties(p_values: F64) -> F64:
    """Compute a statistic (S, R) that orders draws by their smallest p-value.

    Draws whose smallest of C p-values is the same are ordered by the geometric mean of all. Without
    it C draws share the smallest p-value that there is, and a joint p-value of many slices could
    not fall below C times their number over the number of draws.

    Parameters
    ----------
    p_values : (S, C, R) float64 array
        Multiples of ``1 / R``.
    """
    ranks = p_values.shape[-1] * p_values.min(axis=1)
    return np.asarray(np.rint(ranks) + np.exp(np.log(p_values).mean(axis=1)) / 2)


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


def joint_p_values(call: Call, selections: Sequence[Selection], key: int) -> JointPValues:
    """Test on shared draws whether each selection of rows is calibrated."""
    data = rows_or_cells(call, "the test")
    slices = [make_slice_test(data, selection) for selection in selections]
    of_data = np.array([each.statistics_of_data() for each in slices])
    of_draws = SharedDraws(call, data, slices, key).statistics()
    p_values = rank_p_values(np.concatenate([of_data, of_draws], axis=-1))
    alone = share_as_small(p_values.min(axis=1))[:, 0]
    of_slices = share_as_small(break_ties(p_values))
    # No draw has such an outcome, so the data are more extreme than all of them.
    has_impossible_outcome = [each.has_impossible_outcome for each in slices]
    of_slices[has_impossible_outcome, 0] = 0.0
    alone[has_impossible_outcome] = 1 / (call.n_resamples + 1)
    return JointPValues(alone, np.maximum(alone, step_down_min_p(of_slices)))
