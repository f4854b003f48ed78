"""Reliability diagrams: the mean score and the observed frequency of each bin."""

import math
from abc import abstractmethod
from dataclasses import dataclass, field, replace
from functools import singledispatch
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np

from fastece.data.errors import InputError, InputTypeError
from fastece.data.parameters import check_jobs
from fastece.data.reading import read_source
from fastece.data.sources import Source
from fastece.data.threads import Map, with_threads
from fastece.display.documents import Document, Section, Table
from fastece.display.marks import BinDrawing
from fastece.display.numbers import ConfidenceInterval, Number
from fastece.display.pictures import plot_result
from fastece.display.results import Result
from fastece.estimators.binned import Binned, Bins
from fastece.estimators.binomial import binomial_ends
from fastece.estimators.table import find_estimator
from fastece.kernels.types import F64
from fastece.resampling.intervals import check_level, tails_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from fastece.resampling.calibration_test import ConsistencyBand

# Larger weights are not written with all their digits.
WHOLE = 1e15


@dataclass(frozen=True, eq=False)
class Plottable(Result):
    """A result that draws observed frequencies over scores."""

    def _fields(self: Any, *more: str) -> dict[str, Any]:
        """Return the fields that every picture shows, and some more, by name."""
        names = ("estimator", "setting", "value", "score", *more)
        return {name: getattr(self, name) for name in names}

    @abstractmethod
    def drawing(self, band: Any = True) -> Any:
        """Return the numbers to draw, with intervals or without."""

    def plot(
        self, ax: "Axes | None" = None, *, color: Any = None, label: str | None = None,
        legend: bool = True, band: "ConsistencyBand | bool | None" = True,
        zoom: float | None = None,
    ) -> "Axes":  # fmt: skip
        """Draw the observed frequency over the score; needs matplotlib.

        The area of a point grows with the rows of its bin; bins of fewer than 20 rows are hollow.
        A curve has the density beside it. It is left out where it has no support, and where its
        kernel averages over fewer than five rows; a hatch marks such scores if the axes have no
        other curve. A second model on the same axes has the next colour, another shape of points or
        of lines, and an outline for its occupancy.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw. Without it, on a new figure; where more than half of the rows have scores
            within 0.05 of 0 or 1, other axes beside show the same over log odds.
        color : color, optional
            By default the next one of the axes.
        label : str, optional
            Name of the model in the legend.
        legend : bool, default True
            Whether there is a legend: beside the axes, or below their labels.
        band : bool or ConsistencyBand, default True
            Whether to draw the intervals (`interval`), and of a curve the median of resamples. The
            band of `fastece.calibration_test` for the bins of a diagram adds a bar in each, where
            the frequency of a calibrated model is to be expected; intervals then have its level.
        zoom : float, optional
            Where new axes end. None: at 1, and just beyond the largest score if that is below 0.3.

        Returns
        -------
        matplotlib Axes

        Raises
        ------
        ValueError, TypeError
            For a band of other bins, a legend that is neither True nor False, or another `zoom`
            than above 0 and up to 1.
        """
        return plot_result(self, ax, color=color, label=label, legend=legend, band=band, zoom=zoom)


@dataclass(frozen=True, eq=False)
class ReliabilityDiagram(Plottable):
    """Bins of the score with their mean scores and their observed frequencies.

    Attributes
    ----------
    edges : (B + 1,) float64 array
    count : (B,) float64 array
        Weight ``W_b`` of each bin; the number of rows without sample weights.
    score : (B,) float64 array
        Mean score of each bin, nan where it is empty.
    frequency : (B,) float64 array
        Weighted share of rows in each bin whose event occurred, nan where it is empty.
    gap : (B,) float64 array
        ``frequency - score``: above 0 the classifier is under-confident.
    value : float
        The calibration error that the bins add up to.
    estimator, setting : str
        The estimator with its parameters, and the setting it used: "binary", "confidence" or
        "class k", with the label if the classes have labels.
    closed : str
        Side on which the bins are closed, "right" or "left".
    rows : (B,) float64 array
        How many rows of equal weight each bin is worth: ``(sum w a)^2 / sum w^2 a`` with the share
        a of each row, 1 in hard bins (Kish 1965, "Survey sampling", section 11.7). Without sample
        weights, `count`.
    floor : float
        Mean error of a calibrated model, by chance alone, where the error is the mean gap of bins.
    """

    edges: F64
    count: F64
    score: F64
    frequency: F64
    gap: F64
    value: float
    estimator: str
    setting: str
    closed: str
    rows: F64
    _binned: Binned | None = field(repr=False, default=None)

    _derived = ("floor",)

    @property
    def _is_mean(self) -> bool:
        """Whether the error is the mean gap of bins, by their weight."""
        plain: Any = {"n_bins": 15, "edges": "uniform", "closed": "right", "score_range": "unit"}
        return self._binned is not None and replace(self._binned, **plain) == Binned()

    @property
    def floor(self) -> float:
        """Mean error of a calibrated model with these bins; nan of other norms.

        The hits of a bin are binomial, as they are of equal scores: of n rows with the score s,
        ``E|X - n s| = 2 m C(n, m) s^m (1 - s)^(n - m + 1)`` with m = floor(n s) + 1 (de Moivre
        1730, "Miscellanea analytica").
        """
        from scipy.special import gammaln, xlog1py, xlogy

        n, s = np.maximum(np.rint(self.rows), 1.0), np.nan_to_num(self.score).clip(0.0, 1.0)
        m = np.floor(n * s) + 1
        log_size = gammaln(n + 1) - gammaln(m) - gammaln(n - m + 1)
        size = 2 * np.exp(log_size + xlogy(m, s) + xlog1py(n - m + 1, -s)) / n
        return float(np.average(size, weights=self.count)) if self._is_mean else math.nan

    def interval(self, confidence_level: float = 0.95) -> ConfidenceInterval:
        """Compute intervals ``(low, high)`` of the frequencies (B,), nan in empty bins.

        They are the intervals of Clopper and Pearson (1934, "The use of confidence or fiducial
        limits illustrated in the case of the binomial") at a level between 0 and 1. Their coverage
        is at least the level, however few the rows are::

            low = Beta(h, m + 1) at (1 - level) / 2,  high = Beta(h + 1, m) at (1 + level) / 2

        with the hits ``h = rows * frequency`` and the misses ``m = rows - h``; 0 without hits and 1
        without misses. With weights `rows` is Kish's number (Korn and Graubard 1998, "Confidence
        intervals for proportions with small expected number of positive counts estimated from
        survey data").

        Examples
        --------
        >>> from fastece import reliability_diagram
        >>> diagram = reliability_diagram([0, 0, 1, 1], [0.2, 0.4, 0.6, 1.0], n_bins=2)
        >>> low, high = diagram.interval(0.95)
        >>> low.round(3), high.round(3)
        (array([0.   , 0.158]), array([0.842, 1.   ]))
        """
        tails = tails_of(check_level(confidence_level))
        rate = self.frequency.clip(0.0, 1.0)  # rounding
        return ConfidenceInterval(*binomial_ends(self.rows * rate, self.rows * (1 - rate), *tails))

    def document(self) -> Document:
        """Describe the bins as a table."""
        title = f"{self.estimator}, setting {self.setting}: calibration error {self.value:.5f}"
        title += f", by chance alone {self.floor:.5f}" if self._is_mean else ""
        return Document(title, sections=[Section(table=self.table())])

    def pool(self, most: int) -> "ReliabilityDiagram":
        """Put neighbouring bins together until there are at most `most`."""
        first = np.arange(0, self.count.size, math.ceil(self.count.size / most))
        sums: Any = {x: np.add.reduceat(getattr(self, x), first) for x in ("count", "rows")}
        for x in ("score", "frequency", "gap"):
            total = np.add.reduceat(np.nan_to_num(getattr(self, x)) * self.count, first)
            sums[x] = total / np.where(sums["count"] > 0, sums["count"], np.nan)
        return replace(self, edges=self.edges[[*first, -1]], _binned=None, **sums)

    def table(self, width: int = 30) -> Table:
        """Describe each bin that holds rows, and empty neighbours together.

        The bar is the occupancy, full for the fullest bin. Rows with weights have their weight.
        """
        count = self.count
        starts = [b for b in range(count.size) if b == 0 or count[b] > 0 or count[b - 1] > 0]
        is_whole = np.array_equal(count, np.rint(count)) and count.max() < WHOLE
        columns = {
            "count": ".0f" if is_whole else ".7g",
            "score": ".4f",
            "frequency": ".4f",
            "gap": "+.4f",
        }
        rows = []
        for b, name in zip(starts, self._bin_names([*starts, count.size]), strict=True):
            numbers = [Number(getattr(self, x)[b], form=form) for x, form in columns.items()]
            rows.append((name, *numbers, "#" * math.ceil(width * count[b] / count.max())))
        amount = "rows" if np.array_equal(self.rows, count) else "weight"
        return Table(["bin", amount, "score", "frequency", "gap", ""], rows)

    def _bin_names(self, cuts: list[int]) -> list[str]:
        """Name the intervals between some of the edges."""
        decimals = 3 if self.count.size <= 100 else 6
        edges = [f"{edge:.{decimals}f}" for edge in self.edges[cuts]]
        names = [f"{low}, {high}" for low, high in pairwise(edges)]
        if self.closed == "left":
            return [f"[{name})" for name in names[:-1]] + [f"[{names[-1]}]"]
        return [f"[{names[0]}]"] + [f"({name}]" for name in names[1:]]

    def _columns(self) -> dict[str, Any]:
        names = ("count", "score", "frequency", "gap", "rows")
        ends = {"low": self.edges[:-1], "high": self.edges[1:]}
        return {**ends, **{name: getattr(self, name) for name in names}}

    def drawing(self, band: Any = True) -> BinDrawing:
        """Return the bins to draw, with intervals or the band of a test."""
        level = getattr(band, "confidence_level", 0.95)
        has_band = hasattr(band, "low")
        if has_band and not np.array_equal(np.isfinite(band.low), self.count > 0):
            filled, known = np.count_nonzero(self.count), np.count_nonzero(np.isfinite(band.low))
            rule = f"must have the bins of the diagram: {self.count.size}, {filled} with rows"
            raise InputError("band", f"{rule}; got {band.low.size}, {known} with rows")
        low, high = self.interval(level) if band else (None, None)
        fields = self._fields("frequency", "edges", "rows")
        fields["interval_name"] = f"{100 * level:g} % CI"
        fields["band_name"] = f"{100 * level:g} % if calibrated"
        ends = (band.low, band.high) if has_band else None
        return BinDrawing(**fields, weight=self.count, low=low, high=high, band=ends)


@singledispatch
def diagrams_of(estimator: Any, source: Source, run: Map = map) -> list[ReliabilityDiagram]:  # noqa: ARG001
    """Make one diagram for each problem."""
    raise InputTypeError("estimator", "a reliability diagram needs bins", value=estimator)


@diagrams_of.register
def binned_diagrams(estimator: Binned, source: Source, run: Map = map) -> list[ReliabilityDiagram]:
    """Make one diagram of bins for each problem."""
    sums, names = estimator.bins(source, run), [source.name(k) for k in range(source.n_problems)]
    return diagrams_from(estimator, sums, estimator.effective_rows(source, sums), names)


def diagrams_from(
    estimator: Binned, sums: Bins, rows: F64, names: list[str]
) -> list[ReliabilityDiagram]:
    """Make the diagram of each problem from its bins, and their effective rows (K, B)."""
    # Empty bins have no mean, and weights that add up beyond float64 are an infinite count.
    with np.errstate(invalid="ignore", over="ignore"):
        score, frequency = sums.score / sums.weight, sums.hits / sums.weight
        count = sums.weight * sums.unit
    values, gap = estimator.errors(sums), frequency - score
    return [
        ReliabilityDiagram(
            edges=sums.edges[k].copy(),  # uniform ones are kept for the next call
            count=count[k], score=score[k], frequency=frequency[k], gap=gap[k],
            value=float(values[k]), estimator=str(estimator), setting=names[k],
            closed=estimator.closed, rows=rows[k],
            _binned=estimator,
        )
        for k in range(len(names))
    ]  # fmt: skip


@overload
def reliability_diagram(
    y_true: Any, y_prob: Any = ..., *, setting: Literal["classwise"], **options: Any
) -> list[ReliabilityDiagram]: ...
@overload
def reliability_diagram(
    y_true: Any, y_prob: Any = ..., *, setting: str | int = ..., **options: Any
) -> ReliabilityDiagram: ...
def reliability_diagram(
    y_true: Any, y_prob: Any = None, *, estimator: Any = "ece", setting: Any = "auto",
    labels: Any = None, pos_label: Any = None, sample_weight: Any = None, from_logits: bool = False,
    soft: bool = False, votes: Any = None, n_jobs: int | None = None, **fields: Any,
) -> ReliabilityDiagram | list[ReliabilityDiagram]:  # fmt: skip
    """Compute bins of the score with their mean scores and observed frequencies.

    Parameters
    ----------
    y_true, y_prob, setting, labels, pos_label, sample_weight, from_logits, soft, votes, n_jobs, \
    **fields
        As in `fastece.ece`.
    estimator : str or Binned, default "ece"
        A binned estimator; with convex mapping the sums of a bin are those of its shares.

    Returns
    -------
    ReliabilityDiagram, or for ``setting="classwise"`` a list of K of them

    Raises
    ------
    ValueError, TypeError
        As `fastece.ece`; for an estimator without bins.

    Notes
    -----
    DeGroot and Fienberg (1983, "The comparison and evaluation of forecasters"); Guo et al. (2017,
    "On calibration of modern neural networks", figure 1).

    Examples
    --------
    >>> from fastece import reliability_diagram
    >>> diagram = reliability_diagram([0, 0, 1, 1], [0.2, 0.4, 0.6, 1.0], n_bins=2)
    >>> diagram.count, diagram.score, diagram.frequency
    (array([2., 2.]), array([0.3, 0.8]), array([0., 1.]))
    >>> print(diagram)
    Binned(n_bins=2), setting binary: calibration error 0.25000, by chance alone 0.27500
      bin             rows   score  frequency      gap
      [0.000, 0.500]     2  0.3000     0.0000  -0.3000  ##############################
      (0.500, 1.000]     2  0.8000     1.0000  +0.2000  ##############################
    """
    chosen: Any = find_estimator(estimator, fields)

    def diagrams_with(run: Map) -> ReliabilityDiagram | list[ReliabilityDiagram]:
        source = read_source(
            y_true, y_prob, setting=setting, labels=labels, pos_label=pos_label,
            sample_weight=sample_weight, from_logits=from_logits, soft=soft, votes=votes, run=run,
        )  # fmt: skip
        diagrams = diagrams_of(chosen, source, run)
        return diagrams if source.setting.per_class else diagrams[0]

    return with_threads(check_jobs(n_jobs), diagrams_with)
