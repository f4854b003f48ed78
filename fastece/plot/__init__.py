"""Pictures of results, with matplotlib (``pip install fastece[plot]``)."""

from fastece.plot.axes import plot_result
from fastece.plot.pages import plot_classes, to_svg

__all__ = ["plot_classes", "plot_result", "to_svg"]
