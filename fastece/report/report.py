"""The report on the calibration of one model: what was measured, and what it comes down to."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from fastece.answer.direction import Direction, direction_of
from fastece.answer.estimate import Estimate, estimate_results
from fastece.answer.slices import Slices, class_slices, group_slices
from fastece.binned.estimator import Binned
from fastece.estimators import direct_values
from fastece.kde.estimator import KDE
from fastece.proper.decomposition import ScoreDecomposition, decompose
from fastece.reliability.curve import ReliabilityCurve, curves_of
from fastece.reliability.diagram import ReliabilityDiagram, diagrams_of
from fastece.report.words import judge
from fastece.resampling.arguments import Call, read_call
from fastece.resampling.bootstrap import resample
from fastece.resampling.intervals import ConfidenceInterval
from fastece.resampling.results import Plain

# The answer comes first, and its curve is beside the diagram; the test of calibration, and the
# diagram, are of the bins of the other.
LEAD, TEST = "ece_bayes", "ece"
ERRORS = (LEAD, TEST, "ece_a", "ece_c", "ece_ac", "ece_kde")
SCORES = {
    "brier_score": "mean squared distance of probabilities from what came true",
    "log_loss": "mean -log of the probability of what came true",
    "accuracy": "how often the most probable class is right",
    "sharpness": "variance of the score: how much the model tells apart",
}
Say = Callable[[str], None]


@dataclass(frozen=True, eq=False, kw_only=True)
class Report(Plain):
    """The calibration of one model: what `fastece.calibration_report` gives.

    Attributes
    ----------
    title : str
    headline : str
        One sentence with the error, its interval, its direction and the p-value.
    verdict : str
        "miscalibrated"; "not shown", if chance explains it; "unclear", if interval and test do not
        agree; "too few rows".
    n, n_effective : int, float
        Rows, and Kish's effective number of them where they have weights.
    n_classes : int or None
        None where a file does not tell.
    accuracy, mean_confidence : float
        How often the most probable class is right, and its mean probability.
    setting : str
    n_resamples, confidence_level, seed
        Of the intervals; without resamples there are none, and no p-value.
    p_value : float or None
        Of `fastece.calibration_test` with the bins of "ece".
    measures : list of dict
        An error each: name, value, interval, p_value, estimator, bins and bandwidth.
    direction : Direction
        Error of scores that are too high and too low, and the mean gap.
    scores : list of dict
        A proper score each: name, value, interval, meaning.
    decomposition : ScoreDecomposition
        Parts of the Brier score of the setting, or their means over classes.
    classes, slices : Slices or None
        Errors of the classes, one against the rest, and of the groups of `by`.
    diagrams, curve : list of ReliabilityDiagram, list of ReliabilityCurve
        For each problem of the setting.
    """

    title: str
    headline: str
    verdict: str
    n: int
    n_effective: float
    n_classes: int | None
    accuracy: float
    mean_confidence: float
    setting: str
    n_resamples: int
    confidence_level: float
    seed: Any
    p_value: float | None
    measures: list[dict[str, Any]]
    direction: Direction
    scores: list[dict[str, Any]]
    decomposition: ScoreDecomposition
    classes: Slices | None
    slices: Slices | None
    diagrams: list[ReliabilityDiagram]
    curve: list[ReliabilityCurve] = field(repr=False)
    pairs: bool = field(default=False, repr=False)
    # Of the test, for the picture.
    _bands: Any = field(default=None, repr=False)

    def __str__(self) -> str:
        from fastece.report.writers import to_text

        return to_text(self)

    def to_markdown(self) -> str:
        """The report as Markdown, without pictures."""
        from fastece.report.writers import to_markdown

        return to_markdown(self)

    def to_html(self, path: str | Path | None = None) -> str:
        """The report as one HTML page with its pictures, which loads nothing; written to a file, if
        one is given. Needs jinja2 and matplotlib (``pip install fastece[report]``)."""
        from fastece.report.writers import to_html

        page = to_html(self)
        if path is not None:
            Path(path).write_text(page, encoding="utf-8")
        return page


def calibration_report(
    y_true: Any, y_prob: Any, *, estimator: Any = ERRORS, by: Any = None,
    title: str = "Calibration report", n_resamples: int = 1000, rng: Any = 0, **options: Any,
) -> Report:  # fmt: skip
    """Everything about the calibration of one model: errors, direction, scores, classes, groups.

    Parameters
    ----------
    y_true, y_prob, **options
        As in `fastece.bootstrap`, with the same defaults, but no `average`, `size`, `method` and
        `bootstrap_result`. ``n_bins=`` changes the bins of the estimators that have some.
    estimator : list of str or objects
        The errors to show; the Bayesian curve and the bins of "ece" are always among them.
    by : (n,) array_like, optional
        A label for each row: errors of the groups are shown too.
    title : str
    n_resamples : int, default 1000
        Replicates behind intervals and p-values; with 0 there are none.
    rng : None, int or numpy.random.Generator, default 0
        Seed: the same seed gives the same report.

    Returns
    -------
    Report

    Raises
    ------
    ValueError, TypeError
        As in `fastece.ece` and `fastece.slices`.

    Examples
    --------
    >>> import numpy as np
    >>> from fastece import calibration_report
    >>> rng = np.random.default_rng(0)
    >>> p = rng.beta(5, 1.5, size=1000)
    >>> y = rng.random(1000) < p - 0.5 * p * (1 - p)
    >>> report = calibration_report(y, p)
    >>> print(report.headline)
    """
