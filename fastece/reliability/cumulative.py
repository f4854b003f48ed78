"""Plots of cumulative gaps: nothing is binned or smoothed."""

from typing import TYPE_CHECKING, Any, NamedTuple, Unpack

from fastece.data.options import ReadingKeywords, reading_options, shows_options
from fastece.data.reading import read_table
from fastece.data.table import RowTable
from fastece.display.axes import check_axes, new_axes
from fastece.display.pictures import draw_cumulative, thin_path
from fastece.estimators.cumulative import CumulativeError, cumulative_path, null_deviation
from fastece.kernels.types import F64
from fastece.reliability.models import check_one_problem, models_by_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class CumulativeGaps(NamedTuple):
    """Cumulative gaps of one problem, as `draw_cumulative` takes them.

    Attributes
    ----------
    path : list of three (P,) float64 arrays
        Shares of rows, cumulative gaps and scores at the points that are drawn.
    deviation : float
        Standard deviation of the mean gap of a calibrated model.
    value : float
        The range of all cumulative gaps.
    """

    path: list[F64]
    deviation: float
    value: float


def cumulative_of(table: RowTable) -> CumulativeGaps:
    """Compute the cumulative gaps of the first problem of a table."""
    estimator = CumulativeError()
    sample = table.seen_by(estimator).sample(0).sorted()
    return CumulativeGaps(
        path=thin_path(cumulative_path(sample)),
        deviation=null_deviation(sample),
        value=estimator.evaluate_once(sample, table.count()),
    )


@shows_options
def cumulative_plot(
    y_true: Any, y_prob: Any = None, *, ax: "Axes | None" = None,
    **options: Unpack[ReadingKeywords],
) -> "Axes":  # fmt: skip
    """Draw the cumulative gap over the share of rows; needs matplotlib.

    Its slope is the mean gap of the rows there: above 0 where probabilities are too low, below 0
    where they are too high. Nothing is binned or smoothed.

    Parameters
    ----------
    y_true, y_prob, **options
        As in `fastece.ece`: arrays or an `Accumulator`, and how to read them. A dict of `y_prob`
        has models by their names.
    ax : matplotlib Axes, optional
        Where to draw, also beside other models; without it, on a new figure.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ValueError, TypeError
        As in `fastece.ece`; for a dict without models, and for "classwise", which is no single
        problem.

    Notes
    -----
    Tygert (2020, "Plots of the cumulative differences between observed and expected values of
    ordered Bernoulli variates"). With the rows in the order of their scores, the path at row k is
    at the share ``sum_{i <= k} w_i / W`` across and at the gap ``sum_{i <= k} w_i (y_i - s_i) / W``
    up, as `CumulativeError` defines it; at most 2000 points are drawn, and the extremes. A
    calibrated model stays within the band in 95 % of samples of many rows: 2.2414 standard
    deviations of the mean gap, ``sqrt(sum_i w_i^2 s_i (1 - s_i)) / W``, by the law of the largest
    size of Brownian motion.

    Examples
    --------
    >>> import numpy as np
    >>> from fastece import cumulative_plot
    >>> from matplotlib.figure import Figure
    >>> p = np.linspace(0.01, 0.99, 99)
    >>> ax = cumulative_plot(p > 0.5, p, ax=Figure().subplots())
    >>> ax.get_ylabel()
    'cumulative gap'
    """
    check_axes(ax)
    reading = reading_options(options)
    gaps_of_models = {}
    for name, prob in models_by_name(y_prob).items():
        table = read_table(y_true, prob, reading)
        check_one_problem(table)
        gaps_of_models[name] = cumulative_of(table)
    if ax is None:
        (ax,) = new_axes(1)
    for name, gaps in gaps_of_models.items():
        draw_cumulative(ax, gaps.path, gaps.deviation, gaps.value, name)
    return ax
