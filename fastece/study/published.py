"""Estimators of the published convention: the paper's, as the published code computes them.

The convention has the slips of that code, so that its figure can be compared. Where it differs from
its text, and from `fastece`:

- Convex shares are swapped, so that the farther centre gets the larger one. A score on a centre has
  no share in the bin of that centre, but all of it in the bin before, and on the first centre in
  the last bin.
- Bins of `ece` divide [0, 1] whatever the support is, and hold their left edges.
- Edges of equal mass lie ``floor(n / B)`` rows apart, and the last bin takes the remaining rows.
- The kernel is a triweight, and every class has the bandwidth of the first.

The grid of the published code, 2**14 points over 6 units, is not kept: a fitting grid gives the
same values to 2e-4, in a hundredth of the time.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from fastece.data.samples import Sample
from fastece.estimators.draws import Rows
from fastece.kernels.types import F64, I64


@dataclass(frozen=True)
class PublishedBinned:
    """Binned estimator with the bins of the published code, for rows without weights.

    Parameters
    ----------
    n_bins : int or "sqrt"
    edges : {"uniform", "quantile"}
        Edges "quantile" lie half way between the rows ``i * floor(n / B) - 1`` and
        ``i * floor(n / B)`` in the order of their scores; for n < B the value is nan.
    mapping : {"hard", "convex"}
        With "convex", a score above the centre ``c_j`` and up to ``c_(j+1)`` gives
        ``(s - c_j) / (c_(j+1) - c_j)`` to the lower one.
    """

    n_bins: Any = 10
    edges: str = "uniform"
    mapping: str = "hard"

    def prepare(self, sample: Sample, size: int) -> Sample:  # noqa: ARG002
        """Return the sorted sample."""
        return sample

    def values(self, plan: Sample, draws: Rows) -> F64:
        """Compute the values (R,) of draws of rows (R, n)."""
        rows = np.sort(draws.rows, axis=1)
        n_draws, size = rows.shape
        n_bins = int(size**0.5) if self.n_bins == "sqrt" else int(self.n_bins)
        s = plan.s[rows]
        gap = plan.y[rows] - s
        if self.edges == "uniform":
            edges = np.tile(uniform_edges(plan, n_bins), (n_draws, 1))
        elif size < n_bins:
            return np.full(n_draws, np.nan)
        else:
            edges = counted_edges(plan, n_bins, s)
        if self.mapping == "convex":
            sums = convex_sums(edges, s, gap)
        else:
            sums = sum_in_bins(places_among(edges[:, 1:-1], s, "right"), gap, n_bins)
        return np.asarray(np.abs(sums).sum(1) / size)


def uniform_edges(sample: Sample, n_bins: int) -> F64:
    """Compute edges (B + 1,) of bins of equal width on the support of the score."""
    edges = sample.low + (sample.high - sample.low) * (np.arange(n_bins + 1) / n_bins)
    return np.asarray(edges)


def counted_edges(sample: Sample, n_bins: int, s: F64) -> F64:
    """Compute edges (R, B + 1) of bins with ``floor(n / B)`` scores of (R, n) each."""
    n_draws, size = s.shape
    rows_of_bin = size // n_bins
    first_rows = np.arange(1, n_bins) * rows_of_bin
    edges = np.empty((n_draws, n_bins + 1))
    edges[:, 0] = sample.low
    edges[:, 1:-1] = (s[:, first_rows - 1] + s[:, first_rows]) / 2
    edges[:, -1] = sample.high
    return edges


def convex_sums(edges: F64, s: F64, gap: F64) -> F64:
    """Add gaps (R, n) up in bins (R, B), each shared by the two nearest centres."""
    n_bins = edges.shape[1] - 1
    centres = (edges[:, :-1] + edges[:, 1:]) / 2
    upper = places_among(centres, s, "left")
    is_between_centres = (upper > 0) & (upper < n_bins)
    # The lower index of a score on the first centre is -1, which is the last bin.
    lower = np.where(s == centres[:, :1], n_bins - 1, np.maximum(upper - 1, 0))
    upper = np.minimum(upper, n_bins - 1)
    low = np.take_along_axis(centres, lower, axis=1)
    high = np.take_along_axis(centres, upper, axis=1)
    share = np.divide(s - low, high - low, out=np.ones_like(s), where=is_between_centres)
    lower_sums = sum_in_bins(lower, gap * share, n_bins)
    upper_sums = sum_in_bins(upper, gap * (1 - share), n_bins)
    return np.asarray(lower_sums + upper_sums)


def places_among(edges: F64, s: F64, side: Literal["left", "right"]) -> I64:
    """Find the places (R, n) of the scores of each draw among its edges (R, B)."""
    pairs = zip(edges, s, strict=True)
    return np.array([np.searchsorted(of_draw, scores, side) for of_draw, scores in pairs])


def sum_in_bins(bins: I64, gap: F64, n_bins: int) -> F64:
    """Add the gaps (R, n) of each draw up in their bins: sums (R, B)."""
    n_draws = len(bins)
    first_bin = np.arange(n_draws)[:, None] * n_bins
    sums = np.bincount((first_bin + bins).ravel(), gap.ravel(), n_draws * n_bins)
    return np.asarray(sums.reshape(n_draws, n_bins))


def mean_with_first_bandwidth(kde: Any, problems: Sequence[Rows]) -> F64:
    """Compute means over classes (R,), all with the bandwidth of the first class."""
    plans = [kde.prepare(drawn.sample, drawn.rows.shape[1]) for drawn in problems]
    bandwidths = plans[0].bandwidths(problems[0])
    values = [
        kde.errors(plan, drawn, bandwidths) for plan, drawn in zip(plans, problems, strict=True)
    ]
    return np.asarray(np.mean(values, axis=0))
