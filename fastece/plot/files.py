"""Pictures as files: what the command line draws, and where it may be written."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fastece.plot.results import panels_size, plot_classes, plot_result

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KINDS = (".png", ".svg", ".pdf")
DPI = 150
# Inches of one result with its legend and the title of the file; characters of a title to an inch.
WIDTH, HEIGHT, FIT = 4.6, 5.5, 9


def check_picture(path: str | Path) -> Path:
    """A file that a picture can be written to, or an error before anything is computed."""
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


def new_figure(size: tuple[float, float]) -> "Figure":
    """A figure that no window knows of."""
    from matplotlib.figure import Figure

    return Figure(figsize=size, layout="constrained")


def draw_page(title: str, results: Sequence[Any]) -> "Figure":
    """Results of one setting side by side; of several classes, a small panel for each."""
    count = len(results)
    if len({result.setting for result in results}) == 1:
        figure = new_figure((WIDTH * count, HEIGHT))
        for ax, result in zip(figure.subplots(1, count, squeeze=False).flat, results, strict=True):
            plot_result(result, ax)
    else:
        width, height = panels_size(count)
        figure = plot_classes(results, figure=new_figure((width, height + 0.4)))
    most, note = int(FIT * figure.get_figwidth()), figure.get_suptitle()
    if len(title) > most:  # the end of the name of a file says more than its beginning
        title = f"…{title[1 - most :]}"
    figure.suptitle(f"{title}\n{note}" if note else title, parse_math=False)
    return figure


def save_picture(path: Path, title: str, results: Sequence[Any]) -> None:
    """Write the page of some results in the format that the name of the file says."""
    figure = draw_page(title, results)
    figure.draw_without_rendering()  # the layout takes two turns to settle with square axes
    figure.savefig(path, format=path.suffix[1:].lower(), dpi=DPI)
