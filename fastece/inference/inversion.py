"""Confidence intervals by test inversion: the true errors that fit the data.

A plug-in error exceeds its truth, because noise makes gaps, so an interval around it misses. But
the noise of a model with *given* gaps is known, and a test can decide for each true error whether
the error that was seen is a likely one. Truths of one size differ in how much noise they let in:
most where a few gaps are large and the others are noise alone, least where every gap is as large as
its noise. So hypotheses lie on two paths, which begin at a calibrated model: the lower end of the
interval is where the first model with sparse gaps is not rejected, the upper end where the last one
with dense gaps is not.

At 0 only errors that are too large speak against a hypothesis; further on those that are too small
do so too. The part of the risk that is spent on them grows with the power of the test of
calibration, up to a half: so an interval begins at 0 exactly where that test does not reject.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import singledispatch
from typing import Any, NamedTuple

import numpy as np

from fastece.data.sources import SETTINGS
from fastece.display.numbers import ConfidenceInterval
from fastece.estimators.base import Estimator
from fastece.estimators.binned import Binned
from fastece.estimators.cumulative import CumulativeError
from fastece.estimators.density.estimator import KDE
from fastece.estimators.draws import Chances, Labels
from fastece.inference.cells import Cells, binned_cells
from fastece.kernels.types import F64
from fastece.resampling.call import Call
from fastece.resampling.draws import ClassDraws
from fastece.resampling.engine import PreparedStatistic, Replicates, evaluate, plan_replicates
from fastece.resampling.labels import make_label_model

# Standard errors beyond which a gap counts as real.
CLEAR = 2.5
# The level of the test whose power decides how risk is shared.
LEVEL = 0.05
# An error below this quantile of those of a calibrated model is taken as that quantile: no
# statistic can tell that there is less error than its noise hides.
FLOOR_QUANTILE = 0.1
# Errors closer than this are equal: one is rounded otherwise than the other.
ROUNDING = 1e-12
NODES = 24
RANGE_PARTS, HALVINGS, DOUBLINGS, FARTHEST = 8, 60, 60, 1e12
# A lower end above 0 is at least this part of the first truth that fits.
TINY = 1e-6
# How fast the distribution of the difference of two errors passes from one path to the other: in
# the middle four fifths. At once, intervals of two models much alike are 1.7 times as wide.
PASSAGE = 1.25
# The p-value of hypotheses that no error is too small for.
MAX_P = 2.0
# Bins whose gaps say what a hypothesis is for estimators without gaps, and replicates and
# hypotheses of a path of theirs: with 192 the p-value 0.05 is known to 0.016.
BINS = Binned(edges="quantile")
LABEL_REPLICATES, LABEL_NODES = 192, 8
# Of errors that are not known.
NO_VALUES = np.full(1, np.nan)


class Path(NamedTuple):
    """Hypotheses ``m >= 0``, calibrated at 0, along which both functions grow.

    For some of them (M,), `sizes` gives the true errors (M,), and `errors` those of replicates
    (M, R).
    """

    sizes: Callable[[F64], F64]
    errors: Callable[[F64], F64]
    nodes: int = NODES


@dataclass(frozen=True, eq=False)
class ConfidenceCurve:
    """Ends of the intervals of all levels, and the p-value of a calibrated model.

    Attributes
    ----------
    p_value : float
    low : (2, M) float64 array
        True errors, increasing, and the largest p-value of those up to each.
    high : (2, M) float64 array
        True errors, increasing, and the largest p-value of those from each on.
    sparse, dense : (2, M) float64 array
        True errors, increasing, and the shares of replicates that exceed the one that was seen, on
        either path: the distribution functions of two confidence distributions.
    replicates : int
        Number of errors of a calibrated model that it is made from.
    null : (R,) float64 array
        These errors: what chance alone shows.
    """

    p_value: float
    low: F64
    high: F64
    sparse: F64
    dense: F64
    replicates: int
    null: F64

    def interval(self, level: float) -> ConfidenceInterval:
        """Return the interval of true errors with p-values above 1 - `level`.

        It is nan if there is no number.
        """
        if np.isnan(self.p_value):
            return ConfidenceInterval(np.nan, np.nan)
        alpha = round(1 - level, 12)  # 1 - 0.9 is less than 0.1, which p-values may be
        falling = self.high[:, ::-1]
        high = crossing(falling, alpha)
        if self.p_value > alpha:
            return ConfidenceInterval(0.0, high)
        low = min(crossing(self.low, alpha), crossing(falling, 1.0))
        return ConfidenceInterval(low, max(low, high))

    def quantiles(self, levels: F64) -> F64:
        """Compute quantiles (L,) of the confidence distribution of the true error.

        It passes from that of the sparse path in the low tail to the dense path's in the high one.
        """
        part = np.clip(0.5 + PASSAGE * (levels - 0.5), 0.0, 1.0)
        paths = [np.interp(levels, share, size) for size, share in (self.sparse, self.dense)]
        low, high = np.sort(paths, axis=0)
        return np.asarray(low + part * (high - low))


# Of no number; and of an error that no row tells anything of, such as that of rows above a
# threshold that none exceeds: from 0 to 1.
NOTHING, EITHER_END = np.full((2, 1), np.nan), np.array([[0.0, 1.0], [0.5, 0.5]])
NO_CURVE = ConfidenceCurve(np.nan, NOTHING, NOTHING, NOTHING, NOTHING, 0, NO_VALUES)
NO_ROWS = replace(
    NO_CURVE, p_value=1.0, low=np.array([[0.0], [1.0]]), high=np.ones((2, 1)), sparse=EITHER_END,
    dense=EITHER_END,
)  # fmt: skip


def crossing(curve: F64, alpha: float) -> float:
    """Find the true error whose p-value is alpha, along increasing p-values."""
    x, p = curve
    j = int(np.searchsorted(p, alpha, "right"))
    if j in (0, p.size):
        return float(x[min(j, p.size - 1)])
    # P-values of a tail fall like those of a normal law, so their logarithm is interpolated.
    over, under = np.log(p[j] / alpha), np.log(alpha / p[j - 1])
    part = over / (over + under) if over + under > 0 else 0.0
    return max(float(x[j] + part * (x[j - 1] - x[j])), TINY * float(x[j]))


# --- from paths to curves -------------------------------------------------------------------


def path_range(path: Path, seen: float, floor: float) -> tuple[float, float]:
    """Find the first and the last hypothesis of a path that matter.

    Replicates of those before never reach the error that was `seen`, and those of all after exceed
    the `floor`. Both are known to an eighth of the way between them, which is some standard errors
    long: of 20 000 rows with a gap of 0.4, a hundredth of the way from no gap.
    """

    def is_before(m: float) -> bool:
        return not (path.errors(np.array([m])) >= seen - ROUNDING).any()

    def is_within(m: float) -> bool:
        return bool((path.errors(np.array([m])) <= floor + ROUNDING).any())

    end = 1.0
    for _ in range(DOUBLINGS):
        size, next_size = path.sizes(np.array([end, 2 * end]))
        if not (is_inside := is_within(end)) or next_size <= size:
            break
        end *= 2
    first, last = [0.0, end if is_before(0.0) else 0.0], [end if is_inside else 0.0, end]
    for _ in range(HALVINGS):
        is_first = first[1] - first[0] > last[1] - last[0]
        bracket, is_left = (first, is_before) if is_first else (last, is_within)
        if bracket[1] - bracket[0] <= (last[1] - first[0]) / RANGE_PARTS:
            break
        middle = sum(bracket) / 2
        bracket[0 if is_left(middle) else 1] = middle
    return first[0], last[1]


def scan_path(path: Path, seen: float, floor: float, critical: float) -> F64:
    """Evaluate hypotheses (M,) of a path in the range that matters, and at 0.

    Returns (4, M): their true errors, the shares of replicates whose errors are at least and at
    most the one that was seen, and the part of the risk that is spent on small errors.
    """
    start, end = path_range(path, seen, floor)
    scales = np.linspace(start, end, path.nodes)
    if start > 0:
        scales = np.concatenate([[0.0], scales])
    drawn = path.errors(scales)
    total = drawn.shape[1] + 1
    above = (1 + (drawn >= seen - ROUNDING).sum(1)) / total
    below = (1 + (drawn <= floor + ROUNDING).sum(1)) / total
    power = (drawn > critical + ROUNDING).mean(1)
    small = np.clip((power - LEVEL) / (1 - LEVEL), 0.0, 1.0) / 2
    return np.array([path.sizes(scales), above, below, small])


def invert(
    null: F64, seen: float, row: float, sparse: Path | None, dense: Path, share: float = 1.0
) -> ConfidenceCurve:
    """Invert the tests of the hypotheses on two paths to a confidence curve.

    Parameters
    ----------
    null : (R,) float64 array
        Errors of a calibrated model.
    seen : float
        The error of the data.
    row : float
        The smallest difference that a single row makes.
    sparse : Path or None
        Truths with a few large gaps; None where no gap is clear.
    dense : Path
        Truths whose gaps are all as large as their noise.
    share : float
        The largest part of the risk that is spent on errors that are too large.
    """
    if np.isnan(seen) or np.isnan(null).any():
        return NO_CURVE
    p_value = (1 + (null >= seen - ROUNDING).sum()) / (null.size + 1)
    p_value = min(1.0, float(p_value) / share)
    ordered = np.sort(null)
    critical = ordered[min(null.size, int(np.ceil((1 - LEVEL) * (null.size + 1)))) - 1]
    # An error that is smaller by less than a row is none: binomial noise may miss the steps a bit.
    floor = max(seen, float(np.quantile(null, FLOOR_QUANTILE)), row / 2) + row / 4
    upper = scan_path(dense, seen, floor, critical)
    lower = upper if sparse is None else scan_path(sparse, seen, floor, critical)
    sizes, above, _, small = lower
    p = above / np.minimum(1 - small, share)
    p[0] = p_value
    low = np.stack([sizes, np.maximum.accumulate(p)])
    sizes, _, below, small = upper
    p = np.minimum(MAX_P, below / np.maximum(small, 1e-300))
    # Beyond the last hypothesis, replicates only tell that p is not larger.
    sizes = np.append(sizes, dense.sizes(np.array([FARTHEST])))
    high = np.stack([sizes, np.maximum.accumulate(np.append(p, p[-1])[::-1])[::-1]])
    few, many = np.maximum.accumulate(lower[1]), np.maximum.accumulate(1 - upper[2])
    distributions = np.stack([lower[0], few]), np.stack([upper[0], many])
    return ConfidenceCurve(p_value, low, high, *distributions, replicates=null.size, null=null)


# --- curves of cells ------------------------------------------------------------------------


def cell_path(cells: Cells, base: F64, fixed: F64 | float = 0.0) -> Path:
    """Make the path of gaps ``fixed + m base`` (K, B), clipped to the possible ones."""
    low, high = -cells.expected_hits, cells.max_gap - cells.expected_hits

    def gaps(m: F64) -> F64:
        return np.clip(fixed + m[:, None, None] * base, low, high)

    return Path(lambda m: cells.error(gaps(m)), lambda m: cells.errors(gaps(m)))


def clear_gaps(cells: Cells, z: F64) -> F64 | None:
    """Keep the gaps (K, B) with clear z-scores, or the clearest; None without any.

    Clear too is what a calibrated model would not show, such as one miss of a score of 1.
    """
    is_clear = (z >= min(CLEAR, z.max(initial=0.0))) | (cells.gap**2 > CLEAR**2 * cells.variance)
    is_clear &= z > 0
    return np.where(is_clear, cells.gap, 0.0) if is_clear.any() else None


def z_scores(cells: Cells) -> F64:
    """Divide gaps (K, B) by their standard errors; 0 where the error is 0."""
    sd = cells.deviation
    return np.divide(cells.gap, sd, out=np.zeros_like(sd), where=sd > 0)


def gap_directions(cells: Cells) -> tuple[F64 | None, F64]:
    """Return the directions (K, B) of the sparse and of the dense path.

    The first is None where there is no gap at all. On the second, a gap has the sign for which
    there is room: scores of 1 can only be too high.
    """
    gap, sd = cells.gap, cells.deviation
    up, down = cells.max_gap - cells.expected_hits, cells.expected_hits
    is_down = np.where(gap < 0, (down >= sd) | (down >= up), (up < sd) & (up < down))
    return clear_gaps(cells, np.abs(z_scores(cells))), np.where(is_down, -sd, sd)


def cell_curve(cells: Cells) -> ConfidenceCurve:
    """Compute the confidence curve of an error that is a norm of gaps."""
    if not (cells.max_gap > 0).any():
        return NO_ROWS
    return curve_of_paths(cells, np.zeros_like(cells.gap), *gap_directions(cells))


def one_sided_curve(cells: Cells, side: float) -> ConfidenceCurve:
    """Compute the curve of the norm of the gaps above 0 (side 1) or below 0 (-1).

    Gaps that are clearly on the other side are fixed: they add nothing, and noise does not carry
    them over. All others may be noise, as in `cell_curve`. Half of the risk at most is spent on
    errors that are too large, so that both sides together begin at 0 as often as they should.
    """
    z = side * z_scores(cells)
    fixed = np.where(z < -CLEAR, cells.gap, 0.0)
    room = cells.expected_hits if side < 0 else cells.max_gap - cells.expected_hits
    dense = np.where((z >= -CLEAR) & (room > 0), side * cells.deviation, 0.0)
    return curve_of_paths(replace(cells, side=float(side)), fixed, clear_gaps(cells, z), dense)


def curve_of_paths(cells: Cells, fixed: F64, sparse: F64 | None, dense: F64) -> ConfidenceCurve:
    """Compute the curve between paths of sparse and of dense gaps (K, B).

    Gaps that are `fixed` are added to both.
    """
    null, seen = cells.errors(fixed[None])[0], float(cells.error(cells.gap[None])[0])
    rows = cells.row[cells.max_gap > 0]
    step = float(rows.min()) if rows.size else 0.0
    sparse_path = None if sparse is None else cell_path(cells, sparse, fixed)
    dense_path, share = cell_path(cells, dense, fixed), 0.5 if cells.side else 1.0
    return invert(null, seen, step, sparse_path, dense_path, share)


# --- curves of drawn labels -----------------------------------------------------------------


@singledispatch
def largest_value(estimator: Any) -> float:  # noqa: ARG001
    """Return the largest value that an estimator can have."""
    return np.inf


@largest_value.register(Binned)
@largest_value.register(KDE)
@largest_value.register(CumulativeError)
def largest_gap(estimator: Any) -> float:  # noqa: ARG001
    """Return the largest gap between a probability and a frequency."""
    return 1.0


@singledispatch
def without_correction(estimator: Any) -> Any:
    """Return the estimator of a population, which has no chance that could be taken off."""
    return estimator


@without_correction.register
def without_debias(estimator: Binned) -> Binned:
    """Return binned errors without `debias`."""
    return replace(estimator, debias=False) if estimator.debias else estimator


def label_curve(call: Call, estimator: Any, key: int) -> ConfidenceCurve:
    """Compute the confidence curve of the only model of a call by drawn labels.

    It is for estimators without gaps, which need `prepare` and `evaluate` alone, or the draws
    `Labels` and `Chances` where they take the labels themselves; it costs some bootstraps.
    """
    model = make_label_model(call, estimator, key)
    draws = model.draws(model.scores)
    members = plan_replicates([estimator], model.problems, draws, call.n).members
    population = without_correction(estimator)
    count = min(call.n_resamples, LABEL_REPLICATES)

    def drawn(prob: list[F64], count: int) -> F64:
        replicates = Replicates(model.draws(prob), members)
        values = evaluate(replicates, 0, count, call.workers)
        return np.asarray(values.mean(0))

    def path(direction: list[F64]) -> Path:
        def hypotheses(scales: F64) -> Iterator[list[F64]]:
            pairs = [*zip(model.scores, direction, strict=True)]
            return ([np.clip(s + m * d, 0, 1) for s, d in pairs] for m in scales)

        return Path(
            lambda m: np.array([true_error(call, population, members, x) for x in hypotheses(m)]),
            lambda m: np.array([drawn(prob, count) for prob in hypotheses(m)]),
            LABEL_NODES,
        )

    sparse, dense = row_directions(call, estimator)
    seen = float(np.mean(estimator.point_values(call.models[0])))
    null = drawn(model.scores, call.n_resamples)
    return invert(null, seen, 0.0, None if sparse is None else path(sparse), path(dense))


def row_directions(call: Call, estimator: Any) -> tuple[list[F64] | None, list[F64]]:
    """Return the changes of the rows' probabilities along both paths, by problem.

    None for the first path where there is no gap to begin with. They are those of all classes
    against the rest for whole class vectors, which cannot go up together, as problems of their own
    can: there the second path has the mean gap of each class in all rows, whose noise adds up most.
    """
    (data,), are_classes = call.models, call.uses_class_vectors(estimator)
    if are_classes:  # every class against the rest
        assert data.vectors is not None
        prob, label = (x[data.positions] for x in (data.vectors.prob, data.vectors.label))
        own: dict[str, Any] = {"setting": SETTINGS["classwise"], "vectors": None, "convert": None}
        data = replace(data, prob=prob, label=label, low=0.0, **own)
    cells = binned_cells(replace(call, sources=[data]), BINS, has_noise=False)
    share = np.where(cells.share > 0, cells.share, 1.0)
    places = [BINS.place(sample, share.shape[1]).lower for sample in data.samples()]
    sparse, dense = gap_directions(cells)
    mean = cells.gap.sum(axis=1, keepdims=True)
    if are_classes and mean.any():
        dense = mean * share

    def of_rows(gap: F64) -> list[F64]:
        return [line[place] for line, place in zip(gap / share, places, strict=True)]

    return None if sparse is None else of_rows(sparse), of_rows(dense)


def true_error(
    call: Call, estimator: Estimator, members: list[PreparedStatistic], prob: list[F64]
) -> float:
    """Compute the true error for given probabilities of labels, averaged."""
    if call.uses_class_vectors(estimator):
        chances = [ClassDraws(0, np.column_stack(prob)).shares]
    elif Labels in estimator.native:
        chances = [np.column_stack([1 - hit, hit]) for hit in prob]
    else:
        counts = [np.concatenate([hit, 1 - hit]) for hit in prob]
        values = [
            float(estimator.evaluate(member.plan, c if member.order is None else c[member.order]))
            for member, c in zip(members, counts, strict=True)
        ]
        return min(float(np.mean(values)), largest_value(estimator))
    pairs = zip(members, chances, strict=True)
    return float(np.mean([estimator.values(member.plan, Chances(q))[0] for member, q in pairs]))
