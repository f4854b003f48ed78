"""Results that are drawn as observed frequencies over scores."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fastece.data.parameters import check_flag
from fastece.display.axes import check_axes, choose_end, new_axes
from fastece.display.marks import AxesRange, Drawing, logit_range
from fastece.display.pictures import draw_model
from fastece.display.results import Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from fastece.resampling.calibration_test import ConsistencyBand


@dataclass(frozen=True, eq=False)
class Plottable(Result):
    """A result that draws observed frequencies over scores."""

    @abstractmethod
    def drawing(self, band: Any = True) -> Drawing:
        """Collect the numbers to draw, with intervals or without."""

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
            Whether there is a legend: below the axes in a figure with a layout, such as
            "constrained", and on them in others.
        band : bool or ConsistencyBand, default True
            Whether to draw the intervals (`interval`), and the median of the resamples of a curve.
            The band of `fastece.calibration_test` for the bins of a diagram adds a bar in each,
            where the frequency of a calibrated model is expected; intervals then have its level.
        zoom : float, optional
            Where new axes end. None: at 1, and just beyond the largest score if that is below 0.3.

        Returns
        -------
        matplotlib Axes

        Raises
        ------
        ValueError, TypeError
            For a band of other bins, a legend that is neither True nor False, and a `zoom` that is
            not above 0 and at most 1.
        """
        check_axes(ax)
        check_flag("legend", legend)
        drawing = self.drawing(band)
        end = choose_end(zoom, drawing.end)
        options = {"color": color, "label": label, "legend": legend}
        if ax is None:
            ax, *others = new_axes(2 if drawing.is_crowded else 1)
            for other in others:
                draw_model(drawing, other, span=logit_range([drawing]), **options)
        draw_model(drawing, ax, span=AxesRange(0.0, end), **options)
        return ax
