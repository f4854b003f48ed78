"""Confidence curves of errors that are norms of gaps."""

from dataclasses import replace

import numpy as np

from fastece.inference.cells import GapCells
from fastece.inference.inversion import NO_ROWS, ConfidenceCurve, Path, invert
from fastece.kernels.types import F64

# Standard errors beyond which a gap counts as real.
CLEAR_SCORE = 2.5


def cell_curve(cells: GapCells) -> ConfidenceCurve:
    """Compute the confidence curve of an error that is a norm of gaps."""
    if not (cells.max_gap > 0).any():
        return NO_ROWS
    sparse, dense = gap_directions(cells)
    curve = curve_of_directions(cells, np.zeros_like(cells.gap), sparse, dense)
    # The value has the bias of the estimator, so errors by chance have it too.
    return curve if cells.bias is None else replace(curve, null=cells.calibrated_values())


def one_sided_curve(cells: GapCells, side: float) -> ConfidenceCurve:
    """Compute the curve of the norm of the gaps above 0 (side 1) or below 0 (-1).

    Gaps that are clearly on the other side are fixed: they add nothing, and noise does not carry
    them over. All others may be noise, as in `cell_curve`. Half of the risk at most is spent on
    errors that are too large, so that both sides together begin at 0 as often as they should.
    """
    z = side * z_scores(cells)
    is_other_side = z < -CLEAR_SCORE
    fixed = np.where(is_other_side, cells.gap, 0.0)
    room = cells.expected if side < 0 else cells.max_gap - cells.expected
    dense = np.where(~is_other_side & (room > 0), side * cells.deviation, 0.0)
    return curve_of_directions(cells, fixed, clear_gaps(cells, z), dense, float(side))


def curve_of_directions(
    cells: GapCells, fixed: F64, sparse: F64 | None, dense: F64, side: float = 0.0
) -> ConfidenceCurve:
    """Compute the curve between paths along sparse and dense gaps (K, B).

    Gaps that are `fixed` are added to both. The gaps that count are those of the side.
    """
    null = cells.errors(fixed[None], side)[0]
    seen = float(cells.error(cells.gap[None], side)[0])
    per_row = cells.per_row[cells.max_gap > 0]
    step = float(per_row.min()) if per_row.size else 0.0
    sparse_path = None if sparse is None else cell_path(cells, sparse, fixed, side)
    dense_path = cell_path(cells, dense, fixed, side)
    share = 0.5 if side else 1.0
    return invert(null, seen, step, sparse_path, dense_path, share)


def cell_path(cells: GapCells, direction: F64, fixed: F64 | float = 0.0, side: float = 0.0) -> Path:
    """Make the path of gaps ``fixed + m direction`` (K, B), clipped to possible ones."""
    low = -cells.expected
    high = cells.max_gap - cells.expected

    def gaps(m: F64) -> F64:
        return np.clip(fixed + m[:, None, None] * direction, low, high)

    return Path(lambda m: cells.error(gaps(m), side), lambda m: cells.errors(gaps(m), side))


def gap_directions(cells: GapCells) -> tuple[F64 | None, F64]:
    """Return the directions (K, B) of the sparse and of the dense path.

    The first is None where there is no gap at all. On the second, a gap has the sign for which
    there is room: scores of 1 can only be too high.
    """
    sd = cells.deviation
    up = cells.max_gap - cells.expected
    down = cells.expected
    goes_down = np.where(cells.gap < 0, (down >= sd) | (down >= up), (up < sd) & (up < down))
    return clear_gaps(cells, np.abs(z_scores(cells))), np.where(goes_down, -sd, sd)


def clear_gaps(cells: GapCells, z: F64) -> F64 | None:
    """Keep the gaps (K, B) with clear z-scores, or the clearest; None without any.

    Gaps are clear too if a calibrated model would not show them, such as one outcome 0 at a score
    of 1.
    """
    is_clear = z >= min(CLEAR_SCORE, z.max(initial=0.0))
    is_clear |= cells.gap**2 > CLEAR_SCORE**2 * cells.variance
    is_clear &= z > 0
    return np.where(is_clear, cells.gap, 0.0) if is_clear.any() else None


def z_scores(cells: GapCells) -> F64:
    """Divide gaps (K, B) by their standard errors; 0 where the error is 0."""
    sd = cells.deviation
    return np.divide(cells.gap, sd, out=np.zeros_like(sd), where=sd > 0)
