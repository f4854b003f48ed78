"""Reliability diagrams: the mean score and the observed frequency of each bin."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, Unpack, overload

import numpy as np

from fastece.data.errors import InputError, InputTypeError
from fastece.data.options import OPTION_NAMES, shows_options, split_options
from fastece.data.parameters import check_flag, check_jobs
from fastece.data.reading import read_table
from fastece.data.table import RowTable
from fastece.data.threads import Map, with_threads
from fastece.display.documents import Document, Section, Table
from fastece.display.marks import BinDrawing
from fastece.display.numbers import ConfidenceInterval, Number, form_of_weight
from fastece.display.pictures import draw_attributes
from fastece.estimators.binned import Binned, Bins
from fastece.estimators.binomial import binomial_ends
from fastece.estimators.table import EstimatorKeywords, RowEstimatorKeywords, find_estimator
from fastece.kernels.types import F64
from fastece.reliability.plottable import Plottable
from fastece.resampling.intervals import check_level, tails_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Characters of the bar of the fullest bin.
BAR_WIDTH = 30
# Edges of more bins than this need six decimals, of fewer three.
MAX_BINS_OF_THREE_DECIMALS = 100
# Level of the intervals that are drawn, unless the band of a test has another.
DRAWN_LEVEL = 0.95


# --- the result -----------------------------------------------------------------------------


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
    n : int
        Number of rows of positive weight.
    floor : float
        Mean error of a calibrated model, by chance alone, where the error is the mean gap of bins.
    """

    edges: F64 = field(repr=False)
    count: F64 = field(repr=False)
    score: F64 = field(repr=False)
    frequency: F64 = field(repr=False)
    gap: F64 = field(repr=False)
    value: float
    estimator: str
    setting: str
    closed: str
    rows: F64 = field(repr=False)
    n: int
    _binned: Binned | None = field(repr=False, default=None)

    _derived = ("floor",)

    @property
    def _is_mean_gap(self) -> bool:
        """Whether the error is the mean gap of hard bins, whatever the bins are."""
        if self._binned is None:
            return False
        default_bins: Any = {
            "n_bins": 15, "edges": "uniform", "closed": "right", "score_range": "unit"
        }  # fmt: skip
        return replace(self._binned, **default_bins) == Binned()

    @property
    def floor(self) -> float:
        """Mean error of a calibrated model with these bins; nan where it is no mean gap.

        The hits of a bin are taken as binomial, as they are if its scores are equal: see
        `mean_absolute_gap`.
        """
        if not self._is_mean_gap:
            return math.nan
        n_rows = np.maximum(np.rint(self.rows), 1.0)
        score = np.nan_to_num(self.score).clip(0.0, 1.0)
        return float(np.average(mean_absolute_gap(n_rows, score), weights=self.count))

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
        low_tail, high_tail = tails_of(check_level(confidence_level))
        frequency = self.frequency.clip(0.0, 1.0)  # rounding
        hits = self.rows * frequency
        misses = self.rows * (1 - frequency)
        return ConfidenceInterval(*binomial_ends(hits, misses, low_tail, high_tail))

    # --- text -------------------------------------------------------------------------------

    def document(self) -> Document:
        """Describe the bins as a table."""
        title = f"{self.estimator}, setting {self.setting}: calibration error {self.value:.5f}"
        if self._is_mean_gap:
            title += f", by chance alone {self.floor:.5f}"
        return Document(title, sections=[Section(table=self.table())])

    def pool(self, max_bins: int) -> "ReliabilityDiagram":
        """Put neighbouring bins together, evenly, until there are `max_bins`."""
        n_bins = min(max_bins, self.count.size)
        first = np.ceil(np.arange(n_bins) * self.count.size / n_bins).astype(np.int64)
        count = np.add.reduceat(self.count, first)

        def pool_means(means: F64) -> F64:
            sums = np.add.reduceat(np.nan_to_num(means) * self.count, first)
            return sums / np.where(count > 0, count, np.nan)

        return replace(
            self,
            edges=self.edges[[*first, -1]],
            count=count,
            rows=np.add.reduceat(self.rows, first),
            score=pool_means(self.score),
            frequency=pool_means(self.frequency),
            gap=pool_means(self.gap),
            _binned=None,
        )

    def table(self) -> Table:
        """Describe each bin that holds rows, and empty neighbours together.

        The bar is the occupancy, full for the fullest bin. Rows with weights have their weight.
        """
        count = self.count
        starts = [b for b in range(count.size) if b == 0 or count[b] > 0 or count[b - 1] > 0]
        names = self._bin_names([*starts, count.size])
        rows = [
            (
                name,
                Number(count[b], form=form_of_weight(count[b])),
                Number(self.score[b], form=".4f"),
                Number(self.frequency[b], form=".4f"),
                Number(self.gap[b], form="+.4f"),
                "#" * math.ceil(BAR_WIDTH * count[b] / count.max()),
            )
            for b, name in zip(starts, names, strict=True)
        ]
        amount = "rows" if np.array_equal(self.rows, count) else "weight"
        return Table(["bin", amount, "score", "frequency", "gap", ""], rows)

    def _bin_names(self, cuts: Sequence[int]) -> list[str]:
        """Name the intervals between the edges at some places."""
        edges = [f"{edge:.3f}" for edge in self.edges[[*cuts]]]
        if self.count.size > MAX_BINS_OF_THREE_DECIMALS or len(set(edges)) < len(edges):
            edges = [f"{edge:.6f}" for edge in self.edges[[*cuts]]]
        names = [f"{low}, {high}" for low, high in pairwise(edges)]
        if self.closed == "left":
            return [f"[{name})" for name in names[:-1]] + [f"[{names[-1]}]"]
        return [f"[{names[0]}]"] + [f"({name}]" for name in names[1:]]

    def _columns(self) -> dict[str, Any]:
        return {
            "low": self.edges[:-1], "high": self.edges[1:], "count": self.count,
            "score": self.score, "frequency": self.frequency, "gap": self.gap, "rows": self.rows,
        }  # fmt: skip

    # --- picture ----------------------------------------------------------------------------

    def plot(self, ax: "Axes | None" = None, *, attributes: bool = False, **options: Any) -> "Axes":
        """Draw the observed frequency over the score; needs matplotlib.

        Parameters
        ----------
        ax, **options
            `color`, `label`, `legend`, `band` and `zoom`, as in `ReliabilityCurve.plot`.
        attributes : bool, default False
            Whether to draw an attributes diagram, as the World Meteorological Organization asks for
            in verification of probability forecasts: lines of no resolution, at the observed base
            rate o, the line of no skill ``(s + o) / 2``, and shaded where points add to the Brier
            skill score (Hsu and Murphy 1986, "The attributes diagram: a geometrical framework for
            assessing the quality of probability forecasts").

        Returns
        -------
        matplotlib Axes

        Raises
        ------
        ValueError, TypeError
            As in `ReliabilityCurve.plot`.
        """
        has_attributes = check_flag("attributes", attributes)
        ax = super().plot(ax, **options)
        if has_attributes:
            has_rows = self.count > 0
            weight = self.count[has_rows]
            base_rate = float(weight @ self.frequency[has_rows] / weight.sum())
            draw_attributes(ax, base_rate, options.get("legend", True))
        return ax

    def drawing(self, band: Any = True) -> BinDrawing:
        """Collect the bins to draw, with intervals or the band of a test."""
        level = DRAWN_LEVEL
        band_ends = None
        if hasattr(band, "low"):
            self._check_band(band)
            level = band.confidence_level
            band_ends = (band.low, band.high)
        low, high = self.interval(level) if band else (None, None)
        return BinDrawing(
            estimator=self.estimator, setting=self.setting, value=self.value, score=self.score,
            frequency=self.frequency, weight=self.count, edges=self.edges, rows=self.rows,
            low=low, high=high, interval_name=f"{100 * level:g} % CI",
            band=band_ends, band_name=f"{100 * level:g} % if calibrated",
        )  # fmt: skip

    def _check_band(self, band: Any) -> None:
        """Check that a band is of the bins of the diagram."""
        has_rows = self.count > 0
        has_band = np.isfinite(band.low)
        if not np.array_equal(has_band, has_rows):
            rule = (
                f"must have the bins of the diagram: {self.count.size}, "
                f"{np.count_nonzero(has_rows)} with rows; "
                f"got {band.low.size}, {np.count_nonzero(has_band)} with rows"
            )
            raise InputError("band", rule)


def mean_absolute_gap(n: F64, s: F64) -> F64:
    """Compute ``E|X / n - s|`` of a binomial number X of n rows with probability s.

    By de Moivre's formula for the mean absolute deviation (1730, "Miscellanea analytica"), with
    ``m = floor(n s) + 1``::

        E|X - n s| = 2 m C(n, m) s^m (1 - s)^(n - m + 1)
    """
    from scipy.special import gammaln, xlog1py, xlogy

    m = np.floor(n * s) + 1
    log_m_choose = gammaln(n + 1) - gammaln(m) - gammaln(n - m + 1)  # log of m C(n, m)
    log_half = log_m_choose + xlogy(m, s) + xlog1py(n - m + 1, -s)
    return np.asarray(2 * np.exp(log_half) / n)


# --- diagrams of problems -------------------------------------------------------------------


def diagrams_of(estimator: Any, table: RowTable, run: Map = map) -> list[ReliabilityDiagram]:
    """Make one diagram of bins for each problem."""
    if estimator.bins is None:
        raise InputTypeError("estimator", "a reliability diagram needs bins", value=estimator)
    bins = estimator.bins(table, run)
    rows = estimator.effective_rows(table, bins)
    settings = [table.name(k) for k in range(table.n_problems)]
    return diagrams_from(estimator, bins, rows, settings, table.count())


def diagrams_from(
    estimator: Binned, bins: Bins, rows: F64, settings: Sequence[str], n: int
) -> list[ReliabilityDiagram]:
    """Make the diagram of each problem from its bins, and their effective rows (K, B).

    `n` is the number of rows of positive weight.
    """
    # Empty bins have no mean, and weights that add up beyond float64 are an infinite count.
    with np.errstate(invalid="ignore", over="ignore"):
        score = bins.score / bins.weight
        frequency = bins.hits / bins.weight
        count = bins.weight * bins.unit
    gap = frequency - score
    values = estimator.errors(bins)
    return [
        ReliabilityDiagram(
            edges=bins.edges[k].copy(),  # uniform ones are kept for the next call
            count=count[k],
            score=score[k],
            frequency=frequency[k],
            gap=gap[k],
            value=float(values[k]),
            estimator=str(estimator),
            setting=settings[k],
            closed=estimator.closed,
            rows=rows[k],
            n=n,
            _binned=estimator,
        )
        for k in range(len(settings))
    ]


# --- the call -------------------------------------------------------------------------------


@overload
def reliability_diagram(
    y_true: Any, y_prob: Any = ..., *, setting: Literal["classwise"], estimator: Any = ...,
    n_jobs: int | None = ..., **options: Unpack[RowEstimatorKeywords],
) -> list[ReliabilityDiagram]: ...  # fmt: skip
@overload
def reliability_diagram(
    y_true: Any, y_prob: Any = ..., *, setting: str | int = ..., estimator: Any = ...,
    n_jobs: int | None = ..., **options: Unpack[RowEstimatorKeywords],
) -> ReliabilityDiagram: ...  # fmt: skip
@shows_options
def reliability_diagram(
    y_true: Any, y_prob: Any = None, *, estimator: Any = "ece", n_jobs: int | None = None,
    **options: Unpack[EstimatorKeywords],
) -> ReliabilityDiagram | list[ReliabilityDiagram]:  # fmt: skip
    """Compute bins of the score with their mean scores and observed frequencies.

    Parameters
    ----------
    y_true, y_prob, n_jobs, **options
        As in `fastece.ece`.
    estimator : str or Binned, default "ece"
        A binned estimator; with convex mapping a bin adds up the shares of rows in it.

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
    reading, fields = split_options(options)
    chosen: Any = find_estimator(estimator, fields, OPTION_NAMES)

    def diagrams_with(run: Map) -> ReliabilityDiagram | list[ReliabilityDiagram]:
        table = read_table(y_true, y_prob, reading, run=run)
        if table.has_own_rows:
            diagrams = []
            for k, problem in enumerate(table.problems()):
                (diagram,) = diagrams_of(chosen, problem, run)
                diagrams.append(replace(diagram, setting=table.name(k)))
            return diagrams
        diagrams = diagrams_of(chosen, table, run)
        return diagrams if table.setting.per_class else diagrams[0]

    return with_threads(check_jobs(n_jobs), diagrams_with)
