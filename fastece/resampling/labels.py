"""Labels drawn from the predicted probabilities, and sums over the hits among them."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from fastece.data.containers import contiguous
from fastece.data.samples import Sample, scale_weights
from fastece.data.sources import BySquares, Problems, Source, need_rows, one_problem
from fastece.estimators.base import Counts, Labels, Statistic
from fastece.estimators.binned import Binned
from fastece.estimators.binned.layouts import Layout, layout_of
from fastece.estimators.binned.replicates import MAX_SUMS, Tiles
from fastece.kernels import REPLICATES, WEIGHT
from fastece.kernels.types import F64
from fastece.resampling import engine
from fastece.resampling.arguments import Call
from fastece.resampling.draws import ClassDraws, HitDraws, LabelDraws
from fastece.resampling.engine import Problem

# Rows whose labels are drawn at once: 64 bytes each, for a block of replicates.
PART = 2**16


def hits_and_misses(sample: Sample) -> Sample:
    """Return a sample with every row twice, as a hit and as a miss, for `HitDraws`."""
    twice = sample.where(np.tile(np.arange(sample.n), 2))
    return replace(twice, y=np.repeat(np.array([1, 0], np.uint8), sample.n))


def label_draws(call: Call, prob: list[F64], key: int, row: int = 0) -> ClassDraws | HitDraws:
    """Make draws of labels, from number `row` on: of all classes, or of one's hits."""
    dependence = call.dependence and call.dependence.rows(row, len(prob[0]))
    if call.sources[0].setting.per_class:
        return ClassDraws(key, np.column_stack(prob), row, dependence)
    return HitDraws(key, prob[0], row, dependence)


def rows_or_cells(call: Call, reader: str) -> Source:
    """Return the only model of a call as rows, or as the cells of a stream.

    `reader` needs it. Classes of a stream are one by one: how their labels go together is in none
    of its sums.
    """
    (source,) = call.sources
    if isinstance(source, Problems):
        return scale_weights(source)[0]
    if source.n_problems > 1 and not call.per_class:
        need_rows(source, f"{reader} of a mean over classes", "average")
    return BySquares(source)


def drawn_hits(
    call: Call, data: Source, sums: Sequence[Any], key: int, first: int, last: int
) -> Iterator[tuple[list[Sample], F64]]:
    """Yield parts of all problems, with sums (K, C, R) over the hits drawn in them.

    `sums` has the statistic of each problem: it takes counts of hits, then of misses; of a stream,
    all of its cells.
    """
    problems = range(data.n_problems)
    if not isinstance(data, Problems):
        samples, span = data.samples(), (key, first, last)
        yield samples, np.array([sums[k].of_cells(samples[k], *span) for k in problems])
        return
    for start in range(0, data.n, step := max(1, PART // data.n_problems)):
        samples = [data.view(k, slice(start, start + step)) for k in problems]
        if first == last:
            yield samples, np.zeros((1, 1, 0))
            continue
        draws = label_draws(call, [sample.s for sample in samples], key, start)
        plans = [sums[k].prepare(samples[k], call.n) for k in problems]
        drawn = [engine.PreparedStatistic(k, None, None, sums[k], plans[k]) for k in problems]
        some = engine.Replicates(draws, drawn)
        yield samples, engine.evaluate(some, first, last, call.jobs, call.executor)


@dataclass(frozen=True)
class HitSums(Statistic):
    """Weight of the hits in bins of each draw of labels; rows that miss add nothing."""

    layout: Layout
    threshold: float

    needs_sorted = False

    def prepare(self, sample: Sample, size: int) -> Tiles:  # noqa: ARG002
        """Arrange the rows of a sample with their weights in tiles."""
        return Tiles.of(sample, self.layout, self.threshold, (WEIGHT,))

    def values(self, tiles: Tiles, draws: Counts) -> F64:
        """Compute weights (B, 32 G) for counts (G, 2 n, 32) of hits, then of misses."""
        hits = draws.c[:, : tiles.order.size]
        step = max(1, MAX_SUMS // (REPLICATES * self.layout.cells))
        parts = [contiguous(hits[g : g + step], np.uint8) for g in range(0, len(hits), step)]
        return np.concatenate([tiles.sums(part)[0] for part in parts], axis=1)

    def noise(self, sample: Sample) -> F64:
        """Sum ``w^2 a^2 s (1 - s)``, ``w^2 a^2`` and all w^2: (3, B)."""
        places = self.layout.place(sample.s)
        s, v, c = sample.s, 1.0 if sample.v is None else sample.v, 1.0 * sample.counts
        w = np.where(s > self.threshold, v, 0.0)
        sums = [places.sums(x, w, 2) for x in (c * s * (1 - s), c)]
        return np.stack([*sums, np.full(sums[0].size, (c * w) @ w)])

    def of_cells(self, sample: Sample, key: int, first: int, last: int) -> F64:
        """Draw weights (B, R) of hits in cells of a stream, with normal noise."""
        from scipy.sparse import csr_array

        places = self.layout.place(sample.s)
        s, v, c = sample.s, 1.0 if sample.v is None else sample.v, sample.counts
        w = np.where(s > self.threshold, v, 0.0)
        deviation, row = w * np.sqrt(c * s * (1 - s)), np.arange(s.size)
        at = [places.lower, places.upper], [row, row]
        parts = np.concatenate([deviation * places.share, deviation * (1 - places.share)])
        shares = csr_array((parts, np.reshape(at, (2, -1))), (self.layout.cells, s.size))
        begin = first // REPLICATES
        noise = [
            shares @ np.random.default_rng((key, block)).standard_normal((s.size, REPLICATES))
            for block in range(begin, -(-last // REPLICATES))
        ]
        inside = slice(first - begin * REPLICATES, last - begin * REPLICATES)
        hits = places.sums(c * w * s) + self.layout.spread(np.concatenate(noise, axis=1).T[inside])
        return hits.T.copy()


def hit_sums(binned: Binned, data: Source, n_bins: int) -> list[HitSums]:
    """Make the statistic of the hits in the bins of each problem."""
    rule = binned.rule(data, n_bins)
    problems = map(one_problem, data.samples(reads_only=True))
    return [HitSums(layout_of(rule, problem), rule.threshold) for problem in problems]


def noise_and_hits(
    call: Call, data: Source, sums: Sequence[Any], key: int, first: int, last: int
) -> tuple[F64, F64]:
    """Sum up noise (Q, K, C) of cells and drawn hits (K, C, R), some rows at a time.

    `sums` has, for each problem, the statistic of the hits in its cells, with a method `noise`.
    """
    noise, hits = np.zeros(1), np.zeros((1, 1, last - first))
    for samples, drawn in drawn_hits(call, data, sums, key, first, last):
        noise = noise + np.array([x.noise(sample) for x, sample in zip(sums, samples, strict=True)])
        hits = hits + drawn
    return noise.swapaxes(0, 1), hits


class LabelModel(NamedTuple):
    """A model whose labels are drawn for an estimator, in the form that it takes.

    Most estimators take labels as multiplicities: every row stands there as a hit and as a miss,
    and one of the two is drawn. Those that take `Labels`, and those of whole class vectors, take
    the labels themselves.

    Attributes
    ----------
    problems : list of Problem
    scores : list of (n,) float64 arrays
        Predicted probabilities of hits in each problem, or of each class of whole class vectors.
    draws : callable
        Makes the draws of labels with such probabilities.
    """

    problems: list[Problem]
    scores: list[F64]
    draws: Callable[[list[F64]], Any]


def label_model(call: Call, estimator: Any, key: int) -> LabelModel:
    """Return the only model of a call, for draws of labels that depend on a key."""
    (data,) = call.models
    samples, are_classes = data.samples(), call.uses_class_vectors(estimator)
    takes_labels = are_classes or Labels in estimator.native
    scores = [sample.s for sample in samples]
    if are_classes:
        assert data.vectors is not None
        scores = list(data.vectors.prob[data.positions].astype(np.float64).T)

    def draws(prob: list[F64]) -> Any:
        if are_classes:
            whole = ClassDraws(key, np.column_stack(prob), 0, call.dependence)
            return LabelDraws(whole, are_classes=True)
        drawn = label_draws(call, prob, key)
        return LabelDraws(drawn, are_classes=False) if takes_labels else drawn

    forms = samples if takes_labels else map(hits_and_misses, samples)
    return LabelModel([*map(Problem, forms)], scores, draws)
