"""Direction: the parts of an error by over-confidence and under-confidence."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, NamedTuple, Unpack

import numpy as np

from fastece.data.errors import InputTypeError
from fastece.data.options import shows_options
from fastece.data.table import SQUARES
from fastece.display.documents import Document, Section, Table
from fastece.display.numbers import ConfidenceInterval, Number, outside_text
from fastece.display.results import Result, group_notes, sample_text
from fastece.inference.cell_curves import cell_curve, one_sided_curve
from fastece.inference.estimate import (
    INVERSION,
    POSTERIOR,
    gap_cells,
    groups_of_samples,
)
from fastece.inference.inversion import NO_CURVE
from fastece.inference.mean_gap import mean_gap
from fastece.inference.results import intervals_of
from fastece.resampling.arguments import ResamplingKeywords, add_groups, check_single, read_call
from fastece.resampling.calibration_test import has_cells
from fastece.resampling.call import Call, average_classes, calls_on_problems
from fastece.resampling.draws import new_key
from fastece.resampling.intervals import as_float
from fastece.resampling.naming import describe


class PartFields(NamedTuple):
    """A row of the table of parts: the fields of a `Direction` that it shows.

    Attributes
    ----------
    value, interval : str
        Names of the fields of the number and of its interval.
    meaning : str
        A description for readers.
    """

    value: str
    interval: str
    meaning: str


# The rows of the printed table by their names.
PARTS = {
    "error": PartFields("value", "confidence_interval", "of all scores"),
    "over": PartFields("over", "over_interval", "of scores above the observed frequency"),
    "under": PartFields("under", "under_interval", "of scores below the observed frequency"),
    "mean gap": PartFields("mean_gap", "mean_gap_interval", "observed frequency minus mean score"),
}


@dataclass(frozen=True, eq=False, kw_only=True)
class Direction(Result):
    """Calibration error in two parts: over-confidence and under-confidence.

    Attributes
    ----------
    value : float or (K,) float64 array
        The error: the value of `fastece.ece`.
    over, under : float or (K,) float64 array
        The contribution of scores above the observed frequency, and the contribution of scores
        below it. They add up to `value` with the norm 1; with the norm p, their p-th powers add up
        to its p-th power.
    mean_gap : float or (K,) float64 array
        Observed frequency minus mean score: "calibration in the large". Below 0, scores are too
        high.
    confidence_interval, over_interval, under_interval : ConfidenceInterval or None
        ``(low, high)`` of the error and of its parts at `confidence_level`; None without
        replicates.
    mean_gap_interval : ConfidenceInterval
    confidence_level : float
    method : {"posterior", "test inversion"}
        The method of the first three intervals.
    verdict : str or list of K str
        The parts whose interval excludes 0: "over-confident", "under-confident", "both" or
        "unclear". A property.
    error, error_interval
        Other names of `value` and `confidence_interval`.
    n, estimator, setting : int, str, str
        Rows of positive weight, the estimator with its parameters, and the setting that was used.
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
    _names: Sequence[str] = field(repr=False, default=())  # of problems, other than classes

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
            has_part = np.zeros(np.shape(self.value), bool)
            return np.where(has_part, "", "unclear").tolist()
        is_over = np.asarray(self.over_interval.low) > 0
        is_under = np.asarray(self.under_interval.low) > 0
        cases = [is_over & is_under, is_over, is_under]
        return np.select(cases, ["both", "over-confident", "under-confident"], "unclear").tolist()

    def document(self) -> Document:
        """Describe the error and its parts: a row for each part, or for each class."""
        title = f"{self.estimator}, setting {self.setting}: {sample_text(self)}"
        section = self._class_section() if np.ndim(self.value) else self._part_section()
        return Document(title, sections=[section])

    def _class_section(self) -> Section:
        """Make the table of all classes, without intervals."""
        columns = [getattr(self, part.value) for part in PARTS.values()]
        names = self._names or range(len(self.value))
        rows = list(zip(names, *columns, self.verdict, strict=True))
        return Section(table=Table(("class", *PARTS, "verdict"), rows), notes=self.notes)

    def _part_section(self) -> Section:
        """Make the table of the parts of one error, with the verdict below."""
        rows = []
        for name, part in PARTS.items():
            value = getattr(self, part.value)
            interval = getattr(self, part.interval)
            meaning = "; ".join(filter(None, [part.meaning, outside_text(value, interval)]))
            rows.append((name, Number(value, interval), interval, meaning))
        head = ("part", "value", f"{100 * self.confidence_level:g} % CI", "")
        columns = ("part", "value", "confidence_interval", "meaning")
        notes = list(self.notes)
        if self.confidence_interval is not None:
            notes.insert(0, f"Verdict: {self.verdict}. Intervals by {self.method}.")
        return Section(table=Table(head, rows, columns), notes=notes)


# --- values and intervals of both parts -----------------------------------------------------


class Parts(NamedTuple):
    """Values and intervals of an error, its over part and its under part.

    Attributes
    ----------
    values : sequence of float or (K,) float64 array
    intervals : sequence of ConfidenceInterval or None
    method : {"posterior", "test inversion"}
    """

    values: Sequence[Any]
    intervals: Sequence[ConfidenceInterval | None]
    method: str


def error_parts(call: Call, estimator: Any, key: int, gap: ConfidenceInterval) -> Parts:
    """Compute the parts of the error of an estimator, for the only model of a call.

    Draws depend on the key; `gap` is the interval of the mean gap.
    """
    if estimator.posterior_parts is not None:
        return parts_by_posterior(call, estimator, gap)
    if estimator.parts is None or not estimator.is_norm_of_gaps:
        rule = "must be bins, a density of an even kernel or a BayesCurve, which have gaps"
        raise InputTypeError("estimator", rule, value=estimator)
    return parts_by_inversion(call, estimator, key)


def parts_by_posterior(call: Call, estimator: Any, gap: ConfidenceInterval) -> Parts:
    """Measure the parts by posteriors, except for their lower ends.

    Drawn curves cross the diagonal here and there even where the true curve does not, so they do
    not show that there is a part at all. The mean gap shows it: with every norm, ``over >= -gap``
    and ``under >= gap``.
    """
    posteriors_of_samples = [
        estimator.posterior_parts(samples, call.design_effect)
        for samples in groups_of_samples(call, estimator)
    ]
    values = []
    intervals = []
    for posteriors in zip(*posteriors_of_samples, strict=True):  # the error, over, under
        means = [posterior.value for posterior in posteriors]
        values.append(as_float(means if call.per_class else means[0]))
        intervals.append(intervals_of(posteriors, call.level, call.per_class))
    lowest_over = -np.asarray(gap.high)
    lowest_under = np.asarray(gap.low)
    for i, lowest in ((1, lowest_over), (2, lowest_under)):
        low = as_float(np.clip(lowest, 0.0, values[i]))
        intervals[i] = ConfidenceInterval(low, intervals[i].high)
    return Parts(values, intervals, POSTERIOR)


def parts_by_inversion(call: Call, estimator: Any, key: int) -> Parts:
    """Compute the parts of a norm of gaps, with intervals by test inversion."""
    values_of_parts = estimator.parts(call.tables[0])
    values = [as_float(average_classes(call, value)) for value in values_of_parts]
    if not call.n_resamples:
        return Parts(values, [None] * 3, INVERSION)
    table = call.tables[0]
    if table.stream is not None and not has_cells(estimator):
        raise table.lack(f"the interval of {describe(estimator)}", "n_resamples")
    cells = gap_cells(call, estimator, key).split(call.per_class)
    curves = []
    for cells_of_value, value in zip(cells, np.atleast_1d(values[0]), strict=True):
        if np.isnan(value):
            curves.append([NO_CURVE] * 3)
            continue
        over_curve = one_sided_curve(cells_of_value, -1)
        under_curve = one_sided_curve(cells_of_value, 1)
        curves.append([cell_curve(cells_of_value), over_curve, under_curve])
    curves_of_parts = zip(*curves, strict=True)
    intervals = [intervals_of(column, call.level, call.per_class) for column in curves_of_parts]
    return Parts(values, intervals, INVERSION)


# --- the call -------------------------------------------------------------------------------


def direction_of(call: Call, key: int) -> Direction:
    """Compute the direction of the only model of a call with one estimator."""
    table = call.tables[0]
    if table.has_own_rows:
        if not call.per_class:
            raise table.lack("the mean of directions")
        return direction_of_each(call, key)
    (estimator,) = call.estimators.values()
    samples = table.with_content(SQUARES, "estimator", "direction").samples(reads_only=True)
    gap, gap_interval = mean_gap(samples, call.design_effect, call.per_class, call.level)
    parts = error_parts(call, estimator, key, gap_interval)
    intervals = parts.intervals
    if call.dependence is not None and estimator.bounds_mean_gap:
        intervals = reach_mean_gap(intervals, gap_interval)
    error_interval, over_interval, under_interval = intervals
    error_interval = raise_to_parts(error_interval, over_interval, under_interval)
    error, over, under = parts.values
    return Direction(
        value=error,
        over=over,
        under=under,
        mean_gap=gap,
        confidence_interval=error_interval,
        over_interval=over_interval,
        under_interval=under_interval,
        mean_gap_interval=gap_interval,
        confidence_level=call.level,
        method=parts.method,
        n=call.n,
        estimator=describe(estimator),
        setting=call.setting,
        n_groups=call.n_groups,
    )


def direction_of_each(call: Call, key: int) -> Direction:
    """Compute the direction of each of several problems with rows of their own."""
    directions = [direction_of(part, key) for part in calls_on_problems(call)]

    def column(name: str) -> Any:
        """Return the numbers or the intervals of all problems."""
        values = [getattr(result, name) for result in directions]
        if isinstance(values[0], ConfidenceInterval):
            return ConfidenceInterval(*np.transpose(values))
        return None if values[0] is None else np.array(values)

    names = {name for part in PARTS.values() for name in (part.value, part.interval)}
    return replace(
        directions[0],
        **{name: column(name) for name in names},
        n=call.n,
        setting=call.setting,
        n_groups=call.n_groups,
        _names=call.tables[0].problem_names,
    )


def reach_mean_gap(
    intervals: Sequence[ConfidenceInterval | None], gap: ConfidenceInterval
) -> list[ConfidenceInterval | None]:
    """Extend intervals to the mean gaps that are not excluded.

    With dependent rows the interval of the mean gap may be wider, and neither the error nor the
    part on its side may be less than the mean gap.
    """
    lowest = (np.maximum(-gap.low, gap.high), -gap.low, gap.high)
    return [
        None if interval is None else interval.reaching(end)
        for interval, end in zip(intervals, lowest, strict=True)
    ]


def raise_to_parts(
    interval: ConfidenceInterval | None, *intervals_of_parts: ConfidenceInterval | None
) -> ConfidenceInterval | None:
    """Raise the interval of the error to the lower ends of its parts.

    With every norm, no part exceeds the error. An interval that begins at 0 stays, since three
    intervals have three chances to miss: 11 % of calibrated samples would exclude 0, not 5.
    """
    if interval is None:
        return None
    lows = [part.low for part in intervals_of_parts if part is not None]
    raised = np.maximum.reduce([interval.low, *lows])
    low = as_float(np.where(np.asarray(interval.low) > 0, raised, interval.low))
    return ConfidenceInterval(low, as_float(np.maximum(interval.high, low)))


@shows_options
def direction(
    y_true: Any, y_prob: Any = None, *, estimator: Any = "ece", n_resamples: int = 1999,
    average: Literal["macro"] | None = "macro", rng: Any = 0, groups: Any = None,
    **options: Unpack[ResamplingKeywords],
) -> Direction:  # fmt: skip
    """Measure over- and under-confidence: scores above or below observed frequencies.

    Parameters
    ----------
    y_true, y_prob, average, **options
        As in `fastece.estimate`, with the same defaults; the settings "tasks" and "top-label" go
        with ``average=None``.
    estimator : str, Binned, KDE or BayesCurve, default "ece"
        An estimator with gaps; beta kernels have none. Or an object of your own with a method
        `posterior_parts`.
    n_resamples : int, default 1999
        Number of replicates of a calibrated model; with 0, bins and densities have values without
        intervals. A `BayesCurve` needs none.
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
    norm of the gaps of one sign. The parts of a density are the integrals over scores with
    ``g < s f`` and with ``g > s f``; the parts of a `BayesCurve` are the posterior means of
    ``E max(s - c(s), 0)`` and ``E max(c(s) - s, 0)``. The mean gap is
    ``sum_i w_i (y_i - s_i) / W``, whose mean over all classes is 0. The words are made for top
    labels: in the setting "binary", "over" means that the event is rarer than its probability.

    `confidence_interval` is the interval of `fastece.estimate`. Where it excludes 0 it begins no
    lower than the intervals of the parts, since no part exceeds the error. The parts have a kink at
    0 too, so their intervals come from the same test inversion, on gaps of one sign; gaps that are
    more than 2.5 standard errors on the other side are taken as they are. At 0 each part takes half
    of the risk, so that the verdict names a part for about 5 % of calibrated models. The posterior
    of a `BayesCurve` gives the high ends. Its low ends are 0 or, where these are larger, ``-high``
    and ``low`` of the mean gap, since no part can be below it. The mean gap has Wilson's interval
    (1927, "Probable inference, the law of succession, and statistical inference"), extended to
    scores that differ; the mean over classes has the mean of the ends. See
    ``docs/how_to/report.md``.

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
    call = read_call(
        "direction", y_true, {"y_prob": y_prob}, 0, estimator=estimator, n_resamples=n_resamples,
        average=average, **options,
    )  # fmt: skip
    call = add_groups(call, groups, y_prob)
    return direction_of(call, new_key(rng))
