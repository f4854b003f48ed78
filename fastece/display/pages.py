"""Pages of panels: pictures side by side, small multiples of classes, and files of pictures."""

import io
import math
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any, NamedTuple

from fastece.data.errors import InputError
from fastece.data.parameters import check_integer
from fastece.display import axes
from fastece.display.documents import Picture
from fastece.display.marks import PLAIN, Drawing, draw_square, logit_range, next_style
from fastece.display.pictures import draw_model

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PICTURE_ENDINGS = (".png", ".svg", ".pdf")
DOTS_PER_INCH = 150
# More classes than these cannot be read, so small multiples show the worst.
MAX_PANELS = 12
# Panels of one picture on a page of HTML, and side by side there.
PANELS_OF_PICTURE = 4
COLUMNS_OF_PICTURE = 2


class Panel(NamedTuple):
    """Axes to be drawn: drawings by the names of their models, over log odds or not."""

    drawings: Mapping[str | None, Drawing]
    is_logit: bool = False

    @property
    def first(self) -> Drawing:
        """The drawing that names the axes."""
        return next(iter(self.drawings.values()))

    @property
    def largest_error(self) -> float:
        """The largest error of all models, where no value is less than any."""
        values = [drawing.value for drawing in self.drawings.values()]
        return max(-1.0 if math.isnan(value) else value for value in values)


# --- small multiples ------------------------------------------------------------------------


def plot_classes(
    results: Sequence[Any] | Mapping[str, Sequence[Any]],
    *,
    band: Any = True,
    columns: int | None = None,
    figure: "Figure | None" = None,
) -> "Figure":
    """Draw a panel for each class, all with the same axes and one legend.

    Parameters
    ----------
    results : list of ReliabilityDiagram or of ReliabilityCurve
        Results with ``setting="classwise"``; for several models, a dict of such lists by the names
        of the models. If there are more than twelve classes, the twelve with the largest errors
        are shown, the largest first, as the title states.
    band : bool, or list of ConsistencyBand, default True
        As in `ReliabilityDiagram.plot`; for one model also the band of each class, as
        `fastece.calibration_test` gives them.
    columns : int, optional
        Panels side by side; without it, as many as fill the rows best.
    figure : matplotlib Figure, optional
        Where to draw: an empty one with ``layout="constrained"``; without it, a new one.

    Returns
    -------
    matplotlib Figure

    Raises
    ------
    ValueError, TypeError
        Without results, or without columns; for models, or a band, of other classes or bins.
    """
    models = results if isinstance(results, Mapping) else {None: results}
    counts = sorted({len(classes) for classes in models.values()})
    if not counts or not counts[-1]:
        raise InputError("results", "must be diagrams or curves, of which there are none")
    bands = band if isinstance(band, Sequence) else [band] * counts[-1]
    if len({*counts, len(bands)}) > 1:
        rule = "must have the same classes for each model, as many as bands"
        raise InputError("results", rule, value=[*counts, len(bands)])
    results_by_class = zip(*models.values(), strict=True)
    panels = [
        panel_of(dict(zip(models, results_of_class, strict=True)), band_of_class)
        for results_of_class, band_of_class in zip(results_by_class, bands, strict=True)
    ]
    return draw_classes(panels, columns, figure)


def panel_of(models: Mapping[Any, Any], band: Any = True) -> Panel:
    """Make the panel of several models; a band of a test is drawn for the first one."""
    drawings: dict[Any, Drawing] = {}
    for name, result in models.items():
        drawings[name] = result.drawing(bool(band) if drawings else band)
    return Panel(drawings)


def draw_classes(
    panels: Sequence[Panel], columns: int | None = None, figure: "Figure | None" = None
) -> "Figure":
    """Draw small multiples of the classes with the largest errors."""
    worst = worst_panels(panels)
    n_columns = best_columns(len(worst))
    if columns is not None:
        n_columns = min(len(worst), check_integer("columns", columns, 1, 2**31))
    if figure is None:
        figure = axes.open_figure(size_of_panels(len(worst), n_columns))
    if len(worst) < len(panels):
        figure.suptitle(worst_text(panels))
    draw_panels(worst, n_columns, figure)
    return figure


def draw_panels(panels: Sequence[Panel], n_columns: int, figure: "Figure") -> None:
    """Draw panels in columns on an empty figure, with one legend below them."""
    n = len(panels)
    n_rows = math.ceil(n / n_columns)
    grid = figure.subplots(n_rows, n_columns, sharex=True, sharey=True, squeeze=False)
    panel_axes = list(grid.flat[:n])
    for ax in grid.flat[n:]:
        ax.remove()
    for panel, ax in zip(panels, panel_axes, strict=True):
        draw_panel(panel, ax)
    across, up = axes.axis_labels(panels[0].first.setting)
    for ax in panel_axes[-n_columns:]:  # the lowest of each column
        ax.set_xlabel(across, fontsize="small")
        ax.tick_params(labelbottom=True)
    for ax in panel_axes[::n_columns]:
        ax.set_ylabel(up, fontsize="small")
    legend = figure.legend(
        *axes.legend_entries(*panel_axes),
        loc="outside lower center",
        frameon=False,
        fontsize="small",
        ncols=max(1, int(figure.get_figwidth() // 1.9)),  # inches of an entry
    )
    axes.show_dollars(legend)


def worst_panels(panels: Sequence[Panel]) -> list[Panel]:
    """Choose the panels with the largest errors, or all in their order if they fit."""
    if len(panels) <= MAX_PANELS:
        return list(panels)
    return sorted(panels, key=lambda panel: panel.largest_error, reverse=True)[:MAX_PANELS]


def worst_text(panels: Sequence[Panel]) -> str:
    """Write how many of the panels are shown, where these are not all."""
    return f"the {MAX_PANELS} of {len(panels)} classes with the largest errors"


def best_columns(n: int) -> int:
    """Choose the number of columns that leaves the smallest gap in the last row."""
    if n <= 4:
        return n
    return min((4, 3, 5), key=lambda columns: -n % columns)


def size_of_panels(n: int, columns: int) -> tuple[float, float]:
    """Return the size in inches of a figure of `n` panels without empty room."""
    rows = math.ceil(n / columns)
    # Margins, and a panel with its title.
    return 0.6 + 1.9 * columns, 0.9 + 2.05 * rows


def draw_panel(panel: Panel, ax: "Axes") -> None:
    """Draw one of the small multiples, whose title has the error of each model."""
    errors = ", ".join(f"{drawing.value:.4f}" for drawing in panel.drawings.values())
    name = axes.shorten(panel.first.setting)
    is_short = len(f"{name}, {errors}") <= axes.MAX_NAME / 2 + len(", 0.0000")
    title = f"{name}, {errors}" if is_short else f"{name}\n{errors}"
    ax.set_title(title, fontsize="small", parse_math=False)
    ax.tick_params(labelsize="small")
    draw_square(ax, PLAIN)
    for model, drawing in panel.drawings.items():
        _, up = axes.axis_labels(drawing.setting)
        label = up if model is None else axes.shorten(model)
        drawing.draw(ax, next_style(ax, label, is_panel=True))


# --- pages of HTML --------------------------------------------------------------------------


def page_pictures(panels: Sequence[Panel], title: str) -> list[Picture]:
    """List the pictures of panels for a page: one for each, or for four classes."""
    if is_of_one_setting(panels):
        return [Picture(title, partial(draw_side_by_side, [x], axes.PAGE_SIZE)) for x in panels]
    worst = worst_panels(panels)
    if len(worst) < len(panels):
        title = f"{title}, {worst_text(panels)}"
    starts = range(0, len(worst), PANELS_OF_PICTURE)
    parts = [worst[start : start + PANELS_OF_PICTURE] for start in starts]
    return [Picture(title, partial(draw_page_of_classes, part)) for part in parts]


def draw_page_of_classes(panels: Sequence[Panel]) -> "Figure":
    """Draw small multiples in two columns, as wide as a picture of a page."""
    n_rows = math.ceil(len(panels) / COLUMNS_OF_PICTURE)
    height = 1.4 + 1.9 * n_rows  # the legend below, and the rows
    figure = axes.new_figure((axes.PAGE_WIDTH, height))
    draw_panels(panels, COLUMNS_OF_PICTURE, figure)
    return figure


def is_of_one_setting(panels: Sequence[Panel]) -> bool:
    """Return whether panels show the same problem, and no classes."""
    return len({panel.first.setting for panel in panels}) == 1


# --- files ----------------------------------------------------------------------------------


def draw_page(panels: Sequence[Panel], note: str = "") -> "Figure":
    """Draw panels side by side, or small multiples of classes, below a note."""
    notes = [note] if note else []
    if is_of_one_setting(panels):
        figure = draw_side_by_side(panels, (axes.RESULT_WIDTH, axes.RESULT_HEIGHT))
    else:
        n = min(len(panels), MAX_PANELS)
        width, height = size_of_panels(n, best_columns(n))
        figure = draw_classes(panels, figure=axes.new_figure((width, height + 0.4)))
        if figure.get_suptitle():
            notes.insert(0, figure.get_suptitle())
    if notes:
        characters = int(11 * figure.get_figwidth())  # 11 to an inch
        lines = [fill(line, characters) for text in notes for line in text.splitlines()]
        figure.suptitle("\n".join(lines), fontsize="medium", parse_math=False)
    return figure


def draw_side_by_side(panels: Sequence[Panel], size: tuple[float, float]) -> "Figure":
    """Draw panels of a size in inches side by side, each with its own legend."""
    count = len(panels)
    width, height = size
    figure = axes.new_figure((width * count, height))
    grid = figure.subplots(1, count, squeeze=False)
    for ax, panel in zip(grid.flat, panels, strict=True):
        span = logit_range(panel.drawings.values()) if panel.is_logit else PLAIN
        for name, drawing in panel.drawings.items():
            draw_model(drawing, ax, label=name, span=span)
    return figure


def draw_picture(path: Path, panels: Sequence[Panel], note: str = "") -> bytes:
    """Draw a page of panels as the content of a file, in the format that its name has."""
    return picture_of(path, draw_page(panels, note))


def picture_of(path: Path, figure: "Figure") -> bytes:
    """Write a figure as the content of a file, in the format that its name has."""
    axes.settle_layout(figure)
    content = io.BytesIO()
    figure.savefig(content, format=path.suffix[1:].lower(), dpi=DOTS_PER_INCH)
    return content.getvalue()


def require_matplotlib(argument: str) -> None:
    """Refuse an argument that needs pictures where matplotlib is missing."""
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError as error:
        rule = "needs matplotlib: pip install 'fastece[plot]'"
        raise InputError(argument, rule) from error


def require_page(argument: str) -> None:
    """Refuse an argument that needs pages where matplotlib or jinja2 is missing."""
    try:
        import jinja2  # noqa: F401
        import matplotlib.figure  # noqa: F401
    except ImportError as error:
        rule = "needs jinja2 and matplotlib: pip install 'fastece[report]'"
        raise InputError(argument, rule) from error
