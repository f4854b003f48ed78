"""Sums over bins of draws much smaller than the data: of the drawn rows alone.

Two ways, for what a drawn row costs: with bins that do not depend on the draw, all that it brings
lies in one record, found once for all draws (a third of the time of looking it up again); with
bins of equal weight, each draw is a small sample of its own.
"""

import numpy as np

from fastece.kernels._jit import jit
from fastece.kernels.binning import (
    ANY,
    LANES,
    Grid,
    distinct_centres,
    moment,
    place,
    scatter,
    scatter_shares,
)
from fastece.kernels.moments import lane_total
from fastece.kernels.quantiles import quantile_edges, total_weight
from fastece.kernels.shared import zero
from fastece.typing import F64, I32, I64, U8


@jit
def drawn_sums(records: F64, step: int, rows: I32, out: F64) -> None:
    """Sum up drawn rows in the cells of a grid that does not depend on the draw.

    Sums are in `out` (Q, cells, R), of the `rows` (R, size) of each replicate; `step` leads from
    the lower to the upper cell.

    A row's record, (n, 1 + Q) or with convex mapping (n, 1 + 2 Q), is its cell and what it adds
    there to each sum, and then in the upper cell. Next to each other, so that a row costs one visit
    to a line of memory that is not in the cache.
    """
    moments, cells, size = out.shape[0], out.shape[1], rows.shape[1]
    # Where many rows in succession are in one cell, they need not wait for one another.
    lanes = LANES // 2 if cells <= size else 1
    width, mask, upper = np.uint64(lanes), lanes - 1, np.uint64(step * lanes)
    convex = records.shape[1] > 1 + moments
    sums = np.empty(cells * lanes)
    for q in range(moments):
        for r in range(rows.shape[0]):
            zero(sums)
            row = rows[r]
            for i in range(size):
                record = records[np.uint64(row[i])]
                at = np.uint64(record[0]) * width + np.uint64(i & mask)
                sums[at] += record[1 + q]
                if convex:
                    sums[at + upper] += record[1 + q + moments]
            for b in range(cells):
                out[q, b, r] = lane_total(sums, b, lanes)


@jit
def drawn_equal_mass_sums(
    s: F64, y: U8, v: F64, threshold: float, low: float, high: float, right: bool,
    convex: bool, kinds: I64, rows: I32, total: F64, out: F64,
) -> None:  # fmt: skip
    """Sum up drawn rows in bins of equal weight, each replicate in its own.

    Sums of `kinds` (Q,), some of `kernels.MOMENTS`, are in `out` (Q, B, R), and the weights of the
    draws are in `total` (R,).

    Scores are in increasing order, as are the `rows` (R, size) of each replicate. Scores up to the
    threshold do not exist. With an empty `v`, every row counts 1.
    """
    size, n_bins = rows.shape[1], out.shape[1]
    # Rows of one bin follow one another: with lanes they need not wait for one another.
    lanes = LANES if n_bins <= size else 1
    edges, cuts = np.empty(n_bins + 1), np.empty(n_bins - 1)
    centres, bins = np.empty(n_bins), np.empty(n_bins, np.int32)
    sums, nothing = np.empty(n_bins * lanes), np.empty(0)
    score_line, inside_line, weight_line = np.empty(size), np.empty(size), np.empty(size)
    share_line, term_line = np.empty(size), np.empty(size)
    hit_line, cell_line = np.empty(size, np.uint8), np.empty(size, np.int32)
    for b in range(n_bins):
        bins[b] = b
    for r in range(rows.shape[0]):
        skip = 0
        while skip < size and not s[np.uint64(rows[r, skip])] > threshold:
            skip += 1
        m = size - skip
        for i in range(m):
            row = np.uint64(rows[r, skip + i])
            score_line[i], hit_line[i] = s[row], y[row]
            weight_line[i] = v[row] if v.size > 0 else 1.0
        score, u, weight = score_line[:m], inside_line[:m], weight_line[: m if v.size > 0 else 0]
        hit, cell, share, x = hit_line[:m], cell_line[:m], share_line[:m], term_line[:m]
        for i in range(m):
            x_i = score[i] if score[i] > low else low
            u[i] = x_i if x_i < high else high
        total[r] = total_weight(weight) if v.size > 0 else m
        quantile_edges(u, weight, low, high, right, edges, cuts)
        count = distinct_centres(edges, centres, bins) if convex else n_bins
        # Moved into the range, scores need no cuts beyond it; convex shares do not look at either.
        knots = centres[:count] if convex else cuts
        grid = Grid(low, high, n_bins, ANY, knots, right & (not convex), convex)
        place(score if convex else u, grid, cell, x, share)
        for q in range(out.shape[0]):
            moment(kinds[q], score, hit, weight, threshold, x)
            zero(sums)
            if convex:
                scatter_shares(cell, x, share, 1 if count > 1 else 0, lanes, sums)
            else:
                scatter(cell, x, lanes, sums, nothing)
            if count < n_bins:
                for b in range(n_bins):
                    out[q, b, r] = 0.0
            for b in range(count):
                out[q, bins[b], r] = lane_total(sums, b, lanes)
