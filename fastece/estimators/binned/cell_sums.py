"""Sums over rows in the cells of one layout: the loop over chunks, on threads.

Sums of arrays in bins of given edges come from `bin_sums`, unless the rows are few. Sums are named
by their kind, as in `kernels.MOMENTS`: with weights w, outcomes y and scores s, GAP is the sum of
w (y - s), WEIGHT of w, SCORE of w s, HITS of w y, and SQUARE of w**2.
"""

import math
from collections.abc import Sequence
from functools import lru_cache, partial, reduce

import numpy as np

from fastece import kernels
from fastece.data.samples import ALL
from fastece.data.table import RowTable
from fastece.data.threads import Map
from fastece.estimators.binned.layouts import Layout
from fastece.kernels import CHUNK_SCORES, COUNTS, HITS, MOMENTS, PACK, WEIGHT
from fastece.kernels.types import F64, I64

# Chunks are added in order, so any number of threads gives the same bits. A chunk clears and
# reduces every cell once, so it should have many more rows than cells.
CHUNK_ROWS_PER_CELL = 64
# It takes 2 us to unpack counts, and about as long to pass over this many rows a second time.
MIN_PACKED_ROWS = 2**12
# The sums of plain rows that one kernel finds at once: the first of them, or all.
FIRST_KIND = MOMENTS[:1]
FIRST_KINDS = MOMENTS[:4]
PLAIN_KINDS = frozenset(FIRST_KINDS)


def bin_sums(
    problems: RowTable, layout: Layout, threshold: float, kinds: Sequence[int], run: Map = map
) -> dict[int, F64]:
    """Add up rows with a score above the threshold in bins: kind -> (K, B) sums.

    `run` is `map`, or the `map` of a pool of threads. There may be more kinds than asked for.
    """
    kinds = tuple(kinds)
    is_plain = False
    if problems.v is None and not layout.grid.convex:
        if layout.is_plain and problems.n_problems == 1 and threshold == -math.inf:
            is_plain = PLAIN_KINDS.issuperset(kinds)
        if is_plain:
            kinds = FIRST_KIND if kinds == FIRST_KIND else FIRST_KINDS
        elif MIN_PACKED_ROWS <= problems.n < PACK:
            kinds = pack_counts(kinds)
    chunk_rows = max(CHUNK_SCORES // problems.n_problems, CHUNK_ROWS_PER_CELL * layout.cells)
    if problems.n <= chunk_rows:
        sums = sum_chunk(problems, layout, threshold, kinds, is_plain, ALL)
    else:
        of_chunk = partial(sum_chunk, problems, layout, threshold, kinds, is_plain)
        starts = range(0, problems.n, chunk_rows)
        sums = reduce(np.add, run(of_chunk, (slice(i, i + chunk_rows) for i in starts)))
    sums_by_kind = unpack_counts(name_sums(kinds, sums))
    if layout.cells_are_bins:
        return sums_by_kind
    return {kind: layout.spread(sums_of_kind) for kind, sums_of_kind in sums_by_kind.items()}


def sum_chunk(
    problems: RowTable, layout: Layout, threshold: float, kinds: tuple[int, ...], is_plain: bool,
    chunk: slice,
) -> F64:  # fmt: skip
    """Add up a chunk of the rows in cells: sums (Q, K, cells) of Q kinds.

    The rest is as for `bin_sums`; `is_plain` says that `hard_moments` takes the rows.
    """
    prob, label = problems.read(chunk)
    sums = np.empty((len(kinds), problems.n_problems, layout.cells))
    if is_plain:
        kernels.moments.hard_moments(prob, label, layout.grid_fields, sums)
        return sums
    weight = kernels.NO_WEIGHTS if problems.v is None else problems.v[chunk]
    kernels.moments.cell_moments(
        prob, label, weight, layout.grid_fields, threshold, kind_array(kinds), sums
    )
    return sums


def name_sums(kinds: Sequence[int], sums: F64) -> dict[int, F64]:
    """Return a dictionary of sums (Q, ...) by their kind."""
    # An iteration over the array would take three times the time.
    return {kind: sums[q] for q, kind in enumerate(kinds)}


@lru_cache(maxsize=64)
def kind_array(kinds: tuple[int, ...]) -> I64:
    """Return kinds of sums as kernels take them."""
    return np.array(kinds, np.int64)


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
