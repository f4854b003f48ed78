"""The published code's estimators, slips included, so that its figure can be compared.

What it does differently from its text, and from `fastece`: convex shares are swapped, so that the
farther centre gets the larger one, and a score on the first centre goes to the last bin; bins of
`ece` divide [0, 1] whatever the support; bins of equal mass hold ``floor(n / B)`` rows, equal
scores or not, and the last takes the rest; the kernel is a triweight; every class has the bandwidth
of the first. Truth and measure are chosen in `fastece.study.study`. The published grid of 2**14
points over 6 units is not kept: one that fits gives the same to 2e-4, at a hundredth of the time.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastece.binned import Binned
from fastece.kde import KDE
from fastece.protocol import Sample
from fastece.study.contestants import BANDWIDTHS, BINNED, BINS, Contestant, Drawn, class_mean

__all__ = ["PublishedBinned", "SharedBandwidth", "published"]

F64 = NDArray[np.float64]
I32 = NDArray[np.int32]


@dataclass(frozen=True)
class PublishedBinned:
    """Bins of equal mass by counting, and convex shares the wrong way round.

    Parameters
    ----------
    n_bins : int or "sqrt"
    edges : {"uniform", "quantile"}
        "quantile": ``floor(n / B)`` rows in each bin, the rest in the last; nan for n < B.
    mapping : {"hard", "convex"}
        "convex": with bin centres c, a score between two of them gives ``(s - c_j) / (c_(j+1) -
        c_j)`` to the lower one. Hard mapping on uniform edges has no slip: `Binned`.
    """

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
        n = rows.shape[1]
        if self.edges == "quantile" and n < n_bins:
            return np.full(len(rows), np.nan)
        starts = np.arange(n_bins) * (n // n_bins)
        if self.mapping == "hard":
            return np.asarray(np.abs(np.add.reduceat(gap, starts, axis=1)).sum(1) / n)
        edges = np.empty((len(rows), n_bins + 1))
        if self.edges == "quantile":
            edges[:, 1:-1] = (s[:, starts[1:] - 1] + s[:, starts[1:]]) / 2
            edges[:, 0], edges[:, -1] = sample.low, sample.high
        else:
            edges[:] = sample.low + (sample.high - sample.low) * (np.arange(n_bins + 1) / n_bins)
        return swapped_convex(s, gap, (edges[:, :-1] + edges[:, 1:]) / 2)


def swapped_convex(s: F64, gap: F64, centres: F64) -> F64:
    """Values (R,) of sorted scores (R, n) that are shared by the centres (R, B) around them, the
    farther one getting more."""
    n_draws, n_bins = centres.shape
    below = np.array([np.searchsorted(c, u, "right") - 1 for c, u in zip(centres, s, strict=True)])
    last = n_bins - 1
    lower, upper = below.clip(0, last), (below + 1).clip(0, last)
    of = np.arange(n_draws)[:, None]
    low, high = centres[of, lower], centres[of, upper]
    inside = (below >= 0) & (below < last)
    share = np.divide(s - low, high - low, out=np.ones_like(s), where=inside)
    first = s == centres[:, :1]  # an index of -1 is the last bin in Python
    lower, share = np.where(first, last, lower), np.where(first, 1.0, share)
    sums = np.bincount((of * n_bins + lower).ravel(), (gap * share).ravel(), n_draws * n_bins)
    sums += np.bincount((of * n_bins + upper).ravel(), (gap * (1 - share)).ravel(), sums.size)
    return np.asarray(np.abs(sums.reshape(n_draws, n_bins)).sum(1) / s.shape[1])


class SharedBandwidth(Contestant):
    """A density whose bandwidth in every class is that of the first."""

    def values(self, problems: Sequence[Drawn]) -> F64:
        """The mean over the classes (R,) of each draw."""
        kde, size = self.estimator, problems[0].rows.shape[1]
        plans = [kde.prepare(drawn.sample, size) for drawn in problems]
        h = plans[0].drawn_bandwidths(problems[0].rows)
        return class_mean(
            [
                plan.of_rows(drawn.rows, h, kde.values)
                for plan, drawn in zip(plans, problems, strict=True)
            ]
        )


def published() -> list[Contestant]:
    """The fifteen estimators of the study as the published code has them."""
    found: list[Contestant] = []
    for name, fields in BINNED.items():
        for bins in BINS:
            estimator: Any = PublishedBinned(bins, **fields) if fields else Binned(n_bins=bins)
            found.append(Contestant(f"{name}_{bins}", estimator))
    kde = KDE(kernel="triweight")
    return found + [SharedBandwidth(f"ece_kde_{h}", replace(kde, bandwidth=h)) for h in BANDWIDTHS]
