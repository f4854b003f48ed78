"""Pictures, drawn from results alone. Needs matplotlib (``pip install fastece[plot]``)."""

from fastece.plot.results import plot_classes, plot_curve, plot_diagram
from fastece.plot.svg import to_svg

__all__ = ["plot_classes", "plot_curve", "plot_diagram", "to_svg"]
