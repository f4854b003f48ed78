"""Sums over rows in the cells of one layout: the loop over chunks, on threads.

Every sum over the rows of arrays comes from `sum_cells`.
Sums are named by their kind, as in `kernels.MOMENTS`: with weights w, outcomes y and scores s, GAP
is the sum of w (y - s), WEIGHT of w, SCORE of w s, HITS of w y, and SQUARE of w**2.
"""

import math
from collections.abc import Sequence
from functools import lru_cache, reduce
from typing import NamedTuple

import numpy as np

from fastece import kernels
from fastece.data.errors import InvalidRowsError
from fastece.data.samples import ALL
from fastece.data.sources import Problems
from fastece.data.threads import Map
from fastece.estimators.binned.layouts import Layout
from fastece.kernels import COUNTS, HITS, MOMENTS, PACK, WEIGHT
from fastece.kernels.types import F64, I64

# Scores of a chunk: a thread is busy with them for a millisecond, so that two threads seldom wait
# for one another. On 1e8 scores two threads are 1.7 times as fast as one; with 2**16 scores a chunk
# 1.2 times. Chunks are added in order, so any number of threads gives the same bits.
CHUNK_SCORES = 2**19
# A chunk clears and reduces every cell once, so it should have many more rows than cells.
CHUNK_ROWS_PER_CELL = 64
# It takes 2 us to unpack counts, and about as long to pass over this many rows a second time.
MIN_PACKED_ROWS = 2**12
NO_SCORES = np.empty(0)
# The sums of plain rows, which one kernel finds at once: the first of them, or all.
PLAIN_KINDS = MOMENTS[:4]


class CellSums(NamedTuple):
    """Sums over the rows of K problems in the cells of one layout.

    Attributes
    ----------
    by_kind : dict of (K, cells) float64 arrays
        The sums of each kind.
    only_score : (K, cells) float64 array, or (K, 0) if it was not asked for
        The score of a cell whose rows all have the same score; `kernels.moments.NONE` in a cell
        without rows, and `kernels.moments.SEVERAL` in all other cells.
    """

    by_kind: dict[int, F64]
    only_score: F64


def bin_sums(
    problems: Problems, layout: Layout, threshold: float, kinds: Sequence[int], run: Map = map
) -> dict[int, F64]:
    """Add up rows with a score above the threshold in bins: kind -> (K, B) sums."""
    cells = sum_cells(problems, layout, threshold, kinds, run)
    if layout.cells_are_bins:
        return cells.by_kind
    return {kind: layout.spread(sums) for kind, sums in cells.by_kind.items()}


def sum_cells(
    problems: Problems, layout: Layout, threshold: float, kinds: Sequence[int], run: Map,
    *, finds_only_scores: bool = False,
) -> CellSums:  # fmt: skip
    """Add up rows with a score above the threshold in the cells of a layout.

    `run` is `map`, or the `map` of a pool of threads. It takes 1 ns a row to find the only score of
    every cell too.
    """
    n_problems = problems.n_problems
    n_cells = layout.cells
    summed = tuple(kinds)
    plain_kinds = None
    if problems.v is None and not layout.grid.convex:
        if layout.is_plain and problems.prob.ndim == 1 and threshold == -math.inf:
            plain_kinds = kinds_of_plain_rows(summed)
        if plain_kinds is not None:
            summed = plain_kinds
        elif MIN_PACKED_ROWS <= problems.n < PACK:
            summed = pack_counts(summed)
    weight = kernels.weights(problems.v)

    def sum_chunk(chunk: slice) -> tuple[F64, F64]:
        prob, label = problems.read(chunk)
        sums = np.empty((len(summed), n_problems, n_cells))
        if plain_kinds is not None:
            if not kernels.moments.hard_moments(prob, label, layout.grid_fields, sums):
                raise InvalidRowsError
            return sums, NO_SCORES
        only_score = NO_SCORES
        if finds_only_scores:
            only_score = np.full(n_problems * n_cells, kernels.moments.NONE)
        kernels.moments.cell_moments(
            prob, label, weight[chunk], layout.grid_fields, threshold, kind_array(summed),
            only_score, sums,
        )  # fmt: skip
        return sums, only_score

    chunk_rows = max(CHUNK_SCORES // n_problems, CHUNK_ROWS_PER_CELL * n_cells)
    if problems.n <= chunk_rows:
        sums, only_score = sum_chunk(ALL)
    else:
        starts = range(0, problems.n, chunk_rows)
        chunks = run(sum_chunk, (slice(start, start + chunk_rows) for start in starts))
        sums_of_chunks, only_scores_of_chunks = zip(*chunks, strict=True)
        sums = reduce(np.add, sums_of_chunks)
        only_score = reduce(merge_only_scores, only_scores_of_chunks)
    by_kind = unpack_counts(dict(zip(summed, sums, strict=True)))
    return CellSums(by_kind, only_score.reshape(n_problems, -1))


@lru_cache(maxsize=64)
def kinds_of_plain_rows(kinds: tuple[int, ...]) -> tuple[int, ...] | None:
    """Return the kinds of sums that `hard_moments` makes at once; None if it lacks one."""
    if kinds == PLAIN_KINDS[:1]:
        return kinds
    return PLAIN_KINDS if set(kinds) <= set(PLAIN_KINDS) else None


@lru_cache(maxsize=64)
def kind_array(kinds: tuple[int, ...]) -> I64:
    """Return kinds of sums as kernels take them."""
    return np.array(kinds, np.int64)


def merge_only_scores(a: F64, b: F64) -> F64:
    """Merge the only scores of the cells in two chunks."""
    none = kernels.moments.NONE
    several = kernels.moments.SEVERAL
    merged = np.where((a == b) | (a == none), b, several)
    return np.where(b == none, a, merged)


# --- weight and hits in one sum -------------------------------------------------------------
# Where every row counts 1, the weight and the hits of a cell are whole numbers. One sum of the kind
# COUNTS holds both, weight + PACK * hits, and needs one pass over the rows instead of two. It is
# exact for fewer than PACK rows.


def pack_counts(kinds: Sequence[int]) -> tuple[int, ...]:
    """Return kinds with COUNTS in place of WEIGHT and HITS, if both are among them."""
    if WEIGHT not in kinds or HITS not in kinds:
        return tuple(kinds)
    return (*(kind for kind in kinds if kind not in (WEIGHT, HITS)), COUNTS)


def unpack_counts(sums: dict[int, F64]) -> dict[int, F64]:
    """Return sums with WEIGHT and HITS in place of COUNTS, if it is among them."""
    if COUNTS not in sums:
        return sums
    counts = sums[COUNTS]
    hits = np.floor(counts * (1 / PACK))
    others = {kind: values for kind, values in sums.items() if kind != COUNTS}
    return {**others, WEIGHT: counts - hits * PACK, HITS: hits}
