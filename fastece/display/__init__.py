"""How results look: documents, numbers as text, pictures and pages."""

from fastece.display.axes import plot_result
from fastece.display.pages import plot_classes, to_svg

__all__ = ["plot_classes", "plot_result", "to_svg"]
