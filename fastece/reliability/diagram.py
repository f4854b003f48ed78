"""Reliability diagrams: mean score and observed frequency of each bin."""

import math
from abc import abstractmethod
from dataclasses import dataclass
from functools import singledispatch
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np

from fastece.checks.errors import InputError, InputTypeError
from fastece.checks.parameters import check_jobs
from fastece.data.reading import Map, read_source
from fastece.data.source import Source
from fastece.document.document import Document, Section, Table
from fastece.document.numbers import Number
from fastece.document.result import Result
from fastece.estimators.binned import Binned, effective_rows
from fastece.estimators.table import find_estimator, with_threads
from fastece.plot.axes import plot_result
from fastece.plot.marks import BinDrawing
from fastece.resampling.results import ConfidenceInterval, check_level, tails_of
from fastece.typing import F64

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from fastece.resampling.calibration_test import ConsistencyBand


@dataclass(frozen=True, eq=False)
class Plottable(Result):
    """A result that draws observed frequencies over scores."""

    @property
    def _headline(self: Any) -> dict[str, Any]:
        """The fields that every picture shows, by name."""
        names = ("estimator", "setting", "value", "score")
        return {name: getattr(self, name) for name in names}

    @abstractmethod
    def drawing(self, band: Any = True) -> Any:
        """Return the numbers to draw, with intervals or without."""

    def plot(
        self, ax: "Axes | None" = None, *, color: Any = None, label: str | None = None,
        legend: bool = True, band: "ConsistencyBand | bool | None" = True,
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

        Returns
        -------
        matplotlib Axes

        Raises
        ------
        ValueError, TypeError
            For a band of other bins, or a legend that is neither True nor False.
        """
        return plot_result(self, ax, color=color, label=label, legend=legend, band=band)


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
        from scipy.special import betaincinv

        lower, upper = tails_of(check_level(confidence_level))
        rate = self.frequency.clip(0.0, 1.0)  # rounding
        hits, misses = self.rows * rate, self.rows * (1 - rate)
        low = np.where(hits > 0, betaincinv(hits, misses + 1, lower), 0.0 * rate)
        high = np.where(misses > 0, betaincinv(hits + 1, misses, upper), 0.0 * rate + 1)
        return ConfidenceInterval(low, high)

    def document(self) -> Document:
        """Describe the bins as a table."""
        title = f"{self.estimator}, setting {self.setting}: calibration error {self.value:.5f}"
        return Document(title, sections=[Section(table=self.table())])

    def table(self, width: int = 30) -> Table:
        """Describe each bin that holds rows, and empty neighbours together.

        The bar is the occupancy, full for the fullest bin. Rows with weights have their weight.
        """
        count = self.count
        starts = [b for b in range(count.size) if b == 0 or count[b] > 0 or count[b - 1] > 0]
        columns = {"count": ".7g", "score": ".4f", "frequency": ".4f", "gap": "+.4f"}
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
        return BinDrawing(
            **self._headline,
            frequency=self.frequency,
            weight=self.count,
            low=low,
            high=high,
            interval_name=f"{100 * level:g} % CI",
            edges=self.edges,
            rows=self.rows,
            band=(band.low, band.high) if has_band else None,
            band_name=f"{100 * level:g} % if calibrated",
        )


@singledispatch
def diagrams_of(estimator: Any, source: Source, run: Map = map) -> list[ReliabilityDiagram]:  # noqa: ARG001
    """Make one diagram for each problem."""
    raise InputTypeError("estimator", "a reliability diagram needs bins", value=estimator)


@diagrams_of.register
def binned_diagrams(estimator: Binned, source: Source, run: Map = map) -> list[ReliabilityDiagram]:
    """Make one diagram of bins for each problem."""
    sums = estimator.bins(source, run)
    values, rows = estimator.errors(sums), effective_rows(estimator, source, sums)
    score, frequency = (
        np.divide(total, sums.weight, out=np.full_like(total, np.nan), where=sums.weight > 0)
        for total in (sums.score, sums.hits)
    )
    with np.errstate(over="ignore"):  # weights that add up beyond float64 are an infinite count
        count = sums.weight * sums.unit
    return [
        ReliabilityDiagram(
            edges=sums.edges[k].copy(),  # uniform ones are kept for the next call
            count=count[k], score=score[k], frequency=frequency[k], gap=frequency[k] - score[k],
            value=float(values[k]), estimator=str(estimator), setting=source.name(k),
            closed=estimator.closed, rows=rows[k],
        )
        for k in range(source.n_problems)
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
    n_jobs: int | None = None, **fields: Any,
) -> ReliabilityDiagram | list[ReliabilityDiagram]:  # fmt: skip
    """Compute bins of the score with their mean scores and observed frequencies.

    Parameters
    ----------
    y_true, y_prob, setting, labels, pos_label, sample_weight, from_logits, n_jobs, **fields
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
    Binned(n_bins=2), setting binary: calibration error 0.25000
      bin             rows   score  frequency      gap
      [0.000, 0.500]     2  0.3000     0.0000  -0.3000  ##############################
      (0.500, 1.000]     2  0.8000     1.0000  +0.2000  ##############################
    """
    chosen = find_estimator(estimator, fields)

    def diagrams_with(run: Map) -> ReliabilityDiagram | list[ReliabilityDiagram]:
        source = read_source(
            y_true, y_prob, setting=setting, labels=labels, pos_label=pos_label,
            sample_weight=sample_weight, from_logits=from_logits, run=run,
        )  # fmt: skip
        diagrams = diagrams_of(chosen, source, run)
        return diagrams if source.setting.per_class else diagrams[0]

    return with_threads(check_jobs(n_jobs), diagrams_with)
