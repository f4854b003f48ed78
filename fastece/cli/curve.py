"""How often scores come true, as a table."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from fastece.cli.report import PAIRS, check_pairs
from fastece.reliability.curve import SHOWN, ReliabilityCurve, curves_of
from fastece.resampling.arguments import read_call

__all__ = ["CurvePoint", "CurveReport", "CurveTable", "curve_report", "make_curves"]


@dataclass(frozen=True)
class CurvePoint:
    """A curve at one score.

    Attributes
    ----------
    score : float
    probability : float
        Of a hit; the score itself where nothing can be said.
    low, high : float or None
        Ends of its interval; None without resamples.
    rows : float
        About how many rows it rests on.
    supported : bool
        Whether there are scores to speak of.
    """

    score: float
    probability: float
    low: float | None
    high: float | None
    rows: float
    supported: bool


@dataclass(frozen=True)
class CurveTable:
    """One curve at some scores.

    Attributes
    ----------
    setting : str
        The setting it is of, with the class if there are several.
    value : float
        The calibration error.
    estimator : str
        The estimator with its parameters.
    bandwidth : float
        The one used.
    points : tuple of CurvePoint
    """

    setting: str
    value: float
    estimator: str
    bandwidth: float
    points: tuple[CurvePoint, ...]

    def lines(self, level: float | None) -> list[str]:
        """The table as text; `level` is that of the intervals, if there are any."""
        wide = "" if level is None else f"  {f'{100 * level:g} % interval':<16}"
        lines = [
            f"{self.estimator}, setting {self.setting}: {self.value:.5f}, "
            f"bandwidth {self.bandwidth:.4g}",
            f"  score   probability{wide}    rows  supported",
        ]
        for point in self.points:
            ends = "" if level is None else f"  [{point.low:.4f}, {point.high:.4f}]"
            supported = "yes" if point.supported else "no"
            rows = f"{point.rows:6.0f}  {supported}"
            lines.append(f"  {point.score:.4f}  {point.probability:11.4f}{ends}  {rows}")
        return lines


@dataclass(frozen=True)
class CurveReport:
    """How often scores come true.

    Attributes
    ----------
    title : str
        What was measured.
    n : int
        Number of rows.
    setting : str
    n_resamples : int
        Number of resamples behind the intervals.
    confidence_level : float
        Of the intervals.
    curves : tuple of CurveTable
        One, or one for each class.
    """

    title: str
    n: int
    setting: str
    n_resamples: int
    confidence_level: float
    curves: tuple[CurveTable, ...]

    def __str__(self) -> str:
        lines = [self.title, f"  {'rows':<16} {self.n}", f"  {'setting':<16} {self.setting}"]
        level = self.confidence_level if self.n_resamples else None
        if level is not None:
            lines.append(f"  {'intervals':<16} percentile bootstrap, {self.n_resamples} resamples")
        for table in self.curves:
            lines += ["", *table.lines(level)]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Plain Python values."""
        return asdict(self)


def points_of(curve: ReliabilityCurve, at: Sequence[float] | None) -> tuple[CurvePoint, ...]:
    """A curve at some scores, or at eleven from one end of its range to the other."""
    low, high = curve.score_range
    scores = low + (high - low) * SHOWN if at is None else np.asarray(at, np.float64)
    inside = (scores >= low) & (scores <= high)
    supported = np.interp(scores, curve.score, curve.supported) == 1
    lows: list[Any] = [None] * scores.size
    highs = lows
    if curve.low is not None:
        ends = zip(curve.interval(scores), (0.0, 1.0), strict=True)
        lows, highs = (np.where(inside, end, any_).tolist() for end, any_ in ends)
    found = np.where(inside, curve(scores), scores)
    rows = np.where(inside, np.interp(scores, curve.score, curve.rows), 0.0).tolist()
    supported = (supported & inside).tolist()
    columns = (scores.tolist(), found.tolist(), lows, highs, rows, supported)
    return tuple(map(CurvePoint, *columns))


def make_curves(
    y_true: Any,
    y_prob: Any,
    *,
    setting: Any = "auto",
    pairs: bool = False,
    classes: int | None = None,
    from_logits: bool = False,
    bandwidth: Any = "silverman",
    kernel: str = "gaussian",
    n_resamples: int = 500,
    confidence_level: float = 0.95,
    rng: Any = 0,
    n_jobs: int | None = None,
    progress: Callable[[str], None] | None = None,
) -> list[ReliabilityCurve]:
    """Reliability curves of what a file holds.

    Parameters
    ----------
    y_true, y_prob, setting, from_logits, confidence_level, rng, n_jobs
        As in `fastece.reliability_curve`.
    pairs, classes, progress
        As in `fastece.cli.report.make_report`.
    bandwidth, kernel
        Of `fastece.KDE`.
    n_resamples : int, default 500
        For the band; without any, there is none.

    Returns
    -------
    list of ReliabilityCurve
        One, or one for each class.
    """
    if pairs:
        check_pairs(setting, from_logits)
    fields: dict[str, Any] = {"bandwidth": bandwidth, "kernel": kernel}
    if classes is not None:
        fields["score_range"] = (1 / classes, 1.0)
    call = read_call(
        y_true, {"y_prob": y_prob}, estimator="ece_kde", fields=fields, n_resamples=n_resamples,
        least=0, confidence_level=confidence_level, method="percentile", setting=setting,
        average=None, labels=None, pos_label=None, sample_weight=None, from_logits=from_logits, n_jobs=n_jobs,
        executor=None,
    )  # fmt: skip
    found: list[ReliabilityCurve] = curves_of(replace(call, progress=progress), rng)
    return found


def curve_report(
    found: Sequence[ReliabilityCurve],
    at: Sequence[float] | None = None,
    *,
    title: str = "predictions",
    pairs: bool = False,
) -> CurveReport:
    """Some curves of the same rows at the same scores.

    Parameters
    ----------
    found : list of ReliabilityCurve
        As `make_curves` gives them.
    at : list of float, optional
        Scores in [0, 1]; without it, eleven from one end of the range to the other.
    title : str
        First line of the report.
    pairs : bool
        They are of labels and confidences.

    Returns
    -------
    CurveReport
    """
    first = found[0]
    one = PAIRS if pairs else first.setting
    tables = tuple(
        CurveTable(
            setting=curve.setting,
            value=curve.value,
            estimator=curve.estimator,
            bandwidth=curve.bandwidth,
            points=points_of(curve, at),
        )
        for curve in found
    )
    return CurveReport(
        title=title,
        n=first.n,
        setting=one if len(found) == 1 else "classwise",
        n_resamples=first.n_resamples,
        confidence_level=first.confidence_level,
        curves=tables,
    )
