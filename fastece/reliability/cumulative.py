"""Plots of cumulative gaps: nothing is binned or smoothed."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from fastece.data.errors import InputError
from fastece.data.reading import read_source
from fastece.data.sources import Source
from fastece.display.axes import new_axes
from fastece.display.pictures import draw_cumulative, thin_path
from fastece.estimators import cumulative
from fastece.kernels.types import F64

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def cumulative_of(source: Source) -> tuple[list[F64], float, float]:
    """Compute the cumulative gap, its deviation if calibrated, and its range."""
    estimator = cumulative.CumulativeError()
    sample = source.sample(0, source.needs_of(estimator)).sorted()
    value = estimator.evaluate_once(sample, source.count())
    return thin_path(cumulative.cumulative_path(sample)), cumulative.null_deviation(sample), value


def cumulative_plot(
    y_true: Any, y_prob: Any = None, *, ax: "Axes | None" = None, **options: Any
) -> "Axes":
    """Draw the cumulative gap over the share of rows; needs matplotlib.

    Its slope is the mean gap of the rows there: above 0 where probabilities are too low, below 0
    where they are too high. Nothing is binned or smoothed.

    Parameters
    ----------
    y_true, y_prob, **options
        As in `fastece.ece`: arrays or an `Accumulator`, with `setting`, `labels`, `pos_label`,
        `sample_weight` and `from_logits`. A dict of `y_prob` has models by their names.
    ax : matplotlib Axes, optional
        Where to draw, others may be there already; without it, on a new figure.

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
    ordered Bernoulli variates"). The path is that of `CumulativeError`, with at most 2000 points
    and its extremes. A calibrated model stays within the band in 95 % of samples of many rows:
    2.2414 standard deviations of the mean gap, by the law of the largest size of Brownian motion.

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
    models = y_prob if isinstance(y_prob, Mapping) else {None: y_prob}
    if not models:
        raise InputError("y_prob", "must have at least one model")
    drawn = {}
    for name, prob in models.items():
        source = read_source(y_true, prob, **options)
        if source.setting.per_class:
            raise InputError("setting", "must be that of one problem", value=source.setting.name)
        drawn[name] = cumulative_of(source)
    ax = new_axes(1)[0] if ax is None else ax
    for name, one in drawn.items():
        draw_cumulative(ax, *one, name)
    return ax
