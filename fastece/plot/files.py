"""Pictures as files: what the command line draws, and where it may be written."""

import os
from collections.abc import Sequence
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING

from fastece.plot.results import HEIGHT, WIDTH, Panel, draw_classes, panels_size, plot_panel

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KINDS = (".png", ".svg", ".pdf")
DPI = 150
# Characters of a title to an inch.
FIT = 11


def check_picture(path: str | Path) -> Path:
    """A file that a picture can be written to, or an error before anything is computed."""
    path = Path(path)
    if path.suffix.lower() not in KINDS:
        raise ValueError(f"--plot: {path} must end in {', '.join(KINDS[:-1])} or {KINDS[-1]}")
    check_writable("--plot", path)
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError as error:
        raise ValueError("--plot: pictures need matplotlib: pip install matplotlib") from error
    return path


def check_writable(option: str, path: str | Path) -> Path:
    """A file that can be written, or an error that names the option."""
    path = Path(path)
    if not path.parent.is_dir():
        raise ValueError(f"{option}: there is no folder {path.parent}")
    if path.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK):
        raise ValueError(f"{option}: {path} cannot be written")
    return path


def new_figure(size: tuple[float, float]) -> "Figure":
    """A figure that no window knows of."""
    from matplotlib.figure import Figure

    return Figure(figsize=size, layout="constrained")


def draw_page(panels: Sequence[Panel], note: str = "") -> "Figure":
    """Panels of one setting side by side, each with a legend; those of several classes small, with
    one legend for all. The note is above."""
    count = len(panels)
    if len({panel.first.setting for panel in panels}) == 1:
        figure = new_figure((WIDTH * count, HEIGHT))
        for ax, panel in zip(figure.subplots(1, count, squeeze=False).flat, panels, strict=True):
            plot_panel(panel, ax)
    else:
        width, height = panels_size(count)
        figure = draw_classes(panels, figure=new_figure((width, height + 0.4)))
        note = "\n".join(filter(None, [panels[0].first.estimator, figure.get_suptitle(), note]))
    if note:
        note = "\n".join(fill(line, int(FIT * figure.get_figwidth())) for line in note.splitlines())
        figure.suptitle(note, fontsize="medium", parse_math=False)
    return figure


def save_picture(path: Path, panels: Sequence[Panel], note: str = "") -> None:
    """Write a page of panels in the format that the name of the file says."""
    figure = draw_page(panels, note)
    figure.draw_without_rendering()  # the layout takes two turns to settle with square axes
    figure.savefig(path, format=path.suffix[1:].lower(), dpi=DPI)
