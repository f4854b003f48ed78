"""The published code's estimators, slips included, so that its figure can be compared.

What it does differently from its text, and from `fastece`: convex shares are swapped, so that the
farther centre gets the larger one, and a score on a centre has none in the bin of that centre, but
all of it in the one before (on the first centre: in the last bin); bins of `ece` divide [0, 1]
whatever the support, and hold their left edges; edges of equal mass lie ``floor(n / B)`` rows
apart, and the last bin takes the rest; the kernel is a triweight; every class has the bandwidth of
the first. Truth and measure are chosen in `fastece.study.study`. The published grid of 2**14 points
over 6 units is not kept: one that fits gives the same to 2e-4, at a hundredth of the time.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fastece.data.sample import Sample
from fastece.estimators.binned.estimator import Binned
from fastece.estimators.density.estimator import KDE
from fastece.estimators.density.plan import DrawnRows
from fastece.study.contestants import BANDWIDTHS, BINNED, BINS, Contestant, Drawn
from fastece.typing import F64, I32, I64


@dataclass(frozen=True)
class PublishedBinned:
    """Bins of the published code. Edges "quantile" lie half way between the rows
    ``i * floor(n / B) - 1`` and ``i * floor(n / B)`` in the order of their scores, nan for n < B;
    with "convex" bins a score above the centre ``c_j`` and up to ``c_(j+1)`` gives
    ``(s - c_j) / (c_(j+1) - c_j)`` to the lower one."""

    n_bins: Any = 10
    edges: str = "uniform"
    mapping: str = "hard"

    def prepare(self, sample: Sample, size: int) -> tuple[Sample, int]:
        """The sample, sorted, and the number of bins."""
        if sample.v is not None:
            raise ValueError("sample_weight: the published code has no weights")
        return sample, int(size**0.5) if self.n_bins == "sqrt" else int(self.n_bins)

    def evaluate(self, plan: tuple[Sample, int], c: NDArray[Any]) -> float:
        """The value when row i counts ``c[i]`` times."""
        rows = np.repeat(np.arange(c.size, dtype=np.int32), c.astype(np.int64))
        return float(self.subsets(plan, rows[None])[0])

    def subsets(self, plan: tuple[Sample, int], rows: I32) -> F64:
        """The value of the rows in each line of `rows` (R, n)."""
        sample, n_bins = plan
        rows = np.sort(rows, axis=1)
        s = sample.s[rows]
        gap = sample.y[rows] - s
        edges = np.empty((len(rows), n_bins + 1))
        edges[:, 0], edges[:, -1] = sample.low, sample.high
        if self.edges == "quantile":
            step = s.shape[1] // n_bins
            if step == 0:
                return np.full(len(rows), np.nan)
            starts = np.arange(1, n_bins) * step
            edges[:, 1:-1] = (s[:, starts - 1] + s[:, starts]) / 2
        else:
            edges[:] = sample.low + (sample.high - sample.low) * (np.arange(n_bins + 1) / n_bins)
        if self.mapping == "hard":
            return binned_values(n_bins, (placed(edges[:, 1:-1], s, "right"), gap))
        return swapped_convex(s, gap, (edges[:, :-1] + edges[:, 1:]) / 2)


def placed(edges: F64, s: F64, side: Literal["left", "right"]) -> I64:
    """Where the scores (R, n) of each draw are among its edges (R, B)."""
    return np.array([np.searchsorted(e, u, side) for e, u in zip(edges, s, strict=True)])


def binned_values(n_bins: int, *parts: tuple[I64, F64]) -> F64:
    """Values (R,) of gaps (R, n) that go to bins (R, n), in one or more parts."""
    n_draws, n = parts[0][0].shape
    first = np.arange(n_draws)[:, None] * n_bins
    sums = np.zeros(n_draws * n_bins)
    for bins, gap in parts:
        sums += np.bincount((first + bins).ravel(), gap.ravel(), sums.size)
    return np.asarray(np.abs(sums.reshape(n_draws, n_bins)).sum(1) / n)


def swapped_convex(s: F64, gap: F64, centres: F64) -> F64:
    """Values (R,) of sorted scores (R, n) that are shared by the centres (R, B) around them, the
    farther one getting more."""
    last = centres.shape[1] - 1
    upper = placed(centres, s, "left")
    # The lower index of a score on the first centre is -1, and that is the last bin.
    lower = np.where(s == centres[:, :1], last, np.maximum(upper - 1, 0))
    inside = (upper > 0) & (upper <= last)
    upper = np.minimum(upper, last)
    of = np.arange(len(s))[:, None]
    low, high = centres[of, lower], centres[of, upper]
    share = np.divide(s - low, high - low, out=np.ones_like(s), where=inside)
    return binned_values(last + 1, (lower, gap * share), (upper, gap * (1 - share)))


class SharedBandwidth(Contestant):
    """A density whose bandwidth in every class is that of the first."""

    def values(self, problems: Sequence[Drawn]) -> F64:
        """The mean over the classes (R,) of each draw."""
        kde, size = self.estimator, problems[0].rows.shape[1]
        plans = [kde.prepare(drawn.sample, size) for drawn in problems]
        h = plans[0].bandwidths(DrawnRows(problems[0].rows))
        pairs = zip(plans, problems, strict=True)
        values = [kde.values(plan, DrawnRows(drawn.rows), h) for plan, drawn in pairs]
        return np.asarray(np.mean(values, axis=0))


def published() -> list[Contestant]:
    """The fifteen estimators of the study as the published code has them."""
    binned = [  # `ece` alone is on [0, 1], whatever the support
        Contestant(
            f"{name}_{bins}",
            PublishedBinned(bins, **fields) if fields else Binned(n_bins=bins, closed="left"),
        )
        for name, fields in BINNED.items()
        for bins in BINS
    ]
    densities = {f"ece_kde_{h}": KDE(kernel="triweight", bandwidth=h) for h in BANDWIDTHS}
    return binned + [SharedBandwidth(name, kde) for name, kde in densities.items()]
