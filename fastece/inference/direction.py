"""Direction: the parts of an error by over-confidence and under-confidence."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import singledispatch
from typing import Any, ClassVar, NamedTuple

import numpy as np

from fastece.data.errors import InputTypeError
from fastece.data.samples import Sample
from fastece.data.sources import SQUARES, need_rows
from fastece.display.documents import Document, Section, Table
from fastece.display.numbers import ConfidenceInterval, Number
from fastece.display.results import Result, group_notes, sample_text
from fastece.estimators.bayes.estimator import BayesCurve
from fastece.estimators.bayes.posterior import side_posteriors
from fastece.estimators.binned import Binned
from fastece.estimators.density.estimator import KDE
from fastece.inference.binned_cells import binned_cells
from fastece.inference.cell_curves import cell_curve, one_sided_curve
from fastece.inference.estimate import (
    INVERSION,
    POSTERIOR,
    bounds_mean_gap,
    cell_maker,
    groups_of_samples,
)
from fastece.inference.inversion import NO_CURVE
from fastece.inference.mean_gap import mean_gap
from fastece.inference.results import intervals_of
from fastece.kernels.types import F64
from fastece.resampling.arguments import add_groups, check_single, read_call
from fastece.resampling.call import Call, average_classes
from fastece.resampling.draws import new_key
from fastece.resampling.intervals import as_float
from fastece.resampling.naming import describe

# Each part with its interval, and what it is.
PARTS = {
    "error": ("value", "confidence_interval", "of all scores"),
    "over": ("over", "over_interval", "of scores above the observed frequency"),
    "under": ("under", "under_interval", "of scores below the observed frequency"),
    "mean gap": ("mean_gap", "mean_gap_interval", "observed frequency minus mean score"),
}


@dataclass(frozen=True, eq=False, kw_only=True)
class Direction(Result):
    """Calibration error in two parts: over-confidence and under-confidence.

    Attributes
    ----------
    value : float or (K,) float64 array
        The error: the value of `fastece.ece`.
    over, under : float or (K,) float64 array
        The part of it that scores above their hit rate have, and that of those below: they add up
        to `value` with the norm 1, their p-th powers to its p-th power with the norm p.
    mean_gap : float or (K,) float64 array
        Hit rate minus mean score: "calibration in the large". Below 0, scores are too high.
    confidence_interval, over_interval, under_interval : ConfidenceInterval or None
        ``(low, high)`` of the error and of its parts at `confidence_level`; None without
        replicates.
    mean_gap_interval : ConfidenceInterval
    confidence_level : float
    method : {"posterior", "test inversion"}
        Of the first three intervals.
    verdict : str or list of K of them
        Which parts have an interval that leaves out 0: "over-confident", "under-confident", "both"
        or "unclear". A property.
    error, error_interval
        Other names of `value` and `confidence_interval`.
    n, estimator, setting : int, str, str
        Rows of positive weight, the estimator with its parameters, and what "auto" stood for.
    n_groups, notes : int or None, list of str
        Number of groups, and sentences that stand below the numbers.
    """

    value: Any
    over: Any
    under: Any
    mean_gap: Any
    confidence_interval: ConfidenceInterval | None
    over_interval: ConfidenceInterval | None
    under_interval: ConfidenceInterval | None
    mean_gap_interval: ConfidenceInterval
    confidence_level: float
    method: str
    n: int
    estimator: str
    setting: str
    n_groups: int | None = None

    _derived: ClassVar[tuple[str, ...]] = ("verdict", "notes")

    @property
    def notes(self) -> list[str]:
        """Sentences that stand below the numbers."""
        return group_notes(self.n_groups)

    @property
    def error(self) -> Any:
        """Error, which is the headline number `value`."""
        return self.value

    @property
    def error_interval(self) -> ConfidenceInterval | None:
        """Interval of the error, which is `confidence_interval`."""
        return self.confidence_interval

    @property
    def verdict(self) -> Any:
        """Direction of the error, as far as the intervals of its parts show it."""
        if self.over_interval is None or self.under_interval is None:
            sure = [np.zeros(np.shape(self.value), bool)] * 2
        else:
            sure = [np.asarray(x.low) > 0 for x in (self.over_interval, self.under_interval)]
        words = np.array([["unclear", "under-confident"], ["over-confident", "both"]])
        return words[sure[0].astype(int), sure[1].astype(int)].tolist()

    def document(self) -> Document:
        """Describe the error and its parts: a row for each part, or for each class."""
        title = f"{self.estimator}, setting {self.setting}: {sample_text(self)}"
        if np.ndim(self.value):
            values = [getattr(self, field) for field, _, _ in PARTS.values()]
            lines = [(k, *row) for k, row in enumerate(zip(*values, self.verdict, strict=True))]
            table = Table(("class", *PARTS, "verdict"), lines)
            return Document(title, sections=[Section(table=table, notes=self.notes)])
        rows = []
        for name, (field, ends, meaning) in PARTS.items():
            interval = getattr(self, ends)
            rows.append((name, Number(getattr(self, field), interval), interval, meaning))
        head = ("part", "value", f"{100 * self.confidence_level:g} % CI", "")
        has_intervals = self.confidence_interval is not None
        notes = [f"Verdict: {self.verdict}. Intervals by {self.method}."] * has_intervals
        notes += self.notes
        table = Table(head, rows, ("part", "value", "confidence_interval", "meaning"))
        return Document(title, sections=[Section(table=table, notes=notes)])


# --- values and intervals of both parts -----------------------------------------------------


class Parts(NamedTuple):
    """Values and intervals of an error, its over part and its under part."""

    values: Sequence[Any]
    intervals: Sequence[ConfidenceInterval | None]
    method: str


@singledispatch
def error_parts(estimator: Any, call: Call, key: int, gap: ConfidenceInterval) -> Parts:  # noqa: ARG001
    """Compute the parts of the error of an estimator, for the only model of a call.

    Draws depend on the key; `gap` is the interval of the mean gap.
    """
    rule = "must be bins, a density of an even kernel or a BayesCurve, which have gaps"
    raise InputTypeError("estimator", rule, value=estimator)


@error_parts.register
def _(estimator: Binned, call: Call, key: int, gap: ConfidenceInterval) -> Parts:
    bins = estimator.bins(call.sources[0])
    gaps = (bins.gap, np.minimum(bins.gap, 0.0), np.maximum(bins.gap, 0.0))
    values = [estimator.errors(bins._replace(gap=x)) for x in gaps]
    return cell_parts(call, estimator, key, gap, values)


@error_parts.register
def _(estimator: KDE, call: Call, key: int, gap: ConfidenceInterval) -> Parts:
    (data,) = call.sources
    values = [density_values(estimator, sample, data.count()) for sample in data.samples()]
    return cell_parts(call, estimator, key, gap, [*np.transpose(values)])


@error_parts.register
def _(estimator: BayesCurve, call: Call, key: int, gap: ConfidenceInterval) -> Parts:  # noqa: ARG001
    """Measure the parts by the posterior, but for their lower ends.

    Drawn curves cross the diagonal here and there even where the true one does not, so they do not
    show that there is a part at all. The mean gap does: with every norm, ``over >= -gap`` and
    ``under >= gap``.
    """
    per_class, norm, effect = call.per_class, estimator.norm, call.design_effect
    parts = [side_posteriors(x, norm, effect) for x in groups_of_samples(call, estimator)]
    columns = [*zip(*parts, strict=True)]
    values = [[posterior.value for posterior in column] for column in columns]
    values = [as_float(value if per_class else value[0]) for value in values]
    found = [intervals_of(column, call.level, per_class) for column in columns]
    for i, sure in ((1, -np.asarray(gap.high)), (2, np.asarray(gap.low))):
        low = as_float(np.clip(sure, 0.0, values[i]))
        found[i] = ConfidenceInterval(low, found[i].high)
    return Parts(values, found, POSTERIOR)


def density_values(kde: KDE, sample: Sample, n: int) -> F64:
    """Compute the error of a density, and its parts over and under (3,)."""
    density = kde.prepare(sample, n).density(sample.c)
    hits = density.values[:, 1].copy()
    expected = density.mesh.score[:, None] * density.values[:, 0]
    found = []
    for g in (hits, np.minimum(hits, expected), np.maximum(hits, expected)):
        density.values[:, 1] = g
        found.append(kde.error(density))
    # Between two points of which one is over and one under, the rule of the whole knows where the
    # gap is 0, and that of a part does not.
    whole, *parts = found
    top = max(parts)
    total = top * float(np.linalg.norm(np.array(parts) / top, kde.norm)) if top > 0 else 1.0
    return np.array([whole, *(part * whole / total for part in parts)])


def cell_parts(
    call: Call, estimator: Any, key: int, gap: ConfidenceInterval, each: Sequence[F64]
) -> Parts:
    """Compute the parts of a norm of gaps, with intervals by test inversion.

    `each` has the values for each problem.
    """
    make_cells, per_class = cell_maker(estimator), call.per_class
    if make_cells is None:
        return error_parts.dispatch(object)(estimator, call, key, gap)
    values = [as_float(average_classes(call, value)) for value in each]
    if not call.n_resamples:
        return Parts(values, [None] * 3, INVERSION)
    if make_cells is not binned_cells:
        need_rows(call.sources[0], f"the interval of {describe(estimator)}", "n_resamples")
    cells = make_cells(call, estimator, key).split(per_class)
    curves = [
        [NO_CURVE] * 3 if np.isnan(value)
        else [cell_curve(part), one_sided_curve(part, -1), one_sided_curve(part, 1)]
        for part, value in zip(cells, np.atleast_1d(values[0]), strict=True)
    ]  # fmt: skip
    columns = zip(*curves, strict=True)
    intervals = [intervals_of(column, call.level, per_class) for column in columns]
    return Parts(values, intervals, INVERSION)


# --- the call -------------------------------------------------------------------------------


def direction_of(call: Call, key: int) -> Direction:
    """Compute the direction of the only model of a call with one estimator."""
    (estimator,) = call.estimators.values()
    samples = call.sources[0].samples(SQUARES, True)
    gap, gap_ends = mean_gap(samples, call.design_effect, call.per_class, call.level)
    parts = error_parts(estimator, call, key, gap_ends)
    (error, over, under), intervals = parts.values, parts.intervals
    if call.dependence is not None and bounds_mean_gap(estimator):
        # No part may be less than the gaps that are not excluded.
        least = (np.maximum(-gap_ends.low, gap_ends.high), -gap_ends.low, gap_ends.high)
        intervals = [x and x.reaching(y) for x, y in zip(intervals, least, strict=True)]
    whole, *sides = intervals
    if whole is not None:
        # With every norm, no part exceeds the error. An interval that begins at 0 stays, since
        # three have three chances to miss: of calibrated samples 11 % would leave 0 out, not 5.
        raised = np.maximum.reduce([whole.low, *(side.low for side in sides if side is not None)])
        low = as_float(np.where(np.asarray(whole.low) > 0, raised, whole.low))
        whole = ConfidenceInterval(low, as_float(np.maximum(whole.high, low)))
    return Direction(
        value=error, over=over, under=under, mean_gap=gap, confidence_interval=whole,
        over_interval=sides[0], under_interval=sides[1], mean_gap_interval=gap_ends,
        confidence_level=call.level, method=parts.method, n=call.n,
        estimator=describe(estimator), setting=call.setting, n_groups=call.n_groups,
    )  # fmt: skip


def direction(
    y_true: Any, y_prob: Any = None, *, estimator: Any = "ece", n_resamples: int = 1999,
    rng: Any = 0, groups: Any = None, **options: Any,
) -> Direction:  # fmt: skip
    """Measure over- and under-confidence: scores above or below their hit rates.

    Parameters
    ----------
    y_true, y_prob, **options
        As in `fastece.estimate`, with the same defaults.
    estimator : str, Binned, KDE or BayesCurve, default "ece"
        An estimator that tells gaps; not one with beta kernels.
    n_resamples : int, default 1999
        Number of replicates of a calibrated model; with 0, bins and densities have values alone. A
        `BayesCurve` needs none.
    rng : None, int or numpy.random.Generator, default 0
        Seed: the same seed gives the same result. None: other draws in every call.
    groups : (n,) array_like, optional
        As in `fastece.estimate`.

    Returns
    -------
    Direction

    Raises
    ------
    ValueError, TypeError
        As in `fastece.ece`; for a list of estimators, or one without gaps.

    Notes
    -----
    With the gaps ``D_b = sum_i w_i a_ib (y_i - s_i)`` of `Binned`, the parts are
    ``over = sum_b max(-D_b, 0) / W`` and ``under = sum_b max(D_b, 0) / W``; with another norm, that
    norm of the gaps of one sign. Of a density they are the integrals where ``g < s f`` and where
    ``g > s f``, of a `BayesCurve` the posterior means of ``E max(s - c(s), 0)`` and
    ``E max(c(s) - s, 0)``. The mean gap is ``sum_i w_i (y_i - s_i) / W``; the mean of that over all
    classes is 0. The words are those of top labels: in the setting "binary", "over" says that the
    event is rarer than its probability.

    `confidence_interval` is that of `fastece.estimate`; where it leaves out 0 it begins no lower
    than those of the parts, none of which exceeds the error. The parts have a kink at 0 too, so
    their intervals come from the same test inversion, on gaps of one sign; gaps that are more than
    2.5 standard errors on the other side are taken as they are. At 0 each part takes half of the
    risk, so that of calibrated models the verdict names a part in about 5 %. Of a `BayesCurve` the
    high ends are those of the posterior. The low ends are 0 or, where that is more, ``-high`` and
    ``low`` of the mean gap, which no part can be below. The interval of the mean gap is Wilson's
    (1927, "Probable inference, the law of succession, and statistical inference") for scores that
    differ; the mean over classes has the mean of the ends. See ``docs/direction.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from fastece import direction
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(1000)
    >>> print(direction(rng.random(1000) < p**1.3, p))
    Binned(n_bins=15), setting binary: 1000 rows
      part       value           95 % CI
      error      0.060    [0.018, 0.081]  of all scores
      over       0.055    [0.018, 0.079]  of scores above the observed frequency
      under      0.004        [0, 0.018]  of scores below the observed frequency
      mean gap  -0.051  [-0.078, -0.025]  observed frequency minus mean score
      Verdict: over-confident. Intervals by test inversion.
    """
    check_single(estimator)
    options |= {"estimator": estimator, "n_resamples": n_resamples}
    call = read_call("direction", y_true, {"y_prob": y_prob}, 0, **options)
    call = add_groups(call, groups, y_prob)
    return direction_of(call, new_key(rng))
