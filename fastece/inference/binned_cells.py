"""The cells of binned estimators: bins."""

import math

import numpy as np
from numpy.typing import NDArray

from fastece.estimators.binned import Binned, Bins
from fastece.inference.cells import CellSums, GapCells, limit_replicates, make_cells
from fastece.kernels import EMPTY, GAP, SCORE, WEIGHT
from fastece.kernels.types import F64
from fastece.resampling.call import Call
from fastece.resampling.outcome_sums import NullModel, make_outcome_sums, rows_or_cells


def binned_cells(call: Call, binned: Binned, key: int = 0) -> GapCells:
    """Compute the cells of a binned estimator, with replicates drawn by a key."""
    return cells_of_bins(call, binned, key, call.n_resamples)


def noiseless_cells(call: Call, binned: Binned) -> GapCells:
    """Compute the cells of a binned estimator without replicates."""
    return cells_of_bins(call, binned, 0, 0)


def cells_of_bins(call: Call, binned: Binned, key: int, max_replicates: int) -> GapCells:
    """Compute the cells of a binned estimator, with at most some replicates."""
    data = rows_or_cells(call, "the interval")
    bins = binned.bins(data, kinds=(GAP, WEIGHT, SCORE))
    total = np.where(bins.total > 0, bins.total, 1.0)
    n_replicates = min(max_replicates, limit_replicates(call, bins.gap.size))
    model = NullModel(call, data, make_outcome_sums(binned, data, bins.gap.shape[1]), key)
    variance, squares, all_squares = model.noise()
    null_gap = model.draw(0, n_replicates) - bins.score[:, :, None]
    squares_of_problem = np.where(all_squares[:, 0] > 0, all_squares[:, 0], 1.0)
    total_of_bin = total[:, None]
    sums = CellSums(
        gap=bins.gap / total_of_bin,
        null=null_gap / total_of_bin[:, :, None],
        variance=variance / total_of_bin**2,
        squares=squares / total_of_bin**2,
        share=bins.weight / total_of_bin,
        score=bins.score / total_of_bin,
        group=np.arange(bins.gap.size).reshape(bins.gap.shape),
        n=total**2 / squares_of_problem,
    )
    return make_cells(call, sums, bin_units(binned, bins, sums.share), binned.norm, key)


def bin_units(binned: Binned, bins: Bins, share: F64) -> F64:
    """Return the factors (K, B) of gaps that make `Binned.errors` their plain norm.

    With the norm p, a gap ``D_b`` and the share ``a_b`` of its bin, the error to the power of p is
    ``sum_b a_b |D_b / a_b|**p``, so the factor is ``a_b**(1 / p - 1)``; bins of equal weight among
    B have ``a_b**-1 B**(-1 / p)``, and the largest gap has ``a_b**-1``.
    """
    norm = binned.norm
    has_equal_weights = binned.bin_weights == "equal"
    if norm == 1 and not has_equal_weights:
        return np.ones_like(share)
    if math.isinf(norm):
        counts = (share > EMPTY) & (bins.weight >= binned.min_count / bins.unit)
        return power_where(share, -1.0, counts)
    if has_equal_weights:
        n_bins = share.shape[1]
        return np.asarray(power_where(share, -1.0, share > EMPTY) * n_bins ** (-1 / norm))
    return power_where(share, 1 / norm - 1, share > 0.0)


def power_where(x: F64, power: float, counts: NDArray[np.bool_]) -> F64:
    """Raise numbers to a power where they count; 0 elsewhere."""
    return np.asarray(np.power(x, power, out=np.zeros_like(x), where=counts))
