"""Sums over the rows in bins, of whole arrays and of samples whose rows have counts.

`sum_bins` is for whole arrays, whose bins are fixed or have their edges from `cuts`. `sum_sample`
is for rows that count several times. `replicates` has the sums of many draws at once.

A new kind of sum goes here, as a field of `Bins`, and into `kernels.moments.moment`.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from fastece import kernels
from fastece.data.samples import Sample, scale_weights
from fastece.data.table import RowTable, as_lines, one_problem
from fastece.data.threads import Map
from fastece.estimators.binned.cell_sums import bin_sums, kind_array, name_sums
from fastece.estimators.binned.layouts import BinRule, Layout, fixed_layout, layout_of
from fastece.kernels import GAP, HITS, SCORE, SQUARE, WEIGHT
from fastece.kernels.types import F64

# From about so many rows on, the rows of a problem are shared out among threads in chunks.
MIN_ROWS = 2**16
# A kernel bins so many rows of several problems at once, in about a millisecond.
MAX_ROWS_AT_ONCE = 2**16
# Bins of each problem that `gap_errors` takes: they fit into memory for any number of problems.
MAX_BINS_OF_FEW_ROWS = 2048
GAPS = kind_array((GAP,))
# In place of sums that nobody asked for.
NOT_SUMMED = np.empty((0, 0))
# The field of `Bins` for each kind of sum.
FIELDS = {GAP: "gap", WEIGHT: "weight", SCORE: "score", HITS: "hits", SQUARE: "square"}


class Bins(NamedTuple):
    """Sums over the bins of K problems, or of K replicates of one problem.

    Attributes
    ----------
    edges : sequence of (B + 1,) float64 arrays
        The edges of each problem; replicates have none.
    unit : float
        A power of two, in units of which all weights are.
    total : (K,) float64 array
        Weight of the rows that exist.
    gap, weight, score, hits : (K, B) float64 arrays
        Sums of w (y - s), w, w s and w y. Sums that nobody asked for have the shape (0, 0).
    square : (K, B) float64 array or None
        Sums of w**2. None if every row counts 1, or if nobody asked for them.
    """

    edges: Sequence[F64] | F64
    unit: float
    total: F64
    gap: F64
    weight: F64 = NOT_SUMMED
    score: F64 = NOT_SUMMED
    hits: F64 = NOT_SUMMED
    square: F64 | None = None


def make_bins(
    edges: Sequence[F64] | F64, sums: dict[int, F64], total: F64 | None, unit: float = 1.0
) -> Bins:
    """Make `Bins` of sums by their kind; without a total it is the weight of all bins."""
    if total is None:
        total = add_bins(by_bin(sums[WEIGHT]))
    return Bins(edges, unit, total, **{FIELDS[kind]: values for kind, values in sums.items()})


def by_bin(sums: F64) -> F64:
    """Return sums (K, B) as (B, K); sums of replicates are in this order already."""
    return np.ascontiguousarray(sums.T)


def add_bins(x: F64) -> F64:
    """Sum up numbers (B, K) of bins, one bin after another: (K,)."""
    total = np.empty(x.shape[1])
    kernels.errors.add_bins(x, total)
    return total


def join_bins(parts: Sequence[Bins]) -> Bins:
    """Join the bins of single problems, with sums of the same kinds in the same unit."""
    first = parts[0]
    arrays: dict[str, Any] = {
        name: np.concatenate([getattr(part, name) for part in parts])
        for name in ("total", *FIELDS.values())
        if getattr(first, name) is not None
    }
    return first._replace(edges=[part.edges[0] for part in parts], **arrays)


def sum_bins(rule: BinRule, problems: RowTable, kinds: Sequence[int], run: Map = map) -> Bins:
    """Add up the rows of each problem in its bins.

    Parameters
    ----------
    rule : BinRule
    problems : RowTable
        K problems, with weights whose products do not overflow.
    kinds : sequence of int
        The sums that are needed, by their names in `kernels`. With a threshold WEIGHT has to be
        among them. The result may have more.
    run : callable
        `map`, or the `map` of a pool of threads.
    """
    if rule.is_equal_mass and problems.n < MIN_ROWS:
        return sum_equal_mass(rule, problems, kinds, run)
    if rule.is_equal_mass and problems.n_problems > 1:

        def sum_problem(k: int) -> Bins:
            return sum_bins(rule, problems.problem(k), kinds)

        return join_bins([*run(sum_problem, range(problems.n_problems))])
    layout = layout_of(rule, problems)
    return bins_of_layout(layout, problems, kinds, rule.threshold, run)


def gap_errors(rule: BinRule, problems: RowTable) -> F64:
    """Compute ``sum_b |D_b| / W`` (K,) of problems of few rows, in at most 2048 bins.

    This serves speed alone. It has the bits of `sum_bins` and `Binned.errors`, whose objects take
    5 us more: a third of `ece` of 100 rows with weights, or class by class.
    """
    problems, _ = scale_weights(problems)
    weight = kernels.weights(problems.v)
    n_problems = problems.n_problems
    sums = np.empty((1, n_problems, rule.n_bins))
    if rule.is_equal_mass:
        edges = np.empty((n_problems, rule.n_bins + 1))
        score, hit = as_lines(*problems.read_kept(), range(n_problems))
        kernels.moments.equal_mass_moments(
            score, hit, weight, rule.equal_mass_fields, GAPS, edges, sums
        )
    else:
        prob, label = problems.read()
        layout = fixed_layout(rule)
        if layout.is_plain and problems.v is None and n_problems == 1:
            kernels.moments.hard_moments(prob, label, layout.grid_fields, sums)
        else:
            kernels.moments.cell_moments(
                prob, label, weight, layout.grid_fields, rule.threshold, GAPS, sums
            )
    total = float(problems.n if problems.v is None else np.add.reduce(problems.v))
    totals = np.empty(n_problems)
    totals.fill(total)
    values = np.empty(n_problems)
    kernels.errors.norms(by_bin(sums[0]), NOT_SUMMED, totals, 1.0, False, 0.0, values)
    return values


def bins_of_layout(
    layout: Layout, problems: RowTable, kinds: Sequence[int], threshold: float = -math.inf,
    run: Map = map,
) -> Bins:  # fmt: skip
    """Add up the rows of all problems, above a threshold, in the bins of one layout."""
    sums = bin_sums(problems, layout, threshold, kinds, run)
    n_problems = problems.n_problems
    return make_bins([layout.edges] * n_problems, sums, total_weight(problems, threshold))


def sum_equal_mass(rule: BinRule, problems: RowTable, kinds: Sequence[int], run: Map) -> Bins:
    """Add up the few rows of each problem in bins of equal weight."""
    n_problems = problems.n_problems
    edges = np.empty((n_problems, rule.n_bins + 1))
    prob, label = problems.read_kept()
    weight = kernels.weights(problems.v)
    n_at_once = max(1, MAX_ROWS_AT_ONCE // problems.n)

    def sum_some(first: int) -> F64:
        numbers = range(first, min(first + n_at_once, n_problems))
        score, hit = as_lines(prob, label, numbers)
        sums_of_some = np.empty((len(kinds), len(numbers), rule.n_bins))
        kernels.moments.equal_mass_moments(
            score, hit, weight, rule.equal_mass_fields, kind_array(tuple(kinds)),
            edges[first : numbers.stop], sums_of_some,
        )  # fmt: skip
        return sums_of_some

    sums = np.concatenate([*run(sum_some, range(0, n_problems, n_at_once))], axis=1)
    total = total_weight(problems, rule.threshold)
    return make_bins(edges, name_sums(kinds, sums), total)


def total_weight(problems: RowTable, threshold: float) -> F64 | None:
    """Return the weight (K,) of all rows; None if some may not be above the threshold.

    The weight of all bins may differ from it, since the shares of convex mapping are rounded.
    """
    if threshold > -math.inf:
        return None
    total = float(problems.n if problems.v is None else np.add.reduce(problems.v))
    return np.array([total] * problems.n_problems)


def sum_sample(rule: BinRule, sample: Sample, kinds: Sequence[int]) -> Bins:
    """Add up the rows of a sample in its bins, each as often as it counts."""
    problem = one_problem(sample)
    if SQUARE not in kinds:
        return sum_bins(rule, problem, kinds)
    assert sample.v is not None, "without weights there are no squares"
    bins = sum_bins(rule, problem, [kind for kind in kinds if kind != SQUARE])
    # The copies of a row are rows of their own: the squares of their weights are added up, and not
    # the square of the weight that they have together.
    copies = problem.replace(v=sample.counts * sample.v**2)
    squares = bin_sums(copies, layout_of(rule, problem), rule.threshold, (WEIGHT,))
    return bins._replace(square=squares[WEIGHT])
