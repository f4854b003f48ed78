"""Gaps averaged over nearby scores: smooth error and maximum mean error."""

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastece import kernels
from fastece.data.errors import InputError
from fastece.data.samples import Sample, scale_weights
from fastece.data.table import RowTable
from fastece.data.threads import Map
from fastece.estimators.base import Parameters, Plan, check_width
from fastece.estimators.density.even import MAX_CELLS
from fastece.estimators.draws import Counts, Draws
from fastece.kernels.types import F64

# Cells of the grid in a standard deviation of the kernel, for an integral right to 4e-4: with c of
# them it is off by 0.1 / c^2.
CELLS = 16
# A value that equals this is right to 4e-6, 4e-4 of it. Smaller values may be off by as much.
COARSE = 0.01
# Cells of the first grid on which a scale is looked for, how many times finer the next is, and
# cells of the last.
FIRST_CELLS = 1024
REFINEMENT = 2
LAST_CELLS = 2**17
# Rows are spread to one of these, and sums of fewer cosines are taken from it.
SPREAD_CELLS = (4096, 65536, LAST_CELLS, 2**20, MAX_CELLS)
# Cells of all replicates that are worked on at once: 34 MB.
BATCH_CELLS = 2**22
# Rounding leaves less than this of gaps that cancel wherever they are.
NOTHING = 1e-14
# How close to its value a scale is, as a part of it, before the last step; with that, to 1e-14.
PRECISION = 1e-8
MAX_STEPS = 100


@dataclass(frozen=True)
class GapPlan(Plan):
    """Prepared data of `SmoothECE` for one sample."""

    sample: Sample
    size: int

    @cached_property
    def gap(self) -> F64:
        """Gap of each row, times its weight."""
        return self.sample.gaps

    def spectrum(self, c: NDArray[Any], count: int) -> F64:
        """Compute at least `count` cosines (W, ...) of mean gaps, for counts (n, W)."""
        from scipy.fftpack import dct

        cells = np.empty((c.shape[1], spread_size(count)))
        kernels.density.spread_gaps(c, self.sample.s, self.gap, cells)
        total = float(self.size) if self.sample.v is None else self.sample.v @ c
        factor = deconvolution(cells.shape[1]) / np.reshape(total, (-1, 1))
        return np.asarray(dct(cells, axis=1, overwrite_x=True) * factor)


@dataclass(frozen=True)
class SmoothECE(Parameters):
    """Smooth calibration error: gaps, averaged over nearby scores by a kernel.

    ``int_0^1 |sum_i w_i (y_i - s_i) K_h(t, s_i)| dt / W`` with the Gaussian kernel K_h of standard
    deviation h, reflected at 0 and 1. The wider the kernel, the smaller the value; by default h is
    the scale at which the value equals h, so that nothing is to be chosen.

    Parameters
    ----------
    scale : "auto" or float
        h, in units of the score.

    Raises
    ------
    ValueError, TypeError
        For a scale that is not positive and finite, or needs a grid of more than 2**22 cells.

    Notes
    -----
    Blasiok and Nakkiran (2023, "Smooth ECE: principled reliability diagrams via kernel smoothing",
    definition 3 and algorithm 1). The value is within ``1e-3 value + 1e-5`` of the integral; h
    is at least 8e-6. Their package relplot cuts the kernel off at a distance of 1/2, finds h to
    0.001, and counts scores of exactly 0 and 1 half; here it is neither cut off nor rounded, and
    every row counts in full.

    Reflected at both ends, gaps are a sum of cosines, of which a Gaussian makes each smaller by a
    factor. Smoothing twice is smoothing more, so a wider kernel never raises the value, and there
    is one scale that the value equals.

    Examples
    --------
    >>> from fastece import SmoothECE, ece
    >>> print(f"{ece([0, 1, 0, 1], [0.1, 0.4, 0.6, 0.9], estimator=SmoothECE()):.5f}")
    0.14228
    >>> print(SmoothECE(scale=0.05))
    SmoothECE(scale=0.05)
    """

    scale: float | Literal["auto"] = "auto"

    needs_sorted = False
    native = (Counts,)
    lowest = 0.0
    largest = 1.0
    checks: ClassVar = {"scale": partial(check_width, word="auto")}

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.scale != "auto" and CELLS / self.scale > MAX_CELLS:
            rule = f"needs a grid of more than the {MAX_CELLS} cells that fit into memory"
            raise InputError("scale", rule, value=self.scale)

    def prepare(self, sample: Sample, size: int) -> GapPlan:
        """Prepare a sample for draws of `size` rows."""
        return GapPlan(scale_weights(sample)[0], size)

    def evaluate(self, plan: GapPlan, c: NDArray[Any]) -> float:
        """Return the value when row i of the sample counts ``c[i]`` times."""
        return float(self.errors(plan, np.ascontiguousarray(c, np.float64)[:, None])[0])

    def values(self, plan: GapPlan, draws: Draws) -> F64:
        """Compute the value of each replicate, of counts block by block."""
        if isinstance(draws, Counts):
            blocks = draws.blocks(plan.sample.n)
            return np.concatenate([self.errors(plan, block) for block in blocks])
        return super().values(plan, draws)

    def errors(self, plan: GapPlan, c: NDArray[Any]) -> F64:
        """Compute the value (W,) of each replicate with counts (n, W)."""
        if isinstance(self.scale, str):
            return errors_at_own_scale(plan, c)
        from scipy.fft import next_fast_len

        count = max(FIRST_CELLS, math.ceil(CELLS / self.scale))
        count = min(next_fast_len(count, real=True), MAX_CELLS)
        batch = max(1, BATCH_CELLS // spread_size(count))
        out = np.empty(c.shape[1])
        for start in range(0, out.size, batch):
            counts = np.ascontiguousarray(c[:, start : start + batch])
            spectrum = plan.spectrum(counts, count)[:, :count]
            out[start : start + batch] = [smooth_error(line, self.scale) for line in spectrum]
        return out


def errors_at_own_scale(plan: GapPlan, c: NDArray[Any]) -> F64:
    """Compute the value (W,) at the scale that equals it, for counts (n, W)."""
    errors = np.full(c.shape[1], math.nan)
    first_count = FIRST_CELLS
    for cells in SPREAD_CELLS[: SPREAD_CELLS.index(LAST_CELLS) + 1]:
        unsolved = np.flatnonzero(np.isnan(errors))
        if unsolved.size:
            spectrum = plan.spectrum(np.ascontiguousarray(c[:, unsolved]), cells)
            errors[unsolved] = [error_at_own_scale(cosines, first_count) for cosines in spectrum]
        first_count = REFINEMENT * cells
    return errors


def error_at_own_scale(cosines: F64, count: int) -> float:
    """Compute the value at the scale that equals it; nan if that needs more cosines."""
    while count <= cosines.size:
        # A value that equals its scale h has CELLS / sqrt(1 + COARSE / h) cells, for an error of
        # 4e-4 h + 4e-6, but its scale is one cell at least.
        min_scale = max((math.hypot(COARSE, 2 * CELLS / count) - COARSE) / 2, 1 / count)
        value = smooth_error(cosines[:count], min_scale)
        if value > min_scale:
            return solve_scale(cosines[:count], min_scale, value)
        if count == LAST_CELLS or np.abs(cosines).max() <= NOTHING:
            return value
        count *= REFINEMENT
    return math.nan


def spread_size(count: int) -> int:
    """Return the number of cells to spread rows to, for at least `count` cosines."""
    return next(cells for cells in SPREAD_CELLS if cells >= count)


@lru_cache(maxsize=len(SPREAD_CELLS))
def deconvolution(count: int) -> F64:
    """Compute factors (count,) that undo the smoothing of cosines by linear shares."""
    return np.asarray(np.sinc(np.arange(count) / (2 * count)) ** -2)


@lru_cache(maxsize=16)
def curvature(count: int) -> F64:
    """Compute the log factors (count,) of cosines under a standard Gaussian."""
    return np.asarray(-0.5 * (math.pi * np.arange(count)) ** 2)


def smooth_error(cosines: F64, h: float) -> float:
    """Integrate the size of gaps, smoothed at a scale, from their cosines (G,)."""
    from scipy.fftpack import idct  # scipy.fft's takes twice the time

    count = cosines.size
    n_kept = min(count, 2 + int(3 / h))  # less than 1e-19 is left of later cosines
    damped = np.exp(h * h * curvature(count)[:n_kept]) * cosines[:n_kept]
    gap = idct(damped, n=count, overwrite_x=True)
    return float(kernels.density.mean_size(gap)) / (2 * count)


def solve_scale(cosines: F64, low: float, value: float) -> float:
    """Find the scale that the error equals.

    It lies between `low`, at which the error is a larger `value`, and that value, since no error
    grows with the scale. Secants of logarithms find it, or bisection where they leave the interval.
    """
    lower = math.log(low)
    upper = math.log(value)
    log_scale = lower
    excess = upper - lower  # of the log error over the log scale
    step = excess / 1.5
    for _ in range(MAX_STEPS):
        log_scale += step
        previous_excess = excess
        value = smooth_error(cosines, math.exp(log_scale))
        excess = math.log(max(value, 5e-324)) - log_scale
        if excess > 0:
            lower = log_scale
        else:
            upper = log_scale
        step *= excess / (previous_excess - excess)
        if abs(excess) <= PRECISION:
            break
        if not lower <= log_scale + step <= upper:
            step = (lower + upper) / 2 - log_scale
    return math.exp(log_scale + step)


class PairsPlan(NamedTuple):
    """Prepared data of `MMCE` for one sorted sample and one size of draws.

    Attributes
    ----------
    size : int
        Number of rows of a draw.
    gap : (n,) float64 array
        Gap of each row, times its weight.
    weight : (n,) or (0,) float64 array
        Weights; empty where every row counts 1.
    decay : (n,) float64 array
        Factor by which the kernel of a row has decayed at the next row.
    loss : (n,) float64 array
        Part of the square of the kernel that is lost there.
    """

    size: int
    gap: F64
    weight: F64
    decay: F64
    loss: F64

    def values(self, c: NDArray[Any]) -> F64:
        """Compute the errors (G W,) of replicates with counts (G, n, W)."""
        out = np.empty((c.shape[0], c.shape[2]))
        total = np.full_like(out, self.size)
        kernels.vectors.pair_sums(c, self.gap, self.weight, self.decay, self.loss, out, total)
        return np.asarray(np.sqrt(out.ravel()) / total.ravel())


@dataclass(frozen=True)
class MMCE(Parameters):
    """Maximum mean calibration error.

    How large the mean gap is that a smooth function of the score finds.

    ``sqrt(sum_ij w_i w_j (y_i - s_i) (y_j - s_j) exp(-|s_i - s_j| / width)) / W``, over all pairs
    of rows, each with itself too. It is computed in linear time, once rows are sorted.

    Parameters
    ----------
    width : float
        Width of the kernel in units of the score; positive.

    Raises
    ------
    ValueError, TypeError
        For a width that is not positive and finite.

    Notes
    -----
    Kumar, Sarawagi and Jain (2018, "Trainable calibration measures for neural networks from kernel
    mean embeddings", eq. 3 and section 3, with their Laplacian kernel of width 0.4).

    Since the kernel decays by one factor from each score to the next, the kernels of all rows up to
    one add up to ``T_i = r_i + e_i T_(i-1)``, with ``r_i = w_i (y_i - s_i)`` and the factor e_i,
    and the sum over all pairs is ``sum_i T_i**2 (1 - e_(i+1)**2)``, which is never negative.

    Examples
    --------
    >>> from fastece import MMCE, ece
    >>> round(ece([0, 1, 1, 1], [0.1, 0.4, 0.6, 0.9], estimator=MMCE()), 6)
    0.226522
    >>> print(MMCE())
    MMCE(width=0.4)
    """

    width: float = 0.4

    native = (Counts,)
    lowest = 0.0
    largest = 1.0
    checks: ClassVar = {"width": check_width}

    def prepare(self, sample: Sample, size: int) -> PairsPlan:
        """Prepare a sample for draws of `size` rows."""
        sample, _ = scale_weights(sample)
        decay = np.empty(sample.n)
        loss = np.empty(sample.n)
        kernels.vectors.pair_terms(sample.s, self.width, decay, loss)
        return PairsPlan(size, sample.gaps, kernels.weights(sample.v), decay, loss)

    def evaluate(self, plan: PairsPlan, c: NDArray[Any]) -> float:
        """Return the value when row i of the sample counts ``c[i]`` times."""
        return float(plan.values(np.ascontiguousarray(c, np.float64).reshape(1, -1, 1))[0])

    def point_values(self, table: RowTable, run: Map = map) -> F64:  # noqa: ARG002
        """Compute the value (K,) of each problem of a table by one kernel."""
        problems, _ = scale_weights(table)
        prob, label = problems.read()
        values = np.empty(problems.n_problems)
        kernels.vectors.pair_errors(
            prob, label, kernels.weights(problems.v), self.width,
            np.empty(label.size), np.empty(label.size, np.uint8), values,
        )  # fmt: skip
        return values

    def values(self, plan: PairsPlan, draws: Draws) -> F64:
        """Compute the value of each replicate, of counts in one pass over the rows."""
        if isinstance(draws, Counts):
            return plan.values(draws.blocks(plan.gap.size))
        return super().values(plan, draws)
