"""Pictures, drawn from results alone. Needs matplotlib (``pip install fastece[plot]``)."""

from fastece.plot.results import plot_classes, plot_curve, plot_diagram

__all__ = ["plot_classes", "plot_curve", "plot_diagram"]
