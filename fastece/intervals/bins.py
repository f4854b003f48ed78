"""The cells of binned errors: the gaps of bins, and what chance does to them."""

import math
from dataclasses import dataclass

import numpy as np

from fastece.checks.arrays import contiguous
from fastece.data.order import scale_weights
from fastece.data.problems import Problems, one_problem
from fastece.data.sample import Sample
from fastece.estimators.binned.estimator import EMPTY, MAX_SUMS, Binned, Bins, place_rows
from fastece.estimators.binned.replicates import Tiles
from fastece.intervals.cells import Cells, count_of, make_cells
from fastece.kernels import MOMENTS, REPLICATES
from fastece.resampling.arguments import Call
from fastece.resampling.engine import Problem
from fastece.resampling.labels import label_draws
from fastece.typing import F64, U8


def binned_cells(call: Call, binned: Binned, key: int) -> Cells:
    """The cells of a binned estimator."""
    (data,) = call.models
    bins, samples = binned.bins(data, moments=3), data.samples()
    problems = [Problem(sample) for sample in samples]
    draws = label_draws(call, [sample.s for sample in samples], key)
    count, size = count_of(call, bins.gap.size), bins.gap.shape[1]
    hits = call.replicates([HitSums(binned, size)], problems, draws, call.n, 0, count)
    return bin_cells(binned, data, bins, hits - bins.score[:, :, None], key)


@dataclass(frozen=True)
class HitSums:
    """The weight of the hits in each bin, for replicates of labels: scores and so bins are always
    the same, and rows that miss add nothing."""

    binned: Binned
    n_bins: int

    needs_sorted = False

    def prepare(self, sample: Sample, size: int) -> Tiles:  # noqa: ARG002
        """Rows with their weights, in tiles."""
        sample, _ = scale_weights(sample)
        layout = self.binned.layout(one_problem(sample), self.n_bins)
        tiles = Tiles.of(sample, layout, self.binned._threshold, MOMENTS[:2])
        return tiles._replace(terms=np.ascontiguousarray(tiles.terms[1::2]))

    def blocks(self, tiles: Tiles, c: U8) -> F64:
        """(B, 32 G) weights, of multiplicities (G, 2 n, 32) of hits and then of misses."""
        hits = c[:, : tiles.order.size]
        step = max(1, MAX_SUMS // (REPLICATES * self.n_bins))
        parts = [contiguous(hits[g : g + step], np.uint8) for g in range(0, len(c), step)]
        return np.concatenate([tiles.sums(part)[0] for part in parts], axis=1)


def bin_cells(binned: Binned, data: Problems, bins: Bins, null: F64, seed: int) -> Cells:
    """The cells of bins, from the gaps of replicates as they are added up."""
    n_bins = bins.gap.shape[1]
    noise = [bin_noise(binned, sample, n_bins) for sample in data.samples()]
    variance, slope, squares = (np.array(part) for part in zip(*noise, strict=True))
    total = np.where(bins.total > 0, bins.total, 1.0)
    share = bins.weight / total[:, None]
    return make_cells(
        bins.gap / total[:, None], null / total[:, None, None], variance / total[:, None] ** 2,
        slope / total[:, None] ** 2, total**2 / np.where(squares > 0, squares, 1.0), share,
        bins.score / total[:, None], bin_units(binned, bins, share), binned.norm,
        np.arange(share.size).reshape(share.shape), seed,
    )  # fmt: skip


def bin_units(binned: Binned, bins: Bins, share: F64) -> F64:
    """What the gaps of bins are multiplied by, so that the error is their plain norm: that of
    `Binned.values`."""
    norm, equal = binned.norm, binned.bin_weights == "equal"
    if norm == 1 and not equal:
        return np.ones_like(share)
    counts = share > (0.0 if norm < math.inf and not equal else EMPTY)
    if math.isinf(norm):
        counts &= bins.weight >= binned.min_count / bins.unit
    power = -1.0 if equal or math.isinf(norm) else 1 / norm - 1
    unit = np.zeros_like(share)
    np.power(share, power, out=unit, where=counts)
    return unit * (share.shape[1] ** (-1 / norm) if equal and norm < math.inf else 1.0)


def bin_noise(binned: Binned, sample: Sample, n_bins: int) -> tuple[F64, F64, float]:
    """Sums over the rows of each bin of ``w^2 a^2 s (1 - s)`` and of ``w^2 a^2 (1 - 2 s)``, and
    that of all w^2."""
    sample, _ = scale_weights(sample)
    places = place_rows(binned, sample, n_bins)
    w = np.ones(sample.n) if sample.v is None else sample.v
    if binned.threshold is not None:
        w = np.where(sample.s > binned.threshold, w, 0.0)
    variance = places.sums(sample.s * (1 - sample.s), w, 2)
    return variance, places.sums(1 - 2 * sample.s, w, 2), float(w @ w)
