"""Pictures as files: what the command line draws, and where it may be written."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fastece.plot.results import panels_size, plot_classes, plot_curve, plot_diagram
from fastece.reliability.curve import ReliabilityCurve
from fastece.reliability.diagram import ReliabilityDiagram

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["check_picture", "curve_picture", "report_picture", "save_picture"]

KINDS = (".png", ".svg", ".pdf")
DPI = 150
# Inches of one picture and of two side by side, with the title of the file.
ONE, TWO = (4.6, 5.6), (9.2, 5.5)
# Characters of a title to an inch.
FITTING = 9


def check_picture(path: str | Path) -> Path:
    """A file that a picture can be written to, or an error before anything is computed.

    Raises
    ------
    ValueError
        For a name that says no known kind of picture, a folder that is not there or must not be
        written to, and without matplotlib.
    """
    path = Path(path)
    if path.suffix.lower() not in KINDS:
        raise ValueError(f"--plot: {path} must end in {', '.join(KINDS[:-1])} or {KINDS[-1]}")
    if not path.parent.is_dir():
        raise ValueError(f"--plot: there is no folder {path.parent}")
    if path.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK):
        raise ValueError(f"--plot: {path} cannot be written")
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError as error:
        raise ValueError("--plot: pictures need matplotlib: pip install matplotlib") from error
    return path


def report_picture(
    title: str, diagrams: Sequence[ReliabilityDiagram], curves: Sequence[ReliabilityCurve]
) -> "Figure":
    """The diagram and the curve side by side; of several classes, their diagrams."""
    if len(diagrams) > 1:
        return class_picture(title, diagrams)
    figure = new_figure(TWO)
    left, right = figure.subplots(1, 2)
    plot_diagram(diagrams[0], left)
    plot_curve(curves[0], right)
    put_title(figure, title)
    return figure


def curve_picture(title: str, curves: Sequence[ReliabilityCurve]) -> "Figure":
    """The curve, or those of the classes."""
    if len(curves) > 1:
        return class_picture(title, curves)
    figure = new_figure(ONE)
    plot_curve(curves[0], figure.subplots())
    put_title(figure, title)
    return figure


def class_picture(title: str, results: Sequence[Any]) -> "Figure":
    """Small multiples, with what they say of themselves under the title."""
    width, height = panels_size(len(results))
    figure = plot_classes(results, figure=new_figure((width, height + 0.4)))
    note = figure.get_suptitle()
    put_title(figure, title, note)
    return figure


def put_title(figure: "Figure", title: str, note: str = "") -> None:
    """A title that fits: the end of the name of a file says more than its beginning."""
    most = int(FITTING * figure.get_figwidth())
    title = title if len(title) <= most else f"…{title[1 - most :]}"
    figure.suptitle(f"{title}\n{note}" if note else title, parse_math=False)


def new_figure(size: tuple[float, float]) -> "Figure":
    """A figure that no window knows of."""
    from matplotlib.figure import Figure

    return Figure(figsize=size, layout="constrained")


def save_picture(figure: "Figure", path: Path) -> None:
    """Write a figure in the format that the name of the file says."""
    figure.draw_without_rendering()  # the layout takes two turns to settle with square axes
    figure.savefig(path, format=path.suffix[1:].lower(), dpi=DPI)
