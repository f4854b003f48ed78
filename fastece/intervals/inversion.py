"""Confidence intervals by test inversion: the true errors that fit the data.

An error is larger than its truth, because noise makes gaps, so an interval around it misses. But
what noise does to a model with *given* gaps is known, and a test can ask of each true error whether
the error that was seen would be a likely one. Truths of one size differ in how much noise they let
in: most where a few gaps are large and the others are noise alone, least where every gap is as
large as its noise. So hypotheses lie on two paths, which begin at a calibrated model: the lower end
of the interval is where the first model with few large gaps is not refused, the upper end where the
last one with even gaps is not.

At 0 only errors that are too large speak against a hypothesis; further on those that are too small
do so too. The part of the risk that is spent on them grows with the power of the test of
calibration, up to a half: so an interval begins at 0 exactly where that test does not reject.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from fastece.intervals.cells import Cells
from fastece.resampling.intervals import ConfidenceInterval
from fastece.typing import F64

# Standard errors beyond which a gap counts as real.
CLEAR = 2.5
# The level of the test whose power decides how risk is shared.
LEVEL = 0.05
# An error that is less than this quantile of a calibrated model's is luck, and is taken as that: no
# statistic can tell that there is less error than its noise hides.
LUCK = 0.1
# Errors closer than this are equal: one is rounded otherwise than the other.
ROUNDING = 1e-12
NODES = 24
HALVINGS, DOUBLINGS, FARTHEST = 10, 60, 1e12
# A lower end above 0 is at least this part of the first truth that fits.
TINY = 1e-6
# Of hypotheses that no error is too small for.
MOST = 2.0


class Path(NamedTuple):
    """Hypotheses ``m >= 0``, calibrated at 0, on which both grow: for some of them (M,) the true
    errors `sizes` (M,), and the errors (M, R) of replicates."""

    sizes: Callable[[F64], F64]
    errors: Callable[[F64], F64]
    nodes: int = NODES


class Nodes(NamedTuple):
    """Some hypotheses of a path (M,): true error, shares of replicates whose errors are at least
    and at most the one that was seen, and the part of risk that is spent on small errors."""

    size: F64
    above: F64
    below: F64
    small: F64


@dataclass(frozen=True, eq=False)
class ConfidenceCurve:
    """The ends of intervals of all levels, and the p-value of there being no error.

    Attributes
    ----------
    p_value : float
    low : (2, M) float64 array
        True errors, increasing, and the largest p-value of those up to each.
    high : (2, M) float64 array
        True errors, increasing, and the largest p-value of those from each on.
    centre : float
        The true error for which what was seen is the median.
    replicates : int
        How many errors of a calibrated model it is made from.
    """

    p_value: float
    low: F64
    high: F64
    centre: float
    replicates: int

    def interval(self, level: float) -> ConfidenceInterval:
        """The true errors with p-values of more than alpha, 1 - `level`; nan if there was no
        number."""
        if np.isnan(self.p_value):
            return ConfidenceInterval(np.nan, np.nan)
        alpha = round(1 - level, 12)  # 1 - 0.9 is less than 0.1, which p-values may be
        high = last_above(self.high, alpha)
        if self.p_value > alpha:
            return ConfidenceInterval(0.0, high)
        low = min(first_above(self.low, alpha), last_above(self.high, 1.0))
        return ConfidenceInterval(low, max(low, high))


# Of what is no number, and of an error that no row says anything of, such as that of rows above a
# threshold that there are none of: from 0 to 1.
NO_CURVE = ConfidenceCurve(np.nan, np.full((2, 1), np.nan), np.full((2, 1), np.nan), np.nan, 0)
NO_ROWS = ConfidenceCurve(1.0, np.array([[0.0], [1.0]]), np.ones((2, 1)), 0.0, 0)


def between(x: F64, p: F64, inside: int, outside: int, alpha: float) -> float:
    """Where, from a node with a larger p-value to one with a smaller, it is alpha: p-values of a
    tail fall like those of a normal law, so their logarithm is taken."""
    over, under = np.log(p[inside] / alpha), np.log(alpha / p[outside])
    part = over / (over + under) if over + under > 0 else 0.0
    return float(x[inside] + part * (x[outside] - x[inside]))


def first_above(curve: F64, alpha: float) -> float:
    """The first true error whose p-value is more than alpha, p-values increasing."""
    x, p = curve
    j = int(np.searchsorted(p, alpha, "right"))
    if j in (0, p.size):
        return float(x[min(j, p.size - 1)])
    return max(between(x, p, j, j - 1, alpha), TINY * float(x[j]))


def last_above(curve: F64, alpha: float) -> float:
    """The last true error whose p-value is more than alpha, p-values decreasing."""
    x, p = curve
    j = int(np.searchsorted(-p, -alpha, "left"))
    if j in (0, p.size):
        return float(x[max(j - 1, 0)])
    return between(x, p, j - 1, j, alpha)


# --- from paths to curves -------------------------------------------------------------------


def nodes_of(path: Path, seen: float, lucky: float, critical: float) -> Nodes:
    """Hypotheses from the last one whose replicates never reach the error that was `seen` to the
    first whose replicates all exceed it, or exceed `lucky` if that is larger."""

    def is_small(m: float) -> bool:
        return not (path.errors(np.array([m])) >= seen - ROUNDING).any()

    def is_large(m: float) -> bool:
        return not (path.errors(np.array([m])) <= lucky + ROUNDING).any()

    end = 1.0
    for _ in range(DOUBLINGS):
        size, next_size = path.sizes(np.array([end, 2 * end]))
        if next_size <= size or is_large(end):
            break
        end *= 2
    start, stop = 0.0, end
    if is_small(0.0):
        for _ in range(HALVINGS):
            middle = (start + stop) / 2
            start, stop = (middle, stop) if is_small(middle) else (start, middle)
    scales = np.linspace(start, end, path.nodes)
    if start > 0:
        scales = np.concatenate([[0.0], scales])
    drawn = path.errors(scales)
    total = drawn.shape[1] + 1
    above = (1 + (drawn >= seen - ROUNDING).sum(1)) / total
    below = (1 + (drawn <= lucky + ROUNDING).sum(1)) / total
    power = (drawn > critical + ROUNDING).mean(1)
    small = np.clip((power - LEVEL) / (1 - LEVEL), 0.0, 1.0) / 2
    return Nodes(path.sizes(scales), above, below, small)


def median_size(nodes: Nodes) -> float:
    """The true error at which half of the replicates are above the one that was seen."""
    return float(np.interp(0.5, np.maximum.accumulate(nodes.above), nodes.size))


def invert(null: F64, seen: float, least: float, few: Path | None, even: Path) -> ConfidenceCurve:
    """The confidence curve of an error.

    Parameters
    ----------
    null : (R,) float64 array
        Errors of a calibrated model.
    seen : float
        The error.
    least : float
        The smallest difference that a single row makes: no less is taken as luck.
    few : Path or None
        Truths with few large gaps; None where there is nothing to start from.
    even : Path
        Truths with even gaps.
    """
    if np.isnan(seen) or np.isnan(null).any():
        return NO_CURVE
    p_value = float((1 + (null >= seen - ROUNDING).sum()) / (null.size + 1))
    ordered = np.sort(null)
    critical = ordered[min(null.size, int(np.ceil((1 - LEVEL) * (null.size + 1)))) - 1]
    lucky = max(seen, float(np.quantile(null, LUCK)), least / 2)
    upper = nodes_of(even, seen, lucky, critical)
    lower = upper if few is None else nodes_of(few, seen, lucky, critical)
    p = lower.above / (1 - lower.small)
    p[0] = p_value
    low = np.stack([lower.size, np.maximum.accumulate(p)])
    p = np.minimum(MOST, upper.below / np.maximum(upper.small, 1e-300))
    # Of errors beyond the last hypothesis, replicates know no more than that p is not larger.
    size = np.append(upper.size, even.sizes(np.array([FARTHEST])))
    high = np.stack([size, np.maximum.accumulate(np.append(p, p[-1])[::-1])[::-1]])
    curve = ConfidenceCurve(p_value, low, high, 0.0, null.size)
    if p_value > 0.5:
        return curve
    centre = (median_size(lower) + median_size(upper)) / 2
    return replace(curve, centre=float(np.clip(centre, *curve.interval(0.5))))


# --- cells ----------------------------------------------------------------------------------


def cell_path(cells: Cells, base: F64, held: F64 | float = 0.0) -> Path:
    """Gaps that are multiples of these beside gaps that are `held`, as far as they are possible."""
    most = cells.most
    low, high = (-most, most) if cells.side == 0 else (-cells.hits, most - cells.hits)

    def gaps(m: F64) -> F64:
        return np.clip(held + m[:, None, None] * base, low, high)

    return Path(lambda m: cells.error(gaps(m)), lambda m: cells.errors(gaps(m)))


def directions(cells: Cells) -> tuple[F64 | None, F64]:
    """Gaps (K, B) of models with few large gaps, those that are clear, and of models whose gaps are
    all as large beside their noise. None where there are no gaps at all."""
    gap, sd = cells.gap, cells.deviation
    z = np.divide(np.abs(gap), sd, out=np.zeros_like(gap), where=sd > 0)
    # Where no gap is clear the clearest is taken to be real.
    is_clear = (z > 0) & (z >= min(CLEAR, z.max(initial=0.0)))
    # A gap goes where there is room: scores of 1 can only be too high.
    up, down = cells.most - cells.hits, cells.hits
    is_down = np.where(gap < 0, (down >= sd) | (down >= up), (up < sd) & (up < down))
    return np.where(is_clear, gap, 0.0) if is_clear.any() else None, np.where(is_down, -sd, sd)


def cell_curve(cells: Cells) -> ConfidenceCurve:
    """The confidence curve of an error that is a norm of gaps."""
    if not (cells.most > 0).any():
        return NO_ROWS
    few, even = directions(cells)
    return curve_between(cells, np.zeros_like(cells.gap), few, even)


def side_curve(cells: Cells, side: float) -> ConfidenceCurve:
    """The confidence curve of the norm of the gaps on one side of 0, above for 1 and below for -1.

    Gaps that are clearly on the other side are taken as they are: they add nothing, and noise does
    not carry them over. All others may be noise, as in `cell_curve`.
    """
    gap, sd = cells.gap, cells.deviation
    z = side * np.divide(gap, sd, out=np.zeros_like(gap), where=sd > 0)
    # Where no gap is clear the clearest is taken to be real.
    is_clear = (z > 0) & (z >= min(CLEAR, z.max(initial=0.0)))
    held = np.where(z < -CLEAR, gap, 0.0)
    room = cells.hits if side < 0 else cells.most - cells.hits
    even = np.where((z >= -CLEAR) & (room > 0), side * sd, 0.0)
    few = np.where(is_clear, gap, 0.0) if is_clear.any() else None
    return curve_between(replace(cells, side=side), held, few, even)


def curve_between(cells: Cells, held: F64, few: F64 | None, even: F64) -> ConfidenceCurve:
    """The confidence curve between a path of few large gaps and one of even gaps (K, B), which are
    added to those that are `held`."""
    null, seen = cells.errors(held[None])[0], float(cells.error(cells.gap[None])[0])
    rows = cells.one_row[cells.most > 0]
    return invert(
        null, seen, float(rows.min()) if rows.size else 0.0,
        None if few is None else cell_path(cells, few, held), cell_path(cells, even, held),
    )  # fmt: skip
