"""Bounds of the error that counting scores in cells can make, in plain loops.

Nothing of fastece is imported. Cell j of N has the scores in ((j - 1) / N, j / N], the first one
0 too.
"""

from collections import defaultdict
from math import fsum

N_CELLS = 64800


def cell_of(s, n_cells=N_CELLS):
    """The j of the cell of a score: the first j of 1, 2, ... with s <= j / N as floats."""
    j = max(int(s * n_cells) - 2, 1)
    while s > j / n_cells:
        j += 1
    return j


def shares_of_cells(scores, weights=None, n_cells=N_CELLS):
    """j -> share of the total weight in cell j; cells without weight count 0."""
    weights = [1.0] * len(scores) if weights is None else weights
    mass = defaultdict(list)
    for s, w in zip(scores, weights, strict=True):
        mass[cell_of(s, n_cells)].append(w)
    total = fsum(weights)
    return defaultdict(float, {j: fsum(mass[j]) / total for j in mass})


def rank_errors(scores, edges, weights=None):
    """|weight of the scores <= e_j - j W / B| / W of each inner edge."""
    weights = [1.0] * len(scores) if weights is None else weights
    total = fsum(weights)
    n_bins = len(edges) - 1
    errors = []
    for j in range(1, n_bins):
        below = fsum(w for s, w in zip(scores, weights, strict=True) if s <= edges[j])
        errors.append(abs(below / total - j / n_bins))
    return errors


def moved_by_uniform_edges(scores, n_bins, weights=None, n_cells=N_CELLS):
    """How much the error of hard uniform bins, norm 1, can change if the rows in the cells of the
    edges go to the other side: a row of share w moves two gaps by w at most."""
    shares = shares_of_cells(scores, weights, n_cells)
    return 2 * fsum(shares[cell_of(j / n_bins, n_cells)] for j in range(1, n_bins))
